/*
 * fuzz_npy.c - any bytes as a .npy file: a matrix that lies inside the bytes, or one clear message.
 */
#include "base/size.h"
#include "fuzz/target.h"
#include "gate/npy.h"

FUZZ_FAIL(silent_refusal) /* an error without a message */
FUZZ_FAIL(data_outside)   /* a matrix that is not inside the file */
FUZZ_FAIL(other_dtype)    /* a format that is none of the table's */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct npy npy;
    if (npy_parse(&npy, "fuzz.npy", data, size) != OK) {
        if (status_message()[0] == '\0')
            fuzz_fail_silent_refusal();
        return 0;
    }
    if (npy.dtype < dtypes || npy.dtype >= dtypes + DT_COUNT || !npy_descr(npy.dtype))
        fuzz_fail_other_dtype();
    const uint8_t *begin = npy.data;
    size_t count, bytes;
    if (!size_mul(&count, npy.rows, npy.cols) || !size_mul(&bytes, count, dtype_size(npy.dtype)) ||
        begin < data || begin > data + size || bytes > (size_t)(data + size - begin))
        fuzz_fail_data_outside();
    uint32_t all = 0; /* the sanitizer sees each read */
    for (size_t i = 0; i < count; i++)
        all |= dtype_load(npy.dtype, npy.data, i);
    *(volatile uint32_t *)&all = all;
    npy_clear(&npy);
    return 0;
}
