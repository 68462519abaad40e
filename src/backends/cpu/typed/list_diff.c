/* list_diff of numbers: a table of the elements of y, in which those of x are looked for. */
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/typed/keys.h"
#include "base/checked.h"
#include "base/memory.h"
#include "graph/ops/attrs.h"

enum { CHUNK = 256, MOST_PROBES = 8 /* of an element on average */ };
#define FREE UINT64_MAX /* a slot's key */

/* The elements of y, by place or, if elements were chosen to be in one another's way, in order. */
typedef struct known {
    const sx_tensor *elements;
    uint64_t *keys;
    uint64_t size; /* of the table, a power of 2; 0: in order */
    int64_t n;
    int64_t probes; /* so far */
    bool has_free;  /* FREE itself is an element */
} known;

typedef struct found {
    int64_t count;
    int32_t *at; /* [count]: the places of the elements that stay */
} found;

static bool takes(const void *attrs, const sx_tensor *in)
{
    const sx_type *x = &in[0].type;
    (void)attrs;
    return sx_type_elems(x) <= INT32_MAX && sx_type_elems(&in[1].type) <= INT32_MAX &&
           sx_carrier_of(x->dtype) != SX_CARRIER_NONE && x->dtype != SX_STRING;
}

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Whether the key is in the table; `place` is where it is, or could be. */
static bool look(known *y, uint64_t key, uint64_t *place)
{
    *place = sx_typed_place_of(key) & (y->size - 1);
    while (y->keys[*place] != FREE && y->keys[*place] != key) {
        *place = (*place + 1) & (y->size - 1);
        y->probes++;
    }
    return y->keys[*place] == key;
}

/* Puts the elements in order instead if `looks` for keys have taken too long. */
static void keep_fast(known *y, int64_t looks)
{
    if (y->size > 0 && y->probes > MOST_PROBES * looks + y->n) {
        y->size = 0;
        sx_typed_keys_of(y->elements, 0, y->n, y->keys);
        qsort(y->keys, (size_t)y->n, sizeof(*y->keys), compare);
    }
}

static sx_status list_keys(sx_arena *arena, const sx_tensor *t, known *y)
{
    uint64_t chunk[CHUNK], place;
    *y = (known){.elements = t, .size = 1024, .n = sx_type_elems(&t->type)};
    while (y->size < 2 * (uint64_t)y->n) {
        y->size *= 2;
    }
    y->keys = sx_arena_array(arena, (int64_t)y->size, uint64_t);
    if (y->keys == NULL) {
        return sx_budget_error(arena->budget);
    }
    memset(y->keys, 0xff, (size_t)y->size * sizeof(*y->keys));
    for (int64_t k = 0; k < y->n && y->size > 0; k++) {
        if (k % CHUNK == 0) {
            sx_typed_keys_of(t, k, SX_MIN(y->n - k, (int64_t)CHUNK), chunk);
        }
        const uint64_t key = chunk[k % CHUNK];
        if (key == FREE) {
            y->has_free = true;
        } else if (!look(y, key, &place)) {
            y->keys[place] = key;
        }
        keep_fast(y, k);
    }
    y->probes = 0;
    return SX_OK;
}

static bool is_known(known *y, uint64_t key)
{
    uint64_t place;
    if (y->size == 0) {
        return bsearch(&key, y->keys, (size_t)y->n, sizeof(key), compare) != NULL;
    }
    return key == FREE ? y->has_free : look(y, key, &place);
}

static sx_status types(sx_typed_call *c, sx_type *out_types)
{
    const sx_list_diff_attrs *attrs = c->attrs;
    const int64_t n = sx_type_elems(&c->in[0].type);
    const bool floats = sx_dtype_is_float(c->in[0].type.dtype);
    sx_arena *arena = c->context->arena;
    found *f = sx_arena_new(arena, found);
    uint64_t keys[CHUNK];
    known y;
    if (f == NULL || (f->at = sx_arena_array(arena, n + 1, int32_t)) == NULL) {
        return sx_budget_error(arena->budget);
    }
    SX_TRY(list_keys(arena, &c->in[1], &y));
    for (int64_t k = 0; k < n; k++) {
        if (k % CHUNK == 0) {
            sx_typed_keys_of(&c->in[0], k, SX_MIN(n - k, (int64_t)CHUNK), keys);
        }
        const uint64_t key = keys[k % CHUNK];
        keep_fast(&y, k);
        if ((floats && sx_typed_key_is_nan(key)) || !is_known(&y, key)) {
            f->at[f->count++] = (int32_t)k;
        }
    }
    c->found = f;
    out_types[0] = sx_type_of(c->in[0].type.dtype, f->count);
    out_types[1] = sx_type_of(attrs->out_idx, f->count);
    return SX_OK;
}

static sx_status run(const sx_typed_call *c)
{
    const found *f = c->found;
    sx_typed_gather(c->in[0].data, f->at, f->count, sx_dtype_bytes(c->in[0].type.dtype),
                    c->out[0].data);
    if (c->out[1].type.dtype == SX_I32) {
        memcpy(c->out[1].data, f->at, (size_t)f->count * sizeof(*f->at));
        return SX_OK;
    }
    for (int64_t k = 0; k < f->count; k++) {
        ((int64_t *)c->out[1].data)[k] = f->at[k];
    }
    return SX_OK;
}

const sx_typed_kernel sx_typed_list_diff = {
    .op = SX_OPID_list_diff, .takes = takes, .types = types, .run = run};
