/*
 * test_online_device.c - the device code of online_join and online_push computes what online.c
 * says, bit for bit, on the emulator; and the device's own results commute and keep the identity.
 *
 * The mirror gets the device's expf: it runs once to note the arguments of exp, the device computes
 * expf of them, and the mirror runs again with those values.
 */
#include "tests/check.h"

#include <math.h>
#include <stdbool.h>

#include "device/device.h"
#include "tests/order/online.h"

enum { N = 8192, THREADS = 128, MAX_EXPS = 2 };

static struct device *dev;
static struct dev_image *image;

/* ---- the device ------------------------------------------------------------------------------ */

static struct dev_buf *upload(const void *data, size_t size) {
    struct dev_buf *buf;
    CHECK_OK(device_alloc(&buf, dev, size));
    CHECK_OK(buffer_write(buf, data, size));
    return buf;
}

/* out[i] = entry(a[i], b[i]), i < n; b may be NULL: entry(a[i]). */
static void each(const char *entry, void *out, size_t out_size, const void *a, size_t a_size,
                 const void *b, size_t b_size, unsigned n) {
    struct dev_buf *a_buf = upload(a, n * a_size), *b_buf = b ? upload(b, n * b_size) : NULL, *to;
    CHECK_OK(device_alloc(&to, dev, n * out_size));
    uint64_t a_at = buffer_address(a_buf), b_at = b ? buffer_address(b_buf) : 0,
             to_at = buffer_address(to);
    const void *two[] = {&a_at, &b_at, &to_at, &n}, *one[] = {&a_at, &to_at, &n};
    struct dev_launch launch = {.image = image,
                                .entry = entry,
                                .grid = {(n + THREADS - 1) / THREADS, 1, 1},
                                .block = {THREADS, 1, 1},
                                .args = b ? two : one,
                                .arg_count = b ? 4 : 3};
    struct dev_run run;
    CHECK_OK(device_launch(&run, dev, &launch));
    CHECK(run.completed && run.fault_total == 0, "%s: %s", entry, run.faults[0].text);
    CHECK_OK(buffer_read(out, to, n * out_size));
    buffer_free(a_buf);
    buffer_free(b_buf);
    buffer_free(to);
}

static void device_join(struct online *out, const struct online *a, const struct online *b) {
    each("join_each", out, sizeof *out, a, sizeof *a, b, sizeof *b, N);
}

/* ---- the mirror with the device's expf ------------------------------------------------------- */

/* The arguments of exp for one element, and expf of them. */
static struct exps {
    unsigned count;
    float argument[MAX_EXPS], value[MAX_EXPS];
} exps[N];
static struct exps *current;

static float note(float x) {
    assert_true(current->count < MAX_EXPS);
    current->argument[current->count++] = x;
    return 1;
}

/* By argument: C does not say in which order the two exp of a push are computed. */
static float recall(float x) {
    for (unsigned i = 0; i < current->count; i++)
        if (online_same((struct online){x, 0}, (struct online){current->argument[i], 0}))
            return current->value[i];
    fail_msg("exp(%a) was not asked for before", (double)x);
    return NAN;
}

/* Element i of what is mirrored. */
typedef struct online mirror_fn(size_t i, exp_fn *exp);

static void mirror(struct online *out, mirror_fn *element) {
    static float argument[MAX_EXPS * N], value[MAX_EXPS * N];
    unsigned count = 0;
    for (size_t i = 0; i < N; i++) {
        current = &exps[i];
        current->count = 0;
        element(i, note);
        memcpy(argument + count, current->argument, current->count * sizeof *argument);
        count += current->count;
    }
    each("expf_each", value, sizeof *value, argument, sizeof *argument, NULL, 0, count);
    count = 0;
    for (size_t i = 0; i < N; i++) {
        current = &exps[i];
        memcpy(current->value, value + count, current->count * sizeof *value);
        count += current->count;
        out[i] = element(i, recall);
    }
}

/* ---- inputs ---------------------------------------------------------------------------------- */

static struct online a[N], b[N], got[N], want[N];
static float x[N];

static struct online join_element(size_t i, exp_fn *exp) {
    return online_join(a[i], b[i], exp);
}

static struct online push_element(size_t i, exp_fn *exp) {
    return online_push(a[i], x[i], exp);
}

/* All pairs of special states, a quarter with one special state, and pairs of random ones. */
static void make_inputs(void) {
    static const float entry[] = {-INFINITY, INFINITY, NAN, 0, -0.0f, 3e38f, -3e38f, 0x1p-149f};
    struct rng r = rng_from_seed(6);
    for (size_t i = 0; i < N; i++) {
        a[i] = online_random(&r, 0);
        b[i] = online_random(&r, a[i].m == -INFINITY ? 0 : a[i].m);
        x[i] = b[i].m;
        if (i < ONLINE_SPECIALS * ONLINE_SPECIALS) {
            a[i] = online_special[i / ONLINE_SPECIALS];
            b[i] = online_special[i % ONLINE_SPECIALS];
        } else if (i < N / 8) {
            a[i] = online_special[i % ONLINE_SPECIALS];
        } else if (i < N / 4) {
            b[i] = online_special[i % ONLINE_SPECIALS];
        }
        if (i % 4 == 0 || i < ONLINE_SPECIALS * ONLINE_SPECIALS)
            x[i] = entry[rng_below(&r, sizeof entry / sizeof *entry)];
    }
}

/* ---- the tests ------------------------------------------------------------------------------- */

static void check_same(const char *what, const struct online *left, const struct online *right) {
    for (size_t i = 0; i < N; i++)
        CHECK(online_same(left[i], right[i]),
              "%s, element %zu, a (%a, %a), b (%a, %a), x %a: (%a, %a) and (%a, %a)", what, i,
              (double)a[i].m, (double)a[i].l, (double)b[i].m, (double)b[i].l, (double)x[i],
              (double)left[i].m, (double)left[i].l, (double)right[i].m, (double)right[i].l);
}

static void join_is_the_mirrors(void **state) {
    (void)state;
    device_join(got, a, b);
    mirror(want, join_element);
    check_same("device and mirror", got, want);
}

static void push_is_the_mirrors(void **state) {
    (void)state;
    each("push_each", got, sizeof *got, a, sizeof *a, x, sizeof *x, N);
    mirror(want, push_element);
    check_same("device and mirror", got, want);
}

static void device_join_commutes(void **state) {
    (void)state;
    device_join(got, a, b);
    device_join(want, b, a);
    check_same("a with b and b with a", got, want);
}

static void empty_state_is_the_devices_identity(void **state) {
    (void)state;
    static struct online empty[N];
    for (size_t i = 0; i < N; i++)
        empty[i] = online_empty();
    device_join(got, a, empty);
    check_same("a with empty and a", got, a);
    device_join(got, empty, b);
    check_same("empty with b and b", got, b);
}

/* ---- set up ---------------------------------------------------------------------------------- */

static int set_up(void **state) {
    (void)state;
    static char text[1 << 20];
    FILE *file = fopen(ONLINE_IMAGE, "rb");
    CHECK(file, "no image at %s", ONLINE_IMAGE);
    size_t size = fread(text, 1, sizeof text, file);
    fclose(file);
    assert_true(size < sizeof text);
    CHECK_OK(device_open(&dev, "cpu", NULL));
    CHECK_OK(device_load(&image, dev, "online_device.ptx", text, size));
    make_inputs();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    image_unload(image);
    device_close(dev);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(join_is_the_mirrors),
        cmocka_unit_test(push_is_the_mirrors),
        cmocka_unit_test(device_join_commutes),
        cmocka_unit_test(empty_state_is_the_devices_identity),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
