#include "harness.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "data/classed.h"
#include "io/commit.h"

static sx_class_list list;

static sx_status classify(const char *const *names, size_t count)
{
    memset(&list, 0, sizeof(list));
    return sx_class_list_init(names, count, false, "photos", &list);
}

static sx_status classify_recursive(const char *const *names, size_t count)
{
    memset(&list, 0, sizeof(list));
    return sx_class_list_init(names, count, true, "photos", &list);
}

static void assert_skipped(const char *expected)
{
    sx_buf text;
    sx_buf_init(&text, 0);
    sx_class_list_put_skipped(&list, &text);
    assert_string_equal(sx_buf_text(&text), expected);
    sx_buf_deinit(&text);
}

static void test_data_classed__folders_become_sorted_classes(void **state)
{
    (void)state;
    static const char *const names[] = {
        "tulips/b.jpg", "daisy/1.JPG", "tulips/a.png",
        "roses/x.jpeg", ".git/x.jpg",  "daisy/.hidden.jpg",
    };
    assert_ok(classify(names, 6));
    assert_int_equal(list.class_count, 3);
    assert_string_equal(list.classes[0], "daisy");
    assert_string_equal(list.classes[1], "roses");
    assert_string_equal(list.classes[2], "tulips");
    assert_int_equal(list.count, 4);
    assert_skipped("");
    assert_string_equal(list.items[0].name, "daisy/1.JPG");
    assert_int_equal(list.items[0].label, 0);
    assert_int_equal(list.items[0].index, 1);
    assert_string_equal(list.items[2].name, "tulips/a.png");
    assert_int_equal(list.items[2].label, 2);
    sx_class_list_deinit(&list);
}

static void test_data_classed__descends_to_the_class_folders(void **state)
{
    (void)state;
    static const char *const names[] = {
        "flower_photos/LICENSE.txt",          "flower_photos/roses/1.jpg",
        "__MACOSX/flower_photos/roses/1.jpg", "flower_photos/daisy/2.jpg",
        "flower_photos/daisy/notes.txt",
    };
    assert_ok(classify(names, 5));
    assert_int_equal(list.class_count, 2);
    assert_int_equal(list.count, 2);
    assert_string_equal(list.items[0].name, "flower_photos/daisy/2.jpg");
    assert_skipped("; skipped 2 files that are not images");
    sx_class_list_deinit(&list);
}

static void test_data_classed__counts_what_it_skips(void **state)
{
    (void)state;
    static const char *const names[] = {
        "cover.jpg",        "cats/1.jpg",         "cats/Thumbs.db",      "cats/old/2.jpg",
        "cats/old/x/3.gif", "cats/old/notes.txt", "dogs/1.png",          "dogs/jpg",
        "dogs/.x/4.jpg",    "\xc3\xbc/1.jpg",     "\xc3\xbc/<a>&\".png",
    };
    assert_ok(classify(names, SX_COUNT(names)));
    assert_int_equal(list.class_count, 3);
    assert_int_equal(list.count, 4);
    assert_string_equal(list.classes[2], "\xc3\xbc");
    assert_skipped("; skipped 3 files that are not images, 1 image outside the class folders, 2 "
                   "images in nested folders (--recursive includes them)");
    sx_class_list_deinit(&list);
    assert_ok(classify_recursive(names, SX_COUNT(names)));
    assert_int_equal(list.class_count, 3);
    assert_int_equal(list.count, 6);
    assert_string_equal(list.items[2].name, "cats/old/x/3.gif");
    assert_int_equal(list.items[2].label, 0);
    assert_skipped("; skipped 3 files that are not images, 1 image outside the class folders");
    sx_class_list_deinit(&list);
}

static void assert_classes(sx_status status, const char *expected, int64_t count)
{
    sx_buf text;
    sx_buf_init(&text, 0);
    assert_ok(status);
    for (int i = 0; i < list.class_count; i++) {
        sx_buf_printf(&text, "%s%s", i > 0 ? " " : "", list.classes[i]);
    }
    assert_string_equal(sx_buf_text(&text), expected);
    assert_int_equal(list.count, count);
    sx_buf_deinit(&text);
    sx_class_list_deinit(&list);
}

/* The class folders lie below the deepest folder that holds all images. */
static void test_data_classed__finds_the_level_of_the_classes(void **state)
{
    (void)state;
    static const char *const one[] = {"cats/1.jpg", "cats/wild/2.jpg"};
    static const char *const deep_one[] = {"a/b/cats/1.jpg"};
    static const char *const cover[] = {"p/cover.jpg", "p/cats/1.jpg", "p/dogs/1.jpg"};
    static const char *const prefix[] = {"cat/1.jpg", "cats/1.jpg", "cats/2.jpg"};
    static const char *const nested[] = {"cats/a/1.jpg", "cats/b/2.jpg", "dogs/small/3.jpg"};
    assert_classes(classify(one, 2), "cats", 1);
    assert_classes(classify_recursive(one, 2), "cats", 2);
    assert_classes(classify(deep_one, 1), "cats", 1);
    assert_classes(classify_recursive(deep_one, 1), "cats", 1);
    assert_classes(classify(cover, 3), "cats dogs", 2);
    assert_classes(classify_recursive(cover, 3), "cats dogs", 2);
    assert_classes(classify(prefix, 3), "cat cats", 3);
    assert_classes(classify_recursive(nested, 3), "cats dogs", 3);
    assert_error(classify(nested, 3), SX_INVALID_ARGUMENT, "use --recursive to take \"cats\"");
}

static void test_data_classed__refuses_what_is_no_set_of_class_folders(void **state)
{
    (void)state;
    static const char *const none[] = {"a.txt", "b/c.csv"};
    static const char *const flat[] = {"1.jpg", "2.jpg"};
    static const char *const split[] = {"train/cats/1.jpg", "train/dogs/1.jpg",
                                        "validation/cats/1.jpg"};
    static const char *const deep[] = {"cats/1.jpg", "dogs/small/2.jpg"};
    assert_error(classify(none, 2), SX_INVALID_ARGUMENT, "photos: no images");
    static const char *const latin1[] = {"caf\xe9/1.jpg", "bar/1.jpg"};
    assert_error(classify(latin1, 2), SX_INVALID_ARGUMENT, "is not UTF-8; rename it");
    assert_error(classify_recursive(flat, 2), SX_INVALID_ARGUMENT, "not in class folders");
    assert_error(classify(none, 0), SX_INVALID_ARGUMENT, "photos: no images");
    assert_error(classify(flat, 2), SX_INVALID_ARGUMENT, "not in class folders");
    assert_error(classify(split, 3), SX_INVALID_ARGUMENT, "\"train\", \"validation\"");
    assert_error(classify(deep, 2), SX_INVALID_ARGUMENT, "\".\", \"dogs\"");
    static const char *const mixed[] = {"train/cats/1.jpg", "train/dogs/1.jpg", "x/1.jpg",
                                        "y/1.jpg"};
    assert_error(classify(mixed, 4), SX_INVALID_ARGUMENT, "\"train\"");
}

/* A training and a test set under one folder: neither --recursive nor skipping is meant. */
static void test_data_classed__names_the_parts_of_a_split_set(void **state)
{
    (void)state;
    static const char *const split[] = {"wrap/test/cats/1.jpg", "wrap/test/dogs/1.jpg",
                                        "wrap/train/cats/1.jpg", "wrap/train/dogs/1.jpg"};
    sx_status status = classify(split, 4);
    assert_null(strstr(sx_status_message(status), "recursive"));
    assert_error(status, SX_INVALID_ARGUMENT,
                 "--data photos/wrap/train --eval-data photos/wrap/test");
}

/* A class folder whose images are all nested is left out where others have images. */
static void test_data_classed__skips_classes_of_nested_images(void **state)
{
    (void)state;
    static const char *const names[] = {"asters/x/1.jpg", "daisy/1.jpg",
                                        "roses/1.jpg",    "sunflower/nested/x.jpg",
                                        "tulips/1.jpg",   "sunflower/nested/y.jpg"};
    assert_ok(classify(names, 4));
    assert_skipped("; skipped 2 images in nested folders (--recursive includes them); asters, "
                   "sunflower: all their images are in subfolders; use --recursive");
    assert_classes(SX_OK, "daisy roses", 2);
    assert_ok(classify(names + 1, 5));
    assert_skipped("; skipped 2 images in nested folders (--recursive includes them); sunflower: "
                   "all its images are in subfolders; use --recursive");
    assert_int_equal(list.items[2].label, 2);
    assert_classes(SX_OK, "daisy roses tulips", 3);
    assert_ok(classify_recursive(names, 6));
    assert_skipped("");
    assert_classes(SX_OK, "asters daisy roses sunflower tulips", 6);
}

static void test_data_classed__lists_a_tree(void **state)
{
    (void)state;
    char dir[] = "/tmp/sextant-classed-XXXXXX";
    assert_non_null(mkdtemp(dir));
    static const char *const files[] = {"b/2.jpg", "b/1.jpg", "a/c/deep.png", "top.txt",
                                        ".no/1.jpg"};
    char path[256];
    for (size_t i = 0; i < 5; i++) {
        char *parent = NULL;
        snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
        assert_ok(sx_path_dirname(path, &parent));
        assert_ok(sx_dir_create(parent));
        sx_free(parent);
        assert_ok(sx_commit_bytes(path, "x", 1));
    }
    snprintf(path, sizeof(path), "%s/a/c/loop", dir);
    assert_int_equal(symlink("../../a", path), 0);
    sx_paths names = {0};
    assert_ok(sx_list_tree(dir, &names));
    assert_int_equal(names.count, 5);
    assert_string_equal(names.items[0], "a/c/deep.png");
    assert_string_equal(names.items[1], "a/c/loop/");
    assert_string_equal(names.items[2], "b/1.jpg");
    assert_string_equal(names.items[4], "top.txt");
    sx_paths_deinit(&names);
    assert_ok(sx_dir_remove(dir));
    assert_error(sx_list_tree(dir, &names), SX_NOT_FOUND, dir);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_data_classed__folders_become_sorted_classes),
    cmocka_unit_test(test_data_classed__descends_to_the_class_folders),
    cmocka_unit_test(test_data_classed__counts_what_it_skips),
    cmocka_unit_test(test_data_classed__finds_the_level_of_the_classes),
    cmocka_unit_test(test_data_classed__refuses_what_is_no_set_of_class_folders),
    cmocka_unit_test(test_data_classed__names_the_parts_of_a_split_set),
    cmocka_unit_test(test_data_classed__skips_classes_of_nested_images),
    cmocka_unit_test(test_data_classed__lists_a_tree),
};
SX_TEST_MAIN(tests)
