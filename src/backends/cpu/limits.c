#include "backends/cpu/limits.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/cpu/kernel.h"
#include "backends/cpu/onednn2.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/pool.h"
#include "io/commit.h"
#include "io/file.h"
#include "io/json_text.h"
#include "io/path.h"
#include "io/user_cache.h"

void sx_cpu_kind(char *text, size_t size)
{
    char line[256], model[128] = "CPU";
    FILE *f = fopen("/proc/cpuinfo", "re");
    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        if (sscanf(line, "model name : %127[^\n]", model) == 1) {
            break;
        }
    }
    if (f != NULL) {
        fclose(f);
    }
    snprintf(text, size, "%s (%s)", model, sx_cpu_vec_best()->name);
}

/* ---- Measuring ---- */

enum {
    PHASE_NS = 120 * 1000000, /* of each figure */
    SIDE = 14,                /* of the convolution's images, */
    CHANNELS = 256,           /* and their channels, before and after */
    GEMM = 512,
    MAX_STREAM = 256 << 20, /* bytes of memory for all threads */
    MIN_STREAM = 32 << 20,
    DEFAULT_CACHE = 1 << 20,
};

typedef struct worker {
    double f32, bf16, int8, memory, cache;
    sx_status status;
} worker;

typedef struct measuring {
    sx_pool *pool;
    worker *workers;
    int n;
    int64_t cache_bytes, stream_bytes; /* of each thread */
} measuring;

/* A piece of work that is repeated for a while. */
typedef void work_fn(void *user);

/* The most work per second of all repetitions: what disturbs some does not count. */
static double best_rate(work_fn *work, void *user, double amount)
{
    double best = 0;
    const int64_t end = sx_now_ns() + PHASE_NS;
    work(user); /* generates code, touches memory */
    for (int64_t now = sx_now_ns(), start = now; best == 0 || now < end; start = now) {
        work(user);
        now = sx_now_ns();
        const double rate = amount * 1e9 / (double)SX_MAX(now - start, 1);
        best = rate > best ? rate : best;
    }
    return best;
}

typedef struct convolution {
    sx_dnn_conv *conv;
    sx_dnn_slot *slot;
    sx_dnn_conv_args args;
} convolution;

static void convolve(void *user)
{
    const convolution *c = user;
    sx_dnn_conv_run(c->conv, c->slot, &c->args);
}

/* A convolution is what libraries compute fastest: 3 by 3, many channels. */
static sx_status measure_convolution(bool bf16, double *out)
{
    static const sx_conv_window window = {.in = SIDE,
                                          .out = SIDE,
                                          .kernel = 3,
                                          .stride = 1,
                                          .dilation = 1,
                                          .pad_before = 1,
                                          .pad_after = 1};
    const sx_dnn_conv_spec spec = {
        .kind = SX_DNN_FORWARD,
        .geometry = {.n = 1, .h = window, .w = window, .groups = 1, .c = CHANNELS, .o = CHANNELS},
        .bf16 = bf16,
        .team = 1};
    const int64_t image = (int64_t)SIDE * SIDE * CHANNELS * (int64_t)sizeof(float);
    const int64_t filter = (int64_t)9 * CHANNELS * CHANNELS * (int64_t)sizeof(float);
    convolution c = {.conv = NULL};
    char *memory = NULL;
    SX_TRY(sx_dnn_conv_create(&spec, &c.conv));
    const int64_t packed = sx_dnn_conv_packed_bytes(c.conv);
    const int64_t scratch = sx_dnn_conv_scratch_bytes(c.conv, packed > 0);
    const size_t bytes = (size_t)(2 * image + filter + packed + scratch + 4 * SX_CPU_ALIGN);
    sx_status status = sx_dnn_slot_create(c.conv, &c.slot);
    if (status == SX_OK) {
        memory = sx_alloc_aligned(bytes, SX_CPU_ALIGN);
        status = memory == NULL ? sx_no_memory("to measure the processor") : SX_OK;
    }
    if (status == SX_OK) {
        memset(memory, 0, bytes);
        c.args =
            (sx_dnn_conv_args){.src = memory,
                               .dst = memory + image,
                               .filter = memory + 2 * image,
                               .packed = packed > 0 ? memory + 2 * image + filter : NULL,
                               .scratch = memory + sx_cpu_round_up(2 * image + filter + packed)};
        status = packed > 0 ? sx_dnn_conv_pack(c.conv, c.args.filter, c.args.packed) : SX_OK;
    }
    if (status == SX_OK) {
        *out = best_rate(convolve, &c, 2.0 * 9 * SIDE * SIDE * CHANNELS * CHANNELS);
    }
    sx_free_aligned(memory);
    sx_dnn_slot_destroy(c.slot);
    sx_dnn_conv_destroy(c.conv);
    return status;
}

typedef struct product {
    uint8_t *a;
    int8_t *b;
    int32_t *c;
} product;

static void multiply(void *user)
{
    const product *p = user;
    sx_dnn_gemm_int8(GEMM, GEMM, GEMM, p->a, p->b, p->c);
}

static sx_status measure_int8(double *out)
{
    const size_t elems = (size_t)GEMM * GEMM;
    product p = {sx_alloc(elems, 1), sx_alloc(elems, 1), sx_alloc(elems, sizeof(int32_t))};
    const bool enough = p.a != NULL && p.b != NULL && p.c != NULL;
    if (enough) {
        *out = best_rate(multiply, &p, 2.0 * GEMM * GEMM * GEMM);
    }
    sx_free(p.a);
    sx_free(p.b);
    sx_free(p.c);
    return enough ? SX_OK : sx_no_memory("to measure the processor");
}

typedef struct stream {
    float *x, *y;
    int64_t n;
} stream;

/* Two arrays are read and one of them written, as by an elementwise kernel in place. */
static void add(void *user)
{
    const stream *s = user;
    sx_cpu_vec_best()->loops[SX_VEC_add](s->y, s->x, s->y, s->n);
}

static sx_status measure_stream(int64_t bytes, double *out)
{
    const int64_t n = bytes / 2 / (int64_t)sizeof(float);
    stream s = {sx_alloc_aligned((size_t)bytes / 2, SX_CPU_ALIGN),
                sx_alloc_aligned((size_t)bytes / 2, SX_CPU_ALIGN), n};
    const bool enough = s.x != NULL && s.y != NULL;
    if (enough) {
        memset(s.x, 0, (size_t)bytes / 2);
        memset(s.y, 0, (size_t)bytes / 2);
        *out = best_rate(add, &s, 3.0 * (double)n * sizeof(float));
    }
    sx_free_aligned(s.x);
    sx_free_aligned(s.y);
    return enough ? SX_OK : sx_no_memory("to measure the processor");
}

typedef sx_status phase_fn(const measuring *m, worker *w);

static sx_status measure_f32(const measuring *m, worker *w)
{
    (void)m;
    return measure_convolution(false, &w->f32);
}
static sx_status measure_bf16(const measuring *m, worker *w)
{
    (void)m;
    return sx_dnn_has_bf16() ? measure_convolution(true, &w->bf16) : SX_OK;
}
static sx_status measure_bytes(const measuring *m, worker *w)
{
    (void)m;
    return measure_int8(&w->int8);
}
static sx_status measure_memory(const measuring *m, worker *w)
{
    return measure_stream(m->stream_bytes, &w->memory);
}
static sx_status measure_cache(const measuring *m, worker *w)
{
    return measure_stream(m->cache_bytes / 2, &w->cache);
}
static phase_fn *const phases[] = {measure_f32, measure_bf16, measure_bytes, measure_memory,
                                   measure_cache};

/* All workers are in the same phase, also those that have failed. */
static void run_worker(void *user, int i)
{
    measuring *m = user;
    worker *w = &m->workers[i];
    const int before = sx_dnn_enter(1);
    for (size_t k = 0; k < SX_COUNT(phases); k++) {
        w->status = w->status == SX_OK ? phases[k](m, w) : w->status;
        sx_pool_barrier(m->pool);
    }
    sx_dnn_leave(before);
}

static int64_t cache_size(int level, int64_t otherwise)
{
#ifdef _SC_LEVEL2_CACHE_SIZE
    const long bytes = sysconf(level == 2 ? _SC_LEVEL2_CACHE_SIZE : _SC_LEVEL3_CACHE_SIZE);
    return bytes > 0 ? bytes : otherwise;
#else
    return otherwise;
#endif
}

static sx_status measure(int threads, sx_cpu_limits *out)
{
    measuring m = {.n = threads};
    const int64_t last = cache_size(3, MIN_STREAM / 4);
    m.cache_bytes = cache_size(2, DEFAULT_CACHE);
    m.stream_bytes = SX_MIN(SX_MAX(4 * last, MIN_STREAM), MAX_STREAM) / threads;
    m.workers = sx_alloc((size_t)threads, sizeof(*m.workers));
    if (m.workers == NULL) {
        return sx_no_memory("to measure the processor");
    }
    sx_status status = sx_pool_create(threads, &m.pool);
    if (status == SX_OK) {
        sx_pool_run(m.pool, run_worker, &m);
    }
    *out = (sx_cpu_limits){.threads = threads, .cache_bytes = m.cache_bytes, .measured = true};
    for (int i = 0; i < threads; i++) {
        const worker *w = &m.workers[i];
        if (status == SX_OK) {
            status = w->status;
        } else {
            sx_status_free(w->status);
        }
        out->f32 += w->f32 / threads;
        out->bf16 += w->bf16 / threads;
        out->int8 += w->int8 / threads;
        out->cache += w->cache / threads;
        out->memory += w->memory;
    }
    sx_pool_destroy(m.pool);
    sx_free(m.workers);
    return status;
}

/* ---- Kept ---- */

enum { VERSION = 1, MAX_FILE = 1 << 16 }; /* of how it is measured */

/* What the figures depend on. */
static void describe(int threads, char *out, size_t size)
{
    char kind[160], dnn[160];
    sx_cpu_kind(kind, sizeof(kind));
    sx_dnn_numerics(dnn, sizeof(dnn));
    snprintf(out, size, "%d: %s, %d threads, kernels:%d, %s", (int)VERSION, kind, threads,
             (int)SX_CPU_KERNEL_TABLE_VERSION, dnn);
}

static sx_status file_of(const char *key, char **out_dir, char **out_path)
{
    SX_TRY(sx_user_cache("limits", out_dir));
    return sx_path_format(out_path, "%s/%016" PRIx64 ".json", *out_dir,
                          sx_hash64(key, strlen(key)));
}

static const struct figure {
    const char *name;
    size_t offset;
} figures[] = {
    {"f32_flops_per_second_and_thread", offsetof(sx_cpu_limits, f32)},
    {"bf16_flops_per_second_and_thread", offsetof(sx_cpu_limits, bf16)},
    {"int8_operations_per_second_and_thread", offsetof(sx_cpu_limits, int8)},
    {"memory_bytes_per_second", offsetof(sx_cpu_limits, memory)},
    {"cache_bytes_per_second_and_thread", offsetof(sx_cpu_limits, cache)},
};

/* False: there are none, or not for this key. */
static bool read_kept(const char *path, const char *key, sx_cpu_limits *out)
{
    char *text = NULL;
    size_t size = 0;
    sx_status status = sx_file_read(path, MAX_FILE, &text, &size);
    json_t *json = status == SX_OK ? json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL) : NULL;
    const char *of = json_string_value(json_object_get(json, "of"));
    bool ok = of != NULL && strcmp(of, key) == 0;
    for (size_t i = 0; i < SX_COUNT(figures); i++) {
        const json_t *number = json_object_get(json, figures[i].name);
        ok = ok && json_is_number(number) && json_number_value(number) >= 0;
        *(double *)(void *)((char *)out + figures[i].offset) = json_number_value(number);
    }
    ok = ok && out->f32 > 0 && out->memory > 0 && out->cache > 0;
    sx_status_free(status);
    json_decref(json);
    sx_free(text);
    return ok;
}

static sx_status write_kept(const char *dir, const char *path, const char *key,
                            const sx_cpu_limits *limits)
{
    char *text = NULL;
    json_t *json = json_pack("{s:s}", "of", key);
    for (size_t i = 0; i < SX_COUNT(figures); i++) {
        const void *at = (const char *)limits + figures[i].offset;
        json_object_set_new(json, figures[i].name, json_real(*(const double *)at));
    }
    sx_status status = sx_json_text(json, JSON_INDENT(2) | JSON_ENSURE_ASCII, &text);
    if (status == SX_OK) {
        status = sx_dir_create(dir);
    }
    if (status == SX_OK) {
        status = sx_commit_bytes(path, text, strlen(text));
    }
    json_decref(json);
    sx_free(text);
    return status;
}

sx_status sx_cpu_limits_get(int threads, bool again, sx_cpu_limits *out)
{
    char key[512], *dir = NULL, *path = NULL;
    threads = threads > 0 ? threads : sx_cpu_count();
    describe(threads, key, sizeof(key));
    sx_status status = file_of(key, &dir, &path);
    const bool has_home = status == SX_OK;
    *out = (sx_cpu_limits){.threads = threads, .cache_bytes = cache_size(2, DEFAULT_CACHE)};
    if (!has_home) {
        sx_status_free(status);
        status = SX_OK;
    }
    if (again || !has_home || !read_kept(path, key, out)) {
        status = measure(threads, out);
    }
    if (status == SX_OK && out->measured && has_home) { /* a cache that cannot be written is none */
        sx_status_free(write_kept(dir, path, key, out));
    }
    sx_free(dir);
    sx_free(path);
    return status;
}
