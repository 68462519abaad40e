/* The vector loops between float16 and float32 give base/half.h's numbers, on every instruction
 * set that this processor has: all float16 numbers, and float32 numbers around each of them. */
#include "harness.h"

#include <string.h>

#include "base/half.h"
#include "vecs.h"

enum { COUNT = 1 << 16 };

static void test_backends_half__loops_equal_the_conversions(void **state)
{
    (void)state;
    /* what is added to the bits of a float32 that is a float16: ties and their neighbours */
    static const uint32_t steps[] = {0, 1, 0xfff, 0x1000, 0x1001, 0x1fff};
    uint16_t *half = malloc(COUNT * sizeof(*half)), *back = malloc(COUNT * sizeof(*back));
    float *wide = malloc(COUNT * sizeof(*wide));
    for (size_t v = 0; v < sizeof(vecs) / sizeof(vecs[0]); v++) {
        if (!runs(vecs[v])) {
            continue;
        }
        for (int i = 0; i < COUNT; i++) {
            half[i] = (uint16_t)i;
        }
        vecs[v]->from_f16(half, wide, COUNT);
        for (int i = 0; i < COUNT; i++) {
            if (sx_f32_bits(wide[i]) != sx_f32_bits(sx_f16_to_f32(half[i]))) {
                fail_msg("%s: %04x becomes %a", vecs[v]->name, i, (double)wide[i]);
            }
        }
        for (size_t s = 0; s < sizeof(steps) / sizeof(steps[0]); s++) {
            for (int i = 0; i < COUNT; i++) {
                wide[i] = sx_f32_from_bits(sx_f32_bits(sx_f16_to_f32(half[i])) + steps[s]);
            }
            vecs[v]->to_f16(wide, back, COUNT);
            for (int i = 0; i < COUNT; i++) {
                if (back[i] != sx_f32_to_f16(wide[i])) {
                    fail_msg("%s: %a becomes %04x, expected %04x", vecs[v]->name, (double)wide[i],
                             back[i], sx_f32_to_f16(wide[i]));
                }
            }
        }
        for (int i = 0; i < COUNT; i++) { /* of every exponent */
            wide[i] = sx_f32_from_bits((uint32_t)i << 16 | (uint32_t)i * 40503u % 65536);
        }
        vecs[v]->to_f16(wide, back, COUNT);
        for (int i = 0; i < COUNT; i++) {
            assert_int_equal(back[i], sx_f32_to_f16(wide[i]));
        }
    }
    free(half);
    free(back);
    free(wide);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_half__loops_equal_the_conversions),
};
SX_TEST_MAIN(tests)
