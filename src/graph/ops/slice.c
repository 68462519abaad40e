/* slice: the block of x that starts at `begin` and is `size` large;  dx = dy with zeros around it
 *
 *   x        any type
 *   begin    per dimension; 0 for the batch
 *   size     per dimension; for the batch c*N it is -c, as in types: examples are not cut
 *   returns  x's dtype, shape `size`
 *
 * Errors   INVALID_ARGUMENT  lists not of x's rank, a block that leaves x, a part of the batch
 * Numbers  exact
 * Source   TensorFlow tf.slice */
#ifdef SX_PUBLIC
typedef struct sx_slice_args {
    size_t struct_size;
    int64_t begin[SX_MAX_RANK]; /* 0 for the batch */
    int64_t size[SX_MAX_RANK];  /* for the batch that of x: SX_BATCH, or -c */
} sx_slice_args;

/* A block of x: sx_slice(b, x, .begin = {0, 2}, .size = {SX_BATCH, 3}). */
sx_value sx_slice(sx_builder *b, sx_value x, const sx_slice_args *args);
#endif
#ifdef SX_ATTRS
typedef struct sx_slice_attrs {
    sx_ints begin; /* 0 for the batch dimension */
    sx_ints size;  /* SX_BATCH for the batch dimension */
} sx_slice_attrs;
#endif

#include "graph/ops/common.h"

static const sx_attr_def slice_attrs[] = {
    SX_ATTR(sx_slice_attrs, begin, SX_ATTR_INTS),
    SX_ATTR_MEANS(sx_slice_attrs, size, SX_ATTR_SHAPE, SX_MEANS_TO_THE_END),
};

static sx_status slice_infer(sx_infer_context *c)
{
    const sx_slice_attrs *attrs = c->attrs;
    const sx_type *x = &c->inputs[0];
    if (attrs->begin.n != x->rank || attrs->size.n != x->rank) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "x is %s with %d begins and %d sizes; expected numbers, and one begin and "
                        "one size for each dimension",
                        SX_TEXT(x), attrs->begin.n, attrs->size.n);
    }
    for (int i = 0; i < x->rank; i++) {
        int64_t begin = attrs->begin.v[i], size = attrs->size.v[i], dim = x->dims[i];
        if (begin == SX_UNKNOWN_DIM || size == SX_UNKNOWN_DIM) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "the %s of axis %d is SX_UNKNOWN_DIM: sx_function_node() takes begins "
                            "and sizes that are computed at run time",
                            begin == SX_UNKNOWN_DIM ? "begin" : "size", i);
        }
        if (sx_dim_is_batch(dim) && !(begin == 0 && size == dim)) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "axis %d of x %s is the batch, which cannot be sliced: its begin must "
                            "be 0 and its size %s, got %lld and %lld",
                            i, SX_TEXT(x), dim == SX_BATCH ? "SX_BATCH" : "that of x",
                            (long long)begin, (long long)size);
        }
        if (!sx_dim_is_batch(dim) && (begin < 0 || size < 0 || begin > dim || size > dim - begin)) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "begin %lld and size %lld are outside axis %d of x %s, which has %lld "
                            "elements",
                            (long long)begin, (long long)size, i, SX_TEXT(x), (long long)dim);
        }
    }
    c->outputs[0] = sx_type_make(x->dtype, attrs->size.n, attrs->size.v);
    return SX_OK;
}

static void slice_grad(sx_grad *g)
{
    const sx_slice_attrs *attrs = g->attrs;
    sx_type x = sx_type_of_value(g->b, g->x[0]);
    sx_pad_attrs around = {.before = attrs->begin, .after = {.n = x.rank}};
    for (int i = 0; i < x.rank; i++) {
        around.after.v[i] =
            sx_dim_is_batch(x.dims[i]) ? 0 : x.dims[i] - attrs->begin.v[i] - attrs->size.v[i];
    }
    g->dx[0] = sx_build_op(g->b, pad, &around, g->dy[0]);
}

static sx_status slice_host(const sx_kernel_call *c)
{
    const sx_slice_attrs *attrs = c->attrs;
    const sx_type *y = &c->out[0].type;
    int64_t n = sx_type_elems(y), row = y->rank == 0 ? 1 : y->dims[y->rank - 1];
    for (int64_t i = 0; i < n; i += row) {
        int64_t at[SX_MAX_RANK];
        sx_unravel(y, i, at);
        for (int d = 0; d < attrs->begin.n; d++) {
            at[d] += attrs->begin.v[d];
        }
        sx_host_move(c, i, 0, sx_ravel(&c->in[0].type, at), row);
    }
    return SX_OK;
}

/* -1 is TensorFlow's "to the end". */
static void slice_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    const sx_slice_attrs *attrs = op->attrs;
    sx_tf_value begin = sx_tf_ints(w, "begin", &attrs->begin);
    sx_tf_value size = sx_tf_shape(w, "size", &attrs->size);
    op->out[0] = sx_tf_add(w, "Slice", NULL, sx_tf_in(op->in[0], begin, size),
                           sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype),
                                       sx_tf_attr_type("Index", SX_I32)));
}

#define BLOCK(begin_, ...) (&(const sx_slice_attrs){.begin = begin_, .size = __VA_ARGS__})
#define AT(...)     \
    {               \
        __VA_ARGS__ \
    }
static const sx_op_sample slice_samples[] = {
    {.name = "columns",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 7)},
     .n_inputs = 1,
     .attrs = BLOCK(AT(2, {0, 2}), {2, {SX_BATCH, 3}})},
    {.name = "crop",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 5, 6, 2)},
     .n_inputs = 1,
     .attrs = BLOCK(AT(4, {0, 1, 2, 0}), {4, {SX_BATCH, 4, 3, 2}})},
    {.name = "all",
     .inputs = {SX_SAMPLE_I32(9, SX_BATCH, 3)},
     .n_inputs = 1,
     .attrs = BLOCK(AT(2, {0, 0}), {2, {SX_BATCH, 3}})},
    {.name = "rows",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 6, 2)},
     .n_inputs = 1,
     .attrs = BLOCK(AT(2, {4, 1}), {2, {2, 1}})},
    {.name = "beside_the_batch",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 4, -2, 3)},
     .n_inputs = 1,
     .attrs = BLOCK(AT(3, {1, 0, 2}), {3, {2, -2, 1}})},
};

sx_value sx_slice_at(sx_builder *b, sx_value x, const sx_slice_args *args, const char *file,
                     int line)
{
    SX_TAKE_BUILD_ARGS(b, sx_slice_args, args);
    int rank = sx_type_of_value(b, x).rank;
    sx_slice_attrs attrs = {
        .begin = sx_ints_of(rank, args->begin),
        .size = sx_ints_of(rank, args->size),
    };
    return sx_build_at(b, &sx_op_slice, &attrs, &x, 1, file, line);
}

static double slice_bytes(const sx_type *in, const sx_type *out)
{
    (void)in;
    return 2 * (double)sx_type_bytes(&out[0]);
}

static void slice_parts(const sx_parts *p)
{
    const sx_slice_attrs *attrs = p->attrs;
    for (int i = 0; i < attrs->begin.n; i++) {
        p->in_used[0].dims[i] = attrs->begin.v[i] + p->out_used[0].dims[i];
    }
}

const sx_op_def sx_op_slice = {
    SX_OP_NAMED(slice),
    .n_in = 1,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .bf16 = 0x1,
    .flags = SX_OP_EXACT | SX_OP_KEEPS_RANK,
    SX_OP_ATTRS(sx_slice_attrs, slice_attrs),
    .moved = 0x1,
    .infer = slice_infer,
    .grad = slice_grad,
    .host = slice_host,
    .bytes = slice_bytes,
    .to_tf = slice_to_tf,
    SX_FROM_TF({.op = "Slice", .operands = {{1, "begin"}, {2, "size"}}}),
    .parts = slice_parts,
    SX_OP_SAMPLES(slice_samples),
};
