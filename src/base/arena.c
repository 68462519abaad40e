/* Arena chunks.
 *
 *   arena.chunks -> [ head | used .......... free ....... ] -> [ head | full ] -> NULL
 *                     newest, the one being filled
 *
 * An object larger than the next chunk gets its own chunk, linked behind the newest, so that the
 * free space of the newest is not lost; so does an object if the budget has no room for a larger
 * chunk. Chunks are allocated zeroed, and sx_arena_reset() zeroes what was used, so objects are
 * zeroed too. */
#include "base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/ram.h"

enum {
    FIRST_CHUNK_BYTES = 4 * 1024,
    MAX_CHUNK_BYTES = 1024 * 1024,
    UNSET_BYTES = 16 * 1024, /* smaller objects are zeroed in any case */
    OBJECT_ALIGN = 16,
};

struct sx_arena_chunk {
    struct sx_arena_chunk *next;
    size_t capacity; /* of data */
    size_t used;
    alignas(OBJECT_ALIGN) char data[];
};

void sx_arena_init(sx_arena *arena, size_t limit_bytes)
{
    *arena = (sx_arena){.limit_bytes = limit_bytes};
}

void sx_arena_deinit(sx_arena *arena)
{
    sx_budget_release(arena->budget, sx_arena_capacity(arena) - arena->discarded_bytes);
    for (struct sx_arena_chunk *chunk = arena->chunks, *next; chunk != NULL; chunk = next) {
        next = chunk->next;
        sx_free(chunk);
    }
    *arena = (sx_arena){.limit_bytes = arena->limit_bytes,
                        .first_bytes = arena->first_bytes,
                        .budget = arena->budget};
}

/* One chunk is kept. Several are replaced by one that is as large, at the next allocation. */
void sx_arena_reset(sx_arena *arena)
{
    struct sx_arena_chunk *only = arena->chunks;
    if (only != NULL && only->next == NULL && arena->discarded_bytes == 0) {
        memset(only->data, 0, only->used);
        only->used = 0;
        arena->used_bytes = 0;
    } else if (only != NULL) {
        const size_t used = arena->used_bytes;
        sx_arena_deinit(arena);
        arena->first_bytes = used;
    }
}

sx_arena_mark sx_arena_mark_here(const sx_arena *arena)
{
    struct sx_arena_chunk *newest = arena->chunks;
    return (sx_arena_mark){.chunk = newest,
                           .next = newest != NULL ? newest->next : NULL,
                           .chunk_used = newest != NULL ? newest->used : 0,
                           .used_bytes = arena->used_bytes};
}

/* Frees the chunks from *first on up to `end`, which takes their place. */
static void free_chunks(sx_arena *arena, struct sx_arena_chunk **first,
                        const struct sx_arena_chunk *end)
{
    struct sx_arena_chunk *chunk = *first;
    while (chunk != end) {
        struct sx_arena_chunk *next = chunk->next;
        sx_budget_release(arena->budget, sizeof(*chunk) + chunk->capacity);
        sx_free(chunk);
        chunk = next;
    }
    *first = chunk;
}

void sx_arena_rewind(sx_arena *arena, const sx_arena_mark *mark)
{
    free_chunks(arena, &arena->chunks, mark->chunk);
    if (mark->chunk != NULL) { /* large objects got chunks behind the newest of their time */
        free_chunks(arena, &mark->chunk->next, mark->next);
        memset(mark->chunk->data + mark->chunk_used, 0, mark->chunk->used - mark->chunk_used);
        mark->chunk->used = mark->chunk_used;
    }
    arena->used_bytes = mark->used_bytes;
}

void sx_arena_discard(sx_arena *arena, void *object, size_t bytes)
{
    const size_t discarded = sx_ram_discard(object, bytes);
    arena->discarded_bytes += discarded;
    sx_budget_release(arena->budget, discarded);
}

size_t sx_arena_capacity(const sx_arena *arena)
{
    size_t bytes = 0;
    for (const struct sx_arena_chunk *c = arena->chunks; c != NULL; c = c->next) {
        bytes += sizeof(*c) + c->capacity;
    }
    return bytes;
}

/* Adds a chunk with at least `bytes` free to the arena, or just these, not zeroed, if `unset`; NULL
 * if out of memory or budget. */
static struct sx_arena_chunk *add_chunk(sx_arena *arena, size_t bytes, bool unset)
{
    struct sx_arena_chunk *newest = arena->chunks;
    const size_t first = arena->first_bytes > 0 ? arena->first_bytes : (size_t)FIRST_CHUNK_BYTES;
    size_t capacity = unset            ? bytes
                      : newest == NULL ? first
                                       : SX_MIN(newest->capacity * 2, (size_t)MAX_CHUNK_BYTES);
    size_t size;
    if (!sx_add_size(SX_MAX(capacity, bytes), sizeof(struct sx_arena_chunk), &size)) {
        return NULL;
    }
    if (!sx_budget_charge(arena->budget, size)) {
        size = sizeof(struct sx_arena_chunk) + bytes; /* the object alone may still fit */
        if (!sx_budget_charge(arena->budget, size)) {
            return NULL;
        }
    }
    struct sx_arena_chunk *chunk = unset ? sx_realloc(NULL, size, 1) : sx_alloc(size, 1);
    if (chunk == NULL) {
        sx_budget_release(arena->budget, size);
        return NULL;
    }
    chunk->used = 0;
    chunk->capacity = size - sizeof(*chunk);
    if (newest != NULL && chunk->capacity == bytes) {
        chunk->next = newest->next;
        newest->next = chunk;
    } else {
        chunk->next = newest;
        arena->chunks = chunk;
    }
    return chunk;
}

static void *alloc_bytes(sx_arena *arena, size_t bytes, bool unset)
{
    size_t used;
    if (bytes > SIZE_MAX / 2) {
        return NULL;
    }
    bytes = sx_align_up(SX_MAX(bytes, (size_t)1), OBJECT_ALIGN);
    if (!sx_add_size(arena->used_bytes, bytes, &used) ||
        (arena->limit_bytes != 0 && used > arena->limit_bytes)) {
        return NULL;
    }
    struct sx_arena_chunk *chunk = arena->chunks;
    if (unset || chunk == NULL || chunk->capacity - chunk->used < bytes) {
        chunk = add_chunk(arena, bytes, unset);
        if (chunk == NULL) {
            return NULL;
        }
    } else if (!sx_alloc_part()) {
        return NULL;
    }
    void *object = chunk->data + chunk->used;
    chunk->used += bytes;
    arena->used_bytes = used;
    return object;
}

void *sx_arena_alloc(sx_arena *arena, size_t count, size_t elem_bytes)
{
    size_t bytes;
    return sx_mul_size(count, elem_bytes, &bytes) ? alloc_bytes(arena, bytes, false) : NULL;
}

void *sx_arena_alloc_unset(sx_arena *arena, size_t bytes)
{
    return alloc_bytes(arena, bytes, bytes >= UNSET_BYTES);
}

char *sx_arena_strndup(sx_arena *arena, const char *text, size_t length)
{
    length = length > 0 ? strnlen(text, length) : 0; /* of no bytes, text may be NULL */
    char *copy = sx_arena_alloc(arena, length + 1, 1);
    return copy == NULL || length == 0 ? copy : memcpy(copy, text, length);
}

char *sx_arena_strdup(sx_arena *arena, const char *text)
{
    return sx_arena_strndup(arena, text, strlen(text));
}

void *sx_arena_memdup(sx_arena *arena, const void *data, size_t size)
{
    void *copy = sx_arena_alloc(arena, size, 1);
    if (copy != NULL && size != 0) {
        memcpy(copy, data, size);
    }
    return copy;
}

char *sx_arena_printf(sx_arena *arena, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    char *text = length < 0 ? NULL : sx_arena_alloc(arena, (size_t)length + 1, 1);
    if (text != NULL) {
        vsnprintf(text, (size_t)length + 1, format, again);
    }
    va_end(again);
    va_end(args);
    return text;
}
