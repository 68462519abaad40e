/* special: a special function of each element, or of elements of two or three tensors.
 *
 *   x, y, z   as many as the function has operands, of one float dtype; the shapes broadcast as in
 *             NumPy; of betainc they are equal, or scalars
 *   function  a row of SPECIAL_FUNCTIONS
 *   returns   the broadcast shape, the dtype of x
 *
 * Errors   INVALID_ARGUMENT  dtypes differ, the number of operands, shapes do not broadcast
 * Numbers  1e-12 of the value; outside a function's domain what TensorFlow gives, mostly NaN
 * Source   TensorFlow's operators of the second column */
#include "graph/ops/host_ops.h"

#include "graph/special_functions.h"

/* name, TensorFlow's operator, operands, C */
#define SPECIAL_FUNCTIONS(ONE, TWO, THREE)         \
    ONE(lgamma, "Lgamma", sx_lgamma)               \
    ONE(digamma, "Digamma", sx_digamma)            \
    ONE(erfinv, "Erfinv", sx_erfinv)               \
    ONE(ndtri, "Ndtri", sx_ndtri)                  \
    ONE(bessel_i0, "BesselI0", sx_bessel_i0)       \
    ONE(bessel_i0e, "BesselI0e", sx_bessel_i0e)    \
    ONE(bessel_i1, "BesselI1", sx_bessel_i1)       \
    ONE(bessel_i1e, "BesselI1e", sx_bessel_i1e)    \
    ONE(bessel_j0, "BesselJ0", sx_bessel_j0)       \
    ONE(bessel_j1, "BesselJ1", sx_bessel_j1)       \
    ONE(bessel_k0, "BesselK0", sx_bessel_k0)       \
    ONE(bessel_k0e, "BesselK0e", sx_bessel_k0e)    \
    ONE(bessel_k1, "BesselK1", sx_bessel_k1)       \
    ONE(bessel_k1e, "BesselK1e", sx_bessel_k1e)    \
    ONE(bessel_y0, "BesselY0", sx_bessel_y0)       \
    ONE(bessel_y1, "BesselY1", sx_bessel_y1)       \
    ONE(dawsn, "Dawsn", sx_dawsn)                  \
    ONE(expint, "Expint", sx_expint)               \
    ONE(fresnel_cos, "FresnelCos", sx_fresnel_cos) \
    ONE(fresnel_sin, "FresnelSin", sx_fresnel_sin) \
    ONE(spence, "Spence", sx_spence)               \
    TWO(igamma, "Igamma", sx_igamma)               \
    TWO(igammac, "Igammac", sx_igammac)            \
    TWO(zeta, "Zeta", sx_zeta)                     \
    TWO(polygamma, "Polygamma", sx_polygamma)      \
    TWO(next_after, "NextAfter", nextafter)        \
    THREE(betainc, "Betainc", sx_betainc)

typedef struct sx_special_attrs {
    int32_t function;
} sx_special_attrs;

enum {
#define ROW(name, tf_op, c) FUNCTION_##name,
    SPECIAL_FUNCTIONS(ROW, ROW, ROW)
#undef ROW
};

static const struct special_function {
    const char *tf_op;
    double (*one)(double x);
    double (*two)(double x, double y);
    double (*three)(double x, double y, double z);
} functions[] = {
#define ONE(name, tf_op, c)   {tf_op, .one = c},
#define TWO(name, tf_op, c)   {tf_op, .two = c},
#define THREE(name, tf_op, c) {tf_op, .three = c},
    SPECIAL_FUNCTIONS(ONE, TWO, THREE)
#undef ONE
#undef TWO
#undef THREE
};

static const char *const function_names[] = {
#define ROW(name, tf_op, c) #name,
    SPECIAL_FUNCTIONS(ROW, ROW, ROW)
#undef ROW
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
    if (attrs->function == FUNCTION_next_after && sx_dtype_bytes(c->inputs[0].dtype) == 2) {
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
    const bool single = attrs->function == FUNCTION_next_after && y->type.dtype == SX_F32;
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

static void special_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_plain(w, op, functions[((const sx_special_attrs *)op->attrs)->function].tf_op);
}

#define ROW(name, tf_op, c)                                         \
    static sx_status name##_from_tf(const sx_tf_node *n, void *out) \
    {                                                               \
        (void)n;                                                    \
        ((sx_special_attrs *)out)->function = FUNCTION_##name;      \
        return SX_OK;                                               \
    }
SPECIAL_FUNCTIONS(ROW, ROW, ROW)
#undef ROW

static const sx_tf_form forms[] = {
#define ROW(name, tf_op, c) {.op = tf_op, .attrs = name##_from_tf},
    SPECIAL_FUNCTIONS(ROW, ROW, ROW)
#undef ROW
        {.op = NULL}};

#define FUNCTION(name_)                \
    .attrs = &(const sx_special_attrs) \
    {                                  \
        .function = FUNCTION_##name_   \
    }
static const sx_op_sample special_samples[] = {
    {.name = "lgamma",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 3)},
     .n_inputs = 1,
     FUNCTION(lgamma)},
    {.name = "igamma",
     .inputs = {SX_SAMPLE_F32(SX_FILL_POSITIVE, SX_BATCH, 3), SX_SAMPLE_F32(SX_FILL_POSITIVE, 3)},
     .n_inputs = 2,
     FUNCTION(igamma)},
    {.name = "betainc",
     .inputs = {SX_SAMPLE_F32(SX_FILL_POSITIVE, 7), SX_SAMPLE_F32(SX_FILL_POSITIVE, 7),
                SX_SAMPLE_F32(SX_FILL_UNIFORM, 7)},
     .n_inputs = 3,
     FUNCTION(betainc)},
};

const sx_op_def sx_op_special = {
    SX_OP_NAMED(special),
    .n_in = SX_VARIADIC,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_special_attrs, special_attrs),
    .infer = special_infer,
    .host = special_host,
    .to_tf = special_to_tf,
    .from_tf = forms,
    SX_OP_SAMPLES(special_samples),
};
