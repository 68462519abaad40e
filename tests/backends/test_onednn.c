/* Every implementation that oneDNN chooses for a convolution computes it: small shapes whose
 * channels, windows, strides and borders differ, against loops. Inputs are small integers, so that
 * sums are exact. What lies behind an operand is no number: an implementation that reads it gives
 * none. */
#include "harness.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "backends/cpu/onednn2.h"
#include "base/memory.h"
#include "base/threefry.h"

enum { CONVOLUTIONS = 500, BEHIND = 64 };

typedef struct tensors {
    int64_t src, filter, bias, dst; /* elements */
    float *src_data, *filter_data, *bias_data, *dst_data;
} tensors;

static float *numbers(int64_t n, uint32_t key, bool zeros)
{
    float *data = sx_alloc((size_t)n + BEHIND, sizeof(float));
    assert_non_null(data);
    for (int64_t i = 0; i < n + BEHIND; i++) {
        const uint32_t word = sx_threefry2x32((sx_u32x2){key, 0}, (sx_u32x2){(uint32_t)i, 0}).a;
        data[i] = i >= n ? NAN : zeros ? 0 : (float)(int)(word % 5) - 2;
    }
    return data;
}

/* Adds what the kind computes, as the loops of its definition. */
static void add_expected(const sx_dnn_conv_spec *spec, tensors *t)
{
    const sx_conv_geometry *g = &spec->geometry;
    const int64_t outs = g->groups * g->o, ins = g->groups * g->c;
    for (int64_t i = 0; i < t->dst; i++) {
        const int64_t o = i % outs, x = i / outs % g->w.out, y = i / outs / g->w.out % g->h.out;
        const int64_t n = i / outs / g->w.out / g->h.out, group = o / g->o;
        double sum = 0;
        for (int64_t k = 0; k < g->h.kernel * g->w.kernel * g->c; k++) {
            const int64_t c = k % g->c, kx = k / g->c % g->w.kernel, ky = k / g->c / g->w.kernel;
            const int64_t from_y = y * g->h.stride + ky * g->h.dilation - g->h.pad_before;
            const int64_t from_x = x * g->w.stride + kx * g->w.dilation - g->w.pad_before;
            if (from_y < 0 || from_y >= g->h.in || from_x < 0 || from_x >= g->w.in) {
                continue;
            }
            const int64_t s = ((n * g->h.in + from_y) * g->w.in + from_x) * ins + group * g->c + c;
            const int64_t f = k * outs + o;
            if (spec->kind == SX_DNN_FORWARD) {
                sum += (double)t->src_data[s] * t->filter_data[f];
            } else if (spec->kind == SX_DNN_BACKWARD_DATA) {
                t->src_data[s] += t->dst_data[i] * t->filter_data[f];
            } else {
                t->filter_data[f] += t->dst_data[i] * t->src_data[s];
            }
        }
        if (spec->kind == SX_DNN_FORWARD) {
            const float added = (float)sum + (spec->bias ? t->bias_data[o] : 0);
            t->dst_data[i] = spec->act == SX_DNN_RELU ? fmaxf(added, 0) : added;
        } else if (spec->kind == SX_DNN_BACKWARD_FILTER && spec->bias) {
            t->bias_data[o] += t->dst_data[i];
        }
    }
}

static tensors make(const sx_dnn_conv_spec *spec, uint32_t key)
{
    const sx_conv_geometry *g = &spec->geometry;
    tensors t = {.src = g->n * g->h.in * g->w.in * g->groups * g->c,
                 .filter = g->h.kernel * g->w.kernel * g->c * g->groups * g->o,
                 .bias = g->groups * g->o,
                 .dst = g->n * g->h.out * g->w.out * g->groups * g->o};
    t.src_data = numbers(t.src, key, spec->kind == SX_DNN_BACKWARD_DATA);
    t.filter_data = numbers(t.filter, key + 1, spec->kind == SX_DNN_BACKWARD_FILTER);
    t.bias_data = numbers(t.bias, key + 2, spec->kind == SX_DNN_BACKWARD_FILTER);
    t.dst_data = numbers(t.dst, key + 3, spec->kind == SX_DNN_FORWARD);
    return t;
}

static void end(tensors *t)
{
    sx_free(t->src_data);
    sx_free(t->filter_data);
    sx_free(t->bias_data);
    sx_free(t->dst_data);
}

/* The name of the implementation, "" if there is none; in *wrong how many elements differ. */
static void compute(const sx_dnn_conv_spec *spec, uint32_t key, char name[64], int *wrong)
{
    sx_dnn_conv *conv;
    sx_dnn_slot *slot;
    name[0] = '\0';
    *wrong = 0;
    sx_status status = sx_dnn_conv_create(spec, &conv);
    if (status != SX_OK) {
        assert_error(status, SX_UNIMPLEMENTED, "");
        return;
    }
    snprintf(name, 64, "%s", sx_dnn_conv_name(conv));
    assert_ok(sx_dnn_slot_create(conv, &slot));
    tensors expected = make(spec, key), got = make(spec, key);
    add_expected(spec, &expected);
    void *scratch = sx_alloc((size_t)sx_dnn_conv_scratch_bytes(conv, false) + 64, 1);
    assert_non_null(scratch);
    sx_dnn_conv_run(conv, slot,
                    &(sx_dnn_conv_args){.src = got.src_data,
                                        .filter = got.filter_data,
                                        .bias = got.bias_data,
                                        .dst = got.dst_data,
                                        .scratch = scratch});
    const float *pairs[][2] = {{got.src_data, expected.src_data},
                               {got.filter_data, expected.filter_data},
                               {got.bias_data, expected.bias_data},
                               {got.dst_data, expected.dst_data}};
    const int64_t elems[] = {got.src, got.filter, got.bias, got.dst};
    for (int k = 0; k < 4; k++) {
        for (int64_t i = 0; i < elems[k] + BEHIND; i++) {
            const float a = pairs[k][0][i], b = pairs[k][1][i];
            *wrong += i < elems[k] ? !(a == b) : !isnan(a);
        }
    }
    sx_free(scratch);
    end(&expected);
    end(&got);
    sx_dnn_slot_destroy(slot);
    sx_dnn_conv_destroy(conv);
}

static uint32_t draw(uint32_t number, uint32_t *drawn, uint32_t limit)
{
    return sx_threefry2x32((sx_u32x2){77, number}, (sx_u32x2){(*drawn)++, 0}).a % limit;
}

static sx_dnn_conv_spec spec_of(uint32_t number)
{
    static const int channels[] = {1, 2, 3, 4, 5, 8, 12, 16, 17, 24, 32};
    static const int groups[] = {1, 1, 1, 2, 3, 8};
    uint32_t drawn = 0;
    sx_dnn_conv_spec spec = {.kind = (sx_dnn_conv_kind)draw(number, &drawn, 3)};
    sx_conv_geometry *g = &spec.geometry;
    g->n = 1 + draw(number, &drawn, 4);
    g->groups = groups[draw(number, &drawn, 6)];
    g->c = channels[draw(number, &drawn, 11)];
    g->o = channels[draw(number, &drawn, 11)];
    if (draw(number, &drawn, 5) == 0) { /* depthwise */
        g->groups = g->c;
        g->c = g->o = 1;
    }
    sx_conv_window *windows[] = {&g->h, &g->w};
    for (int i = 0; i < 2; i++) {
        sx_conv_window *w = windows[i];
        w->kernel = 1 + draw(number, &drawn, 4) % 3;
        w->stride = 1 + draw(number, &drawn, 3) / 2;
        w->dilation = 1 + draw(number, &drawn, 5) / 4;
        w->pad_before = draw(number, &drawn, 3) * draw(number, &drawn, 2);
        const int64_t extent = (w->kernel - 1) * w->dilation + 1;
        const int64_t after = draw(number, &drawn, 3) * draw(number, &drawn, 2);
        w->in = extent + draw(number, &drawn, 9);
        w->out = (w->in + w->pad_before + after - extent) / w->stride + 1;
    }
    if (draw(number, &drawn, 2)) { /* square, as most */
        g->w = g->h;
    }
    spec.bias = spec.kind != SX_DNN_BACKWARD_DATA && draw(number, &drawn, 2);
    spec.act = spec.kind == SX_DNN_FORWARD && spec.bias && draw(number, &drawn, 2) ? SX_DNN_RELU
                                                                                   : SX_DNN_PLAIN;
    return spec;
}

static void test_backends_onednn__convolutions_of_many_shapes(void **state)
{
    (void)state;
    static const char *const kinds[] = {"forward", "backward data", "backward filter"};
    int failed = 0, run = 0;
    for (uint32_t number = 0; number < CONVOLUTIONS; number++) {
        const sx_dnn_conv_spec spec = spec_of(number);
        const sx_conv_geometry *g = &spec.geometry;
        char name[64];
        int wrong;
        compute(&spec, number * 4, name, &wrong);
        run += name[0] != '\0';
        if (wrong > 0 && failed++ < 10) {
            print_error(
                "%s: %s, bias %d: %d elements are wrong: %lld examples, %lld groups of %lld "
                "-> %lld channels\n",
                name, kinds[spec.kind], spec.bias, wrong, (long long)g->n, (long long)g->groups,
                (long long)g->c, (long long)g->o);
            for (int i = 0; i < 2; i++) {
                const sx_conv_window *w = i == 0 ? &g->h : &g->w;
                print_error("    %s %lld -> %lld, kernel %lld, stride %lld, dilation %lld, "
                            "padding %lld\n",
                            i == 0 ? "height" : "width", (long long)w->in, (long long)w->out,
                            (long long)w->kernel, (long long)w->stride, (long long)w->dilation,
                            (long long)w->pad_before);
            }
        }
    }
    assert_int_equal(failed, 0);
    assert_true(run > CONVOLUTIONS / 2);
}

/* ---- The team ---- */

enum { TEAM = 4 };

static void count_member(void *user, int worker)
{
    atomic_int *calls = user;
    atomic_fetch_add(&calls[worker], 1);
}

static void begin_team(void *user, int worker)
{
    sx_dnn_team_run(TEAM, count_member, (atomic_int *)user + (ptrdiff_t)worker * TEAM);
}

/* Also where OpenMP gives fewer threads than the team has members, as within another team. */
static void test_backends_onednn__each_member_of_a_team_is_called_once(void **state)
{
    (void)state;
    atomic_int calls[2 * TEAM] = {0};
    sx_dnn_team_run(2, begin_team, calls);
    for (int i = 0; i < 2 * TEAM; i++) {
        assert_int_equal(calls[i], 1);
    }
}

/* The result of a forward convolution made for a team, by it or by one thread. */
static float *forward(const sx_dnn_conv_spec *spec, uint32_t key, bool alone, int64_t *elems)
{
    sx_dnn_conv *conv;
    sx_dnn_slot *slot;
    assert_ok(sx_dnn_conv_create(spec, &conv));
    assert_ok(sx_dnn_slot_create(conv, &slot));
    tensors t = make(spec, key);
    for (int64_t i = 0; i < t.src; i++) { /* sums are rounded */
        t.src_data[i] *= 0.1F;
    }
    void *scratch = sx_alloc((size_t)sx_dnn_conv_scratch_bytes(conv, false) + 64, 1);
    assert_non_null(scratch);
    const int before = sx_dnn_enter(spec->team);
    sx_dnn_conv_run(conv, slot,
                    &(sx_dnn_conv_args){.src = t.src_data,
                                        .filter = t.filter_data,
                                        .bias = t.bias_data,
                                        .dst = t.dst_data,
                                        .scratch = scratch,
                                        .alone = alone});
    sx_dnn_leave(before);
    float *y = t.dst_data;
    *elems = t.dst;
    t.dst_data = NULL;
    sx_free(scratch);
    end(&t);
    sx_dnn_slot_destroy(slot);
    sx_dnn_conv_destroy(conv);
    return y;
}

static void test_backends_onednn__one_thread_computes_the_bits_of_a_team(void **state)
{
    (void)state;
    int run = 0;
    for (uint32_t number = 0; number < CONVOLUTIONS; number++) {
        sx_dnn_conv_spec spec = spec_of(number);
        sx_dnn_conv *conv;
        spec.team = 2 + (int)(number % 3);
        if (spec.kind != SX_DNN_FORWARD) {
            continue;
        }
        sx_status status = sx_dnn_conv_create(&spec, &conv);
        if (status != SX_OK) {
            assert_error(status, SX_UNIMPLEMENTED, "");
            continue;
        }
        sx_dnn_conv_destroy(conv);
        int64_t elems;
        float *team = forward(&spec, number * 4, false, &elems);
        float *alone = forward(&spec, number * 4, true, &elems);
        assert_memory_equal(team, alone, (size_t)elems * sizeof(float));
        sx_free(team);
        sx_free(alone);
        run++;
    }
    assert_true(run > CONVOLUTIONS / 8);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_backends_onednn__convolutions_of_many_shapes),
    cmocka_unit_test(test_backends_onednn__each_member_of_a_team_is_called_once),
    cmocka_unit_test(test_backends_onednn__one_thread_computes_the_bits_of_a_team),
};
SX_TEST_MAIN(tests)
