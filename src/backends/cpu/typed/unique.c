/* unique of the elements of a vector, in one pass: a table of those that are known, which doubles
 * when it is half full, so that a few different ones stay in the first-level cache. */
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/typed/keys.h"
#include "base/checked.h"
#include "base/memory.h"
#include "graph/ops/attrs.h"

enum { CHUNK = 256, MOST_PROBES = 8 /* of an element on average */ };

typedef struct found {
    int64_t count;
    int32_t *id;    /* [n]: which of the different elements each is */
    int32_t *first; /* [count]: where each of those comes first */
} found;

typedef struct slot {
    uint64_t key;
    int32_t id; /* from 1 on; 0 = free */
} slot;

static bool takes(const void *attrs, const sx_tensor *in)
{
    const sx_type *x = &in[0].type;
    return !((const sx_unique_attrs *)attrs)->slices && sx_type_elems(x) <= INT32_MAX &&
           sx_carrier_of(x->dtype) != SX_CARRIER_NONE && x->dtype != SX_STRING;
}

/* The table with twice as many slots; NULL: no memory. */
static slot *doubled(sx_arena *arena, const slot *old, uint64_t size)
{
    slot *slots = sx_arena_array(arena, (int64_t)(2 * size), slot);
    for (uint64_t k = 0; slots != NULL && k < size; k++) {
        uint64_t at = sx_typed_place_of(old[k].key) & (2 * size - 1);
        while (old[k].id != 0 && slots[at].id != 0) {
            at = (at + 1) & (2 * size - 1);
        }
        if (old[k].id != 0) {
            slots[at] = old[k];
        }
    }
    return slots;
}

typedef struct element {
    uint64_t key;
    int32_t place;
} element;

static int compare_elements(const void *a, const void *b)
{
    const element *x = a, *y = b;
    return x->key != y->key ? (x->key < y->key ? -1 : 1) : x->place < y->place ? -1 : 1;
}

/* The same by sorting: for elements that were chosen to be in one another's way in the table. */
static sx_status find_by_order(sx_arena *arena, const sx_tensor *x, int64_t n, found *f)
{
    element *order = sx_arena_array(arena, n + 1, element);
    if (order == NULL) {
        return sx_budget_error(arena->budget);
    }
    for (int64_t k = 0; k < n; k++) {
        order[k].place = (int32_t)k;
        sx_typed_keys_of(x, k, 1, &order[k].key);
    }
    qsort(order, (size_t)n, sizeof(*order), compare_elements);
    for (int64_t k = 0; k < n; k++) { /* the first place of equals */
        const bool same = k > 0 && order[k].key == order[k - 1].key;
        f->id[order[k].place] = same ? f->id[order[k - 1].place] : order[k].place;
    }
    f->count = 0;
    for (int64_t k = 0; k < n; k++) {
        const int32_t first = f->id[k];
        if (first == k) {
            f->first[f->count] = (int32_t)k;
        }
        f->id[k] = first == k ? (int32_t)f->count++ : f->id[first];
    }
    return SX_OK;
}

static sx_status find(sx_arena *arena, const sx_tensor *x, int64_t n, found *f)
{
    uint64_t size = 1024, keys[CHUNK];
    int64_t probes = 0;
    slot *slots = sx_arena_array(arena, (int64_t)size, slot);
    f->id = sx_arena_array(arena, n + 1, int32_t);
    f->first = sx_arena_array(arena, n + 1, int32_t);
    if (slots == NULL || f->id == NULL || f->first == NULL) {
        return sx_budget_error(arena->budget);
    }
    for (int64_t k = 0; k < n; k++) {
        if (k % CHUNK == 0) {
            sx_typed_keys_of(x, k, SX_MIN(n - k, (int64_t)CHUNK), keys);
        }
        const uint64_t key = keys[k % CHUNK];
        uint64_t at = sx_typed_place_of(key) & (size - 1);
        while (slots[at].id != 0 && slots[at].key != key) {
            at = (at + 1) & (size - 1);
            if (++probes > MOST_PROBES * n) {
                return find_by_order(arena, x, n, f);
            }
        }
        if (slots[at].id == 0) {
            f->first[f->count++] = (int32_t)k;
            slots[at] = (slot){key, (int32_t)f->count};
        }
        f->id[k] = slots[at].id - 1;
        if ((uint64_t)f->count * 2 > size) {
            slots = doubled(arena, slots, size);
            size *= 2;
            if (slots == NULL) {
                return sx_budget_error(arena->budget);
            }
        }
    }
    return SX_OK;
}

static sx_status types(sx_typed_call *c, sx_type *out_types)
{
    const sx_unique_attrs *attrs = c->attrs;
    const int64_t n = sx_type_elems(&c->in[0].type);
    found *f = sx_arena_new(c->context->arena, found);
    if (f == NULL) {
        return sx_budget_error(c->context->arena->budget);
    }
    SX_TRY(find(c->context->arena, &c->in[0], n, f));
    c->found = f;
    out_types[0] = sx_type_of(c->in[0].type.dtype, f->count);
    out_types[1] = sx_type_of(attrs->out_idx, n);
    out_types[2] = sx_type_of(attrs->out_idx, f->count);
    return SX_OK;
}

static sx_status run(const sx_typed_call *c)
{
    const found *f = c->found;
    const int64_t n = sx_type_elems(&c->in[0].type);
    sx_typed_gather(c->in[0].data, f->first, f->count, sx_dtype_bytes(c->in[0].type.dtype),
                    c->out[0].data);
#define INDICES(type)                                          \
    {                                                          \
        type *index = c->out[1].data, *count = c->out[2].data; \
        memset(count, 0, (size_t)f->count * sizeof(*count));   \
        for (int64_t k = 0; k < n; k++) {                      \
            index[k] = f->id[k];                               \
            count[f->id[k]]++;                                 \
        }                                                      \
    }
    if (c->out[1].type.dtype == SX_I32) {
        INDICES(int32_t)
    } else {
        INDICES(int64_t)
    }
#undef INDICES
    return SX_OK;
}

const sx_typed_kernel sx_typed_unique = {
    .op = SX_OPID_unique, .takes = takes, .types = types, .run = run};
