/*
 * The repository's own kernels as they were built: every manifest is good, images and manifests
 * name the same entries, and the PTX fixes every rounding and names no path of this machine.
 */
#include "tests/check.h"

#include <glob.h>
#include <string.h>

#include "kernels/catalogue.h"
#include "kernels/kernel.h"

static struct catalogue *cat;

static int open_catalogue(void **state) {
    (void)state;
    if (catalogue_new(&cat) != OK || catalogue_add_builtin(cat) != OK) {
        print_error("%s\n", status_message());
        return -1;
    }
    return 0;
}

static int close_catalogue(void **state) {
    (void)state;
    catalogue_free(cat);
    return 0;
}

static char *read_text(const char *path) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = 0, room = 8 << 20;
    char *text = malloc(room + 1);
    assert_non_null(text);
    size = fread(text, 1, room, file);
    assert_true(size < room);
    fclose(file);
    text[size] = '\0';
    return text;
}

/* For each image of the build: its path, folder name and text. */
static void for_each_image(void (*check)(const char *path, const char *text)) {
    glob_t found;
    assert_int_equal(glob(KERNELS_FOLDER "/*/*.ptx", 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 62);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char *text = read_text(found.gl_pathv[i]);
        check(found.gl_pathv[i], text);
        free(text);
    }
    globfree(&found);
}

static bool is_launched(const char *image, const char *entry) {
    for (size_t i = 0; i < catalogue_count(cat); i++) {
        const struct kernel *k = catalogue_kernel(cat, i);
        for (size_t l = 0; strcmp(k->image, image) == 0 && l < k->detail->launch_count; l++)
            if (strcmp(k->detail->launches[l].entry, entry) == 0)
                return true;
    }
    return false;
}

static void check_entries(const char *path, const char *text) {
    size_t count = 0;
    if (strstr(path, "/bench/")) /* no subject: `assay bench` launches it */
        return;
    for (const char *p = strstr(text, ".entry "); p; p = strstr(p + 1, ".entry ")) {
        char name[128];
        assert_int_equal(sscanf(p, ".entry %127[^(]", name), 1);
        CHECK(is_launched(path, name), "%s: no manifest entry launches %s", path, name);
        count++;
    }
    CHECK(count > 0, "%s has no entry", path);
}

static void every_entry_is_launched(void **state) {
    (void)state;
    for_each_image(check_entries);
}

static void every_launch_has_an_entry(void **state) {
    (void)state;
    for (size_t i = 0; i < catalogue_count(cat); i++) {
        const struct kernel *k = catalogue_kernel(cat, i);
        char *text = read_text(k->image);
        for (size_t l = 0; l < k->detail->launch_count; l++) {
            char head[160];
            snprintf(head, sizeof head, ".visible .entry %s(", k->detail->launches[l].entry);
            CHECK(strstr(text, head), "%s: %s has no entry `%s`", k->name, k->image, head);
        }
        free(text);
    }
}

/* A mul, add or sub on floats without .rn: ptxas may contract it, and the bits are not ours. */
static bool has_unrounded(const char *text) {
    static const char *const forms[] = {"\tmul.f32", "\tadd.f32",     "\tsub.f32",
                                        "\tmul.ftz", "\tadd.ftz.f32", "\tsub.ftz.f32"};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (strstr(text, forms[i]))
            return true;
    return false;
}

static void check_text(const char *path, const char *text) {
    const char *target = strstr(text, "barrier.cluster.") ? "\n.target sm_90\n" : "\n.target sm_80\n";
    CHECK(strstr(text, target), "%s: its target is not the least one that has what it uses", path);
    CHECK(!has_unrounded(text), "%s: arithmetic without a rounding", path);
    /* The range reduction of CUDA's sinf for large arguments keeps its words in local memory. */
    CHECK(!strstr(text, "__local_depot") || strstr(path, "/rope/"), "%s: spills to local memory",
          path);
    CHECK(strstr(text, "\t.loc\t"), "%s: no source lines", path);
    CHECK(strstr(text, "\t.file\t1 \"kernels/"), "%s: its source is not relative to the root",
          path);
    CHECK(!strstr(text, "\"/"), "%s: names a path of this machine", path);
    CHECK(!strstr(text, ".debug_str"), "%s: holds names made from paths of this machine", path);
}

static void images_keep_the_promises(void **state) {
    (void)state;
    for_each_image(check_text);
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

static void names_tell(void **state) {
    (void)state;
    for (size_t i = 0; i < catalogue_count(cat); i++) {
        const struct kernel *k = catalogue_kernel(cat, i);
        CHECK(strncmp(k->name, k->op->name, strlen(k->op->name)) == 0, "%s: op %s", k->name,
              k->op->name);
        /* parts are f32 throughout: what they become tells the kernels apart */
        const struct dtype *dt = k->op->dims[0] == DIM_PARTS ? k->out : k->in;
        char end[16];
        snprintf(end, sizeof end, "_%s", dt->name);
        CHECK(ends_with(k->name, end), "%s: it is of %s", k->name, dt->name);
        CHECK((strstr(k->name, "faulty") != NULL) == (k->fault != NULL), "%s: planted fault?",
              k->name);
        CHECK(k->summary[0] != '\0', "%s has no summary", k->name);
    }
    assert_int_equal(catalogue_count(cat), 353);
    assert_non_null(catalogue_find(cat, "softmax_online_f32"));
}

/* Declared numerics are finite, and never shrink as a row grows. */
static void numerics_grow(void **state) {
    (void)state;
    for (size_t i = 0; i < catalogue_count(cat); i++) {
        const struct kernel *k = catalogue_kernel(cat, i);
        struct numerics nu, last = {0};
        for (size_t cols = 1; cols <= 20000; cols += 1 + cols / 7) {
            struct case_dims dims = {.rows = 3, .cols = cols};
            if (k->op->dims[1] != DIM_COLS || kernel_refuses(k, dims))
                continue;
            CHECK(kernel_numerics(&nu, k, dims) == OK, "%s", status_message());
            CHECK(nu.rescales >= last.rescales, "%s: rescales shrink at %zu", k->name, cols);
            /* A longer row may be cut among more blocks, which shortens a thread's chain. */
            CHECK(nu.sum_height >= last.sum_height - 5, "%s: height shrinks at %zu", k->name, cols);
            CHECK(nu.sum_height < (double)cols + 10, "%s: height %g at %zu", k->name, nu.sum_height,
                  cols);
            last = nu;
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_entry_is_launched),
        cmocka_unit_test(every_launch_has_an_entry),
        cmocka_unit_test(images_keep_the_promises),
        cmocka_unit_test(names_tell),
        cmocka_unit_test(numerics_grow),
    };
    return cmocka_run_group_tests(tests, open_catalogue, close_catalogue);
}
