/* tests/gate/test_npy.c - npy files: a table of broken ones, every truncation, and round trips. */
#include "tests/check.h"

#include <unistd.h>

#include "base/rng.h"
#include "gate/case.h"
#include "gate/npy.h"

#define GOOD_DICT "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"
#define MAX_FILE 1024

struct file {
    size_t size;
    unsigned char bytes[MAX_FILE];
};

/* A file of this version and dict with `data` bytes behind it; the header as long as the dict. */
static struct file make(unsigned version, const char *dict, size_t data) {
    struct file f = {0};
    size_t length = strlen(dict), n = 0;
    memcpy(f.bytes, "\x93NUMPY", 6);
    n = 6;
    f.bytes[n++] = (unsigned char)version;
    f.bytes[n++] = 0;
    for (size_t i = 0; i < (version == 1 ? 2 : 4); i++)
        f.bytes[n++] = (unsigned char)(length >> (8 * i));
    memcpy(f.bytes + n, dict, length);
    f.size = n + length + data;
    return f;
}

/* Parse a copy of exactly that size, so that the sanitizer sees a read past the end. */
static status_t parse(struct npy *out, const struct file *f) {
    unsigned char *copy = malloc(f->size ? f->size : 1);
    memcpy(copy, f->bytes, f->size);
    status_t st = npy_parse(out, "t.npy", copy, f->size);
    out->data = NULL;
    free(copy);
    return st;
}

static void good_files(void **state) {
    (void)state;
    static const struct {
        unsigned version;
        const char *dict;
        size_t data, rows, cols;
        enum dtype_id dtype;
    } table[] = {
        {1, GOOD_DICT, 24, 2, 3, DT_F32},
        {2, GOOD_DICT "   \n", 24, 2, 3, DT_F32},
        {3, GOOD_DICT "\n", 24, 2, 3, DT_F32},
        {1, "{\"shape\": (2, 3), \"descr\": \"<f2\", \"fortran_order\": False}", 12, 2, 3, DT_F16},
        {1, "{'descr':'<u2','fortran_order':False,'shape':(2,3)}", 12, 2, 3, DT_BF16},
        {1, "{'descr': '|V2', 'fortran_order': False, 'shape': (2, 3,), }", 12, 2, 3, DT_BF16},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 3), }", 0, 0, 3, DT_F32},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (7, 0), }", 0, 7, 0, DT_F32},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct file f = make(table[i].version, table[i].dict, table[i].data);
        struct npy npy;
        CHECK_OK(parse(&npy, &f));
        assert_int_equal(npy.rows, table[i].rows);
        assert_int_equal(npy.cols, table[i].cols);
        assert_int_equal(npy.dtype->id, table[i].dtype);
    }
}

static void broken_files(void **state) {
    (void)state;
    static const struct {
        unsigned version;
        const char *dict;
        size_t data;
        const char *message; /* part of it */
    } table[] = {
        {4, GOOD_DICT, 24, "npy version 4.0; versions 1 to 3"},
        {0, GOOD_DICT, 24, "npy version 0.0"},
        {1, GOOD_DICT, 23, "cut short: shape 2x3 of f32 takes 24 bytes of data, 23 are there"},
        {1, GOOD_DICT, 0, "cut short"},
        {1, GOOD_DICT, 25, "bytes after the data"},
        {1, "{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }", 24,
         "dtype '>f4' is big-endian; save it as '<f4'"},
        {1, "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }", 48,
         "dtype '<f8' where '<f4' (f32)"},
        {1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 3), }", 24,
         "structured types are not read"},
        {1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", 24, "Fortran order"},
        {1, "{'descr': '<f4', 'fortran_order': 1, 'shape': (2, 3), }", 24,
         "neither True nor False"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }", 24,
         "1-d, shape 6, where 2-d (rows x cols) is wanted"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (), }", 4, "0-d, shape ()"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3), }", 24,
         "3-d, shape 1x2x3, where 2-d"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", 4,
         "more than 8 dimensions"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", 24,
         "larger than any memory"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 1), }", 24,
         "larger than any memory"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 3), }", 24,
         "does not fit 64 bits"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000, 1000000000), }", 24,
         "cut short"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (-2, 3), }", 24,
         "expected a number"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2 3), }", 24, "expected ')'"},
        {1, "{'descr': '<f4', 'fortran_order': False, }", 24, "no 'shape'"},
        {1, "{'descr': '<f4', 'shape': (2, 3)}", 24, "no 'fortran_order'"},
        {1, "{'shape': (2, 3), 'fortran_order': False}", 24, "no 'descr'"},
        {1, "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}", 24,
         "'descr' twice"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'x': 1}", 24,
         "unknown key 'x'"},
        {1, GOOD_DICT "x", 24, "follows its closing brace"},
        {1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)", 24, "ends where '}'"},
        {1, "{'descr", 24, "ends where '''"},
        {1, "{'descr': '<f4\n", 24, "not plain text"},
        {1, "", 24, "ends where '{'"},
        {1, "[1, 2]", 24, "expected '{', found byte 0x5b"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct file f = make(table[i].version, table[i].dict, table[i].data);
        struct npy npy;
        status_t st = parse(&npy, &f);
        CHECK(st == ERR_SYNTAX || st == ERR_UNSUPPORTED, "row %zu is accepted: %s", i,
              table[i].dict);
        CHECK_CONTAINS(status_message(), table[i].message);
        CHECK_CONTAINS(status_message(), "t.npy: ");
        assert_null(strchr(status_message(), '\n'));
    }
}

static void no_magic(void **state) {
    (void)state;
    struct file f = {.size = 5, .bytes = "hello"};
    struct npy npy;
    assert_int_equal(parse(&npy, &f), ERR_SYNTAX);
    CHECK_CONTAINS(status_message(), "not an npy file");
    f.size = 0;
    assert_int_equal(parse(&npy, &f), ERR_SYNTAX);
}

/* Every prefix of a good file is refused, and so is a header length that points behind the end. */
static void every_truncation(void **state) {
    (void)state;
    for (unsigned version = 1; version <= 3; version++) {
        struct file f = make(version, GOOD_DICT, 24);
        struct npy npy;
        CHECK_OK(parse(&npy, &f));
        for (size_t whole = f.size; f.size-- > 0;)
            CHECK(parse(&npy, &f) != OK, "version %u: %zu of %zu bytes are accepted", version,
                  f.size, whole);
    }
    struct file f = make(2, GOOD_DICT, 24);
    f.bytes[11] = 0xff; /* about 4 GB of header */
    struct npy npy;
    assert_int_equal(parse(&npy, &f), ERR_SYNTAX);
    CHECK_CONTAINS(status_message(), "the header is said to take");
}

/* A kernel as far as a case needs one. */
static const struct kernel *kernel_of(const struct dtype *dt) {
    static struct kernel kernel;
    kernel = (struct kernel){.op = &ops[0], .in = dt, .out = dt, .acc = dt};
    return &kernel;
}

/* Damaged bytes never crash; what is accepted is consistent with the file's size. */
static void random_damage(void **state) {
    (void)state;
    struct rng rng = rng_from_seed(1);
    const struct file good = make(1, GOOD_DICT, 24);
    size_t accepted = 0;
    for (int i = 0; i < 20000; i++) {
        struct file f = good;
        for (uint64_t k = 1 + rng_below(&rng, 3); k > 0; k--)
            f.bytes[rng_below(&rng, f.size)] = (unsigned char)rng_u64(&rng);
        struct npy npy;
        if (parse(&npy, &f) != OK)
            continue;
        accepted++;
        assert_int_equal(npy.rows * npy.cols * dtype_size(npy.dtype), 24);
    }
    assert_true(accepted > 0); /* damage of the data alone */
}

static void round_trip(void **state) {
    (void)state;
    char path[] = "/tmp/assay-npy-XXXXXX";
    close(mkstemp(path));
    for (int id = 0; id < DT_COUNT; id++) {
        const struct dtype *dt = &dtypes[id];
        uint32_t data[6] = {0};
        for (size_t i = 0; i < 6; i++)
            dtype_store(dt, data, i, dtype_from_double(dt, (double)i - 2.5, ROUND_NEAREST));
        CHECK_OK(npy_write(path, dt, 2, 3, data));
        struct npy npy;
        CHECK_OK(npy_read(&npy, path));
        assert_int_equal(npy.rows, 2);
        assert_int_equal(npy.cols, 3);
        assert_ptr_equal(npy.dtype, dt);
        assert_memory_equal(npy.data, data, 6 * dtype_size(dt));
        assert_int_equal(((const char *)npy.data - npy.bytes) % 64, 0);
        npy_clear(&npy);
        npy_clear(&npy);

        struct test_case c;
        CHECK_OK(case_from_npy(&c, path, kernel_of(dt), 1, 1));
        assert_int_equal(c.dims.rows, 1);
        assert_memory_equal(c.x, (char *)data + 3 * dtype_size(dt), 3 * dtype_size(dt));
        char line[CASE_LINE_SIZE], wanted[CASE_LINE_SIZE];
        case_line(line, sizeof line, &c);
        snprintf(wanted, sizeof wanted, "-i x=%s --rows 1:1", path);
        assert_string_equal(line, wanted);
        case_clear(&c);
        case_clear(&c);
    }
    struct test_case c;
    assert_int_equal(case_from_npy(&c, path, kernel_of(&dtypes[DT_F32]), 0, 0), ERR_UNSUPPORTED);
    CHECK_CONTAINS(status_message(), "bf16 (<u2) where the kernel takes f32 (<f4)");
    assert_int_equal(case_from_npy(&c, path, kernel_of(&dtypes[DT_BF16]), 2, 0), ERR_USAGE);
    CHECK_CONTAINS(status_message(), "row 2 is wanted, the file has 2");
    assert_int_equal(case_from_npy(&c, path, kernel_of(&dtypes[DT_BF16]), 1, 2), ERR_USAGE);
    CHECK_CONTAINS(status_message(), "rows 1 to 2 are wanted, the file has 2");
    unlink(path);
    assert_int_equal(case_from_npy(&c, path, kernel_of(&dtypes[DT_F32]), 0, 0), ERR_IO);
    CHECK_CONTAINS(status_message(), path);
}

/* NumPy knows no bf16: f32 values are taken for a narrower format if each one is exact in it. */
static void f32_for_narrower(void **state) {
    (void)state;
    char path[] = "/tmp/assay-npy-XXXXXX";
    close(mkstemp(path));
    const float exact[] = {1.5f, -0.0f, 0x1p-100f, 3};
    struct test_case c;
    CHECK_OK(npy_write(path, &dtypes[DT_F32], 2, 2, exact));
    CHECK_OK(case_from_npy(&c, path, kernel_of(&dtypes[DT_BF16]), 1, 1));
    assert_int_equal(c.dims.cols, 2);
    assert_true(dtype_to_double(c.dtype, dtype_load(c.dtype, c.x, 0)) == 0x1p-100);
    assert_true(dtype_to_double(c.dtype, dtype_load(c.dtype, c.x, 1)) == 3);
    case_clear(&c);
    assert_int_equal(case_from_npy(&c, path, kernel_of(&dtypes[DT_F16]), 0, 0), ERR_UNSUPPORTED);
    CHECK_CONTAINS(status_message(), "takes f16 (<f2), and [1][0] is not exact in it");
    unlink(path);
}

static void quoted_paths(void **state) {
    (void)state;
    struct test_case c = {.path = (char *)"a b/it's.npy"};
    char line[CASE_LINE_SIZE];
    case_line(line, sizeof line, &c);
    assert_string_equal(line, "-i x='a b/it'\\''s.npy'");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_files),       cmocka_unit_test(broken_files),
        cmocka_unit_test(no_magic),         cmocka_unit_test(every_truncation),
        cmocka_unit_test(random_damage),    cmocka_unit_test(round_trip),
        cmocka_unit_test(f32_for_narrower), cmocka_unit_test(quoted_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
