/* See lockstep.h. */
#include "train/lockstep.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "data/element.h"
#include "graph/ir.h"

enum { DIGEST_TEXT = 20 };

static void print_digest(const void *data, size_t size, char text[DIGEST_TEXT])
{
    snprintf(text, DIGEST_TEXT, "%016" PRIx64, sx_hash64(data, size));
}

/* ---- What must be equal ---- */

static sx_status compare_graph(sx_trainer *t, const char *what, const sx_graph *g)
{
    char *text = NULL, digest[DIGEST_TEXT] = "none";
    if (g != NULL) {
        SX_TRY(sx_graph_print(g, &text));
        print_digest(text, strlen(text), digest);
        sx_text_free(text);
    }
    return sx_processes_compare(t->processes, what, digest);
}

static sx_status compare_number(sx_trainer *t, const char *what, int64_t number)
{
    char text[32];
    snprintf(text, sizeof(text), "%" PRId64, number);
    return sx_processes_compare(t->processes, what, text);
}

/* Of what is read there: numbers, or the strings' bytes. */
static uint64_t hash_tensor(const sx_tensor *t)
{
    const int64_t n = sx_type_elems(&t->type);
    if (t->type.dtype != SX_STRING) {
        return sx_hash64(t->data, (size_t)sx_type_bytes(&t->type));
    }
    uint64_t hash = 0;
    for (int64_t i = 0; i < n; i++) {
        const sx_bytes *string = (const sx_bytes *)t->data + i;
        const uint64_t both[2] = {hash, sx_hash64(string->data, string->size)};
        hash = sx_hash64(both, sizeof(both));
    }
    return hash;
}

/* Of three records, which tell apart data sets with as many; those that cannot be read count as
 * nothing here, and are an error when they are trained on. */
static sx_status hash_records(sx_dataset *data, uint64_t *out)
{
    sx_element_reader reader;
    const int64_t n = data->source->count;
    const int64_t records[] = {0, n / 2, n - 1};
    const sx_tensor *tensors;
    sx_status status = sx_element_reader_init(&reader, data);
    for (size_t i = 0; status == SX_OK && n > 0 && i < SX_COUNT(records); i++) {
        sx_status read = sx_element_read(&reader, records[i], &tensors);
        for (int c = 0; read == SX_OK && c < reader.plan.element.count; c++) {
            const uint64_t both[2] = {*out, hash_tensor(&tensors[c])};
            *out = sx_hash64(both, sizeof(both));
        }
        sx_status_free(read);
    }
    sx_element_reader_deinit(&reader);
    return status;
}

sx_status sx_lockstep_compare_data(sx_trainer *t, const char *what, sx_dataset *data)
{
    uint64_t hash = 0;
    char text[64] = "none";
    if (t->processes == NULL) {
        return SX_OK;
    }
    if (data != NULL) {
        SX_TRY(hash_records(data, &hash));
        snprintf(text, sizeof(text), "%" PRId64 " elements, hash %016" PRIx64,
                 sx_dataset_count(data), hash);
    }
    return sx_processes_compare(t->processes, what, text);
}

/* The fingerprints of what is done with the training data before they are fed. */
static sx_status compare_pipelines(sx_fit *f)
{
    uint8_t cursors[SX_MAX_INPUTS * SX_CURSOR_BYTES];
    char digest[DIGEST_TEXT];
    sx_batch_gather_save(&f->input, cursors);
    print_digest(cursors, (size_t)f->input.n * SX_CURSOR_BYTES, digest);
    return sx_processes_compare(f->t->processes, "the order or preprocessing of its training data",
                                digest);
}

sx_status sx_lockstep_begin(sx_fit *f)
{
    sx_trainer *t = f->t;
    const sx_run_config *c = &t->config;
    const struct {
        const char *what;
        int64_t number;
    } numbers[] = {
        {"whether it has a directory for the run", c->model_dir != NULL},
        {"whether that directory has a run", t->on_disk && !c->fresh},
        {"its batch size", f->input.max_batch},
        {"its shards", c->shards},
        {"its seed", (int64_t)t->info.seed},
        {"its number of steps", f->r->steps},
        {"its last step", f->r->max_steps},
        {"its number of epochs", f->r->epochs},
        {"its steps between evaluations", c->steps_per_eval},
        {"its evaluation batch size", c->eval_batch_size},
        {"its number of evaluation steps", f->r->eval_steps},
        {"its number of evaluation examples", f->r->eval_examples},
        {"its steps between checkpoints", c->save_checkpoints_steps},
        {"its steps per launch", c->iterations_per_loop},
        {"its number of callbacks", f->r->n_callbacks},
    };
    if (t->processes == NULL) {
        return SX_OK;
    }
    SX_TRY(sx_processes_meet(t->processes));
    for (size_t i = 0; i < SX_COUNT(numbers); i++) {
        SX_TRY(compare_number(t, numbers[i].what, numbers[i].number));
    }
    SX_TRY(compare_graph(t, "the model's training program", t->graphs.by_mode[SX_TRAIN]));
    SX_TRY(compare_graph(t, "the model's evaluation program", t->graphs.by_mode[SX_EVAL]));
    SX_TRY(sx_lockstep_compare_data(t, "its training data", f->r->train));
    SX_TRY(sx_lockstep_compare_data(t, "its evaluation data", f->r->eval));
    SX_TRY(compare_pipelines(f));
    return sx_processes_meet(t->processes);
}

sx_status sx_lockstep_compare_variables(sx_trainer *t)
{
    char text[DIGEST_TEXT];
    uint64_t all = 0;
    if (t->processes == NULL || t->compared) {
        return SX_OK;
    }
    for (int i = 0; i < sx_session_variable_count(t->session); i++) {
        const sx_session_variable *v = sx_session_variable_at(t->session, i);
        const size_t bytes = (size_t)sx_type_bytes(&v->type);
        void *data = sx_alloc(bytes + 1, 1);
        if (data == NULL) {
            return sx_no_memory("for the variables");
        }
        sx_status status = sx_session_read_variable(t->session, i, data);
        const uint64_t both[2] = {all, status == SX_OK ? sx_hash64(data, bytes) : 0};
        sx_free(data);
        SX_TRY(status);
        all = sx_hash64(both, sizeof(both));
    }
    print_digest(&all, sizeof(all), text);
    SX_TRY(sx_processes_compare(t->processes, "the values of its variables", text));
    t->compared = true;
    return SX_OK;
}

sx_status sx_lockstep_restore(sx_trainer *t, bool *out_found)
{
    char step[32];
    int64_t values[2] = {0};
    if (sx_is_chief(t->processes)) {
        SX_TRY(sx_trainer_restore_latest(t, out_found));
        values[0] = *out_found;
        values[1] = *out_found ? sx_trainer_step(t) : 0;
    }
    if (t->processes == NULL) {
        return SX_OK;
    }
    SX_TRY(sx_processes_agree(t->processes, values, 2));
    *out_found = values[0] != 0;
    if (sx_is_chief(t->processes) || !*out_found) {
        return SX_OK;
    }
    snprintf(step, sizeof(step), "%" PRId64, values[1]);
    SX_TRY(sx_trainer_restore(t, step),
           "process %d of %d cannot read the checkpoint that process 0 has restored",
           sx_processes_index(t->processes), sx_processes_count(t->processes));
    return SX_OK;
}

/* ---- Decisions ---- */

static bool stop_requested(const sx_trainer *t)
{
    return t->config.stop != NULL && *t->config.stop != 0;
}

/* Tells the chief; of the chief, whether it or another was asked to stop. */
static bool wants_stop(const sx_trainer *t)
{
    if (!sx_is_chief(t->processes)) {
        if (stop_requested(t)) {
            sx_processes_want_stop(t->processes);
        }
        return false;
    }
    return stop_requested(t) || sx_processes_stop_wanted(t->processes);
}

sx_status sx_lockstep_agree_stop(sx_trainer *t)
{
    int64_t stop = t->processes != NULL && (t->stop_agreed || wants_stop(t));
    if (t->processes == NULL) {
        return SX_OK;
    }
    SX_TRY(sx_processes_agree(t->processes, &stop, 1));
    t->stop_agreed = stop != 0;
    return SX_OK;
}

sx_status sx_lockstep_plan(void *fit, int64_t *steps)
{
    sx_fit *f = fit;
    sx_trainer *t = f->t;
    if (t->processes == NULL) {
        return SX_OK;
    }
    int64_t values[2] = {wants_stop(t), *steps};
    if (values[0] != 0 || (f->n_fed > 0 && sx_fit_time_to_save(f, sx_now_ns()))) {
        values[1] = 0;
    }
    SX_TRY(sx_processes_agree(t->processes, values, 2));
    t->stop_agreed = t->stop_agreed || values[0] != 0;
    *steps = values[1];
    return SX_OK;
}

sx_status sx_lockstep_agree_controls(sx_fit *f)
{
    int64_t stop = f->control.stop;
    if (f->t->processes == NULL || f->r->n_callbacks == 0) {
        return SX_OK;
    }
    SX_TRY(sx_processes_agree(f->t->processes, &stop, 1));
    f->control.stop = stop != 0;
    return SX_OK;
}

sx_status sx_lockstep_explain(sx_trainer *t, sx_status status)
{
    return t->processes != NULL ? sx_processes_blame(t->processes, status) : status;
}

sx_status sx_lockstep_end(sx_trainer *t, sx_status status)
{
    if (t->processes == NULL || (status != SX_OK && sx_status_code(status) != SX_CANCELLED)) {
        return sx_processes_end(t->processes, status);
    }
    sx_status met = sx_processes_meet(t->processes);
    if (status == SX_OK) {
        return met;
    }
    sx_status_free(met);
    return status;
}

/* ---- Data ---- */

sx_part sx_lockstep_part(const sx_trainer *t, int64_t full)
{
    if (t->processes == NULL) {
        return (sx_part){0};
    }
    return (sx_part){.index = sx_processes_index(t->processes),
                     .count = sx_processes_count(t->processes),
                     .divisor = SX_MAX(t->config.shards, sx_session_replicas(t->session)),
                     .full = full};
}
