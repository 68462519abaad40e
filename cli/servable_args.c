#include "servable_args.h"

#include "distribute/device_list.h"
#include "distribute/device_spec.h"

sx_status sx_servable_args_check(sx_invocation *inv, const sx_device_args *args)
{
    sx_device_spec spec;
    sx_device_list_spec list;
    return args->device == NULL ? SX_OK
           : sx_is_device_list(args->device)
               ? sx_usage(inv, sx_device_list_parse(args->device, &inv->arena, &list))
               : sx_usage(inv, sx_device_spec_parse(args->device, &inv->arena, &spec));
}
