/* Calls every public function that takes options, from C and from C++, with one source.
 *
 *   test_older_caller.sh   as C against headers whose option structs lack their last fields, with
 *                          today's library. Every option struct lies at the end of a page, with
 *                          nothing mapped after it, so that a read of a field that the program does
 *                          not have ends it; their types are printed.
 *   test_cpp.sh            as C++17 against sextant.hpp: prints what the C program prints, among it
 *                          the graphs that the calls built.
 *
 *     calls FOLDER */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __cplusplus

#include <sextant/sextant.hpp>
#define O(option)          sx::option
#define OPTIONS(type, ...) sx::args<type>(__VA_ARGS__)
#define VALUE(call)        call

#else

#include <sextant/sextant.h>
#define O(option)          .option
#define OPTIONS(type, ...) (*SX_ARGS_(type, __VA_ARGS__))
#define VALUE(call)        (*(call)) /* sx_run_config_of() and the like give a pointer */

#ifdef OLDER
/* A copy of the struct whose last byte is the last one of a page; never freed. Prints the type, so
 * that the script sees which structs have been here. */
static const void *at_page_end(const char *type, const void *args, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t pages = (size + page - 1) / page;
    char *base =
        mmap(NULL, (pages + 1) * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED || mprotect(base + pages * page, page, PROT_NONE) != 0) {
        perror("mmap");
        exit(1);
    }
    puts(type);
    return memcpy(base + pages * page - size, args, size);
}
#undef SX_ARGS_
#define SX_ARGS_(type, ...)                                                              \
    ((const type *)at_page_end(#type, &(type){.struct_size = sizeof(type), __VA_ARGS__}, \
                               sizeof(type)))
#define LAST(value) at_page_end("", &(value), sizeof(value))
#endif

#endif

#ifndef LAST
#define LAST(value) (&(value))
#endif

#define CHECK(...)                                                                  \
    do {                                                                            \
        sx_status status_ = (__VA_ARGS__);                                          \
        if (status_ != SX_OK) {                                                     \
            fprintf(stderr, "line %d: %s\n", __LINE__, sx_status_message(status_)); \
            exit(1);                                                                \
        }                                                                           \
    } while (0)

enum { ROWS = 12 };
static float features[ROWS][4];
static int64_t labels[ROWS];
static uint8_t images[ROWS][6][6][1];

static sx_tensor tensor(sx_type type, void *data)
{
    sx_tensor made;
    made.type = type;
    made.data = data;
    return made;
}

/* The rows of `first`, [ROWS, ...], and their labels. */
static sx_dataset *open_rows(const char *name, sx_type type, void *first)
{
    const char *const names[] = {name, "label"};
    const sx_tensor tensors[] = {tensor(type, first), tensor(sx_type_of(SX_I64, ROWS), labels)};
    sx_dataset *data = NULL;
    CHECK(sx_dataset_from_tensors(2, names, tensors, NULL, NULL, &data));
    return data;
}

/* ---- Layers and operators ---- */

static sx_spec net(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_value x = sx_dense(b, in->features, 8, O(activation) = SX_RELU);
    return sx_classifier_spec(b, sx_dense(b, x, 3), in->labels,
                              O(optimizer) =
                                  sx_cross_shard_optimizer(sx_adam(O(learning_rate) = .01)));
}

static void build_everything(void)
{
    static float four[4] = {1, 2, 3, 4};
    static uint32_t seed[2] = {1, 2};
    static int64_t zero;
    sx_builder *b = NULL;
    sx_graph *g = NULL;
    char *text = NULL;
    CHECK(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 8, 8, 4));
    x = sx_conv2d(b, x, 4, 3, O(padding) = SX_SAME);
    x = sx_batch_norm(b, x, O(momentum) = .9);
    x = sx_max_pool2d(b, x, 2);
    x = sx_average_pool2d(b, x, 2);
    sx_output(b, "layers", sx_dense(b, sx_flatten(b, x), 3));

    sx_value y = sx_input(b, "y", sx_type_of(SX_F32, SX_BATCH, 4, 4, 2));
    sx_value w = sx_constant(b, tensor(sx_type_of(SX_F32, 1, 1, 2, 2), four));
    sx_output(b, "conv", sx_nn_conv2d(b, y, w, O(strides) = {1}));
    sx_output(b, "max_pool", sx_nn_max_pool2d(b, y, O(window) = {2}));
    sx_output(b, "avg_pool", sx_nn_avg_pool2d(b, y, O(window) = {2}));
    sx_output(b, "pad", sx_pad(b, y, O(before) = {0, 1, 1}));
    sx_output(b, "mirror_pad", sx_mirror_pad(b, y, O(before) = {0, 1, 1}, O(after) = {0, 1, 1}));
    sx_output(b, "sum", sx_reduce_sum(b, y));
    sx_output(b, "max", sx_reduce_max(b, y));
    sx_output(b, "mean", sx_reduce_mean(b, y));
    sx_output(b, "moments", sx_moments(b, y));
    sx_output(b, "size", sx_size(b, y));
    sx_output(b, "reshape", sx_reshape(b, y, SX_BATCH, 32));
    sx_output(b, "transpose", sx_transpose(b, y, 0, 3, 1, 2));
    sx_output(b, "concat", sx_concat(b, -1, y, sx_relu(b, y), y));
#ifndef OLDER
    sx_output(b, "slice", sx_slice(b, y, O(begin) = {0, 1, 1, 0}, O(size) = {SX_BATCH, 2, 3, 2}));
    sx_output(b, "sum_of_two", sx_reduce_sum(b, y, O(axes) = SX_AXES(1, 2), O(keep_dims) = true));
#endif

    sx_value m = sx_constant(b, tensor(sx_type_of(SX_F32, 2, 2), four));
    sx_value one = sx_constant_f32(b, 1);
    sx_value ok = sx_less(b, sx_constant_f32(b, 0), one);
    sx_value step = sx_constant(b, tensor(sx_scalar_type(SX_I64), &zero));
    sx_value key = sx_constant(b, tensor(sx_type_of(SX_U32, 2), seed));
    sx_output(b, "broadcast", sx_broadcast_to(b, one, 2, 3));
    sx_output(b, "argmax", sx_argmax(b, m));
    sx_output(b, "cumsum", sx_cumsum(b, m));
    sx_output(b, "matmul", sx_matmul(b, m, m));
    sx_output(b, "one_hot", sx_one_hot(b, sx_argmax(b, m), O(depth) = 2));
    sx_value low = sx_constant_f32(b, -1);
    sx_output(b, "fake_quant", sx_fake_quant(b, m, low, one));
    sx_output(b, "quantize_dequantize", sx_quantize_dequantize(b, m, low, one));
    static const char *const known[] = {"a", "b"};
    sx_value texts = sx_input(b, "texts", sx_type_of(SX_STRING, SX_BATCH));
    sx_value parts = sx_string_split_padded(b, texts, O(length) = 2);
    sx_output(b, "ids", sx_vocabulary_lookup(b, parts, O(words) = known, O(n_words) = 2));
    sx_output(b, "dropout", sx_nn_dropout(b, m, key, step, O(rate) = .5));
    sx_output(b, "momentum", sx_apply_momentum(b, m, m, m, one, ok, O(momentum) = .9));
    sx_output(b, "adam", sx_apply_adam(b, m, m, m, m, one, step, ok));
    sx_output(b, "rmsprop",
              sx_apply_rmsprop(b, m, m, SX_NO_VALUE, SX_NO_VALUE, m, one, ok, O(rho) = .9));
    CHECK(sx_builder_finish(b, &g));
    CHECK(sx_graph_print(g, &text));
    puts(text);
    sx_text_free(text);
    sx_graph_destroy(g);
    sx_builder_destroy(b);

    CHECK(sx_builder_create(&b));
    sx_value z = sx_input(b, "z", sx_type_of(SX_F32, SX_BATCH, 4));
    sx_value each = sx_reshape(b, sx_dense(b, z, 1), SX_BATCH);
    sx_value mean = sx_compute_average_loss(b, sx_square(b, each), O(sample_weight) = each);
    sx_output(b, "loss", mean);
    sx_minimize(b, mean);
    CHECK(sx_builder_finish(b, &g));
    CHECK(sx_graph_print(g, &text));
    puts(text);
    sx_text_free(text);
    sx_graph_destroy(g);
    sx_builder_destroy(b);

    /* An error quotes the line of the call. */
    CHECK(sx_builder_create(&b));
    (void)sx_dense(b, sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 2, 2)), 3, O(no_bias) = true);
    sx_status status = sx_builder_finish(b, &g);
    puts(sx_status_message(status));
    sx_status_free(status);
    sx_builder_destroy(b);
}

/* ---- Data ---- */

static sx_status copy_map(const sx_map_call *call, void *user)
{
    (void)user;
    memcpy(call->out[0].data, call->in[0].data, sizeof(features[0]));
    memcpy(call->out[1].data, call->in[1].data, sizeof(labels[0]));
    return SX_OK;
}

static void read_everything(void)
{
    sx_dataset *data = open_rows("features", sx_type_of(SX_F32, ROWS, 4), features);
    sx_iterator *iterator = NULL;
    const struct sx_batch_data *batch = NULL;
    CHECK(sx_dataset_shuffle(&data, O(seed) = 3));
    CHECK(sx_dataset_map(&data, O(name) = "copy", O(fn) = copy_map));
    CHECK(sx_dataset_batch(&data, O(size) = 5));
    CHECK(sx_iterator_create(data, &iterator, O(workers) = 1));
    CHECK(sx_iterator_next(iterator, &batch));
    printf("a batch of %lld, records", (long long)batch->size);
    for (int64_t i = 0; i < batch->size; i++) {
        printf(" %lld", (long long)batch->ids[i]);
    }
    puts("");
    sx_iterator_destroy(iterator);
    sx_dataset_release(data);

    data = open_rows("image", sx_type_of(SX_U8, ROWS, 6, 6, 1), images);
    CHECK(sx_image_pipeline(&data, O(image) = {5, 5, 1}, O(training) = true, O(random_zoom) = .1f));
    sx_dataset_release(data);
    const sx_data_options options = OPTIONS(sx_data_options, O(label_base) = 0);
    CHECK(sx_data_open("generated:digits?n=3", LAST(options), &data, NULL));
    sx_dataset_release(data);
}

/* ---- Training ---- */

static sx_status rows_input(void *user, const sx_input_context *context, sx_dataset **out)
{
    (void)user;
    (void)context;
    *out = open_rows("features", sx_type_of(SX_F32, ROWS, 4), features);
    return SX_OK;
}

static sx_status print_row(void *user, const sx_prediction *row)
{
    ++*(int *)user;
    printf("row %lld: class %d, probability %.6f\n", (long long)row->number, row->classid,
           (double)row->probability);
    return SX_OK;
}

static void mean_step(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_output(b, "mean", sx_square(b, in->features));
}

static void train_everything(const char *dir)
{
    const sx_model_def def = OPTIONS(sx_model_def, O(version) = SX_MODEL_VERSION, O(name) = "net",
                                     O(build) = net, O(features) = 4);
    char run[4096], base[4096], *exported = NULL;
    snprintf(run, sizeof(run), "%s/run", dir);
    snprintf(base, sizeof(base), "%s/export", dir);
    sx_strategy *strategy = NULL, *no_strategy = NULL;
    sx_device_list *devices = NULL;
    sx_tpu_cluster *cluster = NULL;
    CHECK(sx_list_devices(&devices, O(device) = "cpu"));
    sx_device_list_free(devices);
    CHECK(sx_tpu_cluster_resolve(&cluster, O(tpu) = "local"));
    sx_tpu_cluster_free(cluster);
    CHECK(sx_mirrored_strategy(&strategy, O(device) = "cpu", O(virtual_devices) = 2));
    sx_strategy_release(strategy);
    CHECK(sx_central_storage_strategy(&strategy, O(device) = "cpu", O(virtual_devices) = 2));
    sx_strategy_release(strategy);
    CHECK(sx_one_device_strategy(&strategy, O(device) = "cpu"));
    sx_status no_tpu = sx_tpu_strategy(&no_strategy, O(tpu) = "local", O(zone) = "a");
    printf("a TPU: %s\n", sx_code_name(sx_status_code(no_tpu)));
    sx_status_free(no_tpu);

    sx_estimator *e = NULL;
    sx_eval_result result;
    int rows = 0;
    const sx_run_config config = VALUE(sx_run_config_of(O(model_dir) = run, O(train_batch_size) = 4,
                                                        O(train_distribute) = strategy));
    const sx_train_spec train = VALUE(sx_train_spec_of(O(input) = rows_input, O(max_steps) = 6));
    const sx_eval_spec eval = VALUE(sx_eval_spec_of(O(input) = rows_input));
    CHECK(sx_estimator_create(LAST(def), LAST(config), NULL, &e));
    CHECK(sx_estimator_train(e, rows_input, NULL, O(max_steps) = 3));
    CHECK(sx_train_and_evaluate(e, LAST(train), LAST(eval), &result));
    CHECK(sx_estimator_evaluate(e, rows_input, NULL, &result, O(checkpoint) = "latest"));
    printf("step %lld, loss %.6f\n", (long long)result.step, result.loss);
    CHECK(sx_estimator_predict(e, rows_input, NULL, print_row, &rows));
    printf("%d rows\n", rows);
    CHECK(sx_estimator_export_saved_model(e, base, &exported));
    sx_servable *servable = NULL;
    const sx_servable_options on_cpu = OPTIONS(sx_servable_options, O(device) = "cpu");
    CHECK(sx_servable_load(exported, LAST(on_cpu), &servable));
    sx_servable_release(servable);
    sx_client *client = NULL;
    const sx_client_options patient = OPTIONS(sx_client_options, O(timeout_ms) = 100000);
    CHECK(sx_client_open("localhost:8501", LAST(patient), &client));
    sx_client_close(client);
    sx_library *library = NULL;
    sx_functions *functions = NULL;
    const sx_functions_options one = OPTIONS(sx_functions_options, O(threads) = 1);
    CHECK(sx_library_create(&library));
    sx_builder *of_function = NULL;
    sx_variable_spec number;
    memset(&number, 0, sizeof(number));
    number.name = "number";
    number.type = sx_scalar_type(SX_F32);
    CHECK(sx_builder_create_function(&of_function));
    sx_output(of_function, "loss", sx_square(of_function, sx_variable(of_function, &number)));
    CHECK(sx_library_add(library, "model", of_function));
    sx_builder_destroy(of_function);
    CHECK(sx_library_add_training(library, "train", "model",
                                  O(optimizer) = sx_sgd(O(learning_rate) = .1)));
    CHECK(sx_library_finish(library));
    CHECK(sx_functions_open(library, LAST(one), &functions));
    sx_functions_close(functions);
    sx_library_destroy(library);
    sx_text_free(exported);
    sx_estimator_destroy(e);
    CHECK(sx_tpu_estimator_create(LAST(def), &e, O(config) = LAST(config)));
    sx_estimator_destroy(e);
    sx_strategy_release(strategy);

    sx_model *m = NULL;
    sx_dataset *data = open_rows("features", sx_type_of(SX_F32, ROWS, 4), features);
    CHECK(sx_model_create(LAST(def), NULL, &m));
    CHECK(sx_model_to(m, O(device) = "cpu"));
    CHECK(sx_model_compile(m, O(optimizer) = sx_sgd(O(learning_rate) = .1), O(device) = "cpu"));
    CHECK(sx_model_fit(m, data, O(epochs) = 2, O(batch_size) = 4));
    CHECK(sx_model_evaluate(m, data, &result));
    printf("loss %.6f\n", result.loss);
    sx_model_destroy(m);

    sx_training *t = NULL;
    sx_iterator *batches = NULL;
    sx_training_step last;
    const sx_run_config on_host = VALUE(sx_run_config_of(O(device) = "host", O(threads) = 1));
    CHECK(sx_training_open(LAST(def), &t, O(config) = LAST(on_host), O(data) = data));
    CHECK(sx_dataset_batch(&data, O(size) = 4));
    CHECK(sx_iterator_create(data, &batches));
    CHECK(sx_training_begin(t, batches));
    CHECK(sx_training_run(t, 2, &last));
    printf("step %lld, loss %.6f\n", (long long)last.step, last.metrics[0].value);

    sx_distributed *parts = NULL, *made = NULL;
    sx_metric_object *metric = NULL;
    sx_step_program *step = NULL;
    bool more = false;
    strategy = sx_training_strategy(t);
    CHECK(sx_distribute_dataset(strategy, data, &parts, O(global_batch_size) = 4));
    CHECK(sx_distribute_datasets_from_function(strategy, rows_input, NULL, &made,
                                               O(global_batch_size) = 4));
    CHECK(sx_training_add_step(t, mean_step, &step, O(name) = "mean"));
    CHECK(sx_metric_create(&metric, O(name) = "mean"));
    CHECK(sx_step_run(step, parts, &more));
    CHECK(sx_metric_update_step(metric, step));
    printf("mean %.6f\n", sx_metric_result(metric));
    sx_metric_free(metric);
    sx_distributed_free(made);

    sx_devices *opened = NULL;
    sx_compiled_graph *program = NULL;
    const sx_graph *graph = NULL;
    CHECK(sx_training_graph(t, SX_PREDICT, &graph));
    CHECK(sx_devices_open(&opened, O(device) = "host"));
    CHECK(sx_compile_graph(opened, graph, 4, &program));
    printf("%d arguments\n", sx_compiled_graph_arg_count(program));
    sx_compiled_graph_free(program);
    sx_devices_close(opened);
    sx_training_free(t);
    sx_distributed_free(parts);
    sx_iterator_destroy(batches);
    sx_dataset_release(data);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        return 2;
    }
    for (int i = 0; i < ROWS; i++) {
        labels[i] = i % 3;
        features[i][i % 4] = 1;
    }
    build_everything();
    read_everything();
    train_everything(argv[1]);
    puts("done");
    return 0;
}
