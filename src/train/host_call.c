/* See host_call.h. */
#include "train/host_call.h"

#include <string.h>

#include "base/memory.h"

bool sx_is_host_call(const char *output_name)
{
    return strncmp(output_name, SX_HOST_CALL_PREFIX, sizeof(SX_HOST_CALL_PREFIX) - 1) == 0;
}

static sx_status refuse(const sx_host_value *value, const char *why)
{
    char text[SX_TYPE_TEXT];
    return sx_error(SX_INVALID_ARGUMENT, "host_call: \"%s\" is %s: %s", value->name,
                    sx_type_format(&value->type, text, sizeof(text)), why);
}

static bool is_number(sx_dtype dtype)
{
    return dtype == SX_F32 || dtype == SX_F64 || dtype == SX_I32 || dtype == SX_I64 ||
           dtype == SX_BOOL;
}

static sx_status make_array(sx_host_caller *h, int i, int64_t max_batch)
{
    sx_type type = sx_type_with_batch(h->values[i].type, max_batch);
    int64_t bytes = sx_type_bytes(&type);
    if (bytes < 0) {
        return refuse(&h->values[i], "not an array of numbers");
    }
    h->arrays[i] = sx_alloc_aligned((size_t)bytes + 1, 64);
    h->values[i].data = h->arrays[i];
    return h->arrays[i] != NULL ? SX_OK : sx_no_memory("for host_call");
}

/* Output `output` of the program as a value named `name` without its prefix. */
static sx_host_value host_value(const sx_program *program, int output, const void *data)
{
    const char *name = sx_program_output_name(program, output);
    return (sx_host_value){.name = name + sizeof(SX_HOST_CALL_PREFIX) - 1,
                           .type = *sx_program_output_type(program, output),
                           .data = data};
}

static sx_status add_value(sx_host_caller *h, int output, int scalar, int64_t max_batch)
{
    int i = h->n++;
    h->outputs[i] = output;
    h->scalars[i] = scalar;
    h->values[i] = host_value(h->program, output, &h->numbers[i]);
    if (scalar < 0) {
        return make_array(h, i, max_batch);
    }
    return is_number(h->values[i].type.dtype)
               ? SX_OK
               : refuse(&h->values[i], "cast it to float32 or int32");
}

sx_status sx_host_caller_init(sx_host_caller *h, sx_program *program, const sx_host_call *call,
                              int64_t max_batch, int64_t every)
{
    int scalar = 0;
    *h = (sx_host_caller){.program = program, .call = *call, .every = every};
    sx_status status = SX_OK;
    for (int i = 0; i < sx_program_output_count(program) && status == SX_OK; i++) {
        bool is_scalar = sx_program_output_type(program, i)->rank == 0;
        if (sx_is_host_call(sx_program_output_name(program, i)) && h->n < SX_MAX_HOST_TENSORS) {
            status = add_value(h, i, is_scalar ? scalar : -1, max_batch);
        }
        scalar += is_scalar;
    }
    if (status != SX_OK) {
        sx_host_caller_deinit(h);
    }
    return status;
}

void sx_host_caller_deinit(sx_host_caller *h)
{
    for (int i = 0; i < h->n; i++) {
        sx_free_aligned(h->arrays[i]);
    }
    *h = (sx_host_caller){0};
}

static void set_number(sx_host_caller *h, int i, double value)
{
    switch (h->values[i].type.dtype) {
    case SX_F32:
        h->numbers[i].f32 = (float)value;
        break;
    case SX_F64:
        h->numbers[i].f64 = value;
        break;
    case SX_I32:
        h->numbers[i].i32 = (int32_t)value;
        break;
    case SX_I64:
        h->numbers[i].i64 = (int64_t)value;
        break;
    default:
        h->numbers[i].b = value != 0;
    }
}

static sx_status take_value(sx_host_caller *h, int i, const sx_step_scalars *scalars)
{
    const sx_type *symbolic = sx_program_output_type(h->program, h->outputs[i]);
    if (h->scalars[i] >= 0) {
        set_number(h, i, scalars->values[h->scalars[i]]);
        return SX_OK;
    }
    h->values[i].type = sx_type_with_batch(*symbolic, scalars->batch);
    return sx_program_read_output(h->program, h->outputs[i], h->arrays[i]);
}

sx_status sx_host_caller_step(sx_host_caller *h, const sx_step_scalars *scalars)
{
    if (h->call.fn == NULL || scalars->step % h->every != 0) {
        return SX_OK;
    }
    for (int i = 0; i < h->n; i++) {
        SX_TRY(take_value(h, i, scalars));
    }
    return h->call.fn(h->call.user, scalars->step, h->values, h->n);
}

sx_status sx_host_call_batch(const sx_host_call *call, const sx_program *program, int64_t step,
                             void *const *outputs, int64_t size)
{
    sx_host_value values[SX_MAX_HOST_TENSORS];
    int n = 0;
    for (int i = 0; i < sx_program_output_count(program) && n < SX_MAX_HOST_TENSORS; i++) {
        if (sx_is_host_call(sx_program_output_name(program, i))) {
            values[n] = host_value(program, i, outputs[i]);
            values[n++].type.dims[0] = size;
        }
    }
    return call->fn(call->user, step, values, n);
}
