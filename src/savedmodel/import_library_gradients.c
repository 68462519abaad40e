/* Imports the operators that TensorFlow's gradient functions are made of: a function that was
 * exported with its gradient inside has them beside the operators of the forward pass. */
#include "savedmodel/import_library_ops.h"

#include <string.h>

/* The node's first two inputs. */
static sx_status two_operands(const sx_tf_op_node *x, sx_value out[2])
{
    SX_TRY(sx_tf_operand(x, 0, &out[0]));
    return sx_tf_operand(x, 1, &out[1]);
}

/* A number of the first input's dtype. */
static sx_status number_like(const sx_tf_op_node *x, double value, sx_value *out)
{
    return sx_tf_number(x, x->tf.head.types[0].dtype, value, out);
}

/* ---- Elementwise ---- */

/* y, dy: dy (1 - y^2) */
static sx_status import_tanh(sx_tf_op_node *x)
{
    sx_value in[2], one = SX_NO_VALUE, y = SX_NO_VALUE;
    SX_TRY(two_operands(x, in));
    SX_TRY(number_like(x, 1, &one));
    SX_TF_BUILD(x, &y, square, NULL, in[0]);
    SX_TF_BUILD(x, &y, sub, NULL, one, y);
    SX_TF_BUILD(x, &y, mul, NULL, in[1], y);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* y, dy: dy y (1 - y) */
static sx_status import_sigmoid(sx_tf_op_node *x)
{
    sx_value in[2], one = SX_NO_VALUE, y = SX_NO_VALUE;
    SX_TRY(two_operands(x, in));
    SX_TRY(number_like(x, 1, &one));
    SX_TF_BUILD(x, &y, sub, NULL, one, in[0]);
    SX_TF_BUILD(x, &y, mul, NULL, in[0], y);
    SX_TF_BUILD(x, &y, mul, NULL, in[1], y);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* dy, x: dy where 0 < x < 6 */
static sx_status import_relu6(sx_tf_op_node *x)
{
    sx_value in[2], bound = SX_NO_VALUE, below = SX_NO_VALUE, zero = SX_NO_VALUE, y = SX_NO_VALUE;
    SX_TRY(two_operands(x, in));
    SX_TRY(number_like(x, 6, &bound));
    SX_TRY(number_like(x, 0, &zero));
    SX_TF_BUILD(x, &y, relu_grad, NULL, in[0], in[1]);
    SX_TF_BUILD(x, &below, less, NULL, in[1], bound);
    SX_TF_BUILD(x, &y, select, NULL, below, y, zero);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* dy, x: dy where x > 0, else alpha dy */
static sx_status import_leaky_relu(sx_tf_op_node *x)
{
    sx_value in[2], alpha = SX_NO_VALUE, zero = SX_NO_VALUE, above = SX_NO_VALUE, y = SX_NO_VALUE;
    SX_TRY(two_operands(x, in));
    SX_TRY(number_like(x, sx_tf_read_float(&x->tf.head, "alpha", (double)0.2f), &alpha));
    SX_TRY(number_like(x, 0, &zero));
    SX_TF_BUILD(x, &above, greater, NULL, in[1], zero);
    SX_TF_BUILD(x, &y, mul, NULL, in[0], alpha);
    SX_TF_BUILD(x, &y, select, NULL, above, in[0], y);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* dy, x: dy sigmoid(x) */
static sx_status import_softplus(sx_tf_op_node *x)
{
    sx_value in[2], y = SX_NO_VALUE;
    SX_TRY(two_operands(x, in));
    SX_TF_BUILD(x, &y, sigmoid, NULL, in[1]);
    SX_TF_BUILD(x, &y, mul, NULL, in[0], y);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* dy, x: dy / (1 + |x|)^2 */
static sx_status import_softsign(sx_tf_op_node *x)
{
    sx_value in[2], one = SX_NO_VALUE, y = SX_NO_VALUE;
    SX_TRY(two_operands(x, in));
    SX_TRY(number_like(x, 1, &one));
    SX_TF_BUILD(x, &y, abs, NULL, in[1]);
    SX_TF_BUILD(x, &y, add, NULL, one, y);
    SX_TF_BUILD(x, &y, square, NULL, y);
    SX_TF_BUILD(x, &y, div, NULL, in[0], y);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* dy, y: where y < 0 dy (y + scale alpha), else dy scale: EluGrad has 1 and 1 */
static sx_status import_elu(sx_tf_op_node *x)
{
    const bool selu = strcmp(x->n->node->op, "SeluGrad") == 0;
    const double scale = selu ? 1.0507009873554805 : 1, alpha = selu ? 1.6732632423543772 : 1;
    sx_value in[2], by = SX_NO_VALUE, low = SX_NO_VALUE, zero = SX_NO_VALUE, y = SX_NO_VALUE,
                    negative = SX_NO_VALUE;
    SX_TRY(two_operands(x, in));
    SX_TRY(number_like(x, scale, &by));
    SX_TRY(number_like(x, scale * alpha, &low));
    SX_TRY(number_like(x, 0, &zero));
    SX_TF_BUILD(x, &negative, less, NULL, in[1], zero);
    SX_TF_BUILD(x, &low, add, NULL, in[1], low);
    SX_TF_BUILD(x, &low, mul, NULL, in[0], low);
    SX_TF_BUILD(x, &y, mul, NULL, in[0], by);
    SX_TF_BUILD(x, &y, select, NULL, negative, low, y);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* y, dy: RsqrtGrad -dy y^3 / 2, SqrtGrad dy / 2 / y, ReciprocalGrad -dy y^2 */
static sx_status import_power(sx_tf_op_node *x)
{
    const char *op = x->n->node->op;
    const bool rsqrt = strcmp(op, "RsqrtGrad") == 0, root = strcmp(op, "SqrtGrad") == 0;
    sx_value in[2], factor = SX_NO_VALUE, y = SX_NO_VALUE;
    SX_TRY(two_operands(x, in));
    SX_TRY(number_like(x, rsqrt ? -0.5 : root ? 0.5 : -1, &factor));
    SX_TF_BUILD(x, &factor, mul, NULL, in[1], factor);
    if (root) {
        SX_TF_BUILD(x, &y, div, NULL, factor, in[0]);
    } else {
        SX_TF_BUILD(x, &y, square, NULL, in[0]);
        if (rsqrt) {
            SX_TF_BUILD(x, &y, mul, NULL, y, in[0]);
        }
        SX_TF_BUILD(x, &y, mul, NULL, factor, y);
    }
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* ---- Layers ---- */

/* v, of unknown rank, as the matrix of its last dimension's vectors. */
static sx_status to_matrix(const sx_tf_op_node *x, sx_value v, sx_value *out)
{
    sx_type type = sx_tf_unknown_shape(sx_type_of_value(x->b, v).dtype);
    sx_value shape = SX_NO_VALUE, last = SX_NO_VALUE, one = SX_NO_VALUE, rest = SX_NO_VALUE;
    SX_TRY(sx_tf_rank_of(x, v, &last));
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {1}}, &one));
    SX_TRY(sx_tf_int64s(x, &(sx_ints){1, {-1}}, &rest));
    SX_TF_BUILD(x, &last, sub, NULL, last, one);
    SX_TF_BUILD(x, &shape, shape, (&(sx_cast_attrs){SX_I64}), v);
    SX_TRY(sx_tf_vector_part(x, shape, last, one, &shape));
    SX_TF_BUILD(x, &shape, concat, (&(sx_axis_attrs){0}), rest, shape);
    type.rank = 2;
    type.dims[0] = type.dims[1] = SX_UNKNOWN_DIM;
    return sx_tf_reshape_as(x, v, shape, &type, out);
}

/* dy, summed along all axes but the channels' */
static sx_status import_bias(sx_tf_op_node *x)
{
    const bool channels_second = sx_tf_read_is(&x->tf.head, "data_format", "NCHW", false);
    int rank = x->tf.head.types[0].rank;
    sx_reduce_attrs attrs = {.axes = {.n = 0}};
    sx_value dy = SX_NO_VALUE, y = SX_NO_VALUE;
    SX_TRY(sx_tf_operand(x, 0, &dy));
    if (rank == SX_UNKNOWN_RANK && !channels_second) {
        SX_TRY(to_matrix(x, dy, &dy));
        rank = 2;
    } else {
        SX_TRY(sx_tf_require_rank(x, 0));
    }
    const int channels = channels_second ? 1 : rank - 1;
    if (rank < 2 || channels >= rank) {
        return sx_error(SX_DATA_LOSS, "the gradient of a bias of rank %d", rank);
    }
    for (int d = 0; d < rank; d++) {
        if (d != channels) {
            attrs.axes.v[attrs.axes.n++] = d;
        }
    }
    SX_TF_BUILD(x, &y, reduce_sum, &attrs, dy);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

static sx_status require_channels_last(const sx_tf_op_node *x)
{
    return sx_tf_channels_first(&x->tf.head)
               ? sx_tf_unsupported("its channels are in front of the image")
               : SX_OK;
}

/* A dimension of a gradient [N,H,W,C], as far as it is known. */
static int64_t dim_of(const sx_type *dy, int d)
{
    return dy->rank == 4 ? dy->dims[d] : SX_UNKNOWN_DIM;
}

/* A node with its attribute `size` from input i, the shape of what it makes: {h, w} are its
 * elements `first` and `first` + 1. `type` is what is known of the result. */
static sx_status build_sized(sx_tf_op_node *x, const sx_op_def *op, void *attrs, sx_ints *size,
                             int i, int first, const sx_value *in, int n_in, sx_type type,
                             sx_value *out)
{
    if (x->tf.head.values[i] != NULL) {
        sx_ints known = {0};
        SX_TRY(sx_tf_operand_ints(x, i, &known));
        if (known.n != 4) {
            return sx_error(SX_DATA_LOSS, "input %d has %d sizes, expected 4", i, known.n);
        }
        *size = sx_ints_of(2, known.v + first);
        return sx_tf_build(x, op, attrs, out, n_in, in);
    }
    const sx_slice_attrs part = {.begin = {1, {first}}, .size = {1, {2}}};
    sx_value sizes = SX_NO_VALUE;
    SX_TRY(sx_tf_operand(x, i, &sizes));
    for (int d = 0; d < 2; d++) {
        int64_t known = 0;
        bool is_dim = false;
        const bool found = sx_tf_peek(x->b, sizes, first + d, &is_dim, &known) && known >= 0;
        type.dims[first + d] = found ? known : SX_UNKNOWN_DIM;
    }
    SX_TF_BUILD(x, &sizes, slice, &part, sizes);
    const sx_attr_operand open = {sx_tf_attr_row(op, "size"), sizes};
    *out = sx_tf_build_as(x, op, attrs, in, n_in, &open, 1, &type);
    return SX_OK;
}

/* Conv2DBackpropFilter(x, sizes, dy) */
static sx_status import_conv_filter(sx_tf_op_node *x)
{
    const sx_type *image = &x->tf.head.types[0], *dy = &x->tf.head.types[2];
    sx_conv2d_attrs attrs = {.groups = 1};
    sx_value in[2], y = SX_NO_VALUE;
    SX_TRY(require_channels_last(x));
    SX_TRY(sx_tf_read_conv(&x->tf.head, &attrs));
    SX_TRY(sx_tf_operand(x, 0, &in[0]));
    SX_TRY(sx_tf_operand(x, 2, &in[1]));
    if (image->rank != 4) {
        return sx_tf_unsupported("the rank of its image is unknown");
    }
    if (x->tf.head.values[1] != NULL) {
        sx_ints sizes = {0};
        SX_TRY(sx_tf_operand_ints(x, 1, &sizes));
        if (sizes.n == 4 && sizes.v[2] > 0 && image->dims[3] > 0 &&
            image->dims[3] % sizes.v[2] == 0) {
            attrs.groups = image->dims[3] / sizes.v[2];
        }
    }
    const sx_type filter = sx_type_of(
        image->dtype, SX_UNKNOWN_DIM, SX_UNKNOWN_DIM,
        image->dims[3] > 0 ? image->dims[3] / attrs.groups : SX_UNKNOWN_DIM, dim_of(dy, 3));
    SX_TRY(build_sized(x, &sx_op_conv2d_grad_filter, &attrs, &attrs.size, 1, 0, in, 2, filter, &y));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* DepthwiseConv2dNativeBackpropInput(sizes, filter, dy): as import_depthwise, of C groups. */
static sx_status import_depthwise_input(sx_tf_op_node *x)
{
    const sx_type *kernel = &x->tf.head.types[1], *dy = &x->tf.head.types[2];
    sx_conv2d_attrs attrs = {0};
    sx_value in[2], y = SX_NO_VALUE;
    SX_TRY(require_channels_last(x));
    SX_TRY(sx_tf_read_conv(&x->tf.head, &attrs));
    SX_TRY(sx_tf_operand(x, 2, &in[0]));
    SX_TRY(sx_tf_operand(x, 1, &in[1]));
    if (kernel->rank != 4 || !sx_type_is_static(kernel)) {
        return sx_tf_unsupported("the shape of its filter is unknown");
    }
    const sx_shape_attrs shape = {
        .shape = {4, {kernel->dims[0], kernel->dims[1], 1, kernel->dims[2] * kernel->dims[3]}}};
    attrs.groups = kernel->dims[2];
    SX_TF_BUILD(x, &in[1], reshape, &shape, in[1]);
    const sx_type image =
        sx_type_of(dy->dtype, dim_of(dy, 0), SX_UNKNOWN_DIM, SX_UNKNOWN_DIM, kernel->dims[2]);
    SX_TRY(build_sized(x, &sx_op_conv2d_grad_input, &attrs, &attrs.size, 0, 1, in, 2, image, &y));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* DepthwiseConv2dNativeBackpropFilter(x, sizes, dy) */
static sx_status import_depthwise_filter(sx_tf_op_node *x)
{
    sx_conv2d_attrs attrs = {0};
    sx_ints sizes = {0};
    sx_value in[2], y = SX_NO_VALUE;
    SX_TRY(require_channels_last(x));
    SX_TRY(sx_tf_read_conv(&x->tf.head, &attrs));
    SX_TRY(sx_tf_operand(x, 0, &in[0]));
    SX_TRY(sx_tf_operand(x, 2, &in[1]));
    SX_TRY(sx_tf_operand_ints(x, 1, &sizes));
    if (sizes.n != 4) {
        return sx_error(SX_DATA_LOSS, "%d sizes, expected 4", sizes.n);
    }
    attrs.groups = sizes.v[2];
    attrs.size = sx_ints_of(2, sizes.v);
    SX_TF_BUILD(x, &y, conv2d_grad_filter, &attrs, in[0], in[1]);
    SX_TF_BUILD(x, &y, reshape, (&(sx_shape_attrs){sizes}), y);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* MaxPoolGrad(x, y, dy); V2: (..., window, strides) */
static sx_status import_max_pool(sx_tf_op_node *x)
{
    sx_pool2d_attrs attrs = {0};
    sx_value in[3], y = SX_NO_VALUE;
    SX_TRY(require_channels_last(x));
    for (int i = 0; i < 3; i++) {
        SX_TRY(sx_tf_operand(x, i, &in[i]));
    }
    if (x->n->n_in == 5) {
        SX_TRY(sx_tf_operand_windows(x, 3, &attrs.window, &attrs.strides));
        SX_TRY(sx_tf_read_padding(&x->tf.head, &attrs.padding));
    } else {
        SX_TRY(sx_tf_read_pool(&x->tf.head, &attrs));
    }
    if (attrs.padding == SX_EXPLICIT) {
        return sx_tf_unsupported("its padding is EXPLICIT");
    }
    SX_TRY(sx_tf_build(x, &sx_op_max_pool2d_grad, &attrs, &y, 3, in));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* AvgPoolGrad(sizes, dy) */
static sx_status import_avg_pool(sx_tf_op_node *x)
{
    const sx_type *dy = &x->tf.head.types[1];
    sx_pool2d_attrs attrs = {0};
    sx_value in = SX_NO_VALUE, y = SX_NO_VALUE;
    SX_TRY(require_channels_last(x));
    SX_TRY(sx_tf_read_pool(&x->tf.head, &attrs));
    SX_TRY(sx_tf_operand(x, 1, &in));
    const sx_type image =
        sx_type_of(dy->dtype, dim_of(dy, 0), SX_UNKNOWN_DIM, SX_UNKNOWN_DIM, dim_of(dy, 3));
    SX_TRY(build_sized(x, &sx_op_avg_pool2d_grad, &attrs, &attrs.size, 0, 1, &in, 1, image, &y));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* FusedBatchNormGrad(dy, x, scale, mean, variance, ...) -> dx, dscale, doffset, ...; in training
 * the moments are those of x, which it computes again. */
static sx_status import_batch_norm(sx_tf_op_node *x)
{
    const sx_batch_norm_attrs attrs = {.epsilon = sx_tf_read_float(&x->tf.head, "epsilon", 1e-4)};
    const bool training = sx_tf_read_bool(&x->tf.head, "is_training", true);
    const sx_type *image = &x->tf.head.types[1];
    sx_value in[3], moments[2], sums = SX_NO_VALUE, y = SX_NO_VALUE;
    int n_out = 0;
    SX_TRY(require_channels_last(x));
    for (int i = 0; i < 3; i++) {
        SX_TRY(sx_tf_operand(x, i, &in[i]));
    }
    if (image->rank != 4 || image->dtype != SX_F32) {
        return sx_tf_unsupported("its image is not float32 of rank 4");
    }
    if (training) {
        const sx_axes_attrs axes = {{3, {0, 1, 2}}};
        SX_TRY(sx_tf_add_node(x, &sx_op_moments, &axes, &in[1], 1, NULL, 0, &moments[0], &n_out));
        moments[1] = sx_output_of(moments[0], 1);
    } else {
        SX_TRY(sx_tf_operand(x, 3, &moments[0]));
        SX_TRY(sx_tf_operand(x, 4, &moments[1]));
    }
    const sx_value of_sums[] = {in[0], in[1], moments[0], moments[1]};
    SX_TRY(sx_tf_add_node(x, &sx_op_batch_norm_train_grad_sums, &attrs, of_sums, 4, NULL, 0, &sums,
                          &n_out));
    if (training) {
        const sx_slice_attrs but_channels = {.begin = {1, {0}}, .size = {1, {3}}};
        sx_value count = SX_NO_VALUE;
        SX_TF_BUILD(x, &count, shape, (&(sx_cast_attrs){SX_I64}), in[1]);
        SX_TF_BUILD(x, &count, slice, &but_channels, count);
        SX_TF_BUILD(x, &count, reduce_prod, (&(sx_reduce_attrs){.axes = {1, {0}}}), count);
        SX_TF_BUILD(x, &count, cast, (&(sx_cast_attrs){SX_F32}), count);
        SX_TF_BUILD(x, &y, batch_norm_train_grad_input, &attrs, in[0], in[1], moments[0],
                    moments[1], in[2], sums, sx_output_of(sums, 1), count);
    } else {
        sx_value s = SX_NO_VALUE;
        SX_TRY(sx_tf_number(x, SX_F32, attrs.epsilon, &s));
        SX_TF_BUILD(x, &s, add, NULL, moments[1], s);
        SX_TF_BUILD(x, &s, rsqrt, NULL, s);
        SX_TF_BUILD(x, &s, mul, NULL, s, in[2]);
        SX_TF_BUILD(x, &y, mul, NULL, in[0], s);
    }
    sx_tf_set(x, 0, y);
    sx_tf_set(x, 1, sums);
    sx_tf_set(x, 2, sx_output_of(sums, 1));
    return SX_OK;
}

/* ---- Of operators that are several of ours ---- */

/* Operands of the forward operator, dy: the gradient of one of the operands, pulled back through
 * what the forward operator is imported as. */
static sx_status import_pulled_back(sx_tf_op_node *x)
{
    enum { N_X = 2 };
    static const struct {
        const char *name, *forward;
        int operand;
    } rows[] = {{"Dilation2DBackpropInput", "Dilation2D", 0},
                {"Dilation2DBackpropFilter", "Dilation2D", 1}};
    size_t k = 0;
    while (k + 1 < SX_COUNT(rows) && strcmp(rows[k].name, x->n->node->op) != 0) {
        k++;
    }
    sx_value in[N_X + 1], inside[N_X], y = SX_NO_VALUE;
    sx_type types[N_X];
    for (int i = 0; i < N_X + 1; i++) {
        SX_TRY(sx_tf_operand(x, i, &in[i]));
    }
    sx_builder *b = NULL;
    sx_graph *body = NULL;
    SX_TRY(sx_tf_create_builder(x->im, &b));
    sx_tf_body region = *x->body;
    sx_tf_import_node forward = *x->n;
    sx_tf_op_node there = *x;
    region.b = there.b = b;
    forward.n_in = N_X;
    there.body = &region;
    there.n = &forward;
    for (int i = 0; i < N_X; i++) {
        types[i] = sx_type_of_value(x->b, in[i]);
        inside[i] = sx_input(b, i == 0 ? "x" : "filter", types[i]);
    }
    sx_status status = sx_tf_import_as(&there, rows[k].forward, inside, N_X, &y);
    if (status == SX_OK) {
        sx_output(b, "y", y);
        status = sx_builder_finish(b, &body);
    } else {
        status = sx_tf_first_error(b, status);
    }
    if (status == SX_OK) {
        const sx_value first =
            sx_build_node(x->b, &(sx_node_spec){.op = &sx_op_pull_back,
                                                .attrs = &(sx_pull_back_attrs){.body = body},
                                                .inputs = in,
                                                .n_inputs = N_X + 1,
                                                .types = types,
                                                .n_types = N_X,
                                                .device = "",
                                                .file = ""});
        sx_tf_set(x, 0, sx_output_of(first, rows[k].operand));
    }
    sx_graph_destroy(body);
    sx_builder_destroy(b);
    return status;
}

/* ---- The table ---- */

const sx_tf_op_row sx_tf_gradient_rows[] = {
    {"TanhGrad", import_tanh, NULL},
    {"SigmoidGrad", import_sigmoid, NULL},
    {"Relu6Grad", import_relu6, NULL},
    {"LeakyReluGrad", import_leaky_relu, NULL},
    {"SoftplusGrad", import_softplus, NULL},
    {"SoftsignGrad", import_softsign, NULL},
    {"EluGrad", import_elu, NULL},
    {"SeluGrad", import_elu, NULL},
    {"RsqrtGrad", import_power, NULL},
    {"SqrtGrad", import_power, NULL},
    {"ReciprocalGrad", import_power, NULL},
    {"InvGrad", import_power, NULL},
    {"BiasAddGrad", import_bias, NULL},
    {"Conv2DBackpropFilter", import_conv_filter, NULL},
    {"DepthwiseConv2dNativeBackpropInput", import_depthwise_input, NULL},
    {"DepthwiseConv2dNativeBackpropFilter", import_depthwise_filter, NULL},
    {"MaxPoolGrad", import_max_pool, NULL},
    {"MaxPoolGradV2", import_max_pool, NULL},
    {"AvgPoolGrad", import_avg_pool, NULL},
    {"FusedBatchNormGrad", import_batch_norm, NULL},
    {"FusedBatchNormGradV2", import_batch_norm, NULL},
    {"FusedBatchNormGradV3", import_batch_norm, NULL},
    {"Dilation2DBackpropInput", import_pulled_back, NULL},
    {"Dilation2DBackpropFilter", import_pulled_back, NULL},
    {NULL, NULL, NULL},
};
