/* random_state: the place in its stream of a stateful random operator, whose next call continues
 * behind it. The stream is that of its seeds, as TensorFlow's; it lasts as long as the loaded
 * model.
 *
 *   counts       int32 or int64: their product is how many numbers the call draws
 *   table        the state's (tables.h), mutable: int64 to int64[3], key and counter
 *   seed, seed2  both 0: the stream begins anywhere, another place each time a model is loaded
 *   group, each  of so many numbers, the last group filled up, so many times four words are left
 *                out for the next call
 *   returns      key uint64[1], counter uint64[2] of the call (random_stream.h)
 *
 * Errors   INVALID_ARGUMENT    the table's form; counts; (running) a negative count
 *          RESOURCE_EXHAUSTED  (running) no memory
 *          UNAVAILABLE         (running) the system has no random numbers
 * Source   TensorFlow GuardedPhiloxRandom (core/util/guarded_philox_random.cc) */
#include <sys/random.h>

#include "graph/ops/lookup_table.h"
#include "graph/ops/random_stream.h"

static const sx_attr_def random_state_attrs[] = {
    SX_TABLE_ATTR_ROWS(sx_random_state_attrs),
    SX_ATTR(sx_random_state_attrs, seed, SX_ATTR_INT),
    SX_ATTR(sx_random_state_attrs, seed2, SX_ATTR_INT),
    SX_ATTR(sx_random_state_attrs, group, SX_ATTR_INT),
    SX_ATTR(sx_random_state_attrs, each, SX_ATTR_INT),
};

static sx_status random_state_infer(sx_infer_context *c)
{
    const sx_random_state_attrs *a = c->attrs;
    SX_TRY(sx_infer_table(c, 1));
    SX_TRY(sx_require_integers("counts", &c->inputs[0], -1, "numbers"));
    if (a->base.kind != SX_TABLE_MUTABLE || a->base.keys != SX_I64 || a->base.values != SX_I64 ||
        a->base.shape.n != 1 || a->base.shape.v[0] != 3 || a->group < 1 || a->each < 1) {
        return sx_error(
            SX_INVALID_ARGUMENT,
            "expected a mutable table of int64 to int64[3], group and each of 1 or more");
    }
    c->outputs[0] = sx_type_of(SX_U64, 1);
    c->outputs[1] = sx_type_of(SX_U64, 2);
    return SX_OK;
}

static sx_status random_state_host(const sx_kernel_call *c)
{
    const sx_random_state_attrs *a = c->attrs;
    int64_t count = 1, first = 0, words[3] = {a->seed, 0, a->seed2}; /* key, counter */
    const sx_host_tensor key = {.type = sx_scalar_type(SX_I64), .i = &first};
    const sx_host_tensor state = {.type = sx_type_of(SX_I64, 3), .i = words};
    sx_table *t = NULL;
    SX_TRY(sx_require_table(c, &t));
    for (int64_t i = 0; i < sx_type_elems(&c->in[0].type); i++) {
        if (c->in[0].i[i] < 0 || !sx_mul_i64(count, c->in[0].i[i], &count)) {
            return sx_error(SX_INVALID_ARGUMENT, "dimension %lld is %lld, expected 0 or more",
                            (long long)i, (long long)c->in[0].i[i]);
        }
    }
    const int64_t entry = sx_table_find(t, &key, 0);
    if (entry >= 0) {
        sx_table_get_value(t, entry, &state, 0);
    } else if (a->seed == 0 && a->seed2 == 0 &&
               getrandom(words, sizeof(words), 0) != (ssize_t)sizeof(words)) {
        return sx_error(SX_UNAVAILABLE, "the system gives no random numbers to begin with");
    }
    const uint64_t low = (uint64_t)words[1], high = (uint64_t)words[2];
    sx_philox_stream s = {
        .counter = {(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32)}};
    c->out[0].u[0] = (uint64_t)words[0];
    c->out[1].u[0] = low;
    c->out[1].u[1] = high;
    const uint64_t groups = (uint64_t)(count / a->group) + (count % a->group != 0);
    sx_philox_skip(&s, groups * (uint64_t)a->each);
    words[1] = (int64_t)((uint64_t)s.counter[1] << 32 | s.counter[0]);
    words[2] = (int64_t)((uint64_t)s.counter[3] << 32 | s.counter[2]);
    return sx_table_put(t, &key, 0, &state, 0);
}

const sx_op_def sx_op_random_state = {
    SX_OP_NAMED(random_state),
    .n_in = 1,
    .n_out = 2,
    .flags = SX_OP_HOST | SX_OP_STATE | SX_OP_EFFECT | SX_OP_NO_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_random_state_attrs, random_state_attrs),
    .infer = random_state_infer,
    .host = random_state_host,
};
