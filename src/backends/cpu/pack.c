/* See pack.h. */
#include "backends/cpu/pack.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"

/* ---- The most that is alive ---- */

static int steps_of(const sx_cpu_life *lives, int n)
{
    int last = -1;
    for (int i = 0; i < n; i++) {
        last = SX_MAX(last, lives[i].last);
    }
    return last + 1;
}

/* alive[step]: the bytes. */
static int64_t *bytes_alive(const sx_cpu_life *lives, int n, int n_steps, sx_arena *scratch)
{
    int64_t *alive = sx_arena_array(scratch, n_steps + 1, int64_t);
    for (int i = 0; i < n && alive != NULL; i++) {
        alive[lives[i].first] += lives[i].bytes;
        alive[lives[i].last + 1] -= lives[i].bytes;
    }
    for (int s = 1; s <= n_steps && alive != NULL; s++) {
        alive[s] += alive[s - 1];
    }
    return alive;
}

sx_status sx_cpu_most_alive(const sx_cpu_life *lives, int n, sx_arena *scratch, int64_t *out_bytes,
                            int *out_step)
{
    const int n_steps = steps_of(lives, n);
    const int64_t *alive = bytes_alive(lives, n, n_steps, scratch);
    int at = 0;
    if (alive == NULL) {
        return sx_no_memory("to place a program's values");
    }
    for (int s = 1; s < n_steps; s++) {
        at = alive[s] > alive[at] ? s : at;
    }
    *out_bytes = alive[at];
    if (out_step != NULL) {
        *out_step = at;
    }
    return SX_OK;
}

/* ---- Orders ---- */

typedef struct item {
    int life;
    int64_t key;  /* greatest first, */
    int64_t then; /* and of equal ones the greatest of these */
} item;

static int by_key(const void *a, const void *b)
{
    const item *x = a, *y = b;
    if (x->key != y->key) {
        return x->key > y->key ? -1 : 1;
    }
    if (x->then != y->then) {
        return x->then > y->then ? -1 : 1;
    }
    return (x->life > y->life) - (x->life < y->life);
}

typedef struct packing {
    sx_cpu_life *lives; /* [n], then those that are fixed */
    int n, n_steps;
    const int *fixed; /* [n_fixed] by offset */
    int n_fixed;
    int64_t fixed_end;
    const int64_t *alive; /* [n_steps] */
    item *items;          /* [n] the order */
    int *placed;          /* [n + n_fixed] by offset */
    int64_t *offsets;     /* [n] of the best so far */
    int64_t best;
} packing;

typedef item order_fn(const packing *p, int i);

/* The largest first, as TensorFlow Lite plans its arena. */
static item by_size(const packing *p, int i)
{
    return (item){i, p->lives[i].bytes, -p->lives[i].first};
}

/* Those of the fullest step first. */
static item by_fullness(const packing *p, int i)
{
    const sx_cpu_life *l = &p->lives[i];
    int64_t most = 0;
    for (int s = l->first; s <= l->last; s++) {
        most = SX_MAX(most, p->alive[s]);
    }
    return (item){i, most, l->bytes};
}

/* In the order in which they begin to live, and from the last step back. */
static item by_birth(const packing *p, int i)
{
    return (item){i, -p->lives[i].first, p->lives[i].bytes};
}
static item by_death(const packing *p, int i)
{
    return (item){i, p->lives[i].last, p->lives[i].bytes};
}

static void sort(packing *p, order_fn *order)
{
    for (int i = 0; i < p->n; i++) {
        p->items[i] = order(p, i);
    }
    qsort(p->items, (size_t)p->n, sizeof(*p->items), by_key);
}

/* ---- Placing in an order ---- */

/* Walks the gaps that are free while a block lives, from the bottom. */
typedef struct gap {
    int64_t begin, end;
    int below, above; /* the lives beside it; -1: the bottom, the top */
    int next;         /* in placed[] */
} gap;

static bool next_gap(const packing *p, const sx_cpu_life *l, int n_placed, int64_t top, gap *g)
{
    int64_t begin = g->end;
    g->below = g->above;
    if (g->below >= 0) {
        begin = p->lives[g->below].offset + p->lives[g->below].bytes;
    }
    for (; g->next < n_placed; g->next++) {
        const int other = p->placed[g->next];
        const sx_cpu_life *o = &p->lives[other];
        if (o->first > l->last || l->first > o->last || o->offset + o->bytes <= begin) {
            continue;
        }
        if (o->offset > begin) {
            *g = (gap){begin, o->offset, g->below, other, g->next + 1};
            return true;
        }
        begin = o->offset + o->bytes;
        g->below = other;
    }
    *g = (gap){begin, top, g->below, -1, n_placed + 1};
    return begin < top;
}

/* In the lowest gap that is large enough. */
static int64_t lowest(const packing *p, const sx_cpu_life *l, int n_placed, int64_t top)
{
    gap g = {.below = -1, .above = -1};
    while (g.next <= n_placed && next_gap(p, l, n_placed, top, &g)) {
        if (g.end - g.begin >= l->bytes) {
            return g.begin;
        }
    }
    return -1;
}

/* How much longer or shorter the neighbour lives; the bottom and the top live for ever. */
static int64_t unlike(const packing *p, const sx_cpu_life *l, int neighbour)
{
    return neighbour < 0 ? INT32_MAX : llabs((long long)p->lives[neighbour].last - l->last);
}

/* In the smallest gap, at that end of it where the neighbour lives longest: so the values of a
 * chain lie in turn at the bottom and at the top, and what is between them stays in one piece. */
static int64_t at_the_ends(const packing *p, const sx_cpu_life *l, int n_placed, int64_t top)
{
    gap g = {.below = -1, .above = -1};
    int64_t at = -1, smallest = INT64_MAX, most = 0;
    while (g.next <= n_placed && next_gap(p, l, n_placed, top, &g)) {
        const int64_t room = g.end - g.begin;
        const int64_t low = unlike(p, l, g.below), high = unlike(p, l, g.above);
        const int64_t more = SX_MAX(low, high);
        if (room >= l->bytes && (room < smallest || (room == smallest && more > most))) {
            at = low >= high ? g.begin : g.end - l->bytes;
            smallest = room;
            most = more;
        }
    }
    return at;
}

typedef int64_t fit_fn(const packing *p, const sx_cpu_life *l, int n_placed, int64_t top);

/* Keeps the places if all blocks end at `top` or below. */
static void try_place(packing *p, fit_fn *fit, int64_t top)
{
    int64_t end = p->fixed_end;
    for (int i = 0; i < p->n_fixed; i++) {
        p->placed[i] = p->fixed[i];
    }
    for (int i = 0; i < p->n; i++) {
        const int n_placed = p->n_fixed + i;
        const int life = p->items[i].life;
        sx_cpu_life *l = &p->lives[life];
        l->offset = fit(p, l, n_placed, top);
        if (l->offset < 0) {
            return;
        }
        end = SX_MAX(end, l->offset + l->bytes);
        int j = n_placed;
        for (; j > 0 && p->lives[p->placed[j - 1]].offset > l->offset; j--) {
            p->placed[j] = p->placed[j - 1];
        }
        p->placed[j] = life;
    }
    p->best = end;
    for (int i = 0; i < p->n; i++) {
        p->offsets[i] = p->lives[i].offset;
    }
}

/* ---- Main ---- */

enum {
    ALIGN = 64,
    /* A plan of very many blocks takes the first order: each takes time that grows with their
     * number's square. */
    MANY = 4000,
};

/* Orders from the bottom; then, where they leave gaps, from both ends of an arena that is a little
 * larger than the least. */
static void try_all(packing *p, int64_t least)
{
    static order_fn *const from_bottom[] = {by_size, by_fullness};
    static order_fn *const from_ends[] = {by_birth, by_death, by_size};
    static const double more[] = {0, 0.01, 0.02, 0.04};
    for (size_t k = 0; k < SX_COUNT(from_bottom) && p->best > least; k++) {
        sort(p, from_bottom[k]);
        try_place(p, lowest, p->best - 1);
        if (p->n + p->n_fixed > MANY) {
            return;
        }
    }
    for (size_t m = 0; m < SX_COUNT(more); m++) {
        const int64_t top = least + (int64_t)(more[m] * (double)least) / ALIGN * ALIGN;
        for (size_t k = 0; k < SX_COUNT(from_ends) && p->best > top; k++) {
            sort(p, from_ends[k]);
            try_place(p, at_the_ends, top);
        }
    }
}

static int by_offset(const void *a, const void *b)
{
    const item *x = a, *y = b;
    if (x->key != y->key) {
        return x->key < y->key ? -1 : 1;
    }
    return (x->life > y->life) - (x->life < y->life);
}

static sx_status sort_fixed(packing *p, sx_arena *scratch)
{
    item *items = sx_arena_array(scratch, p->n_fixed + 1, item);
    int *fixed = sx_arena_array(scratch, p->n_fixed + 1, int);
    if (items == NULL || fixed == NULL) {
        return sx_no_memory("to place a program's values");
    }
    for (int i = 0; i < p->n_fixed; i++) {
        const sx_cpu_life *l = &p->lives[p->n + i];
        items[i] = (item){.life = p->n + i, .key = l->offset};
        p->fixed_end = SX_MAX(p->fixed_end, l->offset + l->bytes);
    }
    qsort(items, (size_t)p->n_fixed, sizeof(*items), by_offset);
    for (int i = 0; i < p->n_fixed; i++) {
        fixed[i] = items[i].life;
    }
    p->fixed = fixed;
    return SX_OK;
}

sx_status sx_cpu_pack_lives(sx_cpu_life *lives, int n, int n_fixed, sx_arena *scratch,
                            int64_t *out_bytes)
{
    const int all = n + n_fixed;
    packing p = {.lives = lives, .n = n, .n_fixed = n_fixed, .best = INT64_MAX};
    int64_t least = 0;
    SX_TRY(sort_fixed(&p, scratch));
    *out_bytes = p.fixed_end;
    if (n == 0) {
        return SX_OK;
    }
    SX_TRY(sx_cpu_most_alive(lives, all, scratch, &least, NULL));
    p.n_steps = steps_of(lives, all);
    p.alive = bytes_alive(lives, all, p.n_steps, scratch);
    p.items = sx_arena_array(scratch, n, item);
    p.placed = sx_arena_array(scratch, all, int);
    p.offsets = sx_arena_array(scratch, n, int64_t);
    if (p.alive == NULL || p.items == NULL || p.placed == NULL || p.offsets == NULL) {
        return sx_no_memory("to place a program's values");
    }
    try_all(&p, SX_MAX(least, p.fixed_end));
    for (int i = 0; i < n; i++) {
        lives[i].offset = p.offsets[i];
    }
    *out_bytes = p.best;
    return SX_OK;
}
