/* ragged_tensor_to_tensor: the rows of a ragged tensor, cut or filled up to one length.
 *
 *   shape       int32 or int64 [rank of the result], -1: as long as the longest; or the scalar -1
 *   values      [k, ...] of any dtype
 *   default     of that dtype: what fills up; broadcasts to the inner dimensions of values
 *   partitions  int32 or int64 vectors, of the outermost dimension first
 *   row_partition_types   how they are written: "ROW_SPLITS" (rows + 1 numbers) each, or
 *               "FIRST_DIM_SIZE" (rows, a scalar) and then "VALUE_ROWIDS" (the row of each item)
 *   returns     dense, of values' dtype
 *
 * Errors   INVALID_ARGUMENT    dtypes, ranks; (running) partitions that contradict each other
 *          RESOURCE_EXHAUSTED  (running) the result is too large
 * Source   TensorFlow RaggedTensorToTensor */
#include "base/memory.h"
#include "graph/ops/host_ops.h"

enum { MOST_PARTITIONS = SX_MAX_RANK };

typedef struct sx_ragged_tensor_to_tensor_attrs {
    const char *row_partition_types; /* separated by commas */
} sx_ragged_tensor_to_tensor_attrs;

static const sx_attr_def ragged_tensor_to_tensor_attrs[] = {
    SX_ATTR(sx_ragged_tensor_to_tensor_attrs, row_partition_types, SX_ATTR_STRING)};

/* What shape, values and partitions say. */
typedef struct plan {
    int ragged_rank;
    int first_input;              /* the partition of dimension 1 */
    bool by_row[MOST_PARTITIONS]; /* VALUE_ROWIDS */
    int64_t rows;
    int64_t size[SX_MAX_RANK]; /* of the result's dimensions */
    sx_type type;
} plan;

static sx_status read_kinds(const char *kinds, int n_partitions, plan *p)
{
    bool first = false;
    int n = 0;
    for (const char *at = kinds != NULL ? kinds : ""; *at != '\0'; n++) {
        const size_t size = strcspn(at, ",");
        const bool is_size = size == 14 && memcmp(at, "FIRST_DIM_SIZE", size) == 0,
                   is_rows = size == 12 && memcmp(at, "VALUE_ROWIDS", size) == 0,
                   is_splits = size == 10 && memcmp(at, "ROW_SPLITS", size) == 0;
        if (n >= MOST_PARTITIONS || !(is_size ? n == 0 : is_rows ? first : is_splits && !first)) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "row_partition_types are %.200s, expected ROW_SPLITS, or "
                            "FIRST_DIM_SIZE and VALUE_ROWIDS",
                            kinds);
        }
        if (!is_size) {
            p->by_row[n - first] = is_rows;
        }
        first = first || is_size;
        at += size + (at[size] == ',');
    }
    p->first_input = 3 + first;
    p->ragged_rank = n - first;
    return n == n_partitions && p->ragged_rank > 0
               ? SX_OK
               : sx_error(SX_INVALID_ARGUMENT, "%d partitions of %d row_partition_types",
                          n_partitions, n);
}

static sx_status ragged_tensor_to_tensor_infer(sx_infer_context *c)
{
    const sx_ragged_tensor_to_tensor_attrs *attrs = c->attrs;
    plan p = {0};
    if (c->n_inputs < 4) {
        return sx_error(SX_INVALID_ARGUMENT, "%d inputs, expected at least 4", c->n_inputs);
    }
    SX_TRY(read_kinds(attrs->row_partition_types, c->n_inputs - 3, &p));
    SX_TRY(sx_require_integers("shape", &c->inputs[0], -1, ""));
    SX_TRY(sx_require_dtype("default", &c->inputs[2], c->inputs[1].dtype));
    for (int i = 3; i < c->n_inputs; i++) {
        SX_TRY(sx_require_integers("a partition", &c->inputs[i], i < p.first_input ? 0 : 1,
                                   i < p.first_input ? "a scalar" : "a vector"));
    }
    const sx_type *values = &c->inputs[1];
    sx_type y = sx_unknown_shape(values->dtype);
    const int64_t named = sx_vector_size(&c->inputs[0]);
    const int64_t rank = values->rank > 0 ? values->rank + p.ragged_rank : named;
    if (values->rank == 0 || rank > SX_MAX_RANK || (named > 0 && rank != named)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "values are %s of %d ragged dimensions, and shape is %s", SX_TEXT(values),
                        p.ragged_rank, SX_TEXT(&c->inputs[0]));
    }
    if (rank > 0) {
        y.rank = (int)rank;
        for (int d = 0; d < y.rank; d++) {
            y.dims[d] = values->rank > 0 && d > p.ragged_rank ? values->dims[d - p.ragged_rank]
                                                              : SX_UNKNOWN_DIM;
        }
    }
    c->outputs[0] = y;
    return SX_OK;
}

/* How many items partition i has, and the row of item k in it. */
static int64_t items_of(const sx_kernel_call *c, const plan *p, int i)
{
    const sx_host_tensor *t = &c->in[p->first_input + i];
    const int64_t n = sx_type_elems(&t->type);
    return p->by_row[i] ? n : n > 0 ? t->i[n - 1] : 0;
}

/* Checks a partition of `rows` rows, and finds its longest row. */
static sx_status check_partition(const sx_kernel_call *c, const plan *p, int i, int64_t rows,
                                 int64_t *out_longest)
{
    const sx_host_tensor *t = &c->in[p->first_input + i];
    const int64_t n = sx_type_elems(&t->type);
    int64_t longest = 0;
    bool sound = p->by_row[i] || (n == rows + 1 && t->i[0] == 0);
    for (int64_t k = 0, run = 0; k < n && sound; k++) {
        const int64_t before = k > 0 ? t->i[k - 1] : 0;
        sound = t->i[k] >= before && (!p->by_row[i] || t->i[k] < rows);
        run = p->by_row[i] ? (k > 0 && t->i[k] == before ? run + 1 : 1) : t->i[k] - before;
        longest = SX_MAX(longest, run);
    }
    *out_longest = longest;
    return sound ? SX_OK
                 : sx_error(SX_INVALID_ARGUMENT,
                            "partition %d, %s of %s, is none of %lld rows: it must ascend within "
                            "them",
                            i, p->by_row[i] ? "row numbers" : "splits", SX_TEXT(&t->type),
                            (long long)rows);
}

static sx_status make_plan(const sx_kernel_call *c, plan *p)
{
    const sx_ragged_tensor_to_tensor_attrs *attrs = c->attrs;
    const sx_host_tensor *shape = &c->in[0];
    const sx_type *values = &c->in[1].type;
    SX_TRY(read_kinds(attrs->row_partition_types, c->n_in - 3, p));
    const sx_host_tensor *outer = &c->in[p->first_input];
    p->rows = p->first_input == 4 ? c->in[3].i[0] : sx_type_elems(&outer->type) - 1;
    p->type = (sx_type){.dtype = values->dtype, .rank = p->ragged_rank + values->rank};
    const bool named = shape->type.rank == 1;
    if (p->rows < 0 || p->type.rank > SX_MAX_RANK ||
        (named && shape->type.dims[0] != p->type.rank) || (!named && shape->i[0] != -1)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "shape is %s of %lld rows, expected %d numbers, or the scalar -1",
                        SX_TEXT(&shape->type), (long long)p->rows, p->type.rank);
    }
    int64_t rows = p->rows;
    p->type.dims[0] = rows;
    for (int i = 0; i < p->ragged_rank; i++) {
        SX_TRY(check_partition(c, p, i, rows, &p->type.dims[i + 1]));
        rows = items_of(c, p, i);
    }
    if (rows != values->dims[0]) {
        return sx_error(SX_INVALID_ARGUMENT, "values are %s, but the partitions are of %lld",
                        SX_TEXT(values), (long long)rows);
    }
    for (int d = 0; d < p->type.rank; d++) {
        const int64_t size = named ? shape->i[d] : -1;
        const bool inner = d > p->ragged_rank;
        p->type.dims[d] = inner ? values->dims[d - p->ragged_rank] : p->type.dims[d];
        if (size < -1 || (inner && size >= 0 && size != p->type.dims[d])) {
            return sx_error(SX_INVALID_ARGUMENT, "shape is %lld in dimension %d of values of %s",
                            (long long)size, d, SX_TEXT(values));
        }
        p->type.dims[d] = size >= 0 ? size : p->type.dims[d];
    }
    return sx_require_made("the result", &p->type);
}

/* The numbers of the values are laid out as these are, -1 where the default is. */
static void ragged_tensor_to_tensor_gradient(sx_grad *g)
{
    sx_builder *b = g->b;
    const sx_type values = sx_type_of_value(b, g->x[1]);
    const sx_type shape = sx_type_of_value(b, g->x[0]);
    sx_value *in = sx_arena_memdup(sx_builder_arena(b), g->x, (size_t)g->n_inputs * sizeof(*in));
    sx_type places = sx_type_of_value(b, g->y[0]);
    if (in == NULL) {
        sx_builder_fail(b, sx_no_memory("for gradients"));
        return;
    }
    places.dtype = SX_I64;
    places.rank -= values.rank - 1;
    if (shape.rank == 1) {
        const sx_slice_attrs outer = {.begin = {1, {0}}, .size = {1, {places.rank}}};
        in[0] = sx_build_op(b, slice, &outer, g->x[0]);
    }
    in[1] = sx_numbers_to(b, values.dims[0]);
    in[2] = sx_scalar(b, SX_I64, -1);
    const sx_value at =
        sx_build_typed(b, &sx_op_ragged_tensor_to_tensor, g->attrs, in, g->n_inputs, &places, 1);
    if (g->needed[1]) {
        g->dx[1] = sx_add_rows(b, g->x[1], at, g->dy[0]);
    }
    if (g->needed[2]) {
        sx_type each = places;
        while (each.rank < places.rank + values.rank - 1) {
            each.dims[each.rank++] = 1;
        }
        const sx_value filled =
            sx_build_op(b, less, NULL, sx_reshape_to(b, at, &each), sx_scalar(b, SX_I64, 0));
        g->dx[2] = sx_unbroadcast(
            b, sx_build_op(b, select, NULL, filled, g->dy[0], sx_scalar_like(b, g->dy[0], 0)),
            g->x[2]);
    }
}

static sx_status ragged_tensor_to_tensor_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    plan p = {0};
    SX_TRY(make_plan(c, &p));
    out_types[0] = p.type;
    return SX_OK;
}

static sx_status ragged_tensor_to_tensor_host(const sx_kernel_call *c)
{
    plan p = {0};
    SX_TRY(make_plan(c, &p));
    const sx_type *values = &c->in[1].type;
    const int64_t inner = sx_dims_product(values, 1, values->rank), total = sx_type_elems(&p.type);
    sx_type element = *values, broadcast; /* of one item */
    for (int d = 1; d < values->rank; d++) {
        element.dims[d - 1] = values->dims[d];
    }
    element.rank--;
    SX_TRY(sx_infer_broadcast(&element, &c->in[2].type, &broadcast));
    if (!sx_same_dims(&element, &broadcast)) {
        return sx_error(SX_INVALID_ARGUMENT, "default is %s, and an item %s",
                        SX_TEXT(&c->in[2].type), SX_TEXT(&element));
    }
    for (int64_t k = 0; k < inner && k < total; k++) { /* an item of defaults, then as many again */
        sx_host_move(c, k, 2, sx_broadcast_offset(&element, &c->in[2].type, k), 1);
    }
    for (int64_t done = inner; done > 0 && done < total; done *= 2) {
        memcpy((char *)c->out[0].data + (size_t)done * c->elem_bytes, c->out[0].data,
               (size_t)SX_MIN(done, total - done) * c->elem_bytes);
    }
    /* where each item of a partition goes, in items of the result; -1: nowhere */
    int64_t n = p.rows;
    int64_t *to = sx_arena_array(c->arena, n + 1, int64_t);
    for (int64_t k = 0; to != NULL && k < n; k++) {
        to[k] = k < p.type.dims[0] ? k : -1;
    }
    for (int i = 0; i < p.ragged_rank && to != NULL; i++) {
        const sx_host_tensor *t = &c->in[p.first_input + i];
        const int64_t items = items_of(c, &p, i), width = p.type.dims[i + 1];
        int64_t *next = sx_arena_array(c->arena, items + 1, int64_t);
        for (int64_t k = 0, row = 0, at = 0, last = -1; k < items && next != NULL; k++) {
            if (p.by_row[i]) {
                row = t->i[k];
            } else {
                while (t->i[row + 1] <= k) {
                    row++;
                }
            }
            at = row == last ? at + 1 : 0;
            last = row;
            next[k] = to[row] >= 0 && at < width ? to[row] * width + at : -1;
        }
        to = next;
        n = items;
    }
    if (to == NULL) {
        return sx_budget_error(c->arena->budget);
    }
    for (int64_t k = 0, run = 1; k < n; k += run) { /* items that stay beside one another */
        for (run = 1; to[k] >= 0 && k + run < n && to[k + run] == to[k] + run;) {
            run++;
        }
        if (to[k] >= 0) {
            sx_host_move(c, to[k] * inner, 1, k * inner, run * inner);
        }
    }
    return SX_OK;
}

static void ragged_tensor_to_tensor_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    const char *kinds = ((const sx_ragged_tensor_to_tensor_attrs *)op->attrs)->row_partition_types;
    const int n = op->n_in - 3;
    op->out[0] = sx_tf_add(w, "RaggedTensorToTensor", NULL, (sx_tf_values){op->in, op->n_in},
                           sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[1].dtype),
                                       sx_tf_attr_type("Tindex", (int)op->in_types[3].dtype),
                                       sx_tf_attr_type("Tshape", (int)op->in_types[0].dtype),
                                       sx_tf_attr_int("num_row_partition_tensors", n),
                                       sx_tf_attr_strings("row_partition_types", n, kinds)));
}

static sx_status ragged_tensor_to_tensor_from_tf(const sx_tf_node *n, void *out)
{
    sx_ragged_tensor_to_tensor_attrs *attrs = out;
    sx_tf_attr a;
    if (!n->attr(n, "row_partition_types", &a) || a.kind != SX_TF_ATTR_STRINGS) {
        return sx_error(SX_DATA_LOSS, "row_partition_types are missing");
    }
    attrs->row_partition_types = a.s;
    return SX_OK;
}

static const double free_shape[] = {-1}, cut_shape[] = {2, 3}, splits[] = {0, 2, 2, 6},
                    row_ids[] = {0, 0, 2, 2, 2, 2}, three[] = {3};
#define TYPES(text)                                    \
    .attrs = &(const sx_ragged_tensor_to_tensor_attrs) \
    {                                                  \
        .row_partition_types = (text)                  \
    }
static const sx_op_sample ragged_tensor_to_tensor_samples[] = {
    {.name = "splits",
     .inputs = {SX_SAMPLE_LIST(SX_I64, cut_shape, 2), SX_SAMPLE_TEXT(6),
                SX_SAMPLE_SCALAR(SX_STRING, SX_FILL_TEXT), SX_SAMPLE_LIST(SX_I64, splits, 4)},
     .n_inputs = 4,
     TYPES("ROW_SPLITS")},
    {.name = "rows",
     .inputs = {SX_SAMPLE_ONE(SX_I64, free_shape), SX_SAMPLE_F32(SX_FILL_NORMAL, 6, 2),
                SX_SAMPLE_F32(SX_FILL_NORMAL, 2), SX_SAMPLE_ONE(SX_I64, three),
                SX_SAMPLE_LIST(SX_I64, row_ids, 6)},
     .n_inputs = 5,
     TYPES("FIRST_DIM_SIZE,VALUE_ROWIDS")},
};

const sx_op_def sx_op_ragged_tensor_to_tensor = {
    SX_OP_NAMED(ragged_tensor_to_tensor),
    .n_in = SX_VARIADIC,
    .n_out = 1,
    .flags = SX_OP_HOST,
    SX_OP_ATTRS(sx_ragged_tensor_to_tensor_attrs, ragged_tensor_to_tensor_attrs),
    .moved = 0x6,
    .infer = ragged_tensor_to_tensor_infer,
    .grad = ragged_tensor_to_tensor_gradient,
    .host = ragged_tensor_to_tensor_host,
    .host_types = ragged_tensor_to_tensor_host_types,
    .to_tf = ragged_tensor_to_tensor_to_tf,
    SX_FROM_TF({.op = "RaggedTensorToTensor", .attrs = ragged_tensor_to_tensor_from_tf}),
    SX_OP_SAMPLES(ragged_tensor_to_tensor_samples),
};
