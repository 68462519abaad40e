/* sobol_sample: points of Sobol's sequence, which fill a cube evenly, from the point behind the
 * origin on. No gradient.
 *
 *   dim          integer scalar: 1 to 64 dimensions
 *   num_results  integer scalar: how many points
 *   skip         integer scalar: how many are left out before
 *   dtype        float32 or float64
 *   returns      dtype [num_results, dim], in [0, 1)
 *
 * Bit j of a dimension has the direction v_j = m_j 2^(31 - j). Point n is point n - 1, as integers
 * of 32 bits, xor v_c, c the number of zeros at the end of n. The first s numbers m of a dimension
 * are in the table; those behind them follow from its primitive polynomial of degree s, x^s + a_1
 * x^(s-1) + ... + 1: m_j = 2 a_1 m_(j-1) xor ... xor 2^s m_(j-s) xor m_(j-s). Dimensions have the
 * polynomials in turn, by degree and by their coefficients as a number.
 *
 * Errors   INVALID_ARGUMENT    dtypes; (running) dim, num_results, skip
 *          RESOURCE_EXHAUSTED  (running) too many numbers
 * Source   TensorFlow SobolSample; S. Joe, F. Y. Kuo, "Constructing Sobol sequences with better
 *          two-dimensional projections", SIAM J. Sci. Comput. 30 (2008), whose numbers are
 *          new-joe-kuo-6 */
#ifdef SX_ATTRS
typedef struct sx_sobol_sample_attrs {
    sx_dtype dtype;
} sx_sobol_sample_attrs;
#endif

#include "graph/ops/host_ops.h"

enum { MOST_DIMS = 64, MOST_DEGREE = 9, BITS = 32 };

/* m of dimensions 2 and on: as many as the degree of its polynomial. */
static const uint16_t first_numbers[MOST_DIMS - 1][MOST_DEGREE] = {
    {1},
    {1, 3},
    {1, 3, 1},
    {1, 1, 1},
    {1, 1, 3, 3},
    {1, 3, 5, 13},
    {1, 1, 5, 5, 17},
    {1, 1, 5, 5, 5},
    {1, 1, 7, 11, 19},
    {1, 1, 5, 1, 1},
    {1, 1, 1, 3, 11},
    {1, 3, 5, 5, 31},
    {1, 3, 3, 9, 7, 49},
    {1, 1, 1, 15, 21, 21},
    {1, 3, 1, 13, 27, 49},
    {1, 1, 1, 15, 7, 5},
    {1, 3, 1, 15, 13, 25},
    {1, 1, 5, 5, 19, 61},
    {1, 3, 7, 11, 23, 15, 103},
    {1, 3, 7, 13, 13, 15, 69},
    {1, 1, 3, 13, 7, 35, 63},
    {1, 3, 5, 9, 1, 25, 53},
    {1, 3, 1, 13, 9, 35, 107},
    {1, 3, 1, 5, 27, 61, 31},
    {1, 1, 5, 11, 19, 41, 61},
    {1, 3, 5, 3, 3, 13, 69},
    {1, 1, 7, 13, 1, 19, 1},
    {1, 3, 7, 5, 13, 19, 59},
    {1, 1, 3, 9, 25, 29, 41},
    {1, 3, 5, 13, 23, 1, 55},
    {1, 3, 7, 3, 13, 59, 17},
    {1, 3, 1, 3, 5, 53, 69},
    {1, 1, 5, 5, 23, 33, 13},
    {1, 1, 7, 7, 1, 61, 123},
    {1, 1, 7, 9, 13, 61, 49},
    {1, 3, 3, 5, 3, 55, 33},
    {1, 3, 1, 15, 31, 13, 49, 245},
    {1, 3, 5, 15, 31, 59, 63, 97},
    {1, 3, 1, 11, 11, 11, 77, 249},
    {1, 3, 1, 11, 27, 43, 71, 9},
    {1, 1, 7, 15, 21, 11, 81, 45},
    {1, 3, 7, 3, 25, 31, 65, 79},
    {1, 3, 1, 1, 19, 11, 3, 205},
    {1, 1, 5, 9, 19, 21, 29, 157},
    {1, 3, 7, 11, 1, 33, 89, 185},
    {1, 3, 3, 3, 15, 9, 79, 71},
    {1, 3, 7, 11, 15, 39, 119, 27},
    {1, 1, 3, 1, 11, 31, 97, 225},
    {1, 1, 1, 3, 23, 43, 57, 177},
    {1, 3, 7, 7, 17, 17, 37, 71},
    {1, 3, 1, 5, 27, 63, 123, 213},
    {1, 1, 3, 5, 11, 43, 53, 133},
    {1, 3, 5, 5, 29, 17, 47, 173, 479},
    {1, 3, 3, 11, 3, 1, 109, 9, 69},
    {1, 1, 1, 5, 17, 39, 23, 5, 343},
    {1, 3, 1, 5, 25, 15, 31, 103, 499},
    {1, 1, 1, 11, 11, 17, 63, 105, 183},
    {1, 1, 5, 11, 9, 29, 97, 231, 363},
    {1, 1, 5, 15, 19, 45, 41, 7, 383},
    {1, 3, 7, 7, 31, 19, 83, 137, 221},
    {1, 1, 1, 3, 23, 15, 111, 223, 83},
    {1, 1, 5, 13, 31, 15, 55, 25, 161},
    {1, 1, 3, 13, 25, 47, 39, 87, 257},
};

static const sx_attr_def sobol_sample_attrs[] = {
    SX_ATTR(sx_sobol_sample_attrs, dtype, SX_ATTR_DTYPE),
};

static sx_status sobol_sample_infer(sx_infer_context *c)
{
    const sx_dtype d = ((const sx_sobol_sample_attrs *)c->attrs)->dtype;
    if (d != SX_F32 && d != SX_F64) {
        return sx_error(SX_INVALID_ARGUMENT, "dtype is %s, expected float32 or float64",
                        sx_dtype_name(d));
    }
    SX_TRY(sx_require_integers("dim", &c->inputs[0], 0, "a scalar"));
    SX_TRY(sx_require_integers("num_results", &c->inputs[1], 0, "a scalar"));
    SX_TRY(sx_require_integers("skip", &c->inputs[2], 0, "a scalar"));
    c->outputs[0] = sx_type_of(d, SX_UNKNOWN_DIM, SX_UNKNOWN_DIM);
    return SX_OK;
}

static sx_status sobol_sample_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const int64_t dim = c->in[0].i[0], n = c->in[1].i[0], skip = c->in[2].i[0];
    if (dim < 1 || dim > MOST_DIMS || n < 0 || skip < 0 || n > INT32_MAX || skip > INT32_MAX - n) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "dim is %lld, num_results %lld and skip %lld, expected 1 to %d "
                        "dimensions, and 0 or more points, at most 2^31 - 1 of both",
                        (long long)dim, (long long)n, (long long)skip, MOST_DIMS);
    }
    out_types[0] = sx_type_of(((const sx_sobol_sample_attrs *)c->attrs)->dtype, n, dim);
    return sx_require_made("the points", &out_types[0]);
}

/* Whether x^degree + ... + 1, without its first and last coefficient `middle`, is primitive: the
 * powers of x go through all 2^degree - 1 others. */
static bool is_primitive(int degree, uint32_t middle)
{
    const uint32_t all = (1U << degree) - 1, polynomial = 1U << degree | middle << 1 | 1;
    uint32_t power = 1;
    for (uint32_t k = 1; k <= all; k++) {
        power <<= 1;
        power ^= (power >> degree & 1) != 0 ? polynomial : 0;
        if (power == 1) {
            return k == all;
        }
    }
    return false;
}

/* The directions of all dimensions below `dim`. */
static void find_directions(int64_t dim, uint32_t v[][BITS])
{
    uint32_t middle = 0;
    int degree = 1;
    for (int j = 0; j < BITS; j++) {
        v[0][j] = 1U << (BITS - 1 - j);
    }
    for (int64_t d = 1; d < dim; d++, middle++) {
        while (middle >= 1U << (degree - 1) || !is_primitive(degree, middle)) {
            const bool last = middle + 1 >= 1U << (degree - 1);
            degree += last;
            middle = last ? 0 : middle + 1;
        }
        for (int j = 0; j < BITS; j++) {
            if (j < degree) {
                v[d][j] = (uint32_t)first_numbers[d - 1][j] << (BITS - 1 - j);
                continue;
            }
            v[d][j] = v[d][j - degree] ^ v[d][j - degree] >> degree;
            for (int k = 1; k < degree; k++) {
                v[d][j] ^= (middle >> (degree - 1 - k) & 1) != 0 ? v[d][j - k] : 0;
            }
        }
    }
}

static sx_status sobol_sample_host(const sx_kernel_call *c)
{
    const int64_t dim = c->out[0].type.dims[1], n = c->out[0].type.dims[0], skip = c->in[2].i[0];
    uint32_t directions[MOST_DIMS][BITS], point[MOST_DIMS] = {0};
    find_directions(dim, directions);
    for (int64_t d = 0; d < dim; d++) {
        for (int j = 0; j < BITS; j++) { /* those of all points before, together */
            point[d] ^= ((skip ^ skip >> 1) >> j & 1) != 0 ? directions[d][j] : 0;
        }
    }
    for (int64_t k = 0; k < n; k++) {
        if (k % (1 << 16) == 0) {
            SX_TRY(sx_cancel_check(c->cancel));
        }
        for (int64_t d = 0; d < dim; d++) {
            point[d] ^= directions[d][__builtin_ctzll((uint64_t)(skip + k + 1))];
            c->out[0].f[k * dim + d] = (double)point[d] * 0x1p-32;
        }
    }
    return SX_OK;
}

static void sobol_sample_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    const sx_sobol_sample_attrs *attrs = op->attrs;
    sx_tf_same(w, op, &sx_op_sobol_sample, "SobolSample",
               sx_tf_attrs(sx_tf_attr_type("dtype", (int)attrs->dtype)));
}

static sx_status sobol_sample_from_tf(const sx_tf_node *n, void *out)
{
    ((sx_sobol_sample_attrs *)out)->dtype = sx_tf_read_dtype(n, "dtype", SX_F32);
    return SX_OK;
}

static const double dim[] = {21}, n[] = {40}, skip[] = {1000}, none[] = {0};
static const sx_op_sample sobol_sample_samples[] = {
    {.name = "float32",
     .inputs = {SX_SAMPLE_ONE(SX_I32, dim), SX_SAMPLE_ONE(SX_I32, n), SX_SAMPLE_ONE(SX_I32, none)},
     .n_inputs = 3,
     .attrs = &(const sx_sobol_sample_attrs){SX_F32}},
    {.name = "skip",
     .inputs = {SX_SAMPLE_ONE(SX_I32, dim), SX_SAMPLE_ONE(SX_I32, n), SX_SAMPLE_ONE(SX_I32, skip)},
     .n_inputs = 3,
     .attrs = &(const sx_sobol_sample_attrs){SX_F64}},
};

const sx_op_def sx_op_sobol_sample = {
    SX_OP_NAMED(sobol_sample),
    .n_in = 3,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_sobol_sample_attrs, sobol_sample_attrs),
    .infer = sobol_sample_infer,
    .host = sobol_sample_host,
    .host_types = sobol_sample_host_types,
    .to_tf = sobol_sample_to_tf,
    SX_FROM_TF({.op = "SobolSample", .attrs = sobol_sample_from_tf}),
    SX_OP_SAMPLES(sobol_sample_samples),
};
