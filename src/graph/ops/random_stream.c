/* Shared by the operators that draw from a stream of Philox numbers: see random_stream.h. */
#include "graph/ops/random_stream.h"

#include <math.h>

enum { PHILOX = 1, THE_DEVICES = 3 };

static const double two_pi = 6.283185307179586;

void sx_random_seed(uint64_t seed0, uint64_t seed1, sx_philox_stream *out)
{
    static const uint32_t scrambler[2] = SX_PHILOX_SCRAMBLER;
    const uint32_t seed[4] = {(uint32_t)seed0, (uint32_t)(seed0 >> 32), (uint32_t)seed1,
                              (uint32_t)(seed1 >> 32)};
    uint32_t mixed[4];
    sx_philox(scrambler, seed, mixed);
    *out = (sx_philox_stream){.key = {mixed[0], mixed[1]}, .counter = {0, 0, mixed[2], mixed[3]}};
}

sx_status sx_random_infer(sx_infer_context *c, sx_dtype dtype)
{
    SX_TRY(sx_require_maybe("key", &c->inputs[1], SX_U64, 1, "[1]"));
    SX_TRY(sx_require_maybe("counter", &c->inputs[2], SX_U64, 1, "[2]"));
    SX_TRY(sx_require_integers("alg", &c->inputs[3], 0, "a scalar"));
    return sx_infer_shaped("shape", &c->inputs[0], dtype, &c->outputs[0]);
}

sx_status sx_random_shaped_type(const sx_kernel_call *c, sx_dtype dtype, const sx_type *parameters,
                                const char *whose, sx_type *out)
{
    SX_TRY(sx_shaped_type("shape", &c->in[0], dtype, out));
    bool ends = parameters->rank <= out->rank;
    for (int d = 0; d < parameters->rank && ends; d++) {
        ends = parameters->dims[d] == out->dims[out->rank - parameters->rank + d];
    }
    return ends ? SX_OK
                : sx_error(SX_INVALID_ARGUMENT, "shape %s does not end with %s, %s", SX_TEXT(out),
                           whose, SX_TEXT(parameters));
}

sx_status sx_random_open(const sx_kernel_call *c, sx_philox_stream *out)
{
    const int64_t alg = c->in[3].i[0];
    if (alg != PHILOX && alg != THE_DEVICES) {
        return sx_error(SX_UNIMPLEMENTED,
                        "random number algorithm %lld is not supported, only %d, "
                        "Philox",
                        (long long)alg, PHILOX);
    }
    if (c->in[1].type.dims[0] != 1 || c->in[2].type.dims[0] < 2) {
        return sx_error(SX_INVALID_ARGUMENT, "key is %s and counter %s, expected uint64[1] and [2]",
                        SX_TEXT(&c->in[1].type), SX_TEXT(&c->in[2].type));
    }
    const uint64_t key = c->in[1].u[0], low = c->in[2].u[0], high = c->in[2].u[1];
    *out = (sx_philox_stream){
        .key = {(uint32_t)key, (uint32_t)(key >> 32)},
        .counter = {(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32)}};
    return SX_OK;
}

uint32_t sx_random_word(sx_random_words *r)
{
    if (r->used == 0) {
        sx_philox_next(&r->stream, r->words);
    }
    const uint32_t word = r->words[r->used];
    r->used = (r->used + 1) % 4;
    return word;
}

uint64_t sx_random_below(sx_random_words *r, uint64_t n, bool wide)
{
    const uint64_t most = wide ? UINT64_MAX : UINT32_MAX, rest = most % n + 1;
    for (;;) {
        uint64_t word = sx_random_word(r);
        word |= wide ? (uint64_t)sx_random_word(r) << 32 : 0;
        if ((n & (n - 1)) == 0) {
            return word & (n - 1);
        }
        if (word >= rest) {
            return word % n;
        }
    }
}

double sx_random_float(uint32_t word)
{
    return (double)(word & 0x7fffff) * 0x1p-23;
}

double sx_random_double(uint32_t first, uint32_t second)
{
    return (double)((uint64_t)(first & 0xfffff) << 32 | second) * 0x1p-52;
}

void sx_random_normal_floats(const uint32_t words[2], double out[2])
{
    const double u = sx_random_float(words[0]), v = sx_random_float(words[1]);
    const double r = sqrt(-2 * log(fmax(u, (double)1e-7f))), t = (double)(float)(two_pi * v);
    out[0] = r * sin(t);
    out[1] = r * cos(t);
}

void sx_random_normal_doubles(const uint32_t words[4], double out[2])
{
    const double u = sx_random_double(words[0], words[1]);
    const double t = two_pi * sx_random_double(words[2], words[3]);
    const double r = sqrt(-2 * log(fmax(u, 1e-7)));
    out[0] = r * sin(t);
    out[1] = r * cos(t);
}

double sx_random_next_uniform(sx_random_pairs *p)
{
    if (p->left == 0) {
        uint32_t w[4];
        sx_philox_next(p->stream, w);
        p->v[0] = sx_random_double(w[0], w[1]);
        p->v[1] = sx_random_double(w[2], w[3]);
        p->left = 2;
    }
    return p->v[--p->left];
}

double sx_random_next_normal(sx_random_pairs *p)
{
    if (p->left == 0) {
        uint32_t w[4];
        sx_philox_next(p->stream, w);
        sx_random_normal_doubles(w, p->v);
        p->left = 2;
    }
    return p->v[--p->left];
}
