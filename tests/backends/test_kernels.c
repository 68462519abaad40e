/* The cpu's kernels: no operator of a device runs in its host kernel. */
#include "harness.h"

#include "../graph/op_samples.h"

#include "backends/backend.h"
#include "backends/cpu/kernel.h"

/* Operators whose samples may run in the host kernel, and why. */
static const struct {
    int op;
    const char *why;
} excused[] = {
    {SX_OPID_reduce_tree, "joins the partial results of replicas that are devices of their own"},
};

static bool is_excused(const sx_op_def *op)
{
    for (size_t i = 0; i < sizeof(excused) / sizeof(excused[0]); i++) {
        if (excused[i].op == op->id) {
            return true;
        }
    }
    return false;
}

/* What only says what a gradient is, sx_compile() leaves out. */
static bool on_device(const sx_op_def *op)
{
    const int others = SX_OP_HOST | SX_OP_FUNCTION | SX_OP_NO_HOST | SX_OP_FOR_GRADIENT;
    return op->host != NULL && (op->flags & others) == 0;
}

static sx_graph *graph_of(const op_sample_run *s)
{
    sx_builder *b;
    sx_graph *g = NULL;
    sx_value inputs[SX_SAMPLE_MAX_INPUTS];
    char name[16];
    assert_ok(sx_builder_create(&b));
    for (int i = 0; i < s->n_in; i++) {
        snprintf(name, sizeof(name), "x%d", i);
        inputs[i] = sx_input(b, name, s->sample->inputs[i].type);
    }
    sx_value first =
        sx_build(b, s->op, s->sample->attrs != NULL ? s->sample->attrs : s->attrs, inputs, s->n_in);
    for (int i = 0; i < s->n_out; i++) {
        snprintf(name, sizeof(name), "y%d", i);
        sx_output(b, name, sx_output_of(first, i));
    }
    assert_ok(sx_builder_finish(b, &g));
    sx_builder_destroy(b);
    return g;
}

/* The number of the sample's kernels that are the host's; each is named. */
static int host_kernels(sx_platform *platform, const sx_op_def *op, const sx_op_sample *sample)
{
    op_sample_run s;
    sx_executable *e = NULL;
    sx_run *run = NULL;
    const sx_kernel_time *rows = NULL;
    int n = 0, found = 0;
    op_sample_begin(op, sample, &s);
    sx_graph *g = graph_of(&s);
    assert_ok(sx_compile(
        platform, g,
        &(sx_compile_options){.batch = op_sample_batch(sample), .shards = 1, .profile = true}, &e));
    assert_ok(sx_run_create(e, &run));
    assert_ok(sx_run_get_profile(run, &rows, &n));
    for (int i = 0; i < n; i++) {
        const size_t length = strlen(rows[i].kernel);
        if (length > 5 && strcmp(rows[i].kernel + length - 5, " host") == 0) {
            print_error("%s/%s runs in \"%s\"\n", op->name, sample->name, rows[i].kernel);
            found++;
        }
    }
    sx_run_destroy(run);
    sx_executable_release(e);
    sx_graph_destroy(g);
    op_sample_end(&s);
    return found;
}

static void test_backends_kernels__no_sample_runs_on_the_host(void **state)
{
    (void)state;
    sx_platform *platform;
    int found = 0;
    assert_ok(sx_platform_open("cpu", &(sx_platform_options){.cpu.threads = 1}, &platform));
    for (int id = 0; id < SX_OPID_COUNT; id++) {
        const sx_op_def *op = sx_op_table[id];
        for (int k = 0; k < op->n_samples && on_device(op) && !is_excused(op); k++) {
            found += host_kernels(platform, op, &op->samples[k]);
        }
    }
    sx_platform_close(platform);
    assert_int_equal(found, 0);
}

/* ---- Other dtypes than the samples' ---- */

/* The sample with its float32 inputs in `dtype`, small positive numbers; false if the operator does
 * not take that. */
static bool retype(const sx_op_def *op, const sx_op_sample *sample, sx_dtype dtype,
                   sx_op_sample *out)
{
    static const double numbers[] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 7};
    sx_type in[SX_SAMPLE_MAX_INPUTS], results[SX_MAX_OUTPUTS];
    int changed = 0;
    *out = *sample;
    for (int i = 0; i < sample->n_inputs; i++) {
        if (sample->inputs[i].type.dtype == SX_F32) {
            out->inputs[i].type.dtype = dtype;
            out->inputs[i].fill = SX_FILL_LIST;
            out->inputs[i].numbers = numbers;
            out->inputs[i].limit = (int64_t)(sizeof(numbers) / sizeof(numbers[0])) - i;
            changed++;
        }
        in[i] = out->inputs[i].type;
    }
    sx_infer_context c = {sample->attrs, in, sample->n_inputs, results,
                          op->n_out == SX_VARIADIC ? 0 : op->n_out};
    sx_status status = changed > 0 && sample->attrs != NULL ? op->infer(&c) : SX_OK;
    if (changed > 0 && sample->attrs == NULL) {
        void *zeros = sx_alloc(1, op->attrs_bytes + 1);
        assert_non_null(zeros);
        c.attrs = zeros;
        status = op->infer(&c);
        sx_free(zeros);
    }
    const bool fits = changed > 0 && status == SX_OK;
    sx_status_free(status);
    return fits;
}

/* Elements that differ from the host kernel's by more than these, if they are floats. */
static int wrong_elements(sx_platform *platform, const sx_op_def *op, const sx_op_sample *sample,
                          double relative, double absolute)
{
    op_sample_run s;
    sx_executable *e = NULL;
    sx_device_buffer *args[SX_SAMPLE_MAX_INPUTS], *outputs[SX_MAX_OUTPUTS];
    int wrong = 0;
    op_sample_begin(op, sample, &s);
    op_sample_forward(&s, false);
    sx_graph *g = graph_of(&s);
    assert_ok(sx_compile(platform, g,
                         &(sx_compile_options){.batch = op_sample_batch(sample), .shards = 1}, &e));
    for (int i = 0; i < s.n_in; i++) {
        void *bytes = sx_alloc((size_t)sx_type_bytes(&s.in[i].type) + 1, 1);
        sx_host_store(&s.in[i], bytes);
        assert_ok(sx_device_buffer_create(platform->devices[0], &s.in[i].type, &args[i]));
        assert_ok(sx_device_buffer_write(args[i], bytes, false));
        sx_free(bytes);
    }
    for (int i = 0; i < s.n_out; i++) {
        assert_ok(sx_device_buffer_create(platform->devices[0], &s.out[i].type, &outputs[i]));
    }
    assert_ok(sx_execute(e, args, outputs));
    for (int i = 0; i < s.n_out; i++) {
        sx_host_tensor got = op_sample_tensor(s.out[i].type);
        void *bytes = sx_alloc((size_t)sx_type_bytes(&got.type) + 1, 1);
        assert_ok(sx_device_buffer_read(outputs[i], bytes));
        sx_host_load(&got, bytes);
        for (int64_t k = 0; k < sx_type_elems(&got.type); k++) {
            const double a = sx_host_get(&got, k), b = sx_host_get(&s.out[i], k);
            const double bound =
                sx_dtype_is_float(got.type.dtype) ? relative * fabs(b) + absolute : 0;
            if (!(fabs(a - b) <= bound || (isnan(a) && isnan(b)) || a == b)) {
                print_error("%s/%s %s: output %d element %lld is %.17g, expected %.17g\n", op->name,
                            sample->name, sx_dtype_name(s.in[0].type.dtype), i, (long long)k, a, b);
                wrong++;
                break;
            }
        }
        sx_free(bytes);
        sx_free(got.data);
        sx_device_buffer_release(outputs[i]);
    }
    for (int i = 0; i < s.n_in; i++) {
        sx_device_buffer_release(args[i]);
    }
    sx_executable_release(e);
    sx_graph_destroy(g);
    op_sample_end(&s);
    return wrong;
}

/* Sums of doubles that cancel are 0 for the kernel and not for the host, whose terms are rounded
 * otherwise: by how much, from the magnitude of the terms. */
static const struct {
    int op;
    double absolute;
    const char *why;
} cancelling[] = {
    {SX_OPID_batch_norm_train_grad_sums, 1e-14, "the host divides each term, the kernel the sum"},
    {SX_OPID_moments, 1e-28, "the host adds up parts of the mean: a bit of it is left, squared"},
};

static double absolute_of(const sx_op_def *op, sx_dtype dtype)
{
    for (size_t i = 0; i < SX_COUNT(cancelling) && dtype == SX_F64; i++) {
        if (cancelling[i].op == op->id) {
            return cancelling[i].absolute;
        }
    }
    return 0;
}

/* Every operator's samples in each dtype that it takes, against its host kernel: integers and bools
 * exactly. In float64 no operator runs in the host kernel, elementwise ones in no dtype. */
static void test_backends_kernels__other_dtypes_equal_the_host(void **state)
{
    (void)state;
    static const sx_dtype dtypes[] = {SX_F64, SX_I8, SX_U8, SX_I32, SX_I64, SX_U64, SX_BOOL};
    sx_platform *platform;
    int found = 0, checked = 0;
    assert_ok(sx_platform_open("cpu", &(sx_platform_options){.cpu.threads = 1}, &platform));
    for (int id = 0; id < SX_OPID_COUNT; id++) {
        const sx_op_def *op = sx_op_table[id];
        for (int k = 0; k < op->n_samples && on_device(op); k++) {
            for (size_t t = 0; t < sizeof(dtypes) / sizeof(dtypes[0]); t++) {
                sx_op_sample sample;
                if (retype(op, &op->samples[k], dtypes[t], &sample)) {
                    found +=
                        wrong_elements(platform, op, &sample, 1e-9, absolute_of(op, dtypes[t]));
                    const bool elementwise = (op->flags & SX_OP_ELEMENTWISE) != 0;
                    if ((elementwise || dtypes[t] == SX_F64) && op->id != SX_OPID_round_bf16 &&
                        !is_excused(op)) {
                        found += host_kernels(platform, op, &sample);
                    }
                    checked++;
                }
            }
        }
    }
    sx_platform_close(platform);
    assert_int_equal(found, 0);
    assert_true(checked > 300);
}

static const sx_dtype number_dtypes[] = {SX_F32, SX_F64, SX_F16, SX_BF16, SX_U8,  SX_I8,  SX_U16,
                                         SX_I16, SX_I32, SX_U32, SX_I64,  SX_U64, SX_BOOL};
enum { NUMBER_DTYPES = sizeof(number_dtypes) / sizeof(number_dtypes[0]) };

static void test_backends_kernels__casts_equal_the_host(void **state)
{
    (void)state;
    static const double floats[] = {
        0,     -0.0,  1,     -1,  2.5,        -2.5,  1.0000001, 127.5,    255,       256,
        3e4,   65504, 65520, 1e5, 2147483647, 3e9,   1e10,      1e19,     2e19,      -3e9,
        -1e19, 1e-8,  6e-8,  NAN, 1e300,      1e-50, 7e-5,      INFINITY, -INFINITY, 4e38};
    static const double integers[] = {0, 1, 2, 100, 127, 64, 3};
    sx_platform *platform;
    int found = 0;
    assert_ok(sx_platform_open("cpu", &(sx_platform_options){.cpu.threads = 1}, &platform));
    for (int from = 0; from < NUMBER_DTYPES; from++) {
        for (int to = 0; to < NUMBER_DTYPES; to++) {
            const bool is_float = sx_dtype_is_float(number_dtypes[from]);
            const sx_cast_attrs attrs = {.dtype = number_dtypes[to]};
            sx_op_sample sample = {
                .name = sx_dtype_name(number_dtypes[to]),
                .inputs = {{.type = sx_type_of(number_dtypes[from], 900), .fill = SX_FILL_LIST}},
                .n_inputs = 1,
                .attrs = &attrs};
            sample.inputs[0].numbers = is_float ? floats : integers;
            sample.inputs[0].limit = is_float ? SX_COUNT(floats) : SX_COUNT(integers);
            found += wrong_elements(platform, &sx_op_cast, &sample, 0, 0);
            found += host_kernels(platform, &sx_op_cast, &sample);
        }
    }
    sx_platform_close(platform);
    assert_int_equal(found, 0);
}

/* Numbers of bits below 0 and beyond the dtype's, and operands that repeat. */
static void test_backends_kernels__bits_equal_the_host(void **state)
{
    (void)state;
    static const double numbers[] = {0, 1, 2, 100, 127, 64, 3}, negative[] = {-1, -128, -7, 5, 99};
    static const double counts[] = {0, 1, 7, 8, 15, 16, 31, 32, 63, 64, 100}, below[] = {-1, 3, -9};
    sx_platform *platform;
    int found = 0;
    assert_ok(sx_platform_open("cpu", &(sx_platform_options){.cpu.threads = 1}, &platform));
    for (int t = 0; t < 8 * 4; t++) {
        static const sx_dtype dtypes[] = {SX_U8,  SX_I8,  SX_U16, SX_I16,
                                          SX_U32, SX_I32, SX_U64, SX_I64};
        const sx_dtype dtype = dtypes[t / 4];
        const bool is_signed = t / 4 % 2 == 1 && t % 4 > 1;
        const sx_shift_attrs attrs = {.right = t % 2 == 1};
        sx_op_sample sample = {
            .name = "bits",
            .inputs = {{.type = sx_type_of(dtype, 70, 11), .fill = SX_FILL_LIST},
                       {.type = t % 4 == 0 ? sx_type_of(dtype, 11) : sx_type_of(dtype, 70, 11),
                        .fill = SX_FILL_LIST}},
            .n_inputs = 2,
            .attrs = &attrs};
        sample.inputs[0].numbers = is_signed ? negative : numbers;
        sample.inputs[0].limit = is_signed ? SX_COUNT(negative) : SX_COUNT(numbers);
        sample.inputs[1].numbers = is_signed ? below : counts;
        sample.inputs[1].limit = is_signed ? SX_COUNT(below) : SX_COUNT(counts);
        found += wrong_elements(platform, &sx_op_shift, &sample, 0, 0);
        found += host_kernels(platform, &sx_op_shift, &sample);
        sample.n_inputs = 1;
        sample.attrs = NULL;
        found += wrong_elements(platform, &sx_op_population_count, &sample, 0, 0);
        found += host_kernels(platform, &sx_op_population_count, &sample);
    }
    sx_platform_close(platform);
    assert_int_equal(found, 0);
}

/* Every pair of numbers whose functions have vector loops that do not hold for some of them. */
static void test_backends_kernels__edges_of_functions(void **state)
{
    (void)state;
    static const double numbers[] = {0.5,      -0.0,      1,     -1,  0.99999994, -0.99999994,
                                     1e-45,    3e38,      -3e38, NAN, 1e-20,      -1e-3,
                                     INFINITY, -INFINITY, 0,     2};
    const sx_op_def *const ops[] = {&sx_op_atan2, &sx_op_xlogy, &sx_op_xlog1py, &sx_op_atanh};
    sx_platform *platform;
    int found = 0;
    assert_ok(sx_platform_open("cpu", &(sx_platform_options){.cpu.threads = 1}, &platform));
    for (size_t o = 0; o < SX_COUNT(ops); o++) {
        for (size_t first = 0; first < SX_COUNT(numbers); first++) {
            const sx_op_sample sample = {.name = "edges",
                                         .inputs = {{.type = sx_type_of(SX_F32, 16, 1),
                                                     .fill = SX_FILL_LIST,
                                                     .numbers = numbers + first,
                                                     .limit = 1},
                                                    {.type = sx_type_of(SX_F32, 16),
                                                     .fill = SX_FILL_LIST,
                                                     .numbers = numbers,
                                                     .limit = SX_COUNT(numbers)}},
                                         .n_inputs = ops[o]->n_in};
            found += wrong_elements(platform, ops[o], &sample, 0x1p-23, 0x1p-149);
        }
    }
    sx_platform_close(platform);
    assert_int_equal(found, 0);
}

/* The mean and variance of two shards are those of the whole. */
static void test_backends_kernels__moments_of_shards(void **state)
{
    (void)state;
    static const sx_dtype dtypes[] = {SX_F32, SX_F64};
    sx_platform *platform;
    assert_ok(sx_platform_open("cpu", &(sx_platform_options){.cpu.threads = 1}, &platform));
    for (size_t t = 0; t < SX_COUNT(dtypes); t++) {
        sx_builder *b;
        sx_graph *g = NULL;
        sx_executable *e = NULL;
        sx_device_buffer *in, *out[2];
        const sx_axes_attrs attrs = {.axes = {1, {0}}};
        const double x[] = {1, 10, 2, 20, 4, 40, 9, 90}, want[] = {4, 40, 9.5, 950};
        const float narrow[] = {1, 10, 2, 20, 4, 40, 9, 90};
        assert_ok(sx_builder_create(&b));
        const sx_value v = sx_input(b, "x", sx_type_of(dtypes[t], SX_BATCH, 2));
        const sx_value moments = sx_build(b, &sx_op_moments, &attrs, &v, 1);
        sx_output(b, "mean", moments);
        sx_output(b, "variance", sx_output_of(moments, 1));
        assert_ok(sx_builder_finish(b, &g));
        sx_builder_destroy(b);
        assert_ok(sx_compile(platform, g, &(sx_compile_options){.batch = 4, .shards = 2}, &e));
        const sx_type types[] = {sx_type_of(dtypes[t], 4, 2), sx_type_of(dtypes[t], 2)};
        assert_ok(sx_device_buffer_create(platform->devices[0], &types[0], &in));
        assert_ok(sx_device_buffer_create(platform->devices[0], &types[1], &out[0]));
        assert_ok(sx_device_buffer_create(platform->devices[0], &types[1], &out[1]));
        assert_ok(
            sx_device_buffer_write(in, dtypes[t] == SX_F64 ? (const void *)x : narrow, false));
        assert_ok(sx_execute(e, &in, out));
        for (int i = 0; i < 2; i++) {
            double wide[2];
            const sx_host_tensor got = {.type = types[1], .data = wide};
            char bytes[16];
            assert_ok(sx_device_buffer_read(out[i], bytes));
            sx_host_load(&got, bytes);
            assert_true(fabs(wide[0] - want[2 * i]) < 1e-5 * want[2 * i]);
            assert_true(fabs(wide[1] - want[2 * i + 1]) < 1e-5 * want[2 * i + 1]);
            sx_device_buffer_release(out[i]);
        }
        sx_device_buffer_release(in);
        sx_executable_release(e);
        sx_graph_destroy(g);
    }
    sx_platform_close(platform);
}

/* They are NaN, as TensorFlow's. */
static void test_backends_kernels__moments_of_nothing(void **state)
{
    (void)state;
    static const sx_dtype dtypes[] = {SX_F32, SX_F64};
    const sx_axes_attrs rows = {.axes = {1, {0}}}, columns = {.axes = {1, {1}}};
    sx_platform *platform;
    int found = 0;
    assert_ok(sx_platform_open("cpu", &(sx_platform_options){.cpu.threads = 1}, &platform));
    for (size_t t = 0; t < SX_COUNT(dtypes); t++) {
        sx_op_sample sample = {.name = "nothing",
                               .inputs = {{.type = sx_type_of(dtypes[t], 0, 3)}},
                               .n_inputs = 1,
                               .attrs = &rows};
        found += wrong_elements(platform, &sx_op_moments, &sample, 0, 0);
        sample.inputs[0].type = sx_type_of(dtypes[t], 3, 0);
        sample.attrs = &columns;
        found += wrong_elements(platform, &sx_op_moments, &sample, 0, 0);
    }
    sx_platform_close(platform);
    assert_int_equal(found, 0);
}

/* The sums of four shards meet in a tree, (0 + 1) + (2 + 3), as reduce_tree's do. */
static void test_backends_kernels__sums_of_shards(void **state)
{
    (void)state;
    static const sx_dtype dtypes[] = {SX_F32, SX_F64};
    const float narrow[] = {1, 0x1p-24f, 0x1p-24f, 0x1p-24f};
    const double wide[] = {1, 0x1p-53, 0x1p-53, 0x1p-53}, want[] = {1 + 0x1p-23, 1 + 0x1p-52};
    sx_platform *platform;
    assert_ok(sx_platform_open("cpu", &(sx_platform_options){.cpu.threads = 1}, &platform));
    for (size_t t = 0; t < SX_COUNT(dtypes); t++) {
        sx_builder *b;
        sx_graph *g = NULL;
        sx_executable *e = NULL;
        sx_device_buffer *in, *out;
        const sx_reduce_attrs attrs = {.axes = {1, {0}}};
        assert_ok(sx_builder_create(&b));
        const sx_value v = sx_input(b, "x", sx_type_of(dtypes[t], SX_BATCH, 1));
        sx_output(b, "sum", sx_build(b, &sx_op_reduce_sum, &attrs, &v, 1));
        assert_ok(sx_builder_finish(b, &g));
        sx_builder_destroy(b);
        assert_ok(sx_compile(platform, g, &(sx_compile_options){.batch = 4, .shards = 4}, &e));
        const sx_type types[] = {sx_type_of(dtypes[t], 4, 1), sx_type_of(dtypes[t], 1)};
        assert_ok(sx_device_buffer_create(platform->devices[0], &types[0], &in));
        assert_ok(sx_device_buffer_create(platform->devices[0], &types[1], &out));
        assert_ok(
            sx_device_buffer_write(in, dtypes[t] == SX_F64 ? (const void *)wide : narrow, false));
        assert_ok(sx_execute(e, &in, &out));
        char bytes[8];
        assert_ok(sx_device_buffer_read(out, bytes));
        assert_true(sx_host_load_element(dtypes[t], bytes) == want[t]);
        sx_device_buffer_release(in);
        sx_device_buffer_release(out);
        sx_executable_release(e);
        sx_graph_destroy(g);
    }
    sx_platform_close(platform);
}

/* float16 is computed in float32 and rounded (passes/widen_f16.c): what float32 has a kernel for
 * has one. Sums may be rounded in parts, so that their results are two roundings apart; 2^-24 is
 * the least number. */
static void test_backends_kernels__float16_needs_no_host_kernel(void **state)
{
    (void)state;
    sx_platform *platform;
    int found = 0, checked = 0;
    assert_ok(sx_platform_open("cpu", &(sx_platform_options){.cpu.threads = 1}, &platform));
    for (int id = 0; id < SX_OPID_COUNT; id++) {
        const sx_op_def *op = sx_op_table[id];
        for (int k = 0; k < op->n_samples && on_device(op) && !is_excused(op); k++) {
            sx_op_sample sample;
            if (retype(op, &op->samples[k], SX_F16, &sample)) {
                found += host_kernels(platform, op, &sample);
                found += wrong_elements(platform, op, &sample, 0x1p-9, 0x1p-23);
                checked++;
            }
        }
    }
    sx_platform_close(platform);
    assert_int_equal(found, 0);
    assert_true(checked > 100);
}

static void test_backends_kernels__every_operator_has_one(void **state)
{
    (void)state;
    int without = 0;
    for (int id = 0; id < SX_OPID_COUNT; id++) {
        const sx_op_def *op = sx_op_table[id];
        if (on_device(op) && !sx_cpu_has_kernel(op) && !is_excused(op)) {
            print_error("%s has no row in kernels.def\n", op->name);
            without++;
        }
    }
    assert_int_equal(without, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_kernels__no_sample_runs_on_the_host),
    cmocka_unit_test(test_backends_kernels__other_dtypes_equal_the_host),
    cmocka_unit_test(test_backends_kernels__casts_equal_the_host),
    cmocka_unit_test(test_backends_kernels__bits_equal_the_host),
    cmocka_unit_test(test_backends_kernels__edges_of_functions),
    cmocka_unit_test(test_backends_kernels__moments_of_shards),
    cmocka_unit_test(test_backends_kernels__moments_of_nothing),
    cmocka_unit_test(test_backends_kernels__sums_of_shards),
    cmocka_unit_test(test_backends_kernels__float16_needs_no_host_kernel),
    cmocka_unit_test(test_backends_kernels__every_operator_has_one),
};
SX_TEST_MAIN(tests)
