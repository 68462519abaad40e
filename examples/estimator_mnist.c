/* Trains on digits with the Estimator API: a model function, input functions, and a model_dir from
 * which a second run of this program continues.
 *
 *     estimator_mnist MODEL_DIR [MAX_STEPS [TRAIN_DATA [TEST_DATA]]]
 *
 * The data may have any form that `sextant train --data` accepts; by default, generated digits. */
#include <stdio.h>
#include <stdlib.h>

#include <sextant/sextant.h>

/* features: [N,28,28,1] in [0,1]; labels: [N] */
static sx_spec mnist_fn(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_value x = sx_conv2d(b, in->features, 32, 3, .activation = SX_RELU);
    x = sx_max_pool2d(b, x, 2);
    x = sx_conv2d(b, x, 64, 3, .activation = SX_RELU);
    x = sx_flatten(b, sx_max_pool2d(b, x, 2));
    x = sx_dropout(b, x, sx_param_float(p, "dropout", 0.5));
    sx_value logits = sx_dense(b, x, 10);
    return sx_classifier_spec(b, logits, in->labels, .optimizer = sx_adam(.learning_rate = 1e-3));
}

static const sx_model_def mnist =
    SX_MODEL_DEF(.name = "mnist", .build = mnist_fn, .image = {28, 28, 1}, .scale = SX_0_1);

/* Returns unbatched elements: the estimator decodes, scales, shuffles and batches them. */
static sx_status open_data(void *spec, const sx_input_context *context, sx_dataset **out_dataset)
{
    (void)context;
    return sx_data_open(spec, NULL, out_dataset, NULL);
}

static void show(void *user, const sx_train_event *e)
{
    (void)user;
    if (e->kind == SX_EVENT_PROGRESS && e->at_cadence) {
        printf("step %lld  loss %.4f  accuracy %.4f  %.0f images/s\n", (long long)e->step,
               e->metrics[0].value, e->metrics[1].value, e->examples_per_second);
    } else if (e->kind == SX_EVENT_END) {
        printf("%s at step %lld\n", e->text, (long long)e->step);
    }
}

static sx_status show_first(void *user, const sx_prediction *row)
{
    (void)user;
    if (row->number < 5) {
        printf("example %lld: class %d, probability %.3f\n", (long long)row->number, row->classid,
               row->probability);
    }
    return SX_OK;
}

static sx_status export_into(sx_estimator *e, const char *model_dir)
{
    char base[4096], *dir = NULL;
    snprintf(base, sizeof(base), "%s/export", model_dir);
    SX_TRY(sx_estimator_export_saved_model(e, base, &dir));
    printf("exported to %s\n", dir);
    sx_text_free(dir);
    return SX_OK;
}

static sx_status run(sx_estimator *e, int64_t max_steps, char *train_data, char *test_data)
{
    const sx_train_spec *train =
        sx_train_spec_of(.input = open_data, .user = train_data, .max_steps = max_steps);
    const sx_eval_spec *eval = sx_eval_spec_of(.input = open_data, .user = test_data);
    sx_eval_result result;
    SX_TRY(sx_train_and_evaluate(e, train, eval, &result));
    printf("test: step %lld, %lld examples, loss %.4f, accuracy %.4f\n", (long long)result.step,
           (long long)result.examples, result.loss, result.metrics[0].value);
    return sx_estimator_predict(e, open_data, test_data, show_first, NULL);
}

int main(int argc, char **argv)
{
    static char drawn_train[] = "generated:digits?n=2000&seed=1";
    static char drawn_test[] = "generated:digits?n=500&seed=2";
    sx_estimator *e = NULL;
    if (argc < 2) {
        fprintf(stderr, "usage: %s MODEL_DIR [MAX_STEPS [TRAIN_DATA [TEST_DATA]]]\n", argv[0]);
        return 2;
    }
    const sx_run_config *config = sx_run_config_of(.model_dir = argv[1], .tf_random_seed = 1,
                                                   .log_step_count_steps = 20, .observer = show);
    sx_status status = sx_estimator_create(&mnist, config, NULL, &e);
    if (status == SX_OK) {
        status = run(e, argc > 2 ? atoll(argv[2]) : 200, argc > 3 ? argv[3] : drawn_train,
                     argc > 4 ? argv[4] : drawn_test);
    }
    if (status == SX_OK) {
        status = export_into(e, argv[1]);
    }
    if (status != SX_OK) {
        fprintf(stderr, "%s: %s\n", argv[0], sx_status_message(status));
    }
    sx_estimator_destroy(e);
    int code = status != SX_OK;
    sx_status_free(status);
    return code;
}
