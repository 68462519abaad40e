/* Host kernels: the reference implementation of an operator. Computes any shape and any dtype that
 * the operator supports, on the calling thread, with only the call's memory. Used for constant
 * folding, host steps and as the reference for every backend.
 *
 * A kernel gets each tensor in its carrier type, so that it is written once for all dtypes:
 *
 *     float16 bfloat16 float32 float64      double        .f
 *     int8 int16 int32 int64
 *     uint8 uint16 uint32                   int64_t       .i
 *     uint64                                uint64_t      .u
 *     bool                                  uint8_t 0, 1  .b
 *     string                                sx_bytes      .s
 *
 * Loading is exact. A result is converted to its dtype once, after the kernel: floats round to
 * nearest even, integers wrap modulo 2^bits, as TensorFlow's do. Kernels compute integers modulo
 * 2^64 (SX_WRAP), so the wrapped result is right.
 *
 * Operands that an operator only moves (op->moved: the elements of concat, the table of gather) are
 * not carried: they and the outputs keep their dtype's own bytes, `elem_bytes` each. */
#ifndef SX_GRAPH_HOST_H
#define SX_GRAPH_HOST_H

#include "base/arena.h"
#include "base/buffer.h"
#include "base/cancel.h"
#include "graph/op_def.h"
#include "image/image.h"

typedef enum sx_carrier {
    SX_CARRIER_NONE = 0, /* unknown dtype */
    SX_CARRIER_F,
    SX_CARRIER_I,
    SX_CARRIER_U,
    SX_CARRIER_B,
    SX_CARRIER_S,
} sx_carrier;

sx_carrier sx_carrier_of(sx_dtype dtype);
/* The size of one element of that dtype in its carrier: 8, 1 or sizeof(sx_bytes). */
size_t sx_carrier_bytes(sx_dtype dtype);
/* The size of a tensor's elements in host memory; strings are sx_bytes. -1 if its type is not
 * static or the size overflows. */
int64_t sx_host_bytes(const sx_type *type);

/* Lookup tables: graph/tables.h. */
typedef struct sx_tables sx_tables;

struct sx_host_tensor {
    sx_type type; /* static */
    union {
        void *data;
        double *f;
        int64_t *i;
        uint64_t *u;
        uint8_t *b;
        sx_bytes *s;
    };
};

struct sx_kernel_call {
    const void *attrs;
    const sx_host_tensor *in;
    const sx_host_tensor *out; /* to be written in full */
    int n_in, n_out;
    size_t elem_bytes; /* of a moved element */
    bool all_carried;  /* moved elements are in their carrier too */
    bool keep_double;  /* sx_host_run_carried()'s, for kernels that run others */
    sx_arena *arena;   /* of the run: scratch, and the bytes of strings that the kernel creates */
    const sx_cancel *cancel;       /* checked by kernels that may take long; may be NULL */
    const sx_image_limits *images; /* as in sx_host_context */
    const sx_tables *tables;       /* the same */
    int64_t first_row;
};

/* What a run of kernels has in common. */
typedef struct sx_host_context {
    sx_arena *arena;               /* scratch, and the bytes of strings that kernels create */
    const sx_cancel *cancel;       /* may be NULL */
    const sx_image_limits *images; /* for decoding; NULL = sx_image_limits_untrusted */
    const sx_tables *tables;       /* of the loaded model (graph/tables.h); may be NULL */
    int64_t first_row; /* of the whole batch, if the call computes a part of it: for messages */
} sx_host_context;

/* Elementwise two's complement without undefined overflow: SX_WRAP(a, +, b). */
#define SX_WRAP(a, op, b) ((int64_t)((uint64_t)(a)op(uint64_t)(b)))

/* Host bytes of the tensor's dtype <-> its carrier. */
void sx_host_load(const sx_host_tensor *t, const void *bytes);
void sx_host_store(const sx_host_tensor *t, void *bytes);
/* Rounds each element to a value of the dtype, in its carrier. */
void sx_host_round(const sx_host_tensor *t);
/* One numeric or bool element of `dtype` as a double, and back (rounded, wrapped). */
double sx_host_load_element(sx_dtype dtype, const void *bytes);
void sx_host_store_element(sx_dtype dtype, double value, void *bytes);

/* Runs op->host with every tensor in its carrier, including moved ones, and rounds the outputs;
 * `keep_double` leaves floats in double. */
SX_MUST_USE sx_status sx_host_run_carried(const sx_op_def *op, const void *attrs,
                                          const sx_host_tensor *in, int n_in,
                                          const sx_host_tensor *out, int n_out, sx_arena *arena,
                                          bool keep_double);
/* The same, with a token for kernels that loop. */
SX_MUST_USE sx_status sx_host_run_carried_within(const sx_op_def *op, const void *attrs,
                                                 const sx_host_tensor *in, int n_in,
                                                 const sx_host_tensor *out, int n_out,
                                                 sx_arena *arena, bool keep_double,
                                                 const sx_cancel *cancel);
/* Runs op->host on tensors of their own dtypes. out[k].type is set, and out[k].data has room for
 * it. `scratch`: sx_host_scratch_bytes() of memory for the carriers, aligned to 16. */
SX_MUST_USE sx_status sx_host_run(const sx_op_def *op, const void *attrs, const sx_tensor *in,
                                  int n_in, const sx_tensor *out, int n_out, void *scratch,
                                  sx_arena *arena);
SX_MUST_USE sx_status sx_host_run_within(const sx_op_def *op, const void *attrs,
                                         const sx_tensor *in, int n_in, const sx_tensor *out,
                                         int n_out, void *scratch, const sx_host_context *context);
/* op->host_check on these inputs, none of which is carried; *out_bytes is 0 if it has none. */
SX_MUST_USE sx_status sx_host_check(const sx_op_def *op, const void *attrs, const sx_tensor *in,
                                    int n_in, const sx_host_context *context, size_t *out_bytes);
/* The types of the outputs if they depend on the data (op->host_types). The carriers of the inputs
 * are in the context's arena. */
SX_MUST_USE sx_status sx_host_types(const sx_op_def *op, const void *attrs, const sx_tensor *in,
                                    int n_in, sx_type *out_types, int n_out,
                                    const sx_host_context *context);
/* -1 if a shape is not static or the sum overflows. */
int64_t sx_host_scratch_bytes(const sx_op_def *op, const sx_type *in, int n_in, const sx_type *out,
                              int n_out);

/* ---- For kernels ---- */

/* Element k of a numeric or bool tensor in its carrier, as a double and from one (saturating). */
double sx_host_get(const sx_host_tensor *t, int64_t k);
void sx_host_set(const sx_host_tensor *t, int64_t k, double value);
/* Sets every element to `value`, in the output's carrier or, if the operator moves elements, in its
 * bytes; strings become empty. */
void sx_host_fill(const sx_kernel_call *c, int output, double value);
/* Copies `count` moved elements. */
void sx_host_move(const sx_kernel_call *c, int64_t to, int input, int64_t from, int64_t count);

/* The first elements of a tensor in its carrier, at most `most`: "1 2 3 ..."; strings as UTF-8. */
void sx_host_print(const sx_host_tensor *t, int64_t most, sx_buf *out);

/* BODY(type, field) for the carrier of a numeric dtype. */
#define SX_HOST_BY_NUMBER(dtype, BODY)        \
    switch (sx_carrier_of(dtype)) {           \
    case SX_CARRIER_F:                        \
        BODY(double, f);                      \
        break;                                \
    case SX_CARRIER_U:                        \
        BODY(uint64_t, u);                    \
        break;                                \
    default: /* infer has accepted numbers */ \
        BODY(int64_t, i);                     \
        break;                                \
    }

#endif
