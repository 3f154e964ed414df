/* tests/gate/test_fill.c - the fills keep what docs/cases.md promises, in every format. */
#include "tests/check.h"

#include <math.h>

#include "base/rng.h"
#include "gate/case.h"
#include "oracle/ulp.h"

static const size_t lengths[] = {1, 2, 3, 4, 5, 31, 32, 33, 127, 255, 256, 257, 1000, 1025, 4099};
#define LENGTHS (sizeof lengths / sizeof lengths[0])
#define MAX_COLS 4099
#define ROWS 12 /* all variants of all fills are among them */

static uint32_t row_bits[MAX_COLS];
static double row_values[MAX_COLS];

static const double *make_row(const struct fill *f, const struct dtype *dt, size_t row, size_t cols,
                              uint64_t seed) {
    f->row(row_bits, dt, row, (struct case_dims){ROWS, cols}, seed);
    for (size_t j = 0; j < cols; j++)
        row_values[j] = dtype_to_double(dt, row_bits[j]);
    return row_values;
}

static const struct fill *named(const char *name) {
    const struct fill *f = fill_find(name);
    CHECK(f, "there is no fill %s", name);
    return f;
}

/* All rows of a fill: every format, length and variant.  x holds the row after each next_row. */
struct rows {
    const struct fill *fill;
    size_t number; /* rows made so far */
    const struct dtype *dt;
    size_t cols;
    const double *x;
};

static struct rows rows_of(const char *name) {
    return (struct rows){.fill = named(name)};
}

static bool next_row(struct rows *r) {
    if (r->number == DT_COUNT * LENGTHS * ROWS)
        return false;
    r->dt = &dtypes[r->number / ROWS / LENGTHS];
    r->cols = lengths[r->number / ROWS % LENGTHS];
    r->x = make_row(r->fill, r->dt, r->number % ROWS, r->cols, 1);
    r->number++;
    return true;
}

static void table(void **state) {
    (void)state;
    static const char *const wanted[] = {
        "normal",  "huge",      "all_ninf",  "one_finite",    "alpha_underflow", "mixed_signs",
        "cancel",  "ties",      "subnormal", "near_overflow", "plus_inf",        "one_nan",
        "ramp_up", "ramp_down", "exact_int", "tail_lengths",
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        const struct fill *f = named(wanted[i]);
        assert_true(strlen(f->purpose) > 20 && strlen(f->values) > 10);
        assert_int_equal(f->exact, strcmp(wanted[i], "exact_int") == 0);
    }
    assert_null(fill_find("norma"));
    assert_null(fill_find(""));
}

static const char *doc_path; /* docs/cases.md */

/* The page lists every fill, and nothing that is not one. */
static void documented(void **state) {
    (void)state;
    char line[1024], wanted[64];
    FILE *doc = fopen(doc_path, "r");
    CHECK(doc, "cannot open %s", doc_path);
    const struct fill *f = fills;
    while (f->name && fgets(line, sizeof line, doc)) {
        snprintf(wanted, sizeof wanted, "| `%s` | ", f->name);
        if (strncmp(line, wanted, strlen(wanted)) == 0)
            f++;
        else
            CHECK(f == fills, "docs/cases.md: expected the row of %s, found: %s", f->name, line);
    }
    CHECK(f->name == NULL, "docs/cases.md does not list %s", f->name);
    assert_true(fgets(line, sizeof line, doc) &&
                line[0] == '\n'); /* the table ends with the fills */
    fclose(doc);
}

/* The same bits for the same name, whatever was made before; other bits for another seed or row. */
static void deterministic(void **state) {
    (void)state;
    static uint32_t again[MAX_COLS];
    for (const struct fill *f = fills; f->name; f++) {
        size_t differ = 0;
        for (int id = 0; id < DT_COUNT; id++) {
            for (size_t row = 0; row < ROWS; row++) {
                make_row(f, &dtypes[id], row, 257, 7);
                f->row(again, &dtypes[id], row, (struct case_dims){ROWS, 257}, 7);
                assert_memory_equal(row_bits, again, 257 * sizeof again[0]);
                f->row(again, &dtypes[id], row + 1, (struct case_dims){ROWS, 257}, 7);
                differ += memcmp(row_bits, again, 257 * sizeof again[0]) != 0;
                f->row(again, &dtypes[id], row, (struct case_dims){ROWS, 257}, 8);
                differ += memcmp(row_bits, again, 257 * sizeof again[0]) != 0;
            }
        }
        CHECK(differ > ROWS, "%s hardly depends on row and seed", f->name);
    }
}

/* A case line means these bits for ever: FNV-1a over every fill's rows, recorded once. */
static void golden(void **state) {
    (void)state;
    static const uint64_t wanted[DT_COUNT] = {0x4ecb38476285e80e, 0xfde0a98acd889245,
                                              0x99d8e9f772d98a80};
    for (int id = 0; id < DT_COUNT; id++) {
        uint64_t hash = 0xcbf29ce484222325u;
        for (const struct fill *f = fills; f->name; f++)
            for (size_t row = 0; row < ROWS; row++) {
                make_row(f, &dtypes[id], row, 1025, 3);
                for (size_t j = 0; j < 1025; j++)
                    hash = (hash ^ row_bits[j]) * 0x100000001b3u;
            }
        CHECK(hash == wanted[id], "%s: the fills' bits have changed: 0x%016llx", dtypes[id].name,
              (unsigned long long)hash);
    }
}

/* A classes' census of a row. */
struct census {
    size_t nan, pinf, ninf, finite, subnormal;
    double max, min;
};

static struct census count(const struct dtype *dt, const double *x, size_t cols) {
    struct census c = {.max = -INFINITY, .min = INFINITY};
    for (size_t j = 0; j < cols; j++) {
        c.nan += isnan(x[j]);
        c.pinf += x[j] == INFINITY;
        c.ninf += x[j] == -INFINITY;
        if (isfinite(x[j])) {
            c.finite++;
            c.subnormal += x[j] != 0 && fabs(x[j]) < dtype_min_normal(dt);
            c.max = fmax(c.max, x[j]);
            c.min = fmin(c.min, x[j]);
        }
    }
    return c;
}

/* Non-finite data stand only where the fill's name says so. */
static void classes(void **state) {
    (void)state;
    for (const struct fill *f = fills; f->name; f++) {
        bool masks = strcmp(f->name, "all_ninf") == 0 || strcmp(f->name, "one_finite") == 0 ||
                     strcmp(f->name, "huge") == 0 || strcmp(f->name, "plus_inf") == 0 ||
                     strcmp(f->name, "one_nan") == 0;
        bool plus = strcmp(f->name, "plus_inf") == 0, nan = strcmp(f->name, "one_nan") == 0;
        for (struct rows r = rows_of(f->name); next_row(&r);) {
            struct census c = count(r.dt, r.x, r.cols);
            CHECK(nan ? c.nan == 1 : c.nan == 0, "%s %s %zu: NaN", f->name, r.dt->name, r.cols);
            CHECK(plus ? c.pinf >= 1 : c.pinf == 0, "%s %s %zu: +Inf", f->name, r.dt->name, r.cols);
            CHECK(masks || c.ninf == 0, "%s %s %zu: -Inf", f->name, r.dt->name, r.cols);
        }
    }
}

static void one_finite(void **state) {
    (void)state;
    for (struct rows r = rows_of("one_finite"); next_row(&r);) {
        struct census c = count(r.dt, r.x, r.cols);
        assert_int_equal(c.finite, 1);
        assert_int_equal(c.ninf, r.cols - 1);
    }
}

static void all_ninf(void **state) {
    (void)state;
    size_t empty = 0, first_tile = 0, tail_only = 0, sliced = 0;
    for (struct rows r = rows_of("all_ninf"); next_row(&r);) {
        struct census c = count(r.dt, r.x, r.cols);
        empty += c.ninf == r.cols;
        if (r.cols < 257 || c.finite == 0)
            continue;
        size_t first = 0;
        while (r.x[first] == -INFINITY)
            first++;
        tail_only += first == r.cols - 4;
        first_tile += first > 0 && first <= 256 && c.ninf == first;
        sliced += c.finite < r.cols / 4 && first != r.cols - 4;
        assert_true(c.ninf > 0);
    }
    assert_true(empty > 0 && first_tile > 0 && tail_only > 0 && sliced > 0);
}

/* A softmax without max subtraction breaks on every kind of row: exp overflows or all are 0. */
static void huge(void **state) {
    (void)state;
    size_t far = 0, high = 0, low = 0;
    for (struct rows r = rows_of("huge"); next_row(&r);) {
        struct census c = count(r.dt, r.x, r.cols);
        if (c.finite == 0)
            continue; /* one column, masked */
        assert_true(c.max > 9e3 || c.max < -9e3);
        high += c.max > 9e3;
        low += c.max < -9e3;
        far += c.max - c.min > 1.9e4;
    }
    assert_true(far > 0 && high > 0 && low > 0);
}

/* Some rows make the running maximum jump by more than each of the two thresholds of exp. */
static void alpha_underflow(void **state) {
    (void)state;
    size_t over_normal = 0, over_zero = 0, lazy = 0;
    for (struct rows r = rows_of("alpha_underflow"); next_row(&r);) {
        double max = r.x[0];
        for (size_t j = 1; j < r.cols; j++) {
            if (r.x[j] > max) {
                over_normal += r.x[j] - max > 87.34;
                over_zero += r.x[j] - max > 103.98;
                lazy += r.x[j] - max > 4.5 && r.x[j] - max < 7;
                max = r.x[j];
            }
        }
    }
    assert_true(over_normal > 20 && over_zero > 20 && lazy > 20);
}

static void mixed_signs(void **state) {
    (void)state;
    size_t all_negative = 0, zeros = 0, mixed = 0, minus_zero = 0;
    for (struct rows r = rows_of("mixed_signs"); next_row(&r);) {
        struct census c = count(r.dt, r.x, r.cols);
        all_negative += c.max < 0;
        zeros += c.max == 0 && c.min == 0;
        mixed += c.min < 0 && c.max > 0;
        for (size_t j = 0; j < r.cols; j++)
            minus_zero += r.x[j] == 0 && signbit(r.x[j]);
    }
    assert_true(all_negative > 0 && zeros > 0 && mixed > 0 && minus_zero > 0);
}

/* The sum, exact in double for these, is far below the sum of magnitudes; some are exactly 0. */
static void cancel(void **state) {
    (void)state;
    size_t zero = 0, rest = 0, absorbing = 0;
    for (struct rows r = rows_of("cancel"); next_row(&r);) {
        double sum = 0, magnitude = 0;
        for (size_t j = 0; j < r.cols; j++) {
            sum += r.x[j];
            magnitude += fabs(r.x[j]);
        }
        if (r.cols < 31)
            continue;
        if (r.x[1] == 1 && r.x[3] == 1) {
            absorbing++;
            continue;
        }
        /* each pair leaves at most one ulp of its larger member, the odd one 2^-14 */
        assert_true(fabs(sum) <= ldexp(magnitude, -(int)r.dt->prec) + 0x1p-14);
        zero += sum == 0;
        rest += sum != 0 && sum != 0x1p-14;
    }
    assert_true(zero > 0 && rest > 0 && absorbing > 0);
}

static void ties(void **state) {
    (void)state;
    for (struct rows r = rows_of("ties"); next_row(&r);) {
        struct census c = count(r.dt, r.x, r.cols);
        size_t tied = 0;
        for (size_t j = 0; j < r.cols; j++)
            tied += r.x[j] == c.max;
        assert_true(r.cols < 9 || tied >= 2);
    }
}

static void subnormal(void **state) {
    (void)state;
    size_t all = 0, border = 0, logits = 0;
    for (struct rows r = rows_of("subnormal"); next_row(&r);) {
        struct census c = count(r.dt, r.x, r.cols);
        if (r.cols < 31)
            continue;
        bool small = fmax(c.max, -c.min) <= 2 * dtype_min_normal(r.dt);
        all += small && c.subnormal > 0 && fmax(c.max, -c.min) <= dtype_min_normal(r.dt);
        border += small && c.subnormal > 0 && fmax(c.max, -c.min) > dtype_min_normal(r.dt);
        if (!small) { /* exp of all but the maximum is subnormal, up to the rounding of x */
            logits++;
            for (size_t j = 0; j < r.cols; j++)
                assert_true(r.x[j] == 0 ||
                            (exp(r.x[j]) < 1.3 * dtype_min_normal(r.dt) && exp(r.x[j]) > 0));
        }
    }
    assert_true(all > 0 && border > 0 && logits > 0);
}

/* Add up in the format itself: forwards, backwards, in a tree, in strides, and shuffled. */
static double add(const struct dtype *dt, double a, double b) {
    return dtype_to_double(dt, dtype_from_double(dt, a + b, ROUND_NEAREST));
}

static double add_tree(const struct dtype *dt, const double *x, size_t n) {
    return n == 1 ? x[0] : add(dt, add_tree(dt, x, n / 2), add_tree(dt, x + n / 2, n - n / 2));
}

static double add_strided(const struct dtype *dt, const double *x, size_t n, size_t lanes) {
    double lane[256], sum = 0;
    for (size_t k = 0; k < lanes; k++) {
        lane[k] = 0;
        for (size_t j = k; j < n; j += lanes)
            lane[k] = add(dt, lane[k], x[j]);
        sum = add(dt, sum, lane[k]);
    }
    return sum;
}

static double add_serial(const struct dtype *dt, const double *x, size_t n, bool backwards) {
    double sum = 0;
    for (size_t j = 0; j < n; j++)
        sum = add(dt, sum, x[backwards ? n - 1 - j : j]);
    return sum;
}

static void shuffle(double *x, size_t n, struct rng *rng) {
    for (size_t i = n; i > 1; i--) {
        size_t k = (size_t)rng_below(rng, i);
        double t = x[i - 1];
        x[i - 1] = x[k];
        x[k] = t;
    }
}

static void near_overflow(void **state) {
    (void)state;
    struct rng rng = rng_from_seed(5);
    for (struct rows r = rows_of("near_overflow"); next_row(&r);) {
        double exact = 0;
        for (size_t j = 0; j < r.cols; j++)
            exact += r.x[j] / dtype_max(r.dt);
        assert_true(fabs(exact) > 0.4 && fabs(exact) < 1);
        assert_true(isfinite(add_serial(r.dt, r.x, r.cols, false)));
        assert_true(isfinite(add_serial(r.dt, r.x, r.cols, true)));
        assert_true(isfinite(add_tree(r.dt, r.x, r.cols)));
        assert_true(isfinite(add_strided(r.dt, r.x, r.cols, 32)));
        assert_true(isfinite(add_strided(r.dt, r.x, r.cols, 256)));
        shuffle(row_values, r.cols, &rng);
        assert_true(isfinite(add_serial(r.dt, r.x, r.cols, false)));
        assert_true(isfinite(add_tree(r.dt, r.x, r.cols)));
    }
}

static void exact_int(void **state) {
    (void)state;
    struct rng rng = rng_from_seed(6);
    size_t non_zero = 0;
    for (struct rows r = rows_of("exact_int"); next_row(&r);) {
        double sum = 0, magnitude = 0;
        for (size_t j = 0; j < r.cols; j++) {
            assert_true(r.x[j] == floor(r.x[j]));
            sum += r.x[j];
            magnitude += fabs(r.x[j]);
        }
        assert_true(magnitude < ldexp(1, (int)r.dt->prec));
        non_zero += magnitude > 0;
        assert_true(add_serial(r.dt, r.x, r.cols, false) == sum);
        assert_true(add_tree(r.dt, r.x, r.cols) == sum);
        shuffle(row_values, r.cols, &rng);
        assert_true(add_serial(r.dt, r.x, r.cols, true) == sum);
        assert_true(add_strided(r.dt, r.x, r.cols, 32) == sum);
    }
    assert_true(non_zero > DT_COUNT * LENGTHS * ROWS / 2);
}

static void ramps(void **state) {
    (void)state;
    for (struct rows r = rows_of("ramp_up"); next_row(&r);) {
        for (size_t j = 1; j < r.cols; j++)
            assert_true(r.x[j] >= r.x[j - 1]);
        if (r.dt->id == DT_F32)
            for (size_t j = 1; j < r.cols; j++)
                assert_true(r.x[j] > r.x[j - 1]);
    }
    for (struct rows r = rows_of("ramp_down"); next_row(&r);) {
        for (size_t j = 1; j < r.cols; j++)
            assert_true(r.x[j] <= r.x[j - 1]);
    }
}

/* Without the elements behind the last multiple of a tile, the maximum is another one. */
static void tail_lengths(void **state) {
    (void)state;
    static const size_t tiles[] = {4, 32, 128, 256};
    for (size_t t = 0; t < 4; t++) {
        size_t shown = 0, negative = 0;
        for (struct rows r = rows_of("tail_lengths"); next_row(&r);) {
            size_t cut = r.cols - r.cols % tiles[t];
            if (cut == 0 || cut == r.cols)
                continue;
            struct census all = count(r.dt, r.x, r.cols);
            struct census head = count(r.dt, r.x, cut);
            shown += all.max > head.max + 20;
            negative += all.max < 0;
        }
        CHECK(shown > 0 && negative > 0, "no row's tail behind a multiple of %zu dominates",
              tiles[t]);
    }
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: %s docs/cases.md\n", argv[0]);
        return 2;
    }
    doc_path = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table),           cmocka_unit_test(documented),
        cmocka_unit_test(deterministic),   cmocka_unit_test(golden),
        cmocka_unit_test(classes),         cmocka_unit_test(one_finite),
        cmocka_unit_test(all_ninf),        cmocka_unit_test(huge),
        cmocka_unit_test(alpha_underflow), cmocka_unit_test(mixed_signs),
        cmocka_unit_test(cancel),          cmocka_unit_test(ties),
        cmocka_unit_test(subnormal),       cmocka_unit_test(near_overflow),
        cmocka_unit_test(exact_int),       cmocka_unit_test(ramps),
        cmocka_unit_test(tail_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
