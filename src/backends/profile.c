#include "backends/profile.h"

#include <stdlib.h>

#include "base/memory.h"

struct sx_profile {
    pthread_mutex_t mutex;
    sx_arena arena;
    sx_kernel_time *rows;
    int n, max;
};

sx_status sx_profile_create(sx_profile **out)
{
    sx_profile *p = sx_alloc(1, sizeof(*p));
    if (p == NULL) {
        return sx_no_memory("for a profile");
    }
    pthread_mutex_init(&p->mutex, NULL);
    sx_arena_init(&p->arena, 0);
    *out = p;
    return SX_OK;
}

void sx_profile_destroy(sx_profile *p)
{
    if (p == NULL) {
        return;
    }
    pthread_mutex_destroy(&p->mutex);
    sx_arena_deinit(&p->arena);
    sx_free(p->rows);
    sx_free(p);
}

void sx_profile_add(sx_profile *p, const sx_kernel_time *row)
{
    pthread_mutex_lock(&p->mutex);
    if (p->n == p->max) {
        sx_kernel_time *more = sx_realloc(p->rows, (size_t)p->max * 2 + 64, sizeof(*more));
        p->max = more != NULL ? 2 * p->max + 64 : p->max;
        p->rows = more != NULL ? more : p->rows;
    }
    char *kernel = sx_arena_printf(&p->arena, "%s", row->kernel);
    char *node = sx_arena_printf(&p->arena, "%s", row->node);
    if (p->n < p->max && kernel != NULL && node != NULL) {
        p->rows[p->n] = *row;
        p->rows[p->n].kernel = kernel;
        p->rows[p->n++].node = node;
    }
    pthread_mutex_unlock(&p->mutex);
}

static int by_time(const void *a, const void *b)
{
    const sx_kernel_time *x = a, *y = b;
    return (y->total_ns > x->total_ns) - (y->total_ns < x->total_ns);
}

const sx_kernel_time *sx_profile_rows(sx_profile *p, int *out_count)
{
    pthread_mutex_lock(&p->mutex);
    if (p->n > 0) {
        qsort(p->rows, (size_t)p->n, sizeof(*p->rows), by_time);
    }
    *out_count = p->n;
    pthread_mutex_unlock(&p->mutex);
    return p->rows;
}
