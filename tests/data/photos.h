/* A folder of class folders for tests: <dir>/photos/{ants,bees,cats}/<i>.png, RGB, 8 x 6 pixels,
 * image i of a class filled with the values 10 i + class. */
#ifndef SX_TESTS_DATA_PHOTOS_H
#define SX_TESTS_DATA_PHOTOS_H

#include "harness.h"

#include <unistd.h>

#include "base/memory.h"
#include "image/encode.h"
#include "io/commit.h"
#include "io/path.h"

enum { PHOTO_HEIGHT = 6, PHOTO_WIDTH = 8, PHOTO_CLASSES = 3 };
static const char *const photo_classes[PHOTO_CLASSES] = {"ants", "bees", "cats"};
static char photo_dir[64];

static inline void write_file(const char *path, const void *data, size_t size)
{
    char *parent = NULL;
    assert_ok(sx_path_dirname(path, &parent));
    assert_ok(sx_dir_create(parent));
    sx_free(parent);
    assert_ok(sx_commit_bytes(path, data, size));
}

static inline void write_photo(const char *path, int value)
{
    uint8_t pixels[PHOTO_HEIGHT * PHOTO_WIDTH * 3];
    sx_buf png;
    memset(pixels, value, sizeof(pixels));
    sx_image image = sx_image_view(pixels, PHOTO_HEIGHT, PHOTO_WIDTH, 3);
    sx_buf_init(&png, 0);
    assert_ok(sx_png_encode(&image, &png));
    write_file(path, png.data, png.size);
    sx_buf_deinit(&png);
}

static inline void write_photos(int per_class)
{
    char path[256];
    for (int c = 0; c < PHOTO_CLASSES; c++) {
        for (int i = 0; i < per_class; i++) {
            snprintf(path, sizeof(path), "%s/photos/%s/%d.png", photo_dir, photo_classes[c], i);
            write_photo(path, 10 * i + c);
        }
    }
}

static int make_photo_dir(void **state)
{
    (void)state;
    snprintf(photo_dir, sizeof(photo_dir), "/tmp/sextant-photos-XXXXXX");
    return mkdtemp(photo_dir) == NULL;
}

static int remove_photo_dir(void **state)
{
    (void)state;
    sx_status status = sx_dir_remove(photo_dir);
    sx_status_free(status);
    return 0;
}

/* "<photo_dir>/<name>", in one of four turns of static memory. */
static inline const char *in_dir(const char *name)
{
    static char paths[4][256];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(paths[turn], sizeof(paths[turn]), "%s/%s", photo_dir, name);
    return paths[turn];
}

#define photo_test(f) cmocka_unit_test_setup_teardown(f, make_photo_dir, remove_photo_dir)

#endif
