/* Trains on digits on a Cloud TPU with the TPUEstimator API: the classic sample, with the same
 * flags.
 *
 *     sextant data from-idx train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz --out mnist/train
 *     tpu_mnist --use_tpu --train_file 'mnist/train-*' --model_dir run1 --iterations 50
 *
 * The records have `image_raw` (784 bytes) and `label`. Batch sizes are global: on 8 cores, a batch
 * of 1024 is 128 per core. The same program runs without a TPU: omit --use_tpu, or name another
 * device with --device. A leading -- is ignored, because job services insert one before the flags.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sextant/sextant.h>

static struct flags {
    double learning_rate;
    int64_t batch_size, train_steps, eval_steps, iterations;
    const char *data_dir, *train_file, *eval_file, *model_dir, *master, *device;
    bool use_tpu;
} FLAGS = {.learning_rate = 0.05,
           .batch_size = 128,
           .train_steps = 1000,
           .iterations = 50,
           .master = "local"};

/* ---- The metric, on the host ---- */

typedef struct accuracy {
    int64_t right, seen;
} accuracy;

static void accuracy_add(void *state, const sx_host_value *values, void *user)
{
    accuracy *a = state;
    const float *logits = values[1].data;
    int32_t label = *(const int32_t *)values[0].data, best = 0;
    (void)user;
    for (int32_t i = 1; i < values[1].type.dims[0]; i++) {
        best = logits[i] > logits[best] ? i : best;
    }
    a->right += best == label;
    a->seen++;
}

static double accuracy_result(const void *state, void *user)
{
    const accuracy *a = state;
    (void)user;
    return (double)a->right / (double)a->seen;
}

/* ---- The model ---- */

/* A simple CNN. features: [N,28,28,1] in [-0.5, 0.5] */
static sx_spec model_fn(sx_builder *b, const sx_batch *in, const sx_params *params)
{
    (void)params;
    sx_value x = sx_conv2d(b, in->features, 32, 5, .padding = SX_SAME, .activation = SX_RELU);
    x = sx_max_pool2d(b, x, 2);
    x = sx_conv2d(b, x, 64, 5, .padding = SX_SAME, .activation = SX_RELU);
    x = sx_flatten(b, sx_max_pool2d(b, x, 2));
    x = sx_dropout(b, sx_dense(b, x, 128, .activation = SX_RELU), 0.4);
    sx_value logits = sx_dense(b, x, 10);
    sx_spec spec = {.predictions = {{"probabilities", sx_softmax(b, logits)},
                                    {"classid", sx_argmax(b, logits, .axis = -1)}}};
    if (in->mode == SX_PREDICT) {
        return spec;
    }
    spec.loss = sx_nn_sparse_softmax_cross_entropy(b, logits, in->labels);
    spec.eval_metrics = (sx_eval_metrics){.tensors = {{"labels", in->labels}, {"logits", logits}},
                                          .metrics = {{.name = "accuracy",
                                                       .state_bytes = sizeof(accuracy),
                                                       .add = accuracy_add,
                                                       .result = accuracy_result}}};
    spec.optimizer = sx_cross_shard_optimizer(
        sx_sgd(.learning_rate = FLAGS.learning_rate,
               .schedule = {.kind = SX_EXPONENTIAL_DECAY, .steps = 100000, .rate = 0.96}));
    return spec;
}

/* ---- The input ---- */

/* uint8 pixels to x / 255 - 0.5. */
static sx_status parser(const sx_map_call *call, void *user)
{
    const uint8_t *pixels = call->in[0].data;
    float *image = call->out[0].data;
    (void)user;
    for (int i = 0; i < 28 * 28; i++) {
        image[i] = (float)pixels[i] / 255.0f - 0.5f;
    }
    *(int64_t *)call->out[1].data = *(const int64_t *)call->in[1].data;
    return SX_OK;
}

static sx_status add_parser(sx_dataset **dataset)
{
    const sx_component components[2] = {{"image", sx_type_of(SX_F32, 28, 28, 1)},
                                        {"label", sx_scalar_type(SX_I64)}};
    return sx_dataset_map(dataset, .name = "parser", .fn = parser, .count = 2,
                          .components = components);
}

/* params["batch_size"] is the batch size for this call; there is one call per host or core. */
static sx_status build_input(const sx_input_context *context, sx_dataset **dataset)
{
    int64_t batch_size = sx_param_int(context->params, "batch_size", 0);
    bool training = context->mode == SX_TRAIN;
    SX_TRY(add_parser(dataset));
    SX_TRY(sx_dataset_cache(dataset, 0));
    if (training) {
        SX_TRY(sx_dataset_shuffle(dataset, .seed = 1));
        SX_TRY(sx_dataset_repeat(dataset, 0));
    }
    return sx_dataset_batch(dataset, .size = batch_size, .drop_remainder = training);
}

static sx_status input_fn(void *filename, const sx_input_context *context, sx_dataset **out)
{
    const sx_data_options options = {.struct_size = sizeof(options), .image_key = "image_raw"};
    sx_dataset *dataset = NULL;
    SX_TRY(sx_data_open(filename, &options, &dataset, NULL));
    sx_status status = build_input(context, &dataset);
    if (status != SX_OK) {
        sx_dataset_release(dataset);
        return status;
    }
    *out = dataset;
    return SX_OK;
}

/* ---- The flags ---- */

static const char *const names[] = {"learning_rate", "batch_size", "train_steps", "eval_steps",
                                    "iterations",    "data_dir",   "train_file",  "eval_file",
                                    "model_dir",     "master",     "device",      "use_tpu"};
enum { N_FLAGS = sizeof(names) / sizeof(names[0]), USE_TPU = N_FLAGS - 1 };

static void set_flag(int i, const char *text)
{
    int64_t *const counts[] = {NULL, &FLAGS.batch_size, &FLAGS.train_steps, &FLAGS.eval_steps,
                               &FLAGS.iterations};
    const char **const texts[] = {&FLAGS.data_dir,  &FLAGS.train_file, &FLAGS.eval_file,
                                  &FLAGS.model_dir, &FLAGS.master,     &FLAGS.device};
    if (i == 0) {
        FLAGS.learning_rate = atof(text);
    } else if (i < 5) {
        *counts[i] = atoll(text);
    } else if (i < USE_TPU) {
        *texts[i - 5] = text;
    } else {
        FLAGS.use_tpu = text == NULL || strcasecmp(text, "false") != 0;
    }
}

static bool parse_flags(int argc, char **argv)
{
    struct option options[N_FLAGS + 1] = {{0}};
    int c, i = 0;
    for (int k = 0; k < N_FLAGS; k++) {
        options[k] = (struct option){
            .name = names[k], .has_arg = k == USE_TPU ? optional_argument : required_argument};
    }
    optind = argc > 1 && strcmp(argv[1], "--") == 0 ? 2 : 1;
    while ((c = getopt_long(argc, argv, "", options, &i)) == 0) {
        set_flag(i, optarg);
    }
    return c == -1 && optind == argc;
}

/* --data_dir holds train-* and test-*. */
static char *file_in_data_dir(const char *given, const char *pattern)
{
    static char paths[2][4096];
    static int next;
    char *path = paths[next++ % 2];
    if (given == NULL && FLAGS.data_dir == NULL) {
        return NULL;
    }
    snprintf(path, sizeof(paths[0]), "%s%s%s", given != NULL ? given : FLAGS.data_dir,
             given != NULL ? "" : "/", given != NULL ? "" : pattern);
    return path;
}

/* ---- Main ---- */

static void show(void *user, const sx_train_event *e)
{
    (void)user;
    if (e->kind == SX_EVENT_PROGRESS && e->at_cadence) {
        printf("loss = %.6f, step = %lld (%.0f examples/sec)\n", e->metrics[0].value,
               (long long)e->step, e->examples_per_second);
    } else if (e->kind == SX_EVENT_END && e->n_metrics > 0) {
        printf("Loss for final step: %.6g.\n", e->metrics[0].value);
    }
}

static sx_status train(sx_estimator *estimator, char *train_file, char *eval_file)
{
    sx_eval_result result;
    SX_TRY(sx_estimator_train(estimator, input_fn, train_file, .max_steps = FLAGS.train_steps));
    if (eval_file == NULL) {
        return SX_OK;
    }
    SX_TRY(sx_estimator_evaluate(estimator, input_fn, eval_file, &result,
                                 .steps = FLAGS.eval_steps)); /* 0: every example */
    printf("Eval results: accuracy = %.4f, global_step = %lld, loss = %.4f (%lld examples%s)\n",
           result.metrics[0].value, (long long)result.step, result.loss, (long long)result.examples,
           result.steps > 0 ? ", limited by --eval_steps" : "");
    return SX_OK;
}

static sx_status run(void)
{
    static const sx_model_def model = SX_MODEL_DEF(.name = "tpu_mnist", .build = model_fn);
    char *train_file = file_in_data_dir(FLAGS.train_file, "train-*");
    char *eval_file = file_in_data_dir(FLAGS.eval_file, "test-*");
    sx_estimator *estimator = NULL;
    if (train_file == NULL) {
        return sx_error(SX_INVALID_ARGUMENT, "--train_file or --data_dir must be set for training");
    }
    const sx_run_config *config =
        sx_run_config_of(.master = FLAGS.master, .evaluation_master = FLAGS.master,
                         .model_dir = FLAGS.model_dir, .device = FLAGS.device,
                         .tpu_config = {.iterations_per_loop = FLAGS.iterations}, .observer = show);
    SX_TRY(sx_tpu_estimator_create(&model, &estimator, .config = config, .use_tpu = FLAGS.use_tpu,
                                   .train_batch_size = FLAGS.batch_size,
                                   .eval_batch_size = FLAGS.batch_size));
    sx_status status = train(estimator, train_file, eval_file);
    sx_estimator_destroy(estimator);
    return status;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!parse_flags(argc, argv)) {
        fprintf(stderr,
                "usage: %s [--use_tpu] [--master M] [--device D] [--iterations N] "
                "[--batch_size N] [--train_steps N] [--eval_steps N] [--learning_rate R] "
                "[--train_file F] [--eval_file F] [--data_dir DIR] [--model_dir DIR]\n",
                argv[0]);
        return 2;
    }
    sx_status status = run();
    if (status != SX_OK) {
        fprintf(stderr, "%s: %s\n", argv[0], sx_status_message(status));
    }
    int code = status != SX_OK;
    sx_status_free(status);
    return code;
}
