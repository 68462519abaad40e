/* Issue 4's proof, evaluation and prediction: a model of the zoo is trained a little on the cpu
 * backend; from its one checkpoint cpu, XLA's CPU plugin and four replicas of it score 203
 * examples, in batches of 32 (the last has 11) and of 128 (75).
 *
 *   examples     the same count, and each id once
 *   loss         within 1e-5, absolutely: it is the examples' mean, added up on the host in their
 *                order, so what is left is the rounding of one example's logits, which does
 *                not shrink with the loss; metrics as the predictions say
 *   predictions  the same class but where the two best are within 1e-4
 *   replicas     the bits of one device */
#include "harness.h"

#include <math.h>

#include "../backends/pjrt_plugin.h"
#include "../io/scratch.h"
#include "nn/zoo/zoo.h"
#include "train/trainer.h"

enum { EXAMPLES = 203, BATCH = 32, MAX_CLASSES = 10 };

typedef struct subject {
    const char *model, *train_data, *data;
    int side, channels; /* of the pictures */
    double learning_rate;
    int64_t steps; /* of training; with batch norm until its averages have settled: before, losses
                      are in the hundreds, and rounding is of them */
} subject;

static const struct {
    const char *device;
    int replicas;
} places[] = {{"cpu", 0}, {"pjrt", 1}, {"pjrt", 4}};

typedef struct scored {
    sx_eval_result result;
    char metric_names[SX_MAX_METRICS][32]; /* the result's live as long as the trainer */
    int64_t count;
    int64_t ids[EXAMPLES];
    int classid[EXAMPLES];
    float probabilities[EXAMPLES][MAX_CLASSES];
} scored;

static sx_run_config config_of(const char *dir, int place)
{
    bool on_plugin = places[place].replicas > 0;
    return (sx_run_config){.struct_size = sizeof(sx_run_config),
                           .model_dir = dir,
                           .tf_random_seed = 5,
                           .train_batch_size = BATCH,
                           .eval_batch_size = BATCH,
                           .save_checkpoints_secs = SX_NEVER,
                           .device = places[place].device,
                           .pjrt_plugin = on_plugin ? pjrt_plugin() : NULL,
                           .virtual_devices = on_plugin ? 4 : 0,
                           .replicas = places[place].replicas,
                           .threads = 2};
}

static void train(const subject *s, const char *dir)
{
    sx_model_def def = *sx_zoo_find(s->model);
    def.image[0] = def.image[1] = s->side;
    def.image[2] = s->channels;
    const sx_optimizer optimizer = sx_sgd(.learning_rate = s->learning_rate, .momentum = 0.9);
    sx_run_config config = config_of(dir, 0);
    sx_dataset *data = NULL;
    sx_trainer *t = NULL;
    assert_ok(sx_data_open(s->train_data, NULL, &data, NULL));
    const sx_trainer_options options = {
        .config = &config, .def = &def, .optimizer = &optimizer, .data = data};
    assert_ok(sx_trainer_create(&options, &t));
    const sx_fit_request request = {.train = data, .max_steps = s->steps};
    assert_ok(sx_trainer_fit(t, &request));
    sx_trainer_destroy(t);
    sx_dataset_release(data);
}

static sx_status keep_row(void *user, const sx_prediction *row)
{
    scored *s = user;
    assert_true(s->count < EXAMPLES && row->n_classes <= MAX_CLASSES);
    assert_int_equal(row->number, s->count);
    s->ids[s->count] = row->record;
    s->classid[s->count] = row->classid;
    memcpy(s->probabilities[s->count++], row->probabilities,
           (size_t)row->n_classes * sizeof(float));
    return SX_OK;
}

/* From the checkpoint that `dir` holds. */
static void score(const subject *s, const char *dir, int place, scored *out)
{
    sx_run_config config = config_of(dir, place);
    const sx_trainer_options options = {.config = &config};
    sx_dataset *data = NULL;
    sx_trainer *t = NULL;
    *out = (scored){.count = 0};
    assert_ok(sx_data_open(s->data, NULL, &data, NULL));
    assert_ok(sx_trainer_create(&options, &t));
    assert_ok(sx_trainer_restore(t, NULL));
    assert_int_equal(sx_trainer_step(t), s->steps);
    assert_ok(sx_trainer_evaluate(t, data, 0, &out->result));
    for (int i = 0; i < out->result.n_metrics; i++) {
        snprintf(out->metric_names[i], sizeof(out->metric_names[i]), "%s",
                 out->result.metrics[i].name);
    }
    assert_ok(sx_trainer_predict(t, data, 0, keep_row, out));
    sx_trainer_destroy(t);
    sx_dataset_release(data);
}

static void assert_each_once(const scored *s)
{
    bool seen[EXAMPLES] = {false};
    assert_int_equal(s->result.examples, EXAMPLES);
    assert_int_equal(s->result.available, EXAMPLES);
    assert_int_equal(s->count, EXAMPLES);
    for (int i = 0; i < EXAMPLES; i++) {
        assert_in_range(s->ids[i], 0, EXAMPLES - 1);
        assert_false(seen[s->ids[i]]);
        seen[s->ids[i]] = true;
    }
}

/* How many predictions differ: allowed only between two classes that the first saw as equal. */
static int compare_predictions(const scored *a, const scored *b)
{
    int differ = 0;
    for (int i = 0; i < EXAMPLES; i++) {
        assert_int_equal(a->ids[i], b->ids[i]);
        if (a->classid[i] != b->classid[i]) {
            const float *p = a->probabilities[i];
            assert_true(fabsf(p[a->classid[i]] - p[b->classid[i]]) <= 1e-4f);
            differ++;
        }
    }
    return differ;
}

static void compare(const scored *a, const scored *b)
{
    assert_each_once(b);
    int differ = compare_predictions(a, b);
    double off = fabs(a->result.loss - b->result.loss);
    print_message("loss %.9g off by %.2g, %d of %d predictions differ\n", a->result.loss, off,
                  differ, EXAMPLES);
    assert_true(off <= 1e-5);
    assert_int_equal(a->result.n_metrics, b->result.n_metrics);
    for (int i = 0; i < a->result.n_metrics; i++) {
        assert_string_equal(a->metric_names[i], b->metric_names[i]);
        if (strcmp(a->metric_names[i], "accuracy") == 0) {
            assert_true(fabs(a->result.metrics[i].value - b->result.metrics[i].value) * EXAMPLES <=
                        differ + 1e-6);
        }
    }
}

static void assert_equal_bits(const scored *a, const scored *b)
{
    assert_true(a->result.loss == b->result.loss);
    for (int i = 0; i < a->result.n_metrics; i++) {
        assert_true(a->result.metrics[i].value == b->result.metrics[i].value);
    }
    assert_memory_equal(a->probabilities, b->probabilities, sizeof(a->probabilities));
}

/* Else agreeing on predictions would say nothing. */
static void assert_several_classes(const scored *s)
{
    int of_class[MAX_CLASSES] = {0}, classes = 0;
    for (int i = 0; i < EXAMPLES; i++) {
        classes += of_class[s->classid[i]]++ == 0;
    }
    assert_true(classes > 2);
}

static void prove(const subject *s)
{
    static scored all[3];
    SKIP_WITHOUT_PJRT();
    const char *dir = scratch("run");
    train(s, dir);
    for (int k = 0; k < 3; k++) {
        score(s, dir, k, &all[k]);
    }
    assert_each_once(&all[0]);
    assert_several_classes(&all[0]);
    compare(&all[0], &all[1]);
    compare(&all[0], &all[2]);
    assert_equal_bits(&all[1], &all[2]);
}

static void test_train_proof_evaluation__mnist_cnn(void **state)
{
    (void)state;
    prove(&(subject){"mnist_cnn", "generated:digits?n=640&seed=1", "generated:digits?n=203&seed=2",
                     28, 1, 0.05, 30});
}

static void test_train_proof_evaluation__flowers_cnn(void **state)
{
    (void)state;
    prove(&(subject){"flowers_cnn", "generated:flowers?n=640&seed=1&size=32",
                     "generated:flowers?n=203&seed=2&size=32", 32, 3, 0.02, 30});
}

static void test_train_proof_evaluation__resnet50(void **state)
{
    (void)state;
    prove(&(subject){"resnet50", "generated:flowers?n=640&seed=1&size=32",
                     "generated:flowers?n=203&seed=2&size=32", 32, 3, 0.001, 150});
}

static const struct CMUnitTest tests[] = {
    scratch_test(test_train_proof_evaluation__mnist_cnn),
    scratch_test(test_train_proof_evaluation__flowers_cnn),
    scratch_test(test_train_proof_evaluation__resnet50),
};
SX_TEST_MAIN(tests)
