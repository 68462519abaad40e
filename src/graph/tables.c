/* See tables.h. */
#include "graph/tables.h"

#include <string.h>

#include "base/checked.h"
#include "base/map.h"
#include "base/memory.h"
#include "graph/host.h"

enum { MIN_ENTRIES = 16 };

/* A number's bits, or a text's place in the table's bytes. */
typedef struct cell {
    uint64_t at; /* or the number */
    uint64_t size;
} cell;

struct sx_table {
    sx_table_attrs attrs;
    sx_budget *memory;
    bool initialized;
    int64_t value_elems;
    int64_t n, capacity; /* entries */
    cell *keys;          /* [capacity] */
    uint64_t *hashes;    /* [capacity], of the keys */
    cell *texts;         /* [capacity][value_elems] if values are strings, else NULL */
    uint64_t *numbers;   /* the same if they are not */
    uint32_t *slots;     /* [n_slots], a power of two: entry + 1, 0 = free; at most half is used */
    uint64_t n_slots;
    char *bytes; /* of all texts, those that were replaced included */
    size_t bytes_used, bytes_capacity, bytes_dead;
};

struct sx_tables {
    sx_arena arena;
    sx_budget *memory;
    const char *dir;
    sx_map by_name;
};

/* ---- All tables ---- */

sx_status sx_tables_create(sx_budget *memory, const char *dir, sx_tables **out)
{
    sx_tables *tables = sx_alloc(1, sizeof(*tables));
    if (tables == NULL) {
        return sx_no_memory("for lookup tables");
    }
    sx_arena_init(&tables->arena, 0);
    sx_map_init(&tables->by_name);
    tables->memory = memory;
    tables->dir = dir != NULL ? sx_arena_strdup(&tables->arena, dir) : NULL;
    if (dir != NULL && tables->dir == NULL) {
        sx_tables_destroy(tables);
        return sx_no_memory("for lookup tables");
    }
    *out = tables;
    return SX_OK;
}

static size_t entry_bytes(const sx_table *t)
{
    return sizeof(cell) + sizeof(uint64_t) +
           (size_t)t->value_elems *
               (t->attrs.values == SX_STRING ? sizeof(cell) : sizeof(uint64_t));
}

static void empty(sx_table *t)
{
    sx_budget_release(t->memory, (size_t)t->capacity * entry_bytes(t) +
                                     (size_t)t->n_slots * sizeof(*t->slots) + t->bytes_capacity);
    sx_free(t->keys);
    sx_free(t->hashes);
    sx_free(t->texts);
    sx_free(t->numbers);
    sx_free(t->slots);
    sx_free(t->bytes);
    *t = (sx_table){.attrs = t->attrs,
                    .memory = t->memory,
                    .initialized = t->initialized,
                    .value_elems = t->value_elems};
}

void sx_tables_destroy(sx_tables *tables)
{
    if (tables == NULL) {
        return;
    }
    for (size_t i = 0; i < tables->by_name.count; i++) {
        empty(tables->by_name.entries[i].value);
    }
    sx_map_deinit(&tables->by_name);
    sx_arena_deinit(&tables->arena);
    sx_free(tables);
}

static sx_status declare(sx_tables *tables, const sx_table_attrs *attrs)
{
    sx_table *t = sx_tables_find(tables, attrs->table);
    if (t != NULL) {
        const sx_table_attrs *old = &t->attrs;
        bool same = old->kind == attrs->kind && old->keys == attrs->keys &&
                    old->values == attrs->values && old->shape.n == attrs->shape.n;
        for (int d = 0; same && d < old->shape.n; d++) {
            same = old->shape.v[d] == attrs->shape.v[d];
        }
        return same ? SX_OK
                    : sx_error(SX_INVALID_ARGUMENT,
                               "table \"%.200s\" has keys of %s and values of %s in one place, "
                               "and %s and %s, or another kind or shape, in another",
                               old->table, sx_dtype_name(old->keys), sx_dtype_name(old->values),
                               sx_dtype_name(attrs->keys), sx_dtype_name(attrs->values));
    }
    t = sx_arena_new(&tables->arena, sx_table);
    if (t == NULL) {
        return sx_no_memory("for lookup tables");
    }
    t->attrs = *attrs;
    t->attrs.table = sx_arena_strdup(&tables->arena, attrs->table);
    t->memory = tables->memory;
    t->value_elems = 1;
    for (int d = 0; d < attrs->shape.n; d++) {
        if (!sx_mul_i64(t->value_elems, attrs->shape.v[d], &t->value_elems) ||
            t->value_elems > INT32_MAX) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "table \"%.200s\": a value has more than %d elements", attrs->table,
                            INT32_MAX);
        }
    }
    return t->attrs.table == NULL ? sx_no_memory("for lookup tables")
                                  : sx_map_put(&tables->by_name, attrs->table, t);
}

static sx_status declare_graph(sx_tables *tables, const sx_graph *g)
{
    for (int k = 0; k < g->n_nodes; k++) {
        const sx_node *n = &g->nodes[k];
        if ((n->op->flags & SX_OP_STATE) != 0) {
            SX_TRY(declare(tables, n->attrs), "%s \"%s\"", n->op->name, n->name);
        }
        for (int row = 0; row < n->op->n_attrs; row++) {
            if (n->op->attrs[row].kind == SX_ATTR_BODY) {
                SX_TRY(declare_graph(tables, sx_node_body(n, row)));
            }
        }
    }
    return SX_OK;
}

sx_status sx_tables_declare(sx_tables *tables, const sx_library *library)
{
    for (int i = 0; i < library->n_functions; i++) {
        SX_TRY(declare_graph(tables, library->functions[i].body));
    }
    return SX_OK;
}

int sx_tables_count(const sx_tables *tables)
{
    return (int)tables->by_name.count;
}

const char *sx_tables_dir(const sx_tables *tables)
{
    return tables->dir;
}

sx_table *sx_tables_find(const sx_tables *tables, const char *name)
{
    return tables == NULL || name == NULL ? NULL : sx_map_get(&tables->by_name, name);
}

/* ---- One table ---- */

const sx_table_attrs *sx_table_attrs_of(const sx_table *t)
{
    return &t->attrs;
}

int64_t sx_table_size(const sx_table *t)
{
    return t->n;
}

bool sx_table_is_initialized(const sx_table *t)
{
    return t->initialized || t->attrs.kind != SX_TABLE_STATIC;
}

void sx_table_set_initialized(sx_table *t)
{
    t->initialized = true;
}

static uint64_t number_of(const sx_host_tensor *x, int64_t k)
{
    switch (sx_carrier_of(x->type.dtype)) {
    case SX_CARRIER_B:
        return x->b[k];
    case SX_CARRIER_F: {
        const double value = x->f[k] == 0 ? 0 : x->f[k]; /* -0 is 0 */
        uint64_t bits;
        memcpy(&bits, &value, sizeof(bits));
        return bits;
    }
    default:
        return x->u[k];
    }
}

/* The finalizer of MurmurHash3. */
static uint64_t mix(uint64_t v)
{
    v = (v ^ v >> 33) * 0xff51afd7ed558ccd;
    v = (v ^ v >> 33) * 0xc4ceb9fe1a85ec53;
    return v ^ v >> 33;
}

static uint64_t hash_of(const sx_table *t, const sx_host_tensor *keys, int64_t k)
{
    return t->attrs.keys == SX_STRING ? mix(sx_hash64(keys->s[k].data, keys->s[k].size))
                                      : mix(number_of(keys, k));
}

static bool has_text(const sx_table *t, const cell *c, const sx_bytes *s)
{
    return c->size == s->size && (s->size == 0 || memcmp(t->bytes + c->at, s->data, s->size) == 0);
}

/* The slot of a key: the one that has it, or the free one where it belongs. */
static uint64_t slot_of(const sx_table *t, const sx_host_tensor *keys, int64_t k, uint64_t hash)
{
    for (uint64_t at = hash & (t->n_slots - 1);; at = (at + 1) & (t->n_slots - 1)) {
        if (t->slots[at] == 0) {
            return at;
        }
        const int64_t e = (int64_t)t->slots[at] - 1;
        const bool same = t->hashes[e] == hash &&
                          (t->attrs.keys == SX_STRING ? has_text(t, &t->keys[e], &keys->s[k])
                                                      : t->keys[e].at == number_of(keys, k));
        if (same) {
            return at;
        }
    }
}

int64_t sx_table_find(const sx_table *t, const sx_host_tensor *keys, int64_t k)
{
    return t->n == 0 ? -1 : (int64_t)t->slots[slot_of(t, keys, k, hash_of(t, keys, k))] - 1;
}

/* ---- Growing ---- */

/* Makes *block larger; what it had is kept, the budget has been charged. */
static bool extend(void *block, int64_t n, size_t each)
{
    void *old;
    memcpy(&old, block, sizeof(old));
    void *grown = sx_realloc(old, (size_t)n, each);
    if (grown != NULL) {
        memcpy(block, &grown, sizeof(grown));
    }
    return grown != NULL;
}

static sx_status over(const sx_table *t, size_t bytes)
{
    return sx_budget_over(t->memory, "a lookup table", bytes);
}

/* Room for one more entry. */
static sx_status make_room(sx_table *t)
{
    if (t->n < t->capacity) {
        return SX_OK;
    }
    const int64_t capacity = SX_MAX(MIN_ENTRIES, t->capacity * 2);
    const uint64_t n_slots = (uint64_t)capacity * 2;
    const size_t old_bytes = (size_t)t->capacity * entry_bytes(t) + t->n_slots * sizeof(*t->slots);
    size_t bytes;
    if (capacity > INT32_MAX || !sx_mul_size((size_t)capacity, entry_bytes(t), &bytes)) {
        return sx_error(SX_RESOURCE_EXHAUSTED,
                        "table \"%.200s\" has %lld entries and cannot have more", t->attrs.table,
                        (long long)t->n);
    }
    bytes += n_slots * sizeof(*t->slots);
    if (!sx_budget_charge(t->memory, bytes)) {
        return over(t, bytes);
    }
    uint32_t *slots = sx_alloc((size_t)n_slots, sizeof(*slots));
    const bool texts = t->attrs.values == SX_STRING;
    const int64_t elems = capacity * t->value_elems + 1;
    if (slots == NULL || !extend(&t->keys, capacity, sizeof(*t->keys)) ||
        !extend(&t->hashes, capacity, sizeof(*t->hashes)) ||
        !(texts ? extend(&t->texts, elems, sizeof(*t->texts))
                : extend(&t->numbers, elems, sizeof(*t->numbers)))) {
        sx_free(slots);
        sx_budget_release(t->memory, bytes);
        return sx_no_memory("for a lookup table");
    }
    sx_budget_release(t->memory, old_bytes);
    sx_free(t->slots);
    t->slots = slots;
    t->n_slots = n_slots;
    t->capacity = capacity;
    for (int64_t e = 0; e < t->n; e++) {
        uint64_t at = t->hashes[e] & (n_slots - 1);
        while (slots[at] != 0) {
            at = (at + 1) & (n_slots - 1);
        }
        slots[at] = (uint32_t)e + 1;
    }
    return SX_OK;
}

static void move_text(const sx_table *t, char *to, size_t *used, cell *c)
{
    if (c->size > 0) {
        memcpy(to + *used, t->bytes + c->at, (size_t)c->size);
    }
    c->at = *used;
    *used += (size_t)c->size;
}

/* Room for `more` bytes of texts; leaves out those that were replaced if they are half of all. */
static sx_status make_text_room(sx_table *t, size_t more)
{
    size_t needed;
    static const size_t most = (size_t)1 << 40;
    if (!sx_add_size(t->bytes_used, more, &needed) || needed > most) {
        return sx_error(SX_RESOURCE_EXHAUSTED,
                        "table \"%.200s\" has %zu bytes of text, and %zu more exceed %zu",
                        t->attrs.table, t->bytes_used, more, most);
    }
    if (needed <= t->bytes_capacity) {
        return SX_OK;
    }
    const bool compact = t->bytes_dead > t->bytes_used / 2;
    const size_t kept = t->bytes_used - (compact ? t->bytes_dead : 0);
    const size_t capacity = SX_MAX(kept + more, SX_MAX((size_t)256, kept * 2));
    if (!sx_budget_charge(t->memory, capacity)) {
        return over(t, capacity);
    }
    char *bytes = sx_alloc(capacity, 1);
    if (bytes == NULL) {
        sx_budget_release(t->memory, capacity);
        return sx_no_memory("for a lookup table");
    }
    size_t used = 0;
    for (int64_t e = 0; e < t->n && compact; e++) {
        if (t->attrs.keys == SX_STRING) {
            move_text(t, bytes, &used, &t->keys[e]);
        }
        for (int64_t j = 0; j < t->value_elems && t->texts != NULL; j++) {
            move_text(t, bytes, &used, &t->texts[e * t->value_elems + j]);
        }
    }
    if (!compact && t->bytes_used > 0) {
        memcpy(bytes, t->bytes, t->bytes_used);
    }
    sx_budget_release(t->memory, t->bytes_capacity);
    sx_free(t->bytes);
    t->bytes = bytes;
    t->bytes_capacity = capacity;
    t->bytes_used = compact ? used : t->bytes_used;
    t->bytes_dead = compact ? 0 : t->bytes_dead;
    return SX_OK;
}

/* There is room. */
static cell put_text(sx_table *t, const sx_bytes *s)
{
    const cell c = {t->bytes_used, s->size};
    if (s->size > 0) {
        memcpy(t->bytes + t->bytes_used, s->data, s->size);
    }
    t->bytes_used += s->size;
    return c;
}

bool sx_table_has_value(const sx_table *t, int64_t entry, const sx_host_tensor *values,
                        int64_t from)
{
    bool same = true;
    for (int64_t j = 0; j < t->value_elems && same; j++) {
        const int64_t at = entry * t->value_elems + j;
        same = t->texts != NULL ? has_text(t, &t->texts[at], &values->s[from + j])
                                : t->numbers[at] == number_of(values, from + j);
    }
    return same;
}

sx_status sx_table_put(sx_table *t, const sx_host_tensor *keys, int64_t k,
                       const sx_host_tensor *values, int64_t from)
{
    const bool text_keys = t->attrs.keys == SX_STRING, texts = t->attrs.values == SX_STRING;
    size_t more = text_keys ? keys->s[k].size : 0;
    for (int64_t j = 0; j < t->value_elems && texts; j++) {
        if (!sx_add_size(more, values->s[from + j].size, &more)) {
            return sx_error(SX_RESOURCE_EXHAUSTED, "a value's size overflows");
        }
    }
    SX_TRY(make_room(t));
    SX_TRY(make_text_room(t, more));
    const uint64_t hash = hash_of(t, keys, k), slot = slot_of(t, keys, k, hash);
    const bool is_new = t->slots[slot] == 0;
    const int64_t e = is_new ? t->n++ : (int64_t)t->slots[slot] - 1;
    if (is_new) {
        t->keys[e] = text_keys ? put_text(t, &keys->s[k]) : (cell){number_of(keys, k), 0};
        t->hashes[e] = hash;
        t->slots[slot] = (uint32_t)e + 1;
    }
    for (int64_t j = 0; j < t->value_elems; j++) {
        const int64_t at = e * t->value_elems + j;
        if (texts) {
            t->bytes_dead += is_new ? 0 : (size_t)t->texts[at].size;
            t->texts[at] = put_text(t, &values->s[from + j]);
        } else {
            t->numbers[at] = number_of(values, from + j);
        }
    }
    return SX_OK;
}

/* ---- Removing ---- */

void sx_table_remove(sx_table *t, const sx_host_tensor *keys, int64_t k)
{
    const int64_t e = sx_table_find(t, keys, k), last = t->n - 1, width = t->value_elems;
    if (e < 0) {
        return;
    }
    const uint64_t mask = t->n_slots - 1;
    uint64_t hole = slot_of(t, keys, k, t->hashes[e]), moved = t->hashes[last] & mask;
    while (t->slots[moved] != (uint32_t)last + 1) {
        moved = (moved + 1) & mask;
    }
    t->bytes_dead += t->attrs.keys == SX_STRING ? (size_t)t->keys[e].size : 0;
    for (int64_t j = 0; j < width && t->texts != NULL; j++) {
        t->bytes_dead += (size_t)t->texts[e * width + j].size;
    }
    /* the last entry takes the place of the removed one */
    t->slots[moved] = (uint32_t)e + 1;
    t->keys[e] = t->keys[last];
    t->hashes[e] = t->hashes[last];
    for (int64_t j = 0; j < width; j++) {
        if (t->texts != NULL) {
            t->texts[e * width + j] = t->texts[last * width + j];
        } else {
            t->numbers[e * width + j] = t->numbers[last * width + j];
        }
    }
    /* slots after the hole that belong at it or before it move up */
    for (uint64_t at = (hole + 1) & mask; t->slots[at] != 0; at = (at + 1) & mask) {
        const uint64_t home = t->hashes[t->slots[at] - 1] & mask;
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            t->slots[hole] = t->slots[at];
            hole = at;
        }
    }
    t->slots[hole] = 0;
    t->n--;
}

void sx_table_clear(sx_table *t)
{
    empty(t);
}

/* ---- Reading ---- */

static void get(const sx_table *t, const cell *text, uint64_t number, const sx_host_tensor *out,
                int64_t at)
{
    switch (sx_carrier_of(out->type.dtype)) {
    case SX_CARRIER_S:
        out->s[at] = (sx_bytes){text->size > 0 ? t->bytes + text->at : "", (size_t)text->size};
        break;
    case SX_CARRIER_B:
        out->b[at] = (uint8_t)number;
        break;
    default: /* doubles and integers have 8 bytes */
        out->u[at] = number;
        break;
    }
}

void sx_table_get_key(const sx_table *t, int64_t entry, const sx_host_tensor *out, int64_t at)
{
    get(t, &t->keys[entry], t->keys[entry].at, out, at);
}

void sx_table_get_value(const sx_table *t, int64_t entry, const sx_host_tensor *out, int64_t at)
{
    for (int64_t j = 0; j < t->value_elems; j++) {
        const int64_t i = entry * t->value_elems + j;
        get(t, t->texts != NULL ? &t->texts[i] : NULL, t->numbers != NULL ? t->numbers[i] : 0, out,
            at + j);
    }
}
