/* CRC-32C (Castagnoli): the checksum of TFRecords, SSTable blocks and checkpoint entries.
 *
 * Reflected polynomial 0x82F63B78, initial value and final XOR 0xFFFFFFFF; the check value of
 * "123456789" is 0xE3069283. The functions take and return the final value, so a CRC over several
 * pieces starts at 0 and is continued: crc32c(crc32c(0, a), b) = crc32c(0, ab).
 *
 * Stored checksums are masked as in TensorFlow, because a CRC over bytes that contain their own CRC
 * is degenerate: mask(c) = rotate_right(c, 15) + 0xA282EAD8. */
#ifndef SX_IO_CRC32C_H
#define SX_IO_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Continues `crc` (initially 0) over `size` bytes, with hardware CRC if available. */
uint32_t sx_crc32c(uint32_t crc, const void *data, size_t size);

/* The same in plain C, for machines without isa-l and as a reference in tests. */
uint32_t sx_crc32c_portable(uint32_t crc, const void *data, size_t size);

static inline uint32_t sx_crc32c_mask(uint32_t crc)
{
    return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

static inline uint32_t sx_crc32c_unmask(uint32_t masked)
{
    uint32_t rotated = masked - 0xA282EAD8u;
    return (rotated << 15) | (rotated >> 17);
}

#endif
