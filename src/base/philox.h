/* Philox-4x32-10, TensorFlow's counter-based generator.
 *
 *   x[4] = philox(key, counter)     10 rounds of two 32-bit products and xors
 *
 * Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11; the
 * same function as tensorflow/core/lib/random/philox_random.h. */
#ifndef SX_BASE_PHILOX_H
#define SX_BASE_PHILOX_H

#include <stdint.h>

enum { SX_PHILOX_ROUNDS = 10 };
#define SX_PHILOX_A       0xD2511F53u /* of counter words 0 */
#define SX_PHILOX_B       0xCD9E8D57u /* and 2 */
#define SX_PHILOX_RAISE_A 0x9E3779B9u
#define SX_PHILOX_RAISE_B 0xBB67AE85u
/* The key that mixes the seed of TensorFlow's stateless operators. */
#define SX_PHILOX_SCRAMBLER    \
    {                          \
        0x3ec8f720, 0x02461e29 \
    }

static inline void sx_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4])
{
    uint32_t k0 = key[0], k1 = key[1];
    uint32_t x0 = counter[0], x1 = counter[1], x2 = counter[2], x3 = counter[3];
    for (int round = 0; round < SX_PHILOX_ROUNDS; round++) {
        const uint64_t a = (uint64_t)SX_PHILOX_A * x0, b = (uint64_t)SX_PHILOX_B * x2;
        x0 = (uint32_t)(b >> 32) ^ x1 ^ k0;
        x1 = (uint32_t)b;
        x2 = (uint32_t)(a >> 32) ^ x3 ^ k1;
        x3 = (uint32_t)a;
        k0 += SX_PHILOX_RAISE_A;
        k1 += SX_PHILOX_RAISE_B;
    }
    out[0] = x0;
    out[1] = x1;
    out[2] = x2;
    out[3] = x3;
}

/* The numbers of a key in turn, from a counter on: one 128-bit number in four words, lowest first.
 */
typedef struct sx_philox_stream {
    uint32_t key[2], counter[4];
} sx_philox_stream;

/* Leaves out `count` times four words. */
static inline void sx_philox_skip(sx_philox_stream *s, uint64_t count)
{
    const uint64_t low = (uint64_t)s->counter[1] << 32 | s->counter[0], sum = low + count;
    uint64_t high = (uint64_t)s->counter[3] << 32 | s->counter[2];
    high += sum < low;
    s->counter[0] = (uint32_t)sum;
    s->counter[1] = (uint32_t)(sum >> 32);
    s->counter[2] = (uint32_t)high;
    s->counter[3] = (uint32_t)(high >> 32);
}

static inline void sx_philox_next(sx_philox_stream *s, uint32_t out[4])
{
    sx_philox(s->key, s->counter, out);
    sx_philox_skip(s, 1);
}

#endif
