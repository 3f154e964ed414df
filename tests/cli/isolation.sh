#!/bin/sh
# assay gate -d cuda:0 with a driver that hangs, crashes and faults in one case each: that case fails
# with the kernel's name, all others have their results.  The driver is tests/gpu/fake_cuda.c.
. "$(dirname "$0")/lib.sh"
rm -rf out1 out2
export ASSAY_LIBCUDA= ASSAY_LAUNCH_SECONDS=1


ASSAY_FAKE_CUDA=
export ASSAY_FAKE_CUDA
run 0 gate -k sum_sequential_f32 -k max_sequential_f32 -d cuda:0 -j 2 -o out1
has out '^PASS +sum_sequential_f32 +[0-9]+ cases'
has out '^2 kernels on fake GPU \(sm_90, '
cases=$(sed -n 's/^PASS *sum_sequential_f32 *\([0-9]*\) cases.*/\1/p' out)

# A block per row: a grid of 67 means the cases of 67 rows.
for plant in 'hang:not done after 1 s' 'crash:died of signal 11' 'sticky:CUDA_ERROR_ILLEGAL_ADDRESS'; do
    rm -rf out2
    ASSAY_FAKE_CUDA=${plant%%:*}:sum_sequential_f32:67
    run 1 gate -k sum_sequential_f32 -k max_sequential_f32 -d cuda:0 -o out2
    has out "^FAIL +sum_sequential_f32 +$cases cases"
    has out "sum_sequential_f32: .*${plant#*:}"
    has out 'assay check sum_sequential_f32 .*--shape 67x33 .*-d cuda:0'
    has out '^PASS +max_sequential_f32 '
done
finish
