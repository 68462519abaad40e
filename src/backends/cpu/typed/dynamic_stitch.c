/* dynamic_stitch: items copied to where their indices say, as the bytes that they are. */
#include <string.h>

#include "backends/cpu/typed/typed.h"
#include "base/checked.h"
#include "graph/ops/common.h"

static bool takes(const void *attrs, const sx_tensor *in)
{
    (void)attrs, (void)in;
    return true;
}

/* Items of one element: y[at[k]] = x[k]. */
#define PUT(name, type)                                                    \
    static void name(const void *x, const int32_t *at, int64_t n, void *y) \
    {                                                                      \
        for (int64_t k = 0; k < n; k++) {                                  \
            ((type *)y)[at[k]] = ((const type *)x)[k];                     \
        }                                                                  \
    }
PUT(put_1, uint8_t)
PUT(put_2, uint16_t)
PUT(put_4, uint32_t)
PUT(put_8, uint64_t)
#undef PUT

static sx_status run(const sx_typed_call *c)
{
    const int k = c->n_in / 2;
    const sx_type *y = &c->out[0].type;
    const size_t elem = y->dtype == SX_STRING ? sizeof(sx_bytes) : sx_dtype_bytes(y->dtype);
    const size_t bytes = (size_t)sx_dims_product(y, 1, y->rank) * elem;
    char *out = c->out[0].data;
    if (bytes == 0) {
        return SX_OK;
    }
    memset(out, 0, (size_t)y->dims[0] * bytes);
    for (int i = 0; i < k; i++) {
        const int32_t *at = c->in[i].data;
        const char *x = c->in[k + i].data;
        const int64_t n = sx_type_elems(&c->in[i].type);
        SX_TRY(sx_cancel_check(c->context->cancel));
        if (bytes == elem && elem <= sizeof(uint64_t)) {
            (elem == 1 ? put_1 : elem == 2 ? put_2 : elem == 4 ? put_4 : put_8)(x, at, n, out);
            continue;
        }
        for (int64_t j = 0; j < n; j++) {
            memcpy(out + (size_t)at[j] * bytes, x + (size_t)j * bytes, bytes);
        }
    }
    return SX_OK;
}

const sx_typed_kernel sx_typed_dynamic_stitch = {
    .op = SX_OPID_dynamic_stitch, .sizes = SX_TYPED_FIRST_HALF, .takes = takes, .run = run};
