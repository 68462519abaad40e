/* sx_map: string -> pointer, open addressing, insertion order kept for iteration.
 * Keys are copied; values are borrowed. Not thread-safe. */
#ifndef SX_BASE_MAP_H
#define SX_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sextant/status.h>

typedef struct sx_map_entry {
    char *key;
    void *value;
    uint64_t hash;
} sx_map_entry;

typedef struct sx_map {
    sx_map_entry *entries; /* [count], in the order of insertion */
    size_t count, capacity;
    uint32_t *slots; /* index into entries + 1; 0 = empty */
    size_t slot_count;
} sx_map;

void sx_map_init(sx_map *map);
void sx_map_deinit(sx_map *map);
/* Inserts or replaces. */
SX_MUST_USE sx_status sx_map_put(sx_map *map, const char *key, void *value);
void *sx_map_get(const sx_map *map, const char *key); /* NULL if absent */
bool sx_map_has(const sx_map *map, const char *key);

/* FNV-1a of 64 bits: names, text forms. Stable for ever: it is part of random keys (D5). */
uint64_t sx_hash64(const void *data, size_t size);

#endif
