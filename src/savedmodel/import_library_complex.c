/* Imports complex numbers as two tensors, the real and the imaginary parts: a graph has no complex
 * values. What moves, adds or sums is imported once for each part. */
#include <math.h>
#include <string.h>

#include <sextant/complex.h>

#include "savedmodel/import_library_complex.h"

bool sx_tf_is_complex(int64_t dtype)
{
    return dtype == SX_C64 || dtype == SX_C128;
}

sx_dtype sx_tf_part_of(int64_t dtype)
{
    return dtype == SX_C64 ? SX_F32 : SX_F64;
}

void sx_tf_set_parts(const sx_tf_op_node *x, int output, sx_tf_parts y)
{
    x->n->out[output] = (sx_tf_thing){.kind = SX_TF_COMPLEX, .parts = {y.re, y.im}};
}

sx_status sx_tf_read_parts(const sx_tf_op_node *x, int i, sx_tf_parts *out)
{
    if (i >= x->n->n_in || x->n->in[i].kind != SX_TF_COMPLEX) {
        return sx_error(SX_DATA_LOSS, "input %d is not complex", i);
    }
    *out = (sx_tf_parts){x->n->in[i].parts[0], x->n->in[i].parts[1]};
    return SX_OK;
}

static sx_status one(const sx_tf_op_node *x, const sx_op_def *op, sx_value a, sx_value *out)
{
    return sx_tf_build(x, op, NULL, out, 1, &a);
}

static sx_status two(const sx_tf_op_node *x, const sx_op_def *op, sx_value a, sx_value b,
                     sx_value *out)
{
    const sx_value in[] = {a, b};
    return sx_tf_build(x, op, NULL, out, 2, in);
}

/* ---- What moves, adds or sums ---- */

/* Imports the node once for each part of its complex inputs. */
static sx_status import_each_part(const sx_tf_op_node *x)
{
    sx_tf_import_node of[2];
    for (int p = 0; p < 2; p++) {
        sx_tf_thing *in =
            sx_arena_memdup(&x->im->arena, x->n->in, ((size_t)x->n->n_in + 1) * sizeof(*in));
        of[p] = *x->n;
        of[p].in = in;
        of[p].out = sx_arena_array(&x->im->arena, x->n->n_out + 1, sx_tf_thing);
        if (in == NULL || of[p].out == NULL) {
            return sx_import_memory();
        }
        for (int i = 0; i < x->n->n_in; i++) {
            if (in[i].kind == SX_TF_COMPLEX) {
                const sx_value v = in[i].parts[p];
                in[i] = (sx_tf_thing){
                    .kind = SX_TF_VALUE, .value = v, .known = sx_tf_constant_of(x->b, v)};
            }
        }
        SX_TRY(sx_tf_import_op(x->im, x->body, &of[p]));
    }
    for (int k = 0; k < x->n->n_out; k++) {
        if (of[0].out[k].kind == SX_TF_VALUE && of[1].out[k].kind == SX_TF_VALUE) {
            sx_tf_set_parts(x, k, (sx_tf_parts){of[0].out[k].value, of[1].out[k].value});
        }
    }
    return SX_OK;
}

/* A variable that is only read is its value. */
static sx_status import_same(const sx_tf_op_node *x)
{
    x->n->out[0] = x->n->in[0];
    return SX_OK;
}

/* ---- Arithmetic ---- */

sx_status sx_tf_sum_of_products(const sx_tf_op_node *x, sx_value a, sx_value b, int sign,
                                sx_value c, sx_value d, sx_value *out)
{
    sx_value first = SX_NO_VALUE, second = SX_NO_VALUE;
    SX_TF_BUILD(x, &first, mul, NULL, a, b);
    SX_TF_BUILD(x, &second, mul, NULL, c, d);
    const sx_value both[] = {first, second};
    return sx_tf_build(x, sign > 0 ? &sx_op_add : &sx_op_sub, NULL, out, 2, both);
}

static sx_status multiply(const sx_tf_op_node *x, sx_tf_parts a, sx_tf_parts b, sx_tf_parts *out)
{
    SX_TRY(sx_tf_sum_of_products(x, a.re, b.re, -1, a.im, b.im, &out->re));
    return sx_tf_sum_of_products(x, a.re, b.im, 1, a.im, b.re, &out->im);
}

static sx_status import_mul(const sx_tf_op_node *x)
{
    const bool square = strcmp(x->n->node->op, "Square") == 0;
    sx_tf_parts a = {SX_NO_VALUE, SX_NO_VALUE}, b = a, y = a;
    SX_TRY(sx_tf_read_parts(x, 0, &a));
    SX_TRY(sx_tf_read_parts(x, square ? 0 : 1, &b));
    SX_TRY(multiply(x, a, b, &y));
    sx_tf_set_parts(x, 0, y);
    return SX_OK;
}

/* a conj(b) / |b|^2; DivNoNan: 0 where b is 0 */
static sx_status divide(const sx_tf_op_node *x, sx_tf_parts a, sx_tf_parts b, bool no_nan,
                        sx_tf_parts *out)
{
    const sx_op_def *div = no_nan ? &sx_op_div_no_nan : &sx_op_div;
    sx_value norm = SX_NO_VALUE;
    SX_TRY(sx_tf_sum_of_products(x, b.re, b.re, 1, b.im, b.im, &norm));
    SX_TRY(sx_tf_sum_of_products(x, a.re, b.re, 1, a.im, b.im, &out->re));
    SX_TRY(sx_tf_sum_of_products(x, a.im, b.re, -1, a.re, b.im, &out->im));
    SX_TRY(two(x, div, out->re, norm, &out->re));
    return two(x, div, out->im, norm, &out->im);
}

static sx_status import_div(const sx_tf_op_node *x)
{
    sx_tf_parts a = {SX_NO_VALUE, SX_NO_VALUE}, b = a, y = a;
    SX_TRY(sx_tf_read_parts(x, 0, &a));
    SX_TRY(sx_tf_read_parts(x, 1, &b));
    SX_TRY(divide(x, a, b, strcmp(x->n->node->op, "DivNoNan") == 0, &y));
    sx_tf_set_parts(x, 0, y);
    return SX_OK;
}

static sx_status reciprocal(const sx_tf_op_node *x, sx_tf_parts a, sx_tf_parts *out)
{
    sx_tf_parts unit = {SX_NO_VALUE, SX_NO_VALUE};
    const sx_dtype dtype = sx_type_of_value(x->b, a.re).dtype;
    SX_TRY(sx_tf_number(x, dtype, 1, &unit.re));
    SX_TRY(sx_tf_number(x, dtype, 0, &unit.im));
    return divide(x, unit, a, false, out);
}

/* Both parts are equal. */
static sx_status import_equal(const sx_tf_op_node *x)
{
    sx_tf_parts a = {SX_NO_VALUE, SX_NO_VALUE}, b = a;
    sx_value re = SX_NO_VALUE, im = SX_NO_VALUE, y = SX_NO_VALUE;
    SX_TRY(sx_tf_read_parts(x, 0, &a));
    SX_TRY(sx_tf_read_parts(x, 1, &b));
    SX_TF_BUILD(x, &re, equal, NULL, a.re, b.re);
    SX_TF_BUILD(x, &im, equal, NULL, a.im, b.im);
    SX_TF_BUILD(x, &y, logical_and, NULL, re, im);
    if (strcmp(x->n->node->op, "NotEqual") == 0) {
        SX_TF_BUILD(x, &y, logical_not, NULL, y);
    }
    x->n->out[0] = (sx_tf_thing){.kind = SX_TF_VALUE, .value = y};
    return SX_OK;
}

/* ---- Functions ---- */

/* e^re (cos im + i sin im) */
static sx_status exponential(const sx_tf_op_node *x, sx_tf_parts a, sx_tf_parts *out)
{
    sx_value size = SX_NO_VALUE;
    SX_TF_BUILD(x, &size, exp, NULL, a.re);
    SX_TF_BUILD(x, &out->re, cos, NULL, a.im);
    SX_TF_BUILD(x, &out->im, sin, NULL, a.im);
    SX_TF_BUILD(x, &out->re, mul, NULL, size, out->re);
    SX_TF_BUILD(x, &out->im, mul, NULL, size, out->im);
    return SX_OK;
}

/* log |a| + i angle */
static sx_status logarithm(const sx_tf_op_node *x, sx_tf_parts a, sx_tf_parts *out)
{
    SX_TRY(sx_tf_sum_of_products(x, a.re, a.re, 1, a.im, a.im, &out->re));
    SX_TF_BUILD(x, &out->re, log, NULL, out->re);
    SX_TRY(sx_tf_with_number(x, &sx_op_mul, out->re, 0.5, &out->re));
    return two(x, &sx_op_atan2, a.im, a.re, &out->im);
}

/* With t = sqrt((|a| + |re|) / 2): t + i im/2t to the right of 0, |im|/2t +- i t to its left. */
static sx_status square_root(const sx_tf_op_node *x, sx_tf_parts a, sx_tf_parts *out)
{
    sx_value size, t, u, both, minus, left, below;
    SX_TRY(sx_tf_sum_of_products(x, a.re, a.re, 1, a.im, a.im, &size));
    SX_TF_BUILD(x, &size, sqrt, NULL, size);
    SX_TF_BUILD(x, &t, abs, NULL, a.re);
    SX_TF_BUILD(x, &t, add, NULL, size, t);
    SX_TRY(sx_tf_with_number(x, &sx_op_mul, t, 0.5, &t));
    SX_TF_BUILD(x, &t, sqrt, NULL, t);
    SX_TF_BUILD(x, &both, add, NULL, t, t);
    SX_TF_BUILD(x, &u, div_no_nan, NULL, a.im, both);
    SX_TF_BUILD(x, &minus, neg, NULL, t);
    SX_TRY(sx_tf_with_number(x, &sx_op_less, a.re, 0, &left));
    SX_TRY(sx_tf_with_number(x, &sx_op_less, a.im, 0, &below));
    SX_TF_BUILD(x, &minus, select, NULL, below, minus, t);
    SX_TF_BUILD(x, &out->im, select, NULL, left, minus, u);
    SX_TF_BUILD(x, &u, abs, NULL, u);
    SX_TF_BUILD(x, &out->re, select, NULL, left, u, t);
    return SX_OK;
}

/* (f(re) g(im)) + i sign (h(re) k(im)) */
static sx_status product_of_functions(const sx_tf_op_node *x, sx_tf_parts a,
                                      const sx_op_def *const f[4], int sign, sx_tf_parts *out)
{
    sx_value v[4];
    for (int i = 0; i < 4; i++) {
        SX_TRY(one(x, f[i], i % 2 == 0 ? a.re : a.im, &v[i]));
    }
    SX_TF_BUILD(x, &out->re, mul, NULL, v[0], v[1]);
    SX_TF_BUILD(x, &out->im, mul, NULL, v[2], v[3]);
    return sign < 0 ? one(x, &sx_op_neg, out->im, &out->im) : SX_OK;
}

/* (sinh 2re + i sin 2im) / (cosh 2re + cos 2im); it is +-1 long before re is 20. */
static sx_status hyperbolic_tangent(const sx_tf_op_node *x, sx_tf_parts a, sx_tf_parts *out)
{
    sx_value re, im, over, cosine;
    SX_TRY(sx_tf_with_number(x, &sx_op_minimum, a.re, 20, &re));
    SX_TRY(sx_tf_with_number(x, &sx_op_maximum, re, -20, &re));
    SX_TF_BUILD(x, &re, add, NULL, re, re);
    SX_TF_BUILD(x, &im, add, NULL, a.im, a.im);
    SX_TF_BUILD(x, &over, cosh, NULL, re);
    SX_TF_BUILD(x, &cosine, cos, NULL, im);
    SX_TF_BUILD(x, &over, add, NULL, over, cosine);
    SX_TF_BUILD(x, &out->re, sinh, NULL, re);
    SX_TF_BUILD(x, &out->im, sin, NULL, im);
    SX_TF_BUILD(x, &out->re, div, NULL, out->re, over);
    SX_TF_BUILD(x, &out->im, div, NULL, out->im, over);
    return SX_OK;
}

static sx_status import_function(const sx_tf_op_node *x)
{
    static const sx_op_def *const sine[] = {&sx_op_sin, &sx_op_cosh, &sx_op_cos, &sx_op_sinh},
                                  *const cosine[] = {&sx_op_cos, &sx_op_cosh, &sx_op_sin,
                                                     &sx_op_sinh},
                                  *const sinh[] = {&sx_op_sinh, &sx_op_cos, &sx_op_cosh,
                                                   &sx_op_sin},
                                  *const cosh[] = {&sx_op_cosh, &sx_op_cos, &sx_op_sinh,
                                                   &sx_op_sin};
    const char *op = x->n->node->op;
    sx_tf_parts a = {SX_NO_VALUE, SX_NO_VALUE}, y = a;
    SX_TRY(sx_tf_read_parts(x, 0, &a));
    if (strcmp(op, "Exp") == 0) {
        SX_TRY(exponential(x, a, &y));
    } else if (strcmp(op, "Expm1") == 0) {
        SX_TRY(exponential(x, a, &y));
        SX_TRY(sx_tf_with_number(x, &sx_op_sub, y.re, 1, &y.re));
    } else if (strcmp(op, "Log") == 0) {
        SX_TRY(logarithm(x, a, &y));
    } else if (strcmp(op, "Log1p") == 0) {
        SX_TRY(sx_tf_with_number(x, &sx_op_add, a.re, 1, &a.re));
        SX_TRY(logarithm(x, a, &y));
    } else if (strcmp(op, "Sqrt") == 0) {
        SX_TRY(square_root(x, a, &y));
    } else if (strcmp(op, "Rsqrt") == 0) {
        SX_TRY(square_root(x, a, &a));
        SX_TRY(reciprocal(x, a, &y));
    } else if (strcmp(op, "Reciprocal") == 0 || strcmp(op, "Inv") == 0) {
        SX_TRY(reciprocal(x, a, &y));
    } else if (strcmp(op, "Sin") == 0) {
        SX_TRY(product_of_functions(x, a, sine, 1, &y));
    } else if (strcmp(op, "Cos") == 0) {
        SX_TRY(product_of_functions(x, a, cosine, -1, &y));
    } else if (strcmp(op, "Sinh") == 0) {
        SX_TRY(product_of_functions(x, a, sinh, 1, &y));
    } else if (strcmp(op, "Cosh") == 0) {
        SX_TRY(product_of_functions(x, a, cosh, 1, &y));
    } else if (strcmp(op, "Tanh") == 0) {
        SX_TRY(hyperbolic_tangent(x, a, &y));
    } else if (strcmp(op, "Tan") == 0) { /* -i tanh(i a) */
        sx_tf_parts turned = {SX_NO_VALUE, a.re};
        SX_TF_BUILD(x, &turned.re, neg, NULL, a.im);
        SX_TRY(hyperbolic_tangent(x, turned, &turned));
        y.re = turned.im;
        SX_TF_BUILD(x, &y.im, neg, NULL, turned.re);
    } else if (strcmp(op, "Sigmoid") == 0) { /* (1 + tanh(a / 2)) / 2 */
        SX_TRY(sx_tf_with_number(x, &sx_op_mul, a.re, 0.5, &a.re));
        SX_TRY(sx_tf_with_number(x, &sx_op_mul, a.im, 0.5, &a.im));
        SX_TRY(hyperbolic_tangent(x, a, &y));
        SX_TRY(sx_tf_with_number(x, &sx_op_add, y.re, 1, &y.re));
        SX_TRY(sx_tf_with_number(x, &sx_op_mul, y.re, 0.5, &y.re));
        SX_TRY(sx_tf_with_number(x, &sx_op_mul, y.im, 0.5, &y.im));
    } else {
        return sx_tf_unsupported("it reads complex numbers");
    }
    sx_tf_set_parts(x, 0, y);
    return SX_OK;
}

/* e^(b log a); of a = 0 it is 1 if b is 0, else 0. */
static sx_status import_pow(const sx_tf_op_node *x)
{
    sx_tf_parts a = {SX_NO_VALUE, SX_NO_VALUE}, b = a, y = a;
    sx_value is_zero, b_size, b_zero, unit, zero;
    SX_TRY(sx_tf_read_parts(x, 0, &a));
    SX_TRY(sx_tf_read_parts(x, 1, &b));
    SX_TRY(sx_tf_sum_of_products(x, a.re, a.re, 1, a.im, a.im, &is_zero));
    SX_TRY(sx_tf_with_number(x, &sx_op_equal, is_zero, 0, &is_zero));
    SX_TRY(sx_tf_sum_of_products(x, b.re, b.re, 1, b.im, b.im, &b_size));
    SX_TRY(sx_tf_with_number(x, &sx_op_equal, b_size, 0, &b_zero));
    SX_TRY(sx_tf_number(x, sx_type_of_value(x->b, a.re).dtype, 0, &zero));
    SX_TF_BUILD(x, &unit, cast, (&(sx_cast_attrs){sx_type_of_value(x->b, a.re).dtype}), b_zero);
    SX_TRY(logarithm(x, a, &a));
    SX_TRY(multiply(x, a, b, &y));
    SX_TRY(exponential(x, y, &y));
    SX_TF_BUILD(x, &y.re, select, NULL, is_zero, unit, y.re);
    SX_TF_BUILD(x, &y.im, select, NULL, is_zero, zero, y.im);
    sx_tf_set_parts(x, 0, y);
    return SX_OK;
}

/* ---- Products ---- */

/* The product of the sizes, and the sum of the angles. */
static sx_status import_prod(const sx_tf_op_node *x)
{
    sx_tf_parts a = {SX_NO_VALUE, SX_NO_VALUE}, y = a;
    sx_value size, angle;
    SX_TRY(sx_tf_read_parts(x, 0, &a));
    const sx_cast_attrs wide = {SX_F64}, back = {sx_type_of_value(x->b, a.re).dtype};
    SX_TF_BUILD(x, &a.re, cast, &wide, a.re);
    SX_TF_BUILD(x, &a.im, cast, &wide, a.im);
    SX_TRY(sx_tf_sum_of_products(x, a.re, a.re, 1, a.im, a.im, &size));
    SX_TF_BUILD(x, &size, sqrt, NULL, size);
    SX_TF_BUILD(x, &angle, atan2, NULL, a.im, a.re);
    SX_TRY(sx_tf_import_as(x, "Prod", &size, 1, &size));
    SX_TRY(sx_tf_import_as(x, "Sum", &angle, 1, &angle));
    SX_TF_BUILD(x, &y.re, cos, NULL, angle);
    SX_TF_BUILD(x, &y.im, sin, NULL, angle);
    SX_TF_BUILD(x, &y.re, mul, NULL, y.re, size);
    SX_TF_BUILD(x, &y.im, mul, NULL, y.im, size);
    SX_TF_BUILD(x, &y.re, cast, &back, y.re);
    SX_TF_BUILD(x, &y.im, cast, &back, y.im);
    sx_tf_set_parts(x, 0, y);
    return SX_OK;
}

/* MatMul, BatchMatMul, Einsum of two: four products of real numbers. An adjoint is the conjugate,
 * transposed as that of real numbers. */
static sx_status import_matmul(const sx_tf_op_node *x)
{
    const char *op = x->n->node->op;
    sx_tf_parts a = {SX_NO_VALUE, SX_NO_VALUE}, b = a, y = a;
    sx_value both[4];
    if (x->n->n_in == 1) {
        return import_each_part(x);
    }
    SX_TRY(sx_tf_read_parts(x, 0, &a));
    SX_TRY(sx_tf_read_parts(x, 1, &b));
    if (sx_tf_read_bool(&x->tf.head, "adj_x", false)) {
        SX_TF_BUILD(x, &a.im, neg, NULL, a.im);
    }
    if (sx_tf_read_bool(&x->tf.head, "adj_y", false)) {
        SX_TF_BUILD(x, &b.im, neg, NULL, b.im);
    }
    for (int i = 0; i < 4; i++) {
        const sx_value in[] = {i < 2 ? a.re : a.im, i % 2 == 0 ? b.re : b.im};
        SX_TRY(sx_tf_import_as(x, op, in, 2, &both[i]));
    }
    SX_TF_BUILD(x, &y.re, sub, NULL, both[0], both[3]);
    SX_TF_BUILD(x, &y.im, add, NULL, both[1], both[2]);
    sx_tf_set_parts(x, 0, y);
    return SX_OK;
}

static sx_status import_conjugate_transpose(const sx_tf_op_node *x)
{
    sx_tf_parts a = {SX_NO_VALUE, SX_NO_VALUE};
    SX_TRY(sx_tf_read_parts(x, 0, &a));
    SX_TF_BUILD(x, &a.im, neg, NULL, a.im);
    SX_TRY(sx_tf_import_as(x, "Transpose", &a.re, 1, &a.re));
    SX_TRY(sx_tf_import_as(x, "Transpose", &a.im, 1, &a.im));
    sx_tf_set_parts(x, 0, a);
    return SX_OK;
}

/* AsString(a): "(re,im)" */
static sx_status import_as_string(const sx_tf_op_node *x)
{
    static const char *const around[] = {"(", ",", ")"};
    sx_tf_parts a = {SX_NO_VALUE, SX_NO_VALUE};
    sx_value in[5], y = SX_NO_VALUE;
    SX_TRY(sx_tf_read_parts(x, 0, &a));
    for (int i = 0; i < 3; i++) {
        const sx_bytes text = {.data = around[i], .size = 1};
        SX_TRY(sx_tf_constant(x, sx_scalar_type(SX_STRING), &text, &in[2 * i]));
    }
    SX_TRY(sx_tf_import_as(x, "AsString", &a.re, 1, &in[1]));
    SX_TRY(sx_tf_import_as(x, "AsString", &a.im, 1, &in[3]));
    SX_TRY(sx_tf_build(x, &sx_op_string_join, NULL, &y, 5, in));
    x->n->out[0] = (sx_tf_thing){.kind = SX_TF_VALUE, .value = y};
    return SX_OK;
}

/* 1 + 0i */
static sx_status import_ones_like(const sx_tf_op_node *x)
{
    sx_tf_parts a = {SX_NO_VALUE, SX_NO_VALUE};
    SX_TRY(sx_tf_read_parts(x, 0, &a));
    SX_TRY(sx_tf_import_as(x, "ZerosLike", &a.im, 1, &a.im));
    SX_TRY(sx_tf_import_as(x, "OnesLike", &a.re, 1, &a.re));
    sx_tf_set_parts(x, 0, a);
    return SX_OK;
}

static const sx_tf_complex_row of_complex[] = {
    {"Mul", import_mul},
    {"Square", import_mul},
    {"RealDiv", import_div},
    {"Div", import_div},
    {"DivNoNan", import_div},
    {"Pow", import_pow},
    {"Equal", import_equal},
    {"NotEqual", import_equal},
    {"Prod", import_prod},
    {"MatMul", import_matmul},
    {"BatchMatMul", import_matmul},
    {"BatchMatMulV2", import_matmul},
    {"BatchMatMulV3", import_matmul},
    {"Einsum", import_matmul},
    {"ConjugateTranspose", import_conjugate_transpose},
    {"OnesLike", import_ones_like},
    {"AsString", import_as_string},
    {"ReadVariableOp", import_same},
    {"Exp", import_function},
    {"Expm1", import_function},
    {"Log", import_function},
    {"Log1p", import_function},
    {"Sqrt", import_function},
    {"Rsqrt", import_function},
    {"Reciprocal", import_function},
    {"Inv", import_function},
    {"Sin", import_function},
    {"Cos", import_function},
    {"Tan", import_function},
    {"Sinh", import_function},
    {"Cosh", import_function},
    {"Tanh", import_function},
    {"Sigmoid", import_function},
    {"Add", import_each_part},
    {"AddV2", import_each_part},
    {"AddN", import_each_part},
    {"Sub", import_each_part},
    {"Neg", import_each_part},
    {"Sum", import_each_part},
    {"Mean", import_each_part},
    {"Cumsum", import_each_part},
    {"SegmentSum", import_each_part},
    {"SegmentMean", import_each_part},
    {"UnsortedSegmentSum", import_each_part},
    {"Identity", import_each_part},
    {"IdentityN", import_each_part},
    {"Snapshot", import_each_part},
    {"StopGradient", import_each_part},
    {"PreventGradient", import_each_part},
    {"EnsureShape", import_each_part},
    {"Reshape", import_each_part},
    {"ExpandDims", import_each_part},
    {"Squeeze", import_each_part},
    {"Transpose", import_each_part},
    {"Slice", import_each_part},
    {"StridedSlice", import_each_part},
    {"Split", import_each_part},
    {"SplitV", import_each_part},
    {"Pack", import_each_part},
    {"Unpack", import_each_part},
    {"Concat", import_each_part},
    {"ConcatV2", import_each_part},
    {"Gather", import_each_part},
    {"GatherV2", import_each_part},
    {"GatherNd", import_each_part},
    {"ScatterNd", import_each_part},
    {"TensorScatterUpdate", import_each_part},
    {"TensorScatterAdd", import_each_part},
    {"TensorScatterSub", import_each_part},
    {"Tile", import_each_part},
    {"BroadcastTo", import_each_part},
    {"Fill", import_each_part},
    {"ReverseV2", import_each_part},
    {"Roll", import_each_part},
    {"Pad", import_each_part},
    {"PadV2", import_each_part},
    {"MirrorPad", import_each_part},
    {"ZerosLike", import_each_part},
    {"BiasAdd", import_each_part},
    {"Select", import_each_part},
    {"SelectV2", import_each_part},
    {"Diag", import_each_part},
    {"DiagPart", import_each_part},
    {"MatrixDiag", import_each_part},
    {"MatrixDiagV2", import_each_part},
    {"MatrixDiagV3", import_each_part},
    {"MatrixDiagPart", import_each_part},
    {"MatrixDiagPartV2", import_each_part},
    {"MatrixDiagPartV3", import_each_part},
    {"MatrixSetDiag", import_each_part},
    {"MatrixSetDiagV2", import_each_part},
    {"MatrixSetDiagV3", import_each_part},
    {"MatrixBandPart", import_each_part},
    {"DynamicStitch", import_each_part},
    {"ParallelDynamicStitch", import_each_part},
    {"DynamicPartition", import_each_part},
    {"SpaceToBatchND", import_each_part},
    {"BatchToSpaceND", import_each_part},
    {NULL, NULL},
};

/* The shape is that of either part. */
static sx_status import_shape(sx_tf_op_node *x)
{
    sx_tf_import_node of = *x->n;
    sx_tf_thing *in =
        sx_arena_memdup(&x->im->arena, x->n->in, ((size_t)x->n->n_in + 1) * sizeof(*in));
    if (in == NULL) {
        return sx_import_memory();
    }
    in[0] = (sx_tf_thing){.kind = SX_TF_VALUE, .value = in[0].parts[0]};
    of.in = in;
    return sx_tf_import_op(x->im, x->body, &of);
}

sx_status sx_tf_import_complex(sx_tf_op_node *x)
{
    const char *op = x->n->node->op;
    if (strcmp(op, "Shape") == 0 || strcmp(op, "Size") == 0 || strcmp(op, "Rank") == 0) {
        return import_shape(x);
    }
    static const sx_tf_op_row *const of_both[] = {sx_tf_complex_rows, sx_tf_fourier_rows,
                                                  sx_tf_branch_rows,  sx_tf_loop_rows,
                                                  sx_tf_list_rows,    sx_tf_variant_rows};
    for (size_t t = 0; t < SX_COUNT(of_both); t++) {
        for (const sx_tf_op_row *row = of_both[t]; row->tf_op != NULL; row++) {
            if (strcmp(row->tf_op, op) == 0) {
                return row->import(x);
            }
        }
    }
    static const sx_tf_complex_row *const tables[] = {of_complex, sx_tf_complex_matrix_rows};
    for (size_t t = 0; t < SX_COUNT(tables); t++) {
        for (const sx_tf_complex_row *row = tables[t]; row->tf_op != NULL; row++) {
            if (strcmp(row->tf_op, op) == 0) {
                return row->import(x);
            }
        }
    }
    return sx_tf_unsupported("it reads complex numbers");
}

/* ---- Both parts in one tensor ---- */

sx_status sx_tf_split_complex(const sx_tf_op_node *x, sx_value both, sx_tf_thing *out)
{
    const sx_type type = sx_type_of_value(x->b, both);
    const int axis = type.rank - 1;
    sx_ints kept = {.n = axis};
    if (type.rank == SX_UNKNOWN_RANK || axis < 0) {
        return sx_tf_unsupported("a complex tensor of unknown rank");
    }
    *out = (sx_tf_thing){.kind = SX_TF_COMPLEX};
    for (int d = 0; d < axis; d++) {
        kept.v[d] = d;
    }
    for (int p = 0; p < 2; p++) {
        SX_TRY(sx_tf_cut_axis(x, both, axis, p, 1, &out->parts[p]));
        SX_TRY(sx_tf_reshape_dims(x, out->parts[p], &kept, &out->parts[p]));
    }
    return SX_OK;
}

sx_status sx_tf_join_complex(const sx_tf_op_node *x, const sx_tf_thing *y, sx_value *out)
{
    const int rank = sx_type_of_value(x->b, y->parts[0]).rank;
    sx_value joined[2] = {SX_NO_VALUE, SX_NO_VALUE};
    if (rank == SX_UNKNOWN_RANK || rank == SX_MAX_RANK) {
        return sx_tf_unsupported("a complex tensor of %s",
                                 rank == SX_MAX_RANK ? "this rank" : "unknown rank");
    }
    for (int p = 0; p < 2; p++) {
        SX_TRY(sx_tf_expand(x, y->parts[p], -1, &joined[p]));
    }
    return sx_tf_build(x, &sx_op_concat, &(sx_axis_attrs){rank}, out, 2, joined);
}

sx_status sx_tf_feed_complex(sx_library_importer *im, sx_tf_body *body, const char *key,
                             sx_type type, sx_tf_thing *out)
{
    const sx_tf_op_node x = {.im = im, .body = body, .b = body->b};
    if (type.rank == SX_UNKNOWN_RANK || type.rank == SX_MAX_RANK) {
        return sx_tf_unsupported("a complex input of %s is not supported",
                                 type.rank == SX_MAX_RANK ? "this rank" : "unknown rank");
    }
    type.dtype = sx_tf_part_of((int64_t)type.dtype);
    type.dims[type.rank++] = 2;
    return sx_tf_split_complex(&x, sx_input(body->b, key, type), out);
}

sx_status sx_tf_give_complex(sx_library_importer *im, sx_tf_body *body, sx_tf_thing *y)
{
    const sx_tf_op_node x = {.im = im, .body = body, .b = body->b};
    return sx_tf_join_complex(&x, y, &y->value);
}

/* ---- Constants, casts, parts ---- */

sx_status sx_tf_import_complex_const(sx_tf_op_node *x, bool *out_done)
{
    const Tensorflow__AttrValue *value = sx_tf_node_attr(x->n->node, "value");
    const Tensorflow__TensorProto *m =
        value != NULL && value->value_case == TENSORFLOW__ATTR_VALUE__VALUE_TENSOR ? value->tensor
                                                                                   : NULL;
    *out_done = m != NULL && sx_tf_is_complex((int64_t)m->dtype);
    if (!*out_done) {
        return SX_OK;
    }
    const sx_dtype dtype = sx_tf_part_of((int64_t)m->dtype);
    const size_t size = sx_dtype_bytes(dtype), bytes = m->tensor_content.len;
    const size_t listed = (dtype == SX_F32 ? m->n_scomplex_val : m->n_dcomplex_val) / 2;
    const char *list =
        dtype == SX_F32 ? (const char *)m->scomplex_val : (const char *)m->dcomplex_val;
    Tensorflow__TensorProto shape = *m; /* zeros of its shape, to be filled */
    shape.dtype = (Tensorflow__DataType)dtype;
    shape.tensor_content.len = 0;
    shape.n_float_val = shape.n_double_val = 0;
    sx_tf_parts y = {SX_NO_VALUE, SX_NO_VALUE};
    for (int p = 0; p < 2; p++) {
        sx_tensor t;
        SX_TRY(sx_tf_tensor_value(&shape, &x->im->arena, &t));
        const size_t elems = (size_t)sx_type_elems(&t.type);
        if (bytes > 0 && bytes / size / 2 != elems) {
            return sx_error(SX_DATA_LOSS, "a constant has %zu bytes, expected %zu for its shape",
                            bytes, elems * size * 2);
        }
        const char *from = bytes > 0 ? (const char *)m->tensor_content.data : list;
        const size_t count = bytes > 0 ? elems : listed;
        for (size_t i = 0; i < elems && count > 0; i++) {
            const size_t k = SX_MIN(i, count - 1); /* the last one is repeated */
            memcpy((char *)t.data + i * size, from + (2 * k + (size_t)p) * size, size);
        }
        SX_TRY(sx_tf_charge_constant(x, sx_type_bytes(&t.type)));
        SX_TRY(sx_tf_constant(x, t.type, t.data, p == 0 ? &y.re : &y.im));
    }
    sx_tf_set_parts(x, 0, y);
    return SX_OK;
}

sx_status sx_tf_import_complex_variable(sx_tf_op_node *x, const char *key, const sx_type *type)
{
    const sx_dtype dtype = sx_tf_part_of((int64_t)type->dtype);
    const size_t size = sx_dtype_bytes(dtype);
    const int64_t elems = sx_type_elems(type);
    SX_TRY(sx_tf_charge_constant(x, sx_type_bytes(type)));
    char *both = sx_arena_alloc(&x->im->arena, (size_t)elems * 2 + 1, size);
    sx_tf_parts y = {SX_NO_VALUE, SX_NO_VALUE};
    if (both == NULL) {
        return sx_import_memory();
    }
    SX_TRY(sx_bundle_read(sx_saved_model_variables(x->im->model), key, type, both));
    for (int p = 0; p < 2; p++) {
        char *data = sx_arena_alloc(&x->im->arena, (size_t)elems + 1, size);
        sx_type part = *type;
        part.dtype = dtype;
        if (data == NULL) {
            return sx_import_memory();
        }
        for (int64_t i = 0; i < elems; i++) {
            memcpy(data + (size_t)i * size, both + (size_t)(2 * i + p) * size, size);
        }
        SX_TRY(sx_tf_constant(x, part, data, p == 0 ? &y.re : &y.im));
    }
    sx_tf_set_parts(x, 0, y);
    return SX_OK;
}

/* To complex numbers the imaginary part is 0; from them the real part counts. */
static sx_status import_cast(sx_tf_op_node *x)
{
    const Tensorflow__AttrValue *dst = sx_tf_node_attr(x->n->node, "DstT");
    const int64_t to = dst != NULL && dst->value_case == TENSORFLOW__ATTR_VALUE__VALUE_TYPE
                           ? (int64_t)dst->type
                           : SX_DTYPE_NONE;
    const bool from_complex = x->n->n_in > 0 && x->n->in[0].kind == SX_TF_COMPLEX;
    if (!from_complex && !sx_tf_is_complex(to)) {
        return sx_tf_import_one(x);
    }
    const sx_cast_attrs attrs = {sx_tf_is_complex(to) ? sx_tf_part_of(to) : (sx_dtype)to};
    sx_tf_parts y = {SX_NO_VALUE, SX_NO_VALUE};
    if (from_complex) {
        SX_TRY(sx_tf_read_parts(x, 0, &y));
    } else {
        SX_TRY(sx_tf_operand(x, 0, &y.re));
    }
    if (sx_type_of_value(x->b, y.re).dtype != attrs.dtype) {
        SX_TF_BUILD(x, &y.re, cast, &attrs, y.re);
    }
    if (!sx_tf_is_complex(to)) {
        sx_tf_set(x, 0, y.re);
        return SX_OK;
    }
    if (from_complex && sx_type_of_value(x->b, y.im).dtype != attrs.dtype) {
        SX_TF_BUILD(x, &y.im, cast, &attrs, y.im);
    } else if (!from_complex) {
        SX_TF_BUILD(x, &y.im, sub, NULL, y.re, y.re);
    }
    sx_tf_set_parts(x, 0, y);
    return SX_OK;
}

static sx_status import_complex(sx_tf_op_node *x)
{
    sx_tf_parts y = {SX_NO_VALUE, SX_NO_VALUE};
    sx_value sum = SX_NO_VALUE, shape = SX_NO_VALUE;
    SX_TRY(sx_tf_operand(x, 0, &y.re));
    SX_TRY(sx_tf_operand(x, 1, &y.im));
    const sx_type a = sx_type_of_value(x->b, y.re), b = sx_type_of_value(x->b, y.im);
    bool same = a.rank != SX_UNKNOWN_RANK && sx_same_dims(&a, &b);
    for (int d = 0; d < a.rank; d++) {
        same = same && (a.dims[d] >= 0 || sx_dim_is_batch(a.dims[d]));
    }
    if (!same) { /* they may broadcast */
        SX_TF_BUILD(x, &sum, add, NULL, y.re, y.im);
        SX_TF_BUILD(x, &shape, shape, (&(sx_cast_attrs){SX_I64}), sum);
        SX_TRY(sx_tf_build_open(x, &sx_op_broadcast_to, NULL, y.re, "shape", shape, &y.re));
        SX_TRY(sx_tf_build_open(x, &sx_op_broadcast_to, NULL, y.im, "shape", shape, &y.im));
    }
    sx_tf_set_parts(x, 0, y);
    return SX_OK;
}

static sx_status import_part(sx_tf_op_node *x)
{
    const char *op = x->n->node->op;
    sx_tf_parts a = {SX_NO_VALUE, SX_NO_VALUE};
    sx_value y = SX_NO_VALUE;
    SX_TRY(sx_tf_read_parts(x, 0, &a));
    if (strcmp(op, "ComplexAbs") == 0) {
        SX_TRY(sx_tf_sum_of_products(x, a.re, a.re, 1, a.im, a.im, &y));
        SX_TF_BUILD(x, &y, sqrt, NULL, y);
    } else if (strcmp(op, "Angle") == 0) {
        SX_TF_BUILD(x, &y, atan2, NULL, a.im, a.re);
    } else {
        y = strcmp(op, "Real") == 0 ? a.re : a.im;
    }
    sx_tf_set(x, 0, y);
    return SX_OK;
}

static sx_status import_conj(sx_tf_op_node *x)
{
    sx_tf_parts y = {SX_NO_VALUE, SX_NO_VALUE};
    SX_TRY(sx_tf_read_parts(x, 0, &y));
    SX_TF_BUILD(x, &y.im, neg, NULL, y.im);
    sx_tf_set_parts(x, 0, y);
    return SX_OK;
}

/* ---- The table ---- */

const sx_tf_op_row sx_tf_complex_rows[] = {
    {"Cast", import_cast, NULL}, {"Complex", import_complex, NULL}, {"Real", import_part, NULL},
    {"Imag", import_part, NULL}, {"ComplexAbs", import_part, NULL}, {"Angle", import_part, NULL},
    {"Conj", import_conj, NULL}, {"Eig", sx_tf_import_eig, NULL},   {NULL, NULL, NULL},
};
