/* See import_mutants.h; tests/savedmodel/long_import_mutants.c has more. */
#include "savedmodel/import_mutants.h"

static void test_savedmodel_import_mutants__end_with_results_or_errors(void **state)
{
    (void)state;
    check_import_mutants(2000);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_savedmodel_import_mutants__end_with_results_or_errors),
};
SX_TEST_MAIN(tests)
