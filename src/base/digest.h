/* SHA-256: what names a text by its content where two that differ must not be taken for one. */
#ifndef SX_BASE_DIGEST_H
#define SX_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include <sextant/status.h>

typedef struct sx_digest {
    uint8_t bytes[32];
} sx_digest;

SX_MUST_USE sx_status sx_digest_of(const void *data, size_t size, sx_digest *out);

#endif
