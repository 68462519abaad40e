/* random_values and random_integers of four bytes: LANES counters at a time, in vector loops. To
 * the bit the numbers of the host kernels, whose formulas these are. */
#include <string.h>

#include "backends/cpu/typed/typed.h"
#include "base/checked.h"
#include "graph/ops/attrs.h"
#include "graph/ops/random_stream.h"

enum { LANES = 64, WORDS = 4 * LANES };

/* The words of LANES counters from the stream's on, in order. */
static void draw(sx_philox_stream *s, uint32_t words[WORDS])
{
    uint32_t x[4][LANES], k0 = s->key[0], k1 = s->key[1];
    for (int i = 0; i < LANES; i++) {
        sx_philox_stream at = *s;
        sx_philox_skip(&at, (uint64_t)i);
        for (int j = 0; j < 4; j++) {
            x[j][i] = at.counter[j];
        }
    }
    for (int round = 0; round < SX_PHILOX_ROUNDS; round++) {
        for (int i = 0; i < LANES; i++) {
            const uint64_t a = (uint64_t)SX_PHILOX_A * x[0][i], b = (uint64_t)SX_PHILOX_B * x[2][i];
            x[0][i] = (uint32_t)(b >> 32) ^ x[1][i] ^ k0;
            x[1][i] = (uint32_t)b;
            x[2][i] = (uint32_t)(a >> 32) ^ x[3][i] ^ k1;
            x[3][i] = (uint32_t)a;
        }
        k0 += SX_PHILOX_RAISE_A;
        k1 += SX_PHILOX_RAISE_B;
    }
    for (int i = 0; i < LANES; i++) {
        for (int j = 0; j < 4; j++) {
            words[4 * i + j] = x[j][i];
        }
    }
    sx_philox_skip(s, LANES);
}

/* The stream of the operands, through the host kernels' own check. */
static sx_status open(const sx_typed_call *c, sx_philox_stream *out)
{
    int64_t alg = 0;
    const sx_host_tensor in[4] = {
        {.type = c->in[0].type},
        {.type = c->in[1].type, .data = c->in[1].data},
        {.type = c->in[2].type, .data = c->in[2].data},
        {.type = c->in[3].type, .data = &alg},
    };
    sx_host_load(&in[3], c->in[3].data);
    return sx_random_open(&(sx_kernel_call){.in = in, .n_in = 4}, out);
}

static bool is_stream(const sx_tensor *in)
{
    return in[1].type.dtype == SX_U64 && in[1].type.rank == 1 && in[2].type.dtype == SX_U64 &&
           in[2].type.rank == 1 && in[3].type.rank == 0;
}

static bool takes_values(const void *attrs, const sx_tensor *in)
{
    const sx_random_values_attrs *a = attrs;
    return is_stream(in) && sx_dtype_bytes(a->dtype) == 4 &&
           a->distribution != SX_VALUES_TRUNCATED_NORMAL;
}

static sx_status run_values(const sx_typed_call *c)
{
    const sx_random_values_attrs *attrs = c->attrs;
    const int64_t n = sx_type_elems(&c->out[0].type);
    sx_philox_stream s;
    SX_TRY(open(c, &s));
    for (int64_t i = 0; i < n; i += WORDS) {
        const int count = (int)SX_MIN(n - i, (int64_t)WORDS);
        uint32_t words[WORDS];
        if (i % (1 << 16) == 0) {
            SX_TRY(sx_cancel_check(c->context->cancel));
        }
        draw(&s, words);
        if (attrs->distribution == SX_VALUES_BITS) {
            memcpy((uint32_t *)c->out[0].data + i, words, (size_t)count * sizeof(words[0]));
        } else if (attrs->distribution == SX_VALUES_UNIFORM) {
            float *y = (float *)c->out[0].data + i;
            for (int k = 0; k < count; k++) {
                y[k] = (float)(int32_t)(words[k] & 0x7fffff) * 0x1p-23F;
            }
        } else {
            float *y = (float *)c->out[0].data + i;
            for (int k = 0; k < count; k += 2) {
                double pair[2];
                sx_random_normal_floats(&words[k], pair);
                y[k] = (float)pair[0];
                if (k + 1 < count) {
                    y[k + 1] = (float)pair[1];
                }
            }
        }
    }
    return SX_OK;
}

static bool takes_integers(const void *attrs, const sx_tensor *in)
{
    (void)attrs;
    return is_stream(in) && sx_dtype_bytes(in[4].type.dtype) == 4;
}

static sx_status run_integers(const sx_typed_call *c)
{
    const int64_t n = sx_type_elems(&c->out[0].type);
    const bool is_signed = c->out[0].type.dtype == SX_I32;
    uint32_t low, high;
    sx_philox_stream s;
    SX_TRY(open(c, &s));
    memcpy(&low, c->in[4].data, sizeof(low));
    memcpy(&high, c->in[5].data, sizeof(high));
    const int64_t least = is_signed ? (int64_t)(int32_t)low : (int64_t)low;
    const int64_t end = is_signed ? (int64_t)(int32_t)high : (int64_t)high;
    if (n > 0 && least >= end) {
        return sx_error(SX_INVALID_ARGUMENT, "minval %lld is not below maxval %lld",
                        (long long)least, (long long)end);
    }
    const uint32_t range = high - low; /* below 2^32: minval is below maxval */
    uint32_t *y = c->out[0].data;
    for (int64_t i = 0; i < n; i += WORDS) {
        const int count = (int)SX_MIN(n - i, (int64_t)WORDS);
        uint32_t words[WORDS];
        if (i % (1 << 16) == 0) {
            SX_TRY(sx_cancel_check(c->context->cancel));
        }
        draw(&s, words);
        for (int k = 0; k < count; k++) {
            y[i + k] = low + words[k] % range;
        }
    }
    return SX_OK;
}

const sx_typed_kernel sx_typed_random_values = {
    .op = SX_OPID_random_values, .sizes = 1U << 0, .takes = takes_values, .run = run_values};
const sx_typed_kernel sx_typed_random_integers = {
    .op = SX_OPID_random_integers, .sizes = 1U << 0, .takes = takes_integers, .run = run_integers};
