/* Elements of tensors of integers, whatever their width. */
#ifndef SX_BASE_INTEGER_H
#define SX_BASE_INTEGER_H

#include <stddef.h>
#include <stdint.h>

#include <sextant/types.h>

/* Element `i` of integers or booleans: signed ones keep their sign; uint64 keeps its bits. Of
 * 16-bit floats, the bits. */
static inline int64_t sx_integer_at(const sx_tensor *tensor, size_t i)
{
    const void *data = tensor->data;
    switch (tensor->type.dtype) {
    case SX_I8:
        return ((const int8_t *)data)[i];
    case SX_I16:
        return ((const int16_t *)data)[i];
    case SX_I32:
        return ((const int32_t *)data)[i];
    case SX_U8:
    case SX_BOOL:
        return ((const uint8_t *)data)[i];
    case SX_U16:
    case SX_F16:
    case SX_BF16:
        return ((const uint16_t *)data)[i];
    case SX_U32:
        return ((const uint32_t *)data)[i];
    default: /* of 8 bytes */
        return ((const int64_t *)data)[i];
    }
}

#endif
