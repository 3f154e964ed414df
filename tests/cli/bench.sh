#!/bin/sh
# assay bench: counts on the CPU; times on a driver without a GPU, tests/gpu/fake_cuda.c, where they
# are known.
. "$(dirname "$0")/lib.sh"

# Counts: the same in every run; a fused softmax moves what it must, one with three reads twice that.
run 0 bench -k 'softmax_fused_f32' -k 'softmax_three_pass_f32' --shape 4x1000 --shape 2x5000
[ ! -s err ] || fail "bench writes to stderr"
has out '^softmax_fused_f32 +4x1000 +32000 +[0-9]+ +[0-9]+ +[0-9.]+ +1\.00$'
has out '^softmax_fused_f32 +2x5000 +SKIP: cols = 5000: accepts 1\.\.4096$'
has out '^softmax_three_pass_f32 +4x1000 +32000 +[0-9]+ +[0-9]+ +[0-9.]+ +2\.00$'
cp out first
run 0 bench -k 'softmax_fused_f32' -k 'softmax_three_pass_f32' --shape 4x1000 --shape 2x5000
cmp -s out first || fail "counts differ from run to run"

# A warp of 32 lanes per row: as many lane instructions as 32 times those of the warps, or fewer.
run 0 bench -k softmax_warp_f32 --shape 8x64
awk '$1 == "softmax_warp_f32" { exit !($4 > 0 && $5 > $4 && $5 <= 32 * $4) } END { if (NR != 2) exit 1 }' out ||
    fail "counts of softmax_warp_f32 make no sense: $(cat out)"

# Without --shape: the op's own list, what the kernel does not accept left out.
run 0 bench -k softmax_fused_f32
[ "$(grep -c '^softmax_fused_f32' out)" -eq 7 ] || fail "expected seven shapes: $(cat out)"

# Ops of more than one matrix; a shape goes to the kernels that have its dimensions.
run 0 bench -k 'rope_vector_f16' -k 'rmsnorm_registers_f16' --shape rows=3,heads=2,head_dim=64 --shape 4x96
has out '^rope_vector_f16 +rows=3,heads=2,head_dim=64 +1548 '
has out '^rmsnorm_registers_f16 +4x96 +1728 +[0-9]+ +[0-9]+ +[0-9.]+ +1\.'
[ "$(wc -l <out)" -eq 3 ] || fail "expected two rows: $(cat out)"

# What is recommended, at the lengths for which it is.
run 0 bench --recommended -k 'softmax_lanes_f32' -k 'softmax_registers_f32' -k 'softmax_warp_f32' --shape 2x64 --shape 2x700
awk 'NR > 1 { print $1, $2 }' out | sort >rows
printf 'softmax_lanes_f32 2x64\nsoftmax_registers_f32 2x700\n' | cmp -s - rows || fail "not what is recommended: $(cat out)"
run 0 bench --recommended -k 'softmax_*_f32' -k 'rope_vector_f16'
for cols in 32 64 128 256 512 1024; do
    [ "$(grep -c "x$cols " out)" -eq 1 ] || fail "expected one softmax of $cols columns: $(cat out)"
done
has out '^rope_vector_f16 '
has out '^softmax_split_f32 +1x[0-9]+ +SKIP: recommended for no shape'
run 0 bench --recommended -k attention_combine_f32 -k softmax_lanes_f32 --shape parts=2,rows=2,head_dim=64 --shape 2x64
has out '^softmax_lanes_f32 +2x64 +1024 '
[ "$(wc -l <out)" -eq 2 ] || fail "expected one row: $(cat out)"
refused 2 'none of the kernels is (see' bench --recommended -k softmax_warp_f32
refused 2 'none of the kernels is at these' bench --recommended -k 'softmax_lanes_f32' --shape 2x700

# JSON, and beside what a gate found.
run 0 bench -k softmax_warp_f32 --shape 2x64 --json
has out '"warp_insns": [1-9][0-9]*,'
run 0 gate -k softmax_warp_f32 -o gated
run 0 bench -k softmax_warp_f32 -k softmax_fused_f32 --shape 2x64 -o gated
has gated/results.json '"verdict": "PASS"'
[ "$(grep -c '"bench": \[' gated/results.json)" -eq 2 ] || fail "results.json lacks a bench"
grep -q '"bench": null' gated/results.json && fail "results.json keeps an empty bench"
sed 's/"image_sha256": "./"image_sha256": "!/' gated/results.json >other && cp other gated/results.json
refused 2 'of another image' bench -k softmax_warp_f32 --shape 2x64 -o gated

# A kernel that writes outside its buffer is not measured.
cat >long.yaml <<EOF
kernels:
  - name: longer_than_its_rows
    op: softmax
    image: $(dirname "$assay")/kernels/softmax/warp.ptx
    types: {x: f32, y: f32}
    launches:
      - {entry: softmax_warp_f32, grid: [ceil(rows/8)], block: [32, 8], args: [x, y, rows, cols+1]}
    numerics: {exp: expf, divide: ieee}
EOF
run 1 bench --manifest long.yaml --shape 3x33
has out '^longer_than_its_rows +3x33 +FAIL: .* past the end of a buffer'

# A kernel for a newer device has no figures there, and the others do.
run 0 bench -d cpu:sm_80 -k max_cluster_f32 -k max_first_add_f32 --shape 4x64
has out '^max_cluster_f32 +4x64 +SKIP: .*compiled for sm_90, the device is sm_80'
has out '^max_first_add_f32 +4x64 +1040 +[0-9]+ '

refused 2 "--shape '4'" bench --shape 4
refused 2 "--shape 'rows=4,heads=2'" bench -k 'softmax_*' --shape rows=4,heads=2
refused 2 "matches none" bench -k 'no_such_*'
refused 2 "unexpected argument 'softmax'" bench softmax
refused 2 "gpu" bench -d gpu
refused 2 "--beside" bench --beside
refused 2 "no_such.json" bench --beside no_such.json
echo '{"rows": [{"op": "softmax", "dtype": "f32", "shape": 1, "seconds": 1}]}' >bad.json
refused 2 "bad.json: rows[0]" bench --beside bad.json
echo '[' >bad.json
refused 2 "bad.json:" bench --beside bad.json

# Times: the copy moves 16 bytes in and 16 out per vector at 1 TB/s, every other block takes 1 us.
export ASSAY_LIBCUDA= ASSAY_FAKE_CUDA=dry:launch
echo '{"rows": [{"op": "softmax", "dtype": "f32", "shape": "1024x1024", "seconds": 512e-6}]}' >torch.json
run 0 bench -d cuda:0 -k softmax_online_f32 --shape 1024x1024 --shape 4x64 --beside torch.json
has out '^softmax_online_f32 +1024x1024 +8388608 +1024\.0 +8 +0\.008 +0\.0 +16 +0\.50$'
has out '^softmax_online_f32 +4x64 +2048 +4\.0 +1 +0\.001 +0\.0$'
has out '^fake GPU, CUDA 13\.0: copy16_[124] moves 1000 GB/s'
run 0 bench -d cuda:0 -k softmax_online_f32 --shape 1024x1024 --json
has out '"seconds": 0\.001024'
has out '"of_copy": 0\.0081'
has out '"samples": 51'
export ASSAY_FAKE_CUDA=dry:launch,older:device
run 0 bench -d cuda:0 -k max_cluster_f32 -k max_first_add_f32 --shape 100x64
has out '^max_cluster_f32 +100x64 +SKIP: .*compiled for sm_90, the device is sm_80$'
has out '^max_first_add_f32 +100x64 +26000 +[0-9]'
export ASSAY_FAKE_CUDA=dry:launch
# a tensor map that cannot be made at one shape
sed '/^ *accepts: /d' "$source/tests/kernels/external/manifest.yaml" >maps.yaml
cp "$source"/tests/kernels/external/*.ptx .
run 1 bench -d cuda:0 --manifest maps.yaml -k max_tma_f32 --shape 3x65 --shape 3x64
has out '^max_tma_f32 +3x65 +FAIL: max_tma_f32: tensor_maps.0. at rows = 3, cols = 65: tensor map: '
has out '^max_tma_f32 +3x64 +780 +[0-9]'
# three launches in one sample: (1 + 1 + 4) * 100 blocks
run 0 bench -d cuda:0 -k softmax_three_kernels_f32 --shape 100x1024
has out '^softmax_three_kernels_f32 +100x1024 +819200 +600\.0 '
# a run of a second is not taken 51 times
run 0 bench -d cuda:0 -k softmax_online_f32 --shape 100000x16 --json
has out '"samples": 5,'
finish
