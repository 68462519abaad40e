/* Special functions where a formula loses digits, against mpmath with 30 digits. The rest is
 * compared with TensorFlow (interop/test_numeric_ops.py). */
#include "harness.h"

#include "graph/special_functions.h"

static void test_graph_special_functions__digamma_beside_its_poles(void **state)
{
    (void)state;
    static const double values[][2] = {
        {-1e-300, 9.9999999999999997494e+299}, {-1e-20, 1.0000000000000000548e+20},
        {-1e-10, 9999999999.4227839706},       {-1e-5, 99999.422767885629412},
        {-0.5, 0.036489973978576520559},       {-2.0000000001, 9999999173.5191428036},
    };
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        const double right = values[i][1], y = sx_digamma(values[i][0]);
        if (!(fabs(y - right) <= 1e-14 * fabs(right) + 1e-15)) {
            fail_msg("digamma(%g) is %.17g, not %.17g", values[i][0], y, right);
        }
    }
    for (int n = 0; n > -3; n--) {
        assert_true(isnan(sx_digamma(n)));
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_special_functions__digamma_beside_its_poles),
};
SX_TEST_MAIN(tests)
