/* sx_cache: elements kept in memory by record id, shared by all iterators of a dataset.
 *
 *   entries[record] -> NULL | { data of component 0 | 1 | ... | bytes of strings }
 *
 * Entries are set once and stay until the cache is destroyed, so that readers need no lock; beyond
 * the budget, no more are added. */
#ifndef SX_DATA_CACHE_H
#define SX_DATA_CACHE_H

#include <sextant/data.h>

typedef struct sx_cache sx_cache;

/* `schema` is borrowed until the cache is destroyed. budget_bytes covers the entries and their
 * index. */
SX_MUST_USE sx_status sx_cache_create(const sx_schema *schema, int64_t records,
                                      int64_t budget_bytes, sx_cache **out_cache);
void sx_cache_destroy(sx_cache *cache); /* NULL is fine */

/* Sets out[i].data to the kept element and returns true, or returns false. */
bool sx_cache_get(sx_cache *cache, int64_t record, sx_tensor *out);
/* Stores a copy if there is room. If two threads store the same record, the first wins. */
void sx_cache_put(sx_cache *cache, int64_t record, const sx_tensor *element);

#endif
