/* Shared pieces of the operator files: see common.h. */
#include "graph/ops/common.h"

#include <string.h>

#include "base/memory.h"
#include "graph/ops/precision.h"

const char *const sx_padding_names[] = {"valid", "same", "explicit", NULL};

/* ---- Checks of infer ---- */

static bool is_number(sx_dtype dtype)
{
    return sx_dtype_is_float(dtype) || sx_dtype_is_integer(dtype);
}

sx_status sx_require_float(const char *what, const sx_type *t)
{
    if (sx_dtype_is_float(t->dtype)) {
        return SX_OK;
    }
    return sx_error(SX_INVALID_ARGUMENT,
                    "%s is %s, expected a float type; add sx_cast() (in TensorFlow, tf.cast)", what,
                    SX_TEXT(t));
}

sx_status sx_require_number(const char *what, const sx_type *t)
{
    if (is_number(t->dtype)) {
        return SX_OK;
    }
    return sx_error(SX_INVALID_ARGUMENT,
                    "%s is %s, expected numbers; add sx_cast() (in TensorFlow, tf.cast)", what,
                    SX_TEXT(t));
}

sx_status sx_require_integer(const char *what, const sx_type *t)
{
    if (sx_dtype_is_integer(t->dtype)) {
        return SX_OK;
    }
    return sx_error(SX_INVALID_ARGUMENT,
                    "%s is %s, expected integers; add sx_cast() (in TensorFlow, tf.cast)", what,
                    SX_TEXT(t));
}

sx_status sx_require_dtype(const char *what, const sx_type *t, sx_dtype dtype)
{
    if (t->dtype == dtype) {
        return SX_OK;
    }
    return sx_error(SX_INVALID_ARGUMENT,
                    "%s is %s, expected %s; add sx_cast() (in TensorFlow, tf.cast)", what,
                    SX_TEXT(t), sx_dtype_name(dtype));
}

sx_status sx_require_index(const char *what, const sx_type *t)
{
    if (t->dtype == SX_I32 || t->dtype == SX_I64) {
        return SX_OK;
    }
    return sx_error(SX_INVALID_ARGUMENT,
                    "%s is %s, expected int32 or int64; add sx_cast() (in TensorFlow, tf.cast)",
                    what, SX_TEXT(t));
}

sx_status sx_require_rank(const char *what, const sx_type *t, int rank, const char *form)
{
    if (t->rank == rank) {
        return SX_OK;
    }
    return sx_error(SX_INVALID_ARGUMENT, "%s %s has rank %d, expected %s; add sx_reshape()", what,
                    SX_TEXT(t), t->rank, form);
}

sx_status sx_require_scalar(const char *what, const sx_type *t, sx_dtype dtype)
{
    if (t->rank == 0 && t->dtype == dtype) {
        return SX_OK;
    }
    return sx_error(SX_INVALID_ARGUMENT, "%s is %s, expected a scalar of %s", what, SX_TEXT(t),
                    sx_dtype_name(dtype));
}

sx_status sx_require_vector(const char *what, const sx_type *t, sx_dtype dtype, int64_t n)
{
    sx_type expected = {.dtype = dtype, .rank = 1, .dims = {n}};
    if (sx_type_equal(t, &expected)) {
        return SX_OK;
    }
    return sx_error(SX_INVALID_ARGUMENT, "%s is %s, expected %s", what, SX_TEXT(t),
                    SX_TEXT(&expected));
}

sx_status sx_require_equal(const char *what_a, const sx_type *a, const char *what_b,
                           const sx_type *b)
{
    if (a->dtype == b->dtype && sx_same_dims(a, b)) {
        return SX_OK;
    }
    return sx_error(SX_INVALID_ARGUMENT, "%s is %s, expected %s to match %s", what_a, SX_TEXT(a),
                    SX_TEXT(b), what_b);
}

sx_status sx_require_classes(const char *what, const sx_type *t)
{
    SX_TRY(sx_require_float(what, t));
    if (t->rank >= 1 && t->dims[t->rank - 1] >= 1) {
        return SX_OK;
    }
    return sx_error(SX_INVALID_ARGUMENT, "%s is %s, expected [...,C] with C at least 1", what,
                    SX_TEXT(t));
}

sx_dtype sx_accumulator_dtype(sx_dtype dtype)
{
    return dtype == SX_F64 ? SX_F64 : SX_F32;
}

bool sx_same_dims(const sx_type *a, const sx_type *b)
{
    if (a->rank != b->rank) {
        return false;
    }
    for (int i = 0; i < a->rank; i++) {
        if (a->dims[i] != b->dims[i]) {
            return false;
        }
    }
    return true;
}

int64_t sx_dims_product(const sx_type *t, int first, int last)
{
    int64_t product = 1;
    for (int i = first; i < last; i++) {
        int64_t dim = sx_dim_is_batch(t->dims[i]) ? -t->dims[i] : t->dims[i];
        if (dim < 0 || !sx_mul_i64(product, dim, &product)) {
            return -1;
        }
    }
    return product;
}

/* Dimension i of `t` seen as a tensor of rank `rank`: ones in front. */
static int64_t dim_in_rank(const sx_type *t, int rank, int i)
{
    int own = i - (rank - t->rank);
    return own < 0 ? 1 : t->dims[own];
}

sx_status sx_infer_broadcast(const sx_type *a, const sx_type *b, sx_type *out)
{
    sx_type y = {.dtype = a->dtype, .rank = SX_MAX(a->rank, b->rank)};
    for (int i = 0; i < y.rank; i++) {
        int64_t p = dim_in_rank(a, y.rank, i), q = dim_in_rank(b, y.rank, i);
        if (p != q && p != 1 && q != 1) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "shapes %s and %s do not broadcast: dimensions, from the last one, "
                            "must be equal or 1%s",
                            SX_TEXT(a), SX_TEXT(b),
                            sx_dim_is_batch(p) && sx_dim_is_batch(q)
                                ? "; reshape the multiple of N to [N,...]"
                                : "");
        }
        y.dims[i] = p == 1 ? q : p;
    }
    *out = y;
    return SX_OK;
}

static bool is_axis_of(const sx_ints *axes, int axis)
{
    for (int i = 0; i < axes->n; i++) {
        if (axes->v[i] == axis) {
            return true;
        }
    }
    return false;
}

bool sx_axes_fit(const sx_ints *axes, int rank)
{
    if (axes->n < 0 || axes->n > rank) {
        return false;
    }
    for (int i = 0; i < axes->n; i++) {
        if (axes->v[i] < (i == 0 ? 0 : axes->v[i - 1] + 1) || axes->v[i] >= rank) {
            return false;
        }
    }
    return true;
}

sx_type sx_reduced_type(const sx_type *x, const sx_ints *axes, bool keep_dims)
{
    sx_type y = {.dtype = x->dtype};
    for (int i = 0; i < x->rank; i++) {
        if (!is_axis_of(axes, i)) {
            y.dims[y.rank++] = x->dims[i];
        } else if (keep_dims) {
            y.dims[y.rank++] = 1;
        }
    }
    return y;
}

/* Which of the axes does not fit. */
static sx_status bad_axes(const sx_type *x, const sx_ints *axes)
{
    for (int i = 0; i < axes->n && axes->n <= SX_MAX_RANK; i++) {
        if (axes->v[i] < 0 || axes->v[i] >= x->rank) {
            return sx_error(SX_INVALID_ARGUMENT, "axis %lld is out of range for %s",
                            (long long)axes->v[i], SX_TEXT(x));
        }
    }
    return sx_error(SX_INVALID_ARGUMENT, "the axes for %s are not ascending, or one is given twice",
                    SX_TEXT(x));
}

sx_status sx_infer_reduce(const sx_type *x, const sx_ints *axes, bool keep_dims, sx_type *out)
{
    if (!sx_axes_fit(axes, x->rank)) {
        return bad_axes(x, axes);
    }
    *out = sx_reduced_type(x, axes, keep_dims);
    return SX_OK;
}

sx_status sx_infer_map_float(sx_infer_context *c)
{
    SX_TRY(sx_require_float("x", &c->inputs[0]));
    c->outputs[0] = c->inputs[0];
    return SX_OK;
}

sx_status sx_infer_map_number(sx_infer_context *c)
{
    SX_TRY(sx_require_number("x", &c->inputs[0]));
    c->outputs[0] = c->inputs[0];
    return SX_OK;
}

sx_status sx_infer_map_integer(sx_infer_context *c)
{
    SX_TRY(sx_require_integer("x", &c->inputs[0]));
    c->outputs[0] = c->inputs[0];
    return SX_OK;
}

sx_status sx_infer_test(sx_infer_context *c)
{
    SX_TRY(sx_infer_map_float(c));
    c->outputs[0].dtype = SX_BOOL;
    return SX_OK;
}

static sx_status infer_zip(sx_infer_context *c)
{
    SX_TRY(sx_require_dtype("y", &c->inputs[1], c->inputs[0].dtype));
    return sx_infer_broadcast(&c->inputs[0], &c->inputs[1], &c->outputs[0]);
}

sx_status sx_infer_zip_float(sx_infer_context *c)
{
    SX_TRY(sx_require_float("x", &c->inputs[0]));
    return infer_zip(c);
}

sx_status sx_infer_zip_number(sx_infer_context *c)
{
    SX_TRY(sx_require_number("x", &c->inputs[0]));
    return infer_zip(c);
}

sx_status sx_infer_zip_integer(sx_infer_context *c)
{
    SX_TRY(sx_require_integer("x", &c->inputs[0]));
    return infer_zip(c);
}

sx_status sx_infer_zip_bool(sx_infer_context *c)
{
    SX_TRY(sx_require_dtype("x", &c->inputs[0], SX_BOOL));
    return infer_zip(c);
}

sx_status sx_infer_compare(sx_infer_context *c)
{
    SX_TRY(sx_infer_zip_number(c));
    c->outputs[0].dtype = SX_BOOL;
    return SX_OK;
}

sx_status sx_infer_equality(sx_infer_context *c)
{
    const sx_type *x = &c->inputs[0], *y = &c->inputs[1];
    if (x->dtype != SX_STRING || y->dtype != SX_STRING) {
        return sx_infer_compare(c);
    }
    SX_TRY(sx_infer_broadcast(x, y, &c->outputs[0]));
    c->outputs[0].dtype = SX_BOOL;
    return SX_OK;
}

void sx_host_compare_strings(const sx_kernel_call *c, bool equal)
{
    const sx_host_tensor *x = &c->in[0], *y = &c->in[1], *z = &c->out[0];
    for (int64_t k = 0, n = sx_type_elems(&z->type); k < n; k++) {
        const sx_bytes *a = &x->s[sx_broadcast_offset(&z->type, &x->type, k)],
                       *b = &y->s[sx_broadcast_offset(&z->type, &y->type, k)];
        z->b[k] = equal ==
                  (a->size == b->size && (a->size == 0 || memcmp(a->data, b->data, a->size) == 0));
    }
}

sx_status sx_infer_zip_equal(sx_infer_context *c)
{
    SX_TRY(sx_require_float("input 0", &c->inputs[0]));
    for (int i = 1; i < c->n_inputs; i++) {
        SX_TRY(sx_require_equal("a later input", &c->inputs[i], "input 0", &c->inputs[0]));
    }
    c->outputs[0] = c->inputs[0];
    return SX_OK;
}

sx_status sx_infer_apply(sx_infer_context *c, int n, int n_out)
{
    const sx_type *var = &c->inputs[0];
    SX_TRY(sx_require_float("the variable", var));
    for (int i = 1; i < n; i++) {
        const char *what = i == n - 1 ? "the gradient" : "a slot";
        SX_TRY(sx_require_equal(what, &c->inputs[i], "the variable", var));
    }
    SX_TRY(sx_require_scalar("the learning rate", &c->inputs[n], var->dtype));
    SX_TRY(sx_require_scalar("ok", &c->inputs[c->n_inputs - 1], SX_BOOL));
    for (int i = 0; i < n_out; i++) {
        c->outputs[i] = *var;
    }
    c->n_outputs = n_out;
    return SX_OK;
}

/* ---- Walking ---- */

int64_t sx_broadcast_offset(const sx_type *out, const sx_type *in, int64_t i)
{
    int64_t offset = 0, stride = 1;
    for (int d = 0; d < in->rank; d++) { /* from the last dimension on */
        int64_t in_dim = in->dims[in->rank - 1 - d], out_dim = out->dims[out->rank - 1 - d];
        if (in_dim != 1) {
            offset += i % out_dim * stride;
        }
        i /= out_dim;
        stride *= in_dim;
    }
    return offset;
}

int64_t sx_reduce_offset(const sx_type *x, const sx_ints *axes, int64_t i)
{
    int64_t offset = 0, stride = 1;
    for (int d = x->rank - 1; d >= 0; d--) {
        if (!is_axis_of(axes, d)) {
            offset += i % x->dims[d] * stride;
            stride *= x->dims[d];
        }
        i /= x->dims[d];
    }
    return offset;
}

void sx_unravel(const sx_type *t, int64_t i, int64_t *at)
{
    for (int d = t->rank - 1; d >= 0; d--) {
        at[d] = i % t->dims[d];
        i /= t->dims[d];
    }
}

int64_t sx_ravel(const sx_type *t, const int64_t *at)
{
    int64_t i = 0;
    for (int d = 0; d < t->rank; d++) {
        i = i * t->dims[d] + at[d];
    }
    return i;
}

sx_status sx_host_copy(const sx_kernel_call *c)
{
    sx_host_move(c, 0, 0, 0, sx_type_elems(&c->out[0].type));
    return SX_OK;
}

double sx_log_sum_exp(const double *x, int64_t n, double *out_greatest)
{
    double greatest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        greatest = fmax(greatest, x[i]);
    }
    for (int64_t i = 0; i < n; i++) {
        sum += exp(x[i] - greatest);
    }
    *out_greatest = greatest;
    return log(sum);
}

bool sx_host_withheld(const sx_kernel_call *c)
{
    if (c->in[c->n_in - 1].b[0] != 0) {
        return false;
    }
    for (int k = 0; k < c->n_out; k++) {
        size_t n = (size_t)sx_type_elems(&c->out[k].type);
        memcpy(c->out[k].f, c->in[k].f, n * sizeof(double));
    }
    return true;
}

/* ---- Gradients ---- */

sx_value sx_reshape_to(sx_builder *b, sx_value x, const sx_type *type)
{
    sx_shape_attrs attrs = {.shape = sx_ints_of(type->rank, type->dims)};
    return sx_build_op(b, reshape, &attrs, x);
}

sx_value sx_unbroadcast(sx_builder *b, sx_value dy, sx_value like)
{
    sx_type from = sx_type_of_value(b, dy), to = sx_type_of_value(b, like);
    if (sx_builder_failed(b) || sx_same_dims(&from, &to)) {
        return dy;
    }
    int added = from.rank - to.rank;
    sx_reduce_attrs attrs = {.keep_dims = added == 0};
    for (int i = 0; i < from.rank; i++) {
        if (i < added || to.dims[i - added] != from.dims[i]) {
            attrs.axes.v[attrs.axes.n++] = i;
        }
    }
    sx_value sum = sx_build_op(b, reduce_sum, &attrs, dy);
    sx_type got = sx_type_of_value(b, sum);
    return sx_same_dims(&got, &to) ? sum : sx_reshape_to(b, sum, &to);
}

void sx_grad_choice(sx_grad *g, sx_value second)
{
    sx_value zero = sx_scalar_like(g->b, g->dy[0], 0);
    if (g->needed[0]) {
        sx_value part = sx_build_op(g->b, select, NULL, second, zero, g->dy[0]);
        g->dx[0] = sx_unbroadcast(g->b, part, g->x[0]);
    }
    if (g->needed[1]) {
        sx_value part = sx_build_op(g->b, select, NULL, second, g->dy[0], zero);
        g->dx[1] = sx_unbroadcast(g->b, part, g->x[1]);
    }
}

sx_value sx_scalar(sx_builder *b, sx_dtype dtype, double value)
{
    uint64_t bytes = 0;
    if (sx_builder_failed(b)) { /* the dtype may be that of a value that was not made */
        return SX_NO_VALUE;
    }
    if (sx_dtype_bytes(dtype) == 0) {
        sx_builder_fail(b,
                        sx_error(SX_INVALID_ARGUMENT, "%s has no numbers", sx_dtype_name(dtype)));
        return SX_NO_VALUE;
    }
    sx_host_store_element(dtype, value, &bytes);
    return sx_constant(b, (sx_tensor){sx_scalar_type(dtype), &bytes});
}

sx_value sx_scalar_like(sx_builder *b, sx_value like, double value)
{
    return sx_scalar(b, sx_type_of_value(b, like).dtype, value);
}

sx_value sx_cast_like(sx_builder *b, sx_value x, sx_value like)
{
    sx_cast_attrs attrs = {.dtype = sx_type_of_value(b, like).dtype};
    return sx_type_of_value(b, x).dtype == attrs.dtype ? x : sx_build_op(b, cast, &attrs, x);
}

sx_value sx_times(sx_builder *b, sx_value x, double value)
{
    return sx_build_op(b, mul, NULL, x, sx_scalar_like(b, x, value));
}

sx_value sx_sum_last(sx_builder *b, sx_value x)
{
    int rank = sx_type_of_value(b, x).rank;
    sx_reduce_attrs attrs = {.axes = {.n = 1, .v = {rank - 1}}, .keep_dims = true};
    return sx_build_op(b, reduce_sum, &attrs, x);
}

sx_value sx_scale_rows(sx_builder *b, sx_value rows, sx_value matrix)
{
    if (!sx_value_is(rows) || !sx_value_is(matrix)) {
        return SX_NO_VALUE;
    }
    sx_type column = sx_type_of_value(b, matrix);
    column.dims[column.rank - 1] = 1;
    sx_value shaped = sx_reshape_to(b, rows, &column);
    return sx_build_op(b, mul, NULL, shaped, matrix);
}

sx_value sx_softmax_pull(sx_builder *b, sx_value x, sx_value w)
{
    if (!sx_value_is(w)) {
        return SX_NO_VALUE;
    }
    sx_value p = sx_build_op(b, softmax, NULL, x);
    sx_value weighted = sx_build_op(b, mul, NULL, w, p);
    sx_value mean = sx_sum_last(b, weighted);
    sx_value centred = sx_build_op(b, sub, NULL, w, mean);
    return sx_build_op(b, mul, NULL, centred, p);
}

sx_value sx_add_maybe(sx_builder *b, sx_value x, sx_value y)
{
    if (!sx_value_is(x) || !sx_value_is(y)) {
        return sx_value_is(x) ? x : y;
    }
    return sx_build_op(b, add, NULL, x, y);
}

/* ---- TensorFlow ---- */

void sx_tf_plain(sx_tf_writer *w, const sx_tf_op *op, const char *tf_op)
{
    op->out[0] = sx_tf_add(w, tf_op, NULL, (sx_tf_values){op->in, op->n_in},
                           sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype)));
}

void sx_tf_same(sx_tf_writer *w, const sx_tf_op *op, const sx_op_def *def, const char *tf_op,
                sx_tf_attr_list types)
{
    enum { MOST = 16 };
    sx_tf_attr list[MOST];
    int n = 0;
    for (; n < types.count; n++) {
        list[n] = types.items[n];
    }
    for (int i = 0; i < def->n_attrs && n < MOST; i++) {
        const sx_attr_def *row = &def->attrs[i];
        const void *field = (const char *)op->attrs + row->offset;
        if (!row->tf) {
            continue;
        }
        if (row->kind == SX_ATTR_INT && *(const int64_t *)field != (int64_t)row->tf_number) {
            list[n++] = sx_tf_attr_int(row->name, *(const int64_t *)field);
        } else if (row->kind == SX_ATTR_FLOAT && *(const double *)field != row->tf_number) {
            list[n++] = sx_tf_attr_float(row->name, (float)*(const double *)field);
        } else if (row->kind == SX_ATTR_BOOL && *(const bool *)field != (row->tf_number != 0)) {
            list[n++] = sx_tf_attr_bool(row->name, *(const bool *)field);
        } else if (row->kind == SX_ATTR_DTYPE &&
                   *(const sx_dtype *)field != (sx_dtype)row->tf_number) {
            list[n++] = sx_tf_attr_type(row->name, (int)*(const sx_dtype *)field);
        } else if (row->kind == SX_ATTR_INTS && ((const sx_ints *)field)->n > 0) {
            const sx_ints *ints = field;
            list[n++] = sx_tf_attr_ints(row->name, ints->n, ints->v);
        } else if (row->kind == SX_ATTR_STRING) {
            const char *text = *(const char *const *)field, *usual = row->tf_text;
            text = text != NULL ? text : "";
            if (strcmp(text, usual != NULL ? usual : "") != 0) {
                list[n++] = sx_tf_attr_string(row->name, text);
            }
        }
    }
    sx_tf_value first =
        sx_tf_add(w, tf_op, NULL, (sx_tf_values){op->in, op->n_in}, (sx_tf_attr_list){list, n});
    for (int k = 0; k < op->n_out; k++) {
        op->out[k] = sx_tf_output(first, k);
    }
}

sx_tf_value sx_tf_cast(sx_tf_writer *w, sx_tf_value x, sx_dtype from, sx_dtype to)
{
    return from == to ? x
                      : sx_tf_add(w, "Cast", NULL, sx_tf_in(x),
                                  sx_tf_attrs(sx_tf_attr_type("SrcT", (int)from),
                                              sx_tf_attr_type("DstT", (int)to)));
}

sx_tf_value sx_tf_ints(sx_tf_writer *w, const char *name, const sx_ints *values)
{
    int32_t narrow[SX_MAX_RANK] = {0};
    for (int i = 0; i < values->n; i++) {
        narrow[i] = (int32_t)values->v[i];
    }
    return sx_tf_const_i32s(w, name, values->n, narrow);
}

sx_tf_value sx_tf_shape(sx_tf_writer *w, const char *name, const sx_ints *shape)
{
    sx_ints sizes = *shape;
    for (int i = 0; i < sizes.n; i++) {
        sizes.v[i] = sx_dim_is_batch(sizes.v[i]) ? -1 : sizes.v[i];
    }
    return sx_tf_ints(w, name, &sizes);
}

sx_tf_value sx_tf_scalar(sx_tf_writer *w, const char *name, sx_dtype dtype, double value)
{
    uint64_t bytes = 0;
    sx_host_store_element(dtype, value, &bytes);
    return sx_tf_const(w, name, &(sx_tensor){sx_scalar_type(dtype), &bytes});
}

sx_status sx_tf_read_padding(const sx_tf_node *n, int32_t *out)
{
    static const struct {
        const char *name;
        sx_padding padding;
    } paddings[] = {{"VALID", SX_VALID}, {"SAME", SX_SAME}, {"EXPLICIT", SX_EXPLICIT}};
    for (size_t i = 0; i < SX_COUNT(paddings); i++) {
        if (sx_tf_read_is(n, "padding", paddings[i].name, false)) {
            *out = (int32_t)paddings[i].padding;
            return SX_OK;
        }
    }
    return sx_error(SX_DATA_LOSS, "unknown padding");
}

bool sx_tf_channels_first(const sx_tf_node *n)
{
    return sx_tf_read_is(n, "data_format", "NCHW", false) ||
           sx_tf_read_is(n, "data_format", "NCDHW", false);
}

sx_status sx_tf_read_spatial(const sx_tf_node *n, const char *name, bool required, int count,
                             sx_ints *out)
{
    const int first = sx_tf_channels_first(n) ? 2 : 1, channels = first == 2 ? 1 : count + 1;
    int64_t list[SX_MAX_RANK] = {1, 1, 1, 1, 1};
    if ((!sx_tf_read_ints(n, name, count + 2, list) && required) || list[0] != 1 ||
        list[channels] != 1) {
        return sx_error(SX_UNIMPLEMENTED, "%s is not 1 for batch and channels", name);
    }
    *out = sx_ints_of(count, list + first);
    return SX_OK;
}

sx_status sx_tf_read_conv(const sx_tf_node *n, void *out)
{
    sx_conv2d_attrs *attrs = out;
    int64_t pads[8];
    SX_TRY(sx_tf_read_spatial(n, "strides", true, 2, &attrs->strides));
    SX_TRY(sx_tf_read_spatial(n, "dilations", false, 2, &attrs->dilations));
    SX_TRY(sx_tf_read_padding(n, &attrs->padding));
    if (attrs->padding == SX_EXPLICIT) {
        if (!sx_tf_read_ints(n, "explicit_paddings", 8, pads)) {
            return sx_error(SX_DATA_LOSS, "padding is EXPLICIT, but explicit_paddings is missing");
        }
        attrs->pads = sx_ints_of(4, pads + (sx_tf_channels_first(n) ? 4 : 2));
    }
    return SX_OK;
}

sx_status sx_tf_read_pool(const sx_tf_node *n, void *out)
{
    sx_pool2d_attrs *attrs = out;
    SX_TRY(sx_tf_read_spatial(n, "ksize", true, 2, &attrs->window));
    SX_TRY(sx_tf_read_spatial(n, "strides", true, 2, &attrs->strides));
    return sx_tf_read_padding(n, &attrs->padding);
}

/* ---- Public functions ---- */

sx_value sx_build_at(sx_builder *b, const sx_op_def *op, const void *attrs, const sx_value *inputs,
                     int n_inputs, const char *file, int line)
{
    if (file != NULL) {
        sx_builder_at(b, file, line);
    }
    if (!sx_precision_is_narrow(b) || sx_builder_failed(b)) {
        return sx_build(b, op, attrs, inputs, n_inputs);
    }
    sx_value *met =
        sx_arena_memdup(sx_builder_arena(b), inputs, (size_t)n_inputs * sizeof(*inputs));
    if (met == NULL) {
        sx_builder_fail(b, sx_no_memory("building a graph"));
        return SX_NO_VALUE;
    }
    sx_meet_precision(b, op, met, n_inputs);
    return sx_build(b, op, attrs, met, n_inputs);
}

int64_t sx_normalize_axis(int axis, int rank)
{
    return axis < 0 && axis >= -rank ? axis + rank : axis;
}

sx_ints sx_normalize_axes(sx_axes axes, int rank)
{
    sx_ints out = {0};
    bool all = axes.n <= 0;
    int n = SX_MIN(all ? rank : axes.n, SX_MAX_RANK);
    for (int i = 0; i < n; i++) {
        int64_t axis = all ? i : sx_normalize_axis(axes.v[i], rank);
        int at = out.n++;
        for (; at > 0 && out.v[at - 1] > axis; at--) {
            out.v[at] = out.v[at - 1];
        }
        out.v[at] = axis;
    }
    return out;
}

sx_ints sx_ints_of(int n, const int64_t *values)
{
    sx_ints out = {.n = SX_MIN(SX_MAX(n, 0), SX_MAX_RANK)};
    for (int i = 0; i < out.n; i++) {
        out.v[i] = values[i];
    }
    return out;
}

sx_ints sx_pair_of(const int pair[2], int64_t fallback)
{
    int64_t h = pair[0] == 0 ? fallback : pair[0];
    return (sx_ints){2, {h, pair[1] == 0 ? h : pair[1]}};
}

sx_value sx_output_at(sx_value first, int i)
{
    return sx_output_of(first, i);
}
