/* Numbers in files and messages, byte by byte: aligned or not, on any machine. */
#ifndef SX_BASE_BYTE_ORDER_H
#define SX_BASE_BYTE_ORDER_H

#include <stdint.h>

static inline uint32_t sx_load_le16(const void *at)
{
    const uint8_t *b = at;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8;
}

static inline uint32_t sx_load_le32(const void *at)
{
    return sx_load_le16(at) | sx_load_le16((const uint8_t *)at + 2) << 16;
}

static inline uint64_t sx_load_le64(const void *at)
{
    return sx_load_le32(at) | (uint64_t)sx_load_le32((const uint8_t *)at + 4) << 32;
}

static inline uint32_t sx_load_be16(const void *at)
{
    const uint8_t *b = at;
    return (uint32_t)b[0] << 8 | b[1];
}

static inline uint32_t sx_load_be32(const void *at)
{
    return sx_load_be16(at) << 16 | sx_load_be16((const uint8_t *)at + 2);
}

static inline void sx_store_le32(void *at, uint32_t value)
{
    uint8_t *b = at;
    for (int i = 0; i < 4; i++) {
        b[i] = (uint8_t)(value >> (8 * i));
    }
}

static inline void sx_store_le64(void *at, uint64_t value)
{
    sx_store_le32(at, (uint32_t)value);
    sx_store_le32((uint8_t *)at + 4, (uint32_t)(value >> 32));
}

#endif
