/* Digits in C++17: a model of your own, trained by the Model face, and what it predicts.
 *
 *     digits [EPOCHS [TRAIN_DATA [TEST_DATA]]]
 *
 *     c++ -std=c++17 digits.cpp $(pkg-config --cflags --libs sextant) -o digits */
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <sextant/sextant.hpp>

/* in->features: [N,28,28,1] in [0,1] */
static sx_spec digits(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_value x = in->features;
    for (int filters : {16, 32}) {
        x = sx_conv2d(b, x, filters, 3, sx::padding = SX_SAME, sx::no_bias = true);
        x = sx_relu(b, sx_batch_norm(b, x, sx::momentum = .9));
        x = sx_max_pool2d(b, x, 2);
    }
    x = sx_dropout(b, sx_flatten(b, x), sx_param_float(p, "dropout", .25));
    return sx_classifier_spec(b, sx_dense(b, x, 10), in->labels);
}

static sx_status print_first(void *, const sx_prediction *row)
{
    if (row->number < 5) {
        std::printf("example %lld: class %d, probability %.3f\n",
                    static_cast<long long>(row->number), row->classid,
                    static_cast<double>(row->probability));
    }
    return SX_OK;
}

static void run(std::int64_t epochs, const char *train_data, const char *test_data)
{
    const sx_model_def def =
        SX_MODEL_DEF(sx::name = "digits", sx::build = digits, sx::image = {28, 28, 1},
                     sx::scale = SX_0_1, sx::random_crop = 2, sx::random_shear = 10);
    sx::unique<sx_dataset> train, test;
    sx::unique<sx_model> model;
    sx::check(sx_data_open(train_data, nullptr, train.out(), nullptr));
    sx::check(sx_data_open(test_data, nullptr, test.out(), nullptr));
    sx::check(sx_model_create(&def, nullptr, model.out()));
    sx::check(sx_model_compile(model, sx::optimizer = sx_adam(sx::learning_rate = 2e-3),
                               sx::seed = 1));
    sx::check(sx_model_fit(model, train, sx::epochs = epochs, sx::batch_size = 32,
                           sx::validation_data = test));

    int rows = 0;
    const sx_history_row *history = sx_model_history(model, &rows);
    for (int i = 0; i < rows; i++) {
        std::printf("epoch %lld", static_cast<long long>(history[i].epoch));
        for (int k = 0; k < history[i].n_metrics; k++) {
            std::printf("  %s %.4f", history[i].metrics[k].name, history[i].metrics[k].value);
        }
        std::printf("\n");
    }
    sx::check(sx_model_predict(model, test, print_first, nullptr));
}

int main(int argc, char **argv)
{
    try {
        run(argc > 1 ? std::atoll(argv[1]) : 3,
            argc > 2 ? argv[2] : "generated:digits?n=2000&seed=1",
            argc > 3 ? argv[3] : "generated:digits?n=500&seed=2");
    } catch (const sx::error &e) {
        std::fprintf(stderr, "%s: %s\n", argv[0], e.what());
        return 1;
    }
    return 0;
}
