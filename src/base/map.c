/* String map.
 *
 *   slots   [ 0 | 3 | 0 | 1 | 2 | 0 | 0 | 0 ]      power of two, linear probing, at most half full
 *                 |       |   |
 *   entries [ e0: key value hash | e1 | e2 ]       in insertion order; slot = index + 1
 *
 * Entries are never removed, so probing needs no tombstones. */
#include "base/map.h"

#include <string.h>

#include "base/checked.h"
#include "base/memory.h"

enum { FIRST_CAPACITY = 8, MAX_ENTRIES = 1 << 28 };

uint64_t sx_hash64(const void *data, size_t size)
{
    const unsigned char *bytes = data;
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    }
    return hash;
}

/* Of the table alone, eight bytes at a time: names have 50 and more. */
static uint64_t slot_hash(const char *key, size_t size)
{
    uint64_t hash = size;
    for (; size > 0;) {
        uint64_t word = 0;
        const size_t n = size < sizeof(word) ? size : sizeof(word);
        memcpy(&word, key, n);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
        key += n;
        size -= n;
    }
    return hash;
}

void sx_map_init(sx_map *map)
{
    *map = (sx_map){0};
}

void sx_map_init_borrowed(sx_map *map)
{
    *map = (sx_map){.borrows = true};
}

void sx_map_deinit(sx_map *map)
{
    for (size_t i = 0; i < map->count && !map->borrows; i++) {
        sx_free((char *)(uintptr_t)map->entries[i].key);
    }
    sx_free(map->entries);
    sx_free(map->slots);
    *map = (sx_map){.borrows = map->borrows};
}

/* The slot that holds `key`, or the empty slot where it belongs. Requires slot_count > 0. */
static uint32_t *find_slot(const sx_map *map, const char *key, size_t key_bytes, uint64_t hash)
{
    size_t mask = map->slot_count - 1;
    for (size_t i = (hash ^ hash >> 32) & mask;; i = (i + 1) & mask) {
        uint32_t *slot = &map->slots[i];
        if (*slot == 0) {
            return slot;
        }
        const sx_map_entry *entry = &map->entries[*slot - 1];
        if (entry->hash == hash && strncmp(entry->key, key, key_bytes) == 0 &&
            entry->key[key_bytes] == '\0') {
            return slot;
        }
    }
}

static const sx_map_entry *find_entry(const sx_map *map, const char *key, size_t key_bytes)
{
    if (map->count == 0) {
        return NULL;
    }
    uint32_t slot = *find_slot(map, key, key_bytes, slot_hash(key, key_bytes));
    return slot == 0 ? NULL : &map->entries[slot - 1];
}

/* Doubles both tables and rehashes the entries; on failure the map does not change. */
static sx_status grow(sx_map *map)
{
    size_t capacity = map->capacity == 0 ? FIRST_CAPACITY : map->capacity * 2;
    if (capacity > MAX_ENTRIES) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "map has more than %d entries", MAX_ENTRIES);
    }
    uint32_t *slots = sx_alloc(capacity * 2, sizeof(*slots));
    sx_map_entry *entries =
        slots == NULL ? NULL : sx_realloc(map->entries, capacity, sizeof(*entries));
    if (entries == NULL) {
        sx_free(slots);
        return sx_no_memory("for a map of %zu entries", capacity);
    }
    sx_free(map->slots);
    map->entries = entries;
    map->capacity = capacity;
    map->slots = slots;
    map->slot_count = capacity * 2;
    for (size_t i = 0; i < map->count; i++) {
        const char *key = entries[i].key;
        *find_slot(map, key, strlen(key), entries[i].hash) = (uint32_t)i + 1;
    }
    return SX_OK;
}

sx_status sx_map_put(sx_map *map, const char *key, void *value)
{
    if (map->count == map->capacity) {
        SX_TRY(grow(map));
    }
    const size_t key_bytes = strlen(key);
    uint64_t hash = slot_hash(key, key_bytes);
    uint32_t *slot = find_slot(map, key, key_bytes, hash);
    if (*slot != 0) {
        map->entries[*slot - 1].value = value;
        return SX_OK;
    }
    const char *kept = map->borrows ? key : sx_strdup(key);
    if (kept == NULL) {
        return sx_no_memory("for a map key");
    }
    map->entries[map->count] = (sx_map_entry){.key = kept, .value = value, .hash = hash};
    map->count++;
    *slot = (uint32_t)map->count;
    return SX_OK;
}

void *sx_map_get(const sx_map *map, const char *key)
{
    return sx_map_get_bytes(map, key, strlen(key));
}

void *sx_map_get_bytes(const sx_map *map, const char *key, size_t key_bytes)
{
    const sx_map_entry *entry = find_entry(map, key, key_bytes);
    return entry == NULL ? NULL : entry->value;
}

bool sx_map_has(const sx_map *map, const char *key)
{
    return find_entry(map, key, strlen(key)) != NULL;
}
