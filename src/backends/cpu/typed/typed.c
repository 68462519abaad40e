/* See typed.h. */
#include "backends/cpu/typed/typed.h"

#include "base/half.h"
#include "base/memory.h"

#define SX_TYPED(name) extern const sx_typed_kernel sx_typed_##name;
#include "backends/cpu/typed/typed.def"
#undef SX_TYPED

static const sx_typed_kernel *const kernels[] = {
#define SX_TYPED(name) &sx_typed_##name,
#include "backends/cpu/typed/typed.def"
#undef SX_TYPED
};

static const sx_typed_kernel *row_of(const sx_op_def *op)
{
    for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
        if (kernels[i]->op == op->id) {
            return kernels[i];
        }
    }
    return NULL;
}

bool sx_typed_has(const sx_op_def *op)
{
    return row_of(op) != NULL;
}

const sx_typed_kernel *sx_typed_find(const sx_op_def *op, const void *attrs, const sx_tensor *in)
{
    const sx_typed_kernel *kernel = row_of(op);
    return kernel != NULL && kernel->takes(attrs, in) ? kernel : NULL;
}

sx_status sx_typed_types(const sx_typed_kernel *kernel, const sx_op_def *op, sx_typed_call *call,
                         sx_type *out_types, int n_out)
{
    return kernel->types != NULL ? kernel->types(call, out_types)
                                 : sx_typed_host_types(op, call, kernel->sizes, out_types, n_out);
}

sx_status sx_typed_host_types(const sx_op_def *op, const sx_typed_call *call, unsigned sizes,
                              sx_type *out_types, int n_out)
{
    const sx_tensor *in = call->in;
    const int n_in = call->n_in;
    sx_arena *arena = call->context->arena;
    sx_host_tensor *seen = sx_arena_array(arena, n_in + 1, sx_host_tensor);
    if (seen == NULL) {
        return sx_budget_error(arena->budget);
    }
    for (int i = 0; i < n_in; i++) {
        const bool is_read =
            sizes == SX_TYPED_FIRST_HALF ? i < n_in / 2 : i < 31 && (sizes >> i & 1) != 0;
        seen[i] = (sx_host_tensor){.type = in[i].type};
        if (is_read) {
            seen[i].data = sx_arena_alloc(arena, (size_t)sx_type_elems(&in[i].type) + 1,
                                          sx_carrier_bytes(in[i].type.dtype));
            if (seen[i].data == NULL) {
                return sx_budget_error(arena->budget);
            }
            sx_host_load(&seen[i], in[i].data);
        }
    }
    const sx_kernel_call host = {.attrs = call->attrs,
                                 .in = seen,
                                 .n_in = n_in,
                                 .n_out = n_out,
                                 .all_carried = true,
                                 .arena = arena,
                                 .cancel = call->context->cancel};
    return op->host_types(&host, out_types);
}

const float *sx_typed_floats(const sx_tensor *t, int64_t first, int64_t n, float *room)
{
#define CONVERT(type, TO_FLOAT)                        \
    {                                                  \
        const type *x = (const type *)t->data + first; \
        for (int64_t k = 0; k < n; k++) {              \
            room[k] = (float)TO_FLOAT(x[k]);           \
        }                                              \
        break;                                         \
    }
    switch (t->type.dtype) {
    case SX_F32:
        return (const float *)t->data + first;
    case SX_U8:
        CONVERT(uint8_t, )
    case SX_I8:
        CONVERT(int8_t, )
    case SX_U16:
        CONVERT(uint16_t, )
    case SX_I16:
        CONVERT(int16_t, )
    case SX_I32:
        CONVERT(int32_t, )
    case SX_I64:
        CONVERT(int64_t, )
    case SX_U32:
        CONVERT(uint32_t, )
    case SX_U64:
        CONVERT(uint64_t, )
    case SX_F64:
        CONVERT(double, )
    case SX_BF16:
        CONVERT(uint16_t, sx_bf16_to_f32)
    default: /* infer has accepted numbers */
        CONVERT(uint16_t, sx_f16_to_f32)
    }
#undef CONVERT
    return room;
}
