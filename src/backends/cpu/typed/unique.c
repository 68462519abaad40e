/* unique of the elements of a vector, in one pass: a table of those that are known, which doubles
 * when it is half full, so that a few different ones stay in the first-level cache. */
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/typed/typed.h"
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

/* Elements [first, first + n) as numbers that are equal where elements are: 0 for -0, and for a NaN
 * one of its own, a NaN's bits with its place. */
static void keys_of(const sx_tensor *t, int64_t first, int64_t n, uint64_t *keys)
{
#define WHOLE(type)                                    \
    {                                                  \
        const type *x = (const type *)t->data + first; \
        for (int64_t k = 0; k < n; k++) {              \
            keys[k] = (uint64_t)x[k];                  \
        }                                              \
        break;                                         \
    }
#define FLOATS(type, sign, infinity)                                                 \
    {                                                                                \
        const type *x = (const type *)t->data + first;                               \
        for (int64_t k = 0; k < n; k++) {                                            \
            const bool nan = (x[k] & ~(sign)) > (infinity);                          \
            const uint64_t number = x[k] == (sign) ? 0 : x[k];                       \
            keys[k] = nan ? UINT64_C(0x7ff8) << 48 | (uint64_t)(first + k) : number; \
        }                                                                            \
        break;                                                                       \
    }
    switch (t->type.dtype) {
    case SX_F32:
        FLOATS(uint32_t, 0x80000000U, 0x7f800000U)
    case SX_F64:
        FLOATS(uint64_t, UINT64_C(1) << 63, UINT64_C(0x7ff) << 52)
    case SX_F16:
        FLOATS(uint16_t, 0x8000U, 0x7c00U)
    case SX_BF16:
        FLOATS(uint16_t, 0x8000U, 0x7f80U)
    case SX_U64:
    case SX_I64:
        WHOLE(uint64_t)
    case SX_U32:
    case SX_I32:
        WHOLE(uint32_t)
    case SX_U16:
    case SX_I16:
        WHOLE(uint16_t)
    default: /* SX_U8, SX_I8, SX_BOOL */
        WHOLE(uint8_t)
    }
#undef WHOLE
#undef FLOATS
}

static inline uint64_t place_of(uint64_t key)
{
    const uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

/* The table with twice as many slots; NULL: no memory. */
static slot *doubled(sx_arena *arena, const slot *old, uint64_t size)
{
    slot *slots = sx_arena_array(arena, (int64_t)(2 * size), slot);
    for (uint64_t k = 0; slots != NULL && k < size; k++) {
        uint64_t at = place_of(old[k].key) & (2 * size - 1);
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
        keys_of(x, k, 1, &order[k].key);
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
            keys_of(x, k, SX_MIN(n - k, (int64_t)CHUNK), keys);
        }
        const uint64_t key = keys[k % CHUNK];
        uint64_t at = place_of(key) & (size - 1);
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

static void gather(const void *x, const int32_t *at, int64_t n, size_t bytes, void *y)
{
#define GATHER(type)                               \
    for (int64_t k = 0; k < n; k++) {              \
        ((type *)y)[k] = ((const type *)x)[at[k]]; \
    }
    switch (bytes) {
    case 1:
        GATHER(uint8_t)
        break;
    case 2:
        GATHER(uint16_t)
        break;
    case 4:
        GATHER(uint32_t)
        break;
    default:
        GATHER(uint64_t)
        break;
    }
#undef GATHER
}

static sx_status run(const sx_typed_call *c)
{
    const found *f = c->found;
    const int64_t n = sx_type_elems(&c->in[0].type);
    gather(c->in[0].data, f->first, f->count, sx_dtype_bytes(c->in[0].type.dtype), c->out[0].data);
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
