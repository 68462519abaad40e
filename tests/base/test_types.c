#include "harness.h"

#include <sextant/types.h>

static void test_base_types__dtype_table(void **state)
{
    (void)state;
    assert_int_equal(SX_F32, 1);
    assert_int_equal(SX_I64, 9);
    assert_string_equal(sx_dtype_name(SX_BF16), "bfloat16");
    assert_int_equal(sx_dtype_bytes(SX_BF16), 2);
    assert_int_equal(sx_dtype_bytes(SX_STRING), 0);
    assert_string_equal(sx_dtype_numpy(SX_U8), "|u1");
    assert_string_equal(sx_dtype_name((sx_dtype)99), "?");
    sx_dtype dtype = SX_DTYPE_NONE;
    assert_true(sx_dtype_parse("int64", &dtype));
    assert_int_equal(dtype, SX_I64);
    assert_false(sx_dtype_parse("complex64", &dtype));
    assert_int_equal(dtype, SX_I64);
    assert_true(sx_dtype_is_float(SX_F16) && !sx_dtype_is_float(SX_I32));
    assert_true(sx_dtype_is_integer(SX_U8) && !sx_dtype_is_integer(SX_BOOL));
    assert_false(sx_dtype_is_integer(SX_STRING));
}

static void test_base_types__equality(void **state)
{
    (void)state;
    sx_type a = sx_type_of(SX_F32, SX_BATCH, 28, 28, 1);
    sx_type b = sx_type_of(SX_F32, SX_BATCH, 28, 28, 1);
    assert_true(sx_type_equal(&a, &b));
    b.dims[3] = 3;
    assert_false(sx_type_equal(&a, &b));
    b = sx_type_of(SX_F64, SX_BATCH, 28, 28, 1);
    assert_false(sx_type_equal(&a, &b));
    b = sx_type_of(SX_F32, SX_BATCH, 28, 28);
    assert_false(sx_type_equal(&a, &b));
    assert_true(sx_type_has_batch(&a) && !sx_type_is_static(&a));
}

static void test_base_types__counts_without_wrapping(void **state)
{
    (void)state;
    sx_type scalar = sx_scalar_type(SX_F64);
    assert_int_equal(sx_type_elems(&scalar), 1);
    assert_int_equal(sx_type_bytes(&scalar), 8);
    sx_type batch = sx_type_of(SX_F32, SX_BATCH, 3);
    assert_int_equal(sx_type_elems(&batch), -1);
    sx_type huge = sx_type_of(SX_F32, INT64_MAX, 2);
    assert_int_equal(sx_type_elems(&huge), -1);
    sx_type wide = sx_type_of(SX_F32, INT64_MAX / 2);
    assert_int_equal(sx_type_elems(&wide), INT64_MAX / 2);
    assert_int_equal(sx_type_bytes(&wide), -1);
    sx_type empty = sx_type_of(SX_F32, INT64_MAX, 4, 0);
    assert_int_equal(sx_type_elems(&empty), 0);
    sx_type strings = sx_type_of(SX_STRING, 4);
    assert_int_equal(sx_type_elems(&strings), 4);
    assert_int_equal(sx_type_bytes(&strings), -1);
}

static void test_base_types__refuses_a_rank_out_of_range(void **state)
{
    (void)state;
    int64_t dims[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    assert_int_equal(sx_type_make(SX_F32, 9, dims).dtype, SX_DTYPE_NONE);
    assert_int_equal(sx_type_make(SX_F32, -1, dims).dtype, SX_DTYPE_NONE);
    assert_int_equal(sx_type_make(SX_F32, 8, dims).rank, 8);
    char text[SX_TYPE_TEXT];
    const sx_type wide = {.dtype = SX_F32, .rank = 100}, below = {.dtype = SX_F32, .rank = -7};
    assert_false(sx_type_is_static(&wide) || sx_type_is_static(&below));
    assert_string_equal(sx_type_format(&wide, text, sizeof(text)), "float32[rank 100]");
}

static void test_base_types__formats(void **state)
{
    (void)state;
    char text[SX_TYPE_TEXT];
    sx_type type = sx_type_of(SX_F32, SX_BATCH, 28, SX_UNKNOWN_DIM, 1);
    assert_string_equal(sx_type_format(&type, text, sizeof(text)), "float32[N,28,?,1]");
    type = sx_scalar_type(SX_I64);
    assert_string_equal(sx_type_format(&type, text, sizeof(text)), "int64[]");
    assert_string_equal(sx_type_format(&type, text, 4), "int");
    type = sx_type_of(SX_F32, -6, SX_UNKNOWN_DIM + 1, SX_UNKNOWN_DIM + 8, 0);
    assert_string_equal(sx_type_format(&type, text, sizeof(text)), "float32[6*N,?0,?7,0]");
    type = (sx_type){.dtype = SX_F16, .rank = SX_UNKNOWN_RANK};
    assert_string_equal(sx_type_format(&type, text, sizeof(text)), "float16[*]");
    const int64_t longest = SX_UNKNOWN_DIM + SX_MAX_SYMBOLS + 1;
    type =
        sx_type_of(SX_BF16, longest, longest, longest, longest, longest, longest, longest, longest);
    sx_type_format(&type, text, sizeof(text));
    assert_int_equal(text[strlen(text) - 1], ']');
}

static void test_base_types__tells_the_kinds_of_dimensions_apart(void **state)
{
    (void)state;
    static const struct {
        int64_t dim;
        bool batch, symbol;
    } rows[] = {
        {0, false, false},
        {7, false, false},
        {INT64_MAX, false, false},
        {SX_BATCH, true, false},
        {-2, true, false},
        {SX_UNKNOWN_DIM + SX_MAX_SYMBOLS + 1, true, false},
        {SX_UNKNOWN_DIM + SX_MAX_SYMBOLS, false, true},
        {SX_UNKNOWN_DIM + 1, false, true},
        {SX_UNKNOWN_DIM, false, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        sx_type type = sx_type_of(SX_F32, 3, rows[i].dim);
        assert_int_equal(sx_dim_is_batch(rows[i].dim), rows[i].batch);
        assert_int_equal(sx_type_has_batch(&type), rows[i].batch);
        assert_int_equal(sx_dim_is_symbol(rows[i].dim), rows[i].symbol);
        assert_int_equal(sx_type_is_static(&type), rows[i].dim >= 0);
    }
    sx_type no_rank = {.dtype = SX_F32, .rank = SX_UNKNOWN_RANK};
    assert_false(sx_type_is_static(&no_rank) || sx_type_has_batch(&no_rank));
    assert_int_equal(sx_type_elems(&no_rank), -1);
    assert_int_equal(sx_type_bytes(&no_rank), -1);
}

static void test_base_types__puts_the_batch_in(void **state)
{
    (void)state;
    sx_type type = sx_type_with_batch(sx_type_of(SX_F32, SX_BATCH, 4, -3, SX_UNKNOWN_DIM), 5);
    sx_type want = sx_type_of(SX_F32, 5, 4, 15, SX_UNKNOWN_DIM);
    assert_true(sx_type_equal(&type, &want));
    type = sx_type_with_batch(sx_type_of(SX_F32, -4, SX_BATCH), INT64_MAX / 2);
    want = sx_type_of(SX_F32, SX_UNKNOWN_DIM, INT64_MAX / 2);
    assert_true(sx_type_equal(&type, &want));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_base_types__dtype_table),
    cmocka_unit_test(test_base_types__equality),
    cmocka_unit_test(test_base_types__counts_without_wrapping),
    cmocka_unit_test(test_base_types__refuses_a_rank_out_of_range),
    cmocka_unit_test(test_base_types__formats),
    cmocka_unit_test(test_base_types__tells_the_kinds_of_dimensions_apart),
    cmocka_unit_test(test_base_types__puts_the_batch_in),
};

SX_TEST_MAIN(tests)
