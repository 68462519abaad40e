/* Learning-rate schedules, as nodes of the training program (sextant/nn.h: sx_schedule). Formulas
 * as Keras' ExponentialDecay, PiecewiseConstantDecay, CosineDecay. All scalars, float32. */
#include "nn/optimizer.h"

#include <math.h>

#include "base/checked.h"
#include "graph/ops/attrs.h"

static sx_value number(sx_builder *b, double v)
{
    return sx_constant_f32(b, v);
}

/* Each takes the step since the warm-up, float32, and returns the factor of the base rate. */
static sx_value constant_factor(sx_builder *b, const sx_schedule *s, sx_value step)
{
    (void)s, (void)step;
    return number(b, 1);
}

static sx_value exponential_factor(sx_builder *b, const sx_schedule *s, sx_value step)
{
    sx_value periods = sx_build_op(b, div, NULL, step, number(b, (double)s->steps));
    if (s->staircase) {
        periods = sx_build_op(b, floor, NULL, periods);
    }
    return sx_build_op(b, pow, NULL, number(b, s->rate), periods);
}

static sx_value piecewise_factor(sx_builder *b, const sx_schedule *s, sx_value step)
{
    sx_value factor = number(b, s->values[s->n_boundaries]);
    for (int i = s->n_boundaries - 1; i >= 0; i--) {
        /* step <= boundary: not (boundary < step) */
        sx_value later = sx_build_op(b, less, NULL, number(b, (double)s->boundaries[i]), step);
        factor = sx_build_op(b, select, NULL, later, factor, number(b, s->values[i]));
    }
    return factor;
}

static sx_value cosine_factor(sx_builder *b, const sx_schedule *s, sx_value step)
{
    static const double pi = 3.14159265358979323846;
    sx_value bounded = sx_build_op(b, minimum, NULL, step, number(b, (double)s->steps));
    sx_value angle = sx_build_op(b, mul, NULL, bounded, number(b, pi / (double)s->steps));
    sx_value wave = sx_build_op(b, add, NULL, sx_build_op(b, cos, NULL, angle), number(b, 1));
    sx_value scaled = sx_build_op(b, mul, NULL, wave, number(b, (1 - s->alpha) / 2));
    return sx_build_op(b, add, NULL, scaled, number(b, s->alpha));
}

typedef sx_value factor_fn(sx_builder *b, const sx_schedule *s, sx_value step);

static factor_fn *const factors[] = {
    [SX_CONSTANT_RATE] = constant_factor,
    [SX_EXPONENTIAL_DECAY] = exponential_factor,
    [SX_PIECEWISE] = piecewise_factor,
    [SX_COSINE_DECAY] = cosine_factor,
};

sx_status sx_schedule_check(const sx_schedule *s)
{
    bool periodic = s->kind == SX_EXPONENTIAL_DECAY || s->kind == SX_COSINE_DECAY;
    if ((unsigned)s->kind >= SX_COUNT(factors)) {
        return sx_error(SX_INVALID_ARGUMENT, "schedule kind %d does not exist", (int)s->kind);
    }
    if (periodic && s->steps < 1) {
        return sx_error(SX_INVALID_ARGUMENT, "schedule: steps is %lld, expected at least 1",
                        (long long)s->steps);
    }
    if (s->kind == SX_EXPONENTIAL_DECAY && !(s->rate > 0 && isfinite(s->rate))) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "schedule: rate is %g, expected a finite number greater than 0", s->rate);
    }
    if (s->kind == SX_COSINE_DECAY && !(s->alpha >= 0 && s->alpha <= 1)) {
        return sx_error(SX_INVALID_ARGUMENT, "schedule: alpha is %g, expected 0 to 1", s->alpha);
    }
    if (!(s->warmup_epochs >= 0)) {
        return sx_error(SX_INVALID_ARGUMENT, "schedule: warmup_epochs is %g, expected at least 0",
                        s->warmup_epochs);
    }
    if (s->warmup_steps < 0) {
        return sx_error(SX_INVALID_ARGUMENT, "schedule: warmup_steps is %lld, expected at least 0",
                        (long long)s->warmup_steps);
    }
    if (s->n_boundaries < 0 || s->n_boundaries > SX_MAX_PIECES) {
        return sx_error(SX_INVALID_ARGUMENT, "schedule: n_boundaries is %d, expected 0 to %d",
                        s->n_boundaries, SX_MAX_PIECES);
    }
    for (int i = 0; s->kind == SX_PIECEWISE && i <= s->n_boundaries; i++) {
        if (!(s->values[i] >= 0 && isfinite(s->values[i]))) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "schedule: values[%d] is %g, expected a finite number, 0 or more", i,
                            s->values[i]);
        }
        if (i > 0 && i < s->n_boundaries && s->boundaries[i] < s->boundaries[i - 1]) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "schedule: boundaries[%d] is %lld, expected at least boundaries[%d], "
                            "%lld",
                            i, (long long)s->boundaries[i], i - 1, (long long)s->boundaries[i - 1]);
        }
    }
    return SX_OK;
}

sx_value sx_build_learning_rate(sx_builder *b, double base, const sx_schedule *s, sx_value step)
{
    sx_status status = sx_schedule_check(s);
    if (status != SX_OK) {
        sx_builder_fail(b, status);
        return SX_NO_VALUE;
    }
    if (s->kind == SX_CONSTANT_RATE && s->warmup_steps == 0) {
        return number(b, base);
    }
    sx_value at = sx_build_op(b, cast, (&(sx_cast_attrs){.dtype = SX_F32}), step);
    sx_value warm = number(b, (double)s->warmup_steps);
    sx_value since =
        sx_build_op(b, maximum, NULL, sx_build_op(b, sub, NULL, at, warm), number(b, 0));
    sx_value rate = sx_build_op(b, mul, NULL, factors[s->kind](b, s, since), number(b, base));
    if (s->warmup_steps > 0) {
        double start = s->kind == SX_PIECEWISE ? base * s->values[0] : base;
        sx_value rising = sx_build_op(b, mul, NULL, at, number(b, start / (double)s->warmup_steps));
        rate = sx_build_op(b, select, NULL, sx_build_op(b, less, NULL, at, warm), rising, rate);
    }
    return rate;
}
