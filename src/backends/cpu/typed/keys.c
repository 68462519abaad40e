/* See keys.h. */
#include "backends/cpu/typed/keys.h"

void sx_typed_keys_of(const sx_tensor *t, int64_t first, int64_t n, uint64_t *keys)
{
#define WHOLE(type)                                    \
    {                                                  \
        const type *x = (const type *)t->data + first; \
        for (int64_t k = 0; k < n; k++) {              \
            keys[k] = (uint64_t)x[k];                  \
        }                                              \
        break;                                         \
    }
#define FLOATS(type, sign, infinity)                                                 \
    {                                                                                \
        const type *x = (const type *)t->data + first;                               \
        for (int64_t k = 0; k < n; k++) {                                            \
            const bool nan = (x[k] & ~(sign)) > (infinity);                          \
            const uint64_t number = x[k] == (sign) ? 0 : x[k];                       \
            keys[k] = nan ? UINT64_C(0x7ff8) << 48 | (uint64_t)(first + k) : number; \
        }                                                                            \
        break;                                                                       \
    }
    switch (t->type.dtype) {
    case SX_F32:
        FLOATS(uint32_t, 0x80000000U, 0x7f800000U)
    case SX_F64:
        FLOATS(uint64_t, UINT64_C(1) << 63, UINT64_C(0x7ff) << 52)
    case SX_F16:
        FLOATS(uint16_t, 0x8000U, 0x7c00U)
    case SX_BF16:
        FLOATS(uint16_t, 0x8000U, 0x7f80U)
    case SX_U64:
    case SX_I64:
        WHOLE(uint64_t)
    case SX_U32:
    case SX_I32:
        WHOLE(uint32_t)
    case SX_U16:
    case SX_I16:
        WHOLE(uint16_t)
    default: /* SX_U8, SX_I8, SX_BOOL */
        WHOLE(uint8_t)
    }
#undef WHOLE
#undef FLOATS
}

void sx_typed_gather(const void *x, const int32_t *at, int64_t n, size_t bytes, void *y)
{
#define GATHER(type)                               \
    for (int64_t k = 0; k < n; k++) {              \
        ((type *)y)[k] = ((const type *)x)[at[k]]; \
    }
    switch (bytes) {
    case 1:
        GATHER(uint8_t)
        break;
    case 2:
        GATHER(uint16_t)
        break;
    case 4:
        GATHER(uint32_t)
        break;
    default:
        GATHER(uint64_t)
        break;
    }
#undef GATHER
}
