/* See choose_strategy.h. */
#include "train/choose_strategy.h"

#include <string.h>

#include "base/checked.h"
#include "distribute/strategy.h"

static bool names_devices(const sx_run_config *c)
{
    return c->device != NULL || c->replicas > 0 || c->virtual_devices > 0 ||
           c->batch_norm != NULL || c->pjrt_plugin != NULL || c->python != NULL ||
           c->dump_stablehlo != NULL || c->coordinator != NULL || c->num_processes > 0 ||
           c->strict_placement || c->log_device_placement || c->inter_op > 0 || c->intra_op > 0 ||
           c->micro_batches > 0;
}

/* After sx_settle_strategy() the device fields describe the strategy. */
static bool is_settled(const sx_run_config *c)
{
    return c->device == sx_strategy_device(c->train_distribute);
}

/* Master and cluster belong to TPUs and are ignored if another device is named. */
static bool may_be_tpu(const sx_run_config *c)
{
    return c->device == NULL || strncmp(c->device, "tpu", 3) == 0;
}

sx_status sx_choose_strategy(const sx_run_config *c, sx_strategy **out_strategy)
{
    if (c->train_distribute == NULL) {
        bool tpu = may_be_tpu(c);
        const sx_strategy_wish wish = {.master = tpu ? c->master : NULL,
                                       .tpu = tpu ? c->cluster : NULL,
                                       .args = {.device = c->device,
                                                .replicas = c->replicas,
                                                .virtual_devices = c->virtual_devices,
                                                .pjrt_plugin = c->pjrt_plugin,
                                                .python = c->python,
                                                .dump_stablehlo = c->dump_stablehlo,
                                                .batch_norm = c->batch_norm,
                                                .coordinator = c->coordinator,
                                                .num_processes = c->num_processes,
                                                .process_id = c->process_id,
                                                .strict_placement = c->strict_placement,
                                                .log_device_placement = c->log_device_placement,
                                                .inter_op = c->inter_op,
                                                .intra_op = c->intra_op,
                                                .micro_batches = c->micro_batches,
                                                .stop = c->stop},
                                       .from_environment = true};
        return sx_strategy_create(&wish, out_strategy);
    }
    if (names_devices(c) && !is_settled(c)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "train_distribute cannot be combined with device, replicas, "
                        "virtual_devices, batch_norm, pjrt_plugin, python, dump_stablehlo, "
                        "coordinator, num_processes or the fields of placement");
    }
    *out_strategy = sx_strategy_retain(c->train_distribute);
    return SX_OK;
}

void sx_settle_strategy(sx_run_config *config, sx_strategy *strategy)
{
    config->train_distribute = strategy;
    config->device = sx_strategy_device(strategy);
    config->replicas = sx_strategy_num_replicas_in_sync(strategy);
    config->batch_norm = sx_strategy_batch_norm(strategy);
    config->virtual_devices = 0;
    config->pjrt_plugin = config->python = config->dump_stablehlo = NULL;
    config->coordinator = NULL;
    config->num_processes = config->process_id = 0;
}

int sx_run_config_replicas(const sx_run_config *c)
{
    return c->train_distribute != NULL ? sx_strategy_num_replicas_in_sync(c->train_distribute)
                                       : SX_MAX(1, c->replicas);
}

int sx_run_config_replicas_of(const sx_run_config *c, sx_mode mode)
{
    return mode == SX_EVAL && c->eval_distribute != NULL
               ? sx_strategy_num_replicas_in_sync(c->eval_distribute)
               : sx_run_config_replicas(c);
}
