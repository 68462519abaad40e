/* Trains on digits with the Model API: create, compile, fit, evaluate, save.
 *
 *     keras_style_mnist SAVE_DIR [EPOCHS [TRAIN_DATA [TEST_DATA]]]
 *
 * `sextant evaluate`, `predict` and `export` accept the saved directory. */
#include <stdio.h>
#include <stdlib.h>

#include <sextant/sextant.h>

/* in->features: [N,28,28,1] in [0,1] */
static sx_spec digits(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_value x = sx_flatten(b, in->features);
    x = sx_dense(b, x, sx_param_int(p, "hidden", 128), .activation = SX_RELU);
    x = sx_dropout(b, x, 0.2);
    return sx_classifier_spec(b, sx_dense(b, x, 10), in->labels);
}

static const sx_model_def model_def =
    SX_MODEL_DEF(.name = "digits", .build = digits, .image = {28, 28, 1}, .scale = SX_0_1);

static void show_history(const sx_model *model)
{
    int epochs;
    const sx_history_row *rows = sx_model_history(model, &epochs);
    for (int i = 0; i < epochs; i++) {
        printf("epoch %lld", (long long)rows[i].epoch);
        for (int k = 0; k < rows[i].n_metrics; k++) {
            printf("  %s %.4f", rows[i].metrics[k].name, rows[i].metrics[k].value);
        }
        printf("\n");
    }
}

static sx_status train(sx_model *model, sx_dataset *data, sx_dataset *test, int64_t epochs)
{
    sx_early_stopping patience = {.monitor = "loss", .patience = 3};
    sx_callback callbacks[] = {sx_early_stopping_callback(&patience)};
    SX_TRY(sx_model_compile(model, .optimizer = sx_adam(.learning_rate = 2e-3), .seed = 1));
    SX_TRY(sx_model_fit(model, data, .epochs = epochs, .batch_size = 32, .validation_data = test,
                        .callbacks = callbacks, .n_callbacks = 1));
    show_history(model);
    return SX_OK;
}

static sx_status run(const char *dir, int64_t epochs, const char *train_data, const char *test_data)
{
    sx_dataset *data = NULL, *test = NULL;
    sx_model *model = NULL;
    sx_eval_result result;
    sx_status status = sx_data_open(train_data, NULL, &data, NULL);
    SX_TRY_GOTO(status, status, done);
    SX_TRY_GOTO(status, sx_data_open(test_data, NULL, &test, NULL), done);
    SX_TRY_GOTO(status,
                sx_model_create(&model_def, (const char *const[]){"hidden=64", NULL}, &model),
                done);
    SX_TRY_GOTO(status, train(model, data, test, epochs), done);
    SX_TRY_GOTO(status, sx_model_evaluate(model, test, &result), done);
    printf("test: %lld examples, loss %.4f, accuracy %.4f\n", (long long)result.examples,
           result.loss, result.metrics[0].value);
    status = sx_model_save(model, dir);
done:
    sx_model_destroy(model);
    sx_dataset_release(test);
    sx_dataset_release(data);
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s SAVE_DIR [EPOCHS [TRAIN_DATA [TEST_DATA]]]\n", argv[0]);
        return 2;
    }
    sx_status status = run(argv[1], argc > 2 ? atoll(argv[2]) : 3,
                           argc > 3 ? argv[3] : "generated:digits?n=2000&seed=1",
                           argc > 4 ? argv[4] : "generated:digits?n=500&seed=2");
    if (status != SX_OK) {
        fprintf(stderr, "%s: %s\n", argv[0], sx_status_message(status));
    }
    int code = status != SX_OK;
    sx_status_free(status);
    return code;
}
