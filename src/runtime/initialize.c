/* See initialize.h. */
#include "runtime/initialize.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/map.h"
#include "base/threefry.h"

/* ---- Portable functions ----
 *
 * + − × ÷ and √ are correctly rounded by IEEE 754, so these give the same bits on every machine
 * (the build forbids contraction). */

/* x = m·2^e with m in [√½, √2); log x = e·log 2 + 2·atanh(s), s = (m − 1) / (m + 1); the series of
 * atanh to s^21 leaves less than 2^-53 since |s| < 0.1716. */
double sx_portable_log(double x)
{
    int e;
    double m = frexp(x, &e); /* exact */
    if (m < 0x1.6a09e667f3bcdp-1) {
        m *= 2;
        e--;
    }
    double s = (m - 1) / (m + 1), s2 = s * s, sum = 0;
    for (int k = 21; k >= 3; k -= 2) {
        sum = (sum + 1.0 / k) * s2;
    }
    /* log 2 in two parts: e times the first is exact */
    return e * 0x1.62e42fefa38p-1 + (2 * s + (2 * s * sum + e * 0x1.ef35793c7673p-45));
}

/* Coefficients, constant first. */
static double polynomial(const double *c, int n, double x)
{
    double y = c[n - 1];
    for (int i = n - 2; i >= 0; i--) {
        y = y * x + c[i];
    }
    return y;
}

/* Source: M. Giles, "Approximating the erfinv function", GPU Computing Gems, 2011 (double precision
 * is not needed: results become float32; the single-precision polynomials are within 3 ulp of
 * float32). */
double sx_portable_erfinv(double x)
{
    static const double central[] = {1.50140941,     0.246640727,    -0.00417768164,
                                     -0.00125372503, 0.000218580870, -4.39150654e-06,
                                     -3.5233877e-06, 3.43273939e-07, 2.81022636e-08};
    static const double tail[] = {2.83297682,    1.00167406,     0.00943887047,
                                  -0.0076224613, 0.00573950773,  -0.00367342844,
                                  0.00134934322, 0.000100950558, -0.000200214257};
    double w = -sx_portable_log((1 - x) * (1 + x));
    return w < 5 ? polynomial(central, 9, w - 2.5) * x : polynomial(tail, 9, sqrt(w) - 3) * x;
}

/* ---- Draws ---- */

typedef struct drawer {
    sx_u32x2 key;
    double scale;
} drawer;

/* Uniform in (0, 1): 24 bits, in the middle of each cell. */
static double uniform_at(const drawer *d, int64_t i)
{
    sx_u32x2 counter = {(uint32_t)(i / 2), (uint32_t)((uint64_t)(i / 2) >> 32)};
    sx_u32x2 words = sx_threefry2x32(d->key, counter);
    uint32_t bits = i % 2 == 0 ? words.a : words.b;
    return ((double)(bits >> 8) + 0.5) * 0x1p-24;
}

static double draw_uniform(const drawer *d, int64_t i)
{
    return (2 * uniform_at(d, i) - 1) * d->scale;
}

static double draw_normal(const drawer *d, int64_t i)
{
    return 0x1.6a09e667f3bcdp+0 * sx_portable_erfinv(2 * uniform_at(d, i) - 1) * d->scale;
}

/* Inverse of the cut distribution: erf(2/√2) = 0.9544997361036416 of the mass lies within ±2. */
static double draw_truncated(const drawer *d, int64_t i)
{
    double p = (2 * uniform_at(d, i) - 1) * 0.9544997361036416;
    return 0x1.6a09e667f3bcdp+0 * sx_portable_erfinv(p) * d->scale;
}

/* ---- The initializers, one row each ---- */

typedef enum fan_mode { FAN_NONE, FAN_IN, FAN_AVERAGE } fan_mode;

/* scale = value of the variable's spec, or sqrt(factor / fan) · correction. The correction .8796…
 * is the standard deviation of a normal cut at ±2 (Keras variance scaling). */
typedef struct initializer_row {
    double (*draw)(const drawer *d, int64_t i);
    fan_mode fan;
    double factor, correction;
} initializer_row;

static const double TRUNCATED_STDDEV = 0.87962566103423978;

static initializer_row row_of(sx_initializer init)
{
    const initializer_row rows[SX_INIT_COUNT_] = {
        [SX_INIT_GLOROT_UNIFORM] = {draw_uniform, FAN_AVERAGE, 3, 1},
        [SX_INIT_GLOROT_NORMAL] = {draw_truncated, FAN_AVERAGE, 1, 1 / TRUNCATED_STDDEV},
        [SX_INIT_HE_UNIFORM] = {draw_uniform, FAN_IN, 6, 1},
        [SX_INIT_HE_NORMAL] = {draw_truncated, FAN_IN, 2, 1 / TRUNCATED_STDDEV},
        [SX_INIT_LECUN_UNIFORM] = {draw_uniform, FAN_IN, 3, 1},
        [SX_INIT_LECUN_NORMAL] = {draw_truncated, FAN_IN, 1, 1 / TRUNCATED_STDDEV},
        [SX_INIT_UNIFORM] = {draw_uniform, FAN_NONE, 0, 1},
        [SX_INIT_NORMAL] = {draw_normal, FAN_NONE, 0, 1},
        [SX_INIT_TRUNCATED_NORMAL] = {draw_truncated, FAN_NONE, 0, 1},
    };
    return rows[init];
}

/* Keras: the last two dimensions are in and out, those before are the receptive field. */
static void fans(const sx_type *type, double *fan_in, double *fan_out)
{
    *fan_in = *fan_out = type->rank == 0 ? 1 : (double)type->dims[0];
    if (type->rank < 2) {
        return;
    }
    double field = 1;
    for (int d = 0; d < type->rank - 2; d++) {
        field *= (double)type->dims[d];
    }
    *fan_in = field * (double)type->dims[type->rank - 2];
    *fan_out = field * (double)type->dims[type->rank - 1];
}

static double scale_of(const initializer_row *row, double value, const sx_type *type)
{
    double fan_in, fan_out;
    fans(type, &fan_in, &fan_out);
    double fan = row->fan == FAN_IN ? fan_in : (fan_in + fan_out) / 2;
    return row->fan == FAN_NONE ? value : sqrt(row->factor / (fan < 1 ? 1 : fan)) * row->correction;
}

static void fill_constant(double value, const sx_type *type, void *data)
{
    int64_t n = sx_type_elems(type);
    for (int64_t i = 0; i < n; i++) {
        if (type->dtype == SX_F32) {
            ((float *)data)[i] = (float)value;
        } else if (type->dtype == SX_F64) {
            ((double *)data)[i] = value;
        } else if (type->dtype == SX_I64) {
            ((int64_t *)data)[i] = (int64_t)value;
        } else {
            ((int32_t *)data)[i] = (int32_t)value;
        }
    }
}

static sx_status draw_constant(sx_initializer init, double value, const sx_type *type, void *data)
{
    double constant = init == SX_INIT_ONES ? 1 : init == SX_INIT_CONSTANT ? value : 0;
    bool known = type->dtype == SX_F32 || type->dtype == SX_F64 || type->dtype == SX_I64 ||
                 type->dtype == SX_I32;
    if (constant == 0) {
        memset(data, 0, (size_t)sx_type_bytes(type));
    } else if (known) {
        fill_constant(constant, type, data);
    } else {
        return sx_error(SX_UNIMPLEMENTED, "a constant initial value of dtype %s",
                        sx_dtype_name(type->dtype));
    }
    return SX_OK;
}

sx_status sx_draw_initial_value(sx_initializer init, double value, const sx_type *type,
                                uint64_t seed, const char *name, void *data)
{
    initializer_row row = row_of(init);
    if (row.draw == NULL) {
        return draw_constant(init, value, type, data);
    }
    if (type->dtype != SX_F32) {
        return sx_error(SX_UNIMPLEMENTED,
                        "random initial values of dtype %s; only float32 is drawn",
                        sx_dtype_name(type->dtype));
    }
    uint64_t hash = sx_hash64(name, strlen(name));
    drawer d = {
        .key = {(uint32_t)seed ^ (uint32_t)hash, (uint32_t)(seed >> 32) ^ (uint32_t)(hash >> 32)},
        .scale = scale_of(&row, value, type)};
    int64_t n = sx_type_elems(type);
    for (int64_t i = 0; i < n; i++) {
        ((float *)data)[i] = (float)row.draw(&d, i);
    }
    return SX_OK;
}
