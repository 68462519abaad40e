/* sx_hlo_writer: receives an operator's StableHLO from its row (lower.h).
 *
 * A writer produces the text of one StableHLO function, in MLIR's generic form: one operation per
 * line, SSA names %0, %1 … in order, so that equal graphs produce equal texts, which are the keys
 * of the compile cache.
 *
 *     sx_hlo e = sx_hlo_unary(w, "exponential", op->in[0]);
 *     op->out[0] = sx_hlo_binary(w, "add", e, sx_hlo_splat(w, sx_hlo_type(w, e), 1));
 *
 *     %3 = "stablehlo.exponential"(%2) : (tensor<5x7xf32>) -> tensor<5x7xf32> loc("dense/exp")
 *
 * Every type here is static: the batch is fixed before lowering. A value knows its type.
 *
 * Errors: as in the builder, the writer keeps the first one, and later calls do nothing and return
 * SX_HLO_NONE; sx_hlo_finish() returns it. So callers need no checks.
 *
 * Rules of the text: no operation newer than StableHLO 1.13, sums of f16 and bf16 in f32,
 * convolutions NHWC by HWIO without reversal (the form that is fast on XLA's CPU inside a loop). */
#ifndef SX_GRAPH_LOWER_STABLEHLO_STABLEHLO_H
#define SX_GRAPH_LOWER_STABLEHLO_STABLEHLO_H

#include <sextant/types.h>

typedef struct sx_hlo_writer sx_hlo_writer;

/* A value of one writer: its SSA number. */
typedef struct sx_hlo {
    int id;
} sx_hlo;

#define SX_HLO_NONE ((sx_hlo){-1})
static inline bool sx_hlo_is(sx_hlo v)
{
    return v.id >= 0;
}

/* ---- A writer's life ---- */
/* ---- A writer's life ---- */

typedef struct sx_hlo_options {
    /* Products (convolutions, matrix products) of f32: "HIGHEST" (f32 everywhere, the default when
     * NULL), "HIGH", "DEFAULT" (one pass of bf16 on TPU, TF32 on GPU). */
    const char *precision;
    bool bf16_products; /* operands of f32 products are rounded to bf16; results stay f32 */
    bool wide_products; /* operands of bf16 and f16 products are widened, because XLA's CPU is slow
                           otherwise */
    int64_t max_trips;  /* of each loop of the graph, as a bound where it has none or a larger one;
                           0 = any number */
} sx_hlo_options;

/* One argument of the function. */
typedef struct sx_hlo_arg {
    sx_type type;
    int alias;    /* the result that overwrites it (donation), or -1 */
    bool donated; /* it is not needed after the execution */
} sx_hlo_arg;

/* Begins `func @main` with these arguments, out_args[n]. `max_bytes` bounds the text; 0 = 1 GiB.
 * Errors: RESOURCE_EXHAUSTED. */
SX_MUST_USE sx_status sx_hlo_create(const sx_hlo_options *options, const sx_hlo_arg *args, int n,
                                    size_t max_bytes, sx_hlo *out_args, sx_hlo_writer **out);
void sx_hlo_destroy(sx_hlo_writer *w); /* NULL is allowed */

/* Sets the `loc("…")` of the following operations, which plugins show in errors and profiles.
 * Borrowed until the next call; NULL for none. */
void sx_hlo_at(sx_hlo_writer *w, const char *name);

/* Ends the function with these results. Returns the first error, if any; else the module's text and
 * its length, borrowed until sx_hlo_destroy(). */
SX_MUST_USE sx_status sx_hlo_finish(sx_hlo_writer *w, const sx_hlo *results, int n,
                                    const char **out_text, size_t *out_size);

/* Records `status` if it is the first error; takes ownership of it. */
void sx_hlo_fail(sx_hlo_writer *w, sx_status status);
bool sx_hlo_failed(const sx_hlo_writer *w);
/* The type of a value; a float32 scalar for SX_HLO_NONE. */
sx_type sx_hlo_type(const sx_hlo_writer *w, sx_hlo v);
bool sx_hlo_is_unsigned(const sx_hlo_writer *w, sx_hlo v);
/* Result k of the operation whose first result is `first`. */
static inline sx_hlo sx_hlo_result(sx_hlo first, int k)
{
    return sx_hlo_is(first) ? (sx_hlo){first.id + k} : SX_HLO_NONE;
}

/* ---- Any operation ---- */

/* `name = value` of the next operation without regions that is emitted, or of sx_hlo_end(). */
void sx_hlo_attr(sx_hlo_writer *w, const char *name, const char *format, ...) SX_PRINTF(3, 4);
/* name = array<i64: v0, v1, …> */
void sx_hlo_attr_i64s(sx_hlo_writer *w, const char *name, int n, const int64_t *values);
/* "2, 3, 4": first .. last - 1, for lists inside attributes. Returns `buffer`. */
enum { SX_HLO_NUMBERS = 64 };
char *sx_hlo_numbers(int first, int last, char buffer[SX_HLO_NUMBERS]);

/* "stablehlo.<op>"(in...) : types; the first of n_out results, which have consecutive ids. */
sx_hlo sx_hlo_emit(sx_hlo_writer *w, const char *op, const sx_hlo *in, int n_in,
                   const sx_type *out_types, int n_out);

/* The same around regions:
 *
 *     first = sx_hlo_begin(w, "while", in, n, types, n);
 *     sx_hlo_region(w, types, n, args);   ... the condition, from args ...
 *     sx_hlo_region_end(w, &test, 1);
 *     sx_hlo_region(w, types, n, args);   ... the body ...
 *     sx_hlo_region_end(w, next, n);
 *     sx_hlo_end(w);                      the staged attributes are its
 *
 * Regions nest up to SX_HLO_MAX_DEPTH deep. */
enum { SX_HLO_MAX_DEPTH = 8 };
sx_hlo sx_hlo_begin(sx_hlo_writer *w, const char *op, const sx_hlo *in, int n_in,
                    const sx_type *out_types, int n_out);
void sx_hlo_region(sx_hlo_writer *w, const sx_type *arg_types, int n, sx_hlo *out_args);
void sx_hlo_region_end(sx_hlo_writer *w, const sx_hlo *results, int n);
void sx_hlo_end(sx_hlo_writer *w);
/* A region of two scalars of `dtype` that returns op(a, b): the body of sums and maxima. */
void sx_hlo_region_binary(sx_hlo_writer *w, const char *op, sx_dtype dtype);

/* ---- Bounds of loops ---- */

/* A device cannot be stopped: a loop with a bound ends there, and the program says so. While it is
 * written, `reached` is an int32 scalar of the region that is open: 0, or the number, from 1, of
 * the first loop whose condition was still true at its bound. SX_HLO_NONE: no loop had one so far.
 */
typedef struct sx_hlo_bound {
    char *name; /* of the node; the writer's */
    int64_t trips;
    bool limit; /* the option's max_trips, not the node's own bound */
} sx_hlo_bound;
/* The bound of a loop whose own is `trips`, 0 = none; its trips are 0 if it has none. */
sx_hlo_bound sx_hlo_bound_of(const sx_hlo_writer *w, int64_t trips);
sx_hlo sx_hlo_reached(const sx_hlo_writer *w);
void sx_hlo_set_reached(sx_hlo_writer *w, sx_hlo reached);
int sx_hlo_add_bound(sx_hlo_writer *w, const char *name, sx_hlo_bound bound); /* its number */
const sx_hlo_bound *sx_hlo_bounds(const sx_hlo_writer *w, int *out_n);

/* ---- Constants ---- */

sx_hlo sx_hlo_constant(sx_hlo_writer *w, const sx_tensor *value); /* static numeric or bool */
/* Every element `value`, rounded to the dtype (integers saturate). */
sx_hlo sx_hlo_splat(sx_hlo_writer *w, sx_type type, double value);
sx_hlo sx_hlo_scalar(sx_hlo_writer *w, sx_dtype dtype, double value);
/* A splat of v's type. */
sx_hlo sx_hlo_like(sx_hlo_writer *w, sx_hlo v, double value);

/* ---- Elementwise: operands of one shape ---- */

sx_hlo sx_hlo_unary(sx_hlo_writer *w, const char *op, sx_hlo x);
sx_hlo sx_hlo_binary(sx_hlo_writer *w, const char *op, sx_hlo x, sx_hlo y);
/* direction: "EQ", "NE", "LT", "LE", "GT", "GE"; the dtype determines the kind of comparison */
sx_hlo sx_hlo_compare(sx_hlo_writer *w, const char *direction, sx_hlo x, sx_hlo y);
/* `cond` has their shape or is a scalar */
sx_hlo sx_hlo_select(sx_hlo_writer *w, sx_hlo cond, sx_hlo x, sx_hlo y);
/* x itself if it has that dtype */
sx_hlo sx_hlo_convert(sx_hlo_writer *w, sx_hlo x, sx_dtype dtype);
/* x in the type of sums: f64 if it is f64, else f32 */
sx_hlo sx_hlo_widen(sx_hlo_writer *w, sx_hlo x);
/* min(max(x, low), high); propagates NaN */
sx_hlo sx_hlo_clamp(sx_hlo_writer *w, sx_hlo x, double low, double high);
/* op(x, value) with a splat */
sx_hlo sx_hlo_with(sx_hlo_writer *w, const char *op, sx_hlo x, double value);

/* ---- Shapes ---- */

/* Broadcasts to the dimensions of `to` by NumPy's rule (ignoring its dtype). x itself if it has
 * them. */
sx_hlo sx_hlo_broadcast_to(sx_hlo_writer *w, sx_hlo x, const sx_type *to);
/* A value without axis `axis` of `to`, repeated along it. */
sx_hlo sx_hlo_repeat(sx_hlo_writer *w, sx_hlo x, const sx_type *to, int axis);
/* x's dimension i becomes dimension map[i] of `to`. */
sx_hlo sx_hlo_broadcast_in(sx_hlo_writer *w, sx_hlo x, const sx_type *to, const int64_t *map);
sx_hlo sx_hlo_reshape(sx_hlo_writer *w, sx_hlo x, const sx_type *to);
sx_hlo sx_hlo_transpose(sx_hlo_writer *w, sx_hlo x, const int64_t *perm);
sx_hlo sx_hlo_reverse(sx_hlo_writer *w, sx_hlo x, int n, const int64_t *axes);
sx_hlo sx_hlo_slice(sx_hlo_writer *w, sx_hlo x, const int64_t *begin, const int64_t *size);
/* low, high may be negative (cut); interior NULL = 0 */
sx_hlo sx_hlo_pad(sx_hlo_writer *w, sx_hlo x, double value, const int64_t *low, const int64_t *high,
                  const int64_t *interior);
sx_hlo sx_hlo_concat(sx_hlo_writer *w, const sx_hlo *xs, int n, int axis);
sx_hlo sx_hlo_iota(sx_hlo_writer *w, sx_type type, int axis);

/* ---- Reductions, windows, products ---- */

/* op "add", "multiply", "maximum", "minimum", "and", "or" over axes[n]; kept: the axes stay, with
 * size 1. Sums and products of f16 and bf16 are computed in f32; the result has x's dtype. */
sx_hlo sx_hlo_reduce(sx_hlo_writer *w, const char *op, sx_hlo x, int n, const int64_t *axes,
                     bool kept);
/* Over the last axis, kept. */
sx_hlo sx_hlo_reduce_last(sx_hlo_writer *w, const char *op, sx_hlo x);

/* A window over the two spatial dimensions of NHWC. */
typedef struct sx_hlo_window {
    int64_t size[2], strides[2];
    int64_t pads[2][2]; /* {before, after} of height, of width; not negative */
} sx_hlo_window;
/* Its attributes, for the next sx_hlo_end(). */
void sx_hlo_attr_window(sx_hlo_writer *w, const sx_hlo_window *window);
/* op "add" or "maximum" over each window; padding is neutral. */
sx_hlo sx_hlo_reduce_window(sx_hlo_writer *w, const char *op, sx_hlo x, const sx_hlo_window *window,
                            const sx_type *out);

/* op(a) op(b) of matrices of one dtype, or of stacks of matrices [..., M, K] with the same
 * dimensions in front; the result is in the type of the accumulator, f32 (f64 for
 * f64). */
sx_hlo sx_hlo_matmul(sx_hlo_writer *w, sx_hlo a, bool transpose_a, sx_hlo b, bool transpose_b);

/* A convolution, NHWC by HWIO; the result's dtype is as for sx_hlo_matmul. Negative pads crop. */
typedef struct sx_hlo_conv {
    int64_t strides[2], pads[2][2];
    int64_t x_dilation[2], filter_dilation[2];
    int64_t groups;
} sx_hlo_conv;
sx_hlo sx_hlo_convolution(sx_hlo_writer *w, sx_hlo x, sx_hlo filter, const sx_hlo_conv *conv);

/* ---- Replicas ---- */

/* op "add", "maximum" or "minimum" of x over replicas 0 .. n-1, element by element, on each. */
sx_hlo sx_hlo_all_reduce(sx_hlo_writer *w, const char *op, sx_hlo x, int n);
/* The replicas' x behind one another along an axis. */
sx_hlo sx_hlo_all_gather(sx_hlo_writer *w, sx_hlo x, int axis, int replicas);

#endif
