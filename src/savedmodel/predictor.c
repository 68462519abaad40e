#include "savedmodel/predictor.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include <sextant/complex.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/pool.h"
#include "base/ram.h"
#include "base/thread.h"
#include "distribute/device_spec.h"
#include "distribute/strategy.h"
#include "runtime/function_run.h"
#include "runtime/pieces.h"
#include "savedmodel/import_library.h"
#include "savedmodel/int8_report.h"
#include "savedmodel/load_tables.h"

/* A signature, ready to run. */
typedef struct ready {
    sx_pieces *pieces; /* of inputs that have the same number of rows; NULL: it runs whole, if it
                          can be run */
    bool may_differ;   /* several inputs have a number of rows that is not known */
    char *why;         /* why it cannot be run; NULL: it can */
    sx_code code;      /* with `why` */
} ready;

/* Where the value of a variable is. */
typedef struct stored {
    sx_buffer_source source;
    sx_predictor *p;
    int variable;
    atomic_bool was_read;
} stored;

struct sx_predictor {
    sx_strategy *strategy; /* the device */
    sx_saved_model *model;
    sx_image_limits limits;
    sx_session *session; /* has the variables */
    sx_library *library; /* a function for each signature that can be imported */
    sx_tables *tables;   /* of the library */
    sx_runner *runner;   /* NULL: all signatures run in pieces, whatever their inputs are */
    ready *ready;        /* [n], as the model's signatures */
    size_t n;
    stored *stored;           /* [variables] that the device reads when it needs them; NULL: none */
    const sx_cancel *loading; /* of the load; NULL after it */
    sx_budget memory;
};

/* ---- Loading ---- */

/* Whether the number of an input's rows is unknown. */
static bool has_rows(const sx_signature_tensor *t)
{
    return !t->unknown_rank && t->type.rank > 0 && t->type.dims[0] == SX_BATCH;
}

/* Keeps why the signature cannot be run. */
static sx_status refuse(ready *r, sx_status why)
{
    r->code = sx_status_code(why);
    r->why = sx_strdup(sx_status_message(why));
    sx_status_free(why);
    return r->why == NULL ? sx_no_memory("for a predictor") : SX_OK;
}

static sx_status make_pieces(sx_predictor *p, const char *key, const sx_predictor_options *options,
                             ready *r)
{
    const sx_function *function = sx_library_find(p->library, key);
    if (function == NULL) {
        return sx_error(SX_INTERNAL, "signature \"%s\" is no function of the library", key);
    }
    sx_status status = sx_pieces_create(p->session, p->library, function, &p->memory, &p->limits,
                                        p->tables, &r->pieces);
    if (r->pieces != NULL && options->batch_sizes != NULL) {
        sx_pieces_set_sizes(r->pieces, options->batch_sizes, options->batch_size_count);
    }
    const bool refused =
        sx_status_code(status) == SX_INVALID_ARGUMENT; /* whatever the arguments are */
    status = sx_status_annotate(status, __FILE__, __LINE__, "signature \"%s\"", key);
    return refused ? refuse(r, status) : status;
}

/* Compiles the signatures that run in pieces for one example. */
static sx_status compile_all(sx_predictor *p, int64_t rows, const sx_cancel *cancel)
{
    const sx_signature *signatures = sx_saved_model_signatures(p->model, &p->n);
    for (size_t i = 0; i < p->n; i++) {
        ready *r = &p->ready[i];
        SX_TRY(sx_cancel_check(cancel));
        sx_status status =
            r->pieces != NULL && r->why == NULL ? sx_pieces_compile(r->pieces, rows) : SX_OK;
        const bool refused = sx_status_code(status) == SX_RESOURCE_EXHAUSTED;
        status =
            sx_status_annotate(status, __FILE__, __LINE__, "signature \"%s\"", signatures[i].key);
        SX_TRY(refused ? refuse(r, status) : status);
    }
    return SX_OK;
}

static sx_status prepare_all(sx_predictor *p, const sx_cancel *cancel)
{
    for (size_t i = 0; i < p->n; i++) {
        SX_TRY(sx_cancel_check(cancel));
        if (p->ready[i].pieces != NULL && p->ready[i].why == NULL) {
            SX_TRY(sx_pieces_prepare(p->ready[i].pieces));
        }
    }
    return SX_OK;
}

/* ---- Variables ---- */

enum { MAX_READERS = 4 };

static sx_status read_stored(void *user, void *data)
{
    stored *at = user;
    const sx_session_variable *v = sx_session_variable_at(at->p->session, at->variable);
    SX_TRY(sx_cancel_check(at->p->loading));
    SX_TRY(sx_bundle_read(sx_saved_model_variables(at->p->model), v->name, &v->type, data));
    atomic_store(&at->was_read, true);
    return SX_OK;
}

/* Lets the device read variables that stay as they are: of those that it packs, it needs no copy.
 */
static sx_status leave_stored(sx_predictor *p)
{
    const int n = sx_session_variable_count(p->session);
    p->stored = sx_alloc((size_t)n + 1, sizeof(*p->stored));
    if (p->stored == NULL) {
        return sx_no_memory("for a predictor");
    }
    for (int i = 0; i < n; i++) {
        stored *at = &p->stored[i];
        at->p = p;
        at->variable = i;
        at->source = (sx_buffer_source){read_stored, at};
        if (!sx_device_buffer_set_source(sx_session_variable_buffer(p->session, i), &at->source)) {
            sx_free(p->stored);
            p->stored = NULL;
            return SX_OK;
        }
    }
    return SX_OK;
}

/* Threads that read variables, each taking the next one, while the caller compiles. */
typedef struct reading {
    sx_predictor *p;
    const sx_cancel *cancel;
    atomic_int next;
    _Atomic(sx_status) fault; /* the first */
    pthread_t threads[MAX_READERS];
    int n_threads;
} reading;

static bool was_read(const sx_predictor *p, int variable)
{
    return p->stored != NULL && atomic_load(&p->stored[variable].was_read);
}

/* Straight into the device's memory where that is the host's. */
static sx_status read_variable(sx_predictor *p, int i)
{
    if (was_read(p, i)) {
        return SX_OK;
    }
    const sx_session_variable *v = sx_session_variable_at(p->session, i);
    const sx_bundle *bundle = sx_saved_model_variables(p->model);
    void *data = sx_device_buffer_data(sx_session_variable_buffer(p->session, i));
    if (data != NULL) {
        return sx_bundle_read(bundle, v->name, &v->type, data);
    }
    /* There is room for it in the budget: adding the largest variable charged it. */
    data = sx_alloc((size_t)sx_type_bytes(&v->type) + 1, 1);
    sx_status status = data == NULL ? sx_no_memory("for a predictor")
                                    : sx_bundle_read(bundle, v->name, &v->type, data);
    if (status == SX_OK) {
        status = sx_session_write_variable(p->session, i, data);
    }
    sx_free(data);
    return status;
}

static void *read_some(void *user)
{
    reading *r = user;
    const int n = sx_session_variable_count(r->p->session);
    for (int i; atomic_load(&r->fault) == SX_OK && (i = atomic_fetch_add(&r->next, 1)) < n;) {
        sx_status none = SX_OK, status = sx_cancel_check(r->cancel);
        status = status == SX_OK ? read_variable(r->p, i) : status;
        if (status != SX_OK && !atomic_compare_exchange_strong(&r->fault, &none, status)) {
            sx_status_free(status);
        }
    }
    return NULL;
}

/* Only where variables lie in the host's memory: a device may be compiling. A thread that cannot be
 * started is no error, finish_reading() reads the rest. */
static void start_reading(reading *r, int threads)
{
    const sx_predictor *p = r->p;
    const int most = SX_MIN(threads > 0 ? threads : sx_cpu_count(), (int)MAX_READERS);
    int n = 0;
    for (int i = 0; i < sx_session_variable_count(p->session); i++) {
        n += !was_read(p, i);
    }
    if (n == 0 || (p->stored == NULL &&
                   sx_device_buffer_data(sx_session_variable_buffer(p->session, 0)) == NULL)) {
        return;
    }
    while (r->n_threads < SX_MIN(most - 1, n) &&
           sx_thread_create(&r->threads[r->n_threads], NULL, read_some, r) == 0) {
        r->n_threads++;
    }
}

static sx_status finish_reading(reading *r)
{
    (void)read_some(r);
    for (int i = 0; i < r->n_threads; i++) {
        pthread_join(r->threads[i], NULL);
    }
    return atomic_exchange(&r->fault, SX_OK);
}

/* If no signature can be run, why: the reason of the default signature, else of the last one. */
static sx_status check_any(const sx_predictor *p)
{
    size_t n, which = 0;
    const sx_signature *signatures = sx_saved_model_signatures(p->model, &n);
    if (n == 0) {
        return sx_error(SX_FAILED_PRECONDITION, "%s has no signatures",
                        sx_saved_model_dir(p->model));
    }
    for (size_t i = 0; i < n; i++) {
        if (p->ready[i].why == NULL) {
            return SX_OK;
        }
        which = i;
    }
    for (size_t i = 0; i < n; i++) {
        which = strcmp(signatures[i].key, SX_SERVING_DEFAULT) == 0 ? i : which;
    }
    return sx_error(p->ready[which].code, "%s", p->ready[which].why);
}

/* Whether some runs of the signature are not in pieces. */
static bool may_run_whole(const ready *r)
{
    return r->pieces == NULL || r->may_differ || sx_pieces_excluded(r->pieces) > 0;
}

static sx_status import_all(sx_predictor *p, const sx_predictor_options *options)
{
    const sx_signature *signatures = sx_saved_model_signatures(p->model, &p->n);
    const bool placed = strcmp(sx_strategy_name(p->strategy), "placed") == 0;
    bool whole = false;
    p->ready = sx_alloc(p->n + 1, sizeof(*p->ready));
    sx_status *refused = sx_alloc(p->n + 1, sizeof(*refused));
    sx_status status = p->ready == NULL || refused == NULL
                           ? sx_no_memory("for a predictor")
                           : sx_import_library(p->model,
                                               &(sx_import_limits){.devices = placed,
                                                                   .memory = &p->memory,
                                                                   .cancel = options->cancel},
                                               &p->library, refused);
    bool writes = false;
    for (int i = 0; status == SX_OK && i < p->library->n_functions; i++) {
        writes = writes || p->library->functions[i].writes;
    }
    if (!writes) {
        sx_session_freeze(p->session);
    }
    status = status == SX_OK ? sx_tables_declare(p->tables, p->library) : status;
    for (size_t i = 0; i < p->n && status == SX_OK; i++) {
        if (i == 0 && sx_tables_count(p->tables) == 0) { /* tables are still to be filled by them */
            sx_saved_model_drop_constants(p->model);     /* the library has its own */
        }
        sx_status why = sx_status_annotate(refused[i], __FILE__, __LINE__, "%s, signature \"%s\"",
                                           sx_saved_model_dir(p->model), signatures[i].key);
        refused[i] = SX_OK;
        if (why == SX_OK) {
            status = make_pieces(p, signatures[i].key, options, &p->ready[i]);
        } else if (sx_status_code(why) == SX_UNIMPLEMENTED) {
            status = refuse(&p->ready[i], why);
        } else {
            status = why;
        }
        size_t n_sizes = 0;
        for (size_t k = 0; k < signatures[i].n_inputs; k++) {
            n_sizes += has_rows(&signatures[i].inputs[k]);
        }
        p->ready[i].may_differ = n_sizes > 1;
        whole = whole || (p->ready[i].why == NULL && may_run_whole(&p->ready[i]));
    }
    for (size_t i = 0; i < p->n && refused != NULL; i++) {
        sx_status_free(refused[i]);
    }
    sx_free(refused);
    SX_TRY(status);
    SX_TRY(check_any(p));
    return whole ? sx_start_runner(p->session, p->library, &p->memory, &p->limits, p->tables,
                                   &p->runner)
                 : SX_OK;
}

static sx_status set_memory_limit(sx_predictor *p, int64_t limit_bytes)
{
    if (limit_bytes == 0) {
        sx_memory_stats stats;
        SX_TRY(sx_device_get_memory_stats(sx_session_device(p->session), &stats));
        limit_bytes = (stats.limit_bytes > 0 ? stats.limit_bytes : sx_ram_bytes()) / 4;
    }
    p->memory.limit_bytes = limit_bytes > 0 ? (size_t)limit_bytes : 0;
    return SX_OK;
}

size_t sx_predictor_memory_limit(const sx_predictor *p)
{
    return p->memory.limit_bytes;
}

size_t sx_predictor_memory_used(const sx_predictor *p)
{
    return sx_budget_used(&p->memory);
}

/* Opens the device, or those among which pieces of batches are divided. */
static sx_status open_device(sx_predictor *p, const sx_predictor_options *options)
{
    sx_session_options session = {.platform = {.cpu = {.threads = options->threads,
                                                       .profile = options->profile,
                                                       .integers = options->int8 != NULL,
                                                       .bfloat16 = options->bfloat16},
                                               .timeline = options->timeline},
                                  .memory = &p->memory};
    const sx_strategy_args *on = &options->on;
    const sx_strategy_wish wish = {.args = *on, .one_core = true};
    if (options->strategy == NULL) {
        SX_TRY(sx_strategy_create(&wish, &p->strategy));
    } else if (on->device != NULL || on->devices != NULL || on->replicas != 0 ||
               on->virtual_devices != 0 || on->pjrt_plugin != NULL) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "strategy cannot be combined with device, devices, replicas, "
                        "virtual_devices or pjrt_plugin");
    } else {
        p->strategy = sx_strategy_retain(options->strategy);
    }
    SX_TRY(sx_strategy_apply_apart(p->strategy, &session));
    return sx_session_create(&session, &p->session);
}

/* Compiles, and reads the variables meanwhile; or, if the device reads those that it needs when it
 * prepares its programs, the others after that. What is compiled later reads them itself. */
static sx_status make_ready(sx_predictor *p, const sx_predictor_options *options)
{
    reading r = {.p = p, .cancel = options->cancel};
    if (sx_session_is_frozen(p->session)) {
        SX_TRY(leave_stored(p));
    }
    if (p->stored != NULL && !options->compile_at_load) {
        return check_any(p);
    }
    if (p->stored == NULL) {
        start_reading(&r, options->threads);
    }
    sx_status status =
        options->compile_at_load ? compile_all(p, options->compile_rows, options->cancel) : SX_OK;
    status = status == SX_OK ? check_any(p) : status;
    if (status == SX_OK && p->stored != NULL) {
        status = prepare_all(p, options->cancel);
        start_reading(&r, options->threads);
    }
    if (status != SX_OK) {
        atomic_store(&r.next, sx_session_variable_count(p->session));
    }
    const sx_status read = finish_reading(&r);
    if (status != SX_OK) {
        sx_status_free(read);
        return status;
    }
    SX_TRY(read);
    return options->compile_at_load && p->stored == NULL ? prepare_all(p, options->cancel) : SX_OK;
}

static sx_status quantize(sx_predictor *p, const sx_predictor_options *options);

/* Whether programs of the model multiply by a matrix of some size. */
static bool has_products(const sx_saved_model *m)
{
    enum { SMALL = 2048 }; /* elements: the device has something simpler for them */
    static const char *const ops[] = {"MatMul", "BatchMatMulV2", "BatchMatMulV3", "Einsum"};
    const sx_bundle *b = sx_saved_model_variables(m);
    bool product = false, large = false;
    for (size_t i = 0; i < SX_COUNT(ops); i++) {
        product = product || sx_saved_model_find_op(m, ops[i]) != NULL;
    }
    for (size_t i = 0; b != NULL && i < sx_bundle_count(b) && product && !large; i++) {
        const sx_type *type = &sx_bundle_at(b, i)->type;
        large = type->dtype != SX_DTYPE_NONE && type->rank >= 2 && sx_type_elems(type) > SMALL;
    }
    return product && large;
}

static void *prepare_products(void *platform)
{
    sx_platform_prepare_products(platform);
    return NULL;
}

sx_status sx_predictor_load(const char *dir, const sx_predictor_options *options,
                            sx_predictor **out_predictor)
{
    const sx_predictor_options defaults = {0};
    options = options != NULL ? options : &defaults;
    sx_predictor *p = sx_alloc(1, sizeof(*p));
    if (p == NULL) {
        return sx_no_memory("for a predictor");
    }
    p->limits = options->limits != NULL ? sx_image_limits_resolve(options->limits)
                                        : sx_image_limits_untrusted;
    sx_budget_init(&p->memory,
                   options->memory_limit_of != NULL ? options->memory_limit_of : "the model", 0,
                   NULL);
    sx_status status = open_device(p, options);
    status = status == SX_OK ? set_memory_limit(p, options->memory_limit_bytes) : status;
    status = status == SX_OK ? sx_saved_model_open_within(dir, options->tags, &p->memory, &p->model)
                             : status;
    /* A thread that cannot be started is no error: compiling does it. */
    pthread_t products;
    const int threads = options->threads > 0 ? options->threads : sx_cpu_count();
    const bool started = status == SX_OK && options->compile_at_load && threads > 1 &&
                         has_products(p->model) &&
                         sx_thread_create(&products, NULL, prepare_products,
                                          sx_session_device(p->session)->platform) == 0;
    status = status == SX_OK ? sx_tables_create(&p->memory, dir, &p->tables) : status;
    if (status == SX_OK) {
        sx_session_draw_variables(p->session, false);
        status = import_all(p, options);
    }
    if (status == SX_OK) {
        p->loading = options->cancel;
        status = make_ready(p, options);
        p->loading = NULL;
    }
    if (status == SX_OK) {
        sx_session_draw_variables(p->session, true);
        status = sx_load_tables(p->model, p->library, p->session, &p->memory, &p->limits,
                                options->cancel, p->tables);
        sx_saved_model_drop_constants(p->model);
    }
    if (status == SX_OK && options->int8 != NULL) {
        status = sx_status_annotate(quantize(p, options), __FILE__, __LINE__, "in int8");
    }
    if (started) {
        pthread_join(products, NULL);
    }
    if (status != SX_OK) {
        sx_predictor_unload(p);
        const bool told = strstr(sx_status_message(status), dir) != NULL;
        return told ? status : sx_status_annotate(status, __FILE__, __LINE__, "loading %s", dir);
    }
    *out_predictor = p;
    return SX_OK;
}

void sx_predictor_unload(sx_predictor *p)
{
    if (p == NULL) {
        return;
    }
    sx_runner_destroy(p->runner);
    /* Its programs' graphs are those of the pieces. */
    const bool closed = sx_session_destroy(p->session);
    sx_free(p->stored);
    sx_strategy_release(p->strategy);
    for (size_t i = 0; p->ready != NULL && i < p->n; i++) {
        sx_pieces_destroy(p->ready[i].pieces);
        sx_free(p->ready[i].why);
    }
    sx_free(p->ready);
    sx_tables_destroy(p->tables);
    sx_library_destroy(p->library);
    sx_saved_model_close(p->model);
    if (closed) { /* else the budget in *p is still in use */
        sx_free(p);
    }
}

const sx_saved_model *sx_predictor_model(const sx_predictor *p)
{
    return p->model;
}

bool sx_predictor_may_take_long(const sx_predictor *p, const sx_signature *signature)
{
    size_t n;
    const ready *r = &p->ready[signature - sx_saved_model_signatures(p->model, &n)];
    return r->why == NULL &&
           (r->pieces == NULL || r->may_differ || sx_pieces_may_take_long(r->pieces));
}

const int64_t *sx_predictor_batch_sizes(const sx_predictor *p, const sx_signature *signature,
                                        int *out_count)
{
    size_t n;
    const ready *r = &p->ready[signature - sx_saved_model_signatures(p->model, &n)];
    bool may = r->why == NULL && r->pieces != NULL && sx_pieces_may_merge(r->pieces);
    for (size_t i = 0; i < signature->n_inputs; i++) {
        may = may && has_rows(&signature->inputs[i]);
    }
    *out_count = 0;
    return may ? sx_pieces_sizes(r->pieces, out_count) : NULL;
}

bool sx_predictor_runs_one_by_itself(const sx_predictor *p, const sx_signature *signature)
{
    size_t n;
    const ready *r = &p->ready[signature - sx_saved_model_signatures(p->model, &n)];
    return r->pieces != NULL && sx_pieces_excluded(r->pieces) == 1;
}

bool sx_predictor_is_wide(const sx_predictor *p, const sx_signature *signature, int64_t rows)
{
    size_t n;
    const ready *r = &p->ready[signature - sx_saved_model_signatures(p->model, &n)];
    return r->why == NULL && r->pieces != NULL && sx_pieces_is_wide(r->pieces, rows);
}

/* ---- One run ---- */

static sx_status check_input(const sx_signature_tensor *want, const sx_tensor *got)
{
    bool fits = got->type.dtype == want->type.dtype &&
                (want->unknown_rank || got->type.rank == want->type.rank);
    for (int d = 0; fits && d < got->type.rank && !want->unknown_rank; d++) {
        const int64_t size = got->type.dims[d], expected = want->type.dims[d];
        fits = size >= 0 && (expected < 0 || size == expected);
    }
    if (!fits) {
        char a[SX_TYPE_TEXT], b[SX_TYPE_TEXT];
        return sx_error(SX_INVALID_ARGUMENT, "input \"%s\" is %s, expected %s", want->key,
                        sx_type_format(&got->type, a, sizeof(a)),
                        sx_type_format(&want->type, b, sizeof(b)));
    }
    return SX_OK;
}

/* A complex tensor as the library has it, [..., 2]: the same bytes. */
static void as_parts(sx_tensor *t)
{
    if (sx_dtype_is_complex(t->type.dtype)) {
        t->type.dtype = t->type.dtype == SX_C64 ? SX_F32 : SX_F64;
        t->type.dims[t->type.rank++] = 2;
    }
}

static void as_complex(sx_tensor *t, sx_dtype dtype)
{
    if (sx_dtype_is_complex(dtype)) {
        t->type.dtype = dtype;
        t->type.dims[--t->type.rank] = 0;
    }
}

/* The inputs as the library has them. *out_batch: their rows, -1 if none has rows; *out_differs:
 * not all have as many. */
static sx_status take_inputs(const sx_signature *signature, const sx_tensor *inputs,
                             sx_arena *arena, sx_tensor **out, int64_t *out_batch,
                             bool *out_differs)
{
    int64_t batch = -1;
    bool differs = false;
    sx_tensor *real = sx_arena_array(arena, signature->n_inputs + 1, sx_tensor);
    if (real == NULL) {
        return sx_no_memory("for the inputs");
    }
    for (size_t i = 0; i < signature->n_inputs; i++) {
        SX_TRY(check_input(&signature->inputs[i], &inputs[i]));
        if (has_rows(&signature->inputs[i])) {
            differs = differs || (batch >= 0 && inputs[i].type.dims[0] != batch);
            batch = inputs[i].type.dims[0];
        }
        real[i] = inputs[i];
        as_parts(&real[i]);
    }
    *out = real;
    *out_batch = batch;
    *out_differs = differs;
    return SX_OK;
}

sx_status sx_predictor_run(sx_predictor *p, const sx_signature *signature, const sx_tensor *inputs,
                           const sx_cancel *cancel, sx_arena *arena, sx_tensor *outputs)
{
    size_t n;
    const sx_signature *first = sx_saved_model_signatures(p->model, &n);
    if (signature < first || signature >= first + n) {
        return sx_error(SX_INVALID_ARGUMENT, "the signature does not belong to this model");
    }
    const ready *r = &p->ready[signature - first];
    if (r->why != NULL) {
        return sx_error(r->code, "%s", r->why);
    }
    int64_t batch;
    bool differs;
    sx_tensor *real;
    SX_TRY(take_inputs(signature, inputs, arena, &real, &batch, &differs));
    SX_TRY(r->pieces != NULL && !differs && (batch <= 0 || batch != sx_pieces_excluded(r->pieces))
               ? sx_pieces_run(r->pieces, real, batch < 0 ? 1 : batch, cancel, arena, outputs)
               : sx_runner_run(p->runner, signature->key, real, (int)signature->n_inputs, outputs,
                               (int)signature->n_outputs, arena, cancel));
    for (size_t i = 0; i < signature->n_outputs; i++) {
        as_complex(&outputs[i], signature->outputs[i].type.dtype);
    }
    return SX_OK;
}

/* ---- 8-bit integers ---- */

static sx_status quantize_signature(sx_predictor *p, const sx_signature *signature,
                                    const sx_predictor_options *options, sx_arena *arena)
{
    size_t n;
    const sx_int8_calibration *c = options->int8;
    ready *r = &p->ready[signature - sx_saved_model_signatures(p->model, &n)];
    int64_t batch;
    bool differs;
    sx_tensor *real, *before = sx_arena_array(arena, signature->n_outputs + 1, sx_tensor),
                     *after = sx_arena_array(arena, signature->n_outputs + 1, sx_tensor);
    sx_pieces_quantized quantized;
    if (before == NULL || after == NULL) {
        return sx_no_memory("for a calibration");
    }
    if (r->why != NULL) {
        return sx_error(r->code, "%s", r->why);
    }
    if (r->pieces == NULL) {
        return sx_error(SX_FAILED_PRECONDITION,
                        "the signature does not compute each example by itself");
    }
    SX_TRY(take_inputs(signature, c->inputs, arena, &real, &batch, &differs), "the calibration");
    if (batch <= 0 || differs) {
        return sx_error(SX_INVALID_ARGUMENT,
                        differs ? "the calibration: inputs have different numbers of examples"
                                : "the calibration has no examples");
    }
    SX_TRY(sx_pieces_quantize(r->pieces, real, batch, options->cancel, arena, before, &quantized));
    for (size_t i = 0; i < n; i++) { /* another that decodes nothing, or has another name */
        if (p->ready[i].pieces != NULL && p->ready[i].why == NULL) {
            SX_TRY(sx_pieces_quantize_like(p->ready[i].pieces, r->pieces));
        }
    }
    SX_TRY(sx_pieces_run(r->pieces, real, batch, options->cancel, arena, after));
    if (c->on_report != NULL) {
        sx_int8_report report = {.signature = signature->key,
                                 .products = quantized.products,
                                 .skipped = quantized.skipped,
                                 .examples = batch};
        sx_int8_compare(signature, before, after, c->labels, &report);
        c->on_report(c->user, &report);
    }
    return SX_OK;
}

static sx_status quantize(sx_predictor *p, const sx_predictor_options *options)
{
    const char *name = options->int8->signature;
    const sx_signature *signature;
    sx_arena arena;
    SX_TRY(sx_saved_model_find_signature(p->model, name != NULL ? name : SX_SERVING_DEFAULT,
                                         &signature));
    sx_arena_init(&arena, 0);
    sx_status status = quantize_signature(p, signature, options, &arena);
    sx_arena_deinit(&arena);
    return sx_status_annotate(status, __FILE__, __LINE__, "signature \"%s\"", signature->key);
}
