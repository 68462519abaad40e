/* See device_args.h. */
#include "device_args.h"

#include "command.h"

sx_strategy_args sx_device_args_read(const sx_device_args *args)
{
    return (sx_strategy_args){.device = args->device,
                              .replicas = (int)args->replicas,
                              .virtual_devices = (int)args->virtual_devices,
                              .pjrt_plugin = args->pjrt_plugin,
                              .python = args->python,
                              .dump_stablehlo = args->dump_stablehlo,
                              .batch_norm = args->batch_norm,
                              .device_options = args->device_options,
                              .xla_options = args->xla_options,
                              .gpu_memory_limit = args->gpu_memory_limit,
                              .coordinator = args->coordinator,
                              .num_processes = (int)args->num_processes,
                              .process_id = (int)args->process_id,
                              .join_timeout_secs = (int)args->join_timeout,
                              .lost_timeout_secs = (int)args->lost_timeout,
                              .strict_placement = !args->soft_placement,
                              .log_device_placement = args->log_placement,
                              .inter_op = (int)args->inter_op,
                              .intra_op = (int)args->intra_op,
                              .micro_batches = (int)args->micro_batches,
                              .devices = args->devices,
                              .cross_device_ops = args->all_reduce,
                              .parameter_device = args->parameter_device,
                              .stop = sx_stop_flag()};
}
