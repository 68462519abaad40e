/* Names of static tables, found without a walk. */
#include "harness.h"

#include "base/name_index.h"

static void test_base_name_index__finds_the_first_of_a_name(void **state)
{
    (void)state;
    static sx_name_index index;
    static char names[1000][16];
    static int values[1000], other;
    assert_null(sx_name_index_find(&index, "n0"));
    for (int i = 0; i < 1000; i++) {
        snprintf(names[i], sizeof(names[i]), "n%d", i);
        sx_name_index_add(&index, names[i], &values[i]);
    }
    sx_name_index_add(&index, "n7", &other);
    for (int i = 0; i < 1000; i++) {
        char copy[16];
        memcpy(copy, names[i], sizeof(copy));
        assert_ptr_equal(sx_name_index_find(&index, copy), &values[i]);
    }
    assert_null(sx_name_index_find(&index, "n1000"));
    assert_null(sx_name_index_find(&index, ""));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_base_name_index__finds_the_first_of_a_name),
};
SX_TEST_MAIN(tests)
