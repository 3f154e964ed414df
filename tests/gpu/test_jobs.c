/*
 * test_jobs.c - the harness of tests/ptx on a GPU: a fault is reported as what it is, by the job that
 * has it, and the jobs after it run.  The driver is fake_cuda.c.
 */
#include "tests/check.h"

#include <unistd.h>

#include "tests/ptx/harness.h"

/* Two blocks: the fault that ASSAY_FAKE_CUDA plants. */
static struct job store_of(unsigned blocks) {
    return (struct job){.threads = 4, .blocks = blocks, .body = "st.global.u32 [%d2], %r2;\n"};
}

static void works(unsigned blocks) {
    const struct job j = store_of(blocks);
    unsigned before = failures;
    job_clean("store", &j);
    for (unsigned i = 0; i < 4 * blocks; i++)
        CHECK_EQ(out[i], i, "store");
    assert_int_equal(failures, before);
}

/* What is written to standard output up to the end of this test. */
static FILE *log_of(int *saved) {
    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(stdout);
    *saved = dup(STDOUT_FILENO);
    dup2(fileno(file), STDOUT_FILENO);
    return file;
}

static void one_fault_is_one_job_s(void **state) {
    (void)state;
    int saved;
    char text[1024] = "";
    const struct job j = store_of(2);
    job_device = "cuda:0";
    setenv("ASSAY_FAKE_CUDA", "sticky:k:2", 1);
    works(1);
    FILE *file = log_of(&saved);
    job_clean("two blocks", &j);
    for (unsigned i = 0; i < 8; i++)
        CHECK_EQ(out[i], i, "two blocks");
    unsigned failed = failures;
    works(3); /* on the same device, whose child is another one now */
    int code = report();
    fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    assert_int_equal(failed, 9);
    assert_int_equal(code, 1);
    assert_string_equal(text,
                        "FAIL two blocks: unexpected fault (out of bounds): k: the GPU stopped it: "
                        "CUDA_ERROR_ILLEGAL_ADDRESS (700)\n"
                        "27 checks, 9 failed\n"
                        "8 of them look at what a job that failed should have written\n");
    works(1);
}

int main(void) {
    setenv("ASSAY_LIBCUDA", "", 1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_fault_is_one_job_s)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
