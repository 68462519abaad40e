/* The operators' public functions: the operator, inputs in their order, attributes and type that
 * each call makes. One row per call; the texts are worked out from the functions' comments. */
#include "harness.h"

#include <sextant/ops.h>

#include "base/buffer.h"
#include "graph/attr_rows.h"
#include "graph/ir.h"

/* Expects the node of a call on line `line`, as
 * "matmul(a, b) {transpose_b=true} float32[N,2]"; inputs by the names of their arguments, or by
 * the operators that make them; several outputs' types joined by " + ". */
static void check(sx_builder *b, sx_value made, const char *expected, int line)
{
    if (sx_builder_failed(b)) {
        sx_graph *none;
        print_error("line %d: ", line);
        assert_ok(sx_builder_finish(b, &none));
    }
    const sx_node *n = sx_builder_maker(b, made);
    sx_buf text;
    sx_buf_init(&text, 0);
    sx_buf_printf(&text, "%s(", n->op->name);
    for (int i = 0; i < n->n_inputs; i++) {
        const sx_node *maker = sx_builder_maker(b, n->inputs[i]);
        const bool is_arg = strcmp(maker->op->name, "parameter") == 0;
        sx_buf_printf(&text, "%s%s", i == 0 ? "" : ", ", is_arg ? maker->name : maker->op->name);
    }
    sx_buf_putc(&text, ')');
    sx_attrs_print(n->op, n->attrs, NULL, 0, &text);
    for (int k = 0; k < n->n_outputs; k++) {
        const sx_type type = sx_type_of_value(b, sx_node_output(n, k));
        sx_buf_puts(&text, k == 0 ? " " : " + ");
        sx_type_print(&type, &text);
    }
    if (strcmp(sx_buf_text(&text), expected) != 0 || strstr(n->file, "test_ops_api.c") == NULL ||
        n->line < line || n->line > line + 1) { /* + 1: a call of two lines */
        fail_msg("%s:%d made \"%s\", expected line %d to make \"%s\"", n->file, n->line,
                 sx_buf_text(&text), line, expected);
    }
    sx_buf_deinit(&text);
}
#define CHECK(call, expected) check(b, (call), (expected), __LINE__)

/* A builder with the input x [N,6]. */
static sx_builder *begin(sx_value *x)
{
    sx_builder *b;
    assert_ok(sx_builder_create(&b));
    *x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 6));
    return b;
}

static void test_graph_ops_api__of_one_and_two_values(void **state)
{
    (void)state;
    sx_value x;
    sx_builder *b = begin(&x);
    sx_value y = sx_input(b, "y", sx_type_of(SX_F32, 6));
    sx_value p = sx_input(b, "p", sx_scalar_type(SX_BOOL)),
             q = sx_input(b, "q", sx_scalar_type(SX_BOOL));
    CHECK(sx_identity(b, x), "identity(x) float32[N,6]");
    CHECK(sx_stop_gradient(b, x), "stop_gradient(x) float32[N,6]");
    CHECK(sx_neg(b, x), "neg(x) float32[N,6]");
    CHECK(sx_abs(b, x), "abs(x) float32[N,6]");
    CHECK(sx_sign(b, x), "sign(x) float32[N,6]");
    CHECK(sx_square(b, x), "square(x) float32[N,6]");
    CHECK(sx_sqrt(b, x), "sqrt(x) float32[N,6]");
    CHECK(sx_rsqrt(b, x), "rsqrt(x) float32[N,6]");
    CHECK(sx_exp(b, x), "exp(x) float32[N,6]");
    CHECK(sx_ln(b, x), "log(x) float32[N,6]");
    CHECK(sx_log1p(b, x), "log1p(x) float32[N,6]");
    CHECK(sx_cos(b, x), "cos(x) float32[N,6]");
    CHECK(sx_floor(b, x), "floor(x) float32[N,6]");
    CHECK(sx_tanh(b, x), "tanh(x) float32[N,6]");
    CHECK(sx_sigmoid(b, x), "sigmoid(x) float32[N,6]");
    CHECK(sx_relu(b, x), "relu(x) float32[N,6]");
    CHECK(sx_relu6(b, x), "relu6(x) float32[N,6]");
    CHECK(sx_softsign(b, x), "softsign(x) float32[N,6]");
    CHECK(sx_swish(b, x), "swish(x) float32[N,6]");
    CHECK(sx_softmax(b, x), "softmax(x) float32[N,6]");
    CHECK(sx_log_softmax(b, x), "log_softmax(x) float32[N,6]");
    CHECK(sx_logical_not(b, p), "logical_not(p) bool[]");
    CHECK(sx_cast(b, x, SX_BF16), "cast(x) {dtype=bfloat16} bfloat16[N,6]");
    CHECK(sx_leaky_relu(b, x, 0.25), "leaky_relu(x) {alpha=0.25} float32[N,6]");
    CHECK(sx_elu(b, x, 0.5), "elu(x) {alpha=0.5} float32[N,6]");
    CHECK(sx_clip(b, x, -2, 3), "clip(x) {low=-2, high=3} float32[N,6]");
    CHECK(sx_add(b, x, y), "add(x, y) float32[N,6]");
    CHECK(sx_sub(b, y, x), "sub(y, x) float32[N,6]");
    CHECK(sx_mul(b, x, y), "mul(x, y) float32[N,6]");
    CHECK(sx_div(b, y, x), "div(y, x) float32[N,6]");
    CHECK(sx_pow(b, x, y), "pow(x, y) float32[N,6]");
    CHECK(sx_atan2(b, y, x), "atan2(y, x) float32[N,6]");
    CHECK(sx_maximum(b, x, y), "maximum(x, y) float32[N,6]");
    CHECK(sx_minimum(b, y, x), "minimum(y, x) float32[N,6]");
    CHECK(sx_equal(b, x, y), "equal(x, y) bool[N,6]");
    CHECK(sx_less(b, y, x), "less(y, x) bool[N,6]");
    CHECK(sx_greater(b, x, y), "greater(x, y) bool[N,6]");
    CHECK(sx_logical_and(b, q, p), "logical_and(q, p) bool[]");
    CHECK(sx_select(b, p, x, x), "select(p, x, x) float32[N,6]");
    CHECK(sx_bias_add(b, x, y), "bias_add(x, y) float32[N,6]");
    sx_builder_destroy(b);
}

static void test_graph_ops_api__shapes_and_reductions(void **state)
{
    (void)state;
    sx_value x;
    sx_builder *b = begin(&x);
    sx_value z = sx_input(b, "z", sx_type_of(SX_F32, SX_BATCH, 3, 4, 5));
    sx_value v = sx_input(b, "v", sx_type_of(SX_F32, 2, 3));
    CHECK(sx_reshape(b, x, SX_BATCH, 2, 3), "reshape(x) {shape=[-1,2,3]} float32[N,2,3]");
    CHECK(sx_broadcast_to(b, v, 4, 2, 3), "broadcast_to(v) {shape=[4,2,3]} float32[4,2,3]");
    CHECK(sx_transpose(b, z, 0, 3, 1, 2), "transpose(z) {perm=[0,3,1,2]} float32[N,5,3,4]");
    CHECK(sx_concat(b, -1, x, x, x), "concat(x, x, x) {axis=1} float32[N,18]");
    CHECK(sx_slice(b, z, .begin = {0, 1, 2}, .size = {SX_BATCH, 2, 1, 5}),
          "slice(z) {begin=[0,1,2,0], size=[-1,2,1,5]} float32[N,2,1,5]");
    CHECK(sx_pad(b, x, .before = {0, 1}, .after = {0, 2}, .value = 0.5),
          "pad(x) {before=[0,1], after=[0,2], value=0.5} float32[N,9]");
    CHECK(sx_reduce_sum(b, z, .keep_dims = true),
          "reduce_sum(z) {axes=[0,1,2,3], keep_dims=true} float32[1,1,1,1]");
    CHECK(sx_reduce_sum(b, z, .axes = SX_AXES(-1, 2, 1)),
          "reduce_sum(z) {axes=[1,2,3]} float32[N]");
    CHECK(sx_reduce_sum(b, z, .axes = SX_AXES(2, 1)), "reduce_sum(z) {axes=[1,2]} float32[N,5]");
    CHECK(sx_reduce_max(b, z, .axes = SX_AXES(3, 1), .keep_dims = true),
          "reduce_max(z) {axes=[1,3], keep_dims=true} float32[N,1,4,1]");
    CHECK(sx_reduce_mean(b, z, .axes = SX_AXES(1, 0)), "div(reduce_sum, size) float32[4,5]");
    CHECK(sx_size(b, z, .axes = SX_AXES(2, -3)),
          "constant() {value=tensor(float32[] \"00004041\")} float32[]"); /* 12 */
    CHECK(sx_size(b, z, .axes = SX_AXES(2, -4)), "size(z) {axes=[0,2]} float32[]");
    CHECK(sx_moments(b, z, .axes = SX_AXES(2, 1, 0)),
          "moments(z) {axes=[0,1,2]} float32[5] + float32[5]");
    CHECK(sx_argmax(b, z, .axis = -2), "argmax(z) {axis=2, dtype=int32} int32[N,3,5]");
    CHECK(sx_argmax(b, z, .axis = 1, .dtype = SX_I64),
          "argmax(z) {axis=1, dtype=int64} int64[N,4,5]");
    CHECK(sx_all_finite(b, ((const sx_value[]){v, x, z}), 3), "all_finite(v, x, z) bool[]");
    sx_value top = sx_argmax(b, x, .axis = 1);
    CHECK(sx_one_hot(b, top, .depth = 6),
          "one_hot(argmax) {depth=6, on=1, dtype=float32} float32[N,6]");
    CHECK(
        sx_one_hot(b, sx_argmax(b, x, .axis = 1), .depth = 4, .on = 2, .off = -1, .dtype = SX_I32),
        "one_hot(argmax) {depth=4, on=2, off=-1, dtype=int32} int32[N,4]");
    CHECK(sx_gather(b, v, top), "gather(v, argmax) float32[N,3]");
    CHECK(sx_iota(b, sx_type_of(SX_I32, 2, 3), 1),
          "iota() {shape=[2,3], axis=1, dtype=int32} int32[2,3]");
    CHECK(sx_top_k(b, x, 2), "top_k(x) {k=2} float32[N,2] + int32[N,2]");
    CHECK(sx_in_top_k(b, x, top, 3), "in_top_k(x, argmax) {k=3} bool[N]");
    sx_builder_destroy(b);
}

static void test_graph_ops_api__layers(void **state)
{
    (void)state;
    sx_value x;
    sx_builder *b = begin(&x);
    sx_value m = sx_input(b, "m", sx_type_of(SX_F32, 6, 2)),
             n = sx_input(b, "n", sx_type_of(SX_F32, 2, 6));
    sx_value t = sx_input(b, "t", sx_type_of(SX_F32, 6, SX_BATCH));
    sx_value image = sx_input(b, "image", sx_type_of(SX_F32, SX_BATCH, 8, 8, 4));
    sx_value filter = sx_input(b, "filter", sx_type_of(SX_F32, 3, 3, 4, 6));
    sx_value narrow = sx_input(b, "narrow", sx_type_of(SX_F32, 3, 3, 2, 6));
    sx_value c[4];
    for (int i = 0; i < 4; i++) {
        c[i] = sx_input(b, (const char *[]){"c0", "c1", "c2", "c3"}[i], sx_type_of(SX_F32, 4));
    }
    sx_value labels = sx_input(b, "labels", sx_type_of(SX_I32, SX_BATCH));
    sx_value seed = sx_input(b, "seed", sx_type_of(SX_U32, 2)),
             step = sx_input(b, "step", sx_scalar_type(SX_I64));
    CHECK(sx_matmul(b, x, m, .transpose_a = false), "matmul(x, m) float32[N,2]");
    CHECK(sx_matmul(b, x, n, .transpose_b = true), "matmul(x, n) {transpose_b=true} float32[N,2]");
    CHECK(sx_matmul(b, t, m, .transpose_a = true), "matmul(t, m) {transpose_a=true} float32[N,2]");
    CHECK(sx_nn_conv2d(b, image, filter, .padding = SX_SAME),
          "conv2d(image, filter) {strides=[1,1], dilations=[1,1], padding=same, groups=1} "
          "float32[N,8,8,6]");
    CHECK(sx_nn_conv2d(b, image, narrow, .strides = {2, 1}, .dilations = {1, 2}, .groups = 2,
                       .padding = SX_EXPLICIT, .pads = {1, 0, 2, 3}),
          "conv2d(image, narrow) {strides=[2,1], dilations=[1,2], padding=explicit, "
          "pads=[1,0,2,3], groups=2} float32[N,4,9,6]");
    CHECK(sx_nn_conv2d(b, image, filter, .strides = {3}),
          "conv2d(image, filter) {strides=[3,3], dilations=[1,1], groups=1} float32[N,2,2,6]");
    CHECK(sx_nn_max_pool2d(b, image, .window = {3, 2}),
          "max_pool2d(image) {window=[3,2], strides=[3,2]} float32[N,2,4,4]");
    CHECK(sx_nn_avg_pool2d(b, image, .window = {3}, .strides = {2, 1}, .padding = SX_SAME),
          "avg_pool2d(image) {window=[3,3], strides=[2,1], padding=same} float32[N,4,8,4]");
    CHECK(sx_nn_batch_norm(b, image, c[0], c[1], c[2], c[3], 1e-3),
          "batch_norm(image, c0, c1, c2, c3) {epsilon=0.001} float32[N,8,8,4]");
    CHECK(sx_nn_batch_norm_train(b, image, c[3], c[2], c[1], c[0], 0.5),
          "batch_norm_train(image, c3, c2, c1, c0) {epsilon=0.5} float32[N,8,8,4]");
    CHECK(sx_nn_dropout(b, x, seed, step, .rate = 0.25, .key = 0x1234567890abcdef),
          "dropout(x, seed, step) {rate=0.25, key_hi=305419896, key_lo=2427178479} float32[N,6]");
    CHECK(sx_nn_sparse_softmax_cross_entropy(b, x, labels),
          "sparse_softmax_cross_entropy(x, labels) float32[N] + float32[N,6]");
    CHECK(sx_nn_softmax_cross_entropy(b, x, sx_one_hot(b, labels, .depth = 6)),
          "softmax_cross_entropy(x, one_hot) float32[N] + float32[N,6]");
    CHECK(sx_nn_sigmoid_cross_entropy(b, x, sx_one_hot(b, labels, .depth = 6)),
          "sigmoid_cross_entropy(x, one_hot) float32[N,6]");
    sx_builder_destroy(b);
}

static void test_graph_ops_api__optimizers(void **state)
{
    (void)state;
    sx_builder *b;
    assert_ok(sx_builder_create(&b));
    sx_value w[6];
    for (int i = 0; i < 6; i++) {
        w[i] = sx_input(b, (const char *[]){"var", "a", "b", "c", "g", "other"}[i],
                        sx_type_of(SX_F32, 3));
    }
    sx_value lr = sx_input(b, "lr", sx_scalar_type(SX_F32)),
             ok = sx_input(b, "ok", sx_scalar_type(SX_BOOL));
    sx_value step = sx_input(b, "step", sx_scalar_type(SX_I64)), g = w[4];
    CHECK(sx_apply_sgd(b, w[0], g, lr, ok), "apply_sgd(var, g, lr, ok) float32[3]");
    CHECK(sx_apply_momentum(b, w[0], w[1], g, lr, ok, .momentum = 0.5),
          "apply_momentum(var, a, g, lr, ok) {momentum=0.5} float32[3] + float32[3]");
    CHECK(sx_apply_momentum(b, w[0], w[1], g, lr, ok, .momentum = 0.75, .nesterov = true),
          "apply_momentum(var, a, g, lr, ok) {momentum=0.75, nesterov=true} float32[3] + "
          "float32[3]");
    CHECK(sx_apply_rmsprop(b, w[0], w[1], w[2], w[3], g, lr, ok, .rho = 0.5, .epsilon = 0.25),
          "apply_rmsprop(var, a, g, lr, ok) {rho=0.5, epsilon=0.25} float32[3] + float32[3]");
    CHECK(sx_apply_rmsprop(b, w[0], w[1], w[2], w[3], g, lr, ok, .rho = 0.5, .centered = true),
          "apply_rmsprop(var, a, b, g, lr, ok) {rho=0.5, centered=true} float32[3] + float32[3] + "
          "float32[3]");
    CHECK(sx_apply_rmsprop(b, w[0], w[1], w[2], w[3], g, lr, ok, .rho = 0.5, .momentum = 0.75),
          "apply_rmsprop(var, a, c, g, lr, ok) {rho=0.5, momentum=0.75} float32[3] + float32[3] + "
          "float32[3]");
    CHECK(sx_apply_rmsprop(b, w[0], w[1], w[2], w[3], g, lr, ok, .rho = 0.5, .momentum = 0.75,
                           .centered = true),
          "apply_rmsprop(var, a, b, c, g, lr, ok) {rho=0.5, momentum=0.75, centered=true} "
          "float32[3] + float32[3] + float32[3] + float32[3]");
    CHECK(sx_apply_adam(b, w[0], w[1], w[2], g, lr, step, ok, .beta1 = 0.5, .beta2 = 0.75,
                        .epsilon = 0.25),
          "apply_adam(var, a, b, g, lr, step, ok) {beta1=0.5, beta2=0.75, epsilon=0.25} "
          "float32[3] + float32[3] + float32[3]");
    sx_builder_destroy(b);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_graph_ops_api__of_one_and_two_values),
    cmocka_unit_test(test_graph_ops_api__shapes_and_reductions),
    cmocka_unit_test(test_graph_ops_api__layers),
    cmocka_unit_test(test_graph_ops_api__optimizers),
};
SX_TEST_MAIN(tests)
