/*
 * tests/oracle/gpu_exp.h - exponentials with the bits of the GPU, to test budgets against.
 *
 * The tests' own model (device/ptx has another, by another author): it shows how far real kernels
 * go from the truth, which a host expf (0.502 ulp) would hide.
 */
#ifndef TESTS_ORACLE_GPU_EXP_H
#define TESTS_ORACLE_GPU_EXP_H

float gpu_ex2_approx_ftz(float x); /* ex2.approx.ftz.f32 */
float gpu_expf(float x);           /* nvcc 13's expf without --use_fast_math */
float gpu_expf_fast(float x);      /* __expf with .ftz */

#endif
