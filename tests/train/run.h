/* What the trainer's tests share: a tiny model, tiny data, and the hash of all that a run is. */
#ifndef SX_TESTS_TRAIN_RUN_H
#define SX_TESTS_TRAIN_RUN_H

#include "../io/scratch.h"

#include <math.h>
#include <signal.h>
#include <unistd.h>

#include "base/map.h"
#include "train/trainer.h"

enum { EXAMPLES = 53, FEATURES = 6, CLASSES = 3, BATCH = 8, STEPS_PER_EPOCH = 7 };

static sx_spec tiny_build(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_value x = in->features;
    x = sx_dense(b, x, sx_param_int(p, "hidden", 8), .activation = SX_RELU);
    x = sx_dropout(b, x, 0.3);
    sx_value logits = sx_dense(b, x, CLASSES);
    return sx_classifier_spec(b, logits, in->labels, .optimizer = sx_adam(.learning_rate = 1e-2));
}

static const sx_model_def tiny =
    SX_MODEL_DEF(.name = "tiny", .build = tiny_build, .features = FEATURES);

/* Three clouds, the same for ever. */
static inline sx_dataset *tiny_data(int64_t first, int64_t count)
{
    static float x[4096][FEATURES];
    static int64_t y[4096];
    for (int64_t i = 0; i < 4096; i++) {
        y[i] = (i * 7 + i / 5) % CLASSES;
        for (int k = 0; k < FEATURES; k++) {
            x[i][k] = (float)((i * 31 + k * 17 + (i * k) % 13) % 29) / 29.0f +
                      (k % CLASSES == y[i] ? 0.8f : 0.0f);
        }
    }
    const char *names[] = {"features", "label"};
    const sx_tensor tensors[] = {{sx_type_of(SX_F32, count, FEATURES), x[first]},
                                 {sx_type_of(SX_I64, count), &y[first]}};
    sx_dataset *data = NULL;
    assert_ok(sx_dataset_from_tensors(2, names, tensors, NULL, NULL, &data));
    return data;
}

/* What the observer has seen, kept for looking at. */
typedef struct seen {
    int count[SX_EVENT_END + 1];
    char warning[1024], end[256];
    int64_t last_step, total_steps, epochs, examples;
    double last_loss, final_loss; /* of the epoch so far; of the final step alone */
    bool resumed;
    volatile sig_atomic_t stop; /* set when a PROGRESS event shows step stop_at */
    int64_t stop_at;
    int64_t kill_at; /* likewise SIGKILL */
} seen;

static inline void see(void *user, const sx_train_event *e)
{
    seen *s = user;
    s->count[e->kind]++;
    if (e->kind != SX_EVENT_CHECKPOINT) { /* of an earlier step, perhaps */
        s->last_step = e->step;
    }
    if (e->kind == SX_EVENT_BEGIN) {
        s->total_steps = e->total_steps;
        s->epochs = e->epochs;
        s->resumed = e->resumed;
    }
    if (e->kind == SX_EVENT_WARNING) {
        snprintf(s->warning, sizeof(s->warning), "%s", e->text);
    }
    if (e->kind == SX_EVENT_END) {
        snprintf(s->end, sizeof(s->end), "%s", e->text);
        s->examples = e->examples;
        s->final_loss = e->n_metrics > 0 ? e->metrics[0].value : NAN;
    }
    if (e->kind == SX_EVENT_PROGRESS && e->n_metrics > 0) {
        s->last_loss = e->metrics[0].value;
    }
    if (e->kind == SX_EVENT_PROGRESS && s->kill_at > 0 && e->step >= s->kill_at) {
        kill(getpid(), SIGKILL);
    }
    s->stop = s->stop || (e->kind == SX_EVENT_PROGRESS && s->stop_at > 0 && e->step >= s->stop_at);
}

/* Every step is seen, every step may end; checkpoints only where a test asks for them. */
static inline sx_run_config tiny_config(const char *dir, seen *s)
{
    return (sx_run_config){.struct_size = sizeof(sx_run_config),
                           .model_dir = dir,
                           .tf_random_seed = 7,
                           .train_batch_size = BATCH,
                           .save_checkpoints_secs = SX_NEVER,
                           .log_step_count_steps = 1,
                           .threads = 1,
                           .device = "host",
                           .observer = s != NULL ? see : NULL,
                           .observer_user = s,
                           .stop = s != NULL ? &s->stop : NULL};
}

static inline sx_trainer *open_tiny(const sx_run_config *config)
{
    sx_trainer *t = NULL;
    sx_dataset *data = tiny_data(0, EXAMPLES);
    const sx_trainer_options options = {.config = config, .def = &tiny, .data = data};
    assert_ok(sx_trainer_create(&options, &t));
    sx_dataset_release(data);
    return t;
}

/* One call of fit on the tiny data. */
static inline sx_status fit_tiny(sx_trainer *t, int64_t max_steps, bool evaluate)
{
    sx_dataset *train = tiny_data(0, EXAMPLES), *eval = evaluate ? tiny_data(100, 41) : NULL;
    const sx_fit_request request = {.train = train, .eval = eval, .max_steps = max_steps};
    sx_status status = sx_trainer_fit(t, &request);
    sx_dataset_release(train);
    sx_dataset_release(eval);
    return status;
}

/* FNV-1a over the names and bytes of all variables: weights, averages, slots, step. */
static inline uint64_t hash_variables(sx_trainer *t)
{
    sx_session *s = sx_trainer_session(t);
    uint64_t hash = 0;
    for (int i = 0; i < sx_session_variable_count(s); i++) {
        const sx_session_variable *v = sx_session_variable_at(s, i);
        size_t bytes = (size_t)sx_type_bytes(&v->type);
        char *data = sx_alloc(bytes + 1, 1);
        assert_ok(sx_session_read_variable(s, i, data));
        hash = hash * 1099511628211u ^ sx_hash64(v->name, strlen(v->name));
        hash = hash * 1099511628211u ^ sx_hash64(data, bytes);
        sx_free(data);
    }
    return hash;
}

/* A scratch directory in memory where there is one: sweeps call fsync thousands of times. */
static inline int in_memory_setup(void **state)
{
    return (access("/dev/shm", W_OK) == 0 && setenv("TMPDIR", "/dev/shm", 0) != 0) ||
           scratch_setup(state);
}

#define in_memory_test(f) cmocka_unit_test_setup_teardown(f, in_memory_setup, scratch_teardown)

#endif
