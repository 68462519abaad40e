#include "data/cache.h"

#include <stdatomic.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "data/dataset.h"

enum { ALIGN = 64 };

struct sx_cache {
    const sx_schema *schema;
    int64_t records;
    int64_t budget_bytes;
    _Atomic int64_t used_bytes;
    _Atomic(unsigned char *) *entries; /* [records] */
};

sx_status sx_cache_create(const sx_schema *schema, int64_t records, int64_t budget_bytes,
                          sx_cache **out_cache)
{
    sx_cache *cache = sx_alloc(1, sizeof(*cache));
    if (cache == NULL) {
        return sx_no_memory("for a cache");
    }
    cache->entries = sx_alloc((size_t)records, sizeof(*cache->entries));
    if (cache->entries == NULL) {
        sx_free(cache);
        return sx_no_memory("for a cache of %lld records", (long long)records);
    }
    cache->schema = schema;
    cache->records = records;
    cache->budget_bytes = budget_bytes;
    atomic_init(&cache->used_bytes, records * (int64_t)sizeof(*cache->entries));
    *out_cache = cache;
    return SX_OK;
}

void sx_cache_destroy(sx_cache *cache)
{
    if (cache == NULL) {
        return;
    }
    for (int64_t i = 0; i < cache->records; i++) {
        sx_free_aligned(atomic_load_explicit(&cache->entries[i], memory_order_relaxed));
    }
    sx_free(cache->entries);
    sx_free(cache);
}

/* Bytes of one component's data part. */
static size_t part_bytes(const sx_type *type)
{
    return sx_align_up(sx_data_bytes(type), ALIGN);
}

bool sx_cache_get(sx_cache *cache, int64_t record, sx_tensor *out)
{
    unsigned char *entry = atomic_load_explicit(&cache->entries[record], memory_order_acquire);
    if (entry == NULL) {
        return false;
    }
    for (int i = 0; i < cache->schema->count; i++) {
        out[i].data = entry;
        entry += part_bytes(&cache->schema->components[i].type);
    }
    return true;
}

/* The size of the entry; false on overflow. */
static bool entry_bytes(const sx_schema *schema, const sx_tensor *element, size_t *out_bytes)
{
    size_t total = 0;
    for (int i = 0; i < schema->count; i++) {
        const sx_type *type = &schema->components[i].type;
        if (!sx_add_size(total, part_bytes(type), &total)) {
            return false;
        }
        const sx_bytes *strings = element[i].data;
        for (int64_t k = 0; type->dtype == SX_STRING && k < sx_type_elems(type); k++) {
            if (!sx_add_size(total, strings[k].size, &total)) {
                return false;
            }
        }
    }
    *out_bytes = SX_MAX(total, (size_t)1);
    return true;
}

static void copy_strings(const sx_bytes *from, sx_bytes *to, int64_t count, unsigned char **end)
{
    for (int64_t k = 0; k < count; k++) {
        if (from[k].size != 0) {
            memcpy(*end, from[k].data, from[k].size);
        }
        to[k] = (sx_bytes){*end, from[k].size};
        *end += from[k].size;
    }
}

static void fill_entry(const sx_schema *schema, const sx_tensor *element, unsigned char *entry)
{
    unsigned char *end = entry;
    for (int i = 0; i < schema->count; i++) {
        end += part_bytes(&schema->components[i].type);
    }
    for (int i = 0; i < schema->count; i++) {
        const sx_type *type = &schema->components[i].type;
        if (type->dtype == SX_STRING) {
            copy_strings(element[i].data, (sx_bytes *)(void *)entry, sx_type_elems(type), &end);
        } else {
            memcpy(entry, element[i].data, (size_t)sx_type_bytes(type));
        }
        entry += part_bytes(type);
    }
}

void sx_cache_put(sx_cache *cache, int64_t record, const sx_tensor *element)
{
    size_t bytes;
    if (!entry_bytes(cache->schema, element, &bytes) || bytes > INT64_MAX / 2) {
        return;
    }
    int64_t before = atomic_fetch_add(&cache->used_bytes, (int64_t)bytes);
    unsigned char *entry = NULL;
    if (before <= cache->budget_bytes - (int64_t)bytes) {
        entry = sx_alloc_aligned(bytes, ALIGN);
    }
    if (entry == NULL) {
        atomic_fetch_sub(&cache->used_bytes, (int64_t)bytes);
        return;
    }
    fill_entry(cache->schema, element, entry);
    unsigned char *expected = NULL;
    if (!atomic_compare_exchange_strong(&cache->entries[record], &expected, entry)) {
        sx_free_aligned(entry);
        atomic_fetch_sub(&cache->used_bytes, (int64_t)bytes);
    }
}
