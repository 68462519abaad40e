/* What tests/interop/test_host.py asks of the host kernels: integers and casts at their extremes,
 * floats that are not finite.
 *
 *   host_tool DIR   writes x.DTYPE.npy, y.DTYPE.npy, and of each OP on them OP.DTYPE.npy, if it
 *                   takes that dtype; cast.FROM.TO.npy for each pair of dtypes. No integer y is 0,
 *                   nor -1, by which TensorFlow cannot divide the least integer. */
#include <math.h>

#include "../graph/op_samples.h"

#include "graph/ops/attrs.h"
#include "io/npy.h"

enum { N = 97 };

static const sx_dtype dtypes[] = {SX_I8,  SX_I16, SX_I32,  SX_I64, SX_U8,  SX_U16, SX_U32,
                                  SX_U64, SX_F16, SX_BF16, SX_F32, SX_F64, SX_BOOL};

static const struct {
    const sx_op_def *op;
    const void *attrs;
} ops[] = {
    {&sx_op_add, NULL},
    {&sx_op_sub, NULL},
    {&sx_op_mul, NULL},
    {&sx_op_maximum, NULL},
    {&sx_op_minimum, NULL},
    {&sx_op_equal, NULL},
    {&sx_op_less, NULL},
    {&sx_op_greater, NULL},
    {&sx_op_neg, NULL},
    {&sx_op_abs, NULL},
    {&sx_op_sign, NULL},
    {&sx_op_square, NULL},
    {&sx_op_not_equal, NULL},
    {&sx_op_less_equal, NULL},
    {&sx_op_greater_equal, NULL},
    {&sx_op_bitwise_and, NULL},
    {&sx_op_bitwise_or, NULL},
    {&sx_op_bitwise_xor, NULL},
    {&sx_op_invert, NULL},
    {&sx_op_floor_div, NULL},
    {&sx_op_floor_mod, NULL},
    {&sx_op_truncate_div, NULL},
    {&sx_op_truncate_mod, NULL},
    {&sx_op_squared_difference, NULL},
    {&sx_op_is_nan, NULL},
    {&sx_op_is_inf, NULL},
    {&sx_op_is_finite, NULL},
    {&sx_op_ceil, NULL},
    {&sx_op_round, NULL},
    {&sx_op_sin, NULL},
    {&sx_op_tan, NULL},
    {&sx_op_asin, NULL},
    {&sx_op_acos, NULL},
    {&sx_op_atan, NULL},
    {&sx_op_sinh, NULL},
    {&sx_op_cosh, NULL},
    {&sx_op_asinh, NULL},
    {&sx_op_acosh, NULL},
    {&sx_op_atanh, NULL},
    {&sx_op_erf, NULL},
    {&sx_op_erfc, NULL},
    {&sx_op_expm1, NULL},
    {&sx_op_reciprocal, NULL},
    {&sx_op_softplus, NULL},
    {&sx_op_selu, NULL},
    {&sx_op_div_no_nan, NULL},
    {&sx_op_mul_no_nan, NULL},
    {&sx_op_xdivy, NULL},
    {&sx_op_xlogy, NULL},
    {&sx_op_xlog1py, NULL},
    {&sx_op_reduce_sum, &(sx_reduce_attrs){.axes = {1, {0}}}},
    {&sx_op_reduce_max, &(sx_reduce_attrs){.axes = {1, {0}}}},
    {&sx_op_reduce_min, &(sx_reduce_attrs){.axes = {1, {0}}}},
    {&sx_op_reduce_prod, &(sx_reduce_attrs){.axes = {1, {0}}}},
    {&sx_op_cumsum, &(sx_cumulative_attrs){.axis = 0}},
    {&sx_op_cumprod, &(sx_cumulative_attrs){.axis = 0, .reverse = true}},
    {&sx_op_argmin, &(sx_argmax_attrs){.axis = 0, .dtype = SX_I64}},
    {&sx_op_argmax, &(sx_argmax_attrs){.axis = 0, .dtype = SX_I64}},
    {&sx_op_top_k, &(sx_top_k_attrs){.k = 5}},
};

static void write_npy(const char *dir, const char *name, const sx_tensor *t)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s.npy", dir, name);
    op_sample_ok(sx_npy_write(path, t), &sx_op_cast, name);
}

/* Bytes of any kind; of integers the ends of their range among them, of floats what casts trip on.
 */
static void fill(sx_tensor *t, uint32_t seed)
{
    static const double floats[] = {
        0.0,     -0.0,    0.5,    -0.5,    1.5,      -1.5,      127.9,  -128.9, 300,     -300,
        65535.5, 70000,   0x1p31, -0x1p31, 0x1.8p31, 0x1p32,    0x1p53, 0x1p63, -0x1p63, 0x1.8p63,
        0x1p64,  -0x1p64, 1e30,   -1e30,   INFINITY, -INFINITY, NAN,    3.99,   -3.99};
    size_t bytes = sx_dtype_bytes(t->type.dtype);
    op_sample_words words = {.key = {seed, 5}};
    for (int i = 0; i < N; i++) {
        uint64_t bits = (uint64_t)op_sample_word(&words) << 32 | op_sample_word(&words);
        uint32_t pick = op_sample_word(&words) % 8;
        if (t->type.dtype == SX_BOOL) {
            bits &= 1;
        } else if (sx_dtype_is_float(t->type.dtype)) {
            sx_host_store_element(
                t->type.dtype,
                floats[((uint32_t)i + (seed - 1) * (5 + (uint32_t)i / SX_COUNT(floats))) %
                       SX_COUNT(floats)],
                &bits);
        } else if (pick < 5) { /* -1, 0, 1, the least, the greatest of signed dtypes */
            const uint64_t top = (uint64_t)1 << (bytes * 8 - 1);
            bits = (uint64_t[]){(uint64_t)-1, 0, 1, top, top - 1}[pick];
        }
        const uint64_t mask = bytes == 8 ? UINT64_MAX : ((uint64_t)1 << bytes * 8) - 1;
        if (seed > 1 && sx_dtype_is_integer(t->type.dtype) &&
            ((bits & mask) == 0 || (bits & mask) == mask)) {
            bits = 3;
        }
        memcpy((char *)t->data + (size_t)i * bytes, &bits, bytes);
    }
}

/* Whether the operator takes these operands; *result is its output then. */
static bool run(const sx_op_def *op, const void *attrs, const sx_tensor *in, int n_in,
                sx_arena *arena, sx_tensor *result)
{
    sx_type in_types[2] = {in[0].type, in[n_in - 1].type}, out_types[SX_MAX_OUTPUTS] = {0};
    sx_infer_context c = {attrs, in_types, n_in, out_types, op->n_out};
    sx_tensor out[SX_MAX_OUTPUTS];
    sx_status status = op->infer(&c);
    if (status != SX_OK) {
        sx_status_free(status);
        return false;
    }
    for (int k = 0; k < c.n_outputs; k++) {
        out[k].type = out_types[k];
        out[k].data = sx_arena_alloc(arena, (size_t)sx_type_bytes(&out_types[k]), 1);
    }
    int64_t bytes = sx_host_scratch_bytes(op, in_types, n_in, out_types, c.n_outputs);
    void *scratch = sx_arena_alloc(arena, (size_t)bytes, 1);
    OP_SAMPLE_CHECK(scratch != NULL);
    op_sample_ok(sx_host_run(op, attrs, in, n_in, out, c.n_outputs, scratch, arena), op, "run");
    *result = out[0];
    return true;
}

int main(int argc, char **argv)
{
    sx_arena arena;
    char name[64];
    OP_SAMPLE_CHECK(argc == 2);
    sx_arena_init(&arena, 0);
    for (size_t d = 0; d < SX_COUNT(dtypes); d++) {
        const char *dtype = sx_dtype_name(dtypes[d]);
        sx_tensor in[2];
        for (uint32_t k = 0; k < 2; k++) {
            in[k].type = sx_type_of(dtypes[d], N);
            in[k].data = sx_arena_alloc(&arena, N, 8);
            OP_SAMPLE_CHECK(in[k].data != NULL);
            fill(&in[k], k + 1);
            snprintf(name, sizeof(name), "%c.%s", "xy"[k], dtype);
            write_npy(argv[1], name, &in[k]);
        }
        sx_tensor out;
        for (size_t i = 0; i < SX_COUNT(ops); i++) {
            if (run(ops[i].op, ops[i].attrs, in, ops[i].op->n_in, &arena, &out)) {
                snprintf(name, sizeof(name), "%s.%s", ops[i].op->name, dtype);
                write_npy(argv[1], name, &out);
            }
        }
        for (size_t to = 0; to < SX_COUNT(dtypes); to++) {
            OP_SAMPLE_CHECK(
                run(&sx_op_cast, &(sx_cast_attrs){.dtype = dtypes[to]}, in, 1, &arena, &out));
            snprintf(name, sizeof(name), "cast.%s.%s", dtype, sx_dtype_name(dtypes[to]));
            write_npy(argv[1], name, &out);
        }
    }
    sx_arena_deinit(&arena);
    return 0;
}
