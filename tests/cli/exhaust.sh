#!/bin/sh
# assay exhaust: a whole function, a shard of one, a twin, and what is refused.
. "$(dirname "$0")/lib.sh"

run 0 exhaust ex2.approx.f16
[ ! -s err ] || fail "exhaust writes to stderr"
has out '^ex2\.approx\.f16  PASS$'
has out '^  inputs          65536$'
has out '^  hashes          1 of 1 as on an H200$'
has out '^  worst error     2\^-[0-9.]+ relative at 0x[0-9a-f]{8} \(.*\), got 0x[0-9a-f]{8}: within 2\^-9\.9$'
cp out first
run 0 exhaust ex2.approx.f16 -j 1
cmp -s out first || fail "another number of threads gives another result"

run 0 exhaust tanh.approx.bf16 -d cpu --bits
has out '^  cpu             0 differ$'
grep -q 'worst' out && fail "--bits measures errors"

# One chunk of 64 of each operation with 2^32 inputs: [2^-7, 2) is the 16th, [2, 512) the 17th.
for part in ex2.approx.ftz.f32/17 lg2.approx.f32/16 rcp.approx.ftz.f32/16 rsqrt.approx.f32/16 \
    sqrt.approx.ftz.f32/16 sin.approx.ftz.f32/17 cos.approx.f32/16 tanh.approx.f32/16 \
    rcp.approx.ftz.f64/16 rsqrt.approx.ftz.f64/17; do
    run 0 exhaust "${part%/*}" --shard "${part##*/}/64" --bits
    has out "^${part%/*}  PASS\$"
    has out '^  inputs          67108864$'
    has out '^  hashes          1 of 1 as on an H200$'
done

# The table of hashes is what --hashes prints.
run 0 exhaust tanh.approx.f16 --hashes
tr -d '\n' <out | sed 's/  */ /g' >row
tr -d '\n' <"$source/gate/exhaust_sm90.def" | sed 's/  */ /g' | grep -qF "$(cat row)" ||
    fail "exhaust_sm90.def has no $(cat row)"

refused 2 'no target named' exhaust
refused 2 "'mufo': expected mufu (all)" exhaust mufo
refused 2 "unexpected argument 'sin'" exhaust ex2 sin
refused 2 "--shard '0/4'" exhaust ex2 --shard 0/4
refused 2 "--shard '5/4'" exhaust ex2 --shard 5/4
refused 2 "--shard '1'" exhaust ex2 --shard 1
refused 2 "-j '0'" exhaust ex2 -j 0
refused 2 'gpu' exhaust tanh.approx.f16 -d gpu
CUDA_VISIBLE_DEVICES=
export CUDA_VISIBLE_DEVICES
refused 3 'cuda' exhaust tanh.approx.f16 -d cuda:0
finish
