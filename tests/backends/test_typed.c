/* Typed kernels of host operators against their host kernels, and that host steps run them. */
#include "harness.h"

#include <math.h>

#include "../graph/op_samples.h"

#include "backends/cpu/typed/typed.h"
#include "base/clock.h"
#include "graph/ops/attrs.h"
#include "graph/special_functions.h"
#include "runtime/host_step.h"

static const int ops[] = {
#define SX_TYPED(name) SX_OPID_##name,
#include "backends/cpu/typed/typed.def"
#undef SX_TYPED
};

/* 1 = compared; 0 = the host kernel takes it. */
static int compare(const sx_op_def *op, const sx_op_sample *sample)
{
    op_sample_run s;
    sx_tensor in[SX_SAMPLE_MAX_INPUTS], out[SX_MAX_OUTPUTS];
    sx_type types[SX_MAX_OUTPUTS];
    op_sample_begin(op, sample, &s);
    op_sample_forward(&s, false);
    for (int i = 0; i < s.n_in; i++) {
        in[i] = (sx_tensor){s.in[i].type, sx_alloc((size_t)sx_host_bytes(&s.in[i].type) + 1, 1)};
        assert_non_null(in[i].data);
        sx_host_store(&s.in[i], in[i].data);
    }
    const sx_host_context context = {.arena = &s.arena};
    const sx_typed_kernel *kernel = sx_typed_find(op, s.attrs, in);
    sx_typed_call call = {
        .attrs = s.attrs, .in = in, .out = out, .n_in = s.n_in, .context = &context};
    if (kernel != NULL && op->host_types != NULL) {
        assert_ok(sx_typed_types(kernel, op, &call, types, s.n_out));
    }
    for (int i = 0; i < s.n_out && kernel != NULL; i++) {
        const size_t bytes = (size_t)sx_host_bytes(&s.out[i].type);
        assert_true(op->host_types == NULL || sx_type_equal(&types[i], &s.out[i].type));
        out[i] = (sx_tensor){s.out[i].type, sx_alloc(bytes + 1, 1)};
        assert_non_null(out[i].data);
        memset(out[i].data, 0x5a, bytes + 1);
    }
    if (kernel != NULL) {
        assert_ok(kernel->run(&call));
    }
    for (int i = 0; i < s.n_out && kernel != NULL; i++) {
        const int64_t n = sx_type_elems(&s.out[i].type);
        const bool exact =
            !sx_dtype_is_float(s.out[i].type.dtype) || op->id == SX_OPID_random_values;
        sx_host_tensor got = op_sample_tensor(s.out[i].type);
        double greatest = 0;
        sx_host_load(&got, out[i].data);
        for (int64_t k = 0; k < n; k++) {
            const double value = fabs(sx_host_get(&s.out[i], k));
            greatest = isfinite(value) ? fmax(greatest, value) : greatest;
        }
        for (int64_t k = 0; k < n; k++) {
            const double a = sx_host_get(&got, k), b = sx_host_get(&s.out[i], k);
            if (a != b && !(fabs(a - b) <= (exact ? 0 : 1e-6 * greatest)) &&
                !(isnan(a) && isnan(b))) {
                fail_msg("%s/%s of %s: element %lld is %.9g, expected %.9g", op->name, sample->name,
                         sx_dtype_name(in[0].type.dtype), (long long)k, a, b);
            }
        }
        assert_int_equal(((const uint8_t *)out[i].data)[sx_host_bytes(&s.out[i].type)], 0x5a);
        sx_free(got.data);
        sx_free(out[i].data);
    }
    for (int i = 0; i < s.n_in; i++) {
        sx_free(in[i].data);
    }
    op_sample_end(&s);
    return kernel != NULL;
}

static void test_backends_typed__samples_equal_the_host_kernels(void **state)
{
    (void)state;
    static const sx_dtype dtypes[] = {SX_F32, SX_F64, SX_F16, SX_BF16, SX_U8,  SX_I8,
                                      SX_U16, SX_I16, SX_I32, SX_U32,  SX_I64, SX_U64};
    for (size_t o = 0; o < SX_COUNT(ops); o++) {
        const sx_op_def *op = sx_op_table[ops[o]];
        int compared = 0;
        for (int k = 0; k < op->n_samples; k++) {
            for (size_t t = 0; t < SX_COUNT(dtypes); t++) {
                sx_op_sample sample = op->samples[k];
                const bool any = op->id == SX_OPID_resize_image ||
                                 op->id == SX_OPID_crop_and_resize ||
                                 op->id == SX_OPID_scale_and_translate;
                if (!any && t > 0) {
                    break; /* their dtype is an attribute, or float32 alone is taken */
                }
                if (any) {
                    sample.inputs[0].type.dtype = dtypes[t];
                    sample.inputs[0].fill = t < 4 ? SX_FILL_NORMAL : SX_FILL_BITS;
                }
                compared += compare(op, &sample);
            }
        }
        assert_true(compared > 0 || op->n_samples == 0);
    }
}

/* Sizes that are larger, smaller and 1, channels that have loops of their own and one that has not,
 * and images enough that rows are made again. */
static void test_backends_typed__sizes_of_images(void **state)
{
    (void)state;
    static const double sizes[][2] = {{1, 1}, {3, 40}, {33, 2}, {17, 19}};
    static const int64_t images[][4] = {{2, 9, 7, 3}, {1, 1, 1, 4}, {3, 20, 33, 1}, {2, 5, 4, 6}};
    int compared = 0;
    for (size_t s = 0; s < SX_COUNT(sizes); s++) {
        for (size_t x = 0; x < SX_COUNT(images); x++) {
            for (int way = 0; way < 12; way++) {
                const sx_resize_image_attrs attrs = {way / 3, way % 3 == 1, way % 3 == 2};
                const int64_t *d = images[x];
                const sx_op_sample sample = {
                    .name = "size",
                    .inputs = {{.type = sx_type_of(SX_U8, d[0], d[1], d[2], d[3]),
                                .fill = SX_FILL_BITS},
                               {.type = sx_type_of(SX_I32, 2),
                                .fill = SX_FILL_LIST,
                                .numbers = sizes[s],
                                .limit = 2}},
                    .n_inputs = 2,
                    .attrs = &attrs};
                compared += compare(&sx_op_resize_image, &sample);
            }
        }
    }
    assert_int_equal(compared, 4 * 4 * 12);
}

/* Kernels of every reach; sizes where weights are zero because they lie outside of the image. */
static void test_backends_typed__scales_of_images(void **state)
{
    (void)state;
    static const double sizes[][2] = {{1, 1}, {3, 40}, {17, 19}};
    static const double scales[][2] = {{0.2, 5.5}, {1.3, 0.7}}, moves[][2] = {{0, 0}, {2.5, -3}};
    static const char *const kernels[] = {"lanczos3", "triangle", "box", "mitchellcubic"};
    static const int64_t images[][4] = {{2, 9, 7, 3}, {1, 1, 1, 4}, {2, 20, 33, 1}, {2, 5, 4, 6}};
#define PAIR(dtype_, list)                                                                 \
    {                                                                                      \
        .type = sx_type_of(dtype_, 2), .fill = SX_FILL_LIST, .numbers = (list), .limit = 2 \
    }
    for (size_t x = 0; x < SX_COUNT(images); x++) {
        for (size_t k = 0; k < SX_COUNT(sizes) * SX_COUNT(scales) * SX_COUNT(kernels); k++) {
            const size_t s = k / SX_COUNT(sizes) % SX_COUNT(scales);
            const sx_scale_and_translate_attrs attrs = {
                kernels[k / SX_COUNT(sizes) / SX_COUNT(scales)], k % 2 == 0};
            const int64_t *d = images[x];
            const sx_op_sample sample = {
                .name = "scale",
                .inputs = {{.type = sx_type_of(SX_F32, d[0], d[1], d[2], d[3]),
                            .fill = SX_FILL_NORMAL},
                           PAIR(SX_I32, sizes[k % SX_COUNT(sizes)]),
                           PAIR(SX_F32, scales[s]),
                           PAIR(SX_F32, moves[s])},
                .n_inputs = 4,
                .attrs = &attrs};
            assert_int_equal(compare(&sx_op_scale_and_translate, &sample), 1);
        }
    }
}

/* ---- Kernels that decide their shapes ---- */

typedef struct typed_run {
    sx_arena arena;
    sx_host_context context;
    sx_tensor out[SX_MAX_OUTPUTS];
} typed_run;

/* To be ended with sx_arena_deinit(). */
static sx_status run_kernel(const sx_op_def *op, const void *attrs, const sx_tensor *in, int n_in,
                            int n_out, typed_run *r)
{
    sx_type types[SX_MAX_OUTPUTS];
    sx_arena_init(&r->arena, 0);
    r->context = (sx_host_context){.arena = &r->arena};
    sx_typed_call call = {
        .attrs = attrs, .in = in, .out = r->out, .n_in = n_in, .context = &r->context};
    const sx_typed_kernel *kernel = sx_typed_find(op, attrs, in);
    assert_non_null(kernel);
    assert_ok(sx_typed_types(kernel, op, &call, types, n_out));
    for (int i = 0; i < n_out; i++) {
        r->out[i] = (sx_tensor){types[i],
                                sx_arena_alloc(&r->arena, (size_t)sx_host_bytes(&types[i]) + 1, 1)};
        assert_non_null(r->out[i].data);
    }
    return kernel->run(&call);
}

/* n numbers, `known[k]` being the first that equals number k. */
static void check_unique(sx_dtype dtype, void *numbers, int64_t n, const int64_t *known)
{
    const sx_unique_attrs attrs = {.out_idx = SX_I64};
    const sx_tensor in = {sx_type_of(dtype, n), numbers};
    const size_t bytes = sx_dtype_bytes(dtype);
    typed_run r;
    int64_t count = 0;
    assert_ok(run_kernel(&sx_op_unique, &attrs, &in, 1, 3, &r));
    const int64_t *index = r.out[1].data, *counts = r.out[2].data;
    int64_t total = 0;
    for (int64_t k = 0; k < n; k++) {
        assert_int_equal(index[k], known[k] == k ? count : index[known[k]]);
        if (known[k] == k) {
            assert_memory_equal((char *)r.out[0].data + (size_t)count * bytes,
                                (char *)numbers + (size_t)k * bytes, bytes);
            total += counts[count++];
        }
    }
    assert_int_equal(sx_type_elems(&r.out[0].type), count);
    assert_int_equal(sx_type_elems(&r.out[2].type), count);
    assert_int_equal(total, n);
    sx_arena_deinit(&r.arena);
}

static void test_backends_typed__unique_numbers(void **state)
{
    (void)state;
    enum { N = 6000 };
    static int64_t known[N];
    static uint64_t wide[N];
    float floats[] = {NAN, 0, -1, -0.0F, NAN, -1, INFINITY, -INFINITY, INFINITY};
    uint16_t halves[] = {0x7e00, 0x8000, 0, 0x7e00, 0x7c00, 0x3c00, 0x7c00};
    int8_t bytes[] = {-1, 1, -1, 127, -128, 1};
    check_unique(SX_F32, floats, SX_COUNT(floats), (int64_t[]){0, 1, 2, 1, 4, 2, 6, 7, 6});
    check_unique(SX_F16, halves, SX_COUNT(halves), (int64_t[]){0, 1, 1, 3, 4, 5, 4});
    check_unique(SX_I8, bytes, SX_COUNT(bytes), (int64_t[]){0, 1, 0, 3, 4, 1});
    check_unique(SX_I64, wide, 0, known);
    for (int64_t k = 0; k < N; k++) { /* more than the first table has room for */
        known[k] = k < N / 2 ? k : N - 1 - k;
        wide[k] = (uint64_t)known[k] << 40;
    }
    check_unique(SX_U64, wide, N, known);
    uint64_t inverse = 1; /* of the factor of the table's hash, by Newton's method */
    for (int i = 0; i < 6; i++) {
        inverse *= 2 - UINT64_C(0x9e3779b97f4a7c15) * inverse;
    }
    for (int64_t k = 0; k < N; k++) { /* all at one place of the table */
        const uint64_t half = (uint64_t)known[k] + 1;
        wide[k] = (half << 32 | half) * inverse;
    }
    check_unique(SX_U64, wide, N, known);
}

/* What of x[n] stays beside y[m]: `stays[count]`, places. */
static void check_list_diff(sx_dtype dtype, void *x, int64_t n, void *y, int64_t m,
                            const int64_t *stays, int64_t count)
{
    const sx_list_diff_attrs attrs = {.out_idx = n % 2 == 0 ? SX_I32 : SX_I64};
    const sx_tensor in[] = {{sx_type_of(dtype, n), x}, {sx_type_of(dtype, m), y}};
    const size_t bytes = sx_dtype_bytes(dtype);
    typed_run r;
    assert_ok(run_kernel(&sx_op_list_diff, &attrs, in, 2, 2, &r));
    assert_int_equal(sx_type_elems(&r.out[0].type), count);
    assert_int_equal(sx_type_elems(&r.out[1].type), count);
    for (int64_t k = 0; k < count; k++) {
        assert_memory_equal((char *)r.out[0].data + (size_t)k * bytes,
                            (char *)x + (size_t)stays[k] * bytes, bytes);
        assert_int_equal(attrs.out_idx == SX_I32 ? ((int32_t *)r.out[1].data)[k]
                                                 : ((int64_t *)r.out[1].data)[k],
                         stays[k]);
    }
    sx_arena_deinit(&r.arena);
}

static void test_backends_typed__differences_of_lists(void **state)
{
    (void)state;
    enum { N = 6000 };
    static int64_t odd[N / 2];
    static uint64_t x[N], y[N / 2];
    float floats[] = {NAN, 0, -1, -0.0F, NAN, 5, INFINITY}, others[] = {NAN, -0.0F, INFINITY, 7};
    int8_t bytes[] = {-1, 1, -1, 127, -128, 1}, less[] = {-1, 127};
    uint64_t ends[] = {UINT64_MAX, 0, UINT64_MAX - 1}, most[] = {UINT64_MAX};
    check_list_diff(SX_F32, floats, 7, others, 4, (int64_t[]){0, 2, 4, 5}, 4);
    check_list_diff(SX_I8, bytes, 6, less, 2, (int64_t[]){1, 4, 5}, 3);
    check_list_diff(SX_U64, ends, 3, most, 1, (int64_t[]){1, 2}, 2);
    check_list_diff(SX_I64, ends, 3, NULL, 0, (int64_t[]){0, 1, 2}, 3);
    check_list_diff(SX_I64, NULL, 0, ends, 3, NULL, 0);
    uint64_t inverse = 1; /* as above: all at one place of the table */
    for (int i = 0; i < 6; i++) {
        inverse *= 2 - UINT64_C(0x9e3779b97f4a7c15) * inverse;
    }
    for (int spread = 0; spread < 2; spread++) {
        for (int64_t k = 0; k < N; k++) {
            const uint64_t half = (uint64_t)k + 1;
            x[k] = spread != 0 ? (uint64_t)k << 40 : (half << 32 | half) * inverse;
            if (k % 2 == 0) {
                y[k / 2] = x[k];
            } else {
                odd[k / 2] = k;
            }
        }
        check_list_diff(SX_U64, x, N, y, N / 2, odd, N / 2);
    }
}

/* Elements of y that lie side by side in the table, where each of x would begin to look. */
static void test_backends_typed__differences_of_crowded_lists(void **state)
{
    (void)state;
    enum { N = 200000 };
    const int64_t most_ns = INT64_C(5000000000);
    static uint64_t x[N], y[N];
    static int64_t all[N];
    uint64_t inverse = 1;
    for (int i = 0; i < 6; i++) {
        inverse *= 2 - UINT64_C(0x9e3779b97f4a7c15) * inverse;
    }
    for (int64_t k = 0; k < N; k++) {
        const uint64_t half = (uint64_t)k + 1;
        y[k] = (uint64_t)k * inverse;
        x[k] = (half << 32 | half) * inverse;
        all[k] = k;
    }
    const int64_t begin = sx_thread_cpu_ns();
    check_list_diff(SX_U64, x, N, y, N, all, N);
    assert_true(sx_thread_cpu_ns() - begin < most_ns);
}

/* The typed kernel's result is the host kernel's, exactly. */
static void test_backends_typed__histograms_and_stitches(void **state)
{
    (void)state;
    static const sx_dtype dtypes[] = {SX_F32, SX_F64, SX_I32, SX_I64};
    static const double values[] = {-7, 0, 1, 2.5, 3, 99, 100, 101, 1e9, 4.999, 5, 1e-9, -2e9, 33};
    static const double range[] = {0, 100}, wide[] = {-2e9, 2e9}, bins[] = {7}, many[] = {1000};
    for (size_t t = 0; t < 4 * SX_COUNT(dtypes); t++) {
        const sx_dtype dtype = dtypes[t / 4];
        const sx_cast_attrs attrs = {.dtype = t % 2 == 0 ? SX_I32 : SX_I64}; /* of the same form */
        const sx_op_sample sample = {.name = "histogram",
                                     .inputs = {{.type = sx_type_of(dtype, 3, 400),
                                                 .fill = SX_FILL_LIST,
                                                 .numbers = values,
                                                 .limit = SX_COUNT(values)},
                                                PAIR(dtype, t % 4 < 2 ? range : wide),
                                                {.type = sx_scalar_type(SX_I32),
                                                 .fill = SX_FILL_LIST,
                                                 .numbers = t % 3 == 0 ? bins : many,
                                                 .limit = 1}},
                                     .n_inputs = 3,
                                     .attrs = &attrs};
        assert_int_equal(compare(&sx_op_histogram_fixed_width, &sample), 1);
    }
    static const sx_dtype sizes[] = {SX_U8, SX_F16, SX_F32, SX_I64, SX_BOOL};
    static const double first[] = {4, 0, 9}, second[] = {3, 1, 3, 7};
    for (size_t t = 0; t < 2 * SX_COUNT(sizes); t++) {
        const sx_dtype dtype = sizes[t / 2];
        const int64_t width = t % 2 == 0 ? 1 : 3;
#define ITEMS(n)                                                   \
    {                                                              \
        .type = sx_type_of(dtype, n, width), .fill = SX_FILL_LIST, \
        .numbers = (const double[]){0, 1, 1, 0, 1}, .limit = 5     \
    }
        const sx_op_sample sample = {.name = "stitch",
                                     .inputs = {SX_SAMPLE_LIST(SX_I32, first, 3),
                                                SX_SAMPLE_LIST(SX_I32, second, 4), ITEMS(3),
                                                ITEMS(4)},
                                     .n_inputs = 4};
#undef ITEMS
        assert_int_equal(compare(&sx_op_dynamic_stitch, &sample), 1);
    }
    float numbers[] = {1, 2, NAN}, bounds[] = {0, 5};
    int32_t count = 5;
    const sx_cast_attrs attrs = {.dtype = SX_I32};
    const sx_tensor in[] = {{sx_type_of(SX_F32, 3), numbers},
                            {sx_type_of(SX_F32, 2), bounds},
                            {sx_scalar_type(SX_I32), &count}};
    typed_run r;
    assert_error(run_kernel(&sx_op_histogram_fixed_width, &attrs, in, 3, 1, &r),
                 SX_INVALID_ARGUMENT, "element 2 of values is NaN");
    sx_arena_deinit(&r.arena);
}

/* Elements that are zero, -0 and NaN among them, in tensors of several ranks and in none. */
static void test_backends_typed__where_numbers_are(void **state)
{
    (void)state;
    static float floats[2 * 3 * 700];
    static uint8_t bools[SX_COUNT(floats)];
    for (size_t k = 0; k < SX_COUNT(floats); k++) {
        floats[k] = k % 7 == 0 ? NAN : k % 3 == 0 ? -1e-45F : k % 2 == 0 ? -0.0F : 0;
        bools[k] = floats[k] != 0;
    }
    const sx_type types[] = {sx_type_of(SX_F32, 4200), sx_type_of(SX_F32, 2, 3, 700),
                             sx_type_of(SX_BOOL, 6, 700), sx_type_of(SX_BOOL, 3, 0)};
    for (size_t t = 0; t < SX_COUNT(types); t++) {
        const sx_tensor in = {types[t], types[t].dtype == SX_BOOL ? (void *)bools : floats};
        typed_run r;
        assert_ok(run_kernel(&sx_op_where, NULL, &in, 1, 1, &r));
        const int64_t *row = r.out[0].data, rank = types[t].rank;
        for (int64_t k = 0; k < sx_type_elems(&types[t]); k++) {
            int64_t place = 0;
            for (int d = 0; d < rank && bools[k] != 0; d++) {
                place = place * types[t].dims[d] + row[d];
            }
            if (bools[k] != 0) {
                assert_int_equal(place, k);
                row += rank;
            }
        }
        assert_ptr_equal(row, (int64_t *)r.out[0].data + sx_type_elems(&r.out[0].type));
        sx_arena_deinit(&r.arena);
    }
}

static void test_backends_typed__counted_rows(void **state)
{
    (void)state;
    int64_t splits[] = {0, 0, 3, 5}, numbers[] = {1, 1, 9, 0, 2}, size = 3;
    float weights[] = {0.5F, 2, 8, 4, 1};
    const sx_bincount_attrs attrs = {.rows = SX_COUNTED_RAGGED};
    const sx_tensor in[] = {{sx_type_of(SX_I64, 4), splits},
                            {sx_type_of(SX_I64, 5), numbers},
                            {sx_scalar_type(SX_I64), &size},
                            {sx_type_of(SX_F32, 5), weights}};
    const float want[] = {0, 0, 0, 0, 2.5F, 0, 4, 0, 1};
    typed_run r;
    assert_ok(run_kernel(&sx_op_bincount, &attrs, in, 4, 1, &r));
    assert_memory_equal(r.out[0].data, want, sizeof(want));
    sx_arena_deinit(&r.arena);
    numbers[3] = -7;
    assert_error(run_kernel(&sx_op_bincount, &attrs, in, 4, 1, &r), SX_INVALID_ARGUMENT,
                 "element 3 of x is -7, expected 0 or more");
    sx_arena_deinit(&r.arena);
}

/* ---- Special functions ---- */

static const struct {
    const char *name;
    double (*of)(double);
} special_functions[] = {
#define ONE(name, tf_op, c) {#name, c},
#include "graph/special_functions.def"
#undef ONE
};

/* Where sums of one interval end and others begin, where functions are 0 or infinite, and behind
 * what the vector loops take. */
static const float special_edges[] = {
    0,        -0.0F,      1,           -1,          0.5F,         NAN,
    INFINITY, -INFINITY,  1e-45F,      -1e-45F,     1e-38F,       1.5F,
    -1.5F,    2,          2.0000002F,  3,           3.0000002F,   6,
    8,        7.9999995F, 24,          24.000002F,  88.7F,        92,
    93,       -93,        104,         1e5F,        100001,       1e6F,
    -1000001, 3.4e38F,    -3.4e38F,    0.9999999F,  0.99999994F,  -0.99999994F,
    0.9990F,  0.9991F,    2.40482556F, 3.83170597F, 0.372507411F, 0.893576966F,
    1e-20F,   2};

/* One unit of the last place, beside a zero 1e-10. */
static void test_backends_typed__special_functions(void **state)
{
    (void)state;
    enum { N = 3000 };
    float x[N], y[N];
    for (size_t f = 0; f < SX_COUNT(special_functions); f++) {
        const sx_special_attrs attrs = {.function = (int32_t)f};
        const sx_tensor in = {sx_type_of(SX_F32, N), x}, out = {sx_type_of(SX_F32, N), y};
        const sx_host_context context = {0};
        const sx_typed_kernel *kernel = sx_typed_find(&sx_op_special, &attrs, &in);
        for (int k = 0; k < N; k++) {
            const double part = fmod(k * 0.61803398874989485, 1);
            x[k] = k < (int)SX_COUNT(special_edges) ? special_edges[k]
                   : k % 3 == 0                     ? (float)(2 * part - 1)
                   : k % 3 == 1                     ? (float)(60 * part - 30)
                                                    : (float)exp(80 * part - 60);
        }
        if (kernel == NULL) {
            continue;
        }
        assert_ok(kernel->run(&(sx_typed_call){
            .attrs = &attrs, .in = &in, .out = &out, .n_in = 1, .context = &context}));
        for (int k = 0; k < N; k++) {
            const float want = (float)special_functions[f].of((double)x[k]);
            const double off = fabs((double)y[k] - (double)want);
            const double beside_zero = fabsf(x[k]) > 0.3F && fabsf(want) < 1e-2F ? 1e-10 : 0;
            if (y[k] != want && !(isnan(y[k]) && isnan(want)) &&
                !(off <= 1.2e-7 * fabs((double)want) + beside_zero)) {
                fail_msg("%s(%.9g) is %.9g, expected %.9g", special_functions[f].name, (double)x[k],
                         (double)y[k], (double)want);
            }
        }
    }
}

/* More numbers than are drawn at a time, over the end of a counter's word. */
static void test_backends_typed__many_random_numbers(void **state)
{
    (void)state;
    static const double shape[] = {3, 331}, key[] = {77}, counter[] = {4294967290., 3}, alg[] = {1},
                        low[] = {-7}, high[] = {2000000000};
#define LIST(dtype_, n, list)                                                                \
    {                                                                                        \
        .type = sx_type_of(dtype_, n), .fill = SX_FILL_LIST, .numbers = (list), .limit = (n) \
    }
#define ONE(dtype_, list)                                                                   \
    {                                                                                       \
        .type = sx_scalar_type(dtype_), .fill = SX_FILL_LIST, .numbers = (list), .limit = 1 \
    }
    const sx_random_values_attrs values[] = {
        {SX_VALUES_UNIFORM, SX_F32}, {SX_VALUES_NORMAL, SX_F32}, {SX_VALUES_BITS, SX_U32}};
    for (size_t i = 0; i < SX_COUNT(values); i++) {
        const sx_op_sample sample = {.name = "many",
                                     .inputs = {LIST(SX_I32, 2, shape), LIST(SX_U64, 1, key),
                                                LIST(SX_U64, 2, counter), ONE(SX_I32, alg)},
                                     .n_inputs = 4,
                                     .attrs = &values[i]};
        assert_int_equal(compare(&sx_op_random_values, &sample), 1);
    }
    const sx_op_sample sample = {.name = "many",
                                 .inputs = {LIST(SX_I32, 2, shape), LIST(SX_U64, 1, key),
                                            LIST(SX_U64, 2, counter), ONE(SX_I32, alg),
                                            ONE(SX_I32, low), ONE(SX_I32, high)},
                                 .n_inputs = 6};
    assert_int_equal(compare(&sx_op_random_integers, &sample), 1);
}

/* Colors of greys, black, the edges of hues, and no numbers. */
static void test_backends_typed__edges_of_colors(void **state)
{
    (void)state;
    static const double colors[] = {0,   0,   0,   1, 1,    1,   0.5,   0.5, 0.5,  1,   0, 0,
                                    0,   1,   0,   0, 0,    1,   1,     1,   0,    0,   1, 1,
                                    1,   0,   1,   1, 1e-7, 0,   0.2,   0,   0.1,  NAN, 1, 0.5,
                                    0.3, NAN, 0.1, 2, 0.25, 0.5, 1e-38, 0,   2e-38};
    static const double factors[] = {0, 0.7, -0.3, 5};
    static const sx_op_def *const defs[] = {&sx_op_rgb_to_hsv, &sx_op_hsv_to_rgb, &sx_op_adjust_hue,
                                            &sx_op_adjust_saturation};
    for (size_t f = 0; f < SX_COUNT(factors); f++) {
        for (size_t o = 0; o < SX_COUNT(defs); o++) {
            const sx_op_sample sample = {
                .name = "edges",
                .inputs = {{.type = sx_type_of(SX_F32, SX_COUNT(colors) / 3, 3),
                            .fill = SX_FILL_LIST,
                            .numbers = colors,
                            .limit = SX_COUNT(colors)},
                           ONE(SX_F32, &factors[f])},
                .n_inputs = o < 2 ? 1 : 2};
            assert_int_equal(compare(defs[o], &sample), 1);
        }
    }
}

/* The carriers of a picture of 768 KiB have 6 MiB, twice: a budget of 2 MiB is enough for a step
 * that does without. */
static void test_backends_typed__host_steps_run_them(void **state)
{
    (void)state;
    static const double size[] = {16, 16};
    const sx_resize_image_attrs attrs = {.method = SX_RESIZED_BILINEAR};
    const sx_op_sample sample = {
        .name = "step",
        .inputs =
            {{.type = sx_type_of(SX_U8, 1, 512, 512, 3), .fill = SX_FILL_BITS},
             {.type = sx_type_of(SX_I32, 2), .fill = SX_FILL_LIST, .numbers = size, .limit = 2}},
        .n_inputs = 2,
        .attrs = &attrs};
    sx_graph *g;
    op_sample_graph(&sx_op_resize_image, &sample, OP_SAMPLE_FORWARD, &g);
    const sx_step step = {.kind = SX_STEP_HOST, .node = &g->nodes[g->n_nodes - 1]};
    int32_t wanted[] = {16, 16};
    const sx_tensor in[] = {{sample.inputs[0].type, sx_alloc(512 * 512 * 3, 1)},
                            {sample.inputs[1].type, wanted}};
    sx_tensor out = {0};
    sx_budget budget;
    sx_arena arena;
    assert_non_null(in[0].data);
    sx_budget_init(&budget, "the test", 2 << 20, NULL);
    sx_arena_init(&arena, 0);
    arena.budget = &budget;
    assert_ok(sx_host_step_run(&step, 0, in, &out, &(sx_host_context){.arena = &arena}));
    const sx_type want = sx_type_of(SX_F32, 1, 16, 16, 3);
    assert_true(sx_type_equal(&out.type, &want));
    sx_arena_deinit(&arena);
    sx_free(in[0].data);
    sx_graph_destroy(g);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_typed__samples_equal_the_host_kernels),
    cmocka_unit_test(test_backends_typed__sizes_of_images),
    cmocka_unit_test(test_backends_typed__scales_of_images),
    cmocka_unit_test(test_backends_typed__unique_numbers),
    cmocka_unit_test(test_backends_typed__differences_of_lists),
    cmocka_unit_test(test_backends_typed__differences_of_crowded_lists),
    cmocka_unit_test(test_backends_typed__histograms_and_stitches),
    cmocka_unit_test(test_backends_typed__where_numbers_are),
    cmocka_unit_test(test_backends_typed__counted_rows),
    cmocka_unit_test(test_backends_typed__special_functions),
    cmocka_unit_test(test_backends_typed__many_random_numbers),
    cmocka_unit_test(test_backends_typed__edges_of_colors),
    cmocka_unit_test(test_backends_typed__host_steps_run_them),
};
SX_TEST_MAIN(tests)
