/* One convolution or product of oneDNN at a time, for bench_onednn.py, which compares two versions
 * of the library: this file is compiled against each. It answers lines on standard input:
 *
 *   conv KIND SRC DST LAYOUT n c o groups h w kh kw sh sw top bottom left right ACT add
 *   matmul SRC DST LAYOUT batch m n k ta tb ACT
 *   sgemm batch m n k ta tb            the function, not the primitive
 *       the name of oneDNN's kernel, or "none"
 *   run N
 *       the seconds of the processor that N runs took
 *
 * KIND: forward, data, weights. SRC: f32, bf16, u8 (by s8 filters), of all that is read. LAYOUT:
 * "ours", row-major NHWC and matrices, only the weights packed; "plain", weights row-major, too;
 * "any", all as oneDNN likes. ACT: -, relu, relu6, swish. add: 1, another image is added before
 * ACT; 2, to what lies in the result already.
 *
 * One thread, memory touched before. Limited by multiplications; 1x1 convolutions of few channels
 * and depthwise ones by the caches: what a run reads and writes is still in them from the run
 * before. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "onednn_api.h"

enum { SRC, WEIGHTS, BIAS, DST, SCRATCH, ADDED, SCALES, MEMORIES };

typedef struct request {
    char kind[16], src[8], dst[8], layout[8], act[8];
    bool conv;
    long n, c, o, groups, h, w, kh, kw, sh, sw, top, bottom, left, right, add; /* conv */
    long batch, m, cols, k, ta, tb;                                            /* products */
} request;

/* What a line prepared. */
typedef struct work {
    request r;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_t forward, desc;
    dnnl_primitive_t primitive;
    dnnl_memory_desc_t md[MEMORIES];
    dnnl_memory_t memory[MEMORIES];
    void *data[MEMORIES];
    dnnl_exec_arg_t args[MEMORIES];
    int n_args;
    bool sgemm;
} work;

static dnnl_data_type_t type_of(const char *name)
{
    return strcmp(name, "bf16") == 0 ? dnnl_bf16 : strcmp(name, "u8") == 0 ? dnnl_u8 : dnnl_f32;
}

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* Values of [-1, 1) or small integers: no infinity, no denormal number. */
static void fill(void *data, size_t bytes, dnnl_data_type_t type)
{
    static uint32_t seed = 1;
    for (size_t i = 0; i < bytes / (type == dnnl_f32 ? 4 : type == dnnl_bf16 ? 2 : 1); i++) {
        seed = seed * 1664525 + 1013904223;
        const float value = (float)(seed >> 8) / (float)(1 << 23) - 1;
        uint32_t bits;
        memcpy(&bits, &value, sizeof(bits));
        if (type == dnnl_f32) {
            memcpy((char *)data + 4 * i, &bits, 4);
        } else if (type == dnnl_bf16) {
            bits >>= 16;
            memcpy((char *)data + 2 * i, &bits, 2);
        } else {
            ((uint8_t *)data)[i] = (uint8_t)(seed >> 28);
        }
    }
}

static dnnl_status_t give(work *w, int k, const_dnnl_memory_desc_t md, dnnl_data_type_t type,
                          int arg)
{
    const size_t bytes = dnnl_memory_desc_get_size(md);
    w->data[k] = aligned_alloc(4096, (bytes / 4096 + 1) * 4096);
    if (w->data[k] == NULL) {
        return dnnl_out_of_memory;
    }
    fill(w->data[k], bytes, type);
    dnnl_status_t s = dnnl_memory_create(&w->memory[k], md, w->engine, DNNL_MEMORY_NONE);
    s = s != dnnl_success ? s : sx_dnn_set_data(w->memory[k], w->data[k], w->stream);
    w->args[w->n_args++] = (dnnl_exec_arg_t){arg, w->memory[k]};
    return s;
}

/* ---- Attributes: an activation, a residual sum, scales of integers ---- */

static dnnl_status_t append_sum(dnnl_post_ops_t ops)
{
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_post_ops_append_sum(ops, 1, 0, dnnl_data_type_undef);
#else
    return dnnl_post_ops_append_sum(ops, 1);
#endif
}

static dnnl_status_t append_act(dnnl_post_ops_t ops, const char *act)
{
    return is(act, "relu")    ? dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_relu, 0, 0)
           : is(act, "relu6") ? dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_clip, 0, 6)
           : is(act, "swish") ? dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_swish, 1, 0)
                              : dnnl_success;
}

/* A scale for each channel, as of quantized filters. */
static dnnl_status_t add_scales(work *w, long channels)
{
#if DNNL_VERSION_MAJOR >= 3
    (void)channels;
    const int mask = w->r.conv && w->r.groups > 1 ? 3 : w->r.conv ? 1 : 2;
    return dnnl_primitive_attr_set_scales_mask(w->attr, DNNL_ARG_WEIGHTS, mask);
#else
    float *scales = malloc((size_t)channels * sizeof(float));
    for (long i = 0; i < channels && scales != NULL; i++) {
        scales[i] = 0.01F;
    }
    dnnl_status_t s = dnnl_primitive_attr_set_output_scales(w->attr, channels, 2, scales);
    free(scales);
    return s;
#endif
}

static dnnl_status_t give_scales(work *w, long channels)
{
#if DNNL_VERSION_MAJOR >= 3
    const dnnl_dims_t dims = {channels};
    dnnl_status_t s = dnnl_memory_desc_create_with_tag(&w->md[SCALES], 1, dims, dnnl_f32, dnnl_x);
    return s != dnnl_success ? s
                             : give(w, SCALES, SX_DNN_MD(w->md[SCALES]), dnnl_f32,
                                    DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS);
#else
    (void)w;
    (void)channels;
    return dnnl_success;
#endif
}

static dnnl_status_t make_attr(work *w, long channels)
{
    dnnl_status_t s = dnnl_primitive_attr_create(&w->attr);
    s = s != dnnl_success
            ? s
            : dnnl_primitive_attr_set_scratchpad_mode(w->attr, dnnl_scratchpad_mode_user);
    if (s == dnnl_success && is(w->r.src, "u8")) {
        s = add_scales(w, channels);
    }
    dnnl_post_ops_t ops = NULL;
    s = s != dnnl_success ? s : dnnl_post_ops_create(&ops);
    if (s == dnnl_success && w->r.add == 1) {
        s = dnnl_post_ops_append_binary(ops, dnnl_binary_add, SX_DNN_MD(w->md[ADDED]));
    } else if (s == dnnl_success && w->r.add == 2) {
        s = append_sum(ops);
    }
    s = s != dnnl_success ? s : append_act(ops, w->r.act);
    s = s != dnnl_success ? s : dnnl_primitive_attr_set_post_ops(w->attr, ops);
    dnnl_post_ops_destroy(ops);
    return s;
}

/* ---- Convolutions ---- */

typedef struct conv_form {
    dnnl_dims_t src, filter, dst, bias, strides, dilations, before, after;
    int filter_rank;
} conv_form;

static conv_form form_of(const request *r)
{
    conv_form f = {
        .src = {r->n, r->c * r->groups, r->h, r->w},
        .dst = {r->n, r->o * r->groups, (r->h + r->top + r->bottom - r->kh) / r->sh + 1,
                (r->w + r->left + r->right - r->kw) / r->sw + 1},
        .filter = {r->o, r->c, r->kh, r->kw},
        .bias = {r->o * r->groups},
        .strides = {r->sh, r->sw},
        .before = {r->top, r->left},
        .after = {(r->h + r->top + r->bottom - r->kh) / r->sh * r->sh + r->kh - r->h - r->top,
                  (r->w + r->left + r->right - r->kw) / r->sw * r->sw + r->kw - r->w - r->left},
        .filter_rank = 4};
    if (r->groups > 1) {
        const dnnl_dims_t grouped = {r->groups, r->o, r->c, r->kh, r->kw};
        memcpy(f.filter, grouped, sizeof(grouped));
        f.filter_rank = 5;
    }
    return f;
}

static dnnl_status_t describe_conv(work *w, const conv_form *f)
{
    const request *r = &w->r;
    const bool data = is(r->kind, "data"), weights = is(r->kind, "weights");
    const dnnl_data_type_t narrow = type_of(r->src), wide = type_of(r->dst);
    const dnnl_data_type_t by = narrow == dnnl_u8 ? dnnl_s8 : narrow;
    const dnnl_format_tag_t tag = is(r->layout, "any") ? dnnl_format_tag_any : dnnl_nhwc;
    dnnl_status_t s =
        dnnl_memory_desc_create_with_tag(&w->md[SRC], 4, f->src, data ? wide : narrow, tag);
    s = s != dnnl_success ? s
                          : dnnl_memory_desc_create_with_tag(&w->md[DST], 4, f->dst,
                                                             data || weights ? narrow : wide, tag);
    s = s != dnnl_success
            ? s
            : dnnl_memory_desc_create_with_tag(&w->md[WEIGHTS], f->filter_rank, f->filter,
                                               weights ? wide : by, dnnl_format_tag_any);
    s = s != dnnl_success
            ? s
            : dnnl_memory_desc_create_with_tag(&w->md[ADDED], 4, f->dst, wide, dnnl_nhwc);
    return s != dnnl_success
               ? s
               : dnnl_memory_desc_create_with_tag(&w->md[BIAS], 1, f->bias, dnnl_f32, dnnl_x);
}

/* The convolution whose gradient is asked for: all of the narrow type. */
static dnnl_status_t make_hint(work *w, const conv_form *f)
{
    const dnnl_data_type_t type = type_of(w->r.src);
    const dnnl_format_tag_t tag = is(w->r.layout, "any") ? dnnl_format_tag_any : dnnl_nhwc;
    dnnl_memory_desc_t src, filter, dst;
    dnnl_status_t s = dnnl_memory_desc_create_with_tag(&src, 4, f->src, type, tag);
    s = s != dnnl_success ? s
                          : dnnl_memory_desc_create_with_tag(&filter, f->filter_rank, f->filter,
                                                             type, dnnl_format_tag_any);
    s = s != dnnl_success ? s : dnnl_memory_desc_create_with_tag(&dst, 4, f->dst, type, tag);
    if (s != dnnl_success) {
        return s;
    }
    s = dnnl_convolution_forward_primitive_desc_create(
        &w->forward, w->engine, dnnl_forward_training, dnnl_convolution_direct, SX_DNN_MD(src),
        SX_DNN_MD(filter), NULL, SX_DNN_MD(dst), f->strides, f->dilations, f->before, f->after,
        NULL);
    sx_dnn_md_destroy(src);
    sx_dnn_md_destroy(filter);
    sx_dnn_md_destroy(dst);
    return s;
}

static dnnl_status_t make_conv(work *w, const conv_form *f)
{
    dnnl_status_t s;
    if (is(w->r.kind, "forward")) {
        return dnnl_convolution_forward_primitive_desc_create(
            &w->desc, w->engine, dnnl_forward_inference, dnnl_convolution_direct,
            SX_DNN_MD(w->md[SRC]), SX_DNN_MD(w->md[WEIGHTS]), SX_DNN_MD(w->md[BIAS]),
            SX_DNN_MD(w->md[DST]), f->strides, f->dilations, f->before, f->after, w->attr);
    }
    if ((s = make_hint(w, f)) != dnnl_success) {
        return s;
    }
    return is(w->r.kind, "data")
               ? dnnl_convolution_backward_data_primitive_desc_create(
                     &w->desc, w->engine, dnnl_convolution_direct, SX_DNN_MD(w->md[SRC]),
                     SX_DNN_MD(w->md[WEIGHTS]), SX_DNN_MD(w->md[DST]), f->strides, f->dilations,
                     f->before, f->after, w->forward, w->attr)
               : dnnl_convolution_backward_weights_primitive_desc_create(
                     &w->desc, w->engine, dnnl_convolution_direct, SX_DNN_MD(w->md[SRC]),
                     SX_DNN_MD(w->md[WEIGHTS]), NULL, SX_DNN_MD(w->md[DST]), f->strides,
                     f->dilations, f->before, f->after, w->forward, w->attr);
}

static dnnl_status_t prepare_conv(work *w)
{
    const request *r = &w->r;
    const conv_form f = form_of(r);
    const bool data = is(r->kind, "data"), weights = is(r->kind, "weights");
    const dnnl_data_type_t narrow = type_of(r->src), wide = type_of(r->dst);
    dnnl_status_t s = describe_conv(w, &f);
    s = s != dnnl_success ? s : make_attr(w, r->o * r->groups);
    s = s != dnnl_success ? s : make_conv(w, &f);
    if (s != dnnl_success) {
        return s;
    }
    const struct {
        int memory, arg;
        dnnl_query_t query;
        dnnl_data_type_t type;
    } rows[] = {
        {SRC, data ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC,
         data ? dnnl_query_diff_src_md : dnnl_query_src_md, data ? wide : narrow},
        {WEIGHTS, weights ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS,
         weights ? dnnl_query_diff_weights_md : dnnl_query_weights_md, weights ? wide : narrow},
        {DST, data || weights ? DNNL_ARG_DIFF_DST : DNNL_ARG_DST,
         data || weights ? dnnl_query_diff_dst_md : dnnl_query_dst_md,
         data || weights ? narrow : wide},
        {SCRATCH, DNNL_ARG_SCRATCHPAD, dnnl_query_scratchpad_md, dnnl_f32},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && s == dnnl_success; i++) {
        s = give(w, rows[i].memory, dnnl_primitive_desc_query_md(w->desc, rows[i].query, 0),
                 rows[i].type, rows[i].arg);
    }
    if (s == dnnl_success && !data && !weights) {
        s = give(w, BIAS, SX_DNN_MD(w->md[BIAS]), dnnl_f32, DNNL_ARG_BIAS);
    }
    if (s == dnnl_success && r->add == 1) {
        s = give(w, ADDED, SX_DNN_MD(w->md[ADDED]), wide,
                 DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1);
    }
    if (s == dnnl_success && narrow == dnnl_u8) {
        s = give_scales(w, r->o * r->groups);
    }
    return s;
}

/* ---- Products ---- */

/* A matrix or a stack of them, possibly lying transposed. */
static dnnl_status_t matrix(dnnl_memory_desc_t *md, const request *r, long rows, long cols,
                            dnnl_data_type_t type, bool transposed, bool any)
{
    const bool stack = r->batch > 1;
    const dnnl_dims_t flat = {rows, cols}, dims = {r->batch, rows, cols};
    return dnnl_memory_desc_create_with_tag(md, stack ? 3 : 2, stack ? dims : flat, type,
                                            any          ? dnnl_format_tag_any
                                            : stack      ? (transposed ? dnnl_acb : dnnl_abc)
                                            : transposed ? dnnl_ba
                                                         : dnnl_ab);
}

static dnnl_status_t prepare_matmul(work *w)
{
    const request *r = &w->r;
    const dnnl_data_type_t narrow = type_of(r->src), wide = type_of(r->dst);
    const bool any = is(r->layout, "any"), packed = !is(r->layout, "plain");
    const dnnl_dims_t ones = {1, r->cols};
    dnnl_status_t s = matrix(&w->md[SRC], r, r->m, r->k, narrow, r->ta, any);
    s = s != dnnl_success ? s
                          : matrix(&w->md[WEIGHTS], r, r->k, r->cols,
                                   narrow == dnnl_u8 ? dnnl_s8 : narrow, r->tb, packed);
    s = s != dnnl_success ? s : matrix(&w->md[DST], r, r->m, r->cols, wide, false, any);
    s = s != dnnl_success ? s : make_attr(w, r->cols);
    const bool bias = r->batch == 1;
    if (s == dnnl_success && bias) {
        s = dnnl_memory_desc_create_with_tag(&w->md[BIAS], 2, ones, dnnl_f32, dnnl_ab);
    }
    s = s != dnnl_success
            ? s
            : dnnl_matmul_primitive_desc_create(
                  &w->desc, w->engine, SX_DNN_MD(w->md[SRC]), SX_DNN_MD(w->md[WEIGHTS]),
                  bias ? SX_DNN_MD(w->md[BIAS]) : NULL, SX_DNN_MD(w->md[DST]), w->attr);
    const struct {
        int memory, arg;
        dnnl_query_t query;
        dnnl_data_type_t type;
    } rows[] = {{SRC, DNNL_ARG_SRC, dnnl_query_src_md, narrow},
                {WEIGHTS, DNNL_ARG_WEIGHTS, dnnl_query_weights_md, narrow},
                {DST, DNNL_ARG_DST, dnnl_query_dst_md, wide},
                {SCRATCH, DNNL_ARG_SCRATCHPAD, dnnl_query_scratchpad_md, dnnl_f32}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && s == dnnl_success; i++) {
        s = give(w, rows[i].memory, dnnl_primitive_desc_query_md(w->desc, rows[i].query, 0),
                 rows[i].type, rows[i].arg);
    }
    if (s == dnnl_success && bias) {
        s = give(w, BIAS, SX_DNN_MD(w->md[BIAS]), dnnl_f32, DNNL_ARG_BIAS);
    }
    if (s == dnnl_success && narrow == dnnl_u8) {
        s = give_scales(w, r->cols);
    }
    return s;
}

static dnnl_status_t prepare_sgemm(work *w)
{
    const request *r = &w->r;
    dnnl_status_t s = matrix(&w->md[SRC], r, r->m, r->k, dnnl_f32, r->ta, false);
    s = s != dnnl_success ? s : matrix(&w->md[WEIGHTS], r, r->k, r->cols, dnnl_f32, r->tb, false);
    s = s != dnnl_success ? s : matrix(&w->md[DST], r, r->m, r->cols, dnnl_f32, false, false);
    for (int k = 0; k < MEMORIES && s == dnnl_success; k++) {
        if (k == SRC || k == WEIGHTS || k == DST) {
            s = give(w, k, SX_DNN_MD(w->md[k]), dnnl_f32, 0);
        }
    }
    return s;
}

static void run_sgemm(const work *w)
{
    const request *r = &w->r;
    for (long i = 0; i < r->batch; i++) {
        dnnl_sgemm(r->ta ? 'T' : 'N', r->tb ? 'T' : 'N', r->m, r->cols, r->k, 1.0F,
                   (const float *)w->data[SRC] + i * r->m * r->k, r->ta ? r->m : r->k,
                   (const float *)w->data[WEIGHTS] + i * r->k * r->cols, r->tb ? r->k : r->cols, 0,
                   (float *)w->data[DST] + i * r->m * r->cols, r->cols);
    }
}

/* ---- Lines ---- */

static void drop(work *w)
{
    dnnl_primitive_destroy(w->primitive);
    dnnl_primitive_desc_destroy(w->desc);
    dnnl_primitive_desc_destroy(w->forward);
    dnnl_primitive_attr_destroy(w->attr);
    for (int k = 0; k < MEMORIES; k++) {
        dnnl_memory_destroy(w->memory[k]);
        sx_dnn_md_destroy(w->md[k]);
        free(w->data[k]);
    }
    *w = (work){.engine = w->engine, .stream = w->stream};
}

static bool parse(const char *line, work *w)
{
    request *r = &w->r;
    if (sscanf(
            line,
            "conv %15s %7s %7s %7s %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld %ld %7s %ld",
            r->kind, r->src, r->dst, r->layout, &r->n, &r->c, &r->o, &r->groups, &r->h, &r->w,
            &r->kh, &r->kw, &r->sh, &r->sw, &r->top, &r->bottom, &r->left, &r->right, r->act,
            &r->add) == 20) {
        r->conv = true;
        return true;
    }
    if (sscanf(line, "matmul %7s %7s %7s %ld %ld %ld %ld %ld %ld %7s", r->src, r->dst, r->layout,
               &r->batch, &r->m, &r->cols, &r->k, &r->ta, &r->tb, r->act) == 10) {
        return true;
    }
    w->sgemm = sscanf(line, "sgemm %ld %ld %ld %ld %ld %ld", &r->batch, &r->m, &r->cols, &r->k,
                      &r->ta, &r->tb) == 6;
    return w->sgemm;
}

/* The name of the kernel; NULL: there is none. */
static const char *prepare(work *w)
{
    const char *name = "sgemm";
    dnnl_status_t s = w->sgemm ? prepare_sgemm(w) : w->r.conv ? prepare_conv(w) : prepare_matmul(w);
    if (s == dnnl_success && !w->sgemm) {
        s = dnnl_primitive_create(&w->primitive, w->desc);
        s = s != dnnl_success
                ? s
                : dnnl_primitive_desc_query(w->desc, dnnl_query_impl_info_str, 0, &name);
    }
    return s == dnnl_success ? name : NULL;
}

static bool run_once(const work *w)
{
    if (w->sgemm) {
        run_sgemm(w);
        return true;
    }
    return dnnl_primitive_execute(w->primitive, w->stream, w->n_args, w->args) == dnnl_success;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
    work w = {0};
    char line[256];
    if (argc < 2 || !is(argv[1], "--serve")) {
        printf("run by bench_onednn.py\n");
        return 77;
    }
    if (dnnl_engine_create(&w.engine, dnnl_cpu, 0) != dnnl_success ||
        dnnl_stream_create(&w.stream, w.engine, dnnl_stream_default_flags) != dnnl_success) {
        return 1;
    }
    const dnnl_version_t *v = dnnl_version();
    printf("%d.%d.%d isa %#x\n", v->major, v->minor, v->patch,
           (unsigned)dnnl_get_effective_cpu_isa());
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        long runs = 0;
        if (sscanf(line, "run %ld", &runs) == 1) {
            const double start = seconds();
            bool ok = true;
            for (long i = 0; i < runs; i++) {
                ok = run_once(&w) && ok;
            }
            printf("%.9f\n", ok ? seconds() - start : -1.0);
        } else {
            drop(&w);
            const char *name = parse(line, &w) ? prepare(&w) : NULL;
            printf("%s\n", name != NULL ? name : "none");
        }
        fflush(stdout);
    }
    drop(&w);
    dnnl_stream_destroy(w.stream);
    dnnl_engine_destroy(w.engine);
    return 0;
}
