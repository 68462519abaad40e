#include "servable_args.h"

#include "distribute/device_spec.h"

sx_status sx_servable_args_check(sx_invocation *inv, const sx_device_args *args)
{
    sx_device_spec spec;
    return args->device != NULL
               ? sx_usage(inv, sx_device_spec_parse(args->device, &inv->arena, &spec))
               : SX_OK;
}
