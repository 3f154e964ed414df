#!/bin/sh
# test_checks.sh: prove that check_imports.sh and check_paths.sh see what they are there to see.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

# expect 0|1 CHECK WORD: run the check on the planted tree; WORD must be in what it prints.
expect() {
    code=0
    output=$(sh "$here/$2" "$scratch/tree" 2>&1) || code=$?
    case $output in
    *"$3"*) ;;
    *) code="$code without '$3'" ;;
    esac
    if [ "$code" != "$1" ]; then
        printf 'FAILED %s: %s, expected %s\n%s\n' "$2" "$code" "$1" "$output"
        failures=$((failures + 1))
    fi
}

# A tree in which all is well: every room uses what it may.
plant() {
    rm -rf "$scratch/tree"
    mkdir -p "$scratch/tree"
    cd "$scratch/tree"
    mkdir -p base oracle device/ptx kernels/softmax gate cli fuzz tests/unit build
    echo '#include <stdint.h>' >base/status.h
    echo '#include "base/status.h"' >oracle/oracle.h
    echo '#include "base/status.h"' >device/device.h
    echo '#include <cuda.h>' >device/cuda.c
    printf '%s\n' '#include "device/device.h"' '#include "lex.h"' >device/ptx/exec.c
    echo '#include "base/status.h"' >device/ptx/lex.h
    printf '%s\n' '#include "oracle/oracle.h"' '#include "device/device.h"' >kernels/catalogue.h
    echo '#include <cuda_fp16.h>' >kernels/softmax/online.cu
    echo '#include "kernels/catalogue.h"' >gate/judge.h
    echo '  #  include "gate/judge.h"' >cli/main.c
    echo '#include "device/ptx/lex.h"' >fuzz/fuzz_ptx.c
    echo '#include "device/ptx/lex.h"' >tests/unit/test_x.c
    echo '#include "device/device.h"' >build/generated.h # not ours to judge
}

# forbid FILE LINE WORD: with this line added to the file, the check of imports fails and says WORD.
forbid() {
    plant
    printf '\n%s\n' "$2" >>"$1"
    expect 1 check_imports.sh "$3"
    case $output in
    *"$1:"[0-9]*) ;;
    *)
        printf 'FAILED: file and line of %s not named:\n%s\n' "$1" "$output"
        failures=$((failures + 1))
        ;;
    esac
}

plant
expect 0 check_imports.sh '12 sources keep'
expect 0 check_paths.sh ''

forbid oracle/oracle.h '#include "device/device.h"' 'oracle must not include device/device.h'
forbid oracle/oracle.h '#include <device/device.h>' 'oracle must not include device/device.h'
forbid oracle/oracle.h '#include "../device/ptx/lex.h"' 'oracle must not include device/ptx/lex.h'
forbid device/device.h '#include "oracle/oracle.h"' 'device must not include oracle/oracle.h'
forbid device/device.h '#include "device/ptx/lex.h"' 'device must not include device/ptx/lex.h'
forbid device/cuda.c '#include "device/ptx/lex.h"' 'device must not include device/ptx/lex.h'
forbid device/device.h '#include "ptx/lex.h"' 'device must not include device/ptx/lex.h'
forbid device/ptx/exec.c '#include "oracle/oracle.h"' 'device/ptx must not include oracle/oracle.h'
forbid device/ptx/exec.c '#include "./../../oracle/oracle.h"' 'device/ptx must not include oracle'
forbid base/status.h '#include "gate/judge.h"' 'base must not include gate/judge.h'
forbid kernels/softmax/online.cu '#include "gate/judge.h"' 'kernels must not include gate/judge.h'
forbid gate/judge.h '#include "device/ptx/lex.h"' 'gate must not include device/ptx/lex.h'
forbid gate/judge.h '#include "cli/verbs.h"' 'gate must not include cli/verbs.h'
forbid cli/main.c '	#	include	"fuzz/mutate.h"' 'cli must not include fuzz/mutate.h'
forbid gate/judge.h '#include <cuda.h>' 'only device/cuda.c may include cuda.h'
forbid device/ptx/exec.c '#include "cuda.h"' 'only device/cuda.c may include cuda.h'
forbid gate/judge.h 'dlopen("libcuda.so.1", RTLD_NOW);' 'only device/cuda.c may name libcuda'
forbid gate/judge.h '#include JUDGE_H' 'hides what it includes'

plant
mkdir tools
: >tools/x.c
expect 1 check_imports.sh 'no room for this file'
rm -r "$scratch/tree"
mkdir "$scratch/tree"
expect 1 check_imports.sh 'no sources'

# The paths are put together here, or this file would be the first to be caught.
for name in work home root Users; do
    plant
    printf 'x\nsee /%s/me/notes\n' "$name" >base/notes.md
    expect 1 check_paths.sh 'base/notes.md:2:'
    printf '/%s/me\n' "$name" >base/notes.md
    expect 1 check_paths.sh 'base/notes.md:1:'
done
plant
printf 'example.org/%s/x  ../%s/y  corpus/%s/z  a-%s/b\n' home work root home >base/notes.md
printf '\0/%s/me\n' home >base/binary
printf '/%s/me\n' home >build/log
expect 0 check_paths.sh ''

[ "$failures" -eq 0 ] && echo 'the checks see what they should'
exit "$failures"
