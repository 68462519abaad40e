/* Photographs of flowers with a custom Estimator: hyperparameters by name, train_and_evaluate, and
 * an export with a serving input function that defines the inputs of requests.
 *
 *     sextant data from-images photos/ --out flowers/ --split train=.9,eval=.1
 *     flowers_estimator --train_data_path 'flowers/train-*' --eval_data_path 'flowers/eval-*' \
 *         --output_dir run1 --train_batch_size 32 --steps_per_eval 100 --train_steps 1000
 *
 * All other flags are hyperparameters, which the model reads by name: --nfil1 16 --dprob 0.4. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sextant/sextant.h>

/* ---- The model ---- */

static sx_value conv_block(sx_builder *b, sx_value x, int64_t filters, int64_t size, bool norm)
{
    x = sx_conv2d(b, x, filters, size, .padding = SX_SAME, .no_bias = norm);
    x = norm ? sx_batch_norm(b, x) : x;
    return sx_max_pool2d(b, sx_relu(b, x), 2);
}

/* Two convolutions and two dense layers. img: [N,HEIGHT,WIDTH,3] in [-1,1] */
static sx_value cnn_model(sx_builder *b, sx_value img, const sx_params *hparams)
{
    bool norm = sx_param_int(hparams, "batch_norm", 0) != 0;
    sx_value x = conv_block(b, img, sx_param_int(hparams, "nfil1", 16),
                            sx_param_int(hparams, "ksize1", 5), norm);
    x = conv_block(b, x, sx_param_int(hparams, "nfil2", 32), sx_param_int(hparams, "ksize2", 5),
                   norm);
    x = sx_dense(b, sx_flatten(b, x), sx_param_int(hparams, "nhidden", 128), .activation = SX_RELU);
    x = sx_dropout(b, x, sx_param_float(hparams, "dprob", 0.25));
    return sx_dense(b, x, sx_param_int(hparams, "num_classes", 5));
}

static sx_spec image_classifier(sx_builder *b, const sx_batch *in, const sx_params *hparams)
{
    sx_value ylogits = cnn_model(b, in->features, hparams);
    sx_value class_int = sx_argmax(b, ylogits, .axis = -1);
    /* `class`, the name, is added to predictions and the export if the class names are known */
    sx_spec spec = {
        .predictions = {{"probabilities", sx_softmax(b, ylogits)}, {"classid", class_int}}};
    if (in->mode != SX_PREDICT) {
        spec.loss = sx_nn_sparse_softmax_cross_entropy(b, ylogits, in->labels);
        spec.metrics[0] =
            (sx_named_value){"accuracy", sx_cast(b, sx_equal(b, class_int, in->labels), SX_F32)};
        spec.optimizer = sx_cross_shard_optimizer(
            sx_adam(.learning_rate = sx_param_float(hparams, "learning_rate", 1e-3)));
    }
    return spec;
}

/* ---- Input and serving ---- */

/* Returns unbatched elements: the estimator decodes, crops, flips and scales them according to the
 * recipe (randomly only in training), and batches them. */
static sx_status make_input_fn(void *path, const sx_input_context *context, sx_dataset **out)
{
    (void)context;
    return sx_data_open(path, NULL, out, NULL);
}

/* Requests contain encoded images as `image_bytes`, preprocessed as in evaluation. */
static sx_status serving_input_fn(void *user, sx_serving_input *input)
{
    (void)user;
    input->image_bytes = "image_bytes";
    input->recipe = "tpu-flowers";
    input->no_tensors = true;
    return SX_OK;
}

/* ---- Flags: those of the trainer, the rest is the model's ---- */

enum { MAX_HPARAMS = 32 };

typedef struct flags {
    char *train_data_path, *eval_data_path, *output_dir, *device, *train_batch_size,
        *eval_batch_size, *steps_per_eval, *train_steps, *image_size, *use_tpu, *replicas;
    char *hparams[MAX_HPARAMS + 1];
    int n_hparams;
} flags;

static bool set_flag(flags *f, char *word, char *value)
{
    const struct {
        const char *name;
        char **to;
    } rows[] = {{"train_data_path", &f->train_data_path},
                {"eval_data_path", &f->eval_data_path},
                {"output_dir", &f->output_dir},
                {"device", &f->device},
                {"train_batch_size", &f->train_batch_size},
                {"eval_batch_size", &f->eval_batch_size},
                {"steps_per_eval", &f->steps_per_eval},
                {"train_steps", &f->train_steps},
                {"image_size", &f->image_size},
                {"use_tpu", &f->use_tpu},
                {"replicas", &f->replicas}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(word, rows[i].name) == 0) {
            *rows[i].to = value;
            return true;
        }
    }
    size_t size = strlen(word) + strlen(value) + 2;
    char *text = f->n_hparams < MAX_HPARAMS ? malloc(size) : NULL;
    if (text != NULL) {
        snprintf(text, size, "%s=%s", word, value);
        f->hparams[f->n_hparams++] = text;
    }
    return text != NULL;
}

static bool parse_flags(int argc, char **argv, flags *f)
{
    int i = argc > 1 && strcmp(argv[1], "--") == 0 ? 2 : 1;
    for (; i + 1 < argc; i += 2) {
        if (strncmp(argv[i], "--", 2) != 0 || !set_flag(f, argv[i] + 2, argv[i + 1])) {
            return false;
        }
    }
    return i == argc && f->train_data_path != NULL && f->eval_data_path != NULL &&
           f->output_dir != NULL;
}

static int64_t number(const char *text, int64_t otherwise)
{
    return text != NULL ? atoll(text) : otherwise;
}

/* ---- Main ---- */

static void show(void *user, const sx_train_event *e)
{
    (void)user;
    if (e->kind == SX_EVENT_EVAL) {
        printf("Saving dict for global step %lld: accuracy = %.4f, loss = %.4f\n",
               (long long)e->step, e->metrics[1].value, e->metrics[0].value);
    }
}

static sx_status print_prediction(void *user, const sx_prediction *row)
{
    (void)user;
    if (row->number < 3) {
        printf("probabilities[%d] = %.3f, classid = %d, class = %s\n", row->classid,
               (double)row->probability, row->classid,
               row->class_name != NULL ? row->class_name : "?");
    }
    return SX_OK;
}

static sx_status export_model(sx_estimator *estimator, const char *output_dir)
{
    char base[4096], *dir = NULL;
    snprintf(base, sizeof(base), "%s/export/exporter", output_dir);
    SX_TRY(sx_estimator_export_saved_model(estimator, base, &dir,
                                           .serving_input_fn = serving_input_fn));
    printf("exported to %s\n", dir);
    sx_text_free(dir);
    return SX_OK;
}

static sx_status train_and_evaluate(const flags *f)
{
    int size = (int)number(f->image_size, 299);
    const sx_model_def model = SX_MODEL_DEF(.name = "flowers", .build = image_classifier,
                                            .image = {size, size, 3}, .recipe = "tpu-flowers");
    const sx_run_config *config =
        sx_run_config_of(.model_dir = f->output_dir, .device = f->device, .tf_random_seed = 1,
                         .replicas = (int)number(f->replicas, 0), .observer = show);
    const sx_train_spec *train_spec =
        sx_train_spec_of(.input = make_input_fn, .user = f->train_data_path,
                         .max_steps = number(f->train_steps, 1000));
    const sx_eval_spec *eval_spec =
        sx_eval_spec_of(.input = make_input_fn, .user = f->eval_data_path,
                        .every_steps = number(f->steps_per_eval, 100));
    sx_estimator *estimator = NULL;
    SX_TRY(sx_tpu_estimator_create(
        &model, &estimator, .config = config, .params = (const char *const *)f->hparams,
        .use_tpu = number(f->use_tpu, 0) != 0, .train_batch_size = number(f->train_batch_size, 32),
        .eval_batch_size = number(f->eval_batch_size, 32)));
    sx_status status = sx_train_and_evaluate(estimator, train_spec, eval_spec, NULL);
    if (status == SX_OK) {
        status = sx_estimator_predict(estimator, make_input_fn, f->eval_data_path, print_prediction,
                                      NULL, .examples = 3);
    }
    if (status == SX_OK) {
        status = export_model(estimator, f->output_dir);
    }
    sx_estimator_destroy(estimator);
    return status;
}

int main(int argc, char **argv)
{
    flags f = {0};
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!parse_flags(argc, argv, &f)) {
        fprintf(stderr,
                "usage: %s --train_data_path F --eval_data_path F --output_dir DIR [--use_tpu 1] "
                "[--device D] [--replicas N] [--train_batch_size N] [--eval_batch_size N] "
                "[--train_steps N] [--steps_per_eval N] [--image_size N] [--HPARAM VALUE ...]\n",
                argv[0]);
        return 2;
    }
    sx_status status = train_and_evaluate(&f);
    bool failed = status != SX_OK;
    if (failed) {
        fprintf(stderr, "%s: %s\n", argv[0], sx_status_message(status));
    }
    for (int i = 0; i < f.n_hparams; i++) {
        free(f.hparams[i]);
    }
    sx_status_free(status);
    return failed;
}
