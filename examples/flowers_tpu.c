/* Trains on flowers with the Model API on a TPU: a custom model under a strategy, at one of four
 * image sizes.
 *
 *     flowers_tpu --size 192 --train 'flowers/tfrecords-jpeg-SIZExSIZE/train-*' \
 *         --val 'flowers/tfrecords-jpeg-SIZExSIZE/val-*' --epochs 12
 *
 * SIZE in a path is replaced with the image size: 192, 224, 331 or 512. The records have `image`
 * (JPEG) and `class`; all other forms of data that `sextant train --data` accepts work as well.
 * Without a TPU, the program says so and uses the devices named by --device, by default the CPU. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sextant/sextant.h>

static struct flags {
    const char *train, *val, *device, *save;
    int size, epochs, replicas, batch_size_per_replica, classes, filters;
} FLAGS = {.size = 192, .epochs = 12, .batch_size_per_replica = 16, .classes = 104, .filters = 32};

/* ---- The model ---- */

static sx_value conv_bn(sx_builder *b, sx_value x, int64_t filters, int64_t strides)
{
    x = sx_conv2d(b, x, filters, 3, .strides = strides, .padding = SX_SAME, .no_bias = true,
                  .kernel_initializer = SX_INIT_HE_NORMAL);
    return sx_relu(b, sx_batch_norm(b, x, .momentum = .9));
}

/* Five halvings for every image size: the pooling at the end reduces the rest. */
static sx_spec petals(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    int64_t filters = sx_param_int(p, "filters", 32);
    sx_value x = conv_bn(b, in->features, filters, 2);
    for (int stage = 1; stage < 5; stage++) {
        x = conv_bn(b, x, filters << stage, 2);
    }
    x = sx_dropout(b, sx_global_average_pool2d(b, x), 0.2);
    return sx_classifier_spec(b, sx_dense(b, x, sx_param_int(p, "num_classes", 104)), in->labels);
}

/* ---- The strategy ---- */

/* The TPU if there is one; else the devices given by the flags. */
static sx_status find_strategy(sx_strategy **out)
{
    sx_status status = FLAGS.device == NULL ? sx_tpu_strategy(out) : SX_OK;
    if (FLAGS.device == NULL && status == SX_OK) {
        return SX_OK;
    }
    if (status != SX_OK) {
        printf("no TPU: %.*s\n", (int)strcspn(sx_status_message(status), "\n"),
               sx_status_message(status));
        sx_status_free(status);
    }
    return FLAGS.replicas > 1
               ? sx_mirrored_strategy(out, .device = FLAGS.device, .replicas = FLAGS.replicas)
               : sx_one_device_strategy(out, .device = FLAGS.device);
}

/* ---- Data ---- */

/* Opens `pattern` with SIZE replaced by the image size. */
static sx_status open_sized(const char *pattern, sx_dataset **out)
{
    char path[4096];
    size_t n = 0;
    while (*pattern != '\0' && n + 16 < sizeof(path)) {
        if (strncmp(pattern, "SIZE", 4) == 0) {
            n += (size_t)snprintf(path + n, sizeof(path) - n, "%d", FLAGS.size);
            pattern += 4;
        } else {
            path[n++] = *pattern++;
        }
    }
    path[n] = '\0';
    return sx_data_open(path, NULL, out, NULL);
}

/* ---- Training ---- */

/* Rises for five epochs to 5e-5 per replica, then decreases by a fifth per epoch. */
static sx_optimizer exponential_lr(int replicas)
{
    return sx_adam(.learning_rate = 5e-5 * replicas, .schedule = {.kind = SX_EXPONENTIAL_DECAY,
                                                                  .in_epochs = true,
                                                                  .warmup_epochs = 5,
                                                                  .steps = 1,
                                                                  .rate = 0.8});
}

static void show(void *user, const sx_train_event *e)
{
    (void)user;
    if (e->kind == SX_EVENT_EPOCH) {
        printf("Epoch %lld/%lld - loss: %.4f - accuracy: %.4f - lr: %.2e\n", (long long)e->epoch,
               (long long)e->epochs, e->metrics[0].value, e->metrics[1].value, e->learning_rate);
    } else if (e->kind == SX_EVENT_EVAL) {
        printf("val_loss: %.4f - val_accuracy: %.4f (%lld examples)\n", e->metrics[0].value,
               e->metrics[1].value, (long long)e->examples);
    }
}

static sx_status fit(sx_strategy *strategy, sx_model *model, sx_dataset *train, sx_dataset *val)
{
    int replicas = sx_strategy_num_replicas_in_sync(strategy);
    /* as in the strategy's scope: it places the variables */
    SX_TRY(sx_model_compile(model, .train_distribute = strategy,
                            .optimizer = exponential_lr(replicas), .seed = 1, .observer = show));
    SX_TRY(sx_model_fit(model, train, .epochs = FLAGS.epochs,
                        .batch_size = FLAGS.batch_size_per_replica * replicas,
                        .validation_data = val));
    return FLAGS.save != NULL ? sx_model_save(model, FLAGS.save) : SX_OK;
}

static sx_status print_row(void *user, const sx_prediction *row)
{
    (void)user;
    if (row->number < 5) {
        printf("%lld,%d\n", (long long)row->record, row->classid);
    }
    return SX_OK;
}

static sx_status train_and_predict(sx_strategy *strategy, sx_dataset *train, sx_dataset *val)
{
    char classes[32], filters[32];
    const sx_model_def def =
        SX_MODEL_DEF(.name = "petals", .build = petals, .image = {FLAGS.size, FLAGS.size, 3},
                     .scale = SX_0_1, .augment = SX_FLIP_LEFT_RIGHT);
    sx_model *model = NULL;
    snprintf(classes, sizeof(classes), "num_classes=%d", FLAGS.classes);
    snprintf(filters, sizeof(filters), "filters=%d", FLAGS.filters);
    const char *const params[] = {classes, filters, NULL};
    SX_TRY(sx_model_create(&def, params, &model));
    sx_status status = fit(strategy, model, train, val);
    if (status == SX_OK) {
        printf("id,label\n");
        status = sx_model_predict(model, val, print_row, NULL);
    }
    sx_model_destroy(model);
    return status;
}

static sx_status run(void)
{
    sx_strategy *strategy = NULL;
    sx_dataset *train = NULL, *val = NULL;
    sx_status status = find_strategy(&strategy);
    SX_TRY_GOTO(status, status, done);
    printf("Replicas: %d (%s)\n", sx_strategy_num_replicas_in_sync(strategy),
           sx_strategy_text(strategy));
    SX_TRY_GOTO(status, open_sized(FLAGS.train, &train), done);
    SX_TRY_GOTO(status, open_sized(FLAGS.val, &val), done);
    printf("Dataset: %lld training images, %lld validation images of %d x %d\n",
           (long long)sx_dataset_count(train), (long long)sx_dataset_count(val), FLAGS.size,
           FLAGS.size);
    status = train_and_predict(strategy, train, val);
done:
    sx_dataset_release(train);
    sx_dataset_release(val);
    sx_strategy_release(strategy);
    return status;
}

/* ---- Flags ---- */

static bool set_flag(const char *name, const char *value)
{
    const struct {
        const char *name, **text;
        int *number;
    } rows[] = {{"train", &FLAGS.train, NULL},
                {"val", &FLAGS.val, NULL},
                {"device", &FLAGS.device, NULL},
                {"save", &FLAGS.save, NULL},
                {"size", NULL, &FLAGS.size},
                {"epochs", NULL, &FLAGS.epochs},
                {"replicas", NULL, &FLAGS.replicas},
                {"batch_size_per_replica", NULL, &FLAGS.batch_size_per_replica},
                {"classes", NULL, &FLAGS.classes},
                {"filters", NULL, &FLAGS.filters}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(name, rows[i].name) == 0) {
            if (rows[i].text != NULL) {
                *rows[i].text = value;
            } else {
                *rows[i].number = atoi(value);
            }
            return true;
        }
    }
    return false;
}

static bool parse_flags(int argc, char **argv)
{
    int i = argc > 1 && strcmp(argv[1], "--") == 0 ? 2 : 1;
    while (i + 1 < argc && strncmp(argv[i], "--", 2) == 0 && set_flag(argv[i] + 2, argv[i + 1])) {
        i += 2;
    }
    bool known_size =
        FLAGS.size == 192 || FLAGS.size == 224 || FLAGS.size == 331 || FLAGS.size == 512;
    return i == argc && FLAGS.train != NULL && FLAGS.val != NULL && known_size;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!parse_flags(argc, argv)) {
        fprintf(stderr,
                "usage: %s --train DATA --val DATA [--size 192|224|331|512] [--device D] "
                "[--replicas N] [--epochs N] [--batch_size_per_replica N] [--classes N] "
                "[--filters N] [--save DIR]\n",
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
