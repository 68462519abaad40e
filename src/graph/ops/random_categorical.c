/* random_categorical: random classes, each with the probability that its row of logits gives it, as
 * a function of a seed. No gradient.
 *
 *   logits        numbers [rows, classes]: logarithms of probabilities, which need no normalizing
 *   num_samples   int32 scalar
 *   seed          int32[2] or int64[2]; or uint64[3], a key and a counter
 *   output_dtype  int32 or int64
 *   returns       output_dtype[rows, num_samples]
 *
 * The class of a draw u in [0, 1) is the first whose cumulated probability is above u times their
 * sum. Logits that are not finite have probability 0. TensorFlow's numbers depend on how it divides
 * the rows among threads; these are those of one thread.
 *
 * Errors   INVALID_ARGUMENT    shapes, dtypes; (running) no classes, a negative num_samples
 *          RESOURCE_EXHAUSTED  (running) too many numbers
 * Source   TensorFlow StatelessMultinomial */
#ifdef SX_ATTRS
typedef struct sx_random_categorical_attrs {
    sx_dtype output_dtype;
} sx_random_categorical_attrs;
#endif

#include "graph/ops/random_stream.h"

#include <math.h>

#include "base/memory.h"

static const sx_attr_def random_categorical_attrs[] = {
    SX_ATTR_TF(sx_random_categorical_attrs, output_dtype, SX_ATTR_DTYPE, .tf_number = SX_I64)};

static sx_status random_categorical_infer(sx_infer_context *c)
{
    const sx_random_categorical_attrs *attrs = c->attrs;
    const sx_type *logits = &c->inputs[0];
    SX_TRY(sx_require_maybe("logits", logits, logits->dtype, 2, "[rows, classes]"));
    SX_TRY(sx_require_maybe("num_samples", &c->inputs[1], SX_I32, 0, "a scalar"));
    if (c->inputs[2].dtype == SX_U64) {
        SX_TRY(sx_require_maybe("seed", &c->inputs[2], SX_U64, 1, "[3]"));
    } else {
        SX_TRY(sx_require_integers("seed", &c->inputs[2], 1, "[2]"));
    }
    if (logits->dtype == SX_STRING || logits->dtype == SX_BOOL ||
        (attrs->output_dtype != SX_I32 && attrs->output_dtype != SX_I64)) {
        return sx_error(SX_INVALID_ARGUMENT, "logits are %s and output_dtype %s", SX_TEXT(logits),
                        sx_dtype_name(attrs->output_dtype));
    }
    c->outputs[0] = sx_type_of(
        attrs->output_dtype, logits->rank == 2 ? logits->dims[0] : SX_UNKNOWN_DIM, SX_UNKNOWN_DIM);
    return SX_OK;
}

static sx_status random_categorical_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_random_categorical_attrs *attrs = c->attrs;
    const int64_t samples = c->in[1].i[0];
    const int64_t seeds = c->in[2].type.dtype == SX_U64 ? 3 : 2;
    if (samples < 0 || c->in[0].type.dims[1] == 0 || c->in[2].type.dims[0] != seeds) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "num_samples is %lld, logits are %s and seed is %s, expected classes, and "
                        "a seed of %lld numbers",
                        (long long)samples, SX_TEXT(&c->in[0].type), SX_TEXT(&c->in[2].type),
                        (long long)seeds);
    }
    out_types[0] = sx_type_of(attrs->output_dtype, c->in[0].type.dims[0], samples);
    return sx_require_made("the result", &out_types[0]);
}

static sx_status random_categorical_host(const sx_kernel_call *c)
{
    const int64_t rows = c->in[0].type.dims[0], classes = c->in[0].type.dims[1];
    const int64_t samples = c->out[0].type.dims[1];
    double *cumulated = sx_arena_array(c->arena, classes, double);
    sx_random_words r = {.used = 0};
    if (cumulated == NULL) {
        return sx_no_memory("for the probabilities of classes");
    }
    if (c->in[2].type.dtype == SX_U64) {
        const uint64_t key = c->in[2].u[0], low = c->in[2].u[1], high = c->in[2].u[2];
        r.stream = (sx_philox_stream){.key = {(uint32_t)key, (uint32_t)(key >> 32)},
                                      .counter = {(uint32_t)low, (uint32_t)(low >> 32),
                                                  (uint32_t)high, (uint32_t)(high >> 32)}};
    } else {
        sx_random_seed((uint64_t)c->in[2].i[0], (uint64_t)c->in[2].i[1], &r.stream);
    }
    for (int64_t row = 0; row < rows; row++) {
        double most = -INFINITY, sum = 0;
        for (int64_t k = 0; k < classes; k++) {
            const double x = sx_host_get(&c->in[0], row * classes + k);
            most = isfinite(x) ? fmax(most, x) : most;
        }
        for (int64_t k = 0; k < classes; k++) {
            const double x = sx_host_get(&c->in[0], row * classes + k);
            sum += isfinite(x) ? exp(x - most) : 0;
            cumulated[k] = sum;
        }
        SX_TRY(sx_cancel_check(c->cancel));
        for (int64_t k = 0; k < samples; k++) {
            const uint32_t first = sx_random_word(&r), second = sx_random_word(&r);
            const double wanted = sx_random_double(first, second) * sum;
            int64_t low = 0, high = classes; /* the first above it lies in [low, high] */
            while (low < high) {
                const int64_t middle = low + (high - low) / 2;
                if (cumulated[middle] > wanted) {
                    high = middle;
                } else {
                    low = middle + 1;
                }
            }
            c->out[0].i[row * samples + k] = low;
        }
    }
    return SX_OK;
}

static void random_categorical_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_random_categorical, "StatelessMultinomial",
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype),
                           sx_tf_attr_type("Tseed", (int)op->in_types[2].dtype)));
}

static const double samples[] = {9}, seed[] = {7, 1234567};
static const sx_op_sample random_categorical_samples[] = {
    {.name = "rows",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 3, 4), SX_SAMPLE_ONE(SX_I32, samples),
                SX_SAMPLE_LIST(SX_I64, seed, 2)},
     .n_inputs = 3,
     .attrs = &(const sx_random_categorical_attrs){SX_I64}},
};

const sx_op_def sx_op_random_categorical = {
    SX_OP_NAMED(random_categorical),
    .n_in = 3,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_random_categorical_attrs, random_categorical_attrs),
    .infer = random_categorical_infer,
    .host = random_categorical_host,
    .host_types = random_categorical_host_types,
    .to_tf = random_categorical_to_tf,
    SX_FROM_TF({.op = "StatelessMultinomial"}),
    SX_OP_SAMPLES(random_categorical_samples),
};
