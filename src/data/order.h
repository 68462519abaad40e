/* The order of records: which record is at which position. Pure arithmetic, without data.
 *
 *   position in the output, epoch  --at()-->  position in the input, epoch
 *
 * An iterator walks from the last node to the source; the epoch starts at 0 and is set by repeat.
 *
 * The keyed permutation is a Feistel network with unequal halves over the smallest power of two
 * that is at least the count, applied until the result is in range (cycle walking: Black and
 * Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002). Fewer than two walks on average,
 * no memory. Round keys are Threefry of (seed, epoch); the round function is a multiply-xorshift
 * mixer. */
#ifndef SX_DATA_ORDER_H
#define SX_DATA_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include <sextant/status.h>

enum { SX_PERMUTATION_ROUNDS = 8 };

typedef struct sx_permutation {
    int64_t count;
    int left_bits, right_bits; /* of the domain, 2^(left + right) >= count */
    uint32_t keys[SX_PERMUTATION_ROUNDS];
} sx_permutation;

void sx_permutation_init(sx_permutation *permutation, int64_t count, uint64_t seed, uint64_t epoch);
/* A bijection of [0, count). */
int64_t sx_permutation_at(const sx_permutation *permutation, int64_t position);

typedef struct sx_order_op sx_order_op;

/* The state of an order node while iterating: the tables of one epoch. */
typedef struct sx_order_state {
    bool ready;
    uint64_t epoch;
    sx_permutation permutation;
    uint32_t *table; /* [in_count] of a buffer shuffle; NULL before the first use */
} sx_order_state;

typedef struct sx_order_def {
    const char *name;
    sx_status (*at)(const sx_order_op *op, sx_order_state *state, uint64_t *epoch,
                    int64_t *position);
} sx_order_def;

struct sx_order_op {
    const sx_order_def *def;
    int64_t in_count;
    int64_t a,
        b; /* take: count; skip: count; shard: shards, index; repeat: times; shuffle: buffer */
    uint64_t seed;
    bool same_each_epoch;
};

extern const sx_order_def sx_order_permute, sx_order_buffer, sx_order_take, sx_order_skip,
    sx_order_shard, sx_order_repeat;

void sx_order_state_deinit(sx_order_state *state);

#endif
