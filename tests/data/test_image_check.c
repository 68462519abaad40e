/* Which errors are an image's own fault, so that others can be used without it. */
#include "harness.h"

#include "base/memory.h"
#include "data/image_check.h"

static void test_data_image_check__memory_is_no_fault(void **state)
{
    (void)state;
    const struct {
        sx_status status;
        bool faulty;
    } rows[] = {
        {sx_error(SX_DATA_LOSS, "JPEG: image is truncated"), true},
        {sx_error(SX_RESOURCE_EXHAUSTED, "image is larger than the limit"), true},
        {sx_error(SX_RESOURCE_EXHAUSTED, "out of memory.png: image is larger than the limit"),
         true},
        {sx_no_memory("reading a JPEG"), false},
        {sx_status_annotate(sx_no_memory("reading a PNG"), __FILE__, __LINE__, "a.png"), false},
        {sx_error(SX_NOT_FOUND, "cannot open a.png: No such file or directory"), true},
        {sx_error(SX_PERMISSION_DENIED, "cannot open a.png: Permission denied"), false},
        {sx_error(SX_INTERNAL, "a bug"), false},
        {SX_OK, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(sx_image_is_faulty(rows[i].status), rows[i].faulty);
        sx_status_free(rows[i].status);
    }
}

/* Where there is no memory for the error either. */
static void test_data_image_check__no_memory_for_the_error(void **state)
{
    (void)state;
    for (long n = 1; n <= 3; n++) {
        sx_alloc_fail_after(n);
        sx_status status = sx_no_memory("reading a JPEG");
        sx_alloc_fail_after(0);
        assert_true(sx_status_is_no_memory(status));
        assert_false(sx_image_is_faulty(status));
        sx_status_free(status);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_data_image_check__memory_is_no_fault),
    cmocka_unit_test(test_data_image_check__no_memory_for_the_error),
};
SX_TEST_MAIN(tests)
