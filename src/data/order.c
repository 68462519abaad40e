#include "data/order.h"

#include <string.h>

#include "base/memory.h"
#include "base/threefry.h"

/* ---- The keyed permutation ---- */

static sx_u32x2 words(uint64_t x)
{
    return (sx_u32x2){(uint32_t)x, (uint32_t)(x >> 32)};
}

/* The key of one epoch: Threefry of its number under the seed. */
static sx_u32x2 epoch_key(uint64_t seed, uint64_t epoch)
{
    return sx_threefry2x32(words(seed), words(epoch));
}

void sx_permutation_init(sx_permutation *permutation, int64_t count, uint64_t seed, uint64_t epoch)
{
    int bits = 2;
    while (bits < 62 && ((int64_t)1 << bits) < count) {
        bits++;
    }
    permutation->count = count;
    permutation->left_bits = bits / 2;
    permutation->right_bits = bits - bits / 2;
    sx_u32x2 key = epoch_key(seed, epoch);
    for (uint32_t i = 0; i < SX_PERMUTATION_ROUNDS; i += 2) {
        sx_u32x2 pair = sx_threefry2x32(key, (sx_u32x2){i, 0});
        permutation->keys[i] = pair.a;
        permutation->keys[i + 1] = pair.b;
    }
}

/* A keyed mixing function of 32 bits: the finalizer of MurmurHash3 (public domain constants) around
 * the key. */
static uint32_t mix(uint32_t x, uint32_t key)
{
    x = (x ^ key) * 0x85EBCA6Bu;
    x = (x ^ (x >> 13)) * 0xC2B2AE35u;
    x ^= x >> 16;
    x = (x + key) * 0x9E3779B1u;
    return x ^ (x >> 15);
}

/* One pass over the domain [0, 2^(l+r)): alternately l ^= F(r), r ^= F(l). */
static uint64_t feistel(const sx_permutation *p, uint64_t x)
{
    uint32_t left_mask = (uint32_t)(((uint64_t)1 << p->left_bits) - 1);
    uint32_t right_mask = (uint32_t)(((uint64_t)1 << p->right_bits) - 1);
    uint32_t left = (uint32_t)(x >> p->right_bits), right = (uint32_t)x & right_mask;
    for (int i = 0; i < SX_PERMUTATION_ROUNDS; i += 2) {
        left ^= mix(right, p->keys[i]) & left_mask;
        right ^= mix(left, p->keys[i + 1]) & right_mask;
    }
    return (uint64_t)left << p->right_bits | right;
}

int64_t sx_permutation_at(const sx_permutation *permutation, int64_t position)
{
    uint64_t x = (uint64_t)position;
    do {
        x = feistel(permutation, x);
    } while (x >= (uint64_t)permutation->count);
    return (int64_t)x;
}

static sx_status permute_at(const sx_order_op *op, sx_order_state *state, uint64_t *epoch,
                            int64_t *position)
{
    uint64_t e = op->same_each_epoch ? 0 : *epoch;
    if (!state->ready || state->epoch != e) {
        sx_permutation_init(&state->permutation, op->in_count, op->seed, e);
        state->epoch = e;
        state->ready = true;
    }
    *position = sx_permutation_at(&state->permutation, *position);
    return SX_OK;
}

/* ---- tf.data's shuffle: a buffer of `a` elements, each output drawn from it, its place refilled
 * ---- */

static uint32_t draw_below(sx_u32x2 key, uint32_t counter, uint32_t n)
{
    sx_u32x2 bits = sx_threefry2x32(key, (sx_u32x2){counter, 1});
    return (uint32_t)(((uint64_t)bits.a * n) >> 32);
}

/* The order of the whole epoch is computed at its start; one uint32 per element. */
static void fill_buffer_table(const sx_order_op *op, uint64_t epoch, uint32_t *table)
{
    sx_u32x2 key = epoch_key(op->seed, epoch);
    uint32_t n = (uint32_t)op->in_count;
    uint32_t buffer = op->a < op->in_count ? (uint32_t)op->a : n;
    for (uint32_t i = 0; i < n; i++) {
        table[i] = i;
    }
    /* table[i .. i + buffer) is the buffer when output i is drawn: elements that are not drawn move
     * on; the next element to enter is the one just after it. */
    for (uint32_t i = 0; i < n; i++) {
        uint32_t filled = buffer < n - i ? buffer : n - i;
        uint32_t j = i + draw_below(key, i, filled);
        uint32_t drawn = table[j];
        table[j] = table[i];
        table[i] = drawn;
    }
}

static sx_status buffer_at(const sx_order_op *op, sx_order_state *state, uint64_t *epoch,
                           int64_t *position)
{
    uint64_t e = op->same_each_epoch ? 0 : *epoch;
    if (state->table == NULL) {
        state->table = sx_alloc((size_t)op->in_count, sizeof(*state->table));
        if (state->table == NULL) {
            return sx_no_memory("shuffling %lld elements", (long long)op->in_count);
        }
    }
    if (!state->ready || state->epoch != e) {
        fill_buffer_table(op, e, state->table);
        state->epoch = e;
        state->ready = true;
    }
    *position = state->table[*position];
    return SX_OK;
}

/* ---- The rest ---- */

static sx_status take_at(const sx_order_op *op, sx_order_state *state, uint64_t *epoch,
                         int64_t *position)
{
    (void)op, (void)state, (void)epoch, (void)position;
    return SX_OK;
}

static sx_status skip_at(const sx_order_op *op, sx_order_state *state, uint64_t *epoch,
                         int64_t *position)
{
    (void)state, (void)epoch;
    *position += op->a;
    return SX_OK;
}

static sx_status shard_at(const sx_order_op *op, sx_order_state *state, uint64_t *epoch,
                          int64_t *position)
{
    (void)state, (void)epoch;
    *position = *position * op->a + op->b;
    return SX_OK;
}

/* a = times, 0 = endless. Nested repeats number their epochs like nested loops. */
static sx_status repeat_at(const sx_order_op *op, sx_order_state *state, uint64_t *epoch,
                           int64_t *position)
{
    (void)state;
    *epoch = *epoch * (uint64_t)(op->a == 0 ? 1 : op->a) + (uint64_t)(*position / op->in_count);
    *position %= op->in_count;
    return SX_OK;
}

const sx_order_def sx_order_permute = {"shuffle", permute_at};
const sx_order_def sx_order_buffer = {"shuffle-buffer", buffer_at};
const sx_order_def sx_order_take = {"take", take_at};
const sx_order_def sx_order_skip = {"skip", skip_at};
const sx_order_def sx_order_shard = {"shard", shard_at};
const sx_order_def sx_order_repeat = {"repeat", repeat_at};

void sx_order_state_deinit(sx_order_state *state)
{
    sx_free(state->table);
    memset(state, 0, sizeof(*state));
}
