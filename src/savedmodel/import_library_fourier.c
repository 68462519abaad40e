/* Imports Fourier transforms as products with matrices of cosines and sines; a long one as two of
 * its factors. One whose length is found only as the model runs, or that is too long and has no
 * such factors, is the operator fourier_transform. */
#include <math.h>
#include <string.h>

#include "graph/host.h"
#include "savedmodel/import_library_complex.h"

enum { MOST_FACTOR = 2048, MOST_WEIGHTS = MOST_FACTOR * MOST_FACTOR };

/* The [rows, columns] matrix of weight cos(2 pi i k / n), or of the sine; zero from row `most` on.
 */
static sx_status wave(const sx_tf_op_node *x, sx_dtype dtype, int64_t rows, int64_t columns,
                      int64_t n, int64_t most, bool sine, bool halves, sx_value *out)
{
    const size_t size = sx_dtype_bytes(dtype);
    SX_TRY(sx_tf_charge_constant(x, rows * columns * (int64_t)size));
    char *data = sx_arena_alloc(&x->im->arena, (size_t)(rows * columns), size);
    if (data == NULL) {
        return sx_import_memory();
    }
    for (int64_t i = 0; i < rows; i++) {
        /* of half of the frequencies: each but the first, and the last if n is even, stands for two
         */
        const double weight = i >= most ? 0 : halves && i > 0 && 2 * i != n ? 2 : 1;
        for (int64_t k = 0; k < columns; k++) {
            /* exact at quarters of a turn */
            const int64_t turn = i * k % n, quarter = 4 * turn % n == 0 ? 4 * turn / n : -1;
            const double angle = 2 * M_PI * (double)turn / (double)n,
                         value = quarter < 0 ? (sine ? sin(angle) : cos(angle))
                                 : sine      ? (double)((quarter == 1) - (quarter == 3))
                                             : (double)((quarter == 0) - (quarter == 2));
            sx_host_store_element(dtype, weight * value, data + (size_t)(i * columns + k) * size);
        }
    }
    return sx_tf_constant(x, sx_type_of(dtype, rows, columns), data, out);
}

/* How a transform goes along one axis: `has` numbers of the input give `columns`, of a length of n;
 * numbers of the input from `most` on do not count. As numbers, or, where one is computed, as int64
 * [1]. */
typedef struct axis_sizes {
    bool known;
    int64_t has, columns, n, most;
    sx_value v_has, v_columns, v_n, v_most;
} axis_sizes;

/* v divided by n. */
static sx_status divide_by_n(const sx_tf_op_node *x, const axis_sizes *z, sx_value v, sx_value *out)
{
    const sx_dtype dtype = sx_type_of_value(x->b, v).dtype;
    sx_value by;
    if (z->known) {
        SX_TRY(sx_tf_number(x, dtype, 1 / (double)z->n, &by));
        SX_TF_BUILD(x, out, mul, NULL, v, by);
    } else {
        SX_TF_BUILD(x, &by, cast, (&(sx_cast_attrs){dtype}), z->v_n);
        SX_TF_BUILD(x, out, div, NULL, v, by);
    }
    return SX_OK;
}

/* v, whose axis `axis` from the end, 1 or more, is multiplied with a matrix. */
static sx_status along(const sx_tf_op_node *x, sx_value v, int axis, sx_value matrix, sx_value *out)
{
    const sx_type type = sx_type_of_value(x->b, v);
    if (axis == 1 && type.rank == 1) {
        const sx_ints flat = {1, {1}};
        SX_TRY(sx_tf_expand(x, v, 0, &v));
        SX_TF_BUILD(x, &v, matmul, NULL, v, matrix);
        SX_TRY(sx_tf_reshape_dims(x, v, &flat, out));
    } else if (axis == 1) {
        SX_TF_BUILD(x, out, matmul, NULL, v, matrix);
    } else if (axis == 2) {
        const sx_matmul_attrs turned = {.transpose_a = true};
        SX_TF_BUILD(x, out, matmul, &turned, matrix, v);
    } else { /* the last but two changes places with the last but one */
        sx_transpose_attrs swap = {.perm = {.n = type.rank}};
        for (int d = 0; d < type.rank; d++) {
            const int back = type.rank - d;
            swap.perm.v[d] = back == 3 ? d + 1 : back == 2 ? d - 1 : d;
        }
        SX_TF_BUILD(x, &v, transpose, &swap, v);
        SX_TRY(along(x, v, 2, matrix, &v));
        SX_TF_BUILD(x, out, transpose, &swap, v);
    }
    return SX_OK;
}

/* The product of a complex tensor and the matrix cos + i sign sin along an axis. */
static sx_status transform(const sx_tf_op_node *x, sx_tf_parts a, int axis, sx_value cosine,
                           sx_value sine, int sign, sx_tf_parts *out)
{
    sx_value rc, rs, ic, is;
    SX_TRY(along(x, a.re, axis, cosine, &rc));
    SX_TRY(along(x, a.re, axis, sine, &rs));
    SX_TRY(along(x, a.im, axis, cosine, &ic));
    SX_TRY(along(x, a.im, axis, sine, &is));
    const sx_value re[] = {rc, is}, im[] = {ic, rs};
    SX_TRY(sx_tf_build(x, sign > 0 ? &sx_op_sub : &sx_op_add, NULL, &out->re, 2, re));
    return sx_tf_build(x, sign > 0 ? &sx_op_add : &sx_op_sub, NULL, &out->im, 2, im);
}

/* v with its last `n_from` axes as `to`. */
static sx_status reshape_last(const sx_tf_op_node *x, sx_value v, int n_from, const sx_ints *to,
                              sx_value *out)
{
    const sx_type type = sx_type_of_value(x->b, v);
    const int kept = type.rank - n_from;
    sx_shape_attrs attrs = {.shape = {.n = kept + to->n}};
    sx_type made = {.dtype = type.dtype, .rank = kept + to->n};
    int n_unknown = 0;
    if (made.rank > SX_MAX_RANK) {
        return sx_tf_unsupported("a long Fourier transform of rank %d", type.rank);
    }
    for (int d = 0; d < made.rank; d++) {
        made.dims[d] = attrs.shape.v[d] = d < kept ? type.dims[d] : to->v[d - kept];
        n_unknown += made.dims[d] < 0 && !sx_dim_is_batch(made.dims[d]);
    }
    if (n_unknown == 0) {
        return sx_tf_build(x, &sx_op_reshape, &attrs, out, 1, &v);
    }
    const sx_ints from = {1, {0}}, count = {1, {kept}};
    sx_value shape, begin, size, ends;
    SX_TF_BUILD(x, &shape, shape, (&(sx_cast_attrs){SX_I64}), v);
    SX_TRY(sx_tf_int64s(x, &from, &begin));
    SX_TRY(sx_tf_int64s(x, &count, &size));
    SX_TRY(sx_tf_vector_part(x, shape, begin, size, &shape));
    SX_TRY(sx_tf_int64s(x, to, &ends));
    SX_TF_BUILD(x, &shape, concat, (&(sx_axis_attrs){0}), shape, ends);
    return sx_tf_reshape_as(x, v, shape, &made, out);
}

/* The lesser of the two factors of n that are nearest to each other. */
static int64_t lesser_factor(int64_t n)
{
    int64_t factor = (int64_t)sqrt((double)n);
    while (n % factor != 0) {
        factor--;
    }
    return factor;
}

/* Whether one matrix is too large, */
static bool is_large(const axis_sizes *z)
{
    return z->columns > MOST_WEIGHTS / z->has;
}

/* two are not, */
static bool has_factors(const axis_sizes *z)
{
    return z->n <= MOST_WEIGHTS && z->n / lesser_factor(z->n) <= MOST_FACTOR;
}

/* and take so much fewer products that it pays to turn the numbers between them. */
static bool is_long(const axis_sizes *z, int rank)
{
    enum { PAYS = 7 };
    const int64_t p = lesser_factor(z->n);
    return is_large(z) ||
           (rank < SX_MAX_RANK && z->columns * z->has / PAYS >= z->n * (p + z->n / p));
}

/* The last axis cut to `want` numbers, or padded with zeros. */
static sx_status fit_last(const sx_tf_op_node *x, int64_t want, sx_value *v)
{
    const sx_type type = sx_type_of_value(x->b, *v);
    const int64_t has = type.dims[type.rank - 1];
    if (has > want) {
        return sx_tf_cut_axis(x, *v, type.rank - 1, 0, want, v);
    }
    sx_pad_attrs pad = {.before = {.n = type.rank}, .after = {.n = type.rank}};
    pad.after.v[type.rank - 1] = want - has;
    return has == want ? SX_OK : sx_tf_build(x, &sx_op_pad, &pad, v, 1, v);
}

/* The n numbers of which the first n / 2 + 1 are `v` and the others their mirror image. */
static sx_status mirrored(const sx_tf_op_node *x, sx_value v, int64_t n, bool negative,
                          sx_value *out)
{
    const int last = sx_type_of_value(x->b, v).rank - 1;
    const sx_axes_attrs axes = {.axes = {1, {last}}};
    sx_value rest, zero;
    SX_TRY(sx_tf_cut_axis(x, v, last, 1, n - (n / 2 + 1), &rest));
    SX_TF_BUILD(x, &rest, reverse, &axes, rest);
    if (negative) {
        SX_TRY(sx_tf_number(x, sx_type_of_value(x->b, v).dtype, 0, &zero));
        SX_TF_BUILD(x, &rest, sub, NULL, zero, rest);
    }
    const sx_value both[] = {v, rest};
    return sx_tf_build(x, &sx_op_concat, &(sx_axis_attrs){last}, out, 2, both);
}

/* Cooley and Tukey's rule for n = p q numbers: with i = i1 q + i2 and k = k1 + p k2, a transform
 * along i1, then each number is turned by i2 k1 / n, then one along i2. This is what follows the
 * first: of [...,p,q], whose q is the axis `back` from the end, to [...,q,p]. */
static sx_status second_factor(const sx_tf_op_node *x, sx_tf_parts a, int64_t n, int64_t p,
                               int back, int sign, sx_tf_parts *out)
{
    const sx_dtype dtype = sx_type_of_value(x->b, a.re).dtype;
    const int64_t q = n / p;
    sx_value cosine, sine;
    sx_tf_parts y = {SX_NO_VALUE, SX_NO_VALUE};
    SX_TRY(wave(x, dtype, p, q, n, p, false, false, &cosine));
    SX_TRY(wave(x, dtype, p, q, n, p, true, false, &sine));
    for (int i = 1; i < back; i++) {
        SX_TRY(sx_tf_expand(x, cosine, -1, &cosine));
        SX_TRY(sx_tf_expand(x, sine, -1, &sine));
    }
    SX_TRY(sx_tf_sum_of_products(x, a.re, cosine, -sign, a.im, sine, &y.re));
    SX_TRY(sx_tf_sum_of_products(x, a.im, cosine, sign, a.re, sine, &y.im));
    SX_TRY(wave(x, dtype, q, q, q, q, false, false, &cosine));
    SX_TRY(wave(x, dtype, q, q, q, q, true, false, &sine));
    SX_TRY(transform(x, y, back, cosine, sine, sign, &y));
    sx_transpose_attrs turn = {.perm = {.n = sx_type_of_value(x->b, y.re).rank}};
    for (int d = 0; d < turn.perm.n; d++) {
        const int from_end = turn.perm.n - d;
        turn.perm.v[d] = from_end == back + 1 ? d + 1 : from_end == back ? d - 1 : d;
    }
    SX_TF_BUILD(x, &out->re, transpose, &turn, y.re);
    SX_TF_BUILD(x, &out->im, transpose, &turn, y.im);
    return SX_OK;
}

/* The transform of the last axis of n = p q numbers, n not prime. No a.im: real numbers. */
static sx_status long_transform(const sx_tf_op_node *x, sx_tf_parts a, int64_t n, int sign,
                                sx_tf_parts *out)
{
    const sx_dtype dtype = sx_type_of_value(x->b, a.re).dtype;
    const int64_t p = lesser_factor(n), q = n / p;
    const sx_ints square = {2, {p, q}}, line = {1, {n}};
    sx_value cosine, sine;
    sx_tf_parts y = {SX_NO_VALUE, SX_NO_VALUE};
    SX_TRY(reshape_last(x, a.re, 1, &square, &a.re));
    SX_TRY(wave(x, dtype, p, p, p, p, false, false, &cosine));
    SX_TRY(wave(x, dtype, p, p, p, p, true, false, &sine));
    if (sx_value_is(a.im)) {
        SX_TRY(reshape_last(x, a.im, 1, &square, &a.im));
        SX_TRY(transform(x, a, 2, cosine, sine, sign, &y));
    } else {
        sx_value zero;
        SX_TRY(along(x, a.re, 2, cosine, &y.re));
        SX_TRY(along(x, a.re, 2, sine, &y.im));
        if (sign < 0) {
            SX_TRY(sx_tf_number(x, dtype, 0, &zero));
            SX_TF_BUILD(x, &y.im, sub, NULL, zero, y.im);
        }
    }
    SX_TRY(second_factor(x, y, n, p, 1, sign, &y));
    SX_TRY(reshape_last(x, y.re, 2, &line, &out->re));
    return reshape_last(x, y.im, 2, &line, &out->im);
}

/* The same of the last axis but one, [...,n,w]: w is known. */
static sx_status long_columns(const sx_tf_op_node *x, sx_tf_parts a, int64_t n, int sign,
                              sx_tf_parts *out)
{
    const sx_type type = sx_type_of_value(x->b, a.re);
    const int64_t p = lesser_factor(n), q = n / p, w = type.dims[type.rank - 1];
    const sx_ints flat = {2, {p, q * w}}, cube = {3, {p, q, w}}, back = {2, {n, w}};
    sx_value cosine, sine;
    sx_tf_parts y = {SX_NO_VALUE, SX_NO_VALUE};
    SX_TRY(wave(x, type.dtype, p, p, p, p, false, false, &cosine));
    SX_TRY(wave(x, type.dtype, p, p, p, p, true, false, &sine));
    SX_TRY(reshape_last(x, a.re, 2, &flat, &a.re));
    SX_TRY(reshape_last(x, a.im, 2, &flat, &a.im));
    SX_TRY(transform(x, a, 2, cosine, sine, sign, &a));
    SX_TRY(reshape_last(x, a.re, 2, &cube, &a.re));
    SX_TRY(reshape_last(x, a.im, 2, &cube, &a.im));
    SX_TRY(second_factor(x, a, n, p, 2, sign, &y));
    SX_TRY(reshape_last(x, y.re, 3, &back, &out->re));
    return reshape_last(x, y.im, 3, &back, &out->im);
}

/* Element i of a vector of integers, as int64 [1]. */
static sx_status element_of(const sx_tf_op_node *x, sx_value vector, int64_t i, sx_value *out)
{
    const sx_ints at = {1, {i}}, one = {1, {1}};
    sx_value begin, size;
    SX_TRY(sx_tf_int64s(x, &at, &begin));
    SX_TRY(sx_tf_int64s(x, &one, &size));
    SX_TRY(sx_tf_vector_part(x, vector, begin, size, out));
    SX_TF_BUILD(x, out, cast, (&(sx_cast_attrs){SX_I64}), *out);
    return SX_OK;
}

/* Sets z->v_* where a size is computed: of `v` along `axis` from the end, of `lengths` if that is a
 * value. */
static sx_status open_sizes(const sx_tf_op_node *x, sx_value v, int axis, sx_value lengths,
                            int64_t length, bool half_out, bool half_in, axis_sizes *z)
{
    const int rank = sx_type_of_value(x->b, v).rank;
    sx_value shape, two, one, half;
    SX_TF_BUILD(x, &shape, shape, (&(sx_cast_attrs){SX_I64}), v);
    SX_TRY(element_of(x, shape, rank - axis, &z->v_has));
    z->v_n = z->v_has;
    if (sx_value_is(lengths)) {
        SX_TRY(element_of(x, lengths, length, &z->v_n));
    }
    SX_TRY(sx_tf_number(x, SX_I64, 2, &two));
    SX_TRY(sx_tf_number(x, SX_I64, 1, &one));
    SX_TF_BUILD(x, &half, floor_div, NULL, z->v_n, two);
    SX_TF_BUILD(x, &half, add, NULL, half, one);
    z->v_columns = half_out ? half : z->v_n;
    z->v_most = half_in ? half : z->v_n;
    return SX_OK;
}

/* v with the last axis and the one that is `axis` from the end exchanged. */
static sx_status exchange_last(const sx_tf_op_node *x, int axis, sx_value *v)
{
    const int rank = sx_type_of_value(x->b, *v).rank;
    sx_transpose_attrs swap = {.perm = {.n = rank}};
    for (int d = 0; d < rank; d++) {
        swap.perm.v[d] = rank - d == axis ? rank - 1 : d == rank - 1 ? rank - axis : d;
    }
    return axis == 1 ? SX_OK : sx_tf_build(x, &sx_op_transpose, &swap, v, 1, v);
}

/* The transform along an axis if it is_long() and has_factors(); as import_fourier() the others. */
static sx_status import_long(const sx_tf_op_node *x, sx_tf_parts a, int axis, const axis_sizes *z,
                             bool half_out, bool half_in, int sign, sx_tf_parts *out)
{
    const sx_type type = sx_type_of_value(x->b, a.re);
    const bool columns = axis == 2 && z->has == z->n && type.dims[type.rank - 1] >= 0 &&
                         type.rank + 1 <= SX_MAX_RANK && sx_value_is(a.im);
    if (columns) {
        SX_TRY(long_columns(x, a, z->n, sign, &a));
    } else {
        SX_TRY(exchange_last(x, axis, &a.re));
        SX_TRY(fit_last(x, z->most, &a.re));
        if (sx_value_is(a.im)) {
            SX_TRY(exchange_last(x, axis, &a.im));
            SX_TRY(fit_last(x, z->most, &a.im));
        }
        if (half_in) {
            SX_TRY(mirrored(x, a.re, z->n, false, &a.re));
            SX_TRY(mirrored(x, a.im, z->n, true, &a.im));
        }
        SX_TRY(long_transform(x, a, z->n, sign, &a));
    }
    sx_value *const made[] = {&a.re, &a.im};
    for (int i = 0; i < 2; i++) {
        if (half_out) {
            SX_TRY(fit_last(x, z->columns, made[i]));
        }
        if (sign > 0) {
            SX_TRY(divide_by_n(x, z, *made[i], made[i]));
        }
        if (!columns) {
            SX_TRY(exchange_last(x, axis, made[i]));
        }
    }
    *out = a;
    return SX_OK;
}

/* v's numbers of the last axis that are at `places`, 0 where not `there`. */
static sx_status take_last(const sx_tf_op_node *x, sx_value places, sx_value there, sx_value *v)
{
    const sx_type type = sx_type_of_value(x->b, *v);
    const sx_gather_attrs last = {.axis = type.rank - 1};
    sx_value zero;
    SX_TRY(sx_tf_number(x, type.dtype, 0, &zero));
    SX_TF_BUILD(x, v, gather, &last, *v, places);
    SX_TF_BUILD(x, v, select, NULL, there, *v, zero);
    return SX_OK;
}

/* The last axis as the n numbers that are transformed: cut, or padded with zeros; of half of them,
 * `half_in`, with their mirror image. */
static sx_status fit_open(const sx_tf_op_node *x, const axis_sizes *z, bool half_in, sx_tf_parts *a)
{
    sx_value place, there, one, most, first_half;
    SX_TRY(sx_tf_count_to(x, z->v_n, SX_I64, &place));
    if (half_in) {
        sx_value mirrored_place;
        SX_TF_BUILD(x, &first_half, less, NULL, place, z->v_most);
        SX_TF_BUILD(x, &mirrored_place, sub, NULL, z->v_n, place);
        SX_TF_BUILD(x, &place, select, NULL, first_half, place, mirrored_place);
    }
    SX_TRY(sx_tf_number(x, SX_I64, 1, &one));
    SX_TF_BUILD(x, &there, less, NULL, place, z->v_has);
    SX_TF_BUILD(x, &most, sub, NULL, z->v_has, one);
    SX_TF_BUILD(x, &place, minimum, NULL, place, most);
    SX_TRY(take_last(x, place, there, &a->re));
    if (!sx_value_is(a->im)) {
        return SX_OK;
    }
    SX_TRY(take_last(x, place, there, &a->im));
    if (half_in) {
        sx_value negative;
        SX_TF_BUILD(x, &negative, neg, NULL, a->im);
        SX_TF_BUILD(x, &a->im, select, NULL, first_half, a->im, negative);
    }
    return SX_OK;
}

/* The transform along an axis whose sizes are computed, or too large for matrices; as
 * import_fourier() the others. */
static sx_status import_open(const sx_tf_op_node *x, sx_tf_parts a, int axis, const axis_sizes *z,
                             bool half_out, bool half_in, int sign, sx_tf_parts *out)
{
    const bool fits = z->v_n.id == z->v_has.id;
    SX_TRY(exchange_last(x, axis, &a.re));
    if (sx_value_is(a.im)) {
        SX_TRY(exchange_last(x, axis, &a.im));
    }
    if (!fits || half_in) {
        SX_TRY(fit_open(x, z, half_in, &a));
    }
    if (!sx_value_is(a.im)) {
        sx_value zero;
        SX_TRY(sx_tf_number(x, sx_type_of_value(x->b, a.re).dtype, 0, &zero));
        SX_TF_BUILD(x, &a.im, mul, NULL, a.re, zero);
        SX_TF_BUILD(x, &a.im, sub, NULL, zero, a.im); /* -0 would have another angle */
    }
    const sx_value parts[] = {sign < 0 ? a.re : a.im, sign < 0 ? a.im : a.re};
    sx_value y;
    SX_TRY(sx_tf_build(x, &sx_op_fourier_transform, NULL, &y, 2, parts));
    a = sign < 0 ? (sx_tf_parts){y, sx_output_of(y, 1)} : (sx_tf_parts){sx_output_of(y, 1), y};
    sx_value *const made[] = {&a.re, &a.im};
    for (int i = 0; i < 2; i++) {
        if (half_out) {
            sx_value begin;
            const sx_ints zero = {1, {0}};
            SX_TRY(sx_tf_int64s(x, &zero, &begin));
            SX_TRY(sx_tf_cut_axis_open(x, *made[i], sx_type_of_value(x->b, *made[i]).rank - 1,
                                       begin, z->v_columns, -1, made[i]));
        }
        if (sign > 0) {
            SX_TRY(divide_by_n(x, z, *made[i], made[i]));
        }
        SX_TRY(exchange_last(x, axis, made[i]));
    }
    *out = a;
    return SX_OK;
}

/* FFT, IFFT, RFFT, IRFFT of the last axis, or, with 2D and 3D, of the last two and three. */
static sx_status import_fourier(sx_tf_op_node *x)
{
    const char *op = x->n->node->op;
    const bool inverse = op[0] == 'I', real = op[inverse] == 'R';
    const int axes = strstr(op, "3D") != NULL ? 3 : strstr(op, "2D") != NULL ? 2 : 1;
    const int sign = inverse ? 1 : -1;
    sx_tf_parts a = {SX_NO_VALUE, SX_NO_VALUE};
    sx_value open_lengths = SX_NO_VALUE;
    sx_ints lengths = {0};
    if (real && !inverse) {
        SX_TRY(sx_tf_operand(x, 0, &a.re));
    } else {
        SX_TRY(sx_tf_read_parts(x, 0, &a));
    }
    const sx_type type = sx_type_of_value(x->b, a.re);
    if (type.rank < axes) {
        return sx_tf_unsupported("the rank of its input is unknown, or below %d", axes);
    }
    const bool lengths_known = !real || (x->tf.head.n_in > 1 && x->tf.head.values[1] != NULL);
    if (real) {
        SX_TRY(sx_tf_operand(x, 1, &open_lengths));
    }
    if (real && lengths_known) {
        SX_TRY(sx_tf_operand_ints(x, 1, &lengths));
        if (lengths.n != axes) {
            return sx_error(SX_DATA_LOSS, "it has %d lengths, expected %d", lengths.n, axes);
        }
    }
    /* a real transform begins with the last axis, its inverse ends with it */
    for (int k = 0; k < axes; k++) {
        const int axis = inverse ? axes - k : k + 1;
        const bool half_out = real && !inverse && axis == 1, half_in = real && inverse && axis == 1;
        const int64_t has = type.dims[type.rank - axis], n = real ? lengths.v[axes - axis] : has,
                      half = n / 2 + 1;
        axis_sizes z = {.known = lengths_known && has >= 0,
                        .has = has,
                        .n = n,
                        .columns = half_out ? half : n,
                        .most = half_in ? half : n};
        sx_value cosine, sine;
        if (z.known && (has < 1 || n < 1)) {
            return sx_tf_unsupported("the size of its input, or its length, is 0");
        }
        if (!z.known || (is_large(&z) && !has_factors(&z))) {
            SX_TRY(open_sizes(x, a.re, axis, open_lengths, axes - axis, half_out, half_in, &z));
            SX_TRY(import_open(x, a, axis, &z, half_out, half_in, sign, &a));
            continue;
        }
        if (is_long(&z, type.rank)) {
            SX_TRY(import_long(x, a, axis, &z, half_out, half_in, sign, &a));
            continue;
        }
        SX_TRY(wave(x, type.dtype, has, z.columns, n, z.most, false, half_in, &cosine));
        SX_TRY(wave(x, type.dtype, has, z.columns, n, z.most, true, half_in, &sine));
        if (half_out) {
            sx_value re, zero;
            SX_TRY(along(x, a.re, 1, cosine, &re));
            SX_TRY(along(x, a.re, 1, sine, &a.im));
            SX_TRY(sx_tf_number(x, type.dtype, 0, &zero));
            SX_TF_BUILD(x, &a.im, sub, NULL, zero, a.im); /* not neg: -0 has another angle */
            a.re = re;
        } else if (half_in) {
            sx_value re, im;
            SX_TRY(along(x, a.re, 1, cosine, &re));
            SX_TRY(along(x, a.im, 1, sine, &im));
            SX_TF_BUILD(x, &re, sub, NULL, re, im);
            SX_TRY(divide_by_n(x, &z, re, &a.re));
        } else {
            SX_TRY(transform(x, a, axis, cosine, sine, sign, &a));
            if (inverse) {
                SX_TRY(divide_by_n(x, &z, a.re, &a.re));
                SX_TRY(divide_by_n(x, &z, a.im, &a.im));
            }
        }
    }
    if (real && inverse) {
        sx_tf_set(x, 0, a.re);
    } else {
        sx_tf_set_parts(x, 0, a);
    }
    return SX_OK;
}

/* ---- The table ---- */

const sx_tf_op_row sx_tf_fourier_rows[] = {
    {"FFT", import_fourier, NULL},
    {"IFFT", import_fourier, NULL},
    {"RFFT", import_fourier, NULL},
    {"IRFFT", import_fourier, NULL},
    {"FFT2D", import_fourier, NULL},
    {"IFFT2D", import_fourier, NULL},
    {"RFFT2D", import_fourier, NULL},
    {"IRFFT2D", import_fourier, NULL},
    {"FFT3D", import_fourier, NULL},
    {"IFFT3D", import_fourier, NULL},
    {"RFFT3D", import_fourier, NULL},
    {"IRFFT3D", import_fourier, NULL},
    {NULL, NULL, NULL},
};
