/* Shadows; see shadow.h. */
#include "serve/shadow.h"

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>

#include "base/budget.h"
#include "base/checked.h"
#include "base/half.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"

enum {
    MAX_WAITING = 64,
    TIMEOUT_MS = 60000, /* of a run */
    LOWEST_PRIORITY = 19,
};
static const size_t max_waiting_bytes = (size_t)256 << 20;

/* A tensor by its name in the signature. */
struct named {
    const char *name;
    sx_tensor tensor;
};

/* A copy of a request; in its own arena, which owns it. */
struct copy {
    sx_arena arena;
    sx_served *servable;
    double tolerance;
    const char *signature;
    struct named *inputs, *outputs;
    size_t input_count, output_count;
    struct copy *next;
};

struct sx_shadow {
    sx_budget memory;
    sx_cancel cancel; /* of all runs */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    pthread_t thread;
    bool started, stopped;
    struct copy *first, **last;
    int waiting;
};

static void count(const struct copy *copy, sx_shadow_result result)
{
    atomic_fetch_add_explicit(&sx_served_metrics(copy->servable)->shadowed[result], 1,
                              memory_order_relaxed);
}

static void free_copy(struct copy *copy)
{
    sx_served_release(copy->servable);
    sx_arena_deinit(&copy->arena);
    sx_free(copy);
}

/* ---- Copying ---- */

static bool copy_tensor(sx_arena *arena, const sx_tensor *from, sx_tensor *to)
{
    const size_t elems = (size_t)sx_type_elems(&from->type);
    *to = (sx_tensor){.type = from->type};
    if (from->type.dtype != SX_STRING) {
        to->data = sx_arena_memdup(arena, from->data, elems * sx_dtype_bytes(from->type.dtype));
        return to->data != NULL;
    }
    const sx_bytes *texts = from->data;
    sx_bytes *copies = sx_arena_array(arena, elems + 1, sx_bytes);
    bool copied = copies != NULL;
    for (size_t i = 0; i < elems && copied; i++) {
        copies[i].size = texts[i].size;
        copies[i].data = sx_arena_memdup(arena, texts[i].data, texts[i].size);
        copied = copies[i].data != NULL;
    }
    to->data = copies;
    return copied;
}

static bool copy_tensors(sx_arena *arena, const sx_serve_tensor *described, size_t n,
                         const sx_tensor *tensors, struct named **out)
{
    struct named *named = sx_arena_array(arena, n + 1, struct named);
    bool copied = named != NULL;
    for (size_t i = 0; i < n && copied; i++) {
        named[i].name = sx_arena_strdup(arena, described[i].name);
        copied = named[i].name != NULL && copy_tensor(arena, &tensors[i], &named[i].tensor);
    }
    *out = named;
    return copied;
}

/* ---- Running ---- */

static const sx_tensor *find(const struct named *named, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(named[i].name, name) == 0) {
            return &named[i].tensor;
        }
    }
    return NULL;
}

static double element(const sx_tensor *t, size_t i)
{
    switch (t->type.dtype) {
    case SX_F64:
        return ((const double *)t->data)[i];
    case SX_F16:
        return sx_f16_to_f32(((const uint16_t *)t->data)[i]);
    case SX_BF16:
        return sx_bf16_to_f32(((const uint16_t *)t->data)[i]);
    default:
        return ((const float *)t->data)[i];
    }
}

static bool floats_equal(const sx_tensor *a, const sx_tensor *b, size_t elems, double tolerance)
{
    double largest = 0;
    for (size_t i = 0; i < elems; i++) {
        const double x = fabs(element(a, i));
        largest = isfinite(x) && x > largest ? x : largest;
    }
    for (size_t i = 0; i < elems; i++) {
        const double x = element(a, i), y = element(b, i);
        if (!(x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= tolerance * largest)) {
            return false;
        }
    }
    return true;
}

bool sx_shadow_equal(const sx_tensor *a, const sx_tensor *b, double tolerance)
{
    if (a->type.dtype != b->type.dtype || a->type.rank != b->type.rank) {
        return false;
    }
    for (int d = 0; d < a->type.rank; d++) {
        if (a->type.dims[d] != b->type.dims[d]) {
            return false;
        }
    }
    const size_t elems = (size_t)sx_type_elems(&a->type);
    if (sx_dtype_is_float(a->type.dtype)) {
        return floats_equal(a, b, elems, tolerance);
    }
    if (a->type.dtype != SX_STRING) {
        return elems == 0 || memcmp(a->data, b->data, elems * sx_dtype_bytes(a->type.dtype)) == 0;
    }
    const sx_bytes *x = a->data, *y = b->data;
    bool equal = true;
    for (size_t i = 0; i < elems && equal; i++) {
        equal = x[i].size == y[i].size &&
                (x[i].size == 0 || memcmp(x[i].data, y[i].data, x[i].size) == 0);
    }
    return equal;
}

/* Runs a copy on its version; the outputs are in the copy's arena. */
static sx_status run(struct copy *copy, const sx_cancel *all,
                     const sx_serve_signature **out_signature, sx_tensor **out_outputs)
{
    size_t n = 0;
    const sx_serve_signature *signatures = sx_served_signatures(copy->servable, &n);
    const sx_serve_signature *signature = sx_serve_find_signature(
        signatures, n, (sx_bytes){copy->signature, strlen(copy->signature)});
    if (signature == NULL || signature->input_count != copy->input_count) {
        return sx_error(SX_FAILED_PRECONDITION, "the shadow has other inputs");
    }
    sx_tensor *inputs = sx_arena_array(&copy->arena, signature->input_count + 1, sx_tensor);
    sx_tensor *outputs = sx_arena_array(&copy->arena, signature->output_count + 1, sx_tensor);
    if (inputs == NULL || outputs == NULL) {
        return sx_no_memory("for a shadow");
    }
    for (size_t i = 0; i < signature->input_count; i++) {
        const sx_tensor *input = find(copy->inputs, copy->input_count, signature->inputs[i].name);
        if (input == NULL || input->type.dtype != signature->inputs[i].type.dtype) {
            return sx_error(SX_FAILED_PRECONDITION, "the shadow has other inputs");
        }
        inputs[i] = *input;
    }
    sx_cancel cancel;
    sx_cancel_init_ms(&cancel, TIMEOUT_MS);
    cancel.outer = all;
    *out_signature = signature;
    *out_outputs = outputs;
    return sx_served_run(copy->servable, signature, inputs, &cancel, &copy->arena, outputs);
}

static void run_and_compare(sx_shadow *shadow, struct copy *copy)
{
    const sx_serve_signature *signature = NULL;
    sx_tensor *outputs = NULL;
    sx_status status = run(copy, &shadow->cancel, &signature, &outputs);
    if (status != SX_OK) {
        count(copy, SX_SHADOW_FAILED);
        sx_status_free(status);
        return;
    }
    bool equal = signature->output_count == copy->output_count;
    for (size_t i = 0; i < signature->output_count && equal; i++) {
        const sx_tensor *answered =
            find(copy->outputs, copy->output_count, signature->outputs[i].name);
        equal = answered != NULL && sx_shadow_equal(answered, &outputs[i], copy->tolerance);
    }
    count(copy, equal ? SX_SHADOW_EQUAL : SX_SHADOW_DIFFERENT);
}

static void *run_thread(void *user)
{
    sx_shadow *shadow = user;
    setpriority(PRIO_PROCESS, 0, LOWEST_PRIORITY); /* of this thread: Linux has one for each */
    pthread_mutex_lock(&shadow->mutex);
    while (!shadow->stopped) {
        struct copy *copy = shadow->first;
        if (copy == NULL) {
            pthread_cond_wait(&shadow->changed, &shadow->mutex);
            continue;
        }
        shadow->first = copy->next;
        shadow->last = copy->next == NULL ? &shadow->first : shadow->last;
        pthread_mutex_unlock(&shadow->mutex);
        run_and_compare(shadow, copy);
        free_copy(copy);
        pthread_mutex_lock(&shadow->mutex);
        shadow->waiting--;
    }
    pthread_mutex_unlock(&shadow->mutex);
    return NULL;
}

/* ---- Interface ---- */

sx_status sx_shadow_create(sx_shadow **out_shadow)
{
    sx_shadow *shadow = sx_alloc(1, sizeof(*shadow));
    if (shadow == NULL) {
        return sx_no_memory("for shadows");
    }
    sx_budget_init(&shadow->memory, "all shadows together", max_waiting_bytes, NULL);
    sx_cancel_init(&shadow->cancel, INT64_MAX);
    pthread_mutex_init(&shadow->mutex, NULL);
    pthread_cond_init(&shadow->changed, NULL);
    shadow->last = &shadow->first;
    *out_shadow = shadow;
    return SX_OK;
}

/* Takes a place among those that wait, for a thread that is started for the first one. */
static bool take_place(sx_shadow *shadow)
{
    pthread_mutex_lock(&shadow->mutex);
    if (!shadow->started && !shadow->stopped) {
        const int error = sx_thread_create(&shadow->thread, NULL, run_thread, shadow);
        if (error != 0) {
            sx_log(SX_LOG_WARN, "starting the thread of shadows: %s", strerror(error));
        }
        shadow->started = error == 0;
    }
    const bool taken = shadow->started && !shadow->stopped && shadow->waiting < MAX_WAITING;
    shadow->waiting += taken;
    pthread_mutex_unlock(&shadow->mutex);
    return taken;
}

/* Queues the copy, which has a place; NULL: gives the place back. */
static void use_place(sx_shadow *shadow, struct copy *copy)
{
    pthread_mutex_lock(&shadow->mutex);
    if (copy != NULL) {
        *shadow->last = copy;
        shadow->last = &copy->next;
        pthread_cond_signal(&shadow->changed);
    } else {
        shadow->waiting--;
    }
    pthread_mutex_unlock(&shadow->mutex);
}

void sx_shadow_run(sx_shadow *shadow, sx_served *servable, double tolerance,
                   const sx_serve_signature *signature, const sx_tensor *inputs,
                   const sx_tensor *outputs)
{
    struct copy *copy = sx_alloc(1, sizeof(*copy));
    if (copy == NULL) {
        sx_served_release(servable);
        return;
    }
    *copy = (struct copy){.servable = servable,
                          .tolerance = tolerance,
                          .input_count = signature->input_count,
                          .output_count = signature->output_count};
    sx_arena_init(&copy->arena, 0);
    copy->arena.budget = &shadow->memory;
    const bool placed = take_place(shadow);
    copy->signature = sx_arena_strdup(&copy->arena, signature->name);
    const bool copied =
        placed && copy->signature != NULL &&
        copy_tensors(&copy->arena, signature->inputs, copy->input_count, inputs, &copy->inputs) &&
        copy_tensors(&copy->arena, signature->outputs, copy->output_count, outputs, &copy->outputs);
    if (placed) {
        use_place(shadow, copied ? copy : NULL);
    }
    if (!copied) {
        count(copy, SX_SHADOW_DROPPED);
        free_copy(copy);
    }
}

void sx_shadow_stop(sx_shadow *shadow)
{
    if (shadow == NULL) {
        return;
    }
    pthread_mutex_lock(&shadow->mutex);
    const bool joins = shadow->started && !shadow->stopped;
    shadow->stopped = true;
    sx_cancel_request(&shadow->cancel);
    pthread_cond_signal(&shadow->changed);
    pthread_mutex_unlock(&shadow->mutex);
    if (joins) {
        pthread_join(shadow->thread, NULL);
    }
    for (struct copy *copy = shadow->first, *next; copy != NULL; copy = next) {
        next = copy->next;
        count(copy, SX_SHADOW_DROPPED);
        free_copy(copy);
    }
    shadow->first = NULL;
    shadow->last = &shadow->first;
}

void sx_shadow_destroy(sx_shadow *shadow)
{
    if (shadow != NULL) {
        sx_shadow_stop(shadow);
        pthread_cond_destroy(&shadow->changed);
        pthread_mutex_destroy(&shadow->mutex);
        sx_free(shadow);
    }
}
