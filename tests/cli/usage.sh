#!/bin/sh
# Help, version and bad usage.
. "$(dirname "$0")/lib.sh"

for help in --help -h '-?' help; do
    run 0 "$help"
    has out '^Usage: assay VERB'
    for verb in list gate check bench exhaust; do
        has out "^  $verb "
    done
    has out 'Exit codes: 0 passed, 1 a check failed, 2 bad usage or bad input, 3 could not run'
    [ ! -s err ] || fail "$help writes to stderr"
done
run 0 --version
has out '^assay [0-9]+\.[0-9]+\.[0-9]+$'
for verb in list gate check bench; do
    run 0 $verb --help
    has out "^Usage: assay $verb "
    has out '--manifest=FILE'
done
run 0 exhaust --help
has out '^Usage: assay exhaust '

refused 2 'no verb'
refused 2 "unknown verb 'gat'" gat
refused 2 "unknown verb '--gate'" --gate
refused 2 "'--frobnicate'" gate --frobnicate
refused 2 "'--seed'" gate --seed
refused 2 "'-j'" gate -j
refused 2 "unexpected argument 'softmax'" gate softmax
refused 2 "--seed 'x'" gate --seed x
refused 2 "--seed '-1'" gate --seed=-1
refused 2 "--seed '1x'" gate --seed 1x
refused 2 "--seed '99999999999999999999999'" gate --seed 99999999999999999999999
refused 2 "-j '0'" gate -j 0
refused 2 "--suite huge: expected quick or full" gate --suite huge
refused 2 "-k 'no_such_*' matches none" gate -k 'no_such_*'
refused 2 "-k 'no_such_*' matches none" gate -k 'softmax_online_f32' -k 'no_such_*'
refused 2 "-d" gate -d
refused 2 "no kernel named" check
refused 2 "expected either --fill" check softmax_online_f32
refused 2 "expected either --fill" check softmax_online_f32 --fill normal -i x=a.npy
refused 2 "--fill needs --shape" check softmax_online_f32 --fill normal
refused 2 "--shape '4'" check softmax_online_f32 --fill normal --shape 4
refused 2 "--shape '4x'" check softmax_online_f32 --fill normal --shape 4x
refused 2 "--shape 'x4'" check softmax_online_f32 --fill normal --shape x4
refused 2 "--shape '4x4x4'" check softmax_online_f32 --fill normal --shape 4x4x4
refused 2 "--shape '-4x4'" check softmax_online_f32 --fill normal --shape=-4x4
refused 2 "a case holds at most" check softmax_online_f32 --fill normal --shape 9999999999x9999999999
refused 2 "there is no such fill" check softmax_online_f32 --fill nromal --shape 4x4
refused 2 "there is no kernel 'softmax'" check softmax --fill normal --shape 4x4
refused 2 "unexpected argument 'sum'" check softmax_online_f32 sum --fill normal --shape 4x4
refused 2 "expected x=FILE.npy" check softmax_online_f32 -i q=a.npy
refused 2 "expected NAME=FILE.npy" check softmax_online_f32 -i a.npy
refused 2 "x is given twice" check softmax_online_f32 -i x=a.npy -i x=b.npy
refused 2 "--rows goes with -i" check softmax_online_f32 --fill normal --shape 4x4 --rows 1:2
refused 2 "--rows '3'" check softmax_online_f32 -i x=a.npy --rows 3
refused 2 "goes with --fill" check softmax_online_f32 -i x=a.npy --shape 3x3
refused 2 "'--case'" check softmax_online_f32 --case a.case
refused 2 "--op 'softmix'" list --op softmix

# Devices: a name that is none is bad usage.
refused 2 "gpu" gate -d gpu
refused 2 "sm_1" check softmax_online_f32 --fill normal --shape 2x2 -d cpu:sm_1

# A device that is not there is no fault of the user's: it could not run.
CUDA_VISIBLE_DEVICES=
export CUDA_VISIBLE_DEVICES
refused 3 'cuda' check softmax_online_f32 --fill normal --shape 2x2 -d cuda:0
refused 3 'cuda' gate -d cuda:0

# A verdict that nobody can read is no pass.
if [ -w /dev/full ]; then
    "$assay" list >/dev/full 2>err
    [ $? -eq 3 ] || fail "list >/dev/full does not exit 3"
    has err '^assay: cannot write to stdout'
fi
finish
