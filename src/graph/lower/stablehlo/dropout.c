/* Dropout: Threefry as integer operations. */
#include "graph/lower/stablehlo/rows.h"

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
