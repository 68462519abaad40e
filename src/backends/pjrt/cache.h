/* Compiled programs on disk, so that a plugin compiles each but once: on a TPU that takes minutes.
 *
 *   DIR/<64 hexadecimal digits of the key>.exe
 *
 *   0    "sxpjrt01"
 *   8    key [32]            SHA-256 of everything that the result depends on
 *   40   u64 size            of the plugin's bytes
 *   48   i64 facts [5]       argument, output, alias, temporary and code bytes
 *   88   f64 flops
 *   96   u32 CRC-32C, masked, of bytes 0 … 95 and of the plugin's bytes
 *   100  the plugin's bytes (PJRT_Executable_Serialize)
 *
 * Numbers are little-endian. Invariants: an entry appears whole or not at all (io/commit.h); what
 * is read back has its key and its checksum, or is deleted. The oldest entries go when the folder
 * holds more than its maximum; reading one makes it the youngest. */
#ifndef SX_BACKENDS_PJRT_CACHE_H
#define SX_BACKENDS_PJRT_CACHE_H

#include <sextant/types.h>

typedef struct sx_pjrt_cache_key {
    uint8_t bytes[32];
} sx_pjrt_cache_key;

/* What the plugin said of the program when it had compiled it. */
typedef struct sx_pjrt_facts {
    int64_t argument_bytes, output_bytes, alias_bytes, temporary_bytes, code_bytes;
    double flops;
} sx_pjrt_facts;

typedef struct sx_pjrt_cache_entry {
    char *bytes; /* the plugin's; free with sx_free */
    size_t size;
    sx_pjrt_facts facts;
} sx_pjrt_cache_entry;

enum { SX_PJRT_CACHE_HEADER_BYTES = 100 };

/* The hash of all parts and of where each ends. */
SX_MUST_USE sx_status sx_pjrt_cache_key_of(const sx_bytes *parts, int n, sx_pjrt_cache_key *out);

/* Errors: NOT_FOUND; DATA_LOSS a damaged entry, which is gone now. */
SX_MUST_USE sx_status sx_pjrt_cache_read(const char *dir, const sx_pjrt_cache_key *key,
                                         sx_pjrt_cache_entry *out);

/* Makes the folder if need be, writes, and deletes the oldest entries while all of them have more
 * than `max_bytes`; an entry larger than that is not kept. */
SX_MUST_USE sx_status sx_pjrt_cache_write(const char *dir, const sx_pjrt_cache_key *key,
                                          const sx_pjrt_cache_entry *entry, uint64_t max_bytes);

void sx_pjrt_cache_remove(const char *dir, const sx_pjrt_cache_key *key);

/* One entry's bytes, parsed: for tests and fuzzing. `bytes` of *out points into `data`. */
SX_MUST_USE sx_status sx_pjrt_cache_parse(const sx_pjrt_cache_key *key, char *data, size_t size,
                                          sx_pjrt_cache_entry *out);

#endif
