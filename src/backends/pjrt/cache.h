/* The compile cache: compiled programs on disk. Compiling for a TPU takes minutes.
 *
 *   DIR/<64 hexadecimal digits of the key>.exe
 *
 *   0    "sxpjrt01"
 *   8    key [32]            SHA-256 of everything the result depends on
 *   40   u64 size            of the plugin's bytes
 *   48   i64 facts [5]       argument, output, alias, temporary and code bytes
 *   88   f64 flops
 *   96   u32 CRC-32C, masked, of bytes 0 … 95 and of the plugin's bytes
 *   100  the plugin's bytes (PJRT_Executable_Serialize)
 *
 * Numbers are little-endian. Entries are written atomically (io/commit.h). An entry whose key or
 * checksum is wrong is deleted when it is read. If the directory exceeds its maximum size, the
 * least recently used entries are deleted. */
#ifndef SX_BACKENDS_PJRT_CACHE_H
#define SX_BACKENDS_PJRT_CACHE_H

#include <sextant/types.h>

typedef struct sx_pjrt_cache_key {
    uint8_t bytes[32];
} sx_pjrt_cache_key;

/* The plugin's figures for the program. */
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

/* The hash of all parts and their sizes. */
SX_MUST_USE sx_status sx_pjrt_cache_key_of(const sx_bytes *parts, int n, sx_pjrt_cache_key *out);

/* Errors: NOT_FOUND; DATA_LOSS: a damaged entry, which has been deleted. */
SX_MUST_USE sx_status sx_pjrt_cache_read(const char *dir, const sx_pjrt_cache_key *key,
                                         sx_pjrt_cache_entry *out);

/* Writes an entry, creating the directory if necessary, and deletes the least recently used entries
 * if their total size exceeds `max_bytes`. An entry larger than that is not stored. */
SX_MUST_USE sx_status sx_pjrt_cache_write(const char *dir, const sx_pjrt_cache_key *key,
                                          const sx_pjrt_cache_entry *entry, uint64_t max_bytes);

void sx_pjrt_cache_remove(const char *dir, const sx_pjrt_cache_key *key);

/* Parses an entry; for tests and fuzzing. out->bytes points into `data`. */
SX_MUST_USE sx_status sx_pjrt_cache_parse(const sx_pjrt_cache_key *key, char *data, size_t size,
                                          sx_pjrt_cache_entry *out);

#endif
