/* candidate_sampler: classes drawn for a sampled loss, and how often each class is expected among
 * them, as a function of a key and a counter. No gradient.
 *
 *   true_classes  int64 [batch, num_true], in [0, range_max)
 *   weights       float32 [range_max] of `unigram`, not negative; else [0]
 *   key, counter  as in random_stream.h
 *   distribution  uniform; log_uniform: (log(k + 2) - log(k + 1)) / log(range_max + 1);
 *                 unigram: the weights, divided by their sum
 *   num_sampled   how many are drawn
 *   range_max     the number of classes
 *   unique        each class is drawn at most once: equal ones are drawn again
 *   returns       sampled int64 [num_sampled]; true_expected float32 [batch, num_true] and
 *                 sampled_expected float32 [num_sampled]: of each of them p num_sampled, or
 *                 1 - (1 - p)^tries where some draws were dropped
 *
 * Errors   INVALID_ARGUMENT    attributes, shapes, dtypes; (running) true classes outside; fewer
 *                              classes that have a weight than are to be drawn
 *          RESOURCE_EXHAUSTED  (running) too many numbers, or draws until all are unique
 * Source   TensorFlow core/kernels/candidate_sampler_ops.cc, range_sampler.cc; its
 *          DistributionSampler draws from the weights (Walker's alias method) */
#ifdef SX_ATTRS
enum { SX_CANDIDATES_UNIFORM, SX_CANDIDATES_LOG_UNIFORM, SX_CANDIDATES_UNIGRAM };
typedef struct sx_candidate_sampler_attrs {
    int32_t distribution;
    int64_t num_sampled, range_max;
    bool unique;
} sx_candidate_sampler_attrs;
#endif

#include "graph/ops/random_stream.h"

#include <math.h>
#include <stdint.h>

#include "base/memory.h"

static const char *const distribution_names[] = {"uniform", "log_uniform", "unigram", NULL};
static const sx_attr_def candidate_sampler_attrs[] = {
    SX_ATTR_NAMES(sx_candidate_sampler_attrs, distribution, distribution_names),
    SX_ATTR(sx_candidate_sampler_attrs, num_sampled, SX_ATTR_INT),
    SX_ATTR(sx_candidate_sampler_attrs, range_max, SX_ATTR_INT),
    SX_ATTR(sx_candidate_sampler_attrs, unique, SX_ATTR_BOOL),
};

static sx_status candidate_sampler_infer(sx_infer_context *c)
{
    const sx_candidate_sampler_attrs *a = c->attrs;
    SX_TRY(sx_require_maybe("true_classes", &c->inputs[0], SX_I64, 2, "[batch, num_true]"));
    SX_TRY(sx_require_maybe("weights", &c->inputs[1], SX_F32, 1, "[range_max]"));
    SX_TRY(sx_require_maybe("key", &c->inputs[2], SX_U64, 1, "[1]"));
    SX_TRY(sx_require_maybe("counter", &c->inputs[3], SX_U64, 1, "[2]"));
    if (a->num_sampled < 1 || a->range_max < 1 || (a->unique && a->num_sampled > a->range_max)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "num_sampled is %lld and range_max %lld, expected 1 or more%s",
                        (long long)a->num_sampled, (long long)a->range_max,
                        a->unique ? ", and no more unique candidates than classes" : "");
    }
    c->outputs[0] = sx_type_of(SX_I64, a->num_sampled);
    c->outputs[1] = c->inputs[0];
    c->outputs[1].dtype = SX_F32;
    c->outputs[2] = sx_type_of(SX_F32, a->num_sampled);
    return SX_OK;
}

static sx_status candidate_sampler_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_candidate_sampler_attrs *a = c->attrs;
    const int64_t weights =
        a->distribution == SX_CANDIDATES_UNIGRAM ? a->range_max : c->in[1].type.dims[0];
    if (c->in[1].type.dims[0] != weights || c->in[2].type.dims[0] != 1 ||
        c->in[3].type.dims[0] < 2) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "weights are %s, key is %s and counter %s, expected float32[%lld], "
                        "uint64[1] and uint64[2]",
                        SX_TEXT(&c->in[1].type), SX_TEXT(&c->in[2].type), SX_TEXT(&c->in[3].type),
                        (long long)weights);
    }
    out_types[0] = sx_type_of(SX_I64, a->num_sampled);
    out_types[1] = c->in[0].type;
    out_types[1].dtype = SX_F32;
    out_types[2] = sx_type_of(SX_F32, a->num_sampled);
    return sx_require_made("the candidates", &out_types[0]);
}

/* ---- Distributions ---- */

typedef struct sampler {
    const sx_candidate_sampler_attrs *attrs;
    sx_random_words words;
    double log_range, total;
    const double *weights;
    double *keeps;   /* unigram: the probability of class k where k is drawn, */
    int64_t *others; /* and the class in its place else */
} sampler;

/* Whether there are as many classes that may be drawn as are to be unique. */
static sx_status require_classes(const sx_kernel_call *c, const sampler *s)
{
    const int64_t n = s->attrs->range_max;
    bool *drawn = sx_arena_array(c->arena, n, bool);
    int64_t n_drawn = 0;
    if (drawn == NULL) {
        return sx_no_memory("for the weights of candidates");
    }
    for (int64_t k = 0; k < n; k++) {
        drawn[k] = drawn[k] || s->keeps[k] > 0;
        drawn[s->others[k]] = drawn[s->others[k]] || s->keeps[k] < 1;
    }
    for (int64_t k = 0; k < n; k++) {
        n_drawn += drawn[k];
    }
    return n_drawn >= s->attrs->num_sampled
               ? SX_OK
               : sx_error(SX_INVALID_ARGUMENT,
                          "%lld classes have a weight that is not too small beside the others', "
                          "expected as many as are drawn, %lld",
                          (long long)n_drawn, (long long)s->attrs->num_sampled);
}

/* Classes below and above the mean are paired until one side is used up. */
static sx_status prepare_unigram(const sx_kernel_call *c, sampler *s)
{
    const int64_t n = s->attrs->range_max;
    double *part = sx_arena_array(c->arena, n, double);
    int64_t *low = sx_arena_array(c->arena, n, int64_t),
            *high = sx_arena_array(c->arena, n, int64_t), n_low = 0, n_high = 0;
    s->keeps = sx_arena_array(c->arena, n, double);
    s->others = sx_arena_array(c->arena, n, int64_t);
    s->weights = c->in[1].f;
    if (part == NULL || low == NULL || high == NULL || s->keeps == NULL || s->others == NULL) {
        return sx_no_memory("for the weights of candidates");
    }
    for (int64_t k = 0; k < n; k++) {
        if (!(s->weights[k] >= 0 && isfinite(s->weights[k]))) {
            return sx_error(SX_INVALID_ARGUMENT, "weight %lld is %g, expected a number not below 0",
                            (long long)k, s->weights[k]);
        }
        s->total += s->weights[k];
    }
    if (s->total == 0) {
        return sx_error(SX_INVALID_ARGUMENT, "no class has a weight");
    }
    for (int64_t k = 0; k < n; k++) {
        part[k] = s->weights[k] * (double)n / s->total;
        s->keeps[k] = 1;
        s->others[k] = k;
        if (part[k] < 1) {
            low[n_low++] = k;
        } else {
            high[n_high++] = k;
        }
    }
    while (n_low > 0 && n_high > 0) {
        const int64_t i = low[--n_low], j = high[--n_high];
        s->keeps[i] = (double)(float)part[i];
        s->others[i] = j;
        part[j] -= 1 - part[i];
        if (part[j] < 1) {
            low[n_low++] = j;
        } else {
            high[n_high++] = j;
        }
    }
    return s->attrs->unique ? require_classes(c, s) : SX_OK;
}

static int64_t draw(sampler *s)
{
    const int64_t range = s->attrs->range_max;
    if (s->attrs->distribution == SX_CANDIDATES_UNIFORM) {
        return (int64_t)sx_random_below(&s->words, (uint64_t)range, true);
    }
    if (s->attrs->distribution == SX_CANDIDATES_LOG_UNIFORM) {
        const uint32_t first = sx_random_word(&s->words), second = sx_random_word(&s->words);
        const double k = floor(exp(sx_random_double(first, second) * s->log_range)) - 1;
        return k < (double)range ? (int64_t)k : 0; /* just below range + 1 it may round up to it */
    }
    const double r = sx_random_float(sx_random_word(&s->words));
    const int64_t k = (int64_t)sx_random_below(&s->words, (uint64_t)range, false);
    return r < s->keeps[k] ? k : s->others[k];
}

static double probability(const sampler *s, int64_t k)
{
    switch (s->attrs->distribution) {
    case SX_CANDIDATES_UNIFORM:
        return 1 / (double)s->attrs->range_max;
    case SX_CANDIDATES_LOG_UNIFORM:
        return log(((double)k + 2) / ((double)k + 1)) / s->log_range;
    default:
        return s->weights[k] / s->total;
    }
}

static double expected(const sampler *s, int64_t k, int64_t tries)
{
    const double p = probability(s, k);
    return tries == s->attrs->num_sampled ? p * (double)tries : -expm1((double)tries * log1p(-p));
}

/* ---- Drawing ---- */

/* Whether the class was not there; adds it. `set`: as many as a power of two, -1 = free. */
static bool add(int64_t *set, uint64_t size, int64_t k)
{
    uint64_t at = (uint64_t)k * 0x9e3779b97f4a7c15u & (size - 1);
    while (set[at] >= 0 && set[at] != k) {
        at = (at + 1) & (size - 1);
    }
    const bool added = set[at] < 0;
    set[at] = k;
    return added;
}

static sx_status draw_all(const sx_kernel_call *c, sampler *s, int64_t *out_tries)
{
    enum { MOST_TRIES = INT32_MAX }; /* TensorFlow's, too */
    const int64_t n = s->attrs->num_sampled;
    int64_t *set = NULL;
    uint64_t size = 2;
    while (size < (uint64_t)n * 2) {
        size *= 2;
    }
    if (s->attrs->unique) {
        set = sx_arena_array(c->arena, size, int64_t);
        if (set == NULL) {
            return sx_no_memory("for the classes that are drawn");
        }
        for (uint64_t i = 0; i < size; i++) {
            set[i] = -1;
        }
    }
    int64_t tries = 0;
    for (int64_t i = 0; i < n; tries++) {
        if (tries % (1 << 16) == 0) {
            SX_TRY(sx_cancel_check(c->cancel));
        }
        if (tries == MOST_TRIES) {
            return sx_error(SX_RESOURCE_EXHAUSTED,
                            "%lld of %lld candidates are unique after %lld draws", (long long)i,
                            (long long)n, (long long)tries);
        }
        const int64_t k = draw(s);
        c->out[0].i[i] = k;
        i += set == NULL || add(set, size, k);
    }
    *out_tries = tries;
    return SX_OK;
}

static sx_status candidate_sampler_host(const sx_kernel_call *c)
{
    const sx_candidate_sampler_attrs *a = c->attrs;
    const uint64_t key = c->in[2].u[0], low = c->in[3].u[0], high = c->in[3].u[1];
    sampler s = {.attrs = a,
                 .words.stream = {.key = {(uint32_t)key, (uint32_t)(key >> 32)},
                                  .counter = {(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high,
                                              (uint32_t)(high >> 32)}},
                 .log_range = log1p((double)a->range_max)};
    int64_t tries = 0;
    for (int64_t i = 0; i < sx_type_elems(&c->in[0].type); i++) {
        if (c->in[0].i[i] < 0 || c->in[0].i[i] >= a->range_max) {
            return sx_error(SX_INVALID_ARGUMENT, "true class %lld is %lld, expected 0 to %lld",
                            (long long)i, (long long)c->in[0].i[i], (long long)a->range_max - 1);
        }
    }
    if (a->distribution == SX_CANDIDATES_UNIGRAM) {
        SX_TRY(prepare_unigram(c, &s));
    }
    SX_TRY(draw_all(c, &s, &tries));
    for (int64_t i = 0; i < sx_type_elems(&c->in[0].type); i++) {
        c->out[1].f[i] = expected(&s, c->in[0].i[i], tries);
    }
    for (int64_t i = 0; i < a->num_sampled; i++) {
        c->out[2].f[i] = expected(&s, c->out[0].i[i], tries);
    }
    return SX_OK;
}

const sx_op_def sx_op_candidate_sampler = {
    SX_OP_NAMED(candidate_sampler),
    .n_in = 4,
    .n_out = 3,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_candidate_sampler_attrs, candidate_sampler_attrs),
    .infer = candidate_sampler_infer,
    .host = candidate_sampler_host,
    .host_types = candidate_sampler_host_types,
};
