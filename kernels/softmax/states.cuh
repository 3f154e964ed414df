/*
 * Rows cut into chunks, a block each, whose (max, sum) meet in global memory while blocks run.
 *
 * A chunk's state is one 64-bit word, (max, sum), written and read whole, and is its own flag: before
 * the launch softmax_wait_clear sets the words to all ones, which no state is, as a maximum is never
 * NaN.  A row's states are joined in the order of its chunks, whichever comes last: the same bits in
 * every run.
 *
 * Blocks number themselves in the order in which they start, by a ticket.  One that waits only for
 * blocks with smaller tickets waits for what is running or done.
 */
#ifndef KERNELS_SOFTMAX_STATES_CUH
#define KERNELS_SOFTMAX_STATES_CUH

#include "kernels/softmax/online.cuh"

#define EMPTY 0xffffffffffffffffull

/* words[0] hands out tickets from 0; the states follow. */
extern "C" __global__ void softmax_wait_clear(unsigned long long *words, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        words[i] = i == 0 ? 0 : EMPTY;
}

/* This block's; for all its threads. */
static __device__ unsigned take_ticket(unsigned long long *words) {
    __shared__ unsigned ticket;
    if (threadIdx.x == 0)
        ticket = atomicAdd((unsigned *)words, 1);
    __syncthreads();
    return ticket;
}

static __device__ void publish(unsigned long long *to, float m, float l) {
    const unsigned long long state =
        (unsigned long long)__float_as_uint(l) << 32 | __float_as_uint(m);
    asm volatile("st.relaxed.gpu.u64 [%0], %1;" : : "l"(to), "l"(state) : "memory");
}

static __device__ Online await(const unsigned long long *from) {
    unsigned long long state;
    for (;;) {
        asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(state) : "l"(from) : "memory");
        if (state != EMPTY)
            return Online{__uint_as_float((unsigned)state), __uint_as_float(state >> 32)};
        __nanosleep(20);
    }
}

/* All chunks' states joined by one warp. */
static __device__ Online join_chunks(const unsigned long long *states, unsigned chunks,
                                     unsigned lane) {
    Online s = online_empty();
    for (unsigned c = lane; c < chunks; c += WARP)
        s = online_join(s, await(&states[c]));
    return online_warp(s);
}

#endif
