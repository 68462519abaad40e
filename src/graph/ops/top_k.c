/* top_k: the k largest elements along the last axis in descending order, and their indices. Of
 * equal elements, the one with the lower index comes first.
 *
 *   unsorted  fewer than all, and more than one: in the order in which TensorFlow's heap keeps
 *             them; on a PJRT device in descending order
 *
 *   dx = gather_grad(indices, dvalues)
 *
 *   x        [..., C], any number; the last axis is not the batch
 *   k        in [0, C]
 *   returns  values [..., k] of x's dtype, indices [..., k] int32
 *
 * Errors   INVALID_ARGUMENT  not numeric, rank 0, k out of range
 * Numbers  exact
 * Source   TensorFlow tf.math.top_k, sorted */
#ifdef SX_PUBLIC
/* The k largest elements along the last axis, in descending order; output 1: int32 indices. */
sx_value sx_top_k(sx_builder *b, sx_value x, int64_t k);
#endif
#ifdef SX_ATTRS
/* top_k, in_top_k */
typedef struct sx_top_k_attrs {
    int64_t k;
    bool unsorted;
} sx_top_k_attrs;
#endif

#include "graph/ops/common.h"

static const sx_attr_def top_k_attrs[] = {SX_ATTR(sx_top_k_attrs, k, SX_ATTR_INT),
                                          SX_ATTR(sx_top_k_attrs, unsorted, SX_ATTR_BOOL)};

static sx_status top_k_infer(sx_infer_context *c)
{
    const sx_top_k_attrs *attrs = c->attrs;
    sx_type y = c->inputs[0];
    SX_TRY(sx_require_number("x", &y));
    int64_t last = y.rank < 1 ? SX_BATCH : y.dims[y.rank - 1];
    if (last < 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "x is %s, expected [...,C] with C other than the batch", SX_TEXT(&y));
    }
    if (attrs->k < 0 || attrs->k > last) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "k is %lld, expected 0 to %lld, the size of the last axis of x %s",
                        (long long)attrs->k, (long long)last, SX_TEXT(&y));
    }
    y.dims[y.rank - 1] = attrs->k;
    c->outputs[0] = c->outputs[1] = y;
    c->outputs[1].dtype = SX_I32;
    return SX_OK;
}

/* Whether element i of the row comes before element k: a larger one, or of equal ones that with the
 * lower index. */
static bool comes_before(const sx_host_tensor *row, int64_t i, int64_t k)
{
#define COMPARE(type, field)                  \
    if (row->field[i] != row->field[k]) {     \
        return row->field[i] > row->field[k]; \
    }
    SX_HOST_BY_NUMBER(row->type.dtype, COMPARE)
    return i < k;
}

/* heap[0 .. n) of places, the last one in order first, is one again when heap[at] may be late. */
static void sift(const sx_host_tensor *row, int64_t *heap, int64_t n, int64_t at)
{
    for (;;) {
        int64_t last = at;
        for (int64_t child = 2 * at + 1; child <= 2 * at + 2 && child < n; child++) {
            last = comes_before(row, heap[last], heap[child]) ? child : last;
        }
        if (last == at) {
            return;
        }
        const int64_t place = heap[at];
        heap[at] = heap[last];
        heap[last] = place;
        at = last;
    }
}

/* The first k places of a row of n, in order. */
static void choose(const sx_host_tensor *row, int64_t n, int64_t k, int64_t *places)
{
    for (int64_t i = 0; i < k; i++) {
        places[i] = i;
    }
    for (int64_t i = k / 2; i > 0; i--) {
        sift(row, places, k, i - 1);
    }
    for (int64_t i = k; i < n && k > 0; i++) {
        if (comes_before(row, i, places[0])) {
            places[0] = i;
            sift(row, places, k, 0);
        }
    }
    for (int64_t left = k - 1; left > 0; left--) {
        const int64_t last = places[0];
        places[0] = places[left];
        places[left] = last;
        sift(row, places, left, 0);
    }
}

/* As comes_before(), but that of a NaN and anything the lower index comes first. */
static bool precedes(const sx_host_tensor *row, int64_t i, int64_t k)
{
#define FOLLOWS(type, field)             \
    if (row->field[i] < row->field[k]) { \
        return false;                    \
    }                                    \
    if (row->field[i] > row->field[k]) { \
        return true;                     \
    }
    SX_HOST_BY_NUMBER(row->type.dtype, FOLLOWS)
    return i < k;
}

/* Places of a row as a heap, the last one in order first: k of them, and one more. */
typedef struct place_heap {
    const sx_host_tensor *row;
    int64_t *places; /* [k] */
    int64_t k, more;
} place_heap;

static int64_t *heap_at(place_heap *heap, int64_t i)
{
    return i < heap->k ? &heap->places[i] : &heap->more;
}

/* Puts `place`, for which `at` is free, where nothing above it, up to `top`, precedes it. */
static void rise(place_heap *heap, int64_t at, int64_t top, int64_t place)
{
    for (; at > top && precedes(heap->row, *heap_at(heap, (at - 1) / 2), place);
         at = (at - 1) / 2) {
        *heap_at(heap, at) = *heap_at(heap, (at - 1) / 2);
    }
    *heap_at(heap, at) = place;
}

/* The same below `top`, which is free, in a heap of n: first what is free goes down to its end. */
static void settle(place_heap *heap, int64_t n, int64_t top, int64_t place)
{
    int64_t at = top;
    while (2 * at + 2 <= n) {
        const int64_t left = 2 * at + 1, right = left + 1;
        const bool to_left =
            right == n || precedes(heap->row, *heap_at(heap, right), *heap_at(heap, left));
        const int64_t child = to_left ? left : right;
        *heap_at(heap, at) = *heap_at(heap, child);
        at = child;
    }
    rise(heap, at, top, place);
}

/* The first k places of a row of n > k, in the order in which a heap has them from which the last
 * is taken whenever there is one more than k. */
static void choose_unsorted(const sx_host_tensor *row, int64_t n, int64_t k, int64_t *places)
{
    place_heap heap = {.row = row, .places = places, .k = k};
    for (int64_t i = 0; i <= k; i++) {
        *heap_at(&heap, i) = i;
    }
    for (int64_t i = (k + 1) / 2; i > 0; i--) {
        settle(&heap, k + 1, i - 1, *heap_at(&heap, i - 1));
    }
    settle(&heap, k, 0, heap.more);
    for (int64_t i = k + 1; i < n; i++) {
        if (precedes(row, i, places[0])) {
            settle(&heap, k - 1, 0, places[k - 1]);
            rise(&heap, k - 1, 0, i);
        }
    }
}

static sx_status top_k_host(const sx_kernel_call *c)
{
    const sx_top_k_attrs *attrs = c->attrs;
    const int64_t k = attrs->k;
    const sx_type *x = &c->in[0].type;
    const int64_t classes = x->dims[x->rank - 1], n = sx_type_elems(x);
    const bool unsorted = attrs->unsorted && k > 1 && k < classes;
    for (int64_t begin = 0, at = 0; begin < n; begin += classes, at += k) {
        sx_host_tensor row = c->in[0];
        row.data = (char *)row.data + (size_t)begin * sx_carrier_bytes(x->dtype);
        if (unsorted) {
            choose_unsorted(&row, classes, k, c->out[1].i + at);
        } else {
            choose(&row, classes, k, c->out[1].i + at);
        }
#define TAKE(type, field) c->out[0].field[at + i] = row.field[c->out[1].i[at + i]]
        for (int64_t i = 0; i < k; i++) {
            SX_HOST_BY_NUMBER(x->dtype, TAKE)
        }
    }
    return SX_OK;
}

/* Each value's gradient goes to where the value was. */
static void top_k_grad(sx_grad *g)
{
    const sx_type x = sx_type_of_value(g->b, g->x[0]);
    if (sx_builder_failed(g->b)) {
        return;
    }
    const sx_gather_grad_attrs back = {
        .rows = x.dims[x.rank - 1], .axis = x.rank - 1, .batch_dims = x.rank - 1};
    if (sx_value_is(g->dy[0])) {
        g->dx[0] = sx_build_op(g->b, gather_grad, &back, g->y[1], g->dy[0]);
    }
}

static void top_k_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    const sx_top_k_attrs *attrs = op->attrs;
    sx_tf_value k = sx_tf_const_i32(w, "k", (int32_t)attrs->k);
    op->out[0] = sx_tf_add(w, "TopKV2", NULL, sx_tf_in(op->in[0], k),
                           sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype),
                                       sx_tf_attr_bool("sorted", !attrs->unsorted)));
    op->out[1] = sx_tf_output(op->out[0], 1);
}

static sx_status top_k_attrs_of(const sx_tf_node *n, void *attrs)
{
    ((sx_top_k_attrs *)attrs)->unsorted = !sx_tf_read_bool(n, "sorted", true);
    return SX_OK;
}

#define TOP(k_) (&(const sx_top_k_attrs){.k = (k_)})
static const sx_op_sample top_k_samples[] = {
    {.name = "three",
     .inputs = {SX_SAMPLE_F32(SX_FILL_DISTINCT, SX_BATCH, 9)},
     .n_inputs = 1,
     .attrs = TOP(3)},
    {.name = "sort",
     .inputs = {SX_SAMPLE_F32(SX_FILL_DISTINCT, SX_BATCH, 2, 5)},
     .n_inputs = 1,
     .attrs = TOP(5)},
    {.name = "ties", .inputs = {SX_SAMPLE_I32(3, SX_BATCH, 8)}, .n_inputs = 1, .attrs = TOP(4)},
    {.name = "one", .inputs = {SX_SAMPLE_F32(SX_FILL_DISTINCT, 1)}, .n_inputs = 1, .attrs = TOP(1)},
    {.name = "none",
     .inputs = {SX_SAMPLE_F32(SX_FILL_DISTINCT, 2, 3)},
     .n_inputs = 1,
     .attrs = TOP(0)},
    {.name = "no_elements",
     .inputs = {SX_SAMPLE_F32(SX_FILL_DISTINCT, 2, 0)},
     .n_inputs = 1,
     .attrs = TOP(0)},
    {.name = "batch_inside",
     .inputs = {SX_SAMPLE_F32(SX_FILL_DISTINCT, 2, -2, 5)},
     .n_inputs = 1,
     .attrs = TOP(2)},
    {.name = "unsorted", /* all of them, which have an order that devices share */
     .inputs = {SX_SAMPLE_F32(SX_FILL_DISTINCT, SX_BATCH, 5)},
     .n_inputs = 1,
     .attrs = &(const sx_top_k_attrs){.k = 5, .unsorted = true}},
};

sx_value sx_top_k_at(sx_builder *b, sx_value x, int64_t k, const char *file, int line)
{
    sx_top_k_attrs attrs = {.k = k};
    return sx_build_at(b, &sx_op_top_k, &attrs, &x, 1, file, line);
}

const sx_op_def sx_op_top_k = {
    SX_OP_NAMED(top_k),
    .n_in = 1,
    .n_out = 2,
    .batch_rule = SX_RULE_EXAMPLES,
    .bf16 = 0x1,
    .flags = SX_OP_KEEPS_RANK | SX_OP_EXACT,
    SX_OP_ATTRS(sx_top_k_attrs, top_k_attrs),
    .infer = top_k_infer,
    .out_dtypes = {SX_DTYPE_NONE, SX_I32},
    .grad = top_k_grad,
    .host = top_k_host,
    .to_tf = top_k_to_tf,
    SX_FROM_TF({.op = "TopKV2", .operands = {{1, "k"}}, .attrs = top_k_attrs_of}),
    SX_OP_SAMPLES(top_k_samples),
};
