/* See shared.h. */
#include "backends/cpu/shared.h"

#include <pthread.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "io/crc32c.h"

struct sx_cpu_shared {
    pthread_mutex_t mutex;
    sx_cpu_block *blocks;
};

sx_status sx_cpu_shared_create(sx_cpu_shared **out)
{
    sx_cpu_shared *shared = sx_alloc(1, sizeof(*shared));
    if (shared == NULL) {
        return sx_no_memory("for the platform");
    }
    pthread_mutex_init(&shared->mutex, NULL);
    *out = shared;
    return SX_OK;
}

void sx_cpu_shared_destroy(sx_cpu_shared *shared)
{
    if (shared != NULL) {
        pthread_mutex_destroy(&shared->mutex);
        sx_free(shared);
    }
}

enum {
    PIECES = 16,
    PIECE = 64,       /* bytes */
    MAX_COMPARED = 4, /* blocks in full: contents may be made to have equal hashes */
};

/* Of pieces of the contents: most of those that differ, differ in them. */
static uint32_t hash_of(const char *data, int64_t bytes)
{
    uint32_t hash = 0;
    for (int i = 0; i < PIECES; i++) {
        const int64_t at = bytes > PIECE ? (bytes - PIECE) / (PIECES - 1) * i : 0;
        hash = sx_crc32c(hash, data + at, (size_t)SX_MIN(bytes, (int64_t)PIECE));
    }
    return hash;
}

sx_status sx_cpu_block_get(sx_cpu_shared *shared, char *data, int64_t bytes, sx_budget *memory,
                           sx_cpu_block **out)
{
    sx_cpu_block *made = sx_alloc(1, sizeof(*made));
    if (made == NULL) {
        sx_free_aligned(data);
        return sx_no_memory("for a program's constants");
    }
    *made = (sx_cpu_block){.data = data,
                           .bytes = bytes,
                           .owner = shared,
                           .memory = memory,
                           .hash = hash_of(data, bytes),
                           .refs = 1};
    pthread_mutex_lock(&shared->mutex);
    sx_cpu_block *b = NULL;
    int compared = 0;
    for (sx_cpu_block *at = shared->blocks; at != NULL && b == NULL && compared < MAX_COMPARED;
         at = at->next) {
        if (at->hash == made->hash && at->bytes == bytes && at->memory == memory) {
            b = memcmp(at->data, data, (size_t)bytes) == 0 ? at : NULL;
            compared++;
        }
    }
    if (b != NULL) {
        b->refs++;
    } else {
        made->next = shared->blocks;
        shared->blocks = made;
    }
    pthread_mutex_unlock(&shared->mutex);
    if (b != NULL) {
        sx_free_aligned(data);
        sx_budget_release(memory, (size_t)bytes);
        sx_free(made);
    }
    *out = b != NULL ? b : made;
    return SX_OK;
}

void sx_cpu_block_release(sx_cpu_block *block)
{
    if (block == NULL) {
        return;
    }
    sx_cpu_shared *shared = block->owner;
    pthread_mutex_lock(&shared->mutex);
    const bool unused = --block->refs == 0;
    for (sx_cpu_block **at = &shared->blocks; unused && *at != NULL;) {
        if (*at == block) {
            *at = block->next;
            break;
        }
        at = &(*at)->next;
    }
    pthread_mutex_unlock(&shared->mutex);
    if (unused) {
        sx_budget_release(block->memory, (size_t)block->bytes);
        sx_free_aligned(block->data);
        sx_free(block);
    }
}
