/* A program of an older release: tests/tools/test_older_caller.sh compiles it against headers whose
 * option structs lack their last field, and runs it with today's library. Every option struct lies
 * at the end of a page, with nothing mapped after it, so that a read of a field that the program
 * does not have ends it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <sextant/sextant.h>

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

static sx_dataset *open_rows(void)
{
    const char *const names[] = {"features", "label"};
    const sx_tensor tensors[] = {{sx_type_of(SX_F32, ROWS, 4), features},
                                 {sx_type_of(SX_I64, ROWS), labels}};
    sx_dataset *data = NULL;
    CHECK(sx_dataset_from_tensors(2, names, tensors, NULL, NULL, &data));
    return data;
}

/* --- layers and operators -------------------------------------------------------------------- */

static sx_spec net(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    (void)p;
    sx_value x = sx_dense(b, in->features, 8, .activation = SX_RELU);
    sx_value logits = sx_dense(b, x, 3);
    return sx_classifier_spec(b, logits, in->labels,
                              .optimizer = sx_cross_shard_optimizer(sx_adam(.learning_rate = .01)));
}

static void build_everything(void)
{
    sx_builder *b = NULL;
    sx_graph *g = NULL;
    CHECK(sx_builder_create(&b));
    sx_value x = sx_input(b, "x", sx_type_of(SX_F32, SX_BATCH, 8, 8, 4));
    x = sx_conv2d(b, x, 4, 3, .padding = SX_SAME);
    x = sx_batch_norm(b, x, .momentum = .9);
    x = sx_max_pool2d(b, x, 2);
    x = sx_average_pool2d(b, x, 2);
    sx_output(b, "layers", sx_dense(b, sx_flatten(b, x), 3));

    sx_value y = sx_input(b, "y", sx_type_of(SX_F32, SX_BATCH, 4, 4, 2));
    sx_value w =
        sx_constant(b, (sx_tensor){sx_type_of(SX_F32, 1, 1, 2, 2), (float[4]){1, 2, 3, 4}});
    sx_output(b, "conv", sx_nn_conv2d(b, y, w, .strides = {1}));
    sx_output(b, "max_pool", sx_nn_max_pool2d(b, y, .window = {2}));
    sx_output(b, "avg_pool", sx_nn_avg_pool2d(b, y, .window = {2}));
    sx_output(b, "pad", sx_pad(b, y, .before = {0, 1, 1}));
    sx_output(b, "sum", sx_reduce_sum(b, y));
    sx_output(b, "max", sx_reduce_max(b, y));
    sx_output(b, "mean", sx_reduce_mean(b, y));
    sx_output(b, "moments", sx_moments(b, y));
    sx_output(b, "size", sx_size(b, y));

    sx_value m = sx_constant(b, (sx_tensor){sx_type_of(SX_F32, 2, 2), (float[4]){1, 2, 3, 4}});
    sx_value one = sx_constant_f32(b, 1);
    sx_value ok = sx_less(b, sx_constant_f32(b, 0), one);
    int64_t zero = 0;
    sx_value step = sx_constant(b, (sx_tensor){sx_scalar_type(SX_I64), &zero});
    uint32_t seed[2] = {1, 2};
    sx_value key = sx_constant(b, (sx_tensor){sx_type_of(SX_U32, 2), seed});
    sx_output(b, "argmax", sx_argmax(b, m));
    sx_output(b, "matmul", sx_matmul(b, m, m));
    sx_output(b, "one_hot", sx_one_hot(b, sx_argmax(b, m), .depth = 2));
    sx_output(b, "dropout", sx_nn_dropout(b, m, key, step, .rate = .5));
    sx_output(b, "momentum", sx_apply_momentum(b, m, m, m, one, ok, .momentum = .9));
    sx_output(b, "adam", sx_apply_adam(b, m, m, m, m, one, step, ok));
    sx_output(b, "rmsprop",
              sx_apply_rmsprop(b, m, m, SX_NO_VALUE, SX_NO_VALUE, m, one, ok, .rho = .9));
    CHECK(sx_builder_finish(b, &g));
    sx_graph_destroy(g);
    sx_builder_destroy(b);
}

/* --- data ------------------------------------------------------------------------------------ */

static sx_status copy_map(const sx_map_call *call, void *user)
{
    (void)user;
    memcpy(call->out[0].data, call->in[0].data, sizeof(features[0]));
    memcpy(call->out[1].data, call->in[1].data, sizeof(labels[0]));
    return SX_OK;
}

static void read_everything(void)
{
    sx_dataset *data = open_rows();
    sx_iterator *iterator = NULL;
    const struct sx_batch_data *batch = NULL;
    CHECK(sx_dataset_shuffle(&data, .seed = 3));
    CHECK(sx_dataset_map(&data, .name = "copy", .fn = copy_map));
    CHECK(sx_dataset_batch(&data, .size = 5));
    CHECK(sx_iterator_create(data, &iterator, .workers = 1));
    CHECK(sx_iterator_next(iterator, &batch));
    if (batch->size != 5) {
        fprintf(stderr, "a batch of %lld\n", (long long)batch->size);
        exit(1);
    }
    sx_iterator_destroy(iterator);
    sx_dataset_release(data);

    const char *const names[] = {"image", "label"};
    const sx_tensor tensors[] = {{sx_type_of(SX_U8, ROWS, 6, 6, 1), images},
                                 {sx_type_of(SX_I64, ROWS), labels}};
    CHECK(sx_dataset_from_tensors(2, names, tensors, NULL, NULL, &data));
    CHECK(sx_image_pipeline(&data, .image = {5, 5, 1}, .training = true, .random_zoom = .1f));
    sx_dataset_release(data);
    CHECK(sx_data_open("generated:digits?n=3", SX_ARGS_(sx_data_options, .label_base = 0), &data,
                       NULL));
    sx_dataset_release(data);
}

/* --- training -------------------------------------------------------------------------------- */

static sx_status rows_input(void *user, const sx_input_context *context, sx_dataset **out)
{
    (void)user;
    (void)context;
    *out = open_rows();
    return SX_OK;
}

static sx_status count_row(void *user, const sx_prediction *row)
{
    (void)row;
    ++*(int *)user;
    return SX_OK;
}

static void train_everything(const char *dir)
{
    const sx_model_def *def = SX_ARGS_(sx_model_def, .version = SX_MODEL_VERSION, .name = "net",
                                       .build = net, .features = 4);
    char run[4096], base[4096], *exported = NULL;
    snprintf(run, sizeof(run), "%s/run", dir);
    snprintf(base, sizeof(base), "%s/export", dir);
    sx_strategy *strategy = NULL;
    sx_device_list *devices = NULL;
    sx_tpu_cluster *cluster = NULL;
    CHECK(sx_list_devices(&devices, .device = "cpu"));
    sx_device_list_free(devices);
    CHECK(sx_tpu_cluster_resolve(&cluster, .tpu = "local"));
    sx_tpu_cluster_free(cluster);
    CHECK(sx_mirrored_strategy(&strategy, .device = "cpu", .virtual_devices = 2));
    sx_strategy_release(strategy);
    CHECK(sx_one_device_strategy(&strategy, .device = "cpu"));
    sx_status no_tpu = sx_tpu_strategy(&(sx_strategy *){NULL}, .tpu = "local", .zone = "a");
    if (no_tpu == SX_OK) {
        fprintf(stderr, "a TPU was found\n");
        exit(1);
    }
    sx_status_free(no_tpu);

    sx_estimator *e = NULL;
    sx_eval_result result;
    int rows = 0;
    const sx_run_config *config =
        sx_run_config_of(.model_dir = run, .train_batch_size = 4, .train_distribute = strategy);
    CHECK(sx_estimator_create(def, config, NULL, &e));
    CHECK(sx_estimator_train(e, rows_input, NULL, .max_steps = 3));
    CHECK(sx_train_and_evaluate(e, sx_train_spec_of(.input = rows_input, .max_steps = 6),
                                sx_eval_spec_of(.input = rows_input), &result));
    CHECK(sx_estimator_evaluate(e, rows_input, NULL, &result, .checkpoint = "latest"));
    CHECK(sx_estimator_predict(e, rows_input, NULL, count_row, &rows));
    CHECK(sx_estimator_export_saved_model(e, base, &exported));
    sx_servable *servable = NULL;
    CHECK(sx_servable_load(exported, SX_ARGS_(sx_servable_options, .device = "cpu"), &servable));
    sx_servable_release(servable);
    sx_text_free(exported);
    sx_estimator_destroy(e);
    CHECK(sx_tpu_estimator_create(def, &e, .config = config));
    sx_estimator_destroy(e);
    sx_strategy_release(strategy);

    sx_model *m = NULL;
    sx_dataset *data = open_rows();
    CHECK(sx_model_create(def, NULL, &m));
    CHECK(sx_model_to(m, .device = "cpu"));
    CHECK(sx_model_compile(m, .optimizer = sx_sgd(.learning_rate = .1), .device = "cpu"));
    CHECK(sx_model_fit(m, data, .epochs = 2, .batch_size = 4));
    sx_model_destroy(m);
    sx_dataset_release(data);
    if (rows != ROWS || result.step != 6) {
        fprintf(stderr, "%d rows, step %lld\n", rows, (long long)result.step);
        exit(1);
    }
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
