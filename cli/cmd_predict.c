/* sextant predict: one CSV row per example, in the order of the data; with --model, JSON lines in
 * shards (predict_model.h). */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "image_files.h"
#include "io/commit.h"
#include "io/csv.h"
#include "io/file.h"
#include "origin.h"
#include "predict_job.h"
#include "predict_model.h"
#include "run_args.h"
#include "servable_args.h"

typedef struct options {
    sx_words data, image;
    const char *checkpoint, *out, *model, *signature;
    int64_t batch_size, examples, shards, max_errors, model_memory_limit;
    sx_data_args data_args;
    sx_device_args device_args;
} options;

static const sx_option rows[] = {
    {"data", SX_OPTION_LIST, SX_OPT(options, data), "input data, in any form that train takes",
     "DATA"},
    {"image", SX_OPTION_LIST, SX_OPT(options, image),
     "JPEG and PNG files to predict, instead of --data", "FILE"},
    {"out", SX_OPTION_STRING, SX_OPT(options, out),
     "CSV file to write; -: stdout, the default; with --model, the directory to write", "PATH"},
    SX_CHECKPOINT_ROW(options),
    {"examples", SX_OPTION_INT, SX_OPT(options, examples),
     "maximum number of examples; default: all", "N", .min = 1},
    {"batch-size", SX_OPTION_INT, SX_OPT(options, batch_size),
     "examples per batch; does not change the results, except of a SavedModel whose examples "
     "depend on one another",
     "N", .min = 1, .max = 1 << 24},
    {"model", SX_OPTION_STRING, SX_OPT(options, model),
     "a SavedModel, or the highest version in a directory of versions", "DIR",
     .group = "Predictions of a SavedModel"},
    {"signature", SX_OPTION_STRING, SX_OPT(options, signature),
     "signature to run; default: serving_default", "NAME"},
    {"shards", SX_OPTION_INT, SX_OPT(options, shards),
     "number of files to write; default: one for each 1,000 examples, at most 1,000", "N", .min = 1,
     .max = SX_PREDICT_JOB_SHARDS},
    {"max-errors", SX_OPTION_INT, SX_OPT(options, max_errors),
     "how many examples may fail before the command stops; their errors are written to "
     "DIR/prediction.errors-*",
     "N", .max = 1e15},
    SX_MODEL_MEMORY_ROW(options),
    SX_DEVICE_ARGS_ROWS(options),
    SX_DATA_ARGS_ROWS(options),
};
static const sx_option_hint hints[] = {{"count", "use --examples"}};
static const options defaults = {.checkpoint = "latest", .device_args = SX_DEVICE_ARGS_DEFAULTS};

enum { FLUSH_BYTES = 1 << 16 };

/* The output. */
typedef struct table {
    const sx_run_info *info;
    sx_origin origin;
    bool has_files;
    sx_buf text;       /* rows not yet written */
    sx_commit *commit; /* NULL = stdout */
    sx_commit_file *file;
    int64_t count;
} table;

static sx_status flush(table *t)
{
    SX_TRY(sx_buf_status(&t->text));
    if (t->commit != NULL) {
        SX_TRY(sx_commit_write(t->file, sx_buf_text(&t->text), t->text.size));
    } else if (isatty(STDOUT_FILENO)) {
        sx_print_visible(stdout, sx_buf_text(&t->text));
    } else if (fwrite(sx_buf_text(&t->text), 1, t->text.size, stdout) != t->text.size) {
        return sx_errno_status(errno, "write to", "stdout");
    }
    sx_buf_reset(&t->text);
    return SX_OK;
}

/* A class by name, else by index. */
static void put_class(sx_buf *out, const sx_run_info *info, int64_t i)
{
    if (i >= 0 && i < info->n_classes) {
        sx_csv_text(out, info->class_names[i]);
    } else {
        sx_csv_int(out, i);
    }
}

/* The columns:
 *
 *   id           the example's number
 *   file         its file, if known
 *   label        its true label, if known
 *   of a classifier: class, probability, and the probability of each class
 *   of other models: all values of all predictions, NAME or NAME[0], NAME[1], ... */
static void put_header(table *t, const sx_prediction *p)
{
    sx_csv_text(&t->text, "id");
    if (t->has_files) {
        sx_csv_text(&t->text, "file");
    }
    if (t->origin.label >= 0) {
        sx_csv_text(&t->text, "label");
    }
    if (p->n_classes > 0) {
        sx_csv_text(&t->text, "class");
        sx_csv_text(&t->text, "probability");
        for (int i = 0; i < p->n_classes; i++) {
            put_class(&t->text, t->info, i);
        }
    }
    for (int k = 0; k < p->n_values && p->n_classes == 0; k++) {
        const sx_prediction_value *v = &p->values[k];
        int64_t n = sx_type_elems(&v->type);
        for (int64_t i = 0; i < n; i++) {
            char name[128];
            snprintf(name, sizeof(name), n == 1 ? "%.100s" : "%.100s[%" PRId64 "]", v->name, i);
            sx_csv_text(&t->text, name);
        }
    }
    sx_csv_end(&t->text);
}

static void put_number(sx_buf *out, const sx_prediction_value *v, int64_t i)
{
    switch (v->type.dtype) {
    case SX_F32:
        sx_csv_float(out, ((const float *)v->data)[i]);
        break;
    case SX_I32:
        sx_csv_int(out, ((const int32_t *)v->data)[i]);
        break;
    case SX_I64:
        sx_csv_int(out, ((const int64_t *)v->data)[i]);
        break;
    case SX_BOOL:
        sx_csv_int(out, ((const uint8_t *)v->data)[i] != 0);
        break;
    default:
        sx_csv_text(out, "");
    }
}

static sx_status put_row(void *user, const sx_prediction *p)
{
    table *t = user;
    if (t->count == 0) {
        t->has_files = sx_origin_file(&t->origin, p->record) != NULL;
        put_header(t, p);
    }
    t->count++;
    sx_csv_int(&t->text, p->number);
    if (t->has_files) {
        const char *file = sx_origin_file(&t->origin, p->record);
        sx_csv_text(&t->text, file != NULL ? file : "");
    }
    if (t->origin.label >= 0) {
        int64_t label = 0;
        float target = 0;
        SX_TRY(sx_origin_label(&t->origin, p->record, &label, &target));
        if (!t->origin.label_is_integer) {
            sx_csv_float(&t->text, target);
        } else if (p->n_classes > 0) {
            put_class(&t->text, t->info, label);
        } else {
            sx_csv_int(&t->text, label);
        }
    }
    if (p->n_classes > 0) {
        put_class(&t->text, t->info, p->classid);
        sx_csv_float(&t->text, p->probability);
        for (int i = 0; i < p->n_classes; i++) {
            sx_csv_float(&t->text, p->probabilities[i]);
        }
    }
    for (int k = 0; k < p->n_values && p->n_classes == 0; k++) {
        int64_t n = sx_type_elems(&p->values[k].type);
        for (int64_t i = 0; i < n; i++) {
            put_number(&t->text, &p->values[k], i);
        }
    }
    sx_csv_end(&t->text);
    return t->text.size >= FLUSH_BYTES ? flush(t) : SX_OK;
}

/* ---- The data ---- */

static sx_status images_as_data(const sx_image_files *files, const sx_run_info *info,
                                sx_dataset **out_dataset)
{
    if (!info->has_preprocess) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "the model of this run takes arrays, not images; use --data x.npy");
    }
    if (info->declared.named) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "the model of this run takes other features beside the image; use --data");
    }
    return sx_image_files_dataset(files, out_dataset);
}

static sx_status write_table(sx_invocation *inv, sx_trainer *trainer, sx_dataset *data, table *t)
{
    const options *o = inv->options;
    SX_TRY(sx_origin_init(&t->origin, data));
    if (o->out != NULL && strcmp(o->out, "-") != 0) {
        SX_TRY(sx_commit_create(&t->commit));
        SX_TRY(sx_commit_add(t->commit, o->out, &t->file));
    }
    SX_TRY(sx_trainer_predict(trainer, data, o->examples, put_row, t));
    SX_TRY(flush(t));
    if (t->commit != NULL) {
        SX_TRY(sx_commit_finish(t->commit));
    }
    if (t->commit != NULL && !sx_is_quiet(inv)) {
        printf("%s: %" PRId64 " row%s\n", o->out, t->count, t->count == 1 ? "" : "s");
    }
    return SX_OK;
}

static sx_status predict(sx_invocation *inv, sx_trainer *trainer, const sx_image_files *files)
{
    const options *o = inv->options;
    sx_dataset *data = NULL;
    table t = {.info = sx_trainer_info(trainer)};
    if (files->count > 0) {
        SX_TRY(images_as_data(files, t.info, &data));
    } else {
        SX_TRY(sx_open_run_data(inv, &o->data, &o->data_args, t.info, SX_PREDICT, &data));
    }
    sx_buf_init(&t.text, 0);
    sx_status status = write_table(inv, trainer, data, &t);
    sx_commit_destroy(t.commit);
    sx_buf_deinit(&t.text);
    sx_origin_deinit(&t.origin);
    sx_dataset_release(data);
    return status;
}

static sx_status run_with(sx_invocation *inv, const sx_image_files *files)
{
    const options *o = inv->options;
    sx_trainer *trainer = NULL;
    SX_TRY(sx_open_run_on(inv, &o->device_args, o->checkpoint, o->batch_size, &trainer));
    sx_status status = predict(inv, trainer, files);
    sx_trainer_destroy(trainer);
    return status;
}

static sx_status run_saved_model(sx_invocation *inv)
{
    const options *o = inv->options;
    static const char *const of_runs[] = {"checkpoint",
                                          "image",
                                          "strategy",
                                          "parameter-device",
                                          "all-reduce",
                                          "batch-norm",
                                          "dump-stablehlo",
                                          "tpu",
                                          "master",
                                          "tpu-zone",
                                          "project",
                                          "explain",
                                          "inter-op",
                                          "intra-op",
                                          "micro-batches",
                                          "soft-device-placement",
                                          "log-device-placement"};
    for (size_t i = 0; i < SX_COUNT(of_runs); i++) {
        SX_TRY(sx_usage(
            inv, sx_options_exclusive(inv, (const char *const[]){"model", of_runs[i], NULL})));
    }
    if (inv->words.count > 0 || o->data.count == 0 || o->out == NULL) {
        return sx_usage(inv, sx_error(SX_INVALID_ARGUMENT, inv->words.count > 0
                                                               ? "give RUN_DIR or --model, not both"
                                                               : "--model needs --data and --out"));
    }
    return sx_predict_model(inv,
                            &(sx_predict_model_args){.model = o->model,
                                                     .signature = o->signature,
                                                     .out = o->out,
                                                     .data = o->data,
                                                     .examples = o->examples,
                                                     .batch_size = o->batch_size,
                                                     .shards = o->shards,
                                                     .max_errors = o->max_errors,
                                                     .model_memory_limit = o->model_memory_limit,
                                                     .data_args = &o->data_args,
                                                     .device_args = &o->device_args});
}

static sx_status run(sx_invocation *inv)
{
    const options *o = inv->options;
    sx_image_files files = {0};
    if (o->model != NULL) {
        return run_saved_model(inv);
    }
    static const char *const of_models[] = {"signature", "shards", "max-errors",
                                            "model-memory-limit"};
    for (size_t i = 0; i < SX_COUNT(of_models); i++) {
        if (sx_option_given(inv, of_models[i])) {
            return sx_usage(inv, sx_error(SX_INVALID_ARGUMENT, "--%s needs --model",
                                          sx_option_typed(inv, of_models[i])));
        }
    }
    if (inv->words.count == 0) {
        return sx_usage(inv, sx_error(SX_INVALID_ARGUMENT,
                                      "give the directory of a run, or --model with that of a "
                                      "SavedModel"));
    }
    if ((o->data.count > 0) == (o->image.count > 0)) {
        return sx_usage(inv, sx_error(SX_INVALID_ARGUMENT, "expected either --data or --image"));
    }
    if (o->image.count > 0) {
        SX_TRY(sx_image_files_read(&o->image, &files));
    }
    sx_status status = run_with(inv, &files);
    sx_image_files_free(&files);
    return status;
}

const sx_command sx_command_predict = {
    .name = "predict",
    .summary = "write predictions as CSV, one row per example",
    .words = "[RUN_DIR]",
    .about =
        "Columns: id (example number), file (path, or image/filename of a record), label (true "
        "class), class (predicted), probability, and the probability of each class. file and label "
        "are left out where the data has none. Models that are not classifiers get one column per "
        "output value.\n\n"
        "With --model, a SavedModel is run on the data, and its outputs are written to files "
        "prediction.results-00000-of-00008 in the directory --out: one file per shard, one line "
        "of JSON per example. Run the command again to continue after a stop. It can run several "
        "times at once, also on several machines that share the directory: each process takes "
        "shards that no other process works on. The model and the options must be the same, and "
        "the data must not change until all shards are written.\n\n"
        "The data for --model are TFRecords, images in class folders or archives, .npy and .npz "
        "arrays and CSV columns named as the inputs, or JSON lines that begin with [ or {, each an "
        "element of \"instances\" as for the server. Of a TFRecord, each input takes the feature "
        "of its name; an input of strings takes the whole record, or the image in it if its name "
        "ends in _bytes or with --feature image=KEY.",
    .examples = "  sextant predict run1 --data 'data/test-*' --out predictions.csv\n"
                "  sextant predict run1 --image a.jpg b.jpg\n"
                "  sextant predict --model models/flowers --data 'data/test-*' --out predictions "
                "--shards 8",
    .max_words = 1,
    .stops_itself = true,
    SX_COMMAND_OPTIONS(rows, options),
    SX_COMMAND_HINTS(hints),
    .defaults = &defaults,
    .run = run,
};
