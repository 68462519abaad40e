/* An arena: memory that is freed all at once (a graph, a request, a parsed file).
 *
 *   chunk -> chunk -> chunk        each twice as large as the one before, up to 1 MiB
 *
 * Objects are never freed individually. Not thread-safe. */
#ifndef SX_BASE_ARENA_H
#define SX_BASE_ARENA_H

#include <stddef.h>

#include <sextant/types.h>

#include "base/budget.h"

typedef struct sx_arena {
    struct sx_arena_chunk *chunks; /* newest first */
    size_t used_bytes;             /* allocated so far */
    size_t limit_bytes;            /* 0 = no limit */
    size_t first_bytes;            /* of the first chunk; 0 = 4 KiB; sx_arena_reset() sets it */
    sx_budget *budget;             /* charged for every chunk; NULL = none */
    size_t discarded_bytes;        /* of chunks, charged no more */
} sx_arena;

void sx_arena_init(sx_arena *arena, size_t limit_bytes);
void sx_arena_deinit(sx_arena *arena);
/* Frees all objects but keeps memory for as many: once a use fits into one chunk, the same use
 * after a reset allocates nothing. */
void sx_arena_reset(sx_arena *arena);
/* Gives the whole pages of a large object back to the system, and what was charged for them: nobody
 * reads or writes the object any more. */
void sx_arena_discard(sx_arena *arena, void *object, size_t bytes);
/* A place in an arena: what it allocates after that can be freed at once, if no one reads it. */
typedef struct sx_arena_mark {
    struct sx_arena_chunk *chunk, *next; /* the newest, and the one behind it */
    size_t chunk_used, used_bytes;
} sx_arena_mark;

sx_arena_mark sx_arena_mark_here(const sx_arena *arena);
void sx_arena_rewind(sx_arena *arena, const sx_arena_mark *mark);
size_t sx_arena_capacity(const sx_arena *arena); /* bytes that it has allocated */

/* Zeroed, aligned to 16 bytes; NULL if out of memory, over the limit, or the size overflows. */
void *sx_arena_alloc(sx_arena *arena, size_t count, size_t elem_bytes);
/* The same without zeros, for a large object that is written at once. */
void *sx_arena_alloc_unset(sx_arena *arena, size_t bytes);
char *sx_arena_strdup(sx_arena *arena, const char *text);
char *sx_arena_strndup(sx_arena *arena, const char *text, size_t length);
void *sx_arena_memdup(sx_arena *arena, const void *data, size_t size);
char *sx_arena_printf(sx_arena *arena, const char *format, ...) SX_PRINTF(2, 3);

#define sx_arena_new(arena, type) ((type *)sx_arena_alloc((arena), 1, sizeof(type)))
#define sx_arena_array(arena, count, type) \
    ((type *)sx_arena_alloc((arena), (size_t)(count), sizeof(type)))

#endif
