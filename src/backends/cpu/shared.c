/* See shared.h. */
#include "backends/cpu/shared.h"

#include <pthread.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "io/crc32c.h"

/* What blocks of one or several budgets hold. */
typedef struct sx_cpu_contents {
    char *data;
    int64_t bytes;
    uint32_t hash;
    sx_cpu_block *blocks; /* one for each budget */
    struct sx_cpu_contents *next;
} sx_cpu_contents;

static struct {
    pthread_mutex_t mutex;
    sx_cpu_contents *first;
} all = {.mutex = PTHREAD_MUTEX_INITIALIZER};

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

/* With the mutex held; NULL: there are none like these. */
static sx_cpu_contents *find(const sx_cpu_contents *like)
{
    int compared = 0;
    for (sx_cpu_contents *at = all.first; at != NULL && compared < MAX_COMPARED; at = at->next) {
        if (at->hash == like->hash && at->bytes == like->bytes) {
            if (memcmp(at->data, like->data, (size_t)like->bytes) == 0) {
                return at;
            }
            compared++;
        }
    }
    return NULL;
}

sx_status sx_cpu_block_get(char *data, int64_t bytes, sx_budget *memory, sx_cpu_block **out)
{
    sx_cpu_block *block = sx_alloc(1, sizeof(*block));
    sx_cpu_contents *made = sx_alloc(1, sizeof(*made));
    if (block == NULL || made == NULL) {
        sx_free(block);
        sx_free(made);
        sx_free_aligned(data);
        return sx_no_memory("for a program's constants");
    }
    *made = (sx_cpu_contents){.data = data, .bytes = bytes, .hash = hash_of(data, bytes)};
    pthread_mutex_lock(&all.mutex);
    sx_cpu_contents *contents = find(made);
    const bool found = contents != NULL;
    if (!found) {
        contents = made;
        contents->next = all.first;
        all.first = contents;
    }
    sx_cpu_block *own = contents->blocks;
    while (own != NULL && own->memory != memory) {
        own = own->next;
    }
    const bool had = own != NULL;
    if (!had) {
        *block = (sx_cpu_block){.data = contents->data,
                                .bytes = bytes,
                                .contents = contents,
                                .next = contents->blocks,
                                .memory = memory};
        contents->blocks = own = block;
    }
    own->refs++;
    pthread_mutex_unlock(&all.mutex);
    if (found) {
        sx_free_aligned(data);
        sx_free(made);
    }
    if (had) {
        sx_budget_release(memory, (size_t)bytes);
        sx_free(block);
    }
    *out = own;
    return SX_OK;
}

/* With the mutex held: takes the contents off the list if no block has them; else NULL. */
static sx_cpu_contents *take_unused(sx_cpu_contents *contents)
{
    if (contents->blocks != NULL) {
        return NULL;
    }
    sx_cpu_contents **at = &all.first;
    while (*at != contents) {
        at = &(*at)->next;
    }
    *at = contents->next;
    return contents;
}

void sx_cpu_block_release(sx_cpu_block *block)
{
    if (block == NULL) {
        return;
    }
    sx_cpu_contents *unused = NULL;
    pthread_mutex_lock(&all.mutex);
    const bool last = --block->refs == 0;
    if (last) {
        sx_cpu_block **at = &block->contents->blocks;
        while (*at != block) {
            at = &(*at)->next;
        }
        *at = block->next;
        unused = take_unused(block->contents);
    }
    pthread_mutex_unlock(&all.mutex);
    if (unused != NULL) {
        sx_free_aligned(unused->data);
        sx_free(unused);
    }
    if (last) {
        sx_budget_release(block->memory, (size_t)block->bytes);
        sx_free(block);
    }
}
