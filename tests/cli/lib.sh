# What the shell tests share: `. lib.sh` after the three arguments PROGRAM SOURCE WORK are set.
# A test goes on after a failure and returns 1 at its end: `finish` is its last line.

assay=$1
source=$2
work=$3
failures=0
cd "$work" || exit 1
[ -x "$assay" ] || { echo "no program at $assay" >&2; exit 1; }

fail() {
    echo "FAIL: $*" >&2
    failures=$((failures + 1))
}

finish() {
    [ "$failures" -eq 0 ] || echo "$failures failures" >&2
    exit $((failures > 0))
}

# run WANTED-EXIT ARGS...: run the program into the files out and err.
run() {
    wanted=$1
    shift
    "$assay" "$@" >out 2>err
    code=$?
    [ "$code" -eq "$wanted" ] || {
        fail "assay $*: exit $code, expected $wanted"
        sed 's/^/    out: /' out | head -n 5 >&2
        sed 's/^/    err: /' err | head -n 5 >&2
    }
}

# refused WANTED-EXIT PART ARGS...: nothing on stdout, and one line "assay: ..." with PART in it.
refused() {
    wanted=$1
    part=$2
    shift 2
    run "$wanted" "$@"
    [ ! -s out ] || fail "assay $*: stdout is not empty"
    [ "$(wc -l <err)" -eq 1 ] || fail "assay $*: $(wc -l <err) lines on stderr, expected 1"
    grep -q '^assay: .' err || fail "assay $*: stderr does not begin with 'assay: ': $(cat err)"
    grep -qF -- "$part" err || fail "assay $*: no '$part' in: $(cat err)"
}

# has FILE PATTERN: an extended regular expression matches some line.
has() {
    grep -qE -- "$2" "$1" || {
        fail "no line of $1 matches: $2"
        head -n 10 "$1" | sed 's/^/    /' >&2
    }
}

# npy DTYPE-AND-SHAPE FILE: a version 1 header ("'<f4'" "(2, 3)") on stdout's way into FILE, with the
# data of stdin behind it.
npy() {
    dict="{'descr': $1, 'fortran_order': ${4:-False}, 'shape': $2, }"
    length=${#dict}
    {
        printf '\223NUMPY\001\000'
        printf "\\$(printf %03o $((length % 256)))\\$(printf %03o $((length / 256)))"
        printf %s "$dict"
        cat
    } >"$3"
}

# floats N: N times 1.0f, little-endian.
floats() {
    i=0
    while [ "$i" -lt "$1" ]; do
        printf '\000\000\200\077'
        i=$((i + 1))
    done
}
