#!/bin/sh
# assay check: what it prints, on a fill, a file and real input.
. "$(dirname "$0")/lib.sh"

run 0 check softmax_online_f32 --fill normal --shape 5x257 --seed 3
[ ! -s err ] || fail "check writes to stderr"
has out '^kernel    softmax_online_f32$'
has out '^case      --fill normal --shape 5x257 --seed 3$'
has out '^verdict   PASS$'
has out '^max ulp   [0-9.e+-]+$'
has out '^max rel   [0-9.e+-]+$'
has out '^max rho   0\.[0-9]+$'
has out '^worst     element \[[0-4]\]\[[0-9]+\]$'
has out '^  got     0x[0-9a-f]{8} \('
has out '^events    NaN born [0-9]+, Inf born [0-9]+, subnormals flushed [0-9]+$'
cp out first
run 0 check softmax_online_f32 --fill normal --shape 5x257 --seed 3
cmp -s out first || fail "the same case gives another result"
run 0 check softmax_online_f32 --fill normal --shape 5x257 --seed 4
cmp -s out first && fail "another seed gives the same result"

run 0 check softmax_online_f32 --order --fill normal --shape 5x257
has out '^case      --order --fill normal --shape 5x257 --seed 1$'
has out '^verdict   PASS$'

run 0 check sum_float4_f32 --ensemble --fill near_overflow --shape 512x257
has out '^case      --ensemble --fill near_overflow --shape 512x257 --seed 1$'
has out '^verdict   PASS$'
run 1 check sum_float4_f32 --ensemble --fill normal --shape 16x33 # too few rows to show anything
has out '^verdict   MISTRUSTED$'
refused 2 'not random' check sum_float4_f32 --ensemble --fill ramp_up --shape 512x33
refused 2 'give one of them' check sum_float4_f32 --ensemble --order --fill normal --shape 512x33

# Real logits, whole and in part, and that they count as one case each.
real=$(ls "$source"/corpus/real/logits_*_f32.npy 2>/dev/null | head -n 1)
if [ -n "$real" ]; then
    run 0 check softmax_online_f32 -i "x=$real" --rows 3:2
    has out "^case      -i x=$real --rows 3:2\$"
    has out '^verdict   PASS$'
    has out '^max ulp '
    has out '^max rho '
    refused 2 'a random fill' check softmax_online_f32 --ensemble -i "x=$real"
else
    fail "no file corpus/real/logits_*_f32.npy in $source"
fi

run 0 check sum_float4_f32 --fill exact_int --shape 4x1025 --json
cat >fields.cmake <<'END'
file(READ out text)
foreach(key name op dtype image_sha256 verdict cases max_ulp max_rel max_rho)
    string(JSON value GET "${text}" ${key})
    message("${key}=${value}")
endforeach()
string(JSON value GET "${text}" worst case)
message("case=${value}")
END
"$CMAKE" -P fields.cmake 2>json || fail "check --json is no JSON"
has json '^name=sum_float4_f32$'
has json '^op=sum$'
has json '^verdict=PASS$'
has json '^cases=1$'
has json '^max_ulp=0(\.0)?$'
has json '^case=--fill exact_int --shape 4x1025 --seed 1$'

# A shape that the kernel refuses is no pass.
run 1 check softmax_fused_f32 --fill normal --shape 1x4097
has out '^verdict   SKIP$'
has out '^reason    .*4097'

run 0 check --fill help
has out '^alpha_underflow '
has out '^tail_lengths '
finish
