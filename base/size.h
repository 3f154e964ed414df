/* base/size.h - sizes multiplied and rounded without silent overflow. */
#ifndef BASE_SIZE_H
#define BASE_SIZE_H

#include <stdbool.h>
#include <stddef.h>

/* *out = a * b; false and *out = 0 if that does not fit a size_t. */
static inline bool size_mul(size_t *out, size_t a, size_t b) {
    if (!__builtin_mul_overflow(a, b, out))
        return true;
    *out = 0;
    return false;
}

/* x rounded up to a multiple of `align` (a power of two); the caller knows that it fits. */
static inline size_t size_align(size_t x, size_t align) {
    return (x + align - 1) & ~(align - 1);
}

#endif
