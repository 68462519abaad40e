/* See import_mutants.h: as many as the budget of bad input asks for. */
#include "savedmodel/import_mutants.h"

static void test_savedmodel_import_mutants__a_hundred_thousand_end(void **state)
{
    (void)state;
    check_import_mutants(100000);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_savedmodel_import_mutants__a_hundred_thousand_end),
};
SX_TEST_MAIN(tests)
