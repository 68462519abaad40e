/* An index of names that tables of the program hold: a name is found without a walk over them. It
 * lies in its owner's static memory, is filled once (pthread_once), then read by any thread. */
#ifndef SX_BASE_NAME_INDEX_H
#define SX_BASE_NAME_INDEX_H

#include <string.h>

#include "base/map.h"

enum { SX_NAME_SLOTS = 4096 }; /* several times as many as there are names */

typedef struct sx_name_index {
    const char *names[SX_NAME_SLOTS];
    const void *values[SX_NAME_SLOTS];
} sx_name_index;

/* The slot of the name, or the empty one where it belongs. */
static inline size_t sx_name_slot(const sx_name_index *index, const char *name)
{
    size_t at = (size_t)sx_hash64(name, strlen(name)) % SX_NAME_SLOTS;
    while (index->names[at] != NULL && strcmp(index->names[at], name) != 0) {
        at = (at + 1) % SX_NAME_SLOTS;
    }
    return at;
}

/* Of several entries with one name, the first counts. */
static inline void sx_name_index_add(sx_name_index *index, const char *name, const void *value)
{
    const size_t at = sx_name_slot(index, name);
    if (index->names[at] == NULL) {
        index->names[at] = name;
        index->values[at] = value;
    }
}

/* NULL if absent. */
static inline const void *sx_name_index_find(const sx_name_index *index, const char *name)
{
    return index->values[sx_name_slot(index, name)];
}

#endif
