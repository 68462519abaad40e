/* See input_plan.h. The table is TensorFlow's (estimator/tpu/tpu_context.py:
 * batch_size_for_input_fn, batch_size_for_model_fn), with H hosts and R replicas. */
#include "train/input_plan.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/checked.h"
#include "distribute/strategy.h"
#include "train/choose_strategy.h"

typedef enum share { ALL, BY_HOST, BY_REPLICA } share;

typedef struct row {
    const char *name;
    bool trains, evaluates;
    share asked;   /* a call's batch is the global one divided by … */
    bool per_core; /* called once for each replica of the host */
    bool pulled;   /* a step takes one batch per replica of the host */
    share replica; /* a replica's batch is the global one divided by … */
} row;

static const row rows[] = {
    [SX_PER_SHARD_V1] = {"PER_SHARD_V1", true, false, BY_REPLICA, true, false, BY_REPLICA},
    [SX_PER_HOST_V1] = {"PER_HOST_V1", true, true, BY_HOST, false, false, BY_REPLICA},
    [SX_PER_HOST_V2] = {"PER_HOST_V2", true, true, BY_REPLICA, false, true, BY_REPLICA},
    [SX_BROADCAST] = {"BROADCAST", true, true, ALL, false, false, ALL},
    [SX_SLICED] = {"SLICED", false, true, ALL, false, false, BY_REPLICA},
};

static sx_status refuse_batch(int64_t batch, int replicas)
{
    int64_t below = batch / replicas * replicas, above = below + replicas;
    char nearest[96];
    if (below > 0) {
        snprintf(nearest, sizeof(nearest), "the nearest are %" PRId64 " and %" PRId64, below,
                 above);
    } else {
        snprintf(nearest, sizeof(nearest), "the smallest is %" PRId64, above);
    }
    return sx_error(SX_INVALID_ARGUMENT,
                    "a training batch of %" PRId64 " examples is not divisible by %d replicas: %s",
                    batch, replicas, nearest);
}

static int64_t divide(int64_t global, share by, int replicas, int hosts)
{
    return by == ALL ? global : global / (by == BY_HOST ? hosts : replicas);
}

static sx_status check_mode(const row *r, sx_mode mode)
{
    bool fits = mode == SX_TRAIN ? r->trains : r->evaluates;
    return fits ? SX_OK
                : sx_error(SX_INVALID_ARGUMENT, "input mode %s is for %s only", r->name,
                           r->trains ? "training" : "evaluation and prediction");
}

sx_status sx_input_plan_make(sx_mode mode, sx_input_config config, int64_t global, int replicas,
                             int hosts, sx_input_plan *out_plan)
{
    const row *r = &rows[config];
    SX_TRY(check_mode(r, mode));
    if (hosts < 1 || replicas % hosts != 0) {
        return sx_error(SX_INVALID_ARGUMENT, "%d replicas on %d hosts", replicas, hosts);
    }
    if (mode == SX_TRAIN && config != SX_BROADCAST && global % replicas != 0) {
        return refuse_batch(global, replicas);
    }
    int local = replicas / hosts;
    *out_plan = (sx_input_plan){.calls = r->per_core ? local : 1,
                                .batch_size = SX_MAX(1, divide(global, r->asked, replicas, hosts)),
                                .pulls = r->pulled ? local : 1,
                                .replica_batch = divide(global, r->replica, replicas, hosts)};
    if (out_plan->calls > SX_MAX_INPUTS) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%s: %d calls of the input function; the maximum is %d", r->name,
                        out_plan->calls, (int)SX_MAX_INPUTS);
    }
    return SX_OK;
}

sx_input_config sx_input_config_of(const sx_tpu_config *c, sx_mode mode)
{
    sx_input_config train = c->per_host_input_for_training;
    if (mode == SX_TRAIN) {
        return train;
    }
    if (c->eval_training_input_configuration == SX_SLICED) {
        return SX_SLICED;
    }
    return train == SX_PER_SHARD_V1 ? SX_PER_HOST_V1 : train;
}

/* The divisors of `batch` that are nearest to n: below, at least 1, and above, at most the batch.
 */
static void nearest_divisors(int64_t batch, int n, int64_t *below, int64_t *above)
{
    for (*below = SX_MIN(n, batch); batch % *below != 0;) {
        (*below)--;
    }
    for (*above = SX_MIN(n, batch); batch % *above != 0;) {
        (*above)++;
    }
}

static sx_status check_micro_batches(int64_t batch, int n)
{
    int64_t below = 0, above = 0;
    if (n <= 1 || batch % n == 0) {
        return SX_OK;
    }
    nearest_divisors(batch, n, &below, &above);
    return sx_error(SX_INVALID_ARGUMENT,
                    "micro_batches (--micro-batches) is %d, which does not divide a training batch "
                    "of %" PRId64 " examples: the nearest that do are %" PRId64 " and %" PRId64,
                    n, batch, below, above);
}

sx_status sx_check_batch_divides(const sx_run_config *c, int64_t batch)
{
    int replicas = sx_run_config_replicas(c);
    SX_TRY(check_micro_batches(batch, c->train_distribute != NULL
                                          ? sx_strategy_micro_batches(c->train_distribute)
                                          : c->micro_batches));
    bool whole = c->tpu_config.per_host_input_for_training == SX_BROADCAST;
    return whole || batch % replicas == 0 ? SX_OK : refuse_batch(batch, replicas);
}

sx_status sx_tpu_config_check(const sx_tpu_config *c)
{
    if (c->num_cores_per_replica != 1) {
        return sx_error(
            SX_INVALID_ARGUMENT,
            "tpu_config.num_cores_per_replica is %d, expected 1: model parallelism is by "
            "the device scopes of a model and a list of devices, not over a TPU's cores",
            c->num_cores_per_replica);
    }
    SX_TRY(check_mode(&rows[c->per_host_input_for_training], SX_TRAIN));
    return check_mode(&rows[c->eval_training_input_configuration], SX_EVAL);
}
