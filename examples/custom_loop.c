/* Custom training with a strategy: step functions that run on all replicas, a distributed data set,
 * metrics, and a loop over them, with the weights that `sextant train` computes.
 *
 *     custom_loop RUN_DIR [STEPS [TRAIN_DATA [TEST_DATA [VIRTUAL_DEVICES]]]]
 *
 * Called again with more steps, it continues. */
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

/* A step on the batch of all replicas: each computes its part of it. */
static void train_step(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_spec spec = digits(b, in, p);
    sx_value loss = sx_compute_average_loss(b, spec.loss);
    sx_output(b, "loss", loss);
    sx_output(b, "accuracy", sx_compute_average_loss(b, spec.metrics[0].value));
    sx_minimize(b, loss, .optimizer = spec.optimizer);
}

static void test_step(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_spec spec = digits(b, in, p);
    sx_output(b, "accuracy", spec.metrics[0].value); /* of each example */
}

static sx_status train(sx_training *t, int64_t steps, sx_distributed *data, sx_metric_object *mean)
{
    sx_step_program *step = sx_training_train_step(t);
    double loss;
    bool more;
    SX_TRY(sx_training_begin_distributed(t, data));
    while (sx_training_global_step(t) < steps) {
        SX_TRY(sx_step_run(step, data, &more));
        SX_TRY(sx_step_reduce(step, SX_REDUCE_SUM, "loss", &loss));
        SX_TRY(sx_metric_update_step(mean, step));
        if (sx_training_global_step(t) % SAVE_STEPS == 0) {
            printf("step %lld: loss %.6f, accuracy of the last %d steps %.4f\n",
                   (long long)sx_training_global_step(t), loss, SAVE_STEPS, sx_metric_result(mean));
            sx_metric_reset(mean);
            SX_TRY(sx_training_save(t));
        }
    }
    return sx_training_save(t);
}

static sx_status test(sx_training *t, sx_distributed *data, sx_metric_object *mean)
{
    sx_step_program *step;
    bool more;
    SX_TRY(sx_training_add_step(t, test_step, &step, .name = "test", .mode = SX_EVAL));
    sx_metric_reset(mean);
    SX_TRY(sx_step_run(step, data, &more));
    while (more) {
        SX_TRY(sx_metric_update_step(mean, step));
        SX_TRY(sx_step_run(step, data, &more));
    }
    printf("test: accuracy %.4f\n", sx_metric_result(mean));
    return SX_OK;
}

static sx_status run(const char *dir, int64_t steps, const char *train_data, const char *test_data,
                     int virtual_devices)
{
    sx_strategy *strategy = NULL;
    sx_training *t = NULL;
    sx_dataset *data[2] = {NULL, NULL};
    sx_distributed *parts[2] = {NULL, NULL};
    sx_metric_object *accuracy = NULL;
    sx_status status =
        sx_mirrored_strategy(&strategy, .device = "cpu", .virtual_devices = virtual_devices);
    SX_TRY_GOTO(status, status, done);
    printf("%s\n", sx_strategy_text(strategy));
    SX_TRY_GOTO(status, sx_data_open(train_data, NULL, &data[0], NULL), done);
    SX_TRY_GOTO(status, sx_data_open(test_data, NULL, &data[1], NULL), done);
    const sx_run_config *config =
        sx_run_config_of(.model_dir = dir, .tf_random_seed = SEED, .train_distribute = strategy);
    SX_TRY_GOTO(status,
                sx_training_open(&sextant_model_v1, &t, .config = config, .data = data[0],
                                 .train_step = train_step),
                done);
    SX_TRY_GOTO(status,
                sx_distribute_dataset(strategy, data[0], &parts[0], .global_batch_size = BATCH),
                done);
    SX_TRY_GOTO(status,
                sx_distribute_dataset(strategy, data[1], &parts[1], .global_batch_size = BATCH,
                                      .mode = SX_EVAL),
                done);
    SX_TRY_GOTO(status, sx_metric_create(&accuracy, .name = "accuracy"), done);
    SX_TRY_GOTO(status, train(t, steps, parts[0], accuracy), done);
    SX_TRY_GOTO(status, test(t, parts[1], accuracy), done);
done:
    sx_metric_free(accuracy);
    sx_training_free(t);
    for (int i = 0; i < 2; i++) {
        sx_distributed_free(parts[i]);
        sx_dataset_release(data[i]);
    }
    sx_strategy_release(strategy);
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s RUN_DIR [STEPS [TRAIN_DATA [TEST_DATA [VIRTUAL_DEVICES]]]]\n",
                argv[0]);
        return 2;
    }
    sx_status status =
        run(argv[1], argc > 2 ? atoll(argv[2]) : 60,
            argc > 3 ? argv[3] : "generated:digits?n=1000&seed=1",
            argc > 4 ? argv[4] : "generated:digits?n=500&seed=2", argc > 5 ? atoi(argv[5]) : 4);
    if (status != SX_OK) {
        fprintf(stderr, "%s: %s\n", argv[0], sx_status_message(status));
    }
    int code = status != SX_OK;
    sx_status_free(status);
    return code;
}
