/* See layouts.h. */
#include "backends/pjrt/layouts.h"

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/checked.h"
#include "proto/wire.h"

enum { MAX_RANK = 16, MAX_TILE = 8, MAX_NESTING = 4, TEXT_BYTES = 160, TUPLE = 13, MAX_LOOPS = 8 };

/* XLA's PrimitiveType, by number: name, bits. */
static const struct {
    const char *name;
    int bits;
} elements[] = {
    [1] = {"pred", 8},  [2] = {"s8", 8},     [3] = {"s16", 16},  [4] = {"s32", 32},
    [5] = {"s64", 64},  [6] = {"u8", 8},     [7] = {"u16", 16},  [8] = {"u32", 32},
    [9] = {"u64", 64},  [10] = {"f16", 16},  [11] = {"f32", 32}, [12] = {"f64", 64},
    [15] = {"c64", 64}, [16] = {"bf16", 16},
};

static sx_status broken(void)
{
    return sx_error(SX_DATA_LOSS, "the plugin's optimized program is not a valid HloModuleProto");
}

/* ---- One shape ---- */

typedef struct shape {
    uint64_t element;
    int64_t dims[MAX_RANK], order[MAX_RANK], tile[MAX_TILE];
    int rank, n_order, n_tile;
    uint64_t memory;
} shape;

/* Appends the numbers of a repeated field, packed or not; false if there are too many. */
static bool add_numbers(const sx_wire_field *f, int64_t *values, int most, int *n)
{
    sx_wire at = sx_wire_over(f->value);
    do {
        uint64_t v = 0;
        if (!sx_wire_more(&at)) {
            return f->type == SX_WIRE_BYTES;
        }
        if (!sx_wire_varint(&at, &v) || v > INT64_MAX || *n == most) {
            return false;
        }
        values[(*n)++] = (int64_t)v;
    } while (f->type == SX_WIRE_BYTES);
    return true;
}

/* Reads the first tile. */
static bool read_tile(sx_bytes message, shape *s)
{
    sx_wire at = sx_wire_over(message);
    sx_wire_field f;
    while (sx_wire_more(&at)) {
        if (!sx_wire_next(&at, &f) ||
            (f.number == 1 && !add_numbers(&f, s->tile, MAX_TILE, &s->n_tile))) {
            return false;
        }
    }
    return true;
}

static bool read_layout(sx_bytes message, shape *s)
{
    sx_wire at = sx_wire_over(message);
    sx_wire_field f;
    bool good = true;
    for (int tiles = 0; good && sx_wire_more(&at);) {
        if (!sx_wire_next(&at, &f)) {
            return false;
        }
        if (f.number == 1) {
            good = add_numbers(&f, s->order, MAX_RANK, &s->n_order);
        } else if (f.number == 6 && tiles++ == 0) {
            good = read_tile(f.value, s);
        } else if (f.number == 8) {
            good = sx_wire_number(&f, &s->memory);
        }
    }
    return good;
}

int64_t sx_padded_bytes(const int64_t *dims, const int64_t *minor_to_major, int rank,
                        const int64_t *tile, int n_tile, int64_t elem_bits)
{
    int64_t elems = 1, bits;
    for (int i = 0; i < rank; i++) { /* from the minor dimension */
        int64_t size = dims[minor_to_major[i]];
        int64_t to = i < n_tile ? tile[n_tile - 1 - i] : 1;
        int64_t rest = to > 0 ? size % to : 0;
        if ((rest > 0 && !sx_add_i64(size, to - rest, &size)) || !sx_mul_i64(elems, size, &elems)) {
            return -1;
        }
    }
    return sx_mul_i64(elems, elem_bits, &bits) ? (bits + 7) / 8 : -1;
}

/* Without an order the array is row-major. */
static bool complete_order(shape *s)
{
    uint32_t seen = 0;
    for (int i = 0; s->n_order == 0 && i < s->rank; i++) {
        s->order[i] = s->rank - 1 - i;
    }
    s->n_order = s->rank;
    for (int i = 0; i < s->rank; i++) {
        if (s->order[i] >= s->rank || (seen & 1u << s->order[i]) != 0) {
            return false;
        }
        seen |= 1u << s->order[i];
    }
    return true;
}

/* ---- One instruction ---- */

typedef struct visiting {
    sx_layout_visit *visit;
    void *user;
    sx_layout_array array;
    bool in_loop;
    uint64_t loops[MAX_LOOPS]; /* ids of the bodies of the entry's loops */
    int n_loops;
} visiting;

static void write_text(const shape *s, char text[TEXT_BYTES])
{
    int used = snprintf(text, TEXT_BYTES, "%s[", elements[s->element].name);
    for (int i = 0; i < s->rank && used < TEXT_BYTES; i++) {
        used += snprintf(text + used, (size_t)(TEXT_BYTES - used), "%s%lld", i > 0 ? "," : "",
                         (long long)s->dims[i]);
    }
    if (used < TEXT_BYTES - 1) {
        snprintf(text + used, (size_t)(TEXT_BYTES - used), "]");
    }
}

static bool visit_shape(visiting *v, const shape *s)
{
    char text[TEXT_BYTES];
    if (s->element >= SX_COUNT(elements) || elements[s->element].name == NULL) {
        return true; /* tokens and the like */
    }
    int bits = elements[s->element].bits;
    v->array.bytes = sx_padded_bytes(s->dims, s->order, s->rank, NULL, 0, bits);
    v->array.padded = sx_padded_bytes(s->dims, s->order, s->rank, s->tile, s->n_tile, bits);
    v->array.memory = (int)SX_MIN(s->memory, (uint64_t)100);
    v->array.text = text;
    write_text(s, text);
    if (v->array.bytes >= 0 && v->array.padded >= 0) {
        v->visit(v->user, &v->array);
    }
    return true;
}

static bool read_shape(visiting *v, sx_bytes message, int depth)
{
    shape s = {0};
    sx_wire at = sx_wire_over(message);
    sx_wire_field f;
    bool good = depth < MAX_NESTING;
    while (good && sx_wire_more(&at)) {
        if (!sx_wire_next(&at, &f)) {
            return false;
        }
        if (f.number == 2) {
            good = sx_wire_number(&f, &s.element);
        } else if (f.number == 3) {
            good = add_numbers(&f, s.dims, MAX_RANK, &s.rank);
        } else if (f.number == 4) {
            good = read_shape(v, f.value, depth + 1);
        } else if (f.number == 5) {
            good = read_layout(f.value, &s);
        }
    }
    if (!good || s.element == TUPLE) {
        return good;
    }
    return complete_order(&s) && visit_shape(v, &s);
}

/* Whether the results are arrays of other instructions, or copies of them in faster memory. */
static bool is_view(sx_bytes opcode)
{
    static const char *const views[] = {
        "get-tuple-element", "tuple",       "bitcast",      "copy-start",
        "copy-done",         "async-start", "after",        "constant",
        "all-reduce-start",  "opt-barrier", "partition-id", "iota",
        "replica-id",        "while"};
    for (size_t i = 0; i < SX_COUNT(views); i++) {
        if (sx_bytes_is(opcode, views[i])) {
            return true;
        }
    }
    return false;
}

static bool read_metadata(sx_bytes message, visiting *v)
{
    sx_wire at = sx_wire_over(message);
    sx_wire_field f;
    while (sx_wire_more(&at)) {
        if (!sx_wire_next(&at, &f)) {
            return false;
        }
        if (f.number == 2) {
            v->array.op = f.value.data;
            v->array.op_size = f.value.size;
        }
    }
    return true;
}

static bool note_loop(visiting *v, const sx_wire_field *called)
{
    int64_t ids[2];
    int n = 0;
    if (called->number == 0 || v->in_loop || v->n_loops == MAX_LOOPS) {
        return true;
    }
    if (!add_numbers(called, ids, 2, &n) || n == 0) {
        return false;
    }
    v->loops[v->n_loops++] = (uint64_t)ids[0];
    return true;
}

static bool read_instruction(sx_bytes message, visiting *v)
{
    sx_wire at = sx_wire_over(message);
    sx_wire_field f, called = {0};
    sx_bytes opcode = {"", 0}, shape_message = {"", 0};
    uint64_t parameter = 0;
    v->array = (sx_layout_array){.parameter = -1, .op = ""};
    while (sx_wire_more(&at)) {
        if (!sx_wire_next(&at, &f)) {
            return false;
        }
        if (f.number == 2) {
            opcode = f.value;
        } else if (f.number == 3) {
            shape_message = f.value;
        } else if (f.number == 38) {
            called = f;
        } else if ((f.number == 7 && !read_metadata(f.value, v)) ||
                   (f.number == 9 && !sx_wire_number(&f, &parameter))) {
            return false;
        }
    }
    bool is_parameter = sx_bytes_is(opcode, "parameter");
    if (is_view(opcode) || (is_parameter && v->in_loop)) {
        return !sx_bytes_is(opcode, "while") || note_loop(v, &called);
    }
    v->array.parameter = is_parameter && parameter < INT32_MAX ? (int)parameter : -1;
    return read_shape(v, shape_message, 0);
}

/* ---- The module ---- */

static bool visit_computation(sx_bytes message, visiting *v)
{
    sx_wire at = sx_wire_over(message);
    sx_wire_field f;
    while (sx_wire_more(&at)) {
        if (!sx_wire_next(&at, &f) || (f.number == 2 && !read_instruction(f.value, v))) {
            return false;
        }
    }
    return true;
}

/* The number in a field of a message; 0 if it is absent. */
static bool number_of(sx_bytes message, uint32_t field, uint64_t *out)
{
    sx_wire at = sx_wire_over(message);
    sx_wire_field f;
    *out = 0;
    while (sx_wire_more(&at)) {
        if (!sx_wire_next(&at, &f) || (f.number == field && !sx_wire_number(&f, out))) {
            return false;
        }
    }
    return true;
}

static bool visit_by_id(sx_bytes module, uint64_t wanted, visiting *v)
{
    sx_wire at = sx_wire_over(module);
    sx_wire_field f;
    uint64_t id;
    while (sx_wire_more(&at)) {
        if (!sx_wire_next(&at, &f) || (f.number == 3 && !number_of(f.value, 5, &id))) {
            return false;
        }
        if (f.number == 3 && id == wanted) {
            return visit_computation(f.value, v);
        }
    }
    return false;
}

static bool visit_module(sx_bytes module, visiting *v)
{
    uint64_t entry;
    bool good = number_of(module, 6, &entry) && visit_by_id(module, entry, v);
    v->in_loop = true;
    for (int i = 0; good && i < v->n_loops; i++) {
        good = visit_by_id(module, v->loops[i], v);
    }
    return good;
}

sx_status sx_layouts_visit(const void *data, size_t size, sx_layout_visit *visit, void *user)
{
    visiting v = {.visit = visit, .user = user};
    sx_wire at = sx_wire_over((sx_bytes){data, size});
    sx_wire_field f;
    while (sx_wire_more(&at)) {
        if (!sx_wire_next(&at, &f)) {
            break;
        }
        if (f.number == 1 && f.type == SX_WIRE_BYTES) {
            return visit_module(f.value, &v) ? SX_OK : broken();
        }
    }
    return broken();
}
