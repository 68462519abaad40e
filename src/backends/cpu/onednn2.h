/* oneDNN 2.x behind our own words: the only file that knows its interface (reliability.md, T8); a
 * oneDNN 3 would be another file with this header.
 *
 * Primitives are made for one thread and run on our workers, one shard each; OpenMP's team belongs
 * to the thread that calls, so each of our threads keeps it at one (sx_dnn_enter). Activations are
 * plain NHWC, filters plain HWIO: measured, brgemm convolutions over NHWC are as fast as blocked
 * ones (README), and nothing has to be reordered but the filter, into scratch, once for each call.
 *
 * A primitive is immutable; what one call of it at a time needs is a slot. */
#ifndef SX_BACKENDS_CPU_ONEDNN2_H
#define SX_BACKENDS_CPU_ONEDNN2_H

#include <sextant/types.h>

#include "graph/ops/conv_geometry.h"

/* Caps the OpenMP team of the calling thread; returns what it was, for sx_dnn_leave(). */
int sx_dnn_enter(int team);
void sx_dnn_leave(int before);
/* What decides which of its kernels run, and so the bits of their results: "onednn:2.6.3
 * isa:avx512_core_bf16 caches:48K/1,1024K/1,32768K/2". */
void sx_dnn_numerics(char *text, size_t size);

typedef enum sx_dnn_conv_kind {
    SX_DNN_FORWARD,         /* dst = act(conv(src, filter) + bias) */
    SX_DNN_BACKWARD_DATA,   /* src = gradient from dst, filter */
    SX_DNN_BACKWARD_FILTER, /* filter, bias = gradients from src, dst */
} sx_dnn_conv_kind;

typedef struct sx_dnn_conv_spec {
    sx_dnn_conv_kind kind;
    sx_conv_geometry geometry; /* static */
    bool bias, relu;
    bool bf16; /* images that are read are bfloat16; what is written, filter and bias are float32 */
    int team;
} sx_dnn_conv_spec;

/* Does this processor multiply bfloat16 (AVX512_BF16, AMX)? */
bool sx_dnn_has_bf16(void);

typedef struct sx_dnn_conv sx_dnn_conv;
/* UNIMPLEMENTED when oneDNN has nothing better than its reference loops. */
SX_MUST_USE sx_status sx_dnn_conv_create(const sx_dnn_conv_spec *spec, sx_dnn_conv **out);
void sx_dnn_conv_destroy(sx_dnn_conv *conv); /* NULL is fine */
int64_t sx_dnn_conv_scratch_bytes(const sx_dnn_conv *conv);
const char *sx_dnn_conv_name(const sx_dnn_conv *conv); /* "brgconv:avx512_core" */

/* Streams and handles of memory, for one call at a time; destroyed before the primitive. */
typedef struct sx_dnn_slot sx_dnn_slot;
SX_MUST_USE sx_status sx_dnn_slot_create(const sx_dnn_conv *conv, sx_dnn_slot **out);
void sx_dnn_slot_destroy(sx_dnn_slot *slot); /* NULL is fine */

/* f32 (but see spec.bf16); src, dst NHWC, filter HWIO, bias may be NULL. What the kind computes is
 * written. */
void sx_dnn_conv_run(const sx_dnn_conv *conv, const sx_dnn_slot *slot, void *src, void *filter,
                     void *bias, void *dst, void *scratch);

/* c[m,n] = a[m,k] b[k,n], row-major; ta: a is [k,m], tb: b is [n,k]. beta 0 or 1: added to c. */
void sx_dnn_gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float *a, const float *b,
                 float beta, float *c);

#endif
