/* Element types (a table expanded from SX_DTYPES) and shapes, with overflow checks. */
#include <sextant/complex.h>

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/shortest.h"

typedef struct dtype_row {
    sx_dtype dtype;
    const char *name;
    size_t bytes;
    const char *numpy;
} dtype_row;

static const dtype_row dtype_rows[] = {
#define DTYPE_ROW(symbol, name, tf, bytes, descr) {symbol, name, bytes, descr},
    SX_DTYPES(DTYPE_ROW)
#undef DTYPE_ROW
        {SX_C64, "complex64", 8, "<c8"},
    {SX_C128, "complex128", 16, "<c16"},
};

static const dtype_row *find_row(sx_dtype dtype)
{
    static const dtype_row unknown = {SX_DTYPE_NONE, "?", 0, ""};
    for (size_t i = 0; i < SX_COUNT(dtype_rows); i++) {
        if (dtype_rows[i].dtype == dtype) {
            return &dtype_rows[i];
        }
    }
    return &unknown;
}

const char *sx_dtype_name(sx_dtype dtype)
{
    return find_row(dtype)->name;
}

size_t sx_dtype_bytes(sx_dtype dtype)
{
    return find_row(dtype)->bytes;
}

const char *sx_dtype_numpy(sx_dtype dtype)
{
    return find_row(dtype)->numpy;
}

bool sx_dtype_parse(const char *name, sx_dtype *out)
{
    for (size_t i = 0; i < SX_COUNT(dtype_rows); i++) {
        if (strcmp(dtype_rows[i].name, name) == 0 && !sx_dtype_is_complex(dtype_rows[i].dtype)) {
            *out = dtype_rows[i].dtype;
            return true;
        }
    }
    return false;
}

bool sx_dtype_is_float(sx_dtype dtype)
{
    return dtype == SX_F32 || dtype == SX_F64 || dtype == SX_F16 || dtype == SX_BF16;
}

bool sx_dtype_is_complex(sx_dtype dtype)
{
    return dtype == SX_C64 || dtype == SX_C128;
}

bool sx_dtype_is_data(sx_dtype dtype)
{
    return dtype == SX_STRING || (sx_dtype_bytes(dtype) > 0 && !sx_dtype_is_complex(dtype));
}

bool sx_dtype_is_integer(sx_dtype dtype)
{
    return sx_dtype_bytes(dtype) != 0 && !sx_dtype_is_float(dtype) && dtype != SX_BOOL &&
           !sx_dtype_is_complex(dtype);
}

/* A rank outside [0, SX_MAX_RANK] gives a type with dtype NONE, which no operator accepts; so does
 * SX_UNKNOWN_RANK, which is written as a literal. */
sx_type sx_type_make(sx_dtype dtype, int rank, const int64_t *dims)
{
    sx_type type = {.dtype = dtype, .rank = rank};
    if (rank < 0 || rank > SX_MAX_RANK) {
        return (sx_type){.dtype = SX_DTYPE_NONE};
    }
    for (int i = 0; i < rank; i++) {
        type.dims[i] = dims[i];
    }
    return type;
}

sx_type sx_scalar_type(sx_dtype dtype)
{
    return (sx_type){.dtype = dtype};
}

bool sx_type_equal(const sx_type *a, const sx_type *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank) {
        return false;
    }
    for (int i = 0; i < a->rank; i++) {
        if (a->dims[i] != b->dims[i]) {
            return false;
        }
    }
    return true;
}

bool sx_type_is_static(const sx_type *type)
{
    if (type->rank < 0 || type->rank > SX_MAX_RANK) {
        return false;
    }
    for (int i = 0; i < type->rank; i++) {
        if (type->dims[i] < 0) {
            return false;
        }
    }
    return true;
}

int sx_batch_axis(const sx_type *type)
{
    for (int i = 0; i < type->rank; i++) {
        if (sx_dim_is_batch(type->dims[i])) {
            return i;
        }
    }
    return -1;
}

bool sx_type_has_batch(const sx_type *type)
{
    return sx_batch_axis(type) >= 0;
}

sx_type sx_type_with_batch(sx_type type, int64_t batch)
{
    for (int i = 0; i < type.rank; i++) {
        if (sx_dim_is_batch(type.dims[i]) && !sx_mul_i64(-type.dims[i], batch, &type.dims[i])) {
            type.dims[i] = SX_UNKNOWN_DIM;
        }
    }
    return type;
}

/* An empty tensor has 0 elements even if the product of the other dimensions overflows. */
int64_t sx_type_elems(const sx_type *type)
{
    int64_t elems = 1;
    bool overflow = type->rank == SX_UNKNOWN_RANK, empty = false;
    for (int i = 0; i < type->rank; i++) {
        if (type->dims[i] < 0) {
            return -1;
        }
        empty = empty || type->dims[i] == 0;
        overflow = overflow || !sx_mul_i64(elems, type->dims[i], &elems);
    }
    if (empty) {
        return 0;
    }
    return overflow ? -1 : elems;
}

int64_t sx_type_bytes(const sx_type *type)
{
    int64_t elems = sx_type_elems(type), bytes = -1;
    int64_t elem_bytes = (int64_t)sx_dtype_bytes(type->dtype);
    if (elems < 0 || elem_bytes == 0 || !sx_mul_i64(elems, elem_bytes, &bytes)) {
        return -1;
    }
    return bytes;
}

static char *print_dim(char *at, int64_t dim)
{
    if (dim == SX_BATCH) {
        *at++ = 'N';
    } else if (sx_dim_is_batch(dim)) {
        at = sx_print_i64(at, -dim);
        *at++ = '*';
        *at++ = 'N';
    } else if (dim == SX_UNKNOWN_DIM) {
        *at++ = '?';
    } else if (sx_dim_is_symbol(dim)) {
        *at++ = '?';
        at = sx_print_i64(at, dim - SX_UNKNOWN_DIM - 1);
    } else {
        at = sx_print_i64(at, dim);
    }
    return at;
}

/* The longest text is 10 + 2 + 8 × 22 bytes, less than SX_TYPE_TEXT. Not printf: the digests of a
 * large model print some ten thousand types. */
char *sx_type_format(const sx_type *type, char *buffer, size_t capacity)
{
    if (type->rank < SX_UNKNOWN_RANK || type->rank > SX_MAX_RANK) {
        snprintf(buffer, capacity, "%s[rank %d]", sx_dtype_name(type->dtype), type->rank);
        return buffer;
    }
    char text[SX_TYPE_TEXT], *at = stpcpy(text, sx_dtype_name(type->dtype));
    *at++ = '[';
    if (type->rank == SX_UNKNOWN_RANK) {
        *at++ = '*';
    }
    for (int i = 0; i < type->rank; i++) {
        if (i > 0) {
            *at++ = ',';
        }
        at = print_dim(at, type->dims[i]);
    }
    *at++ = ']';
    if (capacity > 0) {
        const size_t size = SX_MIN((size_t)(at - text), capacity - 1);
        memcpy(buffer, text, size);
        buffer[size] = '\0';
    }
    return buffer;
}

void sx_text_free(char *text)
{
    sx_free(text);
}
