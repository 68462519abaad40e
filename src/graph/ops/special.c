/* special: a special function of each element, or of elements of two or three tensors.
 *
 *   x, y, z   as many as the function has operands, of one float dtype; the shapes broadcast as in
 *             NumPy; of betainc they are equal, or scalars
 *   function  a row of special_functions.def
 *   returns   the broadcast shape, the dtype of x
 *
 * Gradient of zeta by y, of polygamma by y, of betainc by z, of igamma_grad_a none; of the others
 * by each operand.
 *
 * Errors   INVALID_ARGUMENT  dtypes differ, the number of operands, shapes do not broadcast
 * Numbers  1e-12 of the value; outside a function's domain what TensorFlow gives, mostly NaN
 * Source   TensorFlow's operators of the second column */
#ifdef SX_ATTRS
typedef struct sx_special_attrs {
    int32_t function; /* sx_special_function */
} sx_special_attrs;
#endif

#include "graph/ops/host_ops.h"

#include "graph/special_functions.h"

static const struct special_function {
    const char *tf_op;
    double (*one)(double x);
    double (*two)(double x, double y);
    double (*three)(double x, double y, double z);
} functions[] = {
#define ONE(name, tf_op, c)   {tf_op, .one = c},
#define TWO(name, tf_op, c)   {tf_op, .two = c},
#define THREE(name, tf_op, c) {tf_op, .three = c},
#include "graph/special_functions.def"
#undef ONE
};

static const char *const function_names[] = {
#define ONE(name, tf_op, c)   #name,
#define TWO(name, tf_op, c)   #name,
#define THREE(name, tf_op, c) #name,
#include "graph/special_functions.def"
#undef ONE
    NULL};
static const sx_attr_def special_attrs[] = {
    SX_ATTR_NAMES(sx_special_attrs, function, function_names)};

static sx_status special_infer(sx_infer_context *c)
{
    const sx_special_attrs *attrs = c->attrs;
    const struct special_function *f = &functions[attrs->function];
    const int n = f->one != NULL ? 1 : f->two != NULL ? 2 : 3;
    if (c->n_inputs != n) {
        return sx_error(SX_INVALID_ARGUMENT, "%d operands, expected %d", c->n_inputs, n);
    }
    SX_TRY(sx_require_float("x", &c->inputs[0]));
    for (int i = 1; i < n; i++) {
        SX_TRY(sx_require_dtype(i == 1 ? "y" : "z", &c->inputs[i], c->inputs[0].dtype));
    }
    if (attrs->function == SX_SPECIAL_next_after && sx_dtype_bytes(c->inputs[0].dtype) == 2) {
        return sx_error(SX_INVALID_ARGUMENT, "x is %s, expected float32 or float64",
                        SX_TEXT(&c->inputs[0]));
    }
    c->outputs[0] = c->inputs[0];
    return n == 1   ? SX_OK
           : n == 2 ? sx_infer_broadcast_maybe(&c->inputs[0], &c->inputs[1], &c->outputs[0])
                    : sx_infer_same_or_scalar(c->inputs, n, &c->outputs[0]);
}

static sx_status special_host(const sx_kernel_call *c)
{
    const sx_special_attrs *attrs = c->attrs;
    const struct special_function *f = &functions[attrs->function];
    const sx_host_tensor *y = &c->out[0];
    const bool single = attrs->function == SX_SPECIAL_next_after && y->type.dtype == SX_F32;
    bool same[3];
    for (int i = 0; i < c->n_in; i++) {
        same[i] = sx_type_equal(&c->in[i].type, &y->type);
    }
    for (int64_t k = 0, n = sx_type_elems(&y->type); k < n; k++) {
        double x[3] = {0};
        if (k % 4096 == 0) {
            SX_TRY(sx_cancel_check(c->cancel));
        }
        for (int i = 0; i < c->n_in; i++) {
            x[i] = c->in[i].f[same[i] ? k : sx_broadcast_offset(&y->type, &c->in[i].type, k)];
        }
        y->f[k] = single           ? nextafterf((float)x[0], (float)x[1])
                  : f->one != NULL ? f->one(x[0])
                  : f->two != NULL ? f->two(x[0], x[1])
                                   : f->three(x[0], x[1], x[2]);
    }
    return SX_OK;
}

/* ---- Gradients ---- */

static sx_value apply(sx_builder *b, int function, sx_value x)
{
    return sx_build_op(b, special, &(sx_special_attrs){.function = function}, x);
}

static sx_value apply_two(sx_builder *b, int function, sx_value x, sx_value y)
{
    return sx_build_op(b, special, &(sx_special_attrs){.function = function}, x, y);
}

#define MAP(op_name, a)    sx_build_op(b, op_name, NULL, (a))
#define ZIP(op_name, a, c) sx_build_op(b, op_name, NULL, (a), (c))
#define NUMBER(value)      sx_scalar_like(b, x, (value))
#define F(name, a)         apply(b, SX_SPECIAL_##name, (a))

/* `at_zero` where x is 0, else y. */
static sx_value unless_zero(sx_builder *b, sx_value x, double at_zero, sx_value y)
{
    return sx_build_op(b, select, NULL, ZIP(equal, x, NUMBER(0)), NUMBER(at_zero), y);
}

/* dy/dx of a function y of x alone. */
static sx_value slope_of(sx_builder *b, int function, sx_value x, sx_value y)
{
    switch (function) {
    case SX_SPECIAL_lgamma:
        return F(digamma, x);
    case SX_SPECIAL_digamma:
        return apply_two(b, SX_SPECIAL_polygamma, NUMBER(1), x);
    case SX_SPECIAL_erfinv:
        return ZIP(mul, NUMBER(0.88622692545275801), MAP(exp, MAP(square, y)));
    case SX_SPECIAL_ndtri:
        return ZIP(mul, NUMBER(2.5066282746310005),
                   MAP(exp, ZIP(mul, NUMBER(0.5), MAP(square, y))));
    case SX_SPECIAL_bessel_i0:
        return F(bessel_i1, x);
    case SX_SPECIAL_bessel_i0e:
        return ZIP(sub, F(bessel_i1e, x), ZIP(mul, MAP(sign, x), y));
    case SX_SPECIAL_bessel_i1:
        return unless_zero(b, x, 0.5, ZIP(sub, F(bessel_i0, x), ZIP(div, y, x)));
    case SX_SPECIAL_bessel_i1e:
        return unless_zero(
            b, x, 0.5,
            ZIP(sub, F(bessel_i0e, x), ZIP(mul, y, ZIP(add, MAP(sign, x), MAP(reciprocal, x)))));
    case SX_SPECIAL_bessel_k0:
        return MAP(neg, F(bessel_k1, x));
    case SX_SPECIAL_bessel_k0e:
        return ZIP(sub, y, F(bessel_k1e, x));
    case SX_SPECIAL_bessel_k1:
        return MAP(neg, ZIP(add, F(bessel_k0, x), ZIP(div, y, x)));
    case SX_SPECIAL_bessel_k1e:
        return ZIP(sub, ZIP(mul, y, ZIP(sub, NUMBER(1), MAP(reciprocal, x))), F(bessel_k0e, x));
    case SX_SPECIAL_bessel_j0:
        return MAP(neg, F(bessel_j1, x));
    case SX_SPECIAL_bessel_j1:
        return unless_zero(b, x, 0.5, ZIP(sub, F(bessel_j0, x), ZIP(div, y, x)));
    case SX_SPECIAL_bessel_y0:
        return MAP(neg, F(bessel_y1, x));
    case SX_SPECIAL_bessel_y1:
        return ZIP(sub, F(bessel_y0, x), ZIP(div, y, x));
    case SX_SPECIAL_dawsn:
        return ZIP(sub, NUMBER(1), ZIP(mul, NUMBER(2), ZIP(mul, x, y)));
    case SX_SPECIAL_expint:
        return ZIP(div, MAP(exp, x), x);
    case SX_SPECIAL_fresnel_cos:
        return MAP(cos, ZIP(mul, NUMBER(1.5707963267948966), MAP(square, x)));
    case SX_SPECIAL_fresnel_sin:
        return MAP(sin, ZIP(mul, NUMBER(1.5707963267948966), MAP(square, x)));
    default: /* spence */
        return sx_build_op(b, select, NULL, ZIP(equal, x, NUMBER(1)), NUMBER(-1),
                           ZIP(div, MAP(log, x), ZIP(sub, NUMBER(1), x)));
    }
}

/* dy/da and dy/dx of igamma(a, x) and igammac(a, x), which is 1 - igamma(a, x). */
static void igamma_slopes(sx_builder *b, bool upper, sx_value a, sx_value x, sx_value out[3])
{
    const sx_value power = ZIP(xlogy, ZIP(sub, a, NUMBER(1)), x);
    const sx_value density = MAP(exp, ZIP(sub, ZIP(sub, power, x), F(lgamma, a)));
    const sx_value by_a = apply_two(b, SX_SPECIAL_igamma_grad_a, a, x);
    out[0] = upper ? MAP(neg, by_a) : by_a;
    out[1] = upper ? MAP(neg, density) : density;
}

sx_value sx_gamma_slope(sx_builder *b, sx_value alpha, sx_value y)
{
    sx_value slope[3];
    igamma_slopes(b, false, alpha, y, slope);
    return MAP(neg, ZIP(div, slope[0], slope[1]));
}

/* dy/dx of betainc(a, b, x): x^(a - 1) (1 - x)^(b - 1) / B(a, b); those of a and b are not known.
 */
static sx_value betainc_slope(sx_builder *b, const sx_value *in)
{
    const sx_value x = in[2];
    const sx_value beta =
        ZIP(sub, ZIP(add, F(lgamma, in[0]), F(lgamma, in[1])), F(lgamma, ZIP(add, in[0], in[1])));
    const sx_value powers = ZIP(add, ZIP(xlog1py, ZIP(sub, in[1], NUMBER(1)), MAP(neg, x)),
                                ZIP(xlogy, ZIP(sub, in[0], NUMBER(1)), x));
    return MAP(exp, ZIP(sub, powers, beta));
}

static void special_grad(sx_grad *g)
{
    sx_builder *b = g->b;
    const int function = ((const sx_special_attrs *)g->attrs)->function;
    sx_value slope[3] = {SX_NO_VALUE, SX_NO_VALUE, SX_NO_VALUE};
    const sx_value x = g->x[0];
    switch (function) {
    case SX_SPECIAL_igamma:
    case SX_SPECIAL_igammac:
        igamma_slopes(b, function == SX_SPECIAL_igammac, g->x[0], g->x[1], slope);
        break;
    case SX_SPECIAL_zeta: /* by q */
        slope[1] = MAP(neg, ZIP(mul, x, apply_two(b, function, ZIP(add, x, NUMBER(1)), g->x[1])));
        break;
    case SX_SPECIAL_polygamma: /* by x */
        slope[1] = apply_two(b, function, ZIP(add, x, NUMBER(1)), g->x[1]);
        break;
    case SX_SPECIAL_next_after:
        slope[0] = NUMBER(1);
        break;
    case SX_SPECIAL_betainc:
        slope[2] = betainc_slope(b, g->x);
        break;
    case SX_SPECIAL_igamma_grad_a:
        break;
    default:
        slope[0] = slope_of(b, function, x, g->y[0]);
    }
    for (int i = 0; i < g->n_inputs; i++) {
        if (sx_value_is(slope[i]) && g->needed[i]) {
            g->dx[i] = sx_unbroadcast(b, ZIP(mul, g->dy[0], slope[i]), g->x[i]);
        }
    }
}

static void special_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_plain(w, op, functions[((const sx_special_attrs *)op->attrs)->function].tf_op);
}

#define ONE(name, tf_op, c)                                         \
    static sx_status name##_from_tf(const sx_tf_node *n, void *out) \
    {                                                               \
        (void)n;                                                    \
        ((sx_special_attrs *)out)->function = SX_SPECIAL_##name;    \
        return SX_OK;                                               \
    }
#define TWO(name, tf_op, c)   ONE(name, tf_op, c)
#define THREE(name, tf_op, c) ONE(name, tf_op, c)
#include "graph/special_functions.def"
#undef ONE

static const sx_tf_form forms[] = {
#define ONE(name, tf_op, c)   {.op = tf_op, .attrs = name##_from_tf},
#define TWO(name, tf_op, c)   ONE(name, tf_op, c)
#define THREE(name, tf_op, c) ONE(name, tf_op, c)
#include "graph/special_functions.def"
#undef ONE
    {.op = NULL}};

#define FUNCTION(name_)                \
    .attrs = &(const sx_special_attrs) \
    {                                  \
        .function = SX_SPECIAL_##name_ \
    }
#define ONE(name_, fill)                                                             \
    {                                                                                \
        .name = #name_, .inputs = {SX_SAMPLE_F32(fill, SX_BATCH, 3)}, .n_inputs = 1, \
        FUNCTION(name_)                                                              \
    }
#define TWO(name_)                                               \
    {                                                            \
        .name = #name_,                                          \
        .inputs = {SX_SAMPLE_F32(SX_FILL_POSITIVE, SX_BATCH, 3), \
                   SX_SAMPLE_F32(SX_FILL_POSITIVE, 3)},          \
        .n_inputs = 2, FUNCTION(name_)                           \
    }
static const double ones_and_twos[] = {1, 2}, above_one[] = {1.5, 2.25, 3},
                    parts[] = {0.3, 0.6, 0.8};
static const sx_op_sample special_samples[] = {
    ONE(lgamma, SX_FILL_POSITIVE),
    ONE(digamma, SX_FILL_POSITIVE),
    ONE(erfinv, SX_FILL_UNIFORM),
    {.name = "ndtri",
     .inputs = {SX_SAMPLE_LIST(SX_F32, parts, SX_BATCH, 3)},
     .n_inputs = 1,
     FUNCTION(ndtri)},
    ONE(bessel_i0, SX_FILL_NORMAL),
    ONE(bessel_i0e, SX_FILL_POSITIVE),
    ONE(bessel_i1, SX_FILL_NORMAL),
    ONE(bessel_i1e, SX_FILL_POSITIVE),
    ONE(bessel_j0, SX_FILL_NORMAL),
    ONE(bessel_j1, SX_FILL_NORMAL),
    ONE(bessel_k0, SX_FILL_POSITIVE),
    ONE(bessel_k0e, SX_FILL_POSITIVE),
    ONE(bessel_k1, SX_FILL_POSITIVE),
    ONE(bessel_k1e, SX_FILL_POSITIVE),
    ONE(bessel_y0, SX_FILL_POSITIVE),
    ONE(bessel_y1, SX_FILL_POSITIVE),
    ONE(dawsn, SX_FILL_NORMAL),
    ONE(expint, SX_FILL_POSITIVE),
    ONE(fresnel_cos, SX_FILL_UNIFORM),
    ONE(fresnel_sin, SX_FILL_UNIFORM),
    ONE(spence, SX_FILL_POSITIVE),
    TWO(igamma),
    TWO(igammac),
    /* as in TensorFlow, some operands have no gradient */
    {.name = "zeta",
     .inputs = {SX_SAMPLE_LIST(SX_F32, above_one, SX_BATCH, 3), SX_SAMPLE_F32(SX_FILL_POSITIVE, 3)},
     .n_inputs = 2,
     FUNCTION(zeta),
     .no_grad_check = true},
    {.name = "polygamma",
     .inputs = {SX_SAMPLE_LIST(SX_F32, ones_and_twos, SX_BATCH, 1),
                SX_SAMPLE_F32(SX_FILL_POSITIVE, SX_BATCH, 3)},
     .n_inputs = 2,
     FUNCTION(polygamma),
     .no_grad_check = true},
    {.name = "betainc",
     .inputs = {SX_SAMPLE_F32(SX_FILL_POSITIVE, 6), SX_SAMPLE_F32(SX_FILL_POSITIVE, 6),
                SX_SAMPLE_LIST(SX_F32, parts, 6)},
     .n_inputs = 3,
     FUNCTION(betainc),
     .no_grad_check = true},
};
#undef ONE
#undef TWO

const sx_op_def sx_op_special = {
    SX_OP_NAMED(special),
    .n_in = SX_VARIADIC,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .flags = SX_OP_HOST,
    SX_OP_ATTRS(sx_special_attrs, special_attrs),
    .infer = special_infer,
    .grad = special_grad,
    .host = special_host,
    .to_tf = special_to_tf,
    .from_tf = forms,
    SX_OP_SAMPLES(special_samples),
};
