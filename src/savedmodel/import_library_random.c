/* Imports nodes of random numbers that are several of ours: those of a seed have the key and the
 * counter that random_key_counter makes of it, those of a generator its variable. */
#include "savedmodel/import_library_ops.h"

#include <string.h>

enum { PHILOX = 1 };

/* The key, the counter and the algorithm of the seed, input i. */
static sx_status key_of_seed(const sx_tf_op_node *x, int i, sx_value out[3])
{
    sx_value seed = SX_NO_VALUE, first = SX_NO_VALUE;
    int n_out = 0;
    SX_TRY(sx_tf_operand(x, i, &seed));
    SX_TRY(sx_tf_add_node(x, &sx_op_random_key_counter, NULL, &seed, 1, NULL, 0, &first, &n_out));
    out[0] = first;
    out[1] = sx_output_of(first, 1);
    return sx_tf_number(x, SX_I32, PHILOX, &out[2]);
}

/* The algorithm that this processor would choose. */
static sx_status import_get_alg(sx_tf_op_node *x)
{
    sx_value y = SX_NO_VALUE;
    SX_TRY(sx_tf_number(x, SX_I32, PHILOX, &y));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

static sx_status import_key_counter_alg(sx_tf_op_node *x)
{
    sx_value y[3];
    SX_TRY(key_of_seed(x, 0, y));
    for (int i = 0; i < 3; i++) {
        sx_tf_set(x, i, y[i]);
    }
    return SX_OK;
}

/* (shape, seed, ...) as (shape, key, counter, alg, ...). */
static sx_status import_seeded(sx_tf_op_node *x, const sx_op_def *op, const void *attrs)
{
    sx_value in[6], y = SX_NO_VALUE;
    if (x->n->n_in < 2 || x->n->n_in + 2 != op->n_in) {
        return sx_error(SX_DATA_LOSS, "it has %d inputs, expected %d", x->n->n_in, op->n_in - 2);
    }
    SX_TRY(sx_tf_operand(x, 0, &in[0]));
    SX_TRY(key_of_seed(x, 1, &in[1]));
    for (int i = 2; i < x->n->n_in; i++) {
        SX_TRY(sx_tf_operand(x, i, &in[i + 2]));
    }
    SX_TRY(sx_tf_build(x, op, attrs, &y, op->n_in, in));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

static sx_status import_values(sx_tf_op_node *x)
{
    static const struct {
        const char *op;
        int32_t distribution;
    } of[] = {
        {"StatelessRandomUniform", SX_VALUES_UNIFORM},
        {"StatelessRandomNormal", SX_VALUES_NORMAL},
        {"StatelessTruncatedNormal", SX_VALUES_TRUNCATED_NORMAL},
        {"StatelessRandomUniformFullInt", SX_VALUES_BITS},
    };
    size_t k = 0;
    while (k + 1 < SX_COUNT(of) && strcmp(of[k].op, x->n->node->op) != 0) {
        k++;
    }
    const bool bits = of[k].distribution == SX_VALUES_BITS;
    const sx_random_values_attrs attrs = {
        .distribution = of[k].distribution,
        .dtype = sx_tf_read_dtype(&x->tf.head, "dtype", bits ? SX_U64 : SX_F32)};
    return import_seeded(x, &sx_op_random_values, &attrs);
}

/* What has a device form: float32 of a shape that is known. */
static sx_status import_device_values(sx_tf_op_node *x)
{
    return x->n->n_in == 2 && x->tf.head.values[0] != NULL &&
                   sx_tf_read_dtype(&x->tf.head, "dtype", SX_F32) == SX_F32
               ? sx_tf_import_one(x)
               : import_values(x);
}

static sx_status import_integers(sx_tf_op_node *x)
{
    return import_seeded(x, &sx_op_random_integers, NULL);
}

static sx_status import_gamma(sx_tf_op_node *x)
{
    return import_seeded(x, &sx_op_random_gamma, NULL);
}

/* RngReadAndSkip(generator, alg, delta), which gives the state before; RngSkip, which gives
 * nothing. */
static sx_status import_skip(sx_tf_op_node *x)
{
    const sx_tf_thing *handle = NULL;
    sx_value state = SX_NO_VALUE, delta = SX_NO_VALUE, next = SX_NO_VALUE;
    SX_TRY(sx_tf_require_handle(x, &handle));
    SX_TRY(sx_tf_operand(x, 2, &delta));
    SX_TRY(sx_tf_read_handle(x, handle, &state));
    if (x->tf.head.types[2].dtype != SX_U64) {
        SX_TF_BUILD(x, &delta, cast, (&(sx_cast_attrs){SX_U64}), delta);
    }
    SX_TF_BUILD(x, &next, random_skip, NULL, state, delta);
    SX_TRY(sx_tf_assign(x, handle, next));
    if (x->n->n_out > 0) {
        sx_tf_set(x, 0, state);
    }
    return SX_OK;
}

/* ---- The table ---- */

const sx_tf_op_row sx_tf_random_rows[] = {
    {"StatelessRandomGetAlg", import_get_alg, NULL},
    {"StatelessRandomGetKeyCounterAlg", import_key_counter_alg, NULL},
    {"StatelessRandomUniform", import_device_values, NULL},
    {"StatelessRandomNormal", import_device_values, NULL},
    {"StatelessTruncatedNormal", import_values, NULL},
    {"StatelessRandomUniformFullInt", import_values, NULL},
    {"StatelessRandomUniformInt", import_integers, NULL},
    {"StatelessRandomGammaV2", import_gamma, NULL},
    {"RngReadAndSkip", import_skip, NULL},
    {"RngSkip", import_skip, NULL},
    {NULL, NULL, NULL},
};
