/* tensor_scatter: x with updates of the slices at indices:
 *
 *   y = x,  then for each i in order  y[indices[i..., 0], .., indices[i..., K-1], j...] o= u[i...,
 * j...]
 *
 *   o=    assignment, +=, -=, *=, the smaller, the larger
 *
 *   dx, du   add, sub: dy, +-gather_nd(dy); update: dy without those slices, gather_nd(dy);
 *            min, max: dy in equal parts to all that are equal to y; mul: dy y/x, dy y/u, of one
 *            factor that is zero dy by the product of the others
 *
 *   x        [S0 .. SK-1, J...], any number; of update any type
 *   indices  [I..., K], int32 or int64; K from 0 to x's rank
 *   u        [I..., J...], x's dtype
 *   check    inside: an index outside is an error; skip_negative: slices with a negative index are
 *            left out; ascending: also, K is 1 and the indices do not descend
 *   returns  x's type
 *
 * Errors   INVALID_ARGUMENT  dtypes, ranks, K; (running) an index outside of x, or one that
 * descends, where the target can tell: others leave the slice out Numbers  floats accumulate in f64
 * on the host, in their dtype elsewhere; integers wrap Source   TensorFlow
 * tf.tensor_scatter_nd_update, _add, _sub, _min, _max, tf.scatter_nd, tf.math.unsorted_segment_sum
 * and its kin */
#ifdef SX_PUBLIC
typedef enum sx_scatter {
    SX_SCATTER_UPDATE,
    SX_SCATTER_ADD,
    SX_SCATTER_SUB,
    SX_SCATTER_MUL,
    SX_SCATTER_MIN,
    SX_SCATTER_MAX,
} sx_scatter;

/* x [S...,J...] with its slices at indices [I...,K] updated by those of u [I...,J...]. */
sx_value sx_tensor_scatter(sx_builder *b, sx_value x, sx_value indices, sx_value u, sx_scatter how);
#endif
#ifdef SX_ATTRS
enum { SX_SCATTER_INSIDE, SX_SCATTER_SKIP_NEGATIVE, SX_SCATTER_ASCENDING };
typedef struct sx_tensor_scatter_attrs {
    int32_t how;   /* sx_scatter */
    int32_t check; /* SX_SCATTER_INSIDE, … */
} sx_tensor_scatter_attrs;
#endif

#include "graph/ops/scatter.h"

#include <stdio.h>

/* ---- Shared with gather_nd ---- */

sx_status sx_slices_depth(const sx_type *x, const sx_type *indices, int *out)
{
    SX_TRY(sx_require_index("indices", indices));
    const int64_t k = indices->rank > 0 ? indices->dims[indices->rank - 1] : -1;
    if (k < 0 || k > x->rank) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "x is %s and indices are %s; expected indices [...,K] with K from 0 to the "
                        "rank of x",
                        SX_TEXT(x), SX_TEXT(indices));
    }
    *out = (int)k;
    return SX_OK;
}

int64_t sx_slices_row(const sx_type *x, const sx_host_tensor *indices, int k, int64_t i,
                      bool *out_negative)
{
    int64_t row = 0;
    bool inside = true;
    *out_negative = false;
    for (int d = 0; d < k; d++) {
        const int64_t at = indices->i[i * k + d];
        *out_negative = *out_negative || at < 0;
        inside = inside && at >= 0 && at < x->dims[d];
        row = inside ? row * x->dims[d] + at : 0;
    }
    return inside ? row : -1;
}

sx_status sx_slices_outside(const sx_type *x, const sx_host_tensor *indices, int k, int64_t i)
{
    char text[SX_MAX_RANK * 24] = "";
    int used = 0;
    for (int d = 0; d < k && used < (int)sizeof(text); d++) {
        used += snprintf(text + used, sizeof(text) - (size_t)used, "%s%lld", d > 0 ? "," : "",
                         (long long)indices->i[i * k + d]);
    }
    return sx_error(SX_INVALID_ARGUMENT, "index %lld is [%s], which is not inside %s", (long long)i,
                    text, SX_TEXT(x));
}

/* ---- The operator ---- */

static const char *const how_names[] = {"update", "add", "sub", "mul", "min", "max", NULL};
static const char *const check_names[] = {"inside", "skip_negative", "ascending", NULL};
static const sx_attr_def tensor_scatter_attrs[] = {
    SX_ATTR_NAMES(sx_tensor_scatter_attrs, how, how_names),
    SX_ATTR_NAMES(sx_tensor_scatter_attrs, check, check_names),
};

static sx_status tensor_scatter_infer(sx_infer_context *c)
{
    const sx_tensor_scatter_attrs *attrs = c->attrs;
    const sx_type *x = &c->inputs[0], *indices = &c->inputs[1], *u = &c->inputs[2];
    int k = 0;
    SX_TRY(sx_slices_depth(x, indices, &k));
    SX_TRY(sx_require_dtype("u", u, x->dtype));
    if (attrs->how != SX_SCATTER_UPDATE) {
        SX_TRY(sx_require_number("x", x));
    }
    const int outer = indices->rank - 1;
    bool fits = u->rank == outer + x->rank - k && (attrs->check != SX_SCATTER_ASCENDING || k == 1);
    for (int d = 0; fits && d < u->rank; d++) {
        fits = u->dims[d] == (d < outer ? indices->dims[d] : x->dims[d - outer + k]);
    }
    if (!fits) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "u is %s for x %s and indices %s; expected the dimensions of the indices "
                        "but the last, and those of x after the first %d",
                        SX_TEXT(u), SX_TEXT(x), SX_TEXT(indices), k);
    }
    c->outputs[0] = *x;
    return SX_OK;
}

/* zeros in the shape of `type`, in the dtype of `like` */
static sx_value zeros_of(sx_builder *b, const sx_type *type, sx_value like)
{
    const sx_shape_attrs shape = {.shape = sx_ints_of(type->rank, type->dims)};
    return sx_build_op(b, broadcast_to, &shape, sx_scalar_like(b, like, 0));
}

static void tensor_scatter_gradient(sx_grad *g)
{
    const sx_tensor_scatter_attrs *attrs = g->attrs;
    const sx_gather_nd_attrs take = {.skip_negative = attrs->check != SX_SCATTER_INSIDE};
    const sx_tensor_scatter_attrs add = {.how = SX_SCATTER_ADD, .check = attrs->check},
                                  put = {.how = SX_SCATTER_UPDATE, .check = attrs->check},
                                  times = {.how = SX_SCATTER_MUL, .check = attrs->check};
    sx_builder *b = g->b;
    const sx_value x = g->x[0], at = g->x[1], u = g->x[2], y = g->y[0], dy = g->dy[0];
    const sx_type u_type = sx_type_of_value(b, u);
    const sx_value one = sx_scalar_like(b, dy, 1), zero = sx_scalar_like(b, dy, 0);
    if (attrs->how == SX_SCATTER_MIN || attrs->how == SX_SCATTER_MAX) {
        sx_value y_taken = sx_build_op(b, gather_nd, &take, y, at);
        sx_value x_hit = sx_cast_like(b, sx_build_op(b, equal, NULL, x, y), dy);
        sx_value u_hit = sx_cast_like(b, sx_build_op(b, equal, NULL, u, y_taken), dy);
        sx_value hits = sx_build_op(b, tensor_scatter, &add, x_hit, at, u_hit);
        sx_value share = sx_build_op(b, div_no_nan, NULL, dy, hits);
        g->dx[0] = sx_build_op(b, mul, NULL, x_hit, share);
        if (g->needed[2]) {
            g->dx[2] =
                sx_build_op(b, mul, NULL, u_hit, sx_build_op(b, gather_nd, &take, share, at));
        }
        return;
    }
    if (attrs->how == SX_SCATTER_MUL) { /* product of the factors that are not zero */
        sx_value x_zero = sx_build_op(b, equal, NULL, x, zero);
        sx_value u_zero = sx_build_op(b, equal, NULL, u, zero);
        sx_value x_rest = sx_build_op(b, select, NULL, x_zero, one, x);
        sx_value u_rest = sx_build_op(b, select, NULL, u_zero, one, u);
        sx_value rest = sx_build_op(b, tensor_scatter, &times, x_rest, at, u_rest);
        sx_value n_zero = sx_build_op(b, tensor_scatter, &add, sx_cast_like(b, x_zero, dy), at,
                                      sx_cast_like(b, u_zero, dy));
        sx_value slope = sx_build_op(b, mul, NULL, dy, rest);
        for (int i = 0; i < 3; i += 2) {
            const bool taken = i == 2;
            sx_value s = taken ? sx_build_op(b, gather_nd, &take, slope, at) : slope;
            sx_value zeros = taken ? sx_build_op(b, gather_nd, &take, n_zero, at) : n_zero;
            sx_value own = sx_cast_like(b, taken ? u_zero : x_zero, dy);
            sx_value others = sx_build_op(b, sub, NULL, zeros, own);
            sx_value none = sx_build_op(b, equal, NULL, others, zero);
            s = sx_build_op(b, div, NULL, s, taken ? u_rest : x_rest);
            s = sx_build_op(b, select, NULL, none, s, zero);
            g->dx[i] = s;
        }
        return;
    }
    g->dx[0] = dy;
    if (attrs->how == SX_SCATTER_UPDATE) {
        g->dx[0] = sx_build_op(b, tensor_scatter, &put, dy, at, zeros_of(b, &u_type, dy));
    }
    if (g->needed[2]) {
        sx_value du = sx_build_op(b, gather_nd, &take, dy, at);
        g->dx[2] = attrs->how == SX_SCATTER_SUB ? sx_build_op(b, neg, NULL, du) : du;
    }
}

#define COMBINE(T, field, WRAP_ADD, WRAP_SUB, WRAP_MUL)   \
    for (int64_t j = 0; j < width; j++) {                 \
        T *y = &c->out[0].field[row * width + j];         \
        const T u = c->in[2].field[i * width + j];        \
        *y = how == SX_SCATTER_UPDATE ? u                 \
             : how == SX_SCATTER_ADD  ? (T)(WRAP_ADD)     \
             : how == SX_SCATTER_SUB  ? (T)(WRAP_SUB)     \
             : how == SX_SCATTER_MUL  ? (T)(WRAP_MUL)     \
             : how == SX_SCATTER_MIN  ? (u < *y ? u : *y) \
                                      : (u > *y ? u : *y); \
    }

static sx_status tensor_scatter_host(const sx_kernel_call *c)
{
    const sx_tensor_scatter_attrs *attrs = c->attrs;
    const sx_type *x = &c->in[0].type, *indices = &c->in[1].type;
    const int32_t how = attrs->how;
    const int k = (int)indices->dims[indices->rank - 1];
    const int64_t width = sx_dims_product(x, k, x->rank);
    const size_t bytes = sx_carrier_bytes(x->dtype);
    const sx_carrier carrier = sx_carrier_of(x->dtype);
    memcpy(c->out[0].data, c->in[0].data, (size_t)sx_type_elems(x) * bytes);
    for (int64_t i = 0, n = sx_dims_product(indices, 0, indices->rank - 1); i < n; i++) {
        bool negative = false;
        const int64_t row = sx_slices_row(x, &c->in[1], k, i, &negative);
        if (attrs->check == SX_SCATTER_ASCENDING && i > 0 && c->in[1].i[i] < c->in[1].i[i - 1]) {
            return sx_error(SX_INVALID_ARGUMENT, "index %lld is %lld, after %lld: they descend",
                            (long long)i, (long long)c->in[1].i[i], (long long)c->in[1].i[i - 1]);
        }
        if (row < 0) {
            if (negative && attrs->check == SX_SCATTER_SKIP_NEGATIVE) {
                continue;
            }
            return sx_slices_outside(x, &c->in[1], k, i);
        }
        if (carrier == SX_CARRIER_F) {
            COMBINE(double, f, *y + u, *y - u, *y * u)
        } else if (carrier == SX_CARRIER_I) {
            COMBINE(int64_t, i, SX_WRAP(*y, +, u), SX_WRAP(*y, -, u), SX_WRAP(*y, *, u))
        } else if (carrier == SX_CARRIER_U) {
            COMBINE(uint64_t, u, *y + u, *y - u, *y * u)
        } else { /* bool and strings are only moved */
            memcpy((char *)c->out[0].data + (size_t)(row * width) * bytes,
                   (const char *)c->in[2].data + (size_t)(i * width) * bytes,
                   (size_t)width * bytes);
        }
    }
    return SX_OK;
}

static const struct {
    const char *tf_op;
    int32_t how;
} forms[] = {{"TensorScatterUpdate", SX_SCATTER_UPDATE},
             {"TensorScatterAdd", SX_SCATTER_ADD},
             {"TensorScatterSub", SX_SCATTER_SUB},
             {"TensorScatterMin", SX_SCATTER_MIN},
             {"TensorScatterMax", SX_SCATTER_MAX}};

static void tensor_scatter_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    const sx_tensor_scatter_attrs *attrs = op->attrs;
    for (size_t i = 0; i < SX_COUNT(forms) && attrs->check == SX_SCATTER_INSIDE; i++) {
        if (forms[i].how == attrs->how) {
            op->out[0] =
                sx_tf_add(w, forms[i].tf_op, NULL, sx_tf_in(op->in[0], op->in[1], op->in[2]),
                          sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype),
                                      sx_tf_attr_type("Tindices", (int)op->in_types[1].dtype)));
            return;
        }
    }
    sx_tf_fail(w, sx_error(SX_UNIMPLEMENTED, "%s: TensorFlow has no TensorScatter of %s, %s",
                           op->name, how_names[attrs->how], check_names[attrs->check]));
}

#define FROM_TF(name, how_)                                         \
    static sx_status name##_from_tf(const sx_tf_node *n, void *out) \
    {                                                               \
        (void)n;                                                    \
        ((sx_tensor_scatter_attrs *)out)->how = (how_);             \
        return SX_OK;                                               \
    }
FROM_TF(add, SX_SCATTER_ADD)
FROM_TF(sub, SX_SCATTER_SUB)
FROM_TF(min, SX_SCATTER_MIN)
FROM_TF(max, SX_SCATTER_MAX)

static const double places[] = {3, 1, 0,
                                2}; /* each once: of those that come twice, the last stays */
#define HOW(how_) (&(const sx_tensor_scatter_attrs){.how = (how_)})
#define SAMPLE(name_, how_, fill)                                        \
    {                                                                    \
        .name = (name_),                                                 \
        .inputs = {SX_SAMPLE_F32(fill, 4, 3, 2), SX_SAMPLE_I32(3, 6, 2), \
                   SX_SAMPLE_F32(fill, 6, 2)},                           \
        .n_inputs = 3, .attrs = HOW(how_)                                \
    }
static const sx_op_sample tensor_scatter_samples[] = {
    {.name = "update",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 5, 3), SX_SAMPLE_LIST(SX_I32, places, 4, 1),
                SX_SAMPLE_F32(SX_FILL_NORMAL, 4, 3)},
     .n_inputs = 3,
     .attrs = HOW(SX_SCATTER_UPDATE)},
    SAMPLE("add", SX_SCATTER_ADD, SX_FILL_NORMAL),
    SAMPLE("sub", SX_SCATTER_SUB, SX_FILL_NORMAL),
    SAMPLE("min", SX_SCATTER_MIN, SX_FILL_DISTINCT),
    SAMPLE("max", SX_SCATTER_MAX, SX_FILL_DISTINCT),
    {.name = "examples",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 4, 3), SX_SAMPLE_I32(4, SX_BATCH, 2, 1),
                SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 2, 3)},
     .n_inputs = 3,
     .attrs = HOW(SX_SCATTER_ADD)},
    {.name = "int64",
     .inputs = {{.type = SX_TYPE_LITERAL_(SX_I64, 4), .fill = SX_FILL_INDEX, .limit = 9},
                SX_SAMPLE_I32(4, 7, 1),
                {.type = SX_TYPE_LITERAL_(SX_I64, 7), .fill = SX_FILL_INDEX, .limit = 9}},
     .n_inputs = 3,
     .attrs = HOW(SX_SCATTER_MAX)},
    {.name = "nothing",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 4, 3), SX_SAMPLE_I32(4, 0, 1),
                SX_SAMPLE_F32(SX_FILL_NORMAL, 0, 3)},
     .n_inputs = 3,
     .attrs = HOW(SX_SCATTER_ADD)},
};

sx_value sx_tensor_scatter_at(sx_builder *b, sx_value x, sx_value indices, sx_value u,
                              sx_scatter how, const char *file, int line)
{
    const sx_tensor_scatter_attrs attrs = {.how = (int32_t)how};
    return sx_build_at(b, &sx_op_tensor_scatter, &attrs, (const sx_value[]){x, indices, u}, 3, file,
                       line);
}

const sx_op_def sx_op_tensor_scatter = {
    SX_OP_NAMED(tensor_scatter),
    .n_in = 3,
    .n_out = 1,
    SX_OP_ATTRS(sx_tensor_scatter_attrs, tensor_scatter_attrs),
    .infer = tensor_scatter_infer,
    .grad = tensor_scatter_gradient,
    .host = tensor_scatter_host,
    .to_tf = tensor_scatter_to_tf,
    SX_FROM_TF({.op = "TensorScatterUpdate"}, {.op = "TensorScatterAdd", .attrs = add_from_tf},
               {.op = "TensorScatterSub", .attrs = sub_from_tf},
               {.op = "TensorScatterMin", .attrs = min_from_tf},
               {.op = "TensorScatterMax", .attrs = max_from_tf}),
    SX_OP_SAMPLES(tensor_scatter_samples),
};
