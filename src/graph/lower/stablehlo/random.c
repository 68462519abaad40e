/* Random operators: Threefry and Philox as integer operations. */
#include "graph/lower/stablehlo/rows.h"

#include "base/philox.h"
#include "graph/ops/common.h"

/* Twenty rounds on tensors of uint32, as base/threefry.h; the result is in x. */
static void threefry(sx_hlo_writer *w, const sx_hlo key[2], sx_hlo x[2])
{
    static const int rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
    sx_hlo both = sx_hlo_binary(w, "xor", key[0], key[1]);
    const sx_hlo ks[3] = {key[0], key[1], sx_hlo_with(w, "xor", both, 0x1BD11BDA)};
    x[0] = sx_hlo_binary(w, "add", x[0], ks[0]);
    x[1] = sx_hlo_binary(w, "add", x[1], ks[1]);
    for (int group = 0; group < 5; group++) {
        for (int i = 0; i < 4; i++) {
            int r = rotations[group % 2][i];
            x[0] = sx_hlo_binary(w, "add", x[0], x[1]);
            sx_hlo left = sx_hlo_with(w, "shift_left", x[1], r);
            sx_hlo right = sx_hlo_with(w, "shift_right_logical", x[1], 32 - r);
            x[1] = sx_hlo_binary(w, "xor", sx_hlo_binary(w, "or", left, right), x[0]);
        }
        x[0] = sx_hlo_binary(w, "add", x[0], ks[(group + 1) % 3]);
        x[1] = sx_hlo_binary(w, "add", x[1], ks[(group + 2) % 3]);
        x[1] = sx_hlo_with(w, "add", x[1], group + 1);
    }
}

/* seed[i] ^ mask, for every counter. */
static sx_hlo dropout_key(sx_hlo_writer *w, const sx_hlo_op *op, int i, int64_t mask,
                          const sx_type *counters)
{
    const int64_t begin = i, size = 1;
    const sx_type scalar = sx_scalar_type(SX_U32);
    sx_hlo half = sx_hlo_reshape(w, sx_hlo_slice(w, op->in[1], &begin, &size), &scalar);
    return sx_hlo_broadcast_to(w, sx_hlo_with(w, "xor", half, (double)mask), counters);
}

/* (step mod 2^32, n pairs + j) for counters [n, j]. */
static void dropout_counters(sx_hlo_writer *w, const sx_hlo_op *op, const sx_type *counters,
                             sx_hlo x[2])
{
    double pairs = (double)counters->dims[1];
    sx_hlo step = sx_hlo_with(w, "and", op->in[2], (double)UINT32_MAX);
    sx_hlo n = sx_hlo_iota(w, *counters, 0);
    if (op->n_in > 3) {
        n = sx_hlo_binary(w, "add", n, sx_hlo_broadcast_to(w, op->in[3], counters));
    }
    x[0] = sx_hlo_broadcast_to(w, sx_hlo_convert(w, step, SX_U32), counters);
    x[1] =
        sx_hlo_binary(w, "add", sx_hlo_with(w, "multiply", n, pairs), sx_hlo_iota(w, *counters, 1));
}

/* Both words of each counter, side by side: one for each element of x. */
static sx_hlo dropout_words(sx_hlo_writer *w, const sx_hlo_op *op, int64_t examples, int64_t elems)
{
    const sx_dropout_attrs *attrs = op->attrs;
    int64_t pairs = (elems + 1) / 2;
    const sx_type counters = sx_type_of(SX_U32, examples, pairs);
    const sx_type column = sx_type_of(SX_U32, examples, pairs, 1);
    const sx_type rows = sx_type_of(SX_U32, examples, 2 * pairs);
    const int64_t begin[2] = {0, 0}, size[2] = {examples, elems};
    const sx_hlo key[2] = {dropout_key(w, op, 0, attrs->key_lo, &counters),
                           dropout_key(w, op, 1, attrs->key_hi, &counters)};
    sx_hlo x[2];
    dropout_counters(w, op, &counters, x);
    threefry(w, key, x);
    x[0] = sx_hlo_reshape(w, x[0], &column);
    x[1] = sx_hlo_reshape(w, x[1], &column);
    sx_hlo words = sx_hlo_reshape(w, sx_hlo_concat(w, x, 2, 2), &rows);
    return sx_hlo_reshape(w, sx_hlo_slice(w, words, begin, size), &op->in_types[0]);
}

void sx_hlo_lower_dropout(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_dropout_attrs *attrs = op->attrs;
    const sx_type *type = &op->in_types[0];
    int64_t n = sx_type_elems(type), examples = type->rank == 0 ? 1 : type->dims[0];
    if (n == 0 || attrs->rate == 0) {
        op->out[0] = op->in[0];
        return;
    }
    sx_hlo words = dropout_words(w, op, examples, n / examples);
    sx_hlo threshold = sx_hlo_like(w, words, floor(attrs->rate * 0x1p32));
    sx_hlo kept = sx_hlo_compare(w, "GE", words, threshold);
    sx_hlo scaled = sx_hlo_with(w, "multiply", sx_hlo_widen(w, op->in[0]), 1 / (1 - attrs->rate));
    scaled = sx_hlo_convert(w, scaled, type->dtype);
    op->out[0] = sx_hlo_select(w, kept, scaled, sx_hlo_like(w, scaled, 0));
}

/* The rounds of base/philox.h on tensors of uint32; the result is in x. */
static void philox(sx_hlo_writer *w, const sx_hlo key[2], sx_hlo x[4])
{
    sx_hlo k[2] = {key[0], key[1]};
    for (int round = 0; round < SX_PHILOX_ROUNDS; round++) {
        sx_hlo a = sx_hlo_with(w, "multiply", sx_hlo_convert(w, x[0], SX_U64), SX_PHILOX_A);
        sx_hlo b = sx_hlo_with(w, "multiply", sx_hlo_convert(w, x[2], SX_U64), SX_PHILOX_B);
        sx_hlo high[2] = {sx_hlo_with(w, "shift_right_logical", a, 32),
                          sx_hlo_with(w, "shift_right_logical", b, 32)};
        high[0] = sx_hlo_convert(w, high[0], SX_U32);
        high[1] = sx_hlo_convert(w, high[1], SX_U32);
        x[0] = sx_hlo_binary(w, "xor", sx_hlo_binary(w, "xor", high[1], x[1]), k[0]);
        x[2] = sx_hlo_binary(w, "xor", sx_hlo_binary(w, "xor", high[0], x[3]), k[1]);
        x[1] = sx_hlo_convert(w, sx_hlo_with(w, "and", b, 4294967295.0), SX_U32);
        x[3] = sx_hlo_convert(w, sx_hlo_with(w, "and", a, 4294967295.0), SX_U32);
        k[0] = sx_hlo_with(w, "add", k[0], SX_PHILOX_RAISE_A);
        k[1] = sx_hlo_with(w, "add", k[1], SX_PHILOX_RAISE_B);
    }
}

/* The counter of each element of a part of the batch, and which of its words the element is. */
static sx_hlo counters_of_part(sx_hlo_writer *w, const sx_hlo_op *op, sx_hlo x[2])
{
    const sx_type *y = &op->out_types[0], places = sx_type_of(SX_U64, sx_type_elems(y));
    sx_hlo first = sx_hlo_with(w, "multiply", sx_hlo_convert(w, op->in[1], SX_U64),
                               (double)sx_dims_product(y, 1, y->rank));
    sx_hlo at =
        sx_hlo_binary(w, "add", sx_hlo_broadcast_to(w, first, &places), sx_hlo_iota(w, places, 0));
    sx_hlo counter = sx_hlo_with(w, "shift_right_logical", at, 2);
    x[0] = sx_hlo_convert(w, sx_hlo_with(w, "and", counter, 4294967295.0), SX_U32);
    x[1] = sx_hlo_convert(w, sx_hlo_with(w, "shift_right_logical", counter, 32), SX_U32);
    return sx_hlo_with(w, "and", at, 3);
}

void sx_hlo_lower_stateless_random(sx_hlo_writer *w, const sx_hlo_op *op)
{
    static const uint32_t scrambler[2] = SX_PHILOX_SCRAMBLER;
    static const double two_pi = 6.283185307179586;
    const sx_stateless_random_attrs *attrs = op->attrs;
    const sx_type scalar = sx_scalar_type(SX_U32), *y = &op->out_types[0];
    const bool part = op->n_in > 1;
    const int64_t n = sx_type_elems(y), groups = part ? n : (n + 3) / 4;
    sx_type column = sx_type_of(SX_U32, groups, 1), counters = sx_type_of(SX_U32, groups);
    sx_hlo x[4], u[4], seed = sx_hlo_convert(w, sx_hlo_convert(w, op->in[0], SX_I64), SX_U64);
    if (n == 0) {
        op->out[0] = sx_hlo_splat(w, *y, 0);
        return;
    }
    for (int k = 0; k < 4; k++) {
        const int64_t begin = k / 2, size = 1;
        sx_hlo word = sx_hlo_slice(w, seed, &begin, &size);
        word = k % 2 == 0 ? sx_hlo_with(w, "and", word, 4294967295.0)
                          : sx_hlo_with(w, "shift_right_logical", word, 32);
        x[k] = sx_hlo_reshape(w, sx_hlo_convert(w, word, SX_U32), &scalar);
    }
    const sx_hlo start[2] = {sx_hlo_scalar(w, SX_U32, scrambler[0]),
                             sx_hlo_scalar(w, SX_U32, scrambler[1])};
    philox(w, start, x);
    const sx_hlo key[2] = {sx_hlo_broadcast_to(w, x[0], &counters),
                           sx_hlo_broadcast_to(w, x[1], &counters)};
    sx_hlo word = seed;
    if (part) {
        word = counters_of_part(w, op, x);
    } else {
        x[0] = sx_hlo_iota(w, counters, 0);
        x[1] = sx_hlo_like(w, x[0], 0);
    }
    x[2] = sx_hlo_broadcast_to(w, x[2], &counters);
    x[3] = sx_hlo_broadcast_to(w, x[3], &counters);
    philox(w, key, x);
    for (int k = 0; k < 4; k++) {
        sx_hlo bits = sx_hlo_with(w, "and", x[k], 0x7fffff);
        u[k] = sx_hlo_with(w, "multiply", sx_hlo_convert(w, bits, SX_F32), 0x1p-23);
    }
    for (int k = 0; k < 4 && attrs->distribution == SX_RANDOM_NORMAL; k += 2) {
        sx_hlo least = sx_hlo_binary(w, "maximum", u[k], sx_hlo_like(w, u[k], (double)1e-7f));
        sx_hlo r = sx_hlo_with(w, "multiply", sx_hlo_unary(w, "log", least), -2);
        r = sx_hlo_unary(w, "sqrt", r);
        sx_hlo t = sx_hlo_with(w, "multiply", u[k + 1], two_pi);
        u[k] = sx_hlo_binary(w, "multiply", r, sx_hlo_unary(w, "sine", t));
        u[k + 1] = sx_hlo_binary(w, "multiply", r, sx_hlo_unary(w, "cosine", t));
    }
    if (part) {
        for (int k = 1; k < 4; k++) {
            sx_hlo is_word = sx_hlo_compare(w, "EQ", word, sx_hlo_like(w, word, k));
            u[0] = sx_hlo_select(w, is_word, u[k], u[0]);
        }
        op->out[0] = sx_hlo_reshape(w, u[0], y);
        return;
    }
    for (int k = 0; k < 4; k++) {
        u[k] = sx_hlo_reshape(w, u[k], &column);
    }
    const int64_t begin = 0;
    const sx_type all = sx_type_of(SX_F32, 4 * groups);
    sx_hlo words = sx_hlo_reshape(w, sx_hlo_concat(w, u, 4, 1), &all);
    op->out[0] = sx_hlo_reshape(w, sx_hlo_slice(w, words, &begin, &n), y);
}
