#include "savedmodel/predictor.h"

#include <stdatomic.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/ram.h"
#include "image/format.h"
#include "runtime/function_run.h"
#include "runtime/session.h"
#include "savedmodel/import_library.h"

enum { MAX_PIECE = 64 };                         /* rows of one execution */
static const int64_t max_piece_bytes = 64 << 20; /* of its inputs, unless one row has more */

/* A signature as a program, or as a function of the library. */
struct ready {
    bool function;
    sx_import *import; /* NULL: a function, or it could not be imported */
    char *why;         /* why it cannot be run; NULL: it can */
    sx_code code;      /* with `why` */
    sx_program *program;
    atomic_llong max_piece; /* a power of two */
    atomic_llong fitting;   /* sum of the pieces that are known to fit in memory */
};

struct sx_predictor {
    sx_saved_model *model;
    sx_image_limits limits;
    sx_session *session;
    struct ready *ready; /* [n], as the model's signatures */
    size_t n;
    /* Signatures that are no program of one batch size: NULL if there are none. */
    sx_library *library;
    sx_runner *runner;
    sx_budget memory;
};

/* ---- Loading ---- */

static sx_status load_variables(sx_predictor *p)
{
    for (int i = 0; i < sx_session_variable_count(p->session); i++) {
        const sx_session_variable *v = sx_session_variable_at(p->session, i);
        int64_t bytes = sx_type_bytes(&v->type);
        /* There is room in the budget: adding the variable charged it. */
        void *data = bytes < 0 ? NULL : sx_alloc((size_t)bytes + 1, 1);
        if (data == NULL) {
            return sx_no_memory("for a predictor");
        }
        sx_status status =
            sx_bundle_read(sx_saved_model_variables(p->model), v->name, &v->type, data);
        if (status == SX_OK) {
            status = sx_session_write_variable(p->session, i, data);
        }
        sx_free(data);
        SX_TRY(status);
    }
    return SX_OK;
}

/* The maximum rows of one execution. Depends only on the model and the memory limit: the number of
 * rows executed together may change a result's last bits, but the load of the server must not. */
static int64_t max_piece_of(const sx_program *program)
{
    int64_t row_bytes = 0, piece = MAX_PIECE;
    for (int i = 0; i < sx_program_input_count(program); i++) {
        const sx_type *type = sx_program_input_type(program, i);
        sx_type one = sx_type_with_batch(*type, 1);
        row_bytes += sx_type_has_batch(type) ? sx_type_bytes(&one) : 0;
    }
    while (piece > 1 && row_bytes > max_piece_bytes / piece) {
        piece /= 2;
    }
    return piece;
}

static sx_status import_one(sx_predictor *p, const char *key, bool compile, struct ready *r)
{
    sx_status status =
        strcmp(key, SX_INIT_SIGNATURE) == 0
            ? sx_error(SX_UNIMPLEMENTED, "%s initializes the model; it cannot be run", key)
            : sx_import_signature(p->model, key, &p->memory, &r->import);
    if (status != SX_OK && sx_status_code(status) != SX_UNIMPLEMENTED) {
        return status;
    }
    if (status == SX_OK) {
        SX_TRY(sx_session_add_program(p->session, r->import->graph, &r->program));
        atomic_store(&r->max_piece, max_piece_of(r->program));
    }
    if (status == SX_OK && compile) {
        sx_slot *slot = NULL;
        status = sx_program_acquire(r->program, 1, SX_NO_DEADLINE, &slot);
        if (status == SX_OK) {
            sx_slot_release(slot);
        }
        if (status != SX_OK && sx_status_code(status) != SX_RESOURCE_EXHAUSTED) {
            return status;
        }
    }
    if (status != SX_OK) {
        r->code = sx_status_code(status);
        r->why = sx_strdup(sx_status_message(status));
        sx_status_free(status);
        return r->why == NULL ? sx_no_memory("for a predictor") : SX_OK;
    }
    return SX_OK;
}

/* The variables of the library's functions, on the device. */
static sx_status start_runner(sx_predictor *p)
{
    const sx_library *library = p->library;
    size_t bytes = 0;
    for (int i = 0; i < library->n_variables; i++) {
        bytes += (size_t)sx_type_bytes(&library->variables[i].type);
    }
    if (!sx_budget_charge(&p->memory, bytes)) {
        return sx_budget_over(&p->memory, "the variables", bytes);
    }
    const sx_runner_options options = {.library = library,
                                       .platform = sx_session_device(p->session)->platform,
                                       .memory = &p->memory};
    SX_TRY(sx_runner_create(&options, &p->runner));
    for (int i = 0; i < library->n_variables; i++) {
        const sx_variable_spec *v = &library->variables[i];
        void *data = sx_alloc((size_t)sx_type_bytes(&v->type) + 1, 1);
        sx_status status = data == NULL ? sx_no_memory("for a predictor")
                                        : sx_bundle_read(sx_saved_model_variables(p->model),
                                                         v->name, &v->type, data);
        if (status == SX_OK) {
            status = sx_runner_write_variable(p->runner, v->name, data);
        }
        sx_free(data);
        SX_TRY(status);
    }
    return SX_OK;
}

/* Imports, as functions, the signatures that are no program of one batch size: with strings, loops,
 * shapes that are not known beforehand. */
static sx_status import_functions(sx_predictor *p)
{
    size_t n_functions = 0;
    sx_status *refused = sx_alloc(p->n + 1, sizeof(*refused));
    if (refused == NULL) {
        return sx_no_memory("for a predictor");
    }
    sx_status status = sx_import_library(p->model, NULL, &p->library, refused);
    for (size_t i = 0; i < p->n && status == SX_OK; i++) {
        struct ready *r = &p->ready[i];
        if (refused[i] == SX_OK && r->why != NULL && r->code == SX_UNIMPLEMENTED) {
            sx_free(r->why);
            r->why = NULL;
            r->function = true;
            n_functions++;
        }
        sx_status_free(refused[i]);
    }
    sx_free(refused);
    SX_TRY(status);
    if (n_functions == 0) {
        sx_library_destroy(p->library);
        p->library = NULL;
        return SX_OK;
    }
    return start_runner(p);
}

/* Why no signature can be run: the reason of the default signature, else of the last one. */
static sx_status why_not(const sx_predictor *p, const sx_signature *signatures)
{
    size_t which = p->n - 1;
    for (size_t i = 0; i < p->n; i++) {
        which = strcmp(signatures[i].key, SX_SERVING_DEFAULT) == 0 ? i : which;
    }
    return sx_error(p->ready[which].code, "%s", p->ready[which].why);
}

static sx_status import_all(sx_predictor *p, bool compile)
{
    size_t done = 0;
    const sx_signature *signatures = sx_saved_model_signatures(p->model, &p->n);
    p->ready = sx_alloc(p->n + 1, sizeof(*p->ready));
    if (p->ready == NULL) {
        return sx_no_memory("for a predictor");
    }
    for (size_t i = 0; i < p->n; i++) {
        SX_TRY(import_one(p, signatures[i].key, compile, &p->ready[i]));
    }
    bool functions = false;
    for (size_t i = 0; i < p->n; i++) {
        functions = functions || (p->ready[i].why != NULL && p->ready[i].code == SX_UNIMPLEMENTED &&
                                  strcmp(signatures[i].key, SX_INIT_SIGNATURE) != 0);
    }
    if (functions) {
        SX_TRY(import_functions(p));
    }
    for (size_t i = 0; i < p->n; i++) {
        done += p->ready[i].why == NULL;
    }
    if (done == 0) {
        return p->n == 0 ? sx_error(SX_FAILED_PRECONDITION, "%s has no signatures",
                                    sx_saved_model_dir(p->model))
                         : why_not(p, signatures);
    }
    return SX_OK;
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
    sx_budget_init(&p->memory, "the model (--model-memory-limit)", 0, NULL);
    const sx_session_options session = {.device = options->device,
                                        .platform = {.cpu.threads = options->threads},
                                        .memory = &p->memory};
    sx_status status = sx_session_create(&session, &p->session);
    status = status == SX_OK ? set_memory_limit(p, options->memory_limit_bytes) : status;
    status = status == SX_OK ? sx_saved_model_open_within(dir, &p->memory, &p->model) : status;
    status = status == SX_OK ? import_all(p, options->compile_at_load) : status;
    status = status == SX_OK ? load_variables(p) : status;
    if (status != SX_OK) {
        sx_predictor_unload(p);
        return sx_status_annotate(status, __FILE__, __LINE__, "loading %s", dir);
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
    sx_library_destroy(p->library);
    sx_session_destroy(p->session);
    for (size_t i = 0; p->ready != NULL && i < p->n; i++) {
        sx_import_destroy(p->ready[i].import);
        sx_free(p->ready[i].why);
    }
    sx_free(p->ready);
    sx_saved_model_close(p->model);
    sx_free(p);
}

const sx_saved_model *sx_predictor_model(const sx_predictor *p)
{
    return p->model;
}

bool sx_predictor_decodes_images(const sx_predictor *p, const sx_signature *signature)
{
    size_t n;
    const sx_import *import = p->ready[signature - sx_saved_model_signatures(p->model, &n)].import;
    return import != NULL && import->image != NULL;
}

/* ---- One run ---- */

/* Where the rows of one of the program's inputs come from. */
struct source {
    const uint8_t *rows;    /* the request's tensor; NULL: decoded from `images` */
    const sx_bytes *images; /* [batch] */
    size_t row_bytes;       /* of one example; of the whole tensor if it has no batch */
    bool batched;
    uint8_t *piece; /* [rows of the largest piece]: decoded or padded; NULL until needed */
};

/* A result of the program over the whole request, filled piece by piece. */
struct collected {
    sx_type type;
    uint8_t *data;
    size_t row_bytes;
    bool batched;
};

struct run {
    sx_predictor *p;
    struct ready *ready;
    int64_t max_piece; /* of `ready` when this run began, or less */
    const sx_signature *signature;
    const sx_tensor *inputs;
    const sx_cancel *cancel;
    sx_arena *arena;
    sx_tensor *outputs;
    int64_t batch;               /* of the request; 1 where the signature has none */
    struct source *sources;      /* [inputs of the program] */
    struct collected *collected; /* [outputs of the program] */
    const void **piece;          /* [inputs of the program]: arguments of one execution */
    sx_preprocess_scratch scratch;
    size_t scratch_bytes; /* charged for `scratch` */
};

static sx_status check_input(const sx_signature_tensor *want, const sx_tensor *got, int64_t *batch)
{
    bool fits = got->type.dtype == want->type.dtype &&
                (want->unknown_rank || got->type.rank == want->type.rank);
    for (int d = 0; fits && d < got->type.rank && !want->unknown_rank; d++) {
        int64_t size = got->type.dims[d], expected = want->type.dims[d];
        if (d == 0 && expected == SX_BATCH) {
            expected = *batch < 0 ? size : *batch;
            *batch = expected;
        }
        fits = size >= 0 && (expected < 0 || size == expected);
    }
    if (!fits) {
        char a[SX_TYPE_TEXT], b[SX_TYPE_TEXT];
        return sx_error(SX_INVALID_ARGUMENT, "input \"%s\" is %s, expected %s%s", want->key,
                        sx_type_format(&got->type, a, sizeof(a)),
                        sx_type_format(&want->type, b, sizeof(b)),
                        *batch >= 0 ? " with the batch size of the other inputs" : "");
    }
    return SX_OK;
}

static int find_signature_input(const sx_signature *s, const char *key)
{
    for (size_t i = 0; i < s->n_inputs; i++) {
        if (strcmp(s->inputs[i].key, key) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static sx_status find_sources(struct run *r)
{
    const sx_import *import = r->ready->import;
    const sx_preprocess *pre = &import->preprocess;
    int n = sx_program_input_count(r->ready->program);
    r->sources = sx_arena_array(r->arena, n + 1, struct source);
    r->piece = sx_arena_array(r->arena, n + 1, const void *);
    if (r->sources == NULL || r->piece == NULL) {
        return sx_no_memory("for a predictor");
    }
    for (int i = 0; i < n; i++) {
        struct source *source = &r->sources[i];
        const char *name = sx_program_input_name(r->ready->program, i);
        const sx_type *type = sx_program_input_type(r->ready->program, i);
        bool image = import->image != NULL && strcmp(name, import->image) == 0;
        int from = find_signature_input(r->signature, image ? import->image_bytes : name);
        if (from < 0) {
            return sx_error(SX_INTERNAL, "the program's input \"%s\" is not in the signature",
                            name);
        }
        source->batched = image || sx_type_has_batch(type);
        if (image) {
            source->images = r->inputs[from].data;
            source->row_bytes =
                sizeof(float) * (size_t)pre->height * (size_t)pre->width * (size_t)pre->channels;
        } else {
            sx_type one = sx_type_with_batch(*type, 1);
            source->rows = r->inputs[from].data;
            source->row_bytes = (size_t)sx_type_bytes(&one);
        }
    }
    return SX_OK;
}

/* Reads the headers of all images before any is decoded, and charges what decoding the largest one
 * takes: its pixels and, where it comes in several scans, its coefficients (2 bytes for each sample
 * of up to 4 components). */
static sx_status check_images(struct run *r, const sx_bytes *images)
{
    enum { COEFFICIENT_BYTES = 8 };
    const int channels = r->ready->import->preprocess.channels;
    size_t largest = 0;
    for (int64_t i = 0; i < r->batch; i++) {
        sx_image_info info;
        SX_TRY(sx_image_probe(images[i], &info), "image %lld", (long long)i);
        if (info.height > r->p->limits.max_pixels / SX_MAX(info.width, (int64_t)1)) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "image %lld has %lldx%lld pixels; the limit is %lld pixels",
                            (long long)i, (long long)info.height, (long long)info.width,
                            (long long)r->p->limits.max_pixels);
        }
        const size_t pixels = (size_t)info.height * (size_t)info.width;
        const size_t bytes = (size_t)channels + (info.progressive ? COEFFICIENT_BYTES : 0);
        largest = SX_MAX(largest, pixels * bytes);
    }
    if (!sx_budget_charge(r->arena->budget, largest)) {
        return sx_no_memory("to decode an image of %zu bytes", largest);
    }
    r->scratch_bytes = largest;
    return SX_OK;
}

/* The rows of a piece: the whole batch, rounded up to the next executable. */
static int64_t piece_for(const struct run *r, int64_t rows)
{
    int64_t piece = 1;
    while (piece < rows && piece < r->max_piece) {
        piece *= 2;
    }
    return piece;
}

static sx_status make_piece(struct run *r, struct source *source)
{
    const int64_t rows = piece_for(r, r->batch); /* no later piece is larger */
    if (source->piece == NULL) {
        source->piece = sx_arena_alloc(r->arena, (size_t)rows, source->row_bytes);
    }
    return source->piece != NULL
               ? SX_OK
               : sx_no_memory("for %lld rows of %zu bytes", (long long)rows, source->row_bytes);
}

/* Sets r->piece to the inputs of the piece that starts at row `first`: decoded images, rows in
 * place, or a padded copy. */
static sx_status take_piece(struct run *r, int64_t first, int64_t rows, int64_t piece)
{
    for (int i = 0; i < sx_program_input_count(r->ready->program); i++) {
        struct source *source = &r->sources[i];
        if (!source->batched || (source->images == NULL && rows == piece)) {
            r->piece[i] = source->rows + (source->batched ? (size_t)first * source->row_bytes : 0);
            continue;
        }
        SX_TRY(make_piece(r, source));
        r->piece[i] = source->piece;
        const size_t filled = (size_t)rows * source->row_bytes;
        memset(source->piece + filled, 0, (size_t)(piece - rows) * source->row_bytes);
        if (source->images == NULL) {
            memcpy(source->piece, source->rows + (size_t)first * source->row_bytes, filled);
            continue;
        }
        for (int64_t k = 0; k < rows; k++) {
            SX_TRY(sx_cancel_check(r->cancel));
            sx_status status = sx_preprocess_encoded(
                &r->ready->import->preprocess, source->images[first + k], NULL, &r->scratch,
                (float *)(source->piece + (size_t)k * source->row_bytes));
            if (sx_status_code(status) == SX_RESOURCE_EXHAUSTED &&
                !sx_status_is_no_memory(status)) { /* over the limits: no use in trying again */
                sx_status refused = sx_error(SX_INVALID_ARGUMENT, "%s", sx_status_message(status));
                sx_status_free(status);
                status = refused;
            }
            SX_TRY(status, "image %lld", (long long)(first + k));
        }
    }
    return SX_OK;
}

/* Allocates the results of all pieces, including the padding of the last. */
static sx_status prepare_collected(struct run *r)
{
    const int64_t largest = r->max_piece, rest = r->batch % largest;
    const int64_t rows = r->batch - rest + (rest > 0 ? piece_for(r, rest) : 0);
    int n = sx_program_output_count(r->ready->program);
    r->collected = sx_arena_array(r->arena, n + 1, struct collected);
    if (r->collected == NULL) {
        return sx_no_memory("for a predictor");
    }
    for (int i = 0; i < n; i++) {
        struct collected *out = &r->collected[i];
        const sx_type *type = sx_program_output_type(r->ready->program, i);
        sx_type one = sx_type_with_batch(*type, 1);
        out->batched = sx_type_has_batch(type);
        out->type = sx_type_with_batch(*type, r->batch);
        out->row_bytes = (size_t)sx_type_bytes(&one);
        const size_t count = out->batched ? (size_t)rows : 1;
        out->data = sx_arena_alloc(r->arena, count, out->row_bytes);
        if (out->data == NULL) {
            return sx_error(SX_RESOURCE_EXHAUSTED,
                            "output \"%s\" needs %zu x %zu bytes: more than the memory limit "
                            "leaves for outputs",
                            sx_program_output_name(r->ready->program, i), count, out->row_bytes);
        }
    }
    return SX_OK;
}

static sx_status acquire(const struct run *r, int64_t piece, sx_slot **out)
{
    return sx_program_acquire(r->ready->program, piece,
                              r->cancel != NULL ? r->cancel->deadline_ns : SX_NO_DEADLINE, out);
}

/* Chooses the rows of the next execution. A number of rows whose program does not fit in memory is
 * not tried again. */
static sx_status choose_piece(struct run *r, int64_t rows, int64_t *out_piece)
{
    struct ready *ready = r->ready;
    int64_t piece = piece_for(r, rows);
    if ((atomic_load(&ready->fitting) & piece) == 0) {
        sx_slot *slot = NULL;
        sx_status status = acquire(r, piece, &slot);
        while (sx_status_code(status) == SX_RESOURCE_EXHAUSTED && piece > 1) {
            sx_status_free(status);
            piece /= 2;
            r->max_piece = piece;
            status = acquire(r, piece, &slot);
        }
        SX_TRY(status);
        sx_slot_release(slot);
        atomic_fetch_or(&ready->fitting, piece);
        long long known = atomic_load(&ready->max_piece);
        while (known > r->max_piece &&
               !atomic_compare_exchange_weak(&ready->max_piece, &known, r->max_piece)) {
        }
    }
    *out_piece = piece;
    return SX_OK;
}

static sx_status run_piece(struct run *r, int64_t first, int64_t rows, int64_t piece)
{
    sx_slot *slot = NULL;
    SX_TRY(take_piece(r, first, rows, piece));
    SX_TRY(acquire(r, piece, &slot));
    sx_status status = sx_cancel_check(r->cancel); /* the wait for a slot may have been long */
    status = status == SX_OK ? sx_slot_run(slot, r->piece) : status;
    for (int i = 0; status == SX_OK && i < sx_program_output_count(r->ready->program); i++) {
        struct collected *out = &r->collected[i];
        uint8_t *to = out->data + (out->batched ? (size_t)first * out->row_bytes : 0);
        status = sx_slot_read_output(slot, i, to);
    }
    sx_slot_release(slot);
    return status;
}

static const struct collected *find_collected(const struct run *r, const char *name)
{
    int i = sx_program_find_output(r->ready->program, name);
    return i < 0 ? NULL : &r->collected[i];
}

/* The names of a classifier's class indices. Argmax is always in range; the index of a foreign
 * graph may not be. */
static sx_status look_up(struct run *r, const sx_import_lookup *lookup,
                         const struct collected *index, sx_tensor *out)
{
    int64_t n = sx_type_elems(&index->type);
    sx_bytes *names = sx_arena_array(r->arena, n + 1, sx_bytes);
    if (names == NULL) {
        return sx_no_memory("for a predictor");
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t k = index->type.dtype == SX_I64 ? ((const int64_t *)index->data)[i]
                                                : ((const int32_t *)index->data)[i];
        if (k < 0 || k >= lookup->n_names) {
            return sx_error(SX_OUT_OF_RANGE,
                            "output \"%s\": index %lld is out of range for %lld names",
                            lookup->output, (long long)k, (long long)lookup->n_names);
        }
        names[i] = lookup->names[k];
    }
    out->type = index->type;
    out->type.dtype = SX_STRING;
    out->data = names;
    return SX_OK;
}

static sx_status give_output(struct run *r, const char *key, sx_tensor *out)
{
    const sx_import *import = r->ready->import;
    for (size_t i = 0; i < import->n_lookups; i++) {
        if (strcmp(import->lookups[i].output, key) == 0) {
            return look_up(r, &import->lookups[i], find_collected(r, import->lookups[i].index),
                           out);
        }
    }
    const struct collected *found = find_collected(r, key);
    if (found == NULL) {
        return sx_error(SX_INTERNAL, "the program has no output \"%s\"", key);
    }
    *out = (sx_tensor){found->type, found->data};
    return SX_OK;
}

static sx_status run(struct run *r)
{
    r->batch = -1;
    for (size_t i = 0; i < r->signature->n_inputs; i++) {
        SX_TRY(check_input(&r->signature->inputs[i], &r->inputs[i], &r->batch));
    }
    r->batch = r->batch < 0 ? 1 : r->batch;
    SX_TRY(find_sources(r));
    for (int i = 0; i < sx_program_input_count(r->ready->program); i++) {
        if (r->sources[i].images != NULL) {
            SX_TRY(check_images(r, r->sources[i].images));
        }
    }
    SX_TRY(prepare_collected(r));
    for (int64_t first = 0, rows; first < r->batch; first += rows) {
        int64_t piece;
        SX_TRY(choose_piece(r, r->batch - first, &piece));
        rows = SX_MIN(piece, r->batch - first);
        SX_TRY(run_piece(r, first, rows, piece));
    }
    for (size_t i = 0; i < r->signature->n_outputs; i++) {
        SX_TRY(give_output(r, r->signature->outputs[i].key, &r->outputs[i]));
    }
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
    struct ready *ready = &p->ready[signature - first];
    if (ready->why != NULL) {
        return sx_error(ready->code, "%s", ready->why);
    }
    if (ready->function) {
        int64_t batch = -1;
        for (size_t i = 0; i < signature->n_inputs; i++) {
            SX_TRY(check_input(&signature->inputs[i], &inputs[i], &batch));
        }
        return sx_runner_run(p->runner, signature->key, inputs, (int)signature->n_inputs, outputs,
                             (int)signature->n_outputs, arena, cancel);
    }
    struct run r = {.p = p,
                    .ready = ready,
                    .max_piece = atomic_load(&ready->max_piece),
                    .signature = signature,
                    .inputs = inputs,
                    .cancel = cancel,
                    .arena = arena,
                    .outputs = outputs,
                    .scratch = {.limits = &p->limits}};
    sx_status status = run(&r);
    sx_preprocess_scratch_deinit(&r.scratch);
    sx_budget_release(arena->budget, r.scratch_bytes);
    return status;
}
