/* tests/gate/test_report.c - outcomes add up, and every form of a report holds what it should. */
#include "tests/check.h"

#include <jansson.h>
#include <math.h>
#include <unistd.h>

#include "gate/markup.h"
#include "gate/report.h"
#include "tests/gate/fake.h"

static struct fake fake, hostile;

static struct outcome outcome(enum verdict v, double rho, double ulp) {
    struct outcome o = {
        .judgement = judgement_of(v, "%s", v == VERDICT_PASS ? "" : "a <reason> & \"more\"")};
    o.judgement.max_rho = rho;
    o.judgement.max_ulp = ulp;
    o.judgement.max_rel = ulp / 0x1p24;
    o.judgement.worst = (struct worst){
        .known = true, .row = 2, .col = 17, .got = 0x3f800001, .want = {1, 1.5}, .budget = 1e-8};
    o.events.nan_born = 3;
    return o;
}

static void add(struct kernel_report *r, const char *line, struct outcome o) {
    CHECK_OK(kernel_report_add(r, CHECK_BOUND, line, &o));
}

/* One kernel that passes and one, with a hostile name, that fails. */
static struct gate_report make_report(void) {
    struct gate_report r = {
        .suite = "quick", .seed = 7, .seconds = 1.5, .complete = true, .count = 2};
    snprintf(r.device.name, sizeof r.device.name, "cpu");
    snprintf(r.device.arch, sizeof r.device.arch, "sm_90");
    r.kernels = calloc(2, sizeof *r.kernels);
    kernel_report_init(&r.kernels[0], &fake.kernel);
    add(&r.kernels[0], "--fill a", outcome(VERDICT_PASS, 0.25, 1.5));
    add(&r.kernels[0], "--fill b", outcome(VERDICT_PASS, 0.75, 1.25));
    add(&r.kernels[0], "--fill c", outcome(VERDICT_SKIP, 0, 0));
    kernel_report_init(&r.kernels[1], &hostile.kernel);
    add(&r.kernels[1], "--fill a", outcome(VERDICT_PASS, 0.5, 1));
    add(&r.kernels[1], "-i x='<&\">.npy'", outcome(VERDICT_FAIL, INFINITY, 8e6));
    for (size_t i = 0; i < 2; i++) {
        snprintf(r.kernels[i].image_sha256, DIGEST_SIZE, "%064d", (int)i);
        CHECK_OK(kernel_report_finish(&r.kernels[i]));
    }
    return r;
}

static char *written(status_t (*write)(FILE *, const struct gate_report *),
                     const struct gate_report *r) {
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    CHECK_OK(write(file, r));
    fclose(file);
    return text;
}

static status_t text_writer(FILE *to, const struct gate_report *r) {
    report_text(to, r);
    return OK;
}

static void sums(void **state) {
    (void)state;
    struct gate_report r = make_report();
    const struct kernel_report *k = &r.kernels[0];
    assert_int_equal(k->verdict, VERDICT_PASS);
    assert_int_equal(k->cases, 2);
    assert_int_equal(k->verdicts[VERDICT_SKIP], 1);
    assert_true(k->max_ulp == 1.5 && k->max_rho == 0.75);
    assert_string_equal(k->worst.line, "--fill b");
    assert_int_equal(k->events.nan_born, 6);
    assert_string_equal(k->reason, "all 2 cases within budget");
    k = &r.kernels[1];
    assert_int_equal(k->verdict, VERDICT_FAIL);
    assert_int_equal(k->finding_count, 1);
    assert_string_equal(k->reason, "a <reason> & \"more\"");
    size_t totals[VERDICT_COUNT];
    gate_report_totals(totals, &r);
    assert_int_equal(totals[VERDICT_PASS], 1);
    assert_int_equal(totals[VERDICT_FAIL], 1);
    assert_false(gate_report_passed(&r));
    r.count = 1;
    assert_true(gate_report_passed(&r));
    for (int v = VERDICT_PASS + 1; v < VERDICT_COUNT; v++) { /* no failure is not yet a pass */
        r.kernels[0].verdict = (enum verdict)v;
        assert_false(gate_report_passed(&r));
    }
    r.kernels[0].verdict = VERDICT_SKIP;
    assert_false(gate_report_passed(&r));
    r.kernels[0].verdict = VERDICT_PASS;
    r.complete = false;
    assert_false(gate_report_passed(&r));
    r.complete = true;
    r.count = 0;
    assert_false(gate_report_passed(&r)); /* nothing passed */
    r.count = 2;
    gate_report_clear(&r);
    gate_report_clear(&r);
}

/* Only PASS is a pass: one case of another verdict decides, but for those that say nothing. */
static void worst_case_decides(void **state) {
    (void)state;
    for (int v = 0; v < VERDICT_COUNT; v++) {
        struct kernel_report k;
        kernel_report_init(&k, &fake.kernel);
        add(&k, "--fill a", outcome(VERDICT_PASS, 0.9, 1));
        add(&k, "--fill b", outcome((enum verdict)v, 0.1, 1));
        add(&k, "--fill c", outcome(VERDICT_PASS, 0.95, 1));
        CHECK_OK(kernel_report_finish(&k));
        bool decides = v == VERDICT_UNSURE || v == VERDICT_FAIL;
        assert_int_equal(k.verdict, decides ? (enum verdict)v : VERDICT_PASS);
        assert_string_equal(k.worst.line, decides ? "--fill b" : "--fill c");
        kernel_report_clear(&k);
    }
    struct kernel_report k;
    kernel_report_init(&k, &fake.kernel);
    CHECK_OK(kernel_report_finish(&k));
    assert_int_equal(k.verdict, VERDICT_SKIP);
    assert_string_equal(k.reason, "no case ran");
}

/* Of each fill and verdict the first one is kept and shown, failures before the rest. */
static void findings_by_kind(void **state) {
    (void)state;
    static const struct {
        const char *line;
        enum verdict verdict;
    } table[] = {
        {"--fill ties --shape 1x1 --seed 1", VERDICT_MISTRUSTED},
        {"--fill ties --shape 5x2 --seed 2", VERDICT_FAIL},
        {"--fill ties --shape 5x3 --seed 3", VERDICT_FAIL},
        {"--fill huge --shape 1x1 --seed 1", VERDICT_FAIL},
        {"-i x=a.npy --rows 0:5", VERDICT_UNSURE},
        {"-i x=a.npy --rows 5:5", VERDICT_UNSURE},
        {"-i x=ab.npy", VERDICT_FAIL},
    };
    struct gate_report r = {.suite = "quick", .count = 1};
    r.kernels = calloc(1, sizeof *r.kernels);
    kernel_report_init(&r.kernels[0], &fake.kernel);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        add(&r.kernels[0], table[i].line, outcome(table[i].verdict, 2, 1));
    CHECK_OK(kernel_report_finish(&r.kernels[0]));
    assert_int_equal(r.kernels[0].finding_count, 4); /* the vacuous case says nothing */
    assert_string_equal(r.kernels[0].worst.line, table[1].line);
    char *t = written(text_writer, &r);
    const char *at = t; /* three blocks: the failures in plan order */
    for (size_t i = 1; i < 7; i += i == 1 ? 2 : 3) {
        at = strstr(at, "\nFAIL fake: ");
        assert_non_null(at);
        assert_non_null(strstr(at, table[i].line));
        at++;
    }
    CHECK_CONTAINS(t, "and 3 more of its 7 cases");
    assert_null(strstr(t, "\nMISTRUSTED fake: "));
    free(t);
    gate_report_clear(&r);
}

/* Cases that could not have failed decide nothing, unless there is no other. */
static void vacuous_cases_count_for_nothing(void **state) {
    (void)state;
    for (int others = 0; others < 2; others++) {
        struct gate_report r = {.suite = "quick", .count = 1};
        r.kernels = calloc(1, sizeof *r.kernels);
        struct kernel_report *k = &r.kernels[0];
        kernel_report_init(k, &fake.kernel);
        add(k, "--fill subnormal --shape 1x1", outcome(VERDICT_MISTRUSTED, 0, 0));
        if (others)
            add(k, "--fill normal --shape 1x1", outcome(VERDICT_PASS, 0.5, 1));
        CHECK_OK(kernel_report_finish(k));
        assert_int_equal(k->verdict, others ? VERDICT_PASS : VERDICT_MISTRUSTED);
        assert_int_equal(k->cases, 1 + others);
        char *t = written(text_writer, &r);
        if (others)
            CHECK_CONTAINS(t, "(1 cases could not have failed)");
        else
            CHECK_CONTAINS(t, "\nMISTRUSTED fake: ");
        free(t);
        gate_report_clear(&r);
    }
}

/* A twin that was asked for and compared nothing. */
static void idle_twin_is_mistrusted(void **state) {
    (void)state;
    for (int compared = 0; compared < 2; compared++) {
        struct kernel_report k;
        struct outcome o = outcome(VERDICT_PASS, 0, 0);
        kernel_report_init(&k, &fake.kernel);
        k.twin = "cuda:0";
        o.compared = (size_t)compared;
        CHECK_OK(kernel_report_add(&k, CHECK_TWIN, "--twin --fill a", &o));
        CHECK_OK(kernel_report_finish(&k));
        assert_int_equal(k.verdict, compared ? VERDICT_PASS : VERDICT_MISTRUSTED);
        kernel_report_clear(&k);
    }
}

/* Order checks that all saw nothing make a kernel MISTRUSTED; one that saw suffices. */
static void blind_order_is_mistrusted(void **state) {
    (void)state;
    for (int seeing = 0; seeing < 2; seeing++) {
        struct kernel_report k;
        struct outcome o = outcome(VERDICT_PASS, 0, 0);
        kernel_report_init(&k, &fake.kernel);
        CHECK_OK(kernel_report_add(&k, CHECK_ORDER, "--order --fill a", &o));
        o.saw_order = seeing;
        CHECK_OK(kernel_report_add(&k, CHECK_ORDER, "--order --fill b", &o));
        CHECK_OK(kernel_report_finish(&k));
        assert_int_equal(k.verdict, seeing ? VERDICT_PASS : VERDICT_MISTRUSTED);
        assert_int_equal(k.cases, 2);
        if (!seeing)
            assert_string_equal(k.worst.line, "--order --fill a");
        kernel_report_clear(&k);
    }
}

static double number(const json_t *object, const char *key) {
    const json_t *v = json_object_get(object, key);
    CHECK(json_is_number(v), "%s is no number", key);
    return json_number_value(v);
}

static const char *string(const json_t *object, const char *key) {
    const char *v = json_string_value(json_object_get(object, key));
    CHECK(v, "%s is no string", key);
    return v;
}

static void json(void **state) {
    (void)state;
    struct gate_report r = make_report();
    char *text = written(report_json, &r);
    json_error_t error;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    CHECK(root, "results.json:%d: %s", error.line, error.text);
    assert_string_equal(string(root, "assay"), ASSAY_VERSION);
    assert_string_equal(string(json_object_get(root, "device"), "name"), "cpu");
    assert_string_equal(string(json_object_get(root, "device"), "arch"), "sm_90");
    assert_string_equal(string(json_object_get(root, "device"), "driver"), "");
    assert_string_equal(string(root, "suite"), "quick");
    assert_true(number(root, "seed") == 7 && number(root, "seconds") == 1.5);
    const json_t *totals = json_object_get(root, "totals");
    assert_true(number(totals, "pass") == 1 && number(totals, "fail") == 1);
    assert_true(number(totals, "unsure") == 0 && number(totals, "mistrusted") == 0 &&
                number(totals, "skip") == 0);
    const json_t *kernels = json_object_get(root, "kernels");
    assert_int_equal(json_array_size(kernels), 2);
    const json_t *k = json_array_get(kernels, 0);
    assert_string_equal(string(k, "name"), "fake");
    assert_string_equal(string(k, "op"), "softmax");
    assert_string_equal(string(k, "dtype"), "f32");
    assert_int_equal(strlen(string(k, "image_sha256")), 64);
    assert_string_equal(string(k, "verdict"), "PASS");
    assert_true(number(k, "cases") == 2 && number(k, "max_ulp") == 1.5);
    assert_true(number(k, "max_rho") == 0.75 && number(k, "max_rel") == 1.5 / 0x1p24);
    const json_t *worst = json_object_get(k, "worst");
    assert_string_equal(string(worst, "case"), "--fill b");
    assert_string_equal(string(worst, "got_bits"), "0x3f800001");
    assert_true(json_integer_value(json_array_get(json_object_get(worst, "index"), 0)) == 2);
    assert_true(json_integer_value(json_array_get(json_object_get(worst, "index"), 1)) == 17);
    assert_true(json_number_value(json_array_get(json_object_get(worst, "want"), 1)) == 1.5);
    assert_true(number(json_object_get(k, "events"), "nan_born") == 6);
    assert_true(json_is_null(json_object_get(k, "bench")));
    k = json_array_get(kernels, 1);
    assert_string_equal(string(k, "name"), hostile.kernel.name);
    assert_string_equal(string(k, "max_rho"), "inf"); /* JSON has no infinity */
    assert_string_equal(string(k, "reason"), "a <reason> & \"more\"");
    json_decref(root);
    free(text);
    gate_report_clear(&r);
}

static size_t occurrences(const char *text, const char *part) {
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, part)); at += strlen(part))
        n++;
    return n;
}

/* Well-formed as far as a scan for stray markup can tell; tests/cli has a real parser read it. */
static void junit_and_html(void **state) {
    (void)state;
    struct gate_report r = make_report();
    char *xml = written(report_junit, &r), *html = written(report_html, &r);
    CHECK_CONTAINS(xml, "tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"0\"");
    CHECK_CONTAINS(xml, "classname=\"softmax\" name=\"fake\"");
    CHECK_CONTAINS(xml, "name=\"a&lt;b&gt;&amp;&quot;\xef\xbf\xbd\"");
    CHECK_CONTAINS(xml, "assay check a&lt;b&gt;&amp;&quot;");
    assert_int_equal(occurrences(xml, "<testcase"), occurrences(xml, "</testcase>"));
    assert_int_equal(occurrences(xml, "<failure"), 1);
    CHECK_CONTAINS(html, "a &lt;reason&gt; &amp; &quot;more&quot;");
    CHECK_CONTAINS(html, "did not pass");
    assert_null(strstr(html, "<reason>"));
    assert_null(strstr(html, "<b>&"));
    assert_null(strstr(xml, "<reason>"));
    assert_int_equal(occurrences(html, "<tr>"), occurrences(html, "</tr>"));
    free(xml);
    free(html);
    gate_report_clear(&r);
}

static void text(void **state) {
    (void)state;
    struct gate_report r = make_report();
    char *t = written(text_writer, &r);
    CHECK_CONTAINS(t, "PASS        fake");
    CHECK_CONTAINS(t, "    got     0x3f800001 (1.00000012)\n");
    CHECK_CONTAINS(t, "    want    [1, 1.5]\n");
    CHECK_CONTAINS(t, "    budget  1e-08\n");
    CHECK_CONTAINS(t, "    where   element [2][17]\n");
    CHECK_CONTAINS(t, "    rerun   assay check a<b>&\"");
    CHECK_CONTAINS(t, "2 kernels on cpu (sm_90), suite quick, seed 7, 1.5 s: 1 pass, 1 fail");
    assert_null(strchr(t, '\033'));
    assert_null(strchr(t, '\r'));
    free(t);
    gate_report_clear(&r);
}

static void markup(void **state) {
    (void)state;
    static const struct {
        const char *in, *out;
    } table[] = {
        {"plain", "plain"},
        {"<a href=\"x\">&</a>", "&lt;a href=&quot;x&quot;&gt;&amp;&lt;/a&gt;"},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"a\x01z\x1b[0m\x7f", "a\xef\xbf\xbdz\xef\xbf\xbd[0m\xef\xbf\xbd"},
        {"\xff\xc3", "\xef\xbf\xbd\xef\xbf\xbd"},                 /* no lead byte; cut short */
        {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},                 /* overlong '/' */
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* a surrogate */
        {"tab\tnewline\n", "tab\tnewline\n"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char *got = NULL;
        size_t size = 0;
        FILE *file = open_memstream(&got, &size);
        markup_text(file, table[i].in);
        fclose(file);
        assert_string_equal(got, table[i].out);
        free(got);
    }
}

/* FIPS 180-4 examples: the digest is SHA-256. */
static void sha256(void **state) {
    (void)state;
    char digest[DIGEST_SIZE];
    text_sha256(digest, "abc");
    assert_string_equal(digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    text_sha256(digest, "");
    assert_string_equal(digest, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    char path[] = "/tmp/assay-sha-XXXXXX";
    int fd = mkstemp(path);
    const char *message = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    assert_int_equal(write(fd, message, strlen(message)), strlen(message));
    close(fd);
    CHECK_OK(file_sha256(digest, path));
    assert_string_equal(digest, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    unlink(path);
    assert_int_equal(file_sha256(digest, path), ERR_IO);
}

int main(void) {
    fake = fake_kernel("fake", "softmax", fake_softmax);
    hostile = fake_kernel("a<b>&\"\x01", "sum", fake_sum);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums),
        cmocka_unit_test(worst_case_decides),
        cmocka_unit_test(findings_by_kind),
        cmocka_unit_test(blind_order_is_mistrusted),
        cmocka_unit_test(vacuous_cases_count_for_nothing),
        cmocka_unit_test(idle_twin_is_mistrusted),
        cmocka_unit_test(json),
        cmocka_unit_test(junit_and_html),
        cmocka_unit_test(text),
        cmocka_unit_test(markup),
        cmocka_unit_test(sha256),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
