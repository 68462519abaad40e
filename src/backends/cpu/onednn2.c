/* See onednn2.h. Written for oneDNN 2.6. */
#include "backends/cpu/onednn2.h"

#include <inttypes.h>
#include <oneapi/dnnl/dnnl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "backends/cpu/plan.h"
#include "base/checked.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/tsan.h"

/* From libgomp, whose header only gcc finds. */
extern int omp_get_max_threads(void);
extern void omp_set_num_threads(int n);
extern int omp_get_thread_num(void);
extern int omp_get_num_threads(void);
extern int omp_get_max_active_levels(void);
extern void omp_set_max_active_levels(int levels);
extern void GOMP_parallel(void (*run)(void *user), void *user, unsigned threads, unsigned flags);

/* ---- Signals ---- */

/* In products with a large K (above 84 with AVX-512), oneDNN's f32 GEMM points the stack pointer at
 * a block of the heap: `mov(rsp, ARG_WS)` in its jit_avx512_common_gemm_f32.cpp and
 * jit_avx_gemm_f32.cpp. A signal that the thread took meanwhile would overwrite what lies before
 * that block, so none is delivered while it runs. OpenMP's threads block what the thread that
 * started them blocked. */
enum { MAX_K_ON_STACK = 64 };

static bool block_signals(bool large, sigset_t *before)
{
    sigset_t all;
    if (!large && omp_get_max_threads() == 1) {
        return false;
    }
    sigfillset(&all);
    return pthread_sigmask(SIG_SETMASK, &all, before) == 0;
}

/* ---- Threads ---- */

int sx_dnn_enter(int team)
{
    int before = omp_get_max_threads();
    if (before != team) {
        omp_set_num_threads(team);
    }
    return before;
}

void sx_dnn_leave(int before)
{
    if (omp_get_max_threads() != before) {
        omp_set_num_threads(before);
    }
}

typedef struct team_work {
    int team;
    void (*run)(void *user, int worker);
    void *user;
} team_work;

/* Runs in each thread of the team, which are fewer than was asked for where OpenMP is limited:
 * OMP_THREAD_LIMIT, OMP_DYNAMIC. */
static void run_members(void *user)
{
    const team_work *w = user;
    sx_tsan_acquire(user);
    const int before = sx_dnn_enter(1);
    for (int i = omp_get_thread_num(); i < w->team; i += omp_get_num_threads()) {
        w->run(w->user, i);
    }
    sx_dnn_leave(before);
    sx_tsan_release(user);
}

void sx_dnn_team_run(int team, void (*run)(void *user, int worker), void *user)
{
    team_work w = {team, run, user};
    sx_tsan_release(&w);
    GOMP_parallel(run_members, &w, (unsigned)team, 0);
    sx_tsan_acquire(&w);
}

/* Intel's processors with AMX (those with float16, too) start a product of two bfloat16 vectors
 * every other cycle, half the rate of float32's: where a virtual machine hides AMX, float32 is
 * faster (bench/README.md). */
static bool has_slow_vectors(void)
{
#if defined(__x86_64__)
    enum { LEAF = 7, FLOAT16 = 1 << 23 };
    unsigned a = 0, b = 0, c = 0, d = 0;
    const bool intel = __get_cpuid(0, &a, &b, &c, &d) && b == signature_INTEL_ebx;
    return intel && __get_cpuid_count(LEAF, 0, &a, &b, &c, &d) && (d & FLOAT16) != 0;
#else
    return false;
#endif
}

static bool has_isa(dnnl_cpu_isa_t isa)
{
    return (dnnl_get_effective_cpu_isa() & isa) == isa;
}

bool sx_dnn_has_amx(void)
{
    return has_isa(dnnl_cpu_isa_avx512_core_amx);
}

bool sx_dnn_has_bf16(void)
{
    const char *all = getenv("SEXTANT_CPU_BF16");
    return sx_dnn_has_amx() || (has_isa(dnnl_cpu_isa_avx512_core_bf16) &&
                                (!has_slow_vectors() || (all != NULL && strcmp(all, "1") == 0)));
}

bool sx_dnn_has_int8(void)
{
    return has_isa(dnnl_cpu_isa_avx512_core_vnni) || has_isa(dnnl_cpu_isa_avx2_vnni);
}

/* ",48K/1,1024K/1,32768K/2": the data caches, each with the number of hardware threads that share
 * it, from CPUID, as in oneDNN. */
static void append_caches(char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
#if defined(__x86_64__)
    unsigned a = 0, b = 0, c = 0, d = 0;
    unsigned leaf = __get_cpuid_count(4, 0, &a, &b, &c, &d) && (a & 31) != 0 ? 4 : 0x8000001d;
    for (unsigned i = 0; i < 8 && used < size; i++) {
        if (!__get_cpuid_count(leaf, i, &a, &b, &c, &d) || (a & 31) == 0) {
            break;
        }
        if ((a & 31) != 2) { /* 1 data, 2 instructions, 3 both */
            uint64_t bytes = (uint64_t)((b >> 22) + 1) * ((b >> 12 & 1023) + 1) * ((b & 4095) + 1) *
                             ((uint64_t)c + 1);
            used += (size_t)snprintf(text + used, size - used, "%s%" PRIu64 "K/%u",
                                     used > 0 ? "," : "", bytes >> 10, (a >> 14 & 4095) + 1);
        }
    }
#endif
    if (used == 0) {
        snprintf(text, size, "unknown");
    }
}

void sx_dnn_numerics(char *text, size_t size)
{
    static const struct {
        dnnl_cpu_isa_t isa;
        const char *name;
    } names[] = {{dnnl_cpu_isa_sse41, "sse41"},
                 {dnnl_cpu_isa_avx, "avx"},
                 {dnnl_cpu_isa_avx2, "avx2"},
                 {dnnl_cpu_isa_avx2_vnni, "avx2_vnni"},
                 {dnnl_cpu_isa_avx512_core, "avx512_core"},
                 {dnnl_cpu_isa_avx512_core_vnni, "avx512_core_vnni"},
                 {dnnl_cpu_isa_avx512_core_bf16, "avx512_core_bf16"},
                 {dnnl_cpu_isa_avx512_core_amx, "avx512_core_amx"}};
    const dnnl_version_t *v = dnnl_version();
    dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
    char caches[96], number[16];
    const char *name = number;
    snprintf(number, sizeof(number), "%#x", (unsigned)isa);
    for (size_t i = 0; i < SX_COUNT(names); i++) {
        name = names[i].isa == isa ? names[i].name : name;
    }
    append_caches(caches, sizeof(caches));
    snprintf(text, size, "onednn:%d.%d.%d isa:%s caches:%s", v->major, v->minor, v->patch, name,
             caches);
}

static sx_status wrong(dnnl_status_t status, const char *what)
{
    static const char *const names[] = {"success",       "out of memory", "invalid arguments",
                                        "unimplemented", "iterator ends", "runtime error",
                                        "not required"};
    bool known = (size_t)status < sizeof(names) / sizeof(names[0]);
    sx_code code = status == dnnl_out_of_memory   ? SX_RESOURCE_EXHAUSTED
                   : status == dnnl_unimplemented ? SX_UNIMPLEMENTED
                                                  : SX_INTERNAL;
    return sx_error(code, "oneDNN: %s: %s", what, known ? names[status] : "unknown error");
}

#define DNN_TRY(expr, what)                    \
    do {                                       \
        dnnl_status_t dnn_status_ = (expr);    \
        if (dnn_status_ != dnnl_success) {     \
            status = wrong(dnn_status_, what); \
            goto done;                         \
        }                                      \
    } while (0)

/* ---- Convolution ---- */

enum { SRC, FILTER, BIAS, DST, SCRATCH, PACKED, MEMORIES };

/* The state of one shard's call. */
struct sx_dnn_slot {
    dnnl_stream_t stream;
    dnnl_memory_t memory[MEMORIES];
};

struct sx_dnn_conv {
    sx_dnn_conv_kind kind;
    bool has_bias, packs; /* packs: the primitive needs the filter in its own layout */
    bool adds;
    bool has_gemm; /* the primitive calls oneDNN's GEMM */
    dnnl_engine_t engine;
    dnnl_primitive_t primitive, reorder;
    dnnl_memory_desc_t md[MEMORIES];
    int64_t packed_bytes, scratch_bytes, dst_bytes;
    char name[48];
};

typedef struct conv_maker {
    const sx_dnn_conv_spec *spec;
    sx_dnn_conv *conv;
    dnnl_memory_desc_t any_filter; /* the descriptor for creating the primitive */
    dnnl_memory_desc_t src, filter,
        dst; /* of the forward convolution, its own or the hint of one */
    dnnl_dims_t strides, dilations, before, after;
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_t desc, forward;
} conv_maker;

static int64_t align(int64_t bytes)
{
    return (bytes + SX_CPU_ALIGN - 1) / SX_CPU_ALIGN * SX_CPU_ALIGN;
}

static dnnl_status_t nhwc(dnnl_memory_desc_t *md, const dnnl_dims_t dims, dnnl_data_type_t type)
{
    return dnnl_memory_desc_init_by_tag(md, 4, dims, type, dnnl_nhwc);
}

static void describe_windows(conv_maker *m)
{
    const sx_conv_window *w[2] = {&m->spec->geometry.h, &m->spec->geometry.w};
    for (int i = 0; i < 2; i++) {
        m->strides[i] = w[i]->stride;
        m->dilations[i] = w[i]->dilation - 1;
        m->before[i] = w[i]->pad_before;
        m->after[i] = (w[i]->out - 1) * w[i]->stride + (w[i]->kernel - 1) * w[i]->dilation + 1 -
                      w[i]->in - w[i]->pad_before;
    }
}

/* Whether the gradient of the filter is computed as one of a dense layer, whose rows are the
 * pixels: oneDNN 2.6's convolutions have a slow one for 1x1 with AMX (bench/README.md). */
static bool is_outer_product(const sx_dnn_conv_spec *spec)
{
    const sx_conv_geometry *g = &spec->geometry;
    const bool plain = g->h.kernel == 1 && g->w.kernel == 1 && g->h.stride == 1 &&
                       g->w.stride == 1 && g->h.out == g->h.in && g->w.out == g->w.in;
    return spec->kind == SX_DNN_BACKWARD_FILTER && spec->bf16 && plain && g->groups == 1 &&
           sx_dnn_has_amx();
}

/* x [rows, c], filter [c, o], dy [rows, o]; the dense layer's weights are [o, c]. */
static dnnl_status_t make_outer_product(conv_maker *m)
{
    const sx_conv_geometry *g = &m->spec->geometry;
    sx_dnn_conv *c = m->conv;
    const dnnl_dims_t x = {g->n * g->h.in * g->w.in, g->c}, weights = {g->o, g->c},
                      dy = {x[0], g->o};
    dnnl_inner_product_desc_t forward, backward;
    const dnnl_memory_desc_t *bias = m->spec->bias ? &c->md[BIAS] : NULL;
    dnnl_status_t s = dnnl_memory_desc_init_by_tag(&c->md[SRC], 2, x, dnnl_bf16, dnnl_ab);
    s = s != dnnl_success ? s
                          : dnnl_memory_desc_init_by_tag(&c->md[DST], 2, dy, dnnl_bf16, dnnl_ab);
    s = s != dnnl_success
            ? s
            : dnnl_memory_desc_init_by_tag(&c->md[FILTER], 2, weights, dnnl_f32, dnnl_ba);
    s = s != dnnl_success
            ? s
            : dnnl_memory_desc_init_by_tag(&m->filter, 2, weights, dnnl_bf16, dnnl_format_tag_any);
    s = s != dnnl_success
            ? s
            : dnnl_inner_product_forward_desc_init(&forward, dnnl_forward_training, &c->md[SRC],
                                                   &m->filter, NULL, &c->md[DST]);
    s = s != dnnl_success
            ? s
            : dnnl_primitive_desc_create(&m->forward, &forward, NULL, c->engine, NULL);
    s = s != dnnl_success ? s
                          : dnnl_inner_product_backward_weights_desc_init(
                                &backward, &c->md[SRC], &c->md[FILTER], bias, &c->md[DST]);
    return s != dnnl_success
               ? s
               : dnnl_primitive_desc_create(&m->desc, &backward, m->attr, c->engine, m->forward);
}

/* oneDNN's logical dimensions are NCHW and [G]OIHW for every layout. `plain_type`: the filter as it
 * is given. */
static sx_status describe_filter(conv_maker *m, dnnl_data_type_t plain_type,
                                 dnnl_data_type_t narrow)
{
    sx_status status = SX_OK;
    const sx_conv_geometry *g = &m->spec->geometry;
    int64_t out = g->groups * g->o, kh = g->h.kernel, kw = g->w.kernel;
    dnnl_dims_t plain = {out, g->c, kh, kw}, plain_strides = {1, out, kw * g->c * out, g->c * out};
    dnnl_dims_t grouped = {g->groups, g->o, g->c, kh, kw};
    dnnl_dims_t grouped_strides = {g->o, 1, out, kw * g->c * out, g->c * out};
    bool many = g->groups > 1, made = m->spec->kind == SX_DNN_BACKWARD_FILTER;
    const int rank = many ? 5 : 4;
    DNN_TRY(dnnl_memory_desc_init_by_strides(&m->conv->md[FILTER], rank, many ? grouped : plain,
                                             plain_type, many ? grouped_strides : plain_strides),
            "filter");
    DNN_TRY(dnnl_memory_desc_init_by_tag(&m->filter, rank, many ? grouped : plain, narrow,
                                         dnnl_format_tag_any),
            "filter");
    DNN_TRY(dnnl_memory_desc_init_by_tag(&m->any_filter, rank, many ? grouped : plain,
                                         made ? dnnl_f32 : narrow, dnnl_format_tag_any),
            "filter");
done:
    return status;
}

static dnnl_data_type_t type_of(sx_dtype dtype)
{
    return dtype == SX_U8 ? dnnl_u8 : dtype == SX_I8 ? dnnl_s8 : dnnl_f32;
}

/* A primitive of floats writes f32, or an image in bfloat16 where asked to; the forward convolution
 * used as the hint of a backward one reads and writes the narrow type. */
static sx_status describe(conv_maker *m)
{
    sx_status status = SX_OK;
    const sx_conv_geometry *g = &m->spec->geometry;
    sx_dnn_conv *c = m->conv;
    const sx_dnn_integers *i = m->spec->integers;
    const dnnl_data_type_t narrow = i != NULL       ? type_of(i->src)
                                    : m->spec->bf16 ? dnnl_bf16
                                                    : dnnl_f32;
    const dnnl_data_type_t made = i != NULL                               ? type_of(i->dst)
                                  : m->spec->bf16 && m->spec->bf16_result ? dnnl_bf16
                                                                          : dnnl_f32;
    int64_t in = g->groups * g->c, out = g->groups * g->o;
    dnnl_dims_t src = {g->n, in, g->h.in, g->w.in}, dst = {g->n, out, g->h.out, g->w.out};
    dnnl_dims_t bias = {out};
    DNN_TRY(nhwc(&m->src, src, narrow), "source");
    DNN_TRY(nhwc(&m->dst, dst, c->kind == SX_DNN_FORWARD ? made : narrow), "result");
    DNN_TRY(nhwc(&c->md[SRC], src, c->kind == SX_DNN_BACKWARD_DATA ? made : narrow), "source");
    c->md[DST] = m->dst;
    c->dst_bytes = (int64_t)dnnl_memory_desc_get_size(&m->dst);
    DNN_TRY(dnnl_memory_desc_init_by_tag(&c->md[BIAS], 1, bias, dnnl_f32, dnnl_x), "bias");
    status = i != NULL ? describe_filter(m, dnnl_s8, dnnl_s8)
                       : describe_filter(m, m->spec->bf16_filter ? dnnl_bf16 : dnnl_f32, narrow);
    describe_windows(m);
done:
    return status;
}

/* A sum is in units of dst where the activation leaves factors alone. */
static dnnl_status_t set_scales(const conv_maker *m, dnnl_primitive_attr_t attr)
{
    const sx_dnn_integers *i = m->spec->integers;
    const int64_t n = m->spec->geometry.groups * m->spec->geometry.o;
    const float unit = m->spec->act == SX_DNN_SWISH ? 1 : i->dst_step;
    float *scales = sx_alloc((size_t)n + 1, sizeof(*scales));
    if (scales == NULL) {
        return dnnl_out_of_memory;
    }
    for (int64_t k = 0; k < n; k++) {
        scales[k] = i->scales[k] / unit;
    }
    const dnnl_status_t s = dnnl_primitive_attr_set_output_scales(attr, n, 2, scales);
    sx_free(scales);
    return s;
}

static dnnl_status_t append_sum(const conv_maker *m, dnnl_post_ops_t ops)
{
    const sx_dnn_integers *i = m->spec->integers;
    if (i == NULL) {
        return dnnl_post_ops_append_sum(ops, 1.0F);
    }
    const float unit = m->spec->act == SX_DNN_SWISH ? 1 : i->dst_step;
    return dnnl_post_ops_append_sum_v2(ops, i->added_step / unit, type_of(i->added));
}

static dnnl_status_t append_act(const conv_maker *m, dnnl_post_ops_t ops)
{
    static const struct {
        dnnl_alg_kind_t kind;
        float alpha, beta;
    } acts[] = {[SX_DNN_RELU] = {dnnl_eltwise_relu, 0, 0},
                [SX_DNN_RELU6] = {dnnl_eltwise_clip, 0, 6},
                [SX_DNN_SWISH] = {dnnl_eltwise_swish, 1, 0}};
    const sx_dnn_act act = m->spec->act;
    const float unit = m->spec->integers != NULL ? m->spec->integers->dst_step : 1;
    return dnnl_post_ops_append_eltwise(ops, act == SX_DNN_SWISH ? 1 / unit : 1.0F, acts[act].kind,
                                        acts[act].alpha,
                                        act == SX_DNN_RELU6 ? acts[act].beta / unit : 0);
}

static dnnl_status_t make_attr(conv_maker *m)
{
    dnnl_status_t s = dnnl_primitive_attr_create(&m->attr);
    s = s != dnnl_success
            ? s
            : dnnl_primitive_attr_set_scratchpad_mode(m->attr, dnnl_scratchpad_mode_user);
    if (s == dnnl_success && m->spec->integers != NULL) {
        s = set_scales(m, m->attr);
    }
    if (s != dnnl_success || (m->spec->act == SX_DNN_PLAIN && !m->spec->add)) {
        return s;
    }
    dnnl_post_ops_t ops;
    s = dnnl_post_ops_create(&ops);
    if (s != dnnl_success) {
        return s;
    }
    if (m->spec->add) {
        s = append_sum(m, ops);
    }
    if (s == dnnl_success && m->spec->act != SX_DNN_PLAIN) {
        s = append_act(m, ops);
    }
    s = s != dnnl_success ? s : dnnl_primitive_attr_set_post_ops(m->attr, ops);
    dnnl_post_ops_destroy(ops);
    return s;
}

/* Whether oneDNN 2.6's implementation computes this convolution over NHWC. Its 1x1 gradient of a
 * filter for AVX2 writes whole blocks of eight channels (tests/backends/test_onednn.c finds it with
 * ONEDNN_MAX_CPU_ISA=AVX2). */
static bool computes(const sx_conv_geometry *g, sx_dnn_conv_kind kind, const char *implementation)
{
    enum { BLOCK = 8 };
    return kind != SX_DNN_BACKWARD_FILTER || strcmp(implementation, "jit_1x1:avx2") != 0 ||
           (g->c % BLOCK == 0 && g->o % BLOCK == 0);
}

/* The descriptor of oneDNN's first implementation that computes it. */
static dnnl_status_t choose(const conv_maker *m, sx_dnn_conv_kind kind,
                            const dnnl_convolution_desc_t *d, dnnl_primitive_attr_t attr,
                            dnnl_primitive_desc_t *out)
{
    dnnl_primitive_desc_iterator_t it;
    dnnl_status_t s =
        dnnl_primitive_desc_iterator_create(&it, d, attr, m->conv->engine, m->forward);
    if (s != dnnl_success) {
        return s;
    }
    do {
        const char *name = NULL;
        dnnl_primitive_desc_destroy(*out);
        *out = dnnl_primitive_desc_iterator_fetch(it);
        s = *out == NULL ? dnnl_out_of_memory
                         : dnnl_primitive_desc_query(*out, dnnl_query_impl_info_str, 0, &name);
        if (s == dnnl_success && computes(&m->spec->geometry, kind, name)) {
            break;
        }
        s = s == dnnl_success ? dnnl_primitive_desc_iterator_next(it) : s;
    } while (s == dnnl_success);
    dnnl_primitive_desc_iterator_destroy(it);
    return s == dnnl_iterator_ends ? dnnl_unimplemented : s;
}

static dnnl_status_t make_forward(conv_maker *m, dnnl_primitive_attr_t attr,
                                  dnnl_primitive_desc_t *out)
{
    dnnl_convolution_desc_t d;
    sx_dnn_conv *c = m->conv;
    dnnl_status_t s = dnnl_dilated_convolution_forward_desc_init(
        &d, dnnl_forward_training, dnnl_convolution_direct, &m->src, &m->filter,
        m->spec->bias ? &c->md[BIAS] : NULL, &m->dst, m->strides, m->dilations, m->before,
        m->after);
    return s != dnnl_success ? s : choose(m, SX_DNN_FORWARD, &d, attr, out);
}

static dnnl_status_t make_backward(conv_maker *m)
{
    dnnl_convolution_desc_t d;
    sx_dnn_conv *c = m->conv;
    dnnl_status_t s = make_forward(m, NULL, &m->forward);
    if (s != dnnl_success) {
        return s;
    }
    if (c->kind == SX_DNN_BACKWARD_DATA) {
        s = dnnl_dilated_convolution_backward_data_desc_init(
            &d, dnnl_convolution_direct, &c->md[SRC], &m->any_filter, &c->md[DST], m->strides,
            m->dilations, m->before, m->after);
    } else {
        s = dnnl_dilated_convolution_backward_weights_desc_init(
            &d, dnnl_convolution_direct, &c->md[SRC], &m->any_filter,
            m->spec->bias ? &c->md[BIAS] : NULL, &c->md[DST], m->strides, m->dilations, m->before,
            m->after);
    }
    return s != dnnl_success ? s : choose(m, c->kind, &d, m->attr, &m->desc);
}

static dnnl_status_t make_reorder(sx_dnn_conv *c)
{
    bool from_packed = c->kind == SX_DNN_BACKWARD_FILTER;
    dnnl_primitive_desc_t desc;
    dnnl_status_t s =
        dnnl_reorder_primitive_desc_create(&desc, &c->md[from_packed ? PACKED : FILTER], c->engine,
                                           &c->md[from_packed ? FILTER : PACKED], c->engine, NULL);
    if (s == dnnl_success) {
        s = dnnl_primitive_create(&c->reorder, desc);
        dnnl_primitive_desc_destroy(desc);
    }
    return s;
}

static sx_status finish(conv_maker *m)
{
    sx_status status = SX_OK;
    sx_dnn_conv *c = m->conv;
    const char *name = NULL;
    dnnl_query_t filter =
        c->kind == SX_DNN_BACKWARD_FILTER ? dnnl_query_diff_weights_md : dnnl_query_weights_md;
    DNN_TRY(dnnl_primitive_desc_query(m->desc, dnnl_query_impl_info_str, 0, &name), "name");
    snprintf(c->name, sizeof(c->name), "%s", name);
    c->has_gemm = strstr(name, "gemm:") != NULL;
    if (strncmp(name, "ref", 3) == 0) {
        status = sx_error(SX_UNIMPLEMENTED, "oneDNN has only reference loops for this convolution");
        goto done;
    }
    c->md[PACKED] = *dnnl_primitive_desc_query_md(m->desc, filter, 0);
    c->md[SCRATCH] = *dnnl_primitive_desc_query_md(m->desc, dnnl_query_scratchpad_md, 0);
    c->packs = !dnnl_memory_desc_equal(&c->md[PACKED], &c->md[FILTER]);
    c->packed_bytes = c->packs ? align((int64_t)dnnl_memory_desc_get_size(&c->md[PACKED])) : 0;
    c->scratch_bytes = c->packed_bytes + align((int64_t)dnnl_memory_desc_get_size(&c->md[SCRATCH]));
    if (m->spec->asks) {
        goto done;
    }
    DNN_TRY(dnnl_primitive_create(&c->primitive, m->desc), "convolution");
    if (c->packs) {
        const int team =
            sx_dnn_enter(m->spec->packs_alone || m->spec->team <= 0 ? 1 : m->spec->team);
        const dnnl_status_t made = make_reorder(c);
        sx_dnn_leave(team);
        DNN_TRY(made, "reorder");
    }
done:
    return status;
}

sx_status sx_dnn_conv_create(const sx_dnn_conv_spec *spec, sx_dnn_conv **out)
{
    sx_status status = SX_OK;
    int team = sx_dnn_enter(spec->team > 0 ? spec->team : 1);
    sx_dnn_conv *c = sx_alloc(1, sizeof(*c));
    conv_maker m = {.spec = spec, .conv = c};
    if (c == NULL) {
        status = sx_no_memory("for oneDNN");
        goto done;
    }
    c->kind = spec->kind;
    c->has_bias = spec->bias;
    c->adds = spec->add;
    DNN_TRY(dnnl_engine_create(&c->engine, dnnl_cpu, 0), "engine");
    if ((status = describe(&m)) != SX_OK) {
        goto done;
    }
    DNN_TRY(make_attr(&m), "attributes");
    DNN_TRY(is_outer_product(spec)         ? make_outer_product(&m)
            : spec->kind == SX_DNN_FORWARD ? make_forward(&m, m.attr, &m.desc)
                                           : make_backward(&m),
            "convolution");
    status = finish(&m);
done:
    dnnl_primitive_attr_destroy(m.attr);
    dnnl_primitive_desc_destroy(m.desc);
    dnnl_primitive_desc_destroy(m.forward);
    sx_dnn_leave(team);
    if (status != SX_OK) {
        sx_dnn_conv_destroy(c);
    } else {
        *out = c;
    }
    return status;
}

void sx_dnn_conv_destroy(sx_dnn_conv *c)
{
    if (c == NULL) {
        return;
    }
    dnnl_primitive_destroy(c->primitive);
    dnnl_primitive_destroy(c->reorder);
    dnnl_engine_destroy(c->engine);
    sx_free(c);
}

sx_status sx_dnn_slot_create(const sx_dnn_conv *c, sx_dnn_slot **out)
{
    sx_status status = SX_OK;
    sx_dnn_slot *s = sx_alloc(1, sizeof(*s));
    if (s == NULL) {
        return sx_no_memory("for oneDNN");
    }
    DNN_TRY(dnnl_stream_create(&s->stream, c->engine, dnnl_stream_default_flags), "stream");
    for (int k = 0; k < MEMORIES; k++) {
        DNN_TRY(dnnl_memory_create(&s->memory[k], &c->md[k], c->engine, DNNL_MEMORY_NONE),
                "memory");
    }
    *out = s;
    return SX_OK;
done:
    sx_dnn_slot_destroy(s);
    return status;
}

void sx_dnn_slot_destroy(sx_dnn_slot *s)
{
    if (s == NULL) {
        return;
    }
    for (int k = 0; k < MEMORIES; k++) {
        dnnl_memory_destroy(s->memory[k]);
    }
    dnnl_stream_destroy(s->stream);
    sx_free(s);
}

int64_t sx_dnn_conv_scratch_bytes(const sx_dnn_conv *conv, bool packed)
{
    return conv->scratch_bytes - (packed ? conv->packed_bytes : 0);
}

const char *sx_dnn_conv_name(const sx_dnn_conv *conv)
{
    return conv->name;
}

/* ---- Running ---- */

static void reorder(const sx_dnn_conv *c, const sx_dnn_slot *s, int from, int to)
{
    dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, s->memory[from]}, {DNNL_ARG_TO, s->memory[to]}};
    dnnl_primitive_execute(c->reorder, s->stream, 2, args);
}

void sx_dnn_conv_run(const sx_dnn_conv *c, const sx_dnn_slot *s, const sx_dnn_conv_args *a)
{
    static const int names[][4] = {
        [SX_DNN_FORWARD] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS},
        [SX_DNN_BACKWARD_DATA] = {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST, 0},
        [SX_DNN_BACKWARD_FILTER] = {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST,
                                    DNNL_ARG_DIFF_BIAS},
    };
    const int *name = names[c->kind];
    char *scratch = a->scratch;
    void *data[MEMORIES] = {a->src,
                            a->filter,
                            a->bias,
                            a->dst,
                            scratch + (a->packed != NULL ? 0 : c->packed_bytes),
                            a->packed != NULL ? a->packed : scratch};
    sigset_t before;
    const bool blocked = block_signals(c->has_gemm, &before);
    for (int k = 0; k < MEMORIES; k++) {
        dnnl_memory_set_data_handle_v2(s->memory[k], data[k], s->stream);
    }
    if (c->packs && c->kind != SX_DNN_BACKWARD_FILTER && a->packed == NULL) {
        reorder(c, s, FILTER, PACKED);
    }
    dnnl_exec_arg_t args[5] = {{name[0], s->memory[SRC]},
                               {name[1], s->memory[c->packs ? PACKED : FILTER]},
                               {name[2], s->memory[DST]},
                               {DNNL_ARG_SCRATCHPAD, s->memory[SCRATCH]}};
    int n = 4;
    if (c->has_bias) {
        args[n++] = (dnnl_exec_arg_t){name[3], s->memory[BIAS]};
    }
    if (c->adds && a->added != a->dst) {
        memcpy(a->dst, a->added, (size_t)c->dst_bytes);
    }
    /* One thread gets the parts of all; oneDNN's GEMM would divide its work anew. */
    const bool alone = a->alone && !c->has_gemm && c->kind == SX_DNN_FORWARD;
    const int levels = alone ? omp_get_max_active_levels() : 0;
    if (alone) {
        omp_set_max_active_levels(0);
    }
    dnnl_primitive_execute(c->primitive, s->stream, n, args);
    if (alone) {
        omp_set_max_active_levels(levels);
    }
    if (c->packs && c->kind == SX_DNN_BACKWARD_FILTER) {
        reorder(c, s, PACKED, FILTER);
    }
    if (blocked) {
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
}

int64_t sx_dnn_conv_packed_bytes(const sx_dnn_conv *c)
{
    return c->packed_bytes;
}

sx_status sx_dnn_conv_pack(const sx_dnn_conv *c, void *filter, void *packed)
{
    sx_dnn_slot *s;
    SX_TRY(sx_dnn_slot_create(c, &s));
    sx_dnn_conv_pack_in(c, s, filter, packed);
    sx_dnn_slot_destroy(s);
    return SX_OK;
}

void sx_dnn_conv_pack_in(const sx_dnn_conv *c, const sx_dnn_slot *s, void *filter, void *packed)
{
    dnnl_memory_set_data_handle_v2(s->memory[FILTER], filter, s->stream);
    dnnl_memory_set_data_handle_v2(s->memory[PACKED], packed, s->stream);
    reorder(c, s, FILTER, PACKED);
}

uint64_t sx_dnn_conv_layout(const sx_dnn_conv *c)
{
    const dnnl_memory_desc_t *md = &c->md[PACKED];
    const dnnl_blocking_desc_t *b = &md->format_desc.blocking;
    int64_t words[1 + 4 * DNNL_MAX_NDIMS] = {md->data_type};
    int n = 1;
    for (int i = 0; i < md->ndims; i++) {
        words[n++] = md->padded_dims[i];
        words[n++] = b->strides[i];
    }
    for (int i = 0; i < b->inner_nblks; i++) {
        words[n++] = b->inner_blks[i];
        words[n++] = b->inner_idxs[i];
    }
    return sx_hash64(words, (size_t)n * sizeof(*words));
}

/* ---- Packing in pieces ---- */

/* A piece is a block of filters or of channels, all pieces being alike. */
struct sx_dnn_packer {
    dnnl_engine_t engine;
    dnnl_primitive_t reorder;
    dnnl_memory_desc_t md[MEMORIES]; /* of a piece: FILTER, PACKED */
    int64_t pieces;
    int64_t step[MEMORIES]; /* bytes from piece to piece */
};

/* Divides along the dimension that has most blocks; one piece if none has several whole ones. */
static dnnl_status_t divide(sx_dnn_packer *p, const sx_dnn_conv *c)
{
    const dnnl_memory_desc_t *packed = &c->md[PACKED], *plain = &c->md[FILTER];
    const dnnl_blocking_desc_t *b = &packed->format_desc.blocking;
    dnnl_dims_t piece, origin = {0};
    int along = 0;
    int64_t most = 1, size = 0;
    for (int d = 0; d < packed->ndims && packed->format_kind == dnnl_blocked; d++) {
        int64_t block = 1;
        piece[d] = packed->dims[d];
        for (int i = 0; i < b->inner_nblks; i++) {
            block *= b->inner_idxs[i] == d ? b->inner_blks[i] : 1;
        }
        if (packed->dims[d] % block == 0 && packed->dims[d] / block > most) {
            most = packed->dims[d] / block;
            size = block;
            along = d;
        }
    }
    p->pieces = most;
    p->md[FILTER] = *plain;
    p->md[PACKED] = *packed;
    if (most == 1) {
        return dnnl_success;
    }
    piece[along] = size;
    p->step[FILTER] = plain->format_desc.blocking.strides[along] * size *
                      (int64_t)dnnl_data_type_size(plain->data_type);
    p->step[PACKED] = b->strides[along] * (int64_t)dnnl_data_type_size(packed->data_type);
    const dnnl_status_t s = dnnl_memory_desc_init_submemory(&p->md[FILTER], plain, piece, origin);
    return s != dnnl_success
               ? s
               : dnnl_memory_desc_init_submemory(&p->md[PACKED], packed, piece, origin);
}

sx_status sx_dnn_packer_create(const sx_dnn_conv *c, sx_dnn_packer **out)
{
    sx_status status = SX_OK;
    dnnl_primitive_desc_t desc = NULL;
    const int team = sx_dnn_enter(1);
    sx_dnn_packer *p = sx_alloc(1, sizeof(*p));
    if (p == NULL) {
        status = sx_no_memory("for oneDNN");
        goto done;
    }
    DNN_TRY(dnnl_engine_create(&p->engine, dnnl_cpu, 0), "engine");
    DNN_TRY(divide(p, c), "a piece of a filter");
    DNN_TRY(dnnl_reorder_primitive_desc_create(&desc, &p->md[FILTER], p->engine, &p->md[PACKED],
                                               p->engine, NULL),
            "reorder");
    DNN_TRY(dnnl_primitive_create(&p->reorder, desc), "reorder");
done:
    dnnl_primitive_desc_destroy(desc);
    sx_dnn_leave(team);
    if (status != SX_OK) {
        sx_dnn_packer_destroy(p);
    } else {
        *out = p;
    }
    return status;
}

void sx_dnn_packer_destroy(sx_dnn_packer *p)
{
    if (p == NULL) {
        return;
    }
    dnnl_primitive_destroy(p->reorder);
    dnnl_engine_destroy(p->engine);
    sx_free(p);
}

int64_t sx_dnn_packer_pieces(const sx_dnn_packer *p)
{
    return p->pieces;
}

sx_status sx_dnn_packer_slot(const sx_dnn_packer *p, sx_dnn_slot **out)
{
    sx_status status = SX_OK;
    sx_dnn_slot *s = sx_alloc(1, sizeof(*s));
    if (s == NULL) {
        return sx_no_memory("for oneDNN");
    }
    DNN_TRY(dnnl_stream_create(&s->stream, p->engine, dnnl_stream_default_flags), "stream");
    DNN_TRY(dnnl_memory_create(&s->memory[FILTER], &p->md[FILTER], p->engine, DNNL_MEMORY_NONE),
            "memory");
    DNN_TRY(dnnl_memory_create(&s->memory[PACKED], &p->md[PACKED], p->engine, DNNL_MEMORY_NONE),
            "memory");
    *out = s;
    return SX_OK;
done:
    sx_dnn_slot_destroy(s);
    return status;
}

void sx_dnn_packer_run(const sx_dnn_packer *p, const sx_dnn_slot *s, void *filter, void *packed,
                       int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        dnnl_memory_set_data_handle_v2(s->memory[FILTER], (char *)filter + i * p->step[FILTER],
                                       s->stream);
        dnnl_memory_set_data_handle_v2(s->memory[PACKED], (char *)packed + i * p->step[PACKED],
                                       s->stream);
        dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, s->memory[FILTER]},
                                  {DNNL_ARG_TO, s->memory[PACKED]}};
        dnnl_primitive_execute(p->reorder, s->stream, 2, args);
    }
}

/* ---- Products ---- */

sx_dnn_pieces sx_dnn_pieces_of(int64_t of, bool divided)
{
    enum { LEAST = 192, MOST = 16 }; /* what is packed for a piece is little beside its products */
    const int64_t size = divided ? (of / MOST + LEAST) / LEAST * LEAST : SX_MAX(of, 1);
    return (sx_dnn_pieces){.of = of, .size = size, .n = SX_MAX((of + size / 2) / size, 1)};
}

void sx_dnn_gemm_part(const sx_dnn_product *p, int64_t row, int64_t rows, int64_t column,
                      int64_t columns)
{
    const int64_t a_row = p->a_row > 0 ? p->a_row : p->ta ? p->m : p->k;
    const int64_t b_row = p->b_row > 0 ? p->b_row : p->tb ? p->k : p->n;
    const int64_t c_row = p->c_row > 0 ? p->c_row : p->n;
    sigset_t before;
    const int team = sx_dnn_enter(1); /* more threads divide a long sum, and so change its bits */
    const bool blocked = block_signals(p->k > MAX_K_ON_STACK, &before);
    dnnl_sgemm(p->ta ? 'T' : 'N', p->tb ? 'T' : 'N', rows, columns, p->k,
               p->alpha != NULL ? *p->alpha : 1.0F, p->a + row * (p->ta ? 1 : a_row), a_row,
               p->b + column * (p->tb ? b_row : 1), b_row, p->beta, p->c + row * c_row + column,
               c_row);
    if (blocked) {
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    sx_dnn_leave(team);
}

void sx_dnn_gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float *a, const float *b,
                 float beta, float *c)
{
    const sx_dnn_product p = {
        .ta = ta, .tb = tb, .m = m, .n = n, .k = k, .a = a, .b = b, .beta = beta, .c = c};
    sx_dnn_gemm_part(&p, 0, m, 0, n);
}

void sx_dnn_gemm_int8(int64_t m, int64_t n, int64_t k, const uint8_t *a, const int8_t *b,
                      int32_t *c)
{
    const int32_t none = 0;
    dnnl_gemm_u8s8s32('N', 'N', 'F', m, n, k, 1.0F, a, k, 0, b, n, 0, 0.0F, c, n, &none);
}

static void first_gemm(void)
{
    enum { SIDE = 16 }; /* smaller ones have a path of their own */
    static const float zeros[SIDE * SIDE];
    float c[SIDE * SIDE];
    sx_dnn_gemm(false, false, SIDE, SIDE, SIDE, zeros, zeros, 0, c);
}

void sx_dnn_gemm_prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, first_gemm);
}
