/* sparse_count: how often each number is in each row, or the sum of its weights, as a sparse tensor
 * [rows, numbers], or [numbers] of a vector.
 *
 *   dense    values int32 or int64 [n] or [rows, n]
 *   sparse   indices, values, shape: a sparse tensor of any rank, whose first dimension is the
 *            rows unless it is the only one
 *   ragged   splits int64 [rows + 1], values [n]
 *   weights        int32, int64, float32 or float64: one for each value, or none: all 1
 *   minlength, maxlength   the least size of the dimension of numbers; its size: greater numbers do
 *                          not count, -1 = one more than the greatest
 *   binary_output  1 for each number that is there
 *   returns        indices int64, values of weights' dtype, shape int64
 *
 * Errors   INVALID_ARGUMENT    dtypes, ranks, sizes; (running) a negative number
 *          RESOURCE_EXHAUSTED  (running) too many values
 * Source   TensorFlow DenseCountSparseOutput, SparseCountSparseOutput, RaggedCountSparseOutput */
#include "graph/ops/sparse.h"

enum { DENSE, SPARSE, RAGGED };

typedef struct sx_sparse_count_attrs {
    int32_t rows;
    int64_t minlength, maxlength;
    bool binary_output;
} sx_sparse_count_attrs;

static const char *const row_names[] = {"dense", "sparse", "ragged", NULL};
static const sx_attr_def sparse_count_attrs[] = {
    SX_ATTR_NAMES(sx_sparse_count_attrs, rows, row_names),
    SX_ATTR_TF(sx_sparse_count_attrs, minlength, SX_ATTR_INT, .tf_number = -1),
    SX_ATTR_TF(sx_sparse_count_attrs, maxlength, SX_ATTR_INT, .tf_number = -1),
    SX_ATTR_TF(sx_sparse_count_attrs, binary_output, SX_ATTR_BOOL),
};

static sx_status sparse_count_infer(sx_infer_context *c)
{
    const sx_sparse_count_attrs *a = c->attrs;
    const int at = a->rows != DENSE, n = a->rows == DENSE ? 2 : a->rows == SPARSE ? 4 : 3;
    if (c->n_inputs != n) {
        return sx_error(SX_INVALID_ARGUMENT, "%d operands, expected %d", c->n_inputs, n);
    }
    const sx_type *values = &c->inputs[at], *weights = &c->inputs[n - 1];
    SX_TRY(sx_require_index("values", values));
    if (a->rows == SPARSE) {
        SX_TRY(sx_infer_sparse(c, 0, 1, 2));
    } else if (a->rows == RAGGED) {
        SX_TRY(sx_require_maybe("splits", &c->inputs[0], SX_I64, 1, "[rows + 1]"));
    }
    if ((values->rank >= 0 && values->rank != 1 && (a->rows != DENSE || values->rank != 2)) ||
        (weights->dtype != SX_F32 && weights->dtype != SX_F64 && weights->dtype != SX_I32 &&
         weights->dtype != SX_I64)) {
        return sx_error(SX_INVALID_ARGUMENT, "values are %s, weights %s", SX_TEXT(values),
                        SX_TEXT(weights));
    }
    const int64_t dims = a->rows == SPARSE ? sx_vector_size(&c->inputs[2]) : values->rank;
    const int64_t rank = a->rows == RAGGED ? 2 : dims < 0 ? SX_UNKNOWN_DIM : dims == 1 ? 1 : 2;
    c->outputs[0] = sx_type_of(SX_I64, SX_UNKNOWN_DIM, rank);
    c->outputs[1] = sx_type_of(weights->dtype, SX_UNKNOWN_DIM);
    c->outputs[2] = sx_type_of(SX_I64, rank);
    return SX_OK;
}

/* The values that count, as pairs of row and number, and their places. */
typedef struct counted {
    int64_t n, rank, rows, length;
    int64_t *pairs, *places, *order;
} counted;

static sx_status read(const sx_kernel_call *c, counted *out)
{
    const sx_sparse_count_attrs *a = c->attrs;
    const sx_host_tensor *values = &c->in[a->rows != DENSE], *weights = &c->in[c->n_in - 1];
    const int64_t all = sx_type_elems(&values->type);
    const int64_t *splits = c->in[0].i;
    sx_sparse t = {.n = 0};
    *out = (counted){.rank = 2};
    bool sound = true;
    if (a->rows == SPARSE) {
        SX_TRY(sx_read_sparse(c, 0, 1, 2, &t));
        out->rank = t.rank == 1 ? 1 : 2;
        sound = t.rank > 0;
        out->rows = !sound ? 0 : t.rank == 1 ? 1 : t.shape[0];
    } else if (a->rows == RAGGED) {
        out->rows = c->in[0].type.dims[0] - 1;
        sound = sx_splits_are_sound(&c->in[0], all);
    } else {
        out->rank = values->type.rank;
        out->rows = out->rank == 2 ? values->type.dims[0] : 1;
    }
    const int64_t n_weights = sx_type_elems(&weights->type);
    if (!sound || out->rows < 1 ||
        (n_weights != 0 && !sx_same_dims(&weights->type, &values->type))) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "values are %s, weights %s, in %lld rows; expected weights of their shape "
                        "or none, a row or more, and splits that ascend from 0 to the values",
                        SX_TEXT(&values->type), SX_TEXT(&weights->type), (long long)out->rows);
    }
    int64_t room = 0;
    if (!sx_mul_i64(all, 2, &room)) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "too many values");
    }
    out->pairs = sx_arena_array(c->arena, room + 1, int64_t);
    out->places = sx_arena_array(c->arena, all + 1, int64_t);
    if (out->pairs == NULL || out->places == NULL) {
        return sx_budget_error(c->arena->budget);
    }
    int64_t most = 0, row = 0;
    for (int64_t k = 0; k < all; k++) {
        const int64_t value = values->i[k];
        while (a->rows == RAGGED && splits[row + 1] <= k) {
            row++;
        }
        if (value < 0) {
            return sx_error(SX_INVALID_ARGUMENT, "value %lld is %lld, expected 0 or more",
                            (long long)k, (long long)value);
        }
        if (a->maxlength > 0 && value >= a->maxlength) {
            continue;
        }
        out->pairs[2 * out->n] = out->rank == 1      ? 0
                                 : a->rows == DENSE  ? k / values->type.dims[1]
                                 : a->rows == SPARSE ? t.indices[k * t.rank]
                                                     : row;
        out->pairs[2 * out->n + 1] = value;
        out->places[out->n++] = k;
        most = SX_MAX(most, value);
    }
    out->length =
        a->maxlength > 0 ? a->maxlength : SX_MAX(most < INT64_MAX ? most + 1 : most, a->minlength);
    out->order = sx_order_indices(c, out->pairs, out->n, 2);
    return out->order != NULL ? SX_OK : sx_budget_error(c->arena->budget);
}

static bool begins(const counted *x, int64_t k)
{
    return k == 0 ||
           sx_compare_indices(x->pairs + 2 * x->order[k - 1], x->pairs + 2 * x->order[k], 2) != 0;
}

static sx_status sparse_count_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    counted x;
    int64_t n = 0;
    SX_TRY(read(c, &x));
    for (int64_t k = 0; k < x.n; k++) {
        n += begins(&x, k);
    }
    out_types[0] = sx_type_of(SX_I64, n, x.rank);
    out_types[1] = sx_type_of(c->in[c->n_in - 1].type.dtype, n);
    out_types[2] = sx_type_of(SX_I64, x.rank);
    return SX_OK;
}

static sx_status sparse_count_host(const sx_kernel_call *c)
{
    const sx_sparse_count_attrs *a = c->attrs;
    const sx_host_tensor *weights = &c->in[c->n_in - 1], *y = &c->out[1];
    const bool weighted = sx_type_elems(&weights->type) > 0;
    counted x;
    SX_TRY(read(c, &x));
    for (int64_t k = 0, at = -1; k < x.n; k++) {
        const int64_t place = x.places[x.order[k]];
        if (begins(&x, k)) {
            at++;
            memcpy(c->out[0].i + at * x.rank, x.pairs + 2 * x.order[k] + 2 - x.rank,
                   (size_t)x.rank * sizeof(int64_t));
            sx_host_set(y, at, 0);
        }
        if (a->binary_output) {
            sx_host_set(y, at, 1);
        } else if (sx_carrier_of(y->type.dtype) == SX_CARRIER_F) {
            y->f[at] += weighted ? weights->f[place] : 1;
        } else {
            y->i[at] = SX_WRAP(y->i[at], +, weighted ? weights->i[place] : 1);
        }
    }
    c->out[2].i[0] = x.rows;
    c->out[2].i[x.rank - 1] = x.length;
    return SX_OK;
}

static sx_status sparse_from_tf(const sx_tf_node *n, void *out)
{
    (void)n;
    ((sx_sparse_count_attrs *)out)->rows = SPARSE;
    return SX_OK;
}

static sx_status ragged_from_tf(const sx_tf_node *n, void *out)
{
    (void)n;
    ((sx_sparse_count_attrs *)out)->rows = RAGGED;
    return SX_OK;
}

const sx_op_def sx_op_sparse_count = {
    SX_OP_NAMED(sparse_count),
    .n_in = SX_VARIADIC,
    .n_out = 3,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_sparse_count_attrs, sparse_count_attrs),
    .infer = sparse_count_infer,
    .host = sparse_count_host,
    .host_types = sparse_count_host_types,
    SX_FROM_TF({.op = "DenseCountSparseOutput"},
               {.op = "SparseCountSparseOutput", .attrs = sparse_from_tf},
               {.op = "RaggedCountSparseOutput", .attrs = ragged_from_tf}),
};
