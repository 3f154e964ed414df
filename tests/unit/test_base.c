/* test_base.c - base/: what the exit codes are, that messages survive, that the stream is fixed. */
#include "base/parallel.h"
#include "base/rng.h"
#include "base/size.h"
#include "base/status.h"

#include <pthread.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* These numbers are the command line's contract (./run help, docs): written out, not derived. */
static void exit_codes(void **state) {
    (void)state;
    static const struct {
        status_t status;
        int code;
    } want[] = {
        {OK, 0},         {ERR_USAGE, 2},  {ERR_IO, 2},        {ERR_SYNTAX, 2}, {ERR_UNSUPPORTED, 2},
        {ERR_NOMEM, 3},  {ERR_DEVICE, 3}, {ERR_UNDECIDED, 3}, {ERR_TARGET, 2},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        assert_int_equal(status_exit_code(want[i].status), want[i].code);
    /* A status of no name is never taken for success. */
    assert_int_equal(status_exit_code((status_t)99), 3);
}

static void fail_formats_and_returns_its_code(void **state) {
    (void)state;
    assert_int_equal(FAIL(ERR_IO, "%s: row %d of %d", "x.npy", 3, 7), ERR_IO);
    assert_string_equal(status_message(), "x.npy: row 3 of 7");
    assert_int_equal(FAIL(ERR_USAGE, "plain"), ERR_USAGE);
    assert_string_equal(status_message(), "plain");
}

static void message_may_quote_the_previous_one(void **state) {
    (void)state;
    (void)FAIL(ERR_SYNTAX, "line 4: no such key");
    (void)FAIL(ERR_SYNTAX, "manifest.yaml: %s", status_message());
    assert_string_equal(status_message(), "manifest.yaml: line 4: no such key");
}

static void long_message_is_cut_not_overrun(void **state) {
    (void)state;
    char text[5000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    (void)FAIL(ERR_IO, "%s", text);
    size_t length = strlen(status_message());
    assert_in_range(length, 200, sizeof text - 2);
    assert_memory_equal(status_message(), text, length);
}

static status_t try_twice(status_t first, int *reached) {
    status_t st = OK;
    *reached = 0;
    TRY(first);
    *reached = 1;
    TRY(OK);
    *reached = 2;
done:
    return st;
}

static void try_leaves_at_the_first_failure(void **state) {
    (void)state;
    int reached;
    assert_int_equal(try_twice(OK, &reached), OK);
    assert_int_equal(reached, 2);
    assert_int_equal(try_twice(ERR_NOMEM, &reached), ERR_NOMEM);
    assert_int_equal(reached, 0);
}

struct thread_result {
    char before[64];
    char after[64];
};

static void *fail_in_thread(void *arg) {
    struct thread_result *result = (struct thread_result *)arg;
    strncpy(result->before, status_message(), sizeof result->before - 1);
    (void)FAIL(ERR_DEVICE, "from the thread");
    strncpy(result->after, status_message(), sizeof result->after - 1);
    return NULL;
}

static void message_belongs_to_its_thread(void **state) {
    (void)state;
    (void)FAIL(ERR_IO, "from main");
    struct thread_result result = {0};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, fail_in_thread, &result), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_string_equal(result.before, "");
    assert_string_equal(result.after, "from the thread");
    assert_string_equal(status_message(), "from main");
}

/* The published first outputs of splitmix64 for the seed 1234567. */
static void stream_is_splitmix64(void **state) {
    (void)state;
    static const uint64_t want[] = {
        6457827717110365317u,  3203168211198807973u,  9817491932198370423u,
        4593380528125082431u,  16408922859458223821u,
    };
    struct rng rng = rng_from_seed(1234567);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        assert_int_equal(rng_u64(&rng), want[i]);
}

static void below_keeps_its_bound(void **state) {
    (void)state;
    static const uint64_t bounds[] = {1, 2, 3, 7, 1000, 1ull << 32, (1ull << 63) + 1, UINT64_MAX};
    struct rng rng = rng_from_seed(1);
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        for (int n = 0; n < 2000; n++)
            assert_true(rng_below(&rng, bounds[i]) < bounds[i]);

    /* Each value of a small range turns up, about equally often. */
    int count[7] = {0};
    for (int n = 0; n < 7000; n++)
        count[rng_below(&rng, 7)]++;
    for (size_t i = 0; i < 7; i++)
        assert_in_range(count[i], 850, 1150); /* 1000 +- 5 sigma */

    /* The top of the raw range maps to the top of the bound: the product does not wrap. */
    struct rng top = {.state = 0};
    uint64_t most = 0;
    for (int n = 0; n < 4096; n++) {
        uint64_t r = rng_below(&top, UINT64_MAX);
        most = r > most ? r : most;
    }
    assert_true(most > UINT64_MAX - (UINT64_MAX >> 8));
}

static void unit_is_in_range_and_on_its_grid(void **state) {
    (void)state;
    struct rng rng = rng_from_seed(2);
    double sum = 0;
    for (int n = 0; n < 10000; n++) {
        double u = rng_unit(&rng);
        assert_true(u >= 0 && u < 1);
        assert_true(u * 0x1p53 == (double)(uint64_t)(u * 0x1p53));
        sum += u;
    }
    assert_true(sum > 4850 && sum < 5150); /* 5000 +- 5 sigma */
}

static void sizes_do_not_overflow_silently(void **state) {
    (void)state;
    size_t out = 1;
    assert_true(size_mul(&out, 6, 7));
    assert_int_equal(out, 42);
    assert_true(size_mul(&out, SIZE_MAX, 1));
    assert_int_equal(out, SIZE_MAX);
    assert_true(size_mul(&out, SIZE_MAX, 0));
    assert_int_equal(out, 0);
    out = 1;
    assert_false(size_mul(&out, SIZE_MAX / 2 + 1, 2));
    assert_int_equal(out, 0);
    out = 1;
    assert_false(size_mul(&out, (size_t)1 << 32, (size_t)1 << 32));
    assert_int_equal(out, 0);

    assert_int_equal(size_align(0, 16), 0);
    assert_int_equal(size_align(1, 16), 16);
    assert_int_equal(size_align(16, 16), 16);
    assert_int_equal(size_align(17, 1), 17);
}

/* ---- loops shared out to threads ------------------------------------------------------------------ */

enum { ITEMS = 300, WORKERS = 4 };

struct counted {
    struct threads *threads;
    atomic_int times[ITEMS], busy[WORKERS], running, most;
    atomic_int broken; /* promises to items; a helper cannot assert: it would leave its own stack */
    size_t failing;    /* this item and all multiples of it; 0: none */
    bool nested;
};

static status_t inner_item(void *context, unsigned worker, size_t item) {
    struct counted *c = context;
    (void)worker;
    atomic_fetch_add(&c->times[item], 1);
    return OK;
}

static status_t count_item(void *context, unsigned worker, size_t item) {
    struct counted *c = context;
    int running = atomic_fetch_add(&c->running, 1) + 1;
    if (running > atomic_load(&c->most))
        atomic_store(&c->most, running);
    if (worker >= WORKERS) {
        atomic_fetch_add(&c->broken, 1);
        return OK;
    }
    if (atomic_fetch_add(&c->busy[worker], 1) != 0) /* somebody else is this worker */
        atomic_fetch_add(&c->broken, 1);
    status_t st = OK;
    if (c->failing && item % c->failing == 0 && item > 0)
        st = FAIL(ERR_IO, "item %zu", item);
    else if (c->nested)
        st = parallel_for(c->threads, ITEMS, inner_item, c);
    else
        atomic_fetch_add(&c->times[item], 1);
    for (int spin = 0; spin < 1000; spin++)
        atomic_load(&c->running);
    atomic_fetch_sub(&c->busy[worker], 1);
    atomic_fetch_sub(&c->running, 1);
    return st;
}

static atomic_int threads_done;

static void note_done(void) {
    atomic_fetch_add(&threads_done, 1);
}

static void every_item_is_done_once(void **state) {
    (void)state;
    for (unsigned count = 0; count <= WORKERS; count++) { /* 0: no threads at all */
        static struct counted c;
        struct threads t;
        memset(&c, 0, sizeof c);
        threads_init(&t, count ? count : 1, note_done);
        c.threads = &t;
        assert_int_equal(parallel_for(count ? &t : NULL, ITEMS, count_item, &c), OK);
        assert_int_equal(c.broken, 0);
        for (size_t i = 0; i < ITEMS; i++)
            assert_int_equal(c.times[i], 1);
        assert_true(c.most <= (int)(count ? count : 1));
        assert_int_equal(t.spare, (int)(count ? count : 1) - 1); /* all are given back */
    }
    assert_true(threads_done > 0);
}

static void loops_may_be_nested(void **state) {
    (void)state;
    static struct counted c;
    struct threads t;
    memset(&c, 0, sizeof c);
    threads_init(&t, WORKERS, NULL);
    c.threads = &t;
    c.nested = true;
    assert_int_equal(parallel_for(&t, 20, count_item, &c), OK);
    assert_int_equal(c.broken, 0);
    for (size_t i = 0; i < ITEMS; i++)
        assert_int_equal(c.times[i], 20);
    assert_int_equal(t.spare, WORKERS - 1);
}

static void the_first_failure_is_reported(void **state) {
    (void)state;
    for (unsigned count = 1; count <= WORKERS; count++) {
        static struct counted c;
        struct threads t;
        memset(&c, 0, sizeof c);
        threads_init(&t, count, NULL);
        c.failing = 7;
        assert_int_equal(parallel_for(&t, ITEMS, count_item, &c), ERR_IO);
        assert_int_equal(c.broken, 0);
        assert_string_equal(status_message(), "item 7"); /* which begins before item 14 */
        assert_int_equal(c.times[ITEMS - 1], 0);         /* and nothing begins long after it */
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exit_codes),
        cmocka_unit_test(fail_formats_and_returns_its_code),
        cmocka_unit_test(message_may_quote_the_previous_one),
        cmocka_unit_test(long_message_is_cut_not_overrun),
        cmocka_unit_test(try_leaves_at_the_first_failure),
        cmocka_unit_test(message_belongs_to_its_thread),
        cmocka_unit_test(stream_is_splitmix64),
        cmocka_unit_test(below_keeps_its_bound),
        cmocka_unit_test(unit_is_in_range_and_on_its_grid),
        cmocka_unit_test(sizes_do_not_overflow_silently),
        cmocka_unit_test(every_item_is_done_once),
        cmocka_unit_test(loops_may_be_nested),
        cmocka_unit_test(the_first_failure_is_reported),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
