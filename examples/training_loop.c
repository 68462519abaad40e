/* Trains on digits in a loop of its own, with the weights that `sextant train` computes.
 *
 *     training_loop RUN_DIR [STEPS [TRAIN_DATA [TEST_DATA [THREADS [VIRTUAL_DEVICES]]]]]
 *
 * Called again with more steps, it continues; so does `sextant train examples/training_loop.c
 * --model-dir RUN_DIR`, and this program continues the runs of that command. */
#include <stdio.h>
#include <stdlib.h>

#include <sextant/sextant.h>

enum { SEED = 7, BATCH = 32, SAVE_STEPS = 5 };

/* in->features: [N,28,28,1] in [0,1] */
static sx_spec digits(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_value x = sx_conv2d(b, in->features, 8, 3, .strides = 2, .activation = SX_RELU);
    x = sx_dropout(b, sx_flatten(b, x), 0.2);
    sx_value logits = sx_dense(b, x, sx_param_int(p, "num_classes", 10));
    return sx_classifier_spec(b, logits, in->labels, .optimizer = sx_adam(.learning_rate = 1e-3));
}

SX_MODEL(digits, .build = digits, .image = {28, 28, 1}, .scale = SX_0_1)

/* The loop: batches of a pipeline, in the order of `sextant train`; steps; checkpoints. */
static sx_status train(sx_training *t, int64_t steps, sx_dataset **data, sx_iterator **batches)
{
    sx_training_step s;
    SX_TRY(sx_training_preprocess(t, SX_TRAIN, data));
    SX_TRY(sx_dataset_shuffle(data, .seed = SEED));
    SX_TRY(sx_dataset_batch(data, .size = BATCH));
    SX_TRY(sx_dataset_repeat(data, 0));
    SX_TRY(sx_iterator_create(*data, batches));
    SX_TRY(sx_training_begin(t, *batches));
    while (sx_training_global_step(t) < steps) {
        SX_TRY(sx_training_run(t, 1, &s));
        if (s.ends_epoch) {
            printf("epoch %lld: step %lld, mean loss %.6f\n", (long long)s.epoch, (long long)s.step,
                   s.means[0]);
        }
        if (s.step % SAVE_STEPS == 0) {
            SX_TRY(sx_training_save(t));
        }
    }
    return sx_training_save(t);
}

static sx_status run(const char *dir, int64_t steps, const char *train_data, const char *test_data,
                     int threads, int virtual_devices)
{
    sx_dataset *data = NULL, *test = NULL;
    sx_iterator *batches = NULL;
    sx_training *t = NULL;
    sx_eval_result result;
    const sx_run_config *config =
        sx_run_config_of(.model_dir = dir, .tf_random_seed = SEED, .train_batch_size = BATCH,
                         .threads = threads, .device = "cpu", .virtual_devices = virtual_devices);
    sx_status status = sx_data_open(train_data, NULL, &data, NULL);
    SX_TRY_GOTO(status, status, done);
    SX_TRY_GOTO(status, sx_data_open(test_data, NULL, &test, NULL), done);
    SX_TRY_GOTO(status, sx_training_open(&sextant_model_v1, &t, .config = config, .data = data),
                done);
    SX_TRY_GOTO(status, train(t, steps, &data, &batches), done);
    SX_TRY_GOTO(status, sx_training_evaluate(t, test, &result), done);
    printf("test: step %lld, %lld examples, loss %.6f, accuracy %.4f\n", (long long)result.step,
           (long long)result.examples, result.loss, result.metrics[0].value);
done:
    sx_training_free(t);
    sx_iterator_destroy(batches);
    sx_dataset_release(test);
    sx_dataset_release(data);
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr,
                "usage: %s RUN_DIR [STEPS [TRAIN_DATA [TEST_DATA [THREADS [VIRTUAL_DEVICES]]]]]\n",
                argv[0]);
        return 2;
    }
    sx_status status = run(argv[1], argc > 2 ? atoll(argv[2]) : 60,
                           argc > 3 ? argv[3] : "generated:digits?n=1000&seed=1",
                           argc > 4 ? argv[4] : "generated:digits?n=500&seed=2",
                           argc > 5 ? atoi(argv[5]) : 0, argc > 6 ? atoi(argv[6]) : 0);
    if (status != SX_OK) {
        fprintf(stderr, "%s: %s\n", argv[0], sx_status_message(status));
    }
    int code = status != SX_OK;
    sx_status_free(status);
    return code;
}
