/* special functions of floats: a vector loop, and the C function for the few arguments for which
 * the loop's sums do not hold. */
#include <float.h>
#include <math.h>

#include "backends/cpu/typed/typed.h"
#include "backends/cpu/vec/vec.h"
#include "base/checked.h"
#include "graph/ops/attrs.h"

enum { CHUNK = SX_VEC_CHUNK, CHUNKS_A_CHECK = 64 };

/* NULL: of more operands than one. */
static double (*const functions[])(double) = {
#define ONE(name, tf_op, c)   c,
#define TWO(name, tf_op, c)   NULL,
#define THREE(name, tf_op, c) NULL,
#include "graph/special_functions.def"
#undef ONE
};

/* The arguments that the loops of vec/special.inc take. */
#define BELOW_1 (1 - FLT_EPSILON / 2)
#define LEAST   FLT_TRUE_MIN
static const struct range {
    float low, high;
} special_ranges[SX_SPECIAL_FUNCTIONS] = {
    [SX_SPECIAL_erfinv] = {-BELOW_1, BELOW_1},    [SX_SPECIAL_ndtri] = {LEAST, BELOW_1},
    [SX_SPECIAL_bessel_i0] = {-FLT_MAX, FLT_MAX}, [SX_SPECIAL_bessel_i0e] = {-FLT_MAX, FLT_MAX},
    [SX_SPECIAL_bessel_i1] = {-FLT_MAX, FLT_MAX}, [SX_SPECIAL_bessel_i1e] = {-FLT_MAX, FLT_MAX},
    [SX_SPECIAL_bessel_j0] = {-1e5F, 1e5F},       [SX_SPECIAL_bessel_j1] = {-1e5F, 1e5F},
    [SX_SPECIAL_bessel_k0] = {LEAST, FLT_MAX},    [SX_SPECIAL_bessel_k0e] = {LEAST, FLT_MAX},
    [SX_SPECIAL_bessel_k1] = {LEAST, FLT_MAX},    [SX_SPECIAL_bessel_k1e] = {LEAST, FLT_MAX},
    [SX_SPECIAL_bessel_y0] = {LEAST, 1e5F},       [SX_SPECIAL_bessel_y1] = {LEAST, 1e5F},
    [SX_SPECIAL_dawsn] = {-FLT_MAX, FLT_MAX},     [SX_SPECIAL_expint] = {LEAST, FLT_MAX},
    [SX_SPECIAL_fresnel_cos] = {-1e6F, 1e6F},     [SX_SPECIAL_fresnel_sin] = {-1e6F, 1e6F},
};

static bool takes(const void *attrs, const sx_tensor *in)
{
    const int function = ((const sx_special_attrs *)attrs)->function;
    const sx_dtype dtype = in[0].type.dtype;
    return sx_cpu_vec_best()->specials[function] != NULL &&
           (dtype == SX_F32 || dtype == SX_F16 || dtype == SX_BF16);
}

static sx_status run(const sx_typed_call *c)
{
    const int function = ((const sx_special_attrs *)c->attrs)->function;
    const sx_cpu_vec *vec = sx_cpu_vec_best();
    const struct range range = special_ranges[function];
    const sx_type *t = &c->out[0].type;
    const int64_t elems = sx_type_elems(t);
    float room[CHUNK], made[CHUNK];
    for (int64_t at = 0; at < elems; at += CHUNK) {
        const int64_t n = SX_MIN(elems - at, (int64_t)CHUNK);
        const float *x = sx_typed_floats(&c->in[0], at, n, room);
        float *y = t->dtype == SX_F32 ? (float *)c->out[0].data + at : made;
        int outside = 0;
        if (at % (CHUNKS_A_CHECK * CHUNK) == 0) {
            SX_TRY(sx_cancel_check(c->context->cancel));
        }
        vec->specials[function](x, y, n);
        for (int64_t k = 0; k < n; k++) {
            outside += x[k] >= range.low && x[k] <= range.high ? 0 : 1;
        }
        for (int64_t k = 0; k < n && outside > 0; k++) {
            if (!(x[k] >= range.low && x[k] <= range.high)) {
                y[k] = (float)functions[function]((double)x[k]);
            }
        }
        if (t->dtype == SX_F16) {
            vec->to_f16(made, (uint16_t *)c->out[0].data + at, n);
        } else if (t->dtype == SX_BF16) {
            vec->to_bf16(made, (uint16_t *)c->out[0].data + at, n);
        }
    }
    return SX_OK;
}

const sx_typed_kernel sx_typed_special = {.op = SX_OPID_special, .takes = takes, .run = run};
