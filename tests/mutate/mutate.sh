#!/bin/sh
# mutate.sh SOURCE WORK [--check | --sample N | --only TEXT]: are the tests able to fail?
#
# Applies each mutation of mutations.txt to a copy of oracle/, gate/ and device/ in WORK, builds the tests
# named there and demands that one of them fails.  Prints one line per mutation; exit 1 if one
# survives or does not apply any more.  --check: only whether all of them apply.  --sample N: about N
# of those that need no slow test.  --only TEXT: those with TEXT in their first line.
set -u

source=$(cd "$1" && pwd) && mkdir -p "$2" && work=$(cd "$2" && pwd) || exit 2
mode=${3:-all}
argument=${4:-}
table=$source/tests/mutate/mutations.txt
tree=$work/tree
origin=$work/origin # as copied when the run began
obj=$work/obj
limit=180 # seconds for one test: a mutant may loop

CC=${CC:-cc}
flags="-std=c17 -O1 -w -Wno-psabi -D_GNU_SOURCE -DASSAY_VERSION=\"0\" -ffp-contract=off -fno-math-errno -I$tree"
flags="$flags -DREAL_FOLDER=\"$tree/corpus/real\"" # of test_gate_plan_real
modules="mpfr gmp jansson libmd cmocka"
flags="$flags $(pkg-config --cflags $modules)" || exit 2
libs="$(pkg-config --libs $modules) -lm -lpthread -ldl"
# Arb, for tests that use it: inside FLINT from version 3 on.
for arb in -lflint-arb -larb ''; do
    echo 'int main(void) { return 0; }' |
        $CC -x c - $arb -lflint -o "$work/probe" 2>/dev/null && libs="$arb -lflint $libs" && break
done

die() {
    echo "mutate.sh: $*" >&2
    exit 2
}

# One field of mutation $1: file, tests, what, old, new.
field() {
    awk -v wanted="$1" -v name="$2" '
        /^@ / { n++
                if (n == wanted) {
                    head = substr($0, 3); colon = index(head, ": ")
                    words = substr(head, 1, colon - 1); split(words, w, " ")
                    if (name == "file") print w[1]
                    if (name == "tests") print substr(words, length(w[1]) + 2)
                    if (name == "what") print substr(head, colon + 2)
                } }
        n == wanted && /^- / && name == "old" { print substr($0, 3) }
        n == wanted && /^[+]/ && name == "new" { print substr($0, 3) }' "$table"
}

# Replace the one place where OLD stands; no regular expressions.  Fails unless there is just one.
replace() { # FILE OLD NEW OUTPUT
    OLD=$2 NEW=$3 awk '
        { line = $0; out = ""
          while ((at = index(line, ENVIRON["OLD"])) > 0) {
              out = out substr(line, 1, at - 1) ENVIRON["NEW"]
              line = substr(line, at + length(ENVIRON["OLD"])); found++
          }
          print out line }
        END { exit found != 1 }' "$1" >"$4"
}

object_of() {
    echo "$obj/$(echo "$1" | tr / _ | sed 's/c$/o/')"
}

compile() { # FILE, relative to the tree
    case $1 in
    oracle/simd_*.c | device/ptx/simd_*.c) # one object of the three levels
        parts=
        for level in 2 3 4; do
            part=$obj/level_v$level.o
            $CC $flags -DISA=v$level -DISA_LEVEL=$level -march=x86-64-v$level \
                -fno-trapping-math -c "$tree/$1" -o "$part" || return 1
            parts="$parts $part"
        done
        ld -r $parts -o "$(object_of "$1")" ;;
    *) $CC $flags -c "$tree/$1" -o "$(object_of "$1")" ;;
    esac
}

library_sources() {
    (cd "$tree" && ls base/*.c oracle/*.c gate/*.c kernels/read_file.c kernels/tensors.c)
}

# Compiled only for a run with tests ptx_*.
emulator_sources() {
    (cd "$tree" && ls device/*.c device/ptx/*.c | grep -v /coverage.c)
}

# What the tests in a folder share.
helper_sources() {
    (cd "$tree" && ls "$1"/*.c | grep -vE '/(test|bench|exhaust)_')
}

# archive NAME FILE...: a test takes what it needs of it, and no file that needs a device.
archive() {
    into=$work/$1.a
    shift
    members=
    for f in "$@"; do
        o=$(object_of "$f")
        [ -f "$o" ] || compile "$f" || die "$f does not compile"
        members="$members $o"
    done
    rm -f "$into"
    ar rcs "$into" $members || die "no archive"
}

# Link and run one test; its exit status.
run_test() {
    archives="$work/library.a"
    case $1 in
    test_gate_*) main=tests/gate/test_${1#test_gate_}.c
                 helpers="$(helper_sources tests/gate) $(helper_sources tests/oracle)" ;;
    ptx_*) main=tests/ptx/test_${1#ptx_}.c
           helpers=$(helper_sources tests/ptx)
           archive emulator $(emulator_sources)
           archives="$work/emulator.a $archives" ;;
    *) main=tests/oracle/$1.c
       helpers=$(helper_sources tests/oracle) ;;
    esac
    [ "$1" != test_gate_exhaust ] || # has devices of its own
        helpers="$helpers device/ptx/mufu.c device/ptx/mufu_half.c"
    archive helpers $helpers
    archive library $(library_sources)
    own=$(object_of "$main")
    [ -f "$own" ] || compile "$main" || die "$main does not compile"
    $CC "$own" "$work/helpers.a" $archives $libs -o "$work/$1" || die "$1 does not link"
    (cd "$work" &&
        timeout "$limit" "./$1" $(arguments_of "$1") >"$work/$1.log" 2>&1)
}

arguments_of() {
    case $1 in
    test_gate_fill) echo "$source/docs/cases.md" ;;
    ptx_tensor) echo "$source/tests/ptx/mma_vectors.tsv" ;;
    ptx_forms) echo "$source/tests/ptx/forms.txt" ;;
    esac
}

# What a changed file takes with it: itself, or everything that may include it.
rebuild() {
    case $1 in
    oracle/simd.h | oracle/simd_exp.h | oracle/simd_dd.h | oracle/simd_mask.h) # nobody else's
        for f in $(library_sources | grep ^oracle/simd_); do compile "$f" || return 1; done ;;
    device/*.h) for f in $(emulator_sources); do compile "$f" || return 1; done ;;
    *.h) for f in $(library_sources); do compile "$f" || return 1; done
         rm -f "$obj"/tests_*.o ;; # run_test compiles what it finds no object of
    *) compile "$1" ;;
    esac
}

chosen() { # MUTATION: does this run apply it?
    case $mode in
    --only) case "$(field "$1" file) $(field "$1" tests): $(field "$1" what)" in
            *"$argument"*) return 0 ;; *) return 1 ;; esac ;;
    --sample) for t in $(field "$1" tests); do
                  case $t in test_bounds | ptx_*) return 1 ;; esac # slow
              done
              [ $(($1 % step)) -eq 0 ] ;;
    esac
}

total=$(grep -c '^@ ' "$table") || die "$table holds no mutation"
step=1
[ "$mode" = --sample ] && step=$(((total + argument - 1) / argument))

stale=0
i=0
while [ $((i += 1)) -le "$total" ]; do
    replace "$source/$(field $i file)" "$(field $i old)" "$(field $i new)" "$work/mutant" || {
        echo "does not apply: $(field $i file): $(field $i what)"
        stale=$((stale + 1))
    }
done
[ "$stale" -eq 0 ] || exit 1
[ "$mode" = --check ] && { echo "all $total mutations apply"; exit 0; }

rm -rf "$tree" "$origin" "$obj"
mkdir -p "$tree/tests" "$obj"
for folder in base oracle gate kernels device corpus tests/oracle tests/gate tests/ptx; do
    [ ! -d "$source/$folder" ] || cp -R "$source/$folder" "$tree/$(dirname $folder)/" || exit 2
done
cp "$source"/tests/*.h "$tree/tests/" || exit 2
cp -R "$tree" "$origin" || exit 2
for f in $(library_sources); do
    compile "$f" || die "$f does not compile"
done

# Without a mutation every test must pass, or a failure would say nothing.
i=0
tests=
while [ $((i += 1)) -le "$total" ]; do
    ! chosen $i || tests="$tests $(field $i tests)"
done
for t in $(printf '%s\n' $tests | sort -u); do
    run_test "$t" || { cat "$work/$t.log" >&2; die "$t fails without any mutation"; }
done
rm -rf "$work/built" # now that all that a test needs is there
cp -R "$obj" "$work/built" || exit 2

killed=0
survived=0
i=0
while [ $((i += 1)) -le "$total" ]; do
    chosen $i || continue
    file=$(field $i file)
    replace "$origin/$file" "$(field $i old)" "$(field $i new)" "$tree/$file"
    rebuild "$file" || die "mutation $i does not compile: $file: $(field $i what)"
    by=
    for t in $(field $i tests); do
        run_test "$t" || { by=$t; break; }
    done
    cp "$origin/$file" "$tree/$file"
    cp "$work"/built/* "$obj/" || exit 2
    if [ -n "$by" ]; then
        killed=$((killed + 1))
        printf 'killed    %-20s %s: %s\n' "$by" "$file" "$(field $i what)"
    else
        survived=$((survived + 1))
        printf 'SURVIVED  %-20s %s: %s\n' "" "$file" "$(field $i what)"
    fi
done
echo "$killed killed, $survived survived"
[ "$survived" -eq 0 ] && [ "$killed" -gt 0 ]
