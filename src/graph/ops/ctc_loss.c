/* ctc_loss: connectionist temporal classification: minus the logarithm of how probable a sequence
 * of labels is, over all ways to place it in time; blanks, the last class, stand between.
 *
 *   inputs            [T, N, C], float32 or float64: logits
 *   labels_indices    int64 [k, 2], labels_values int32 [k]: a sparse tensor [N, labels], in order;
 *                     labels of C - 1 or more may end a row, and are no part of it
 *   sequence_length   int32 [N], up to T
 *   preprocess_collapse_repeated        repeated labels of a row are one
 *   ctc_merge_repeated                  a class that follows itself is one label, unless a blank
 *                                       stands between; otherwise each is its own
 *   ignore_longer_outputs_than_inputs   a row of more labels than its length has loss 0; otherwise
 *                                       it is an error
 *   returns   loss [N]; gradient [T, N, C], that of each row's loss; zero beyond the lengths
 *
 * Errors   INVALID_ARGUMENT  dtypes, ranks, sizes; (running) lengths out of range, a row without
 *                            labels or with more than its length, labels that are negative or
 *                            follow a blank, indices out of order
 * Numbers  in double, from logarithms of probabilities, where TensorFlow's float32 probabilities
 *          vanish below e^-103; a row that cannot be: infinity
 * Source   TensorFlow CTCLoss; A. Graves, Supervised Sequence Labelling with Recurrent Neural
 *          Networks, section 7.3 */
#include <math.h>

#include "graph/ops/cumulative.h"
#include "graph/ops/linear_algebra.h"
#include "graph/ops/sparse.h"

typedef struct sx_ctc_loss_attrs {
    bool preprocess_collapse_repeated, ctc_merge_repeated, ignore_longer_outputs_than_inputs;
} sx_ctc_loss_attrs;

static const sx_attr_def ctc_loss_attrs[] = {
    SX_ATTR_TF(sx_ctc_loss_attrs, preprocess_collapse_repeated, SX_ATTR_BOOL),
    SX_ATTR_TF(sx_ctc_loss_attrs, ctc_merge_repeated, SX_ATTR_BOOL, .tf_number = 1),
    SX_ATTR_TF(sx_ctc_loss_attrs, ignore_longer_outputs_than_inputs, SX_ATTR_BOOL),
};

static sx_status ctc_loss_infer(sx_infer_context *c)
{
    const sx_type *x = &c->inputs[0];
    if (x->dtype != SX_F32 && x->dtype != SX_F64) {
        return sx_error(SX_INVALID_ARGUMENT, "inputs are %s, expected float32 or float64",
                        SX_TEXT(x));
    }
    SX_TRY(sx_require_maybe("inputs", x, x->dtype, 3, "[T, N, C]"));
    SX_TRY(sx_require_maybe("labels_indices", &c->inputs[1], SX_I64, 2, "[k, 2]"));
    SX_TRY(sx_require_maybe("labels_values", &c->inputs[2], SX_I32, 1, "[k]"));
    SX_TRY(sx_require_maybe("sequence_length", &c->inputs[3], SX_I32, 1, "[N]"));
    c->outputs[0] = c->inputs[3].rank == 1 ? c->inputs[3] : sx_type_of(SX_I32, SX_UNKNOWN_DIM);
    c->outputs[0].dtype = x->dtype;
    c->outputs[1] =
        x->rank == 3 ? *x : sx_type_of(x->dtype, SX_UNKNOWN_DIM, SX_UNKNOWN_DIM, SX_UNKNOWN_DIM);
    return SX_OK;
}

/* One row: its labels with blanks before, between and behind, and room for the work on it. */
typedef struct row_of_labels {
    const sx_ctc_loss_attrs *attrs;
    int64_t *label; /* [width] */
    int64_t width, T, C;
    double *log_y;   /* [T, C] */
    double *forward; /* [T, width]: of the labels up to u at time t */
    double *backward;
    double *sums; /* [C] */
} row_of_labels;

/* May label u - 2 precede label u? */
static bool may_skip(const row_of_labels *r, int64_t u)
{
    return u > 1 && r->label[u] != r->C - 1 &&
           !(r->attrs->ctc_merge_repeated && r->label[u] == r->label[u - 2]);
}

static bool may_stay(const row_of_labels *r, int64_t u)
{
    return r->attrs->ctc_merge_repeated || r->label[u] == r->C - 1;
}

static void walk(row_of_labels *r)
{
    const int64_t U = r->width;
    double *f = r->forward, *b = r->backward;
    for (int64_t k = 0; k < r->T * U; k++) {
        f[k] = b[k] = -INFINITY;
    }
    for (int64_t u = 0; u < SX_MIN(U, 2); u++) {
        f[u] = r->log_y[r->label[u]];
        b[(r->T - 1) * U + U - 1 - u] = 0;
    }
    for (int64_t t = 1; t < r->T; t++) {
        for (int64_t u = 0; u < U; u++) {
            const double *last = f + (t - 1) * U + u;
            double sum = may_stay(r, u) ? last[0] : -INFINITY;
            sum = u > 0 ? sx_log_add_exp(sum, last[-1]) : sum;
            sum = may_skip(r, u) ? sx_log_add_exp(sum, last[-2]) : sum;
            f[t * U + u] = sum + r->log_y[t * r->C + r->label[u]];
        }
    }
    for (int64_t t = r->T - 2; t >= 0; t--) {
        const double *y = r->log_y + (t + 1) * r->C;
        for (int64_t u = 0; u < U; u++) {
            const double *next = b + (t + 1) * U + u;
            double sum = may_stay(r, u) ? next[0] + y[r->label[u]] : -INFINITY;
            sum = u + 1 < U ? sx_log_add_exp(sum, next[1] + y[r->label[u + 1]]) : sum;
            sum = u + 2 < U && may_skip(r, u + 2)
                      ? sx_log_add_exp(sum, next[2] + y[r->label[u + 2]])
                      : sum;
            b[t * U + u] = sum;
        }
    }
}

/* The labels of row `row`, which begin at *at; *at becomes those of the next. */
static sx_status read_labels(const sx_kernel_call *c, int64_t row, int64_t length, int64_t *at,
                             row_of_labels *r)
{
    const int64_t n = c->in[1].type.dims[0], first = *at, blank = r->C - 1;
    bool ended = false, sound = true;
    r->width = 0;
    for (; *at < n && c->in[1].i[2 * *at] == row; (*at)++) {
        const int64_t label = c->in[2].i[*at];
        if (*at > first && r->attrs->preprocess_collapse_repeated && label == c->in[2].i[*at - 1]) {
            continue;
        }
        sound = sound && label >= 0 && !(ended && label < blank);
        ended = ended || label >= blank;
        if (label < blank) {
            r->label[r->width++] = blank;
            r->label[r->width++] = label;
        }
    }
    r->label[r->width++] = blank;
    const bool fits = *at - first <= length || r->attrs->ignore_longer_outputs_than_inputs;
    if (*at == first || !sound || !fits) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "row %lld has %lld labels and a length of %lld: expected 1 or more of 0 to "
                        "%lld, then blanks, and no more than the length",
                        (long long)row, (long long)(*at - first), (long long)length,
                        (long long)blank - 1);
    }
    return SX_OK;
}

static sx_status require_sound(const sx_kernel_call *c)
{
    const int64_t *dims = c->in[0].type.dims, *at = c->in[1].i, n = c->in[1].type.dims[0];
    if (dims[1] == 0 || dims[2] == 0 || c->in[3].type.dims[0] != dims[1] ||
        c->in[1].type.dims[1] != 2 || c->in[2].type.dims[0] != n) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "inputs are %s, labels %s and %s, sequence_length %s: they do not match",
                        SX_TEXT(&c->in[0].type), SX_TEXT(&c->in[1].type), SX_TEXT(&c->in[2].type),
                        SX_TEXT(&c->in[3].type));
    }
    for (int64_t row = 0; row < dims[1]; row++) {
        if (c->in[3].i[row] < 0 || c->in[3].i[row] > dims[0]) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "the length of row %lld is %lld, expected 0 to %lld", (long long)row,
                            (long long)c->in[3].i[row], (long long)dims[0]);
        }
    }
    for (int64_t k = 0; k < n; k++) {
        if (at[2 * k] < 0 || at[2 * k] >= dims[1] || at[2 * k + 1] < 0 ||
            (k > 0 && sx_compare_indices(at + 2 * k - 2, at + 2 * k, 2) >= 0)) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "labels_indices %lld are %lld and %lld: out of range or of order",
                            (long long)k, (long long)at[2 * k], (long long)at[2 * k + 1]);
        }
    }
    return SX_OK;
}

static sx_status ctc_loss_host(const sx_kernel_call *c)
{
    const sx_ctc_loss_attrs *a = c->attrs;
    const int64_t *dims = c->in[0].type.dims;
    const int64_t N = dims[1], C = dims[2];
    int64_t at = 0, longest = 0;
    SX_TRY(require_sound(c));
    for (int64_t k = 0, from = 0, n = c->in[1].type.dims[0]; k < n; k++) {
        from = c->in[1].i[2 * k] != c->in[1].i[2 * from] ? k : from;
        longest = SX_MAX(longest, k + 1 - from);
    }
    const sx_type table = sx_type_of(SX_F64, dims[0], 2 * longest + 1);
    SX_TRY(sx_require_made("the probabilities of labels", &table));
    row_of_labels r = {.attrs = a,
                       .C = C,
                       .label = sx_arena_array(c->arena, 2 * longest + 1, int64_t),
                       .log_y = sx_arena_array(c->arena, dims[0] * C + 1, double),
                       .forward = sx_arena_array(c->arena, sx_type_elems(&table) + 1, double),
                       .backward = sx_arena_array(c->arena, sx_type_elems(&table) + 1, double),
                       .sums = sx_arena_array(c->arena, C, double)};
    if (r.label == NULL || r.log_y == NULL || r.forward == NULL || r.backward == NULL ||
        r.sums == NULL) {
        return sx_budget_error(c->arena->budget);
    }
    sx_host_fill(c, 1, 0);
    for (int64_t row = 0; row < N; row++) {
        const int64_t first = at;
        r.T = c->in[3].i[row];
        c->out[0].f[row] = 0;
        SX_TRY(sx_cancel_check(c->cancel));
        SX_TRY(read_labels(c, row, r.T, &at, &r));
        if (r.T == 0 || (a->ignore_longer_outputs_than_inputs && at - first > r.T)) {
            continue;
        }
        for (int64_t t = 0; t < r.T; t++) {
            const double *x = c->in[0].f + (t * N + row) * C;
            double sum = -INFINITY;
            for (int64_t k = 0; k < C; k++) {
                sum = sx_log_add_exp(sum, x[k]);
            }
            for (int64_t k = 0; k < C; k++) {
                r.log_y[t * C + k] = x[k] - sum;
            }
        }
        walk(&r);
        double log_p = -INFINITY;
        for (int64_t u = 0; u < r.width; u++) {
            log_p = sx_log_add_exp(log_p, r.forward[u] + r.backward[u]);
        }
        c->out[0].f[row] = -log_p;
        for (int64_t t = 0; t < r.T; t++) {
            double *dx = c->out[1].f + (t * N + row) * C;
            for (int64_t k = 0; k < C; k++) {
                r.sums[k] = -INFINITY;
            }
            for (int64_t u = 0; u < r.width; u++) {
                double *sum = &r.sums[r.label[u]];
                *sum =
                    sx_log_add_exp(*sum, r.forward[t * r.width + u] + r.backward[t * r.width + u]);
            }
            for (int64_t k = 0; k < C; k++) {
                const double chosen = log_p == -INFINITY ? 0 : exp(r.sums[k] - log_p);
                dx[k] = exp(r.log_y[t * C + k]) - chosen;
            }
        }
    }
    return SX_OK;
}

static void ctc_loss_grad(sx_grad *g)
{
    if (sx_value_is(g->dy[0])) {
        g->dx[0] = sx_build_op(g->b, mul, NULL, g->y[1], sx_as_column(g->b, g->dy[0]));
    }
}

static void ctc_loss_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_ctc_loss, "CTCLoss",
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype)));
}

static const double places[] = {0, 0, 0, 1, 1, 0, 1, 1, 1, 2}, labels[] = {0, 1, 2, 2, 0},
                    lengths[] = {6, 5};
static const sx_op_sample ctc_loss_samples[] = {
    {.name = "two",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 6, 2, 4), SX_SAMPLE_LIST(SX_I64, places, 5, 2),
                SX_SAMPLE_LIST(SX_I32, labels, 5), SX_SAMPLE_LIST(SX_I32, lengths, 2)},
     .n_inputs = 4,
     .no_grad_check = true, /* the gradient is an output: it has none of its own */
     .attrs = &(const sx_ctc_loss_attrs){.ctc_merge_repeated = true}},
};

const sx_op_def sx_op_ctc_loss = {
    SX_OP_NAMED(ctc_loss),
    .n_in = 4,
    .n_out = 2,
    .flags = SX_OP_HOST,
    SX_OP_ATTRS(sx_ctc_loss_attrs, ctc_loss_attrs),
    .infer = ctc_loss_infer,
    .grad = ctc_loss_grad,
    .host = ctc_loss_host,
    .to_tf = ctc_loss_to_tf,
    SX_FROM_TF({.op = "CTCLoss"}),
    SX_OP_SAMPLES(ctc_loss_samples),
};
