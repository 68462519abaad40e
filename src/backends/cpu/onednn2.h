/* A wrapper of oneDNN 2.x: the only file that uses its interface; oneDNN 3 would be another file
 * with this header.
 *
 * Primitives are created for one thread and run on the pool's workers, one shard each; OpenMP has
 * one team per calling thread, so each worker limits its team to one (sx_dnn_enter). Activations
 * are plain NHWC, filters plain HWIO: measured, brgemm convolutions over NHWC are as fast as
 * blocked ones (README), and only the filter has to be reordered, into scratch, once per call.
 *
 * A primitive is immutable; the state of one call at a time is a slot. */
#ifndef SX_BACKENDS_CPU_ONEDNN2_H
#define SX_BACKENDS_CPU_ONEDNN2_H

#include <sextant/types.h>

#include "graph/ops/conv_geometry.h"

/* Limits the OpenMP team of the calling thread; returns the old limit, for sx_dnn_leave(). */
int sx_dnn_enter(int team);
void sx_dnn_leave(int before);
/* Calls run(user, worker) for each worker of [0, team), on the threads of oneDNN's team, where
 * oneDNN uses one thread. */
void sx_dnn_team_run(int team, void (*run)(void *user, int worker), void *user);
/* Everything that determines which of its kernels run, and so the bits of their results:
 * "onednn:2.6.3 isa:avx512_core_bf16 caches:48K/1,1024K/1,32768K/2". */
void sx_dnn_numerics(char *text, size_t size);

typedef enum sx_dnn_conv_kind {
    SX_DNN_FORWARD,         /* dst = act(conv(src, filter) + bias) */
    SX_DNN_BACKWARD_DATA,   /* src = gradient from dst, filter */
    SX_DNN_BACKWARD_FILTER, /* filter, bias = gradients from src, dst */
} sx_dnn_conv_kind;

typedef enum sx_dnn_act { SX_DNN_PLAIN, SX_DNN_RELU, SX_DNN_RELU6, SX_DNN_SWISH } sx_dnn_act;

/* A forward convolution of integers of 8 bits, src and filter, summed up in 32 bits:
 *
 *     dst = act(scales[o] (conv(src, filter) + bias) + added_step added) / dst_step
 *
 * rounded to the nearest integer that dst's dtype has, if that is one of 8 bits. */
typedef struct sx_dnn_integers {
    sx_dtype src;        /* SX_U8, SX_I8; the filter is SX_I8 */
    sx_dtype dst;        /* SX_U8, SX_I8, SX_F32, */
    sx_dtype added;      /* and that of what is added, as wide as dst */
    const float *scales; /* [filters]; read while the primitive is created */
    float added_step, dst_step;
} sx_dnn_integers;

typedef struct sx_dnn_conv_spec {
    sx_dnn_conv_kind kind;
    sx_conv_geometry geometry; /* static */
    bool bias;
    /* forward: dst = act(conv(src, filter) + bias + added), added in the form of dst. Best if it is
     * dst: for an image elsewhere 2.6 has slower 1x1 kernels (bench/README.md), so it is copied. */
    bool add;
    sx_dnn_act act;
    bool bf16;        /* images that are read are bfloat16; results, filter and bias are float32, */
    bool bf16_result; /* with bf16, but an image that is the result is bfloat16, too */
    bool bf16_filter; /* a filter that is read lies there as bfloat16, with or without bf16 */
    const sx_dnn_integers *integers; /* NULL: of floats */
    int team;
    bool packs_alone; /* the filter is packed by sx_dnn_conv_pack() on a thread among others: that
                         uses no team */
    bool asks; /* only whether oneDNN has it, and how it packs a filter: no machine code is made,
                  and it cannot be run */
} sx_dnn_conv_spec;

/* Whether this processor multiplies bfloat16 faster than float32 (AMX; AVX512_BF16 of most).
 * SEXTANT_CPU_BF16=1 says that every AVX512_BF16 does (tests). */
bool sx_dnn_has_bf16(void);

/* Whether it multiplies tiles of bfloat16 (AMX). */
bool sx_dnn_has_amx(void);

/* Whether this processor multiplies integers of 8 bits and sums them up in 32 bits, in one
 * instruction (VNNI). Without it oneDNN sums up pairs in 16 bits, which do not hold all sums. */
bool sx_dnn_has_int8(void);

typedef struct sx_dnn_conv sx_dnn_conv;
/* UNIMPLEMENTED if oneDNN only has its reference loops. */
SX_MUST_USE sx_status sx_dnn_conv_create(const sx_dnn_conv_spec *spec, sx_dnn_conv **out);
void sx_dnn_conv_destroy(sx_dnn_conv *conv); /* NULL is fine */
/* `packed`: the filter is packed once, not into scratch. */
int64_t sx_dnn_conv_scratch_bytes(const sx_dnn_conv *conv, bool packed);
const char *sx_dnn_conv_name(const sx_dnn_conv *conv); /* "brgconv:avx512_core" */

/* Streams and handles of memory, for one call at a time; destroyed before the primitive. */
typedef struct sx_dnn_slot sx_dnn_slot;
SX_MUST_USE sx_status sx_dnn_slot_create(const sx_dnn_conv *conv, sx_dnn_slot **out);
void sx_dnn_slot_destroy(sx_dnn_slot *slot); /* NULL is fine */

/* f32 (but see spec.bf16*, spec.integers); src, dst NHWC, filter HWIO, bias may be NULL. Writes
 * the results of the kind. */
typedef struct sx_dnn_conv_args {
    void *src, *filter, *bias, *dst, *scratch;
    void *added;  /* spec.add; may be dst */
    void *packed; /* the filter, as sx_dnn_conv_pack() made it; NULL: it is packed into scratch */
    bool alone;   /* a forward convolution made for a team is left to the calling thread: slower,
                     the same bits */
} sx_dnn_conv_args;
void sx_dnn_conv_run(const sx_dnn_conv *conv, const sx_dnn_slot *slot,
                     const sx_dnn_conv_args *args);

/* The bytes of a packed filter; 0: it is read as it lies. Packs it once for many runs. */
int64_t sx_dnn_conv_packed_bytes(const sx_dnn_conv *conv);
SX_MUST_USE sx_status sx_dnn_conv_pack(const sx_dnn_conv *conv, void *filter, void *packed);
/* The same with a slot of the primitive, which no run uses meanwhile. */
void sx_dnn_conv_pack_in(const sx_dnn_conv *conv, const sx_dnn_slot *slot, void *filter,
                         void *packed);

/* Which layout that is: two primitives of equal ones pack a filter to the same bytes. */
uint64_t sx_dnn_conv_layout(const sx_dnn_conv *conv);

/* Packs a filter for a primitive in pieces, several threads at once; needs the primitive only while
 * it is created. */
typedef struct sx_dnn_packer sx_dnn_packer;
SX_MUST_USE sx_status sx_dnn_packer_create(const sx_dnn_conv *conv, sx_dnn_packer **out);
void sx_dnn_packer_destroy(sx_dnn_packer *packer); /* NULL is fine */
int64_t sx_dnn_packer_pieces(const sx_dnn_packer *packer);
/* For one call at a time. */
SX_MUST_USE sx_status sx_dnn_packer_slot(const sx_dnn_packer *packer, sx_dnn_slot **out);
/* Pieces [begin, end). */
void sx_dnn_packer_run(const sx_dnn_packer *packer, const sx_dnn_slot *slot, void *filter,
                       void *packed, int64_t begin, int64_t end);

/* c[m,n] = a[m,k] b[k,n], row-major; ta: a is [k,m], tb: b is [n,k]. beta 0 or 1: added to c. */
void sx_dnn_gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float *a, const float *b,
                 float beta, float *c);
typedef struct sx_dnn_product {
    bool ta, tb;
    int64_t m, n, k;
    const float *a, *b;
    const float *alpha; /* a factor of the product; NULL: 1 */
    float beta;
    float *c;
    int64_t a_row, b_row, c_row; /* elements from a row, as it lies there, to the next; 0: as many
                                    as it has */
} sx_dnn_product;
/* What divides the rows or columns of a product among threads. GEMM adds up an element in one order
 * or another by how many rows and columns it is given, and so what it is given is a function of the
 * product's shape: `n` pieces of `size`, the last of half that more or less; one where nothing will
 * be divided. */
typedef struct sx_dnn_pieces {
    int64_t of, size, n;
} sx_dnn_pieces;
sx_dnn_pieces sx_dnn_pieces_of(int64_t of, bool divided);
static inline int64_t sx_dnn_piece_elems(const sx_dnn_pieces *p, int64_t i)
{
    return i + 1 == p->n ? p->of - i * p->size : p->size;
}
/* Some rows and columns of c. */
void sx_dnn_gemm_part(const sx_dnn_product *p, int64_t row, int64_t rows, int64_t column,
                      int64_t columns);
/* c[m,n] = a[m,k] b[k,n] of bytes without sign by bytes with sign. */
void sx_dnn_gemm_int8(int64_t m, int64_t n, int64_t k, const uint8_t *a, const int8_t *b,
                      int32_t *c);
/* Makes the machine code of sx_dnn_gemm(), once in a process; else the first product takes that
 * time, some 30 ms. For those who prepare a step that calls it. */
void sx_dnn_gemm_prepare(void);

#endif
