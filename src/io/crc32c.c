#include "io/crc32c.h"

#if __has_include(<isa-l/crc.h>)
#include <isa-l/crc.h>
#define HAVE_ISAL 1
#endif

uint32_t sx_crc32c_portable(uint32_t crc, const void *data, size_t size)
{
    /* The remainder of each nibble. */
    static const uint32_t table[16] = {
        0x00000000, 0x105EC76F, 0x20BD8EDE, 0x30E349B1, 0x417B1DBC, 0x5125DAD3,
        0x61C69362, 0x7198540D, 0x82F63B78, 0x92A8FC17, 0xA24BB5A6, 0xB21572C9,
        0xC38D26C4, 0xD3D3E1AB, 0xE330A81A, 0xF36E6F75,
    };
    const uint8_t *bytes = data;
    crc = ~crc;
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        crc = (crc >> 4) ^ table[crc & 15];
        crc = (crc >> 4) ^ table[crc & 15];
    }
    return ~crc;
}

#ifdef HAVE_ISAL

/* crc32_iscsi() neither inverts its seed nor its result, and takes an int. */
uint32_t sx_crc32c(uint32_t crc, const void *data, size_t size)
{
    const size_t most = 1u << 30;
    /* isa-l does not write through the pointer; its prototype just lacks the const. */
    unsigned char *bytes = (unsigned char *)(uintptr_t)data;
    crc = ~crc;
    while (size > 0) {
        size_t n = size < most ? size : most;
        crc = crc32_iscsi(bytes, (int)n, crc);
        bytes += n;
        size -= n;
    }
    return ~crc;
}

#else

uint32_t sx_crc32c(uint32_t crc, const void *data, size_t size)
{
    return sx_crc32c_portable(crc, data, size);
}

#endif
