/* What the operators share that draw from a stream of Philox numbers, as TensorFlow's do:
 *
 *   random(shape, key, counter, alg, ...)
 *
 *   shape    int32 or int64 [rank]
 *   key      uint64[1]
 *   counter  uint64[2], lowest word first
 *   alg      int32 or int64, a scalar: 1 (Philox), or 3 (the device's choice, which is Philox) */
#ifndef SX_GRAPH_OPS_RANDOM_STREAM_H
#define SX_GRAPH_OPS_RANDOM_STREAM_H

#include "base/philox.h"
#include "graph/ops/host_ops.h"

/* The key and the first counter that TensorFlow's stateless operators make of a seed. */
void sx_random_seed(uint64_t seed0, uint64_t seed1, sx_philox_stream *out);

/* Checks the four operands; the output has `dtype`, and the rank that `shape` tells. */
SX_MUST_USE sx_status sx_random_infer(sx_infer_context *c, sx_dtype dtype);
/* The output's type where it runs: its shape ends with that of the parameters, of which each
 * element has the same number of draws; `whose` names it: "alpha's". INVALID_ARGUMENT. */
SX_MUST_USE sx_status sx_random_shaped_type(const sx_kernel_call *c, sx_dtype dtype,
                                            const sx_type *parameters, const char *whose,
                                            sx_type *out);
/* UNIMPLEMENTED: an algorithm that is not Philox. */
SX_MUST_USE sx_status sx_random_open(const sx_kernel_call *c, sx_philox_stream *out);

/* The words of a stream one by one. Starts zeroed, but for the stream. */
typedef struct sx_random_words {
    sx_philox_stream stream;
    uint32_t words[4];
    int used; /* of `words`; 0 also before the first four are drawn */
} sx_random_words;
uint32_t sx_random_word(sx_random_words *r);
/* A number below n, all equally likely, of words of 32 or 64 bits. */
uint64_t sx_random_below(sx_random_words *r, uint64_t n, bool wide);

/* Numbers in [0, 1): of 23 bits, and of 52 bits from two words. */
double sx_random_float(uint32_t word);
double sx_random_double(uint32_t first, uint32_t second);
/* Box and Muller's pair of the two words, computed in float32, and of the four, in double:
 *     r sin t, r cos t   with r = sqrt(-2 log max(u, 1e-7)), t = 2 pi v */
void sx_random_normal_floats(const uint32_t words[2], double out[2]);
void sx_random_normal_doubles(const uint32_t words[4], double out[2]);

/* Pairs of uniform or normal doubles, of which the second is used first. Starts zeroed, but for the
 * stream. */
typedef struct sx_random_pairs {
    sx_philox_stream *stream;
    double v[2];
    int left;
} sx_random_pairs;
double sx_random_next_uniform(sx_random_pairs *p);
double sx_random_next_normal(sx_random_pairs *p);

#endif
