#!/bin/sh
# Kernels that torch.compile wrote are gated by a manifest alone: some of them, the rest by hand.
. "$(dirname "$0")/lib.sh"
manifest=$source/tests/kernels/external/triton/manifest.yaml
rm -rf out1 out2

run 0 gate --manifest "$manifest" -k softmax_inductor_1024_f32 -k sum_inductor_bf16 \
    -k max_inductor_f32 -o out1
has out '^3 kernels on .* 3 pass, '
hash=$(sha256sum <"$source/tests/kernels/external/triton/sum_bf16.ptx" | cut -d' ' -f1)
has out1/results.json "\"image_sha256\": \"$hash\""
has out1/results.json '"rounding": "as_written"'

# nvcc's default contraction fixes no bits; written rounding does, and is on record.
run 1 gate --manifest "$source/tests/kernels/external/manifest.yaml" -k 'log_softmax_cuobjdump*' \
    --twin=cpu:sm_90 -o out2
has out '^MISTRUSTED +log_softmax_cuobjdump_f32 '
has out '^note: log_softmax_cuobjdump_f32: [0-9]+ unsuffixed mul \+ add pairs'
has out '^PASS +log_softmax_cuobjdump_rn_f32 '
has out '^note: `\.rn` .*: log_softmax_cuobjdump_rn_f32$'
hash=$(sha256sum <"$source/tests/kernels/external/cuobjdump_log_softmax.ptx" | cut -d' ' -f1)
[ "$(grep -c "\"image_sha256\": \"$hash\"" out2/results.json)" -eq 2 ] || fail "not the image's own hash"
has out2/results.json '"rounding": "rn"'
finish
