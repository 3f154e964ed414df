/*
 * What the catalogue refuses, and in which words.  Each file of manifests/ has one mistake and says
 * in its first line what the message must contain; load_*.yaml are found wanting only against their
 * image.  good.yaml has none.
 */
#include "tests/check.h"

#include <glob.h>
#include <string.h>
#include <unistd.h>

#include "fake_device.h"
#include "kernels/catalogue.h"

/* "# expect: TEXT" */
static void read_expectation(char *out, size_t size, const char *path) {
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(out, (int)size, file));
    fclose(file);
    assert_memory_equal(out, "# expect: ", 10);
    memmove(out, out + 10, strlen(out + 10) + 1);
    out[strcspn(out, "\n")] = '\0';
}

static void check_message(const char *path, const char *expected) {
    const char *message = status_message();
    CHECK(strstr(message, expected), "%s\n  expected: %s\n  found:    %s", path, expected, message);
    CHECK(!strchr(message, '\n'), "%s: more than one line: %s", path, message);
    CHECK(strstr(message, path), "%s: not named in: %s", path, message);
}

static bool is_load_case(const char *path) {
    return strncmp(strrchr(path, '/') + 1, "load_", 5) == 0;
}

static void check_refusal(const char *path) {
    char expected[256];
    struct catalogue *cat;
    struct loaded_kernel *lk;

    read_expectation(expected, sizeof expected, path);
    assert_int_equal(catalogue_new(&cat), OK);
    status_t st = catalogue_add(cat, path);
    if (is_load_case(path)) {
        CHECK(st == OK, "%s: %s", path, status_message());
        st = kernel_load(&lk, NULL, catalogue_kernel(cat, 0));
        CHECK(st == ERR_SYNTAX, "%s: loaded", path);
    } else {
        CHECK(st == ERR_SYNTAX || st == ERR_IO, "%s: status %d", path, st);
        assert_int_equal(catalogue_count(cat), 0);
    }
    if (strcmp(strrchr(path, '/'), "/load_no_image.yaml") == 0) /* the image speaks for itself */
        CHECK(strstr(status_message(), expected), "%s: %s", path, status_message());
    else
        check_message(path, expected);
    catalogue_free(cat);
}

static void refuses_with_line(void **state) {
    (void)state;
    glob_t found;
    size_t count = 0;
    assert_int_equal(glob(TEST_FOLDER "/manifests/*.yaml", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        if (strcmp(strrchr(found.gl_pathv[i], '/'), "/good.yaml") == 0)
            continue;
        check_refusal(found.gl_pathv[i]);
        count++;
    }
    assert_true(count > 50);
    globfree(&found);
}

static void refuses_files(void **state) {
    (void)state;
    struct catalogue *cat;
    assert_int_equal(catalogue_new(&cat), OK);
    assert_int_equal(catalogue_add(cat, "/nowhere/manifest.yaml"), ERR_IO);
    assert_string_equal(status_message(), "/nowhere/manifest.yaml: No such file or directory");
    assert_int_equal(catalogue_add(cat, TEST_FOLDER), ERR_IO);
    assert_int_equal(catalogue_add(cat, "/dev/zero"), ERR_IO);
    catalogue_free(cat);
}

/* A manifest with a mistake leaves no trace; a name is taken across manifests too. */
static void adds_all_or_nothing(void **state) {
    (void)state;
    struct catalogue *cat;
    assert_int_equal(catalogue_new(&cat), OK);
    assert_int_equal(catalogue_add(cat, TEST_FOLDER "/manifests/good.yaml"), OK);
    const struct kernel *all = catalogue_find(cat, "all_f32");
    assert_int_equal(catalogue_add(cat, TEST_FOLDER "/manifests/name_twice.yaml"), ERR_SYNTAX);
    assert_int_equal(catalogue_add(cat, TEST_FOLDER "/manifests/good.yaml"), ERR_SYNTAX);
    assert_non_null(strstr(status_message(), "all_f32: name: already taken in "));
    assert_int_equal(catalogue_count(cat), 3);
    assert_ptr_equal(catalogue_find(cat, "all_f32"), all);
    catalogue_free(cat);
}

static void finds_by_name(void **state) {
    (void)state;
    struct catalogue *cat;
    assert_int_equal(catalogue_new(&cat), OK);
    assert_null(catalogue_find(cat, "all_f32"));
    assert_int_equal(catalogue_add(cat, TEST_FOLDER "/manifests/load_entry.yaml"), OK);
    assert_int_equal(catalogue_add(cat, TEST_FOLDER "/manifests/good.yaml"), OK);
    assert_int_equal(catalogue_count(cat), 4);
    assert_string_equal(catalogue_kernel(cat, 0)->name, "all_f32");
    assert_string_equal(catalogue_kernel(cat, 1)->name, "mapped_f16");
    assert_string_equal(catalogue_kernel(cat, 2)->name, "narrow_f32");
    assert_string_equal(catalogue_kernel(cat, 3)->name, "one_f32");
    assert_ptr_equal(catalogue_find(cat, "one_f32"), catalogue_kernel(cat, 3));
    assert_null(catalogue_find(cat, "one"));
    catalogue_free(cat);
}

static void reads_all_facts(void **state) {
    (void)state;
    struct catalogue *cat;
    struct numerics nu;
    assert_int_equal(catalogue_new(&cat), OK);
    assert_int_equal(catalogue_add(cat, TEST_FOLDER "/manifests/good.yaml"), OK);

    const struct kernel *all = catalogue_find(cat, "all_f32");
    assert_ptr_equal(all->op, op_find("sum"));
    assert_string_equal(all->out->name, "f16");
    assert_string_equal(all->fault, "none of the above");
    assert_string_equal(all->image, TEST_FOLDER "/manifests/image.fake");
    assert_string_equal(all->summary, "");
    assert_false(all->deterministic);
    assert_int_equal(kernel_numerics(&nu, all, (struct case_dims){2, 1024}), OK);
    assert_true(nu.sum_height == 10 && nu.rescales == 0 && nu.flush);
    assert_true(nu.exp == EXP_NONE && nu.divide == DIVIDE_NONE && nu.log == LOG_NONE);
    assert_true(nu.in == all->in && nu.out == all->out && nu.acc == all->acc);

    const struct kernel *narrow = catalogue_find(cat, "narrow_f32");
    assert_string_equal(narrow->in->name, "bf16");
    assert_string_equal(narrow->acc->name, "f32");
    assert_null(narrow->fault);
    assert_int_equal(kernel_numerics(&nu, narrow, (struct case_dims){2, 1024}), OK);
    assert_true(nu.rescale == RESCALE_ONLINE && nu.rescales == 3 && !nu.flush);
    assert_true(nu.exp == EXP_FAST && nu.divide == DIVIDE_APPROX && nu.log == LOG_FAST);
    catalogue_free(cat);
}

static void refuses_shapes(void **state) {
    (void)state;
    struct catalogue *cat;
    assert_int_equal(catalogue_new(&cat), OK);
    assert_int_equal(catalogue_add(cat, TEST_FOLDER "/manifests/good.yaml"), OK);
    const struct kernel *all = catalogue_find(cat, "all_f32");
    const struct kernel *narrow = catalogue_find(cat, "narrow_f32");
    assert_null(kernel_refuses(all, (struct case_dims){2, 8}));
    assert_null(kernel_refuses(all, (struct case_dims){64, 4096}));
    assert_string_equal(kernel_refuses(all, (struct case_dims){1, 8}), "rows = 1: accepts 2..64");
    assert_string_equal(kernel_refuses(all, (struct case_dims){2, 12}),
                        "cols = 12: accepts 8..4096 multiple of 8");
    assert_string_equal(kernel_refuses(all, (struct case_dims){2, 4104}),
                        "cols = 4104: accepts 8..4096 multiple of 8");
    assert_null(kernel_refuses(narrow, (struct case_dims){1, 1}));
    assert_string_equal(kernel_refuses(narrow, (struct case_dims){1, 0}), "cols = 0: accepts 1..");
    catalogue_free(cat);
}

/* The example of docs/manifest.md, word for word, beside an image with the entries it names. */
static void takes_the_documented_example(void **state) {
    (void)state;
    char folder[] = "/tmp/assay-test-XXXXXX", manifest[64], image[64], line[256];
    struct catalogue *cat;
    struct loaded_kernel *lk;
    assert_non_null(mkdtemp(folder));
    snprintf(manifest, sizeof manifest, "%s/manifest.yaml", folder);
    snprintf(image, sizeof image, "%s/softmax.ptx", folder);

    FILE *doc = fopen(TEST_FOLDER "/../../docs/manifest.md", "r");
    FILE *file = fopen(manifest, "w");
    assert_true(doc && file);
    while (fgets(line, sizeof line, doc) && strcmp(line, "```yaml\n") != 0)
        continue;
    while (fgets(line, sizeof line, doc) && strcmp(line, "```\n") != 0)
        fputs(line, file);
    fclose(file);
    fclose(doc);
    file = fopen(image, "w");
    assert_non_null(file);
    fputs("entry row_stats 8 8 4\nentry quotients 8 8 8 4 4\n", file);
    fclose(file);

    assert_int_equal(catalogue_new(&cat), OK);
    CHECK(catalogue_add(cat, manifest) == OK, "%s", status_message());
    CHECK(kernel_load(&lk, NULL, catalogue_find(cat, "my_softmax_f32")) == OK, "%s",
          status_message());
    kernel_unload(lk);
    catalogue_free(cat);
    unlink(image);
    unlink(manifest);
    rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_with_line),
        cmocka_unit_test(refuses_files),
        cmocka_unit_test(adds_all_or_nothing),
        cmocka_unit_test(finds_by_name),
        cmocka_unit_test(reads_all_facts),
        cmocka_unit_test(refuses_shapes),
        cmocka_unit_test(takes_the_documented_example),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
