# awk -f expand.awk manifest.yaml.in >manifest.yaml
# One entry for each dtype: every entry that says @T@ is written three times, with f32, f16 and bf16
# for @T@, the elements of a 16-byte vector, 4 or 8, for @VEC@, and the exponential that suits the
# format (kernels/softmax/exp.cuh) for @EXP@ and @FLUSH@.  Of @?A|B@, A is for f32 and B for the other
# two.  A comment "# @NAME@ = EXPRESSION" names an expression for the entries below it.

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
function flush_entry() {
    if (entry !~ /@T@/)
        printf "%s", expand(entry, "f32")
    else
        printf "%s%s%s", expand(entry, "f32"), expand(entry, "f16"), expand(entry, "bf16")
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
