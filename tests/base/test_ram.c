#include "harness.h"

#include <unistd.h>

#include "base/memory.h"
#include "base/ram.h"

static void test_base_ram__discards_whole_pages_only(void **state)
{
    (void)state;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = 4 * page;
    uint8_t *data = sx_alloc_aligned(bytes, page);
    assert_non_null(data);
    memset(data, 7, bytes);
    sx_ram_discard(data + 1, bytes - 2); /* the first and the last page are not all its own */
    for (size_t i = 0; i < bytes; i++) {
        assert_int_equal(data[i], i < page || i >= 3 * page ? 7 : 0);
    }
    sx_ram_discard(data + 1, page); /* no whole page */
    assert_int_equal(data[1], 7);
    data[page] = 9;
    assert_int_equal(data[page], 9);
    sx_free_aligned(data);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_base_ram__discards_whole_pages_only),
};
SX_TEST_MAIN(tests)
