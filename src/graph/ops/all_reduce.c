/* all_reduce: combines what replicas computed from their parts of the batch, element by element.
 *
 *   x...       one numeric dtype, or bool for `and`; the same types on all replicas
 *   how        sum, mean, max, and; moments: the operands are mean and variance
 *   elems      moments: how many elements each replica's mean is of
 *   replicas   how many there are
 *   returns    x..., combined: equal on all replicas
 *
 * Moments of parts a, b meet by Chan's formula: with counts a, b and d = mean_b - mean_a,
 *   mean = mean_a + d b / (a + b),  M2 = M2_a + M2_b + d² a b / (a + b)
 *
 * Inserted by sx_pass_spmd(). Several operands are one exchange. On one replica x itself.
 *
 * Errors   INVALID_ARGUMENT   no operand, dtypes that differ or have no such combination
 * Numbers  the order is the device's: on the CPU a fixed tree over the replicas, as for moments on
 *          PJRT devices, up to 64
 * Source   StableHLO all_reduce; for moments Chan, Golub, LeVeque 1979 */
#ifdef SX_ATTRS
/* How partial results of the batch combine to that of the whole. */
typedef enum sx_combine {
    SX_COMBINE_SUM = 0,
    SX_COMBINE_MEAN,
    SX_COMBINE_MAX,
    SX_COMBINE_AND,
    SX_COMBINE_MOMENTS, /* mean and variance, by Chan's formula */
    SX_COMBINE_MIN,
    SX_COMBINE_OR,
    SX_COMBINE_PROD,
} sx_combine;

typedef struct sx_all_reduce_attrs {
    int32_t how; /* sx_combine */
    int64_t replicas;
    int64_t elems; /* moments: of how many elements this replica's are */
} sx_all_reduce_attrs;
#endif

#include <string.h>

#include "graph/ops/common.h"

const char *const sx_combine_names[] = {"sum", "mean", "max",  "and", "moments",
                                        "min", "or",   "prod", NULL};

static const sx_attr_def all_reduce_attrs[] = {
    SX_ATTR_NAMES(sx_all_reduce_attrs, how, sx_combine_names),
    SX_ATTR(sx_all_reduce_attrs, replicas, SX_ATTR_INT),
    SX_ATTR(sx_all_reduce_attrs, elems, SX_ATTR_INT),
};

sx_status sx_require_combinable(int32_t how, const sx_type *types, int n)
{
    const bool pairs = how == SX_COMBINE_MOMENTS;
    if (n < 1 || n > SX_MAX_OUTPUTS || (pairs && n != 2)) {
        return sx_error(SX_INVALID_ARGUMENT, "%d operands, expected %s", n,
                        pairs ? "mean and variance" : "1 to 64");
    }
    for (int i = 0; i < n; i++) {
        SX_TRY(how == SX_COMBINE_AND || how == SX_COMBINE_OR
                   ? sx_require_dtype("x", &types[i], SX_BOOL)
               : pairs || how == SX_COMBINE_MEAN ? sx_require_float("x", &types[i])
                                                 : sx_require_number("x", &types[i]));
        if (types[i].dtype != types[0].dtype) {
            return sx_error(SX_INVALID_ARGUMENT, "operand %d is %s, expected the dtype of %s", i,
                            SX_TEXT(&types[i]), SX_TEXT(&types[0]));
        }
    }
    return pairs ? sx_require_equal("variance", &types[1], "mean", &types[0]) : SX_OK;
}

static sx_status all_reduce_infer(sx_infer_context *c)
{
    const sx_all_reduce_attrs *attrs = c->attrs;
    SX_TRY(sx_require_combinable(attrs->how, c->inputs, c->n_inputs));
    if (attrs->replicas < 1 || attrs->elems < 0) {
        return sx_error(SX_INVALID_ARGUMENT, "%lld replicas and %lld elements, expected counts",
                        (long long)attrs->replicas, (long long)attrs->elems);
    }
    for (int i = 0; i < c->n_inputs; i++) {
        c->outputs[i] = c->inputs[i];
    }
    c->n_outputs = c->n_inputs;
    return SX_OK;
}

sx_status sx_require_one_replica(int64_t replicas)
{
    return replicas == 1 ? SX_OK
                         : sx_error(SX_UNIMPLEMENTED,
                                    "an exchange between %lld replicas; a host kernel is one of "
                                    "them and does not know the others",
                                    (long long)replicas);
}

static sx_status all_reduce_host(const sx_kernel_call *c)
{
    const sx_all_reduce_attrs *attrs = c->attrs;
    SX_TRY(sx_require_one_replica(attrs->replicas));
    for (int i = 0; i < c->n_in; i++) {
        memcpy(c->out[i].data, c->in[i].data,
               (size_t)sx_type_elems(&c->in[i].type) * c->elem_bytes);
    }
    return SX_OK;
}

#define ALONE(how_) (&(const sx_all_reduce_attrs){.how = (how_), .replicas = 1, .elems = 1})
static const sx_op_sample all_reduce_samples[] = {
    {.name = "sums",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 4, 3), SX_SAMPLE_F32(SX_FILL_NORMAL, 5)},
     .n_inputs = 2,
     .attrs = ALONE(SX_COMBINE_SUM)},
    {.name = "mean",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 3)},
     .n_inputs = 1,
     .attrs = ALONE(SX_COMBINE_MEAN)},
    {.name = "max", .inputs = {SX_SAMPLE_I32(9, 7)}, .n_inputs = 1, .attrs = ALONE(SX_COMBINE_MAX)},
    {.name = "and",
     .inputs = {{.type = SX_TYPE_LITERAL_(SX_BOOL, 3), .fill = SX_FILL_BOOL}},
     .n_inputs = 1,
     .attrs = ALONE(SX_COMBINE_AND)},
    {.name = "moments",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 3), SX_SAMPLE_F32(SX_FILL_POSITIVE, 3)},
     .n_inputs = 2,
     .attrs = ALONE(SX_COMBINE_MOMENTS)},
};

const sx_op_def sx_op_all_reduce = {
    SX_OP_NAMED(all_reduce),
    .n_in = SX_VARIADIC,
    .n_out = SX_VARIADIC,
    .flags = SX_OP_NO_GRAD | SX_OP_NO_TF | SX_OP_BY_REPLICA,
    .moved = SX_MOVES_ALL,
    SX_OP_ATTRS(sx_all_reduce_attrs, all_reduce_attrs),
    .infer = all_reduce_infer,
    .host = all_reduce_host,
    SX_OP_SAMPLES(all_reduce_samples),
};
