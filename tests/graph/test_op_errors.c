/* What the operators' public functions say when they are misused: what, where, expected, got, what
 * to do. One row per mistake. */
#include "harness.h"

#include <sextant/ops.h>

#include "graph/builder.h"
#include "graph/ops/attrs.h"

typedef struct values {
    sx_value image, filter, matrix, batch_matrix, ints, step, flag, wide;
} values;

typedef void (*mistake)(sx_builder *b, const values *v);

static void conv_of_matrix(sx_builder *b, const values *v)
{
    sx_nn_conv2d(b, v->matrix, v->filter, .padding = SX_SAME);
}
static void conv_channels(sx_builder *b, const values *v)
{
    sx_nn_conv2d(b, v->wide, v->filter, .padding = SX_SAME);
}
static void conv_too_large(sx_builder *b, const values *v)
{
    sx_nn_conv2d(b, v->image, v->filter, .dilations = {5});
}
static void conv_groups_of_channels(sx_builder *b, const values *v)
{
    sx_nn_conv2d(b, v->image, v->filter, .padding = SX_SAME, .groups = 2);
}
/* 4 channels in 4 groups of 1 would be right, but 6 filters cannot be shared by 4 groups. */
static void conv_groups_of_filters(sx_builder *b, const values *v)
{
    sx_value four = sx_slice(b, v->wide, .begin = {0}, .size = {SX_BATCH, 8, 8, 4});
    sx_value filter = sx_input(b, "six", sx_type_of(SX_F32, 3, 3, 1, 6));
    sx_nn_conv2d(b, four, filter, .padding = SX_SAME, .groups = 4);
}
static void slice_past_the_end(sx_builder *b, const values *v)
{
    sx_slice(b, v->matrix, .begin = {0, 4}, .size = {4, 3});
}
static void slice_from_behind(sx_builder *b, const values *v)
{
    sx_slice(b, v->matrix, .begin = {5, 0}, .size = {0, 6});
}
static void slice_overflows(sx_builder *b, const values *v)
{
    sx_slice(b, v->matrix, .begin = {0, 1}, .size = {4, INT64_MAX});
}
static void slice_of_the_batch(sx_builder *b, const values *v)
{
    sx_slice(b, v->batch_matrix, .begin = {1, 0}, .size = {SX_BATCH, 6});
}
static void top_k_of_too_many(sx_builder *b, const values *v)
{
    sx_top_k(b, v->batch_matrix, 7);
}
static void top_k_of_less_than_none(sx_builder *b, const values *v)
{
    sx_top_k(b, v->batch_matrix, -1);
}
static void top_k_of_the_batch(sx_builder *b, const values *v)
{
    sx_top_k(b, v->ints, 1);
}
static void pool_without_window(sx_builder *b, const values *v)
{
    sx_nn_max_pool2d(b, v->image, .padding = SX_SAME);
}
static void matmul_of_vector(sx_builder *b, const values *v)
{
    sx_value vector = sx_reduce_sum(b, v->matrix, .axes = SX_AXES(0));
    sx_matmul(b, vector, v->matrix, .transpose_a = false);
}
static void matmul_inner(sx_builder *b, const values *v)
{
    sx_matmul(b, v->batch_matrix, v->batch_matrix, .transpose_a = false);
}
static void matmul_of_two_batches(sx_builder *b, const values *v)
{
    sx_matmul(b, v->batch_matrix, v->batch_matrix, .transpose_b = true);
}
static void add_multiples_of_the_batch(sx_builder *b, const values *v)
{
    sx_add(b, v->ints, sx_reshape(b, sx_cast(b, v->batch_matrix, SX_I32), -6));
}
static void add_two_batches(sx_builder *b, const values *v)
{
    sx_add(b, sx_reshape(b, v->ints, SX_BATCH, 1), v->ints);
}
static void matmul_of_multiples(sx_builder *b, const values *v)
{
    sx_matmul(b, v->batch_matrix, sx_reshape(b, v->batch_matrix, -2, 3), .transpose_a = true);
}
static void reshape_takes_examples_apart(sx_builder *b, const values *v)
{
    sx_reshape(b, sx_transpose(b, v->batch_matrix, 1, 0), -6);
}
static void reshape_moves_the_batch(sx_builder *b, const values *v)
{
    sx_reshape(b, v->batch_matrix, 2, SX_BATCH, 3);
}
static void conv_of_the_batch_inside(sx_builder *b, const values *v)
{
    sx_nn_conv2d(b, sx_transpose(b, v->image, 1, 0, 2, 3), v->filter, .padding = SX_SAME);
}
static void dropout_of_the_batch_inside(sx_builder *b, const values *v)
{
    sx_value seed = sx_input(b, "seed", sx_type_of(SX_U32, 2));
    sx_nn_dropout(b, sx_transpose(b, v->batch_matrix, 1, 0), seed, v->step, .rate = 0.5);
}
static void concat_multiples(sx_builder *b, const values *v)
{
    sx_concat(b, 1, sx_reshape(b, v->batch_matrix, -2, 3), v->batch_matrix);
}
static void slice_a_multiple(sx_builder *b, const values *v)
{
    sx_slice(b, sx_reshape(b, v->batch_matrix, -2, 3), .begin = {0}, .size = {SX_BATCH, 3});
}
static void tile_too_often(sx_builder *b, const values *v)
{
    sx_tile(b, v->matrix, 1, INT64_MAX / 2);
}
static void tile_by_one_multiple(sx_builder *b, const values *v)
{
    sx_tile(b, v->matrix, 2);
}
static void add_shapes(sx_builder *b, const values *v)
{
    sx_add(b, v->batch_matrix, v->matrix);
}
static void add_dtypes(sx_builder *b, const values *v)
{
    sx_add(b, v->ints, v->step);
}
static void tanh_of_ints(sx_builder *b, const values *v)
{
    sx_tanh(b, v->ints);
}
static void reshape_count(sx_builder *b, const values *v)
{
    sx_reshape(b, v->matrix, 4, 5);
}
static void reshape_loses_batch(sx_builder *b, const values *v)
{
    sx_reshape(b, v->batch_matrix, 4, 5);
}
static void axis_outside(sx_builder *b, const values *v)
{
    sx_reduce_sum(b, v->matrix, .axes = SX_AXES(2));
}
static void axis_below(sx_builder *b, const values *v)
{
    sx_reduce_sum(b, v->matrix, .axes = SX_AXES(-3));
}
static void axis_twice(sx_builder *b, const values *v)
{
    sx_reduce_max(b, v->matrix, .axes = SX_AXES(1, -1));
}
static void argmax_axis(sx_builder *b, const values *v)
{
    sx_argmax(b, v->matrix, .axis = 2);
}
static void argmax_of_the_batch(sx_builder *b, const values *v)
{
    sx_argmax(b, v->batch_matrix, .axis = 0);
}
static void concat_axis(sx_builder *b, const values *v)
{
    sx_concat(b, 3, v->matrix, v->matrix);
}
static void concat_shapes(sx_builder *b, const values *v)
{
    sx_concat(b, 1, v->matrix, v->batch_matrix);
}
static void labels_as_floats(sx_builder *b, const values *v)
{
    sx_nn_sparse_softmax_cross_entropy(b, v->batch_matrix, v->batch_matrix);
}
static void labels_of_another_batch(sx_builder *b, const values *v)
{
    sx_nn_sparse_softmax_cross_entropy(b, v->matrix, v->ints);
}
static void dropout_everything(sx_builder *b, const values *v)
{
    sx_value seed = sx_input(b, "seed", sx_type_of(SX_U32, 2));
    sx_nn_dropout(b, v->image, seed, v->step, .rate = 1);
}
static void concat_the_batch(sx_builder *b, const values *v)
{
    sx_concat(b, 0, v->batch_matrix, v->batch_matrix);
}
static void transpose_to_twice_the_same(sx_builder *b, const values *v)
{
    sx_transpose(b, v->batch_matrix, 1, 1);
}
static void softmax_over_batch(sx_builder *b, const values *v)
{
    sx_softmax(b, v->ints);
}
static void select_on_floats(sx_builder *b, const values *v)
{
    sx_select(b, v->matrix, v->matrix, v->matrix);
}
static void update_of_another_shape(sx_builder *b, const values *v)
{
    sx_value rate = sx_constant_f32(b, 0.1);
    sx_apply_sgd(b, v->matrix, v->filter, rate, v->flag);
}
static void adam_without_decay(sx_builder *b, const values *v)
{
    sx_value m = v->matrix, rate = sx_constant_f32(b, 0.1);
    sx_apply_adam(b, m, m, m, m, rate, v->step, v->flag, .beta1 = 1);
}

static const struct {
    mistake make;
    const char *says;
} mistakes[] = {
    {conv_of_matrix,
     "conv2d \"conv2d\": x float32[4,6] has rank 2, expected [N,H,W,C]; add sx_reshape()"},
    {conv_channels, "x float32[N,8,8,5] has 5 channels, expected 3"},
    {conv_groups_of_channels, "has 3 channels, expected 6: 2 groups of the 3 channels of filter"},
    {conv_groups_of_filters, "has 6 filters, expected a multiple of the 4 groups"},
    {slice_past_the_end,
     "slice \"slice\": begin 4 and size 3 are outside axis 1 of x float32[4,6], which has 6"},
    {slice_from_behind, "begin 5 and size 0 are outside axis 0 of x float32[4,6]"},
    {slice_overflows, "begin 1 and size 9223372036854775807 are outside axis 1"},
    {slice_of_the_batch, "axis 0 of x float32[N,6] is the batch, which cannot be sliced"},
    {top_k_of_too_many, "top_k \"top_k\": k is 7, expected 0 to 6, the size of the last axis"},
    {top_k_of_less_than_none, "k is -1, expected 0 to 6"},
    {top_k_of_the_batch, "x is int32[N], expected [...,C] with C other than the batch"},
    {conv_too_large,
     "conv2d \"conv2d\": a window of height 11 does not fit an image of height 8; use SX_SAME"},
    {pool_without_window,
     "max_pool2d \"max_pool2d\": the window's height is 0, expected 1 to 2^30"},
    {matmul_of_vector, "matmul \"matmul\": a is float32[6] and b is float32[4,6], expected "
                       "[...,M,K] and [...,K,N]; add sx_reshape()"},
    {matmul_inner, "the inner dimensions of a float32[N,6] and b float32[N,6] differ"},
    {matmul_of_two_batches, "matmul \"matmul\": output 0 would be float32[N,N], every example with "
                            "every other; a value has the batch N in one dimension at most"},
    {add_multiples_of_the_batch,
     "shapes int32[N] and int32[6*N] do not broadcast: dimensions, from "
     "the last one, must be equal or 1; reshape the multiple of N"},
    {add_two_batches, "output 0 would be int32[N,N], every example with every other"},
    {matmul_of_multiples,
     "the inner dimensions of a float32[N,6] transposed and b float32[2*N,3] differ"},
    {reshape_takes_examples_apart,
     "cannot reshape float32[6,N] to float32[6*N]: it would take the examples apart: the batch N "
     "merges only with dimensions after it; transpose x so that N comes first"},
    {reshape_moves_the_batch, "cannot reshape float32[N,6] to float32[2,N,3]: it would take"},
    {conv_of_the_batch_inside, "the image's height"},
    {dropout_of_the_batch_inside, "x is float32[6,N], expected the batch N as first dimension"},
    {concat_multiples, "input 1 is float32[N,6], expected the dtype and dimensions of input 0, "
                       "float32[2*N,3], except along axis 1"},
    {slice_a_multiple, "axis 0 of x float32[2*N,3] is the batch, which cannot be sliced: its begin "
                       "must be 0 and its size that of x, got 0 and -1"},
    {tile_too_often, "tile \"tile\": dimension 1 of x float32[4,6], repeated 4611686018427387903 "
                     "times, has more than 2^63 - 1 elements"},
    {tile_by_one_multiple,
     "x is float32[4,6] with 1 multiples; expected one for each of its 2 dimensions, none "
     "negative, and 1 for the batch"},
    {add_shapes, "add \"add\": shapes float32[N,6] and float32[4,6] do not broadcast"},
    {add_dtypes,
     "add \"add\": y is int64[], expected int32; add sx_cast() (in TensorFlow, tf.cast)"},
    {tanh_of_ints,
     "tanh \"tanh\": x is int32[N], expected a float type; add sx_cast() (in TensorFlow, tf.cast)"},
    {reshape_count,
     "reshape \"reshape\": cannot reshape float32[4,6] to float32[4,5]: the numbers of"},
    {reshape_loses_batch, "the batch N must be in both shapes or in neither"},
    {axis_outside, "reduce_sum \"reduce_sum\": axis 2 is out of range for float32[4,6]"},
    {axis_below, "reduce_sum \"reduce_sum\": axis -3 is out of range for float32[4,6]"},
    {axis_twice, "the axes for float32[4,6] are not ascending, or one is given twice"},
    {argmax_axis, "argmax \"argmax\": axis 2 of float32[4,6] is out of range"},
    {argmax_of_the_batch, "axis 0 of float32[N,6] is the batch"},
    {concat_axis, "concat \"concat\": axis 3 of float32[4,6] is out of range"},
    {concat_shapes, "input 1 is float32[N,6], expected the dtype and dimensions of input 0, "
                    "float32[4,6], except along axis 1"},
    {labels_as_floats, "labels is float32[N,6], expected int32 or int64"},
    {labels_of_another_batch, "labels is int32[N], expected int32[4]"},
    {dropout_everything, "dropout \"dropout\": rate is 1, expected [0, 1)"},
    {concat_the_batch, "axis 0 of float32[N,6] is the batch, which cannot be concatenated"},
    {transpose_to_twice_the_same, "perm must be a permutation of the 2 dimensions of x"},
    {softmax_over_batch, "softmax \"softmax\": x is int32[N], expected a float type"},
    {select_on_floats, "select \"select\": the condition is float32[4,6], expected bool"},
    {update_of_another_shape, "the gradient is float32[3,3,3,2], expected float32[4,6]"},
    {adam_without_decay, "expected betas in [0, 1)"},
};

static sx_status make(mistake m)
{
    sx_builder *b;
    sx_graph *g = NULL;
    assert_ok(sx_builder_create(&b));
    values v = {
        .image = sx_input(b, "image", sx_type_of(SX_F32, SX_BATCH, 8, 8, 3)),
        .filter = sx_input(b, "filter", sx_type_of(SX_F32, 3, 3, 3, 2)),
        .matrix = sx_input(b, "matrix", sx_type_of(SX_F32, 4, 6)),
        .batch_matrix = sx_input(b, "batch_matrix", sx_type_of(SX_F32, SX_BATCH, 6)),
        .ints = sx_input(b, "ints", sx_type_of(SX_I32, SX_BATCH)),
        .step = sx_input(b, "step", sx_scalar_type(SX_I64)),
        .flag = sx_input(b, "flag", sx_scalar_type(SX_BOOL)),
        .wide = sx_input(b, "wide", sx_type_of(SX_F32, SX_BATCH, 8, 8, 5)),
    };
    m(b, &v);
    sx_status status = sx_builder_finish(b, &g);
    sx_builder_destroy(b);
    sx_graph_destroy(g);
    return status;
}

static void test_graph_op_errors__say_what_is_wrong_and_where(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        sx_status status = make(mistakes[i].make);
        const char *message = sx_status_message(status);
        if (strstr(message, "test_op_errors.c:") == NULL) {
            fail_msg("no place in \"%s\"", message);
        }
        assert_error(status, SX_INVALID_ARGUMENT, mistakes[i].says);
    }
}

/* After the first error every function returns the empty value and adds nothing. */
static void test_graph_op_errors__later_calls_do_nothing(void **state)
{
    (void)state;
    sx_builder *b;
    sx_graph *g;
    assert_ok(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 6));
    sx_value bad = sx_reshape(b, x, 7);
    assert_false(sx_value_is(bad));
    sx_value y = sx_reduce_mean(b, sx_nn_max_pool2d(b, bad, .window = {2}), .axes = SX_AXES(-1));
    sx_value moments = sx_moments(b, y, .axes = SX_AXES(0));
    sx_value cut = sx_slice(b, moments, .begin = {0, 1}, .size = {0, 1});
    assert_false(sx_value_is(y) || sx_value_is(moments) || sx_value_is(cut));
    assert_false(sx_value_is(sx_argmax(b, y, .axis = -1)) ||
                 sx_value_is(sx_size(b, y, .axes = {0})));
    assert_error(sx_builder_finish(b, &g), SX_INVALID_ARGUMENT, "reshape");
    sx_builder_destroy(b);
}

/* Each operand whose rank an operator asks for, given one dimension more and one less: it is named,
 * with its rank and the form that is expected. The other operands are those of the operator's first
 * sample; an operator checks its operands in order. */
static const struct {
    const sx_op_def *op;
    int input;
    const char *name, *form;
} ranks[] = {
    {&sx_op_conv2d, 0, "x", "[N,H,W,C]"},
    {&sx_op_conv2d, 1, "filter", "[KH,KW,C,O]"},
    {&sx_op_conv2d_grad_filter, 0, "x", "[N,H,W,C]"},
    {&sx_op_conv2d_grad_filter, 1, "dy", "[N,H,W,C]"},
    {&sx_op_conv2d_grad_input, 0, "dy", "[N,H,W,C]"},
    {&sx_op_conv2d_grad_input, 1, "filter", "[KH,KW,C,O]"},
    {&sx_op_max_pool2d, 0, "x", "[N,H,W,C]"},
    {&sx_op_max_pool2d_grad, 0, "x", "[N,H,W,C]"},
    {&sx_op_avg_pool2d, 0, "x", "[N,H,W,C]"},
    {&sx_op_avg_pool2d_grad, 0, "dy", "[N,H,W,C]"},
    {&sx_op_in_top_k, 0, "predictions", "[N,C]"},
    {&sx_op_softmax_cross_entropy, 0, "logits", "[N,C]"},
    {&sx_op_sparse_softmax_cross_entropy, 0, "logits", "[N,C]"},
};

static void test_graph_op_errors__ranks_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
        const sx_op_def *op = ranks[i].op;
        for (int step = -1; step <= 1; step += 2) {
            const sx_op_sample *sample = &op->samples[0];
            sx_type in[SX_SAMPLE_MAX_INPUTS], out[SX_MAX_OUTPUTS];
            char form[SX_TYPE_TEXT], says[256];
            int n_out;
            for (int k = 0; k < sample->n_inputs; k++) {
                in[k] = sample->inputs[k].type;
            }
            sx_type *changed = &in[ranks[i].input];
            changed->rank += step;
            changed->dims[changed->rank - 1] = 3;
            snprintf(says, sizeof(says), "%s %s has rank %d, expected %s", ranks[i].name,
                     sx_type_format(changed, form, sizeof(form)), changed->rank, ranks[i].form);
            assert_error(sx_infer_types(op, sample->attrs, in, sample->n_inputs, out, &n_out),
                         SX_INVALID_ARGUMENT, says);
        }
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_op_errors__ranks_are_named),
    cmocka_unit_test(test_graph_op_errors__say_what_is_wrong_and_where),
    cmocka_unit_test(test_graph_op_errors__later_calls_do_nothing),
};
SX_TEST_MAIN(tests)
