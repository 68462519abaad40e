#include "savedmodel/predictor.h"

#include <pthread.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "runtime/session.h"

enum { MAX_PIECE = 64 }; /* rows of one execution */

/* A signature as a program. */
struct ready {
    sx_import *import; /* NULL: it could not be imported, `why` says */
    char *why;
    sx_program *program;
};

struct sx_predictor {
    sx_saved_model *model;
    sx_image_limits limits;
    sx_session *session;
    struct ready *ready; /* [n], as the model's signatures */
    size_t n;
    pthread_mutex_t lock; /* of the session */
};

static sx_status no_memory(void)
{
    return sx_error(SX_RESOURCE_EXHAUSTED, "predictor: no memory");
}

/* ---- loading ---- */

static sx_status load_variables(sx_predictor *p)
{
    for (int i = 0; i < sx_session_variable_count(p->session); i++) {
        const sx_session_variable *v = sx_session_variable_at(p->session, i);
        int64_t bytes = sx_type_bytes(&v->type);
        void *data = bytes < 0 ? NULL : sx_alloc((size_t)bytes + 1, 1);
        if (data == NULL) {
            return no_memory();
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

static sx_status import_one(sx_predictor *p, const char *key, struct ready *r)
{
    sx_status status = strcmp(key, SX_INIT_SIGNATURE) == 0
                           ? sx_error(SX_UNIMPLEMENTED, "%s initializes; it is not to be run", key)
                           : sx_import_signature(p->model, key, &r->import);
    if (sx_status_code(status) == SX_UNIMPLEMENTED) {
        r->why = sx_strdup(sx_status_message(status));
        sx_status_free(status);
        return r->why == NULL ? no_memory() : SX_OK;
    }
    SX_TRY(status);
    return sx_session_add_program(p->session, r->import->graph, &r->program);
}

/* Why nothing can be run: the default signature's reason, or else the last one's. */
static const char *why_not(const sx_predictor *p, const sx_signature *signatures)
{
    for (size_t i = 0; i < p->n; i++) {
        if (strcmp(signatures[i].key, SX_SERVING_DEFAULT) == 0) {
            return p->ready[i].why;
        }
    }
    return p->ready[p->n - 1].why;
}

static sx_status import_all(sx_predictor *p)
{
    size_t done = 0;
    const sx_signature *signatures = sx_saved_model_signatures(p->model, &p->n);
    p->ready = sx_alloc(p->n + 1, sizeof(*p->ready));
    if (p->ready == NULL) {
        return no_memory();
    }
    for (size_t i = 0; i < p->n; i++) {
        SX_TRY(import_one(p, signatures[i].key, &p->ready[i]));
        done += p->ready[i].import != NULL;
    }
    if (done == 0) {
        return p->n == 0 ? sx_error(SX_FAILED_PRECONDITION, "%s has no signature",
                                    sx_saved_model_dir(p->model))
                         : sx_error(SX_UNIMPLEMENTED, "%s", why_not(p, signatures));
    }
    return SX_OK;
}

sx_status sx_predictor_load(const char *dir, const sx_predictor_options *options,
                            sx_predictor **out_predictor)
{
    const sx_predictor_options defaults = {0};
    options = options != NULL ? options : &defaults;
    sx_predictor *p = sx_alloc(1, sizeof(*p));
    if (p == NULL) {
        return no_memory();
    }
    pthread_mutex_init(&p->lock, NULL);
    p->limits = options->limits != NULL ? *options->limits : sx_image_limits_untrusted;
    const sx_session_options session = {.device = options->device,
                                        .platform = {.threads = options->threads}};
    sx_status status = sx_saved_model_open(dir, &p->model);
    status = status == SX_OK ? sx_session_create(&session, &p->session) : status;
    status = status == SX_OK ? import_all(p) : status;
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
    sx_session_destroy(p->session);
    for (size_t i = 0; p->ready != NULL && i < p->n; i++) {
        sx_import_destroy(p->ready[i].import);
        sx_free(p->ready[i].why);
    }
    sx_free(p->ready);
    sx_saved_model_close(p->model);
    pthread_mutex_destroy(&p->lock);
    sx_free(p);
}

const sx_saved_model *sx_predictor_model(const sx_predictor *p)
{
    return p->model;
}

/* ---- one run ---- */

struct run {
    sx_predictor *p;
    const struct ready *ready;
    const sx_signature *signature;
    const sx_tensor *inputs;
    sx_arena *arena;
    sx_tensor *outputs;
    int64_t batch; /* of the request; 1 where the signature has none */
    bool batched;
    const void **rows; /* [n_inputs]: the inputs as the graph takes them */
    size_t *row_bytes; /* [n_inputs]: of one example; of the whole tensor where there is no batch */
};

static sx_status check_input(const sx_signature_tensor *want, const sx_tensor *got, int64_t *batch)
{
    bool fits = got->type.dtype == want->type.dtype && !want->unknown_rank &&
                got->type.rank == want->type.rank;
    for (int d = 0; fits && d < got->type.rank; d++) {
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
                        *batch >= 0 ? " with the batch of the other inputs" : "");
    }
    return SX_OK;
}

static sx_status preprocess_one(const sx_preprocess *pre, sx_bytes encoded,
                                sx_preprocess_scratch *scratch, int64_t i, float *out)
{
    sx_status status = sx_preprocess_encoded(pre, encoded, NULL, scratch, out);
    return sx_status_annotate(status, __FILE__, __LINE__, "image %lld", (long long)i);
}

/* Encoded images to float rows in the arena. */
static sx_status decode(struct run *r, const sx_tensor *images, const void **out_rows,
                        size_t *out_row_bytes)
{
    const sx_preprocess *pre = &r->ready->import->preprocess;
    size_t row = (size_t)pre->height * (size_t)pre->width * (size_t)pre->channels;
    float *pixels = sx_arena_alloc(r->arena, (size_t)r->batch * row + 1, sizeof(float));
    if (pixels == NULL) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "no memory for %lld images", (long long)r->batch);
    }
    sx_preprocess_scratch scratch = {.limits = &r->p->limits};
    sx_status status = SX_OK;
    for (int64_t i = 0; i < r->batch && status == SX_OK; i++) {
        status = preprocess_one(pre, ((const sx_bytes *)images->data)[i], &scratch, i,
                                pixels + (size_t)i * row);
    }
    sx_preprocess_scratch_deinit(&scratch);
    SX_TRY(status);
    *out_rows = pixels;
    *out_row_bytes = row * sizeof(float);
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

/* For each input of the program: where its rows are. */
static sx_status take_rows(struct run *r)
{
    const sx_import *import = r->ready->import;
    int n = sx_program_input_count(r->ready->program);
    r->rows = sx_arena_array(r->arena, n + 1, const void *);
    r->row_bytes = sx_arena_array(r->arena, n + 1, size_t);
    if (r->rows == NULL || r->row_bytes == NULL) {
        return no_memory();
    }
    for (int i = 0; i < n; i++) {
        const char *name = sx_program_input_name(r->ready->program, i);
        bool image = import->image != NULL && strcmp(name, import->image) == 0;
        int from = find_signature_input(r->signature, image ? import->image_bytes : name);
        if (from < 0) {
            return sx_error(SX_INTERNAL, "the program's input \"%s\" is not the signature's", name);
        }
        if (image) {
            SX_TRY(decode(r, &r->inputs[from], &r->rows[i], &r->row_bytes[i]));
            continue;
        }
        sx_type one = sx_type_with_batch(*sx_program_input_type(r->ready->program, i), 1);
        r->rows[i] = r->inputs[from].data;
        r->row_bytes[i] = (size_t)sx_type_bytes(&one);
    }
    return SX_OK;
}

/* The inputs of the piece that starts at row `first`: in place if the rows are there, else padded.
 */
static sx_status take_piece(struct run *r, int64_t first, int64_t rows, int64_t piece,
                            const void **out)
{
    int n = sx_program_input_count(r->ready->program);
    for (int i = 0; i < n; i++) {
        const uint8_t *start = r->rows[i];
        if (sx_type_has_batch(sx_program_input_type(r->ready->program, i))) {
            start += (size_t)first * r->row_bytes[i];
            if (rows < piece) {
                uint8_t *padded = sx_arena_alloc(r->arena, (size_t)piece, r->row_bytes[i]);
                if (padded == NULL) {
                    return no_memory();
                }
                memcpy(padded, start, (size_t)rows * r->row_bytes[i]);
                start = padded;
            }
        }
        out[i] = start;
    }
    return SX_OK;
}

/* A result of the program over the whole request, filled piece by piece. */
struct collected {
    sx_type type;
    uint8_t *data;
    size_t row_bytes;
    bool batched;
};

static sx_status prepare_collected(struct run *r, struct collected **out)
{
    int n = sx_program_output_count(r->ready->program);
    struct collected *list = sx_arena_array(r->arena, n + 1, struct collected);
    for (int i = 0; list != NULL && i < n; i++) {
        const sx_type *type = sx_program_output_type(r->ready->program, i);
        sx_type one = sx_type_with_batch(*type, 1);
        list[i].batched = sx_type_has_batch(type);
        list[i].type = sx_type_with_batch(*type, r->batch);
        list[i].row_bytes = (size_t)sx_type_bytes(&one);
        list[i].data =
            sx_arena_alloc(r->arena, (size_t)SX_MAX(r->batch, 1) + MAX_PIECE, list[i].row_bytes);
        if (list[i].data == NULL) {
            return no_memory();
        }
    }
    *out = list;
    return list == NULL ? no_memory() : SX_OK;
}

static sx_status run_piece(struct run *r, int64_t first, int64_t rows, int64_t piece,
                           struct collected *out)
{
    const void **inputs =
        sx_arena_array(r->arena, sx_program_input_count(r->ready->program) + 1, const void *);
    if (inputs == NULL) {
        return no_memory();
    }
    SX_TRY(take_piece(r, first, rows, piece, inputs));
    pthread_mutex_lock(&r->p->lock);
    sx_status status = sx_program_run(r->ready->program, piece, inputs);
    for (int i = 0; status == SX_OK && i < sx_program_output_count(r->ready->program); i++) {
        uint8_t *to = out[i].data + (out[i].batched ? (size_t)first * out[i].row_bytes : 0);
        status = sx_program_read_output(r->ready->program, i, to);
    }
    pthread_mutex_unlock(&r->p->lock);
    return status;
}

static int64_t piece_for(int64_t rows)
{
    int64_t piece = 1;
    while (piece < rows && piece < MAX_PIECE) {
        piece *= 2;
    }
    return piece;
}

static sx_status run_pieces(struct run *r, struct collected *out)
{
    for (int64_t first = 0; first < r->batch;) {
        int64_t piece = piece_for(r->batch - first), rows = SX_MIN(piece, r->batch - first);
        SX_TRY(run_piece(r, first, rows, piece, out));
        first += rows;
    }
    return SX_OK;
}

static const struct collected *find_collected(const struct run *r, const struct collected *list,
                                              const char *name)
{
    for (int i = 0; i < sx_program_output_count(r->ready->program); i++) {
        if (strcmp(sx_program_output_name(r->ready->program, i), name) == 0) {
            return &list[i];
        }
    }
    return NULL;
}

/* Numbers outside the names are clamped to what TensorFlow would refuse: they cannot come from
 * argmax. */
static sx_status look_up(struct run *r, const sx_import_lookup *lookup,
                         const struct collected *index, sx_tensor *out)
{
    int64_t n = sx_type_elems(&index->type);
    sx_bytes *names = sx_arena_array(r->arena, n + 1, sx_bytes);
    if (names == NULL) {
        return no_memory();
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t k = index->type.dtype == SX_I64 ? ((const int64_t *)index->data)[i]
                                                : ((const int32_t *)index->data)[i];
        if (k < 0 || k >= lookup->n_names) {
            return sx_error(SX_OUT_OF_RANGE, "output \"%s\": number %lld of %lld names",
                            lookup->output, (long long)k, (long long)lookup->n_names);
        }
        names[i] = lookup->names[k];
    }
    out->type = index->type;
    out->type.dtype = SX_STRING;
    out->data = names;
    return SX_OK;
}

static sx_status give_output(struct run *r, const struct collected *list, const char *key,
                             sx_tensor *out)
{
    const sx_import *import = r->ready->import;
    for (size_t i = 0; i < import->n_lookups; i++) {
        if (strcmp(import->lookups[i].output, key) == 0) {
            return look_up(r, &import->lookups[i],
                           find_collected(r, list, import->lookups[i].index), out);
        }
    }
    const struct collected *found = find_collected(r, list, key);
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
    struct collected *collected = NULL;
    SX_TRY(take_rows(r));
    SX_TRY(prepare_collected(r, &collected));
    SX_TRY(run_pieces(r, collected));
    for (size_t i = 0; i < r->signature->n_outputs; i++) {
        SX_TRY(give_output(r, collected, r->signature->outputs[i].key, &r->outputs[i]));
    }
    return SX_OK;
}

sx_status sx_predictor_run(sx_predictor *p, const sx_signature *signature, const sx_tensor *inputs,
                           sx_arena *arena, sx_tensor *outputs)
{
    size_t n;
    const sx_signature *first = sx_saved_model_signatures(p->model, &n);
    if (signature < first || signature >= first + n) {
        return sx_error(SX_INVALID_ARGUMENT, "the signature is not one of this model");
    }
    const struct ready *ready = &p->ready[signature - first];
    if (ready->import == NULL) {
        return sx_error(SX_UNIMPLEMENTED, "%s", ready->why);
    }
    struct run r = {.p = p,
                    .ready = ready,
                    .signature = signature,
                    .inputs = inputs,
                    .arena = arena,
                    .outputs = outputs};
    return run(&r);
}
