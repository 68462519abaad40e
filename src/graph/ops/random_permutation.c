/* random_permutation: the numbers 0 .. n - 1 in an order that is a function of a key and a counter,
 * as TensorFlow's RandomShuffle has it.
 *
 *   n, key, counter, alg   n int64[1]; the others as in random_stream.h
 *   returns                int64[n]: from the first place on, each takes one of those not yet
 * taken: the place of word mod (how many are left)
 *
 * Errors   INVALID_ARGUMENT    dtypes, shapes; (running) a negative n
 *          UNIMPLEMENTED       (running) an algorithm that is not Philox
 *          RESOURCE_EXHAUSTED  (running) n is too large
 * Source   TensorFlow core/kernels/random_shuffle_op.cc */
#include "graph/ops/random_stream.h"

static sx_status random_permutation_infer(sx_infer_context *c)
{
    SX_TRY(sx_random_infer(c, SX_I64));
    const int64_t n = sx_vector_size(&c->inputs[0]);
    if (n >= 0 && n != 1) {
        return sx_error(SX_INVALID_ARGUMENT, "n is %s, expected one number",
                        SX_TEXT(&c->inputs[0]));
    }
    c->outputs[0] = sx_type_of(SX_I64, SX_UNKNOWN_DIM);
    return SX_OK;
}

static sx_status random_permutation_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    return sx_shaped_type("n", &c->in[0], SX_I64, &out_types[0]);
}

static sx_status random_permutation_host(const sx_kernel_call *c)
{
    const int64_t n = sx_type_elems(&c->out[0].type);
    int64_t *y = c->out[0].i;
    sx_random_words r = {.used = 0};
    SX_TRY(sx_random_open(c, &r.stream));
    for (int64_t i = 0; i < n; i++) {
        y[i] = i;
    }
    for (int64_t i = 0; i + 1 < n; i++) {
        if (i % (1 << 16) == 0) {
            SX_TRY(sx_cancel_check(c->cancel));
        }
        const int64_t other = i + (int64_t)(sx_random_word(&r) % (uint64_t)(n - i));
        const int64_t taken = y[other];
        y[other] = y[i];
        y[i] = taken;
    }
    return SX_OK;
}

const sx_op_def sx_op_random_permutation = {
    SX_OP_NAMED(random_permutation),
    .n_in = 4,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD | SX_OP_NO_TF,
    .infer = random_permutation_infer,
    .host = random_permutation_host,
    .host_types = random_permutation_host_types,
};
