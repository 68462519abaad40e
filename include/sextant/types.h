/* Element types, shapes and tensors: plain values shared by every layer. */
#ifndef SEXTANT_TYPES_H
#define SEXTANT_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sextant/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Options are fields of a struct that a macro fills, so that a call reads like one with keyword
 * arguments:
 *     x = sx_conv2d(b, x, 32, 3, .padding = SX_SAME, .activation = SX_RELU);
 * A field that is left out is zero, which is its default; where zero would be a value of its own,
 * it has a name (SX_ZERO). struct_size is the size of the struct in the caller's headers: a library
 * takes structs of older headers, in which fields are missing, and of newer ones, as long as the
 * fields that it does not know are zero. C++ includes <sextant/sextant.hpp>. */
#ifdef __cplusplus
#define SX_ARGS_(type, ...) include_sextant_sextant_hpp_in_cpp /* what the compiler then says */
#else
#define SX_ARGS_(type, ...) (&(type){.struct_size = sizeof(type), __VA_ARGS__})
#endif
#define SX_HERE_ __FILE__, __LINE__ /* of the call; quoted by errors */

/* One row per element type: name, TensorFlow's DataType number, bytes per element, numpy's descr.
 * Strings have no fixed size; their tensors hold sx_bytes. A resource is a variable's handle, in
 * functions only. */
#define SX_DTYPES(X)                      \
    X(SX_F32, "float32", 1, 4, "<f4")     \
    X(SX_F64, "float64", 2, 8, "<f8")     \
    X(SX_I32, "int32", 3, 4, "<i4")       \
    X(SX_U8, "uint8", 4, 1, "|u1")        \
    X(SX_I16, "int16", 5, 2, "<i2")       \
    X(SX_I8, "int8", 6, 1, "|i1")         \
    X(SX_STRING, "string", 7, 0, "")      \
    X(SX_I64, "int64", 9, 8, "<i8")       \
    X(SX_BOOL, "bool", 10, 1, "|b1")      \
    X(SX_BF16, "bfloat16", 14, 2, "<V2")  \
    X(SX_U16, "uint16", 17, 2, "<u2")     \
    X(SX_F16, "float16", 19, 2, "<f2")    \
    X(SX_RESOURCE, "resource", 20, 0, "") \
    X(SX_U32, "uint32", 22, 4, "<u4")     \
    X(SX_U64, "uint64", 23, 8, "<u8")

/* The values are TensorFlow's DataType numbers. */
typedef enum sx_dtype {
    SX_DTYPE_NONE = 0,
#define SX_DTYPE_ENUM_(symbol, name, tf, bytes, descr) symbol = tf,
    SX_DTYPES(SX_DTYPE_ENUM_)
#undef SX_DTYPE_ENUM_
} sx_dtype;

SX_API const char *sx_dtype_name(sx_dtype dtype);            /* "float32"; "?" if unknown */
SX_API size_t sx_dtype_bytes(sx_dtype dtype);                /* 0 for strings and unknown */
SX_API const char *sx_dtype_numpy(sx_dtype dtype);           /* "<f4" */
SX_API bool sx_dtype_parse(const char *name, sx_dtype *out); /* by name */
SX_API bool sx_dtype_is_float(sx_dtype dtype);               /* f16 bf16 f32 f64 */
SX_API bool sx_dtype_is_integer(sx_dtype dtype);             /* false for bool */
SX_API bool sx_dtype_is_data(sx_dtype dtype);                /* numbers, bool, string; no handle */

enum { SX_MAX_RANK = 8 };

/* A dimension is one of
 *
 *   d >= 0                    a count
 *   -c                        c·N, where N is the batch size, fixed when the graph is compiled:
 *                             SX_BATCH is N; -4 is 4·N, as when [N,4,D] is reshaped to [4·N,D]
 *   SX_UNKNOWN_DIM            known only at run time
 *   SX_UNKNOWN_DIM + 1 + k    symbol k < SX_MAX_SYMBOLS: unknown, but equal wherever it appears
 *
 * Static graphs have only counts and c·N, on any axis; the others occur in functions, signatures
 * and data. */
enum { SX_BATCH = -1, SX_MAX_SYMBOLS = 1 << 16 };
#define SX_UNKNOWN_DIM INT64_MIN
enum { SX_UNKNOWN_RANK = -1 }; /* rank of a type whose rank is unknown */

static inline bool sx_dim_is_batch(int64_t dim) /* c·N, c >= 1 */
{
    return dim < 0 && dim > SX_UNKNOWN_DIM + SX_MAX_SYMBOLS;
}
static inline bool sx_dim_is_symbol(int64_t dim)
{
    return dim > SX_UNKNOWN_DIM && dim <= SX_UNKNOWN_DIM + SX_MAX_SYMBOLS;
}

/* dtype + shape; a value, compared with sx_type_equal(). Unused dims are 0. */
typedef struct sx_type {
    sx_dtype dtype;
    int rank; /* SX_UNKNOWN_RANK: no dims */
    int64_t dims[SX_MAX_RANK];
} sx_type;

/* sx_type_of(SX_F32, SX_BATCH, 28, 28, 1); a scalar is sx_scalar_type(SX_F32). */
#define sx_type_of(dtype, ...)                                                       \
    sx_type_make((dtype), (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
                 (const int64_t[]){__VA_ARGS__})
SX_API sx_type sx_type_make(sx_dtype dtype, int rank, const int64_t *dims);
SX_API sx_type sx_scalar_type(sx_dtype dtype);
SX_API bool sx_type_equal(const sx_type *a, const sx_type *b);
SX_API bool sx_type_is_static(const sx_type *type); /* rank and every dimension are known */
SX_API bool sx_type_has_batch(const sx_type *type); /* some dimension is c·N */
SX_API int sx_batch_axis(const sx_type *type);      /* the first dimension that is; −1 if none */
/* `type` with c·`batch` in place of each c·N; SX_UNKNOWN_DIM where that overflows int64. `batch` is
 * not negative. */
SX_API sx_type sx_type_with_batch(sx_type type, int64_t batch);

/* The number of elements; −1 if not static or if the product overflows int64. */
SX_API int64_t sx_type_elems(const sx_type *type);
/* The size of the tensor; −1 in the same cases and for strings. */
SX_API int64_t sx_type_bytes(const sx_type *type);

/* "float32[N,28,2*N,?]": N is the batch, ? an unknown dimension, ?7 symbol 7; "float32[*]" has an
 * unknown rank, "float32[rank 9]" one that is out of range. Writes at most `capacity` bytes
 * including the final NUL; SX_TYPE_TEXT is always enough. Returns `buffer`. */
enum { SX_TYPE_TEXT = 200 };
SX_API char *sx_type_format(const sx_type *type, char *buffer, size_t capacity);

/* A view of bytes owned elsewhere. */
typedef struct sx_bytes {
    const void *data;
    size_t size;
} sx_bytes;

/* A dense row-major tensor on the host. `data` points to the elements (for strings, sx_bytes); the
 * function that returns a tensor documents who owns it. */
typedef struct sx_tensor {
    sx_type type;
    void *data;
} sx_tensor;

/* Frees a text allocated by a library function for its caller; NULL is fine. */
SX_API void sx_text_free(char *text);

#ifdef __cplusplus
}
#endif
#endif
