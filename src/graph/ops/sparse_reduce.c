/* sparse_reduce: the sum or the greatest of the values of a sparse tensor along axes.
 *
 *   indices, values, shape   a sparse tensor of numbers
 *   axes        int32 scalar or vector, negative ones from the end
 *   how         sum, max
 *   sparse      the result is sparse: where no value was, none is; else there are zeros
 *   keep_dims   reduced axes stay, with size 1
 *   returns     the shape that is left; or indices, values, shape
 *
 * Errors   INVALID_ARGUMENT    dtypes, ranks; (running) an axis out of range
 *          RESOURCE_EXHAUSTED  (running) the result is too large
 * Numbers  sums are kept in double
 * Source   TensorFlow SparseReduceSum, SparseReduceMax, SparseReduceSumSparse,
 *          SparseReduceMaxSparse */
#include "graph/ops/linear_algebra.h"
#include "graph/ops/sparse.h"

enum { SUM, MAX };

typedef struct sx_sparse_reduce_attrs {
    int32_t how;
    bool sparse, keep_dims;
} sx_sparse_reduce_attrs;

static const char *const how_names[] = {"sum", "max", NULL};
static const sx_attr_def sparse_reduce_attrs[] = {
    SX_ATTR_NAMES(sx_sparse_reduce_attrs, how, how_names),
    SX_ATTR(sx_sparse_reduce_attrs, sparse, SX_ATTR_BOOL),
    SX_ATTR_TF(sx_sparse_reduce_attrs, keep_dims, SX_ATTR_BOOL)};

static sx_status sparse_reduce_infer(sx_infer_context *c)
{
    const sx_sparse_reduce_attrs *a = c->attrs;
    const sx_dtype dtype = c->inputs[1].dtype;
    SX_TRY(sx_infer_sparse(c, 0, 1, 2));
    SX_TRY(sx_require_number("values", &c->inputs[1]));
    SX_TRY(sx_require_dtype("axes", &c->inputs[3], SX_I32));
    if (c->inputs[3].rank > 1) {
        return sx_error(SX_INVALID_ARGUMENT, "axes are %s, expected a scalar or a vector",
                        SX_TEXT(&c->inputs[3]));
    }
    c->n_outputs = a->sparse ? 3 : 1;
    c->outputs[0] =
        a->sparse ? sx_type_of(SX_I64, SX_UNKNOWN_DIM, SX_UNKNOWN_DIM) : sx_unknown_shape(dtype);
    if (a->sparse) {
        c->outputs[1] = sx_type_of(dtype, SX_UNKNOWN_DIM);
        c->outputs[2] = sx_type_of(SX_I64, SX_UNKNOWN_DIM);
    }
    return SX_OK;
}

/* The values by group: value order[k] has the indices groups[order[k] * n_kept...] among the
 * dimensions that stay, and those of one group are neighbors. */
typedef struct reduction {
    sx_sparse t;
    bool reduced[SX_MAX_RANK];
    int64_t n_kept, *groups, *order;
    sx_type shape; /* what is left */
} reduction;

static sx_status read(const sx_kernel_call *c, reduction *r)
{
    const sx_sparse_reduce_attrs *a = c->attrs;
    sx_sparse *t = &r->t;
    *r = (reduction){.n_kept = 0};
    SX_TRY(sx_read_sparse(c, 0, 1, 2, t));
    if (t->rank > SX_MAX_RANK) {
        return sx_error(SX_INVALID_ARGUMENT, "%lld dimensions, at most %d are supported",
                        (long long)t->rank, SX_MAX_RANK);
    }
    for (int64_t k = 0, n = sx_type_elems(&c->in[3].type); k < n; k++) {
        const int64_t axis = c->in[3].i[k] + (c->in[3].i[k] < 0 ? t->rank : 0);
        if (axis < 0 || axis >= t->rank) {
            return sx_error(SX_INVALID_ARGUMENT, "axis %lld, the tensor has %lld dimensions",
                            (long long)c->in[3].i[k], (long long)t->rank);
        }
        r->reduced[axis] = true;
    }
    r->shape = sx_scalar_type(t->values->type.dtype);
    for (int64_t d = 0; d < t->rank; d++) {
        if (!r->reduced[d] || a->keep_dims) {
            r->shape.dims[r->shape.rank++] = r->reduced[d] ? 1 : t->shape[d];
        }
        r->n_kept += !r->reduced[d];
    }
    int64_t room = 0;
    if (!sx_mul_i64(t->n, r->n_kept, &room)) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "too many indices");
    }
    r->groups = sx_arena_array(c->arena, room + 1, int64_t);
    if (r->groups == NULL) {
        return sx_budget_error(c->arena->budget);
    }
    for (int64_t k = 0, at = 0; k < t->n; k++) {
        for (int64_t d = 0; d < t->rank; d++) {
            if (!r->reduced[d]) {
                r->groups[at++] = t->indices[k * t->rank + d];
            }
        }
    }
    r->order = sx_order_indices(c, r->groups, t->n, r->n_kept);
    return r->order != NULL ? SX_OK : sx_budget_error(c->arena->budget);
}

static bool begins(const reduction *r, int64_t k)
{
    return k == 0 || sx_compare_indices(r->groups + r->order[k - 1] * r->n_kept,
                                        r->groups + r->order[k] * r->n_kept, r->n_kept) != 0;
}

/* Of sums, as tensors: each value gets dy of what it was added to. */
static void sparse_reduce_gradient(sx_grad *g)
{
    sx_builder *b = g->b;
    const sx_sparse_reduce_attrs *attrs = g->attrs;
    if (attrs->how != SUM || attrs->sparse) {
        sx_builder_fail(b, sx_error(SX_UNIMPLEMENTED,
                                    "the gradient of %s of a sparse tensor is not implemented, as "
                                    "in TensorFlow; only that of its sum as a tensor is",
                                    attrs->how != SUM ? "the greatest values" : "a sparse sum"));
        return;
    }
    const int64_t rank = sx_type_of_value(b, g->x[2]).dims[0];
    const sx_type axes_type = sx_type_of_value(b, g->x[3]);
    const int64_t n_axes = sx_type_elems(&axes_type);
    const sx_value size = sx_scalar(b, SX_I64, (double)rank);
    /* which dimensions are reduced */
    const sx_value axes = sx_build_op(
        b, floor_mod, NULL,
        sx_build_op(b, cast, (&(sx_cast_attrs){SX_I64}), sx_reshape_dims(b, g->x[3], 1, &n_axes)),
        size);
    const sx_value hit =
        sx_build_op(b, equal, NULL, sx_as_row(b, axes), sx_as_column(b, sx_numbers_to(b, rank)));
    const sx_value reduced =
        sx_build_op(b, reduce_any, (&(sx_reduce_attrs){.axes = {1, {1}}}), hit);
    const sx_value one = sx_scalar(b, SX_I64, 1), zero = sx_scalar(b, SX_I64, 0);
    const sx_value left = sx_build_op(b, select, NULL, reduced, one, g->x[2]);
    const sx_value at = sx_build_op(b, select, NULL, reduced, zero, g->x[0]);
    const sx_type dy = sx_type_of_value(b, g->dy[0]);
    const int64_t elems = sx_type_elems(&dy);
    g->dx[1] = sx_build_op(b, gather, (&(sx_gather_attrs){.axis = 0}),
                           sx_reshape_dims(b, g->dy[0], 1, &elems), sx_flat_places(b, at, left));
}

static sx_status sparse_reduce_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_sparse_reduce_attrs *a = c->attrs;
    reduction r;
    int64_t n = 0;
    SX_TRY(read(c, &r));
    out_types[0] = r.shape;
    if (a->sparse) {
        for (int64_t k = 0; k < r.t.n; k++) {
            n += begins(&r, k);
        }
        out_types[0] = sx_type_of(SX_I64, n, r.shape.rank);
        out_types[1] = sx_type_of(r.shape.dtype, n);
        out_types[2] = sx_type_of(SX_I64, r.shape.rank);
    }
    return sx_require_made("the result", &out_types[0]);
}

/* value = how(value, the tensor's value number k); the first one replaces it. */
static void combine(const reduction *r, int32_t how, bool first, int64_t k,
                    const sx_host_tensor *out, int64_t at)
{
    const sx_host_tensor *x = r->t.values;
    switch (sx_carrier_of(x->type.dtype)) {
    case SX_CARRIER_F:
        out->f[at] = first        ? x->f[k]
                     : how == SUM ? out->f[at] + x->f[k]
                                  : SX_MAX(out->f[at], x->f[k]);
        break;
    case SX_CARRIER_U:
        out->u[at] = first        ? x->u[k]
                     : how == SUM ? out->u[at] + x->u[k]
                                  : SX_MAX(out->u[at], x->u[k]);
        break;
    default:
        out->i[at] = first        ? x->i[k]
                     : how == SUM ? SX_WRAP(out->i[at], +, x->i[k])
                                  : SX_MAX(out->i[at], x->i[k]);
        break;
    }
}

static sx_status sparse_reduce_host(const sx_kernel_call *c)
{
    const sx_sparse_reduce_attrs *a = c->attrs;
    const sx_host_tensor *out = &c->out[a->sparse];
    reduction r;
    SX_TRY(read(c, &r));
    if (!a->sparse) {
        sx_host_fill(c, 0, 0);
    }
    for (int64_t k = 0, at = -1; k < r.t.n; k++) {
        const bool first = begins(&r, k);
        const int64_t *index = r.t.indices + r.order[k] * r.t.rank;
        if (a->sparse && first) {
            int64_t *to = c->out[0].i + ++at * r.shape.rank;
            for (int64_t d = 0; d < r.t.rank; d++) {
                if (!r.reduced[d] || a->keep_dims) {
                    *to++ = r.reduced[d] ? 0 : index[d];
                }
            }
        } else if (first) {
            at = 0;
            for (int64_t d = 0; d < r.t.rank; d++) {
                at = r.reduced[d] ? at : at * r.t.shape[d] + index[d];
            }
        }
        combine(&r, a->how, first, r.order[k], out, at);
    }
    if (a->sparse) {
        memcpy(c->out[2].i, r.shape.dims, (size_t)r.shape.rank * sizeof(int64_t));
    }
    return SX_OK;
}

static sx_status max_from_tf(const sx_tf_node *n, void *out)
{
    (void)n;
    ((sx_sparse_reduce_attrs *)out)->how = MAX;
    return SX_OK;
}

static sx_status sum_sparse_from_tf(const sx_tf_node *n, void *out)
{
    (void)n;
    ((sx_sparse_reduce_attrs *)out)->sparse = true;
    return SX_OK;
}

static sx_status max_sparse_from_tf(const sx_tf_node *n, void *out)
{
    ((sx_sparse_reduce_attrs *)out)->sparse = true;
    return max_from_tf(n, out);
}

const sx_op_def sx_op_sparse_reduce = {
    SX_OP_NAMED(sparse_reduce),
    .n_in = 4,
    .n_out = SX_VARIADIC,
    .flags = SX_OP_HOST | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_sparse_reduce_attrs, sparse_reduce_attrs),
    .infer = sparse_reduce_infer,
    .grad = sparse_reduce_gradient,
    .host = sparse_reduce_host,
    .host_types = sparse_reduce_host_types,
    SX_FROM_TF({.op = "SparseReduceSum"}, {.op = "SparseReduceMax", .attrs = max_from_tf},
               {.op = "SparseReduceSumSparse", .attrs = sum_sparse_from_tf},
               {.op = "SparseReduceMaxSparse", .attrs = max_sparse_from_tf}),
};
