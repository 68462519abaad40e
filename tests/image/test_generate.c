/* The drawn data sets. */
#include "image/samples.h"

#include "base/map.h"
#include "image/generate.h"

enum { DIGIT = SX_DIGITS_SIDE * SX_DIGITS_SIDE, SIDE = 48, FLOWER = SIDE * SIDE * 3 };

/* These hashes hold on every machine and compiler: models trained on the sets depend on them. */
static void test_image_generate__pixels_are_fixed(void **state)
{
    (void)state;
    static uint8_t digits[100][DIGIT + 1], flowers[20][FLOWER + 1];
    int label;
    for (int i = 0; i < 100; i++) {
        sx_digits_draw(7, (uint64_t)i, digits[i], &label);
        digits[i][DIGIT] = (uint8_t)label;
    }
    for (int i = 0; i < 20; i++) {
        assert_ok(sx_flowers_draw(7, (uint64_t)i, SIDE, flowers[i], &label));
        flowers[i][FLOWER] = (uint8_t)label;
    }
    char text[64];
    snprintf(text, sizeof(text), "%016llx %016llx",
             (unsigned long long)sx_hash64(digits, sizeof(digits)),
             (unsigned long long)sx_hash64(flowers, sizeof(flowers)));
    assert_string_equal(text, "57315ad32a8c4bbf d011402baa8490b4");
}

static void test_image_generate__seed_and_index_matter(void **state)
{
    (void)state;
    static uint8_t images[3][DIGIT], flowers[3][FLOWER];
    int label;
    sx_digits_draw(1, 5, images[0], &label);
    sx_digits_draw(2, 5, images[1], &label);
    sx_digits_draw(1, 6, images[2], &label);
    assert_ok(sx_flowers_draw(1, 5, SIDE, flowers[0], &label));
    assert_ok(sx_flowers_draw(2, 5, SIDE, flowers[1], &label));
    assert_ok(sx_flowers_draw(1, 6, SIDE, flowers[2], &label));
    for (int i = 0; i < 3; i++) {
        assert_memory_not_equal(images[i], images[(i + 1) % 3], DIGIT);
        assert_memory_not_equal(flowers[i], flowers[(i + 1) % 3], FLOWER);
    }
}

/* Each class as often as the others, within five standard deviations. */
static void test_image_generate__labels_are_even(void **state)
{
    (void)state;
    int digits[SX_DIGITS_CLASSES] = {0}, flowers[SX_FLOWERS_CLASSES] = {0}, label;
    static uint8_t image[SX_FLOWERS_MIN_SIDE * SX_FLOWERS_MIN_SIDE * 3 + DIGIT];
    for (uint64_t i = 0; i < 2000; i++) {
        sx_digits_draw(3, i, image, &label);
        digits[label]++;
        assert_ok(sx_flowers_draw(3, i, SX_FLOWERS_MIN_SIDE, image, &label));
        flowers[label]++;
    }
    for (int i = 0; i < SX_DIGITS_CLASSES; i++) {
        assert_in_range(digits[i], 200 - 67, 200 + 67);
    }
    for (int i = 0; i < SX_FLOWERS_CLASSES; i++) {
        assert_in_range(flowers[i], 400 - 90, 400 + 90);
    }
}

/* The nearest of ten mean images already tells most digits: labels belong to the drawings. (A small
 * convolutional network reaches more than 99 %.) */
static void test_image_generate__digits_can_be_told(void **state)
{
    (void)state;
    static double means[10][DIGIT];
    int counts[10] = {0}, right = 0, label;
    uint8_t image[DIGIT];
    for (uint64_t i = 0; i < 2000; i++) {
        sx_digits_draw(11, i, image, &label);
        counts[label]++;
        for (int p = 0; p < DIGIT; p++) {
            means[label][p] += image[p];
        }
    }
    for (uint64_t i = 2000; i < 2500; i++) {
        sx_digits_draw(11, i, image, &label);
        int best = -1;
        double nearest = 1e30;
        for (int k = 0; k < 10; k++) {
            double distance = 0;
            for (int p = 0; p < DIGIT; p++) {
                double d = image[p] - means[k][p] / counts[k];
                distance += d * d;
            }
            best = distance < nearest ? k : best;
            nearest = distance < nearest ? distance : nearest;
        }
        right += best == label;
    }
    assert_true(right > 350); /* of 500; by chance 50 */
    assert_true(right < 500); /* nor so easy that there is nothing to learn */
}

static void test_image_generate__names_and_limits(void **state)
{
    (void)state;
    static uint8_t image[64];
    int label = -7;
    assert_string_equal(sx_flowers_class_name(0), "daisy");
    assert_string_equal(sx_flowers_class_name(4), "tulips");
    assert_null(sx_flowers_class_name(5));
    assert_null(sx_flowers_class_name(-1));
    assert_error(sx_flowers_draw(1, 1, SX_FLOWERS_MIN_SIDE - 1, image, &label), SX_INVALID_ARGUMENT,
                 "got 15");
    assert_error(sx_flowers_draw(1, 1, SX_FLOWERS_MAX_SIDE + 1, image, &label), SX_INVALID_ARGUMENT,
                 "got 1025");
    assert_int_equal(label, -7);
}

static void test_image_generate__the_largest_and_the_smallest(void **state)
{
    (void)state;
    const int sides[] = {SX_FLOWERS_MIN_SIDE, SX_FLOWERS_MAX_SIDE};
    for (int i = 0; i < 2; i++) {
        const size_t bytes = (size_t)sides[i] * (size_t)sides[i] * 3;
        uint8_t *image = calloc(bytes + 1, 1);
        int label = -7;
        assert_ok(sx_flowers_draw(1, 1, sides[i], image, &label));
        assert_in_range(label, 0, SX_FLOWERS_CLASSES - 1);
        assert_true(image[bytes - 1] != 0 || image[bytes - 2] != 0 || image[bytes - 3] != 0);
        assert_int_equal(image[bytes], 0);
        free(image);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_image_generate__pixels_are_fixed),
    cmocka_unit_test(test_image_generate__seed_and_index_matter),
    cmocka_unit_test(test_image_generate__labels_are_even),
    cmocka_unit_test(test_image_generate__digits_can_be_told),
    cmocka_unit_test(test_image_generate__names_and_limits),
    cmocka_unit_test(test_image_generate__the_largest_and_the_smallest),
};
SX_TEST_MAIN(tests)
