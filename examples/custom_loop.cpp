// Custom training with a strategy in C++17: step functions that run on all replicas, a distributed
// data set, a metric, and a loop over them; the weights are those of custom_loop.c.
//
//     custom_loop RUN_DIR [STEPS [DATA [VIRTUAL_DEVICES]]]
//
//     c++ -std=c++17 custom_loop.cpp $(pkg-config --cflags --libs sextant) -o custom_loop
#include <cstdio>
#include <cstdlib>

#include <sextant/sextant.hpp>

// in->features: [N,28,28,1] in [0,1]
static sx_spec digits(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_value x = sx_conv2d(b, in->features, 8, 3, sx::strides = 2, sx::activation = SX_RELU);
    x = sx_dropout(b, sx_flatten(b, x), 0.2);
    sx_value logits = sx_dense(b, x, sx_param_int(p, "num_classes", 10));
    return sx_classifier_spec(b, logits, in->labels,
                              sx::optimizer = sx_adam(sx::learning_rate = 1e-3));
}

static void train_step(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_spec spec = digits(b, in, p);
    sx_value loss = sx_compute_average_loss(b, spec.loss);
    sx_output(b, "loss", loss);
    sx_output(b, "accuracy", sx_compute_average_loss(b, spec.metrics[0].value));
    sx_minimize(b, loss, sx::optimizer = spec.optimizer);
}

static void run(const char *dir, long long steps, const char *data_spec, int virtual_devices)
{
    const sx_model_def def = SX_MODEL_DEF(sx::name = "digits", sx::build = digits,
                                          sx::image = {28, 28, 1}, sx::scale = SX_0_1);
    sx::unique<sx_strategy> strategy;
    sx::unique<sx_dataset> data;
    sx::unique<sx_distributed> parts;
    sx::unique<sx_training> t;
    sx::unique<sx_metric_object> accuracy;
    sx::check(sx_mirrored_strategy(strategy.out(), sx::device = "cpu",
                                   sx::virtual_devices = virtual_devices));
    sx::check(sx_data_open(data_spec, nullptr, data.out(), nullptr));
    const auto config = sx_run_config_of(sx::model_dir = dir, sx::tf_random_seed = 7,
                                         sx::train_distribute = strategy);
    sx::check(sx_training_open(&def, t.out(), sx::config = &config, sx::data = data,
                               sx::train_step = train_step));
    sx::check(sx_distribute_dataset(strategy, data, parts.out(), sx::global_batch_size = 32));
    sx::check(sx_metric_create(accuracy.out(), sx::name = "accuracy"));

    sx_step_program *step = sx_training_train_step(t);
    bool more;
    sx::check(sx_training_begin_distributed(t, parts));
    while (sx_training_global_step(t) < steps) {
        sx::check(sx_step_run(step, parts, &more));
        sx::check(sx_metric_update_step(accuracy, step));
        if (sx_training_global_step(t) % 5 == 0) {
            std::printf("step %lld: accuracy %.4f\n",
                        static_cast<long long>(sx_training_global_step(t)),
                        sx_metric_result(accuracy));
            sx_metric_reset(accuracy);
            sx::check(sx_training_save(t));
        }
    }
    sx::check(sx_training_save(t));
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        std::fprintf(stderr, "usage: %s RUN_DIR [STEPS [DATA [VIRTUAL_DEVICES]]]\n", argv[0]);
        return 2;
    }
    try {
        run(argv[1], argc > 2 ? std::atoll(argv[2]) : 60,
            argc > 3 ? argv[3] : "generated:digits?n=1000&seed=1",
            argc > 4 ? std::atoi(argv[4]) : 4);
    } catch (const sx::error &e) {
        std::fprintf(stderr, "%s: %s\n", argv[0], e.what());
        return 1;
    }
    return 0;
}
