/* sx_map: a hash map from strings to pointers that iterates in insertion order. Keys are copied,
 * unless the map is one of borrowed keys; values are borrowed. Not thread-safe. */
#ifndef SX_BASE_MAP_H
#define SX_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sextant/status.h>

typedef struct sx_map_entry {
    const char *key;
    void *value;
    uint64_t hash;
} sx_map_entry;

typedef struct sx_map {
    sx_map_entry *entries; /* [count], in insertion order */
    size_t count, capacity;
    uint32_t *slots; /* index into entries + 1; 0 = empty */
    size_t slot_count;
    bool borrows; /* the keys */
} sx_map;

void sx_map_init(sx_map *map);
void sx_map_init_borrowed(sx_map *map); /* the keys outlive the map */
void sx_map_deinit(sx_map *map);
/* Inserts or replaces. */
SX_MUST_USE sx_status sx_map_put(sx_map *map, const char *key, void *value);
void *sx_map_get(const sx_map *map, const char *key); /* NULL if absent */
/* The same for a key of `key_bytes` bytes, none of them 0, that is not terminated. */
void *sx_map_get_bytes(const sx_map *map, const char *key, size_t key_bytes);
bool sx_map_has(const sx_map *map, const char *key);

/* 64-bit FNV-1a, for names and text forms. It must never change: random keys contain it. */
uint64_t sx_hash64(const void *data, size_t size);

#endif
