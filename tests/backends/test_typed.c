/* Typed kernels of host operators against their host kernels, and that host steps run them. */
#include "harness.h"

#include <math.h>

#include "../graph/op_samples.h"

#include "backends/cpu/typed/typed.h"
#include "graph/ops/attrs.h"
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
    if (kernel != NULL && op->host_types != NULL) {
        assert_ok(sx_typed_types(kernel, op, s.attrs, in, s.n_in, types, s.n_out, &context));
    }
    for (int i = 0; i < s.n_out && kernel != NULL; i++) {
        const size_t bytes = (size_t)sx_host_bytes(&s.out[i].type);
        assert_true(op->host_types == NULL || sx_type_equal(&types[i], &s.out[i].type));
        out[i] = (sx_tensor){s.out[i].type, sx_alloc(bytes + 1, 1)};
        assert_non_null(out[i].data);
        memset(out[i].data, 0x5a, bytes + 1);
    }
    if (kernel != NULL) {
        assert_ok(kernel->run(
            &(sx_typed_call){.attrs = s.attrs, .in = in, .out = out, .context = &context}));
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
                const bool any =
                    op->id == SX_OPID_resize_image || op->id == SX_OPID_crop_and_resize;
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
        assert_true(compared > 0);
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
    cmocka_unit_test(test_backends_typed__many_random_numbers),
    cmocka_unit_test(test_backends_typed__edges_of_colors),
    cmocka_unit_test(test_backends_typed__host_steps_run_them),
};
SX_TEST_MAIN(tests)
