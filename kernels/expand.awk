# awk -f expand.awk manifest.yaml.in >manifest.yaml
# One entry for each dtype: every entry that says @T@ is written three times, with f32, f16 and bf16
# for @T@, the elements of a 16-byte vector, 4 or 8, for @VEC@, and the exponential that suits the
# format (kernels/softmax/exp.cuh) for @EXP@ and @FLUSH@.  Of @?A|B@, A is for f32 and B for the other
# two.  A comment "# @NAME@ = EXPRESSION" names an expression for the entries below it.
# @H@ is f16 and bf16 only, @D@ 64 and 128; of @causal:TEXT@ the first copy has nothing, the second TEXT.

function expand(text, t,   name, round, choice) {
    for (round = 1; round <= 3; round++) # one may use another
        for (name in names)
            gsub("@" name "@", "(" names[name] ")", text)
    while (match(text, /@[?][^|@]*[|][^|@]*@/)) {
        split(substr(text, RSTART + 2, RLENGTH - 3), choice, "|")
        text = substr(text, 1, RSTART - 1) choice[t == "f32" ? 1 : 2] substr(text, RSTART + RLENGTH)
    }
    gsub(/@T@/, t, text)
    gsub(/@VEC@/, t == "f32" ? 4 : 8, text)
    gsub(/@EXP@/, t == "f32" ? "expf" : "fast", text)
    gsub(/@FLUSH@/, t == "f32" ? "false" : "true", text)
    return text
}
function types(text) {
    gsub(/@H@/, "@T@", text)
    return text
}
function copies(text,   copy) {
    if (text ~ /@D@/) {
        copy = text
        gsub(/@D@/, "64", copy)
        gsub(/@D@/, "128", text)
        return copies(copy) copies(text)
    }
    if (text ~ /@causal:/) {
        copy = text
        gsub(/@causal:[^@]*@/, "", copy)
        while (match(text, /@causal:[^@]*@/))
            text = substr(text, 1, RSTART - 1) substr(text, RSTART + 8, RLENGTH - 9) \
                   substr(text, RSTART + RLENGTH)
        return copies(copy) copies(text)
    }
    if (text ~ /@H@/)
        return expand(types(text), "f16") expand(types(text), "bf16")
    if (text ~ /@T@/)
        return expand(text, "f32") expand(text, "f16") expand(text, "bf16")
    return expand(text, "f32")
}
function flush_entry() {
    printf "%s", copies(entry)
    entry = ""
}
/^  - name:/ { flush_entry() }
/^  # @[A-Z]+@ = / {
    flush_entry()
    value = $0
    sub(/^[^=]*= /, "", value)
    split($0, word, "@")
    names[word[2]] = value
    next
}
/^  #/ && entry ~ /\n\n$/ { flush_entry() }
{ entry = entry $0 "\n" }
END { flush_entry() }
