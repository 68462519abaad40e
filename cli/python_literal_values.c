/* Python literals as tensors and as Examples; see python_literal.h. */
#include <math.h>
#include <string.h>

#include <sextant/complex.h>

#include "base/checked.h"
#include "base/memory.h"
#include "graph/host.h"
#include "proto/example.h"
#include "python_literal.h"

/* ---- Tensors ---- */

static sx_status out_of_range(const sx_literal *v, sx_dtype dtype)
{
    return v->kind == SX_LITERAL_FLOAT
               ? sx_error(SX_INVALID_ARGUMENT, "%g is not in the range of %s", v->number,
                          sx_dtype_name(dtype))
           : v->above ? sx_error(SX_INVALID_ARGUMENT, "%llu is not in the range of %s",
                                 (unsigned long long)v->integer, sx_dtype_name(dtype))
                      : sx_error(SX_INVALID_ARGUMENT, "%lld is not in the range of %s",
                                 (long long)v->integer, sx_dtype_name(dtype));
}

/* Stores the elements of a literal of this shape in row-major order from *at on. */
static sx_status store(const sx_literal *v, const sx_type *type, int axis, char **at)
{
    if (axis < type->rank) {
        if (v->kind != SX_LITERAL_LIST || v->n != type->dims[axis]) {
            return sx_error(SX_INVALID_ARGUMENT, "lists of different lengths do not make an array");
        }
        for (int i = 0; i < v->n; i++) {
            SX_TRY(store(&v->items[i], type, axis + 1, at));
        }
        return SX_OK;
    }
    static const char *const kinds[] = {
        [SX_LITERAL_NONE] = "None",      [SX_LITERAL_BOOL] = "a boolean",
        [SX_LITERAL_INT] = "an integer", [SX_LITERAL_FLOAT] = "a float",
        [SX_LITERAL_TEXT] = "a string",  [SX_LITERAL_COMPLEX] = "a complex number",
        [SX_LITERAL_DICT] = "a dict",
    };
    if (v->kind == SX_LITERAL_LIST) {
        return sx_error(SX_INVALID_ARGUMENT, "lists of different depths do not make an array");
    }
    if (type->dtype == SX_STRING) {
        if (v->kind != SX_LITERAL_TEXT) {
            return sx_error(SX_INVALID_ARGUMENT, "expected strings, got %s", kinds[v->kind]);
        }
        memcpy(*at, &v->text, sizeof(v->text));
        *at += sizeof(sx_bytes);
        return SX_OK;
    }
    const bool of_complex = sx_dtype_is_complex(type->dtype);
    const bool missing = v->kind == SX_LITERAL_NONE && sx_dtype_is_float(type->dtype);
    if (!sx_literal_is_number(v) && !missing && !(of_complex && v->kind == SX_LITERAL_COMPLEX)) {
        return sx_error(SX_INVALID_ARGUMENT, "expected numbers of %s, got %s",
                        sx_dtype_name(type->dtype), kinds[v->kind]);
    }
    if (of_complex) {
        const sx_dtype part = type->dtype == SX_C64 ? SX_F32 : SX_F64;
        const bool both = v->kind == SX_LITERAL_COMPLEX;
        sx_host_store_element(part, both ? v->number : sx_literal_number(v), *at);
        sx_host_store_element(part, both ? v->imaginary : 0, *at + sx_dtype_bytes(part));
        *at += sx_dtype_bytes(type->dtype);
        return SX_OK;
    }
    const bool integers = sx_dtype_is_integer(type->dtype), wide = sx_dtype_bytes(type->dtype) == 8;
    if (integers && wide && v->kind != SX_LITERAL_FLOAT) { /* a double does not hold all of them */
        if (type->dtype == SX_U64 ? v->integer < 0 && !v->above : v->above) {
            return out_of_range(v, type->dtype);
        }
        memcpy(*at, &v->integer, sizeof(v->integer));
    } else {
        const double number = missing ? NAN : sx_literal_number(v),
                     value = integers ? trunc(number) : number;
        const double end = !wide ? INFINITY : type->dtype == SX_U64 ? 0x1p64 : 0x1p63;
        sx_host_store_element(type->dtype, value, *at);
        if (integers && (value >= end || sx_host_load_element(type->dtype, *at) != value)) {
            return out_of_range(v, type->dtype);
        }
    }
    *at += sx_dtype_bytes(type->dtype);
    return SX_OK;
}

sx_status sx_literal_tensor(const sx_literal *literal, sx_dtype dtype, sx_arena *arena,
                            sx_tensor *out)
{
    sx_type type = sx_scalar_type(dtype);
    for (const sx_literal *v = literal; v != NULL && v->kind == SX_LITERAL_LIST; v = v->items) {
        if (type.rank == SX_MAX_RANK) {
            return sx_error(SX_INVALID_ARGUMENT, "an array of more than %d dimensions",
                            SX_MAX_RANK);
        }
        type.dims[type.rank++] = v->n;
    }
    const size_t each = dtype == SX_STRING ? sizeof(sx_bytes) : sx_dtype_bytes(dtype);
    const int64_t n = sx_type_elems(&type);
    char *data = n < 0 ? NULL : sx_arena_alloc(arena, (size_t)n * each + 1, 16), *at = data;
    if (data == NULL) {
        return sx_no_memory("for an array");
    }
    *out = (sx_tensor){type, data};
    return store(literal, &type, 0, &at);
}

/* ---- Examples ---- */

/* What the first value of a feature is, all are; a float may be written as an integer. */
static sx_status check_feature(const sx_literal *list, sx_literal_kind first)
{
    const bool text = first == SX_LITERAL_TEXT, floats = first == SX_LITERAL_FLOAT;
    if (!text && !floats && first != SX_LITERAL_INT && first != SX_LITERAL_BOOL) {
        return sx_error(SX_INVALID_ARGUMENT, "value 0 is neither a number nor a string");
    }
    for (int i = 0; i < list->n; i++) {
        const sx_literal_kind kind = list->items[i].kind;
        const bool whole = kind == SX_LITERAL_INT || kind == SX_LITERAL_BOOL;
        if (text ? kind != SX_LITERAL_TEXT : !whole && !(floats && kind == SX_LITERAL_FLOAT)) {
            return sx_error(SX_INVALID_ARGUMENT, "value %d is no %s%s", i,
                            text     ? "string, as the first is"
                            : floats ? "number"
                                     : "integer",
                            !text && !floats && kind == SX_LITERAL_FLOAT
                                ? ", as the first is; write that as a float, too: 1.0"
                                : "");
        }
    }
    return SX_OK;
}

static sx_status add_feature(sx_example_writer *writer, const char *name, const sx_literal *list,
                             sx_arena *arena)
{
    sx_tensor values;
    const sx_literal_kind first = list->n > 0 ? list->items[0].kind : SX_LITERAL_INT;
    const bool text = first == SX_LITERAL_TEXT, floats = first == SX_LITERAL_FLOAT;
    SX_TRY(check_feature(list, first), "feature \"%s\"", name);
    SX_TRY(sx_literal_tensor(list,
                             text     ? SX_STRING
                             : floats ? SX_F32
                                      : SX_I64,
                             arena, &values),
           "feature \"%s\"", name);
    if (text) {
        sx_example_add_bytes(writer, name, values.data, (size_t)list->n);
    } else if (floats) {
        sx_example_add_floats(writer, name, values.data, (size_t)list->n);
    } else {
        sx_example_add_ints(writer, name, values.data, (size_t)list->n);
    }
    return SX_OK;
}

static sx_status write_example(const sx_literal *example, sx_arena *arena, sx_bytes *out)
{
    sx_example_writer writer;
    sx_buf bytes;
    sx_status status = SX_OK;
    sx_example_writer_init(&writer);
    sx_buf_init(&bytes, 0);
    for (int i = 0; i < example->n && status == SX_OK; i++) {
        const sx_literal *key = &example->keys[i];
        const char *name = key->kind == SX_LITERAL_TEXT
                               ? sx_arena_strndup(arena, key->text.data, key->text.size)
                               : NULL;
        if (name == NULL) {
            status = sx_error(SX_INVALID_ARGUMENT,
                              "feature %d of an example: expected a name, in quotes", i);
        } else if (example->items[i].kind != SX_LITERAL_LIST) {
            status =
                sx_error(SX_INVALID_ARGUMENT,
                         "feature \"%s\": expected a list of values; one value, too, is a list: "
                         "[1]",
                         name);
        } else {
            status = add_feature(&writer, name, &example->items[i], arena);
        }
    }
    if (status == SX_OK && example->n > 0) { /* one without features has no bytes */
        status = sx_example_finish(&writer, &bytes);
    }
    if (status == SX_OK) {
        char *copy = sx_arena_alloc(arena, bytes.size + 1, 1);
        if (copy == NULL) {
            status = sx_no_memory("for an Example");
        } else {
            memcpy(copy, sx_buf_text(&bytes), bytes.size);
            *out = (sx_bytes){copy, bytes.size};
        }
    }
    sx_buf_deinit(&bytes);
    sx_example_writer_deinit(&writer);
    return status;
}

sx_status sx_literal_examples(const sx_literal *literal, sx_arena *arena, sx_tensor *out)
{
    if (literal->kind != SX_LITERAL_LIST) {
        return sx_error(SX_INVALID_ARGUMENT, "expected a list of dicts: [{\"x\": [1.0]}]");
    }
    sx_bytes *rows = sx_arena_array(arena, literal->n + 1, sx_bytes);
    if (rows == NULL) {
        return sx_no_memory("for Examples");
    }
    for (int i = 0; i < literal->n; i++) {
        if (literal->items[i].kind != SX_LITERAL_DICT) {
            return sx_error(SX_INVALID_ARGUMENT, "item %d: expected a dict: {\"x\": [1.0]}", i);
        }
        SX_TRY(write_example(&literal->items[i], arena, &rows[i]), "item %d", i);
    }
    *out = (sx_tensor){sx_type_of(SX_STRING, literal->n), rows};
    return SX_OK;
}
