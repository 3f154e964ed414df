#!/bin/sh
# assay check --twin on two devices that differ in one instruction: that one is named.  The other
# device is tests/gpu/fake_cuda.c, the emulator with a changed text.
. "$(dirname "$0")/lib.sh"
export ASSAY_LIBCUDA= ASSAY_FAKE_CUDA=
folder=$(dirname "$assay")/kernels

# located KERNEL OLD NEW LAUNCH PATTERN: an instruction OLD that is NEW elsewhere is found.
located() {
    ASSAY_FAKE_CUDA="swap:$2>$3"
    run 1 check "$1" --twin --fill normal --shape 3x1025 --seed 1
    has out "^first differing launch: $4, entry"
    has out "^first differing instruction: $5"
    line=$(sed -n 's/^first differing instruction: [^:]*:\([0-9]*\) .*/\1/p' out)
    image=$(sed -n 's/^first differing instruction: \([^:]*\):.*/\1/p' out)
    sed -n "${line:-1}p" "$folder"/*/"$image" | grep -qF "$2" || fail "$1: $image:$line is no $2"
}

run 0 check sum_sequential_f32 --twin --fill normal --shape 3x1025 --seed 1
grep -q 'first differing' out && fail "equal devices, and a difference"

located sum_sequential_f32 add.rn.f32 add.rz.f32 '1 of 2' 'sequential\.ptx:[0-9]+ \(op\.cuh:[0-9]+\) `add\.rn\.f32 [^`]*;` block 0,0,0 thread [0-9]+,0,0, after [0-9]+ results: cpu=0x[0-9a-f]{8} cuda:0=0x[0-9a-f]{8}$'
located softmax_three_kernels_f32 div.rn.f32 div.rz.f32 '3 of 3' 'three_kernels\.ptx:[0-9]+ \(three_kernels\.cu:[0-9]+\) `div\.rn\.f32 '
# Other threads get wrong values from the thread that errs; it is the one to name.
located sum_warp_shuffle_f32 add.rn.f32 add.rz.f32 '1 of 1' 'warp_shuffle\.ptx:[0-9]+ .*`add\.rn\.f32 '
located softmax_online_f32 ex2.approx.ftz.f32 rcp.approx.ftz.f32 '1 of 1' 'online\.ptx:[0-9]+ .*`ex2\.approx\.ftz\.f32 '

# The difference comes after more results than one run notes down, under a guard, in a predicate.
cat >late.ptx <<'END'
.version 8.0
.target sm_80
.address_size 64
.visible .entry late(.param .u64 x, .param .u64 y, .param .u32 cols)
{
    .reg .pred %p<4>;
    .reg .b32 %r<6>;
    .reg .f32 %f<4>;
    .reg .b64 %d<4>;
    ld.param.u64 %d0, [x];
    ld.param.u64 %d1, [y];
    ld.param.u32 %r0, [cols];
    mov.u32 %r1, 0;
    mov.f32 %f2, 0f00000000;
AGAIN:
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p0, %r1, 30000;
    @%p0 bra AGAIN;
    mov.u32 %r1, 0;
    mov.f32 %f0, 0f80000000;
SUM:
    ld.global.f32 %f1, [%d0];
    setp.gt.f32 %p1, %f1, 0f00000000;
    @%p1 add.rn.f32 %f0, %f0, %f1;
    @!%p1 add.rm.f32 %f0, %f0, %f1;
    add.s64 %d0, %d0, 4;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p0, %r1, %r0;
    @%p0 bra SUM;
    st.global.f32 [%d1], %f0;
    ret;
}
END
cat >late.yaml <<'END'
kernels:
  - name: late
    op: sum
    image: late.ptx
    types: {x: f32, y: f32}
    accepts: {rows: "1"}
    launches:
      - {entry: late, grid: [1], block: [1], args: [x, y, cols]}
    numerics: {sum_height: cols}
    deterministic: true
END
late() {
    ASSAY_FAKE_CUDA="swap:$1>$2"
    run 1 check late --manifest late.yaml --twin --fill normal --shape 1x100 --seed 1
    has out "^first differing instruction: late\.ptx:$3 \`$4"
}
late add.rn.f32 add.rp.f32 24 '@%p1 add\.rn\.f32 %f0, %f0, %f1;` block 0,0,0 thread 0,0,0, after 6[0-9]{4} results: cpu=0x'
late add.rm.f32 add.rp.f32 25 '@!%p1 add\.rm\.f32 '
late setp.gt.f32 setp.ltu.f32 23 'setp\.gt\.f32 .* results: cpu=0x[01] cuda:0=0x[01]$'
finish
