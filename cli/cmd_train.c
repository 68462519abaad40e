/* sextant train */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "data_args.h"
#include "distribute/strategy.h"
#include "image/preprocess.h"
#include "model_args.h"
#include "report.h"
#include "run_args.h"
#include "train/trainer.h"

typedef struct options {
    sx_words data, eval_data, param;
    const char *model_dir, *config, *recipe, *augment, *precision, *optimizer;
    const char *warm_start_from, *vars_to_warm_start;
    int64_t epochs, max_steps, steps;
    int64_t batch_size, train_batch_size, eval_batch_size;
    int64_t seed, tf_random_seed;
    double learning_rate, l2;
    int64_t base_batch_size, warmup_steps;
    double warmup_epochs;
    int64_t steps_per_eval, eval_examples, eval_steps;
    int64_t save_checkpoints_steps, save_checkpoints_secs, keep_checkpoint_max;
    double keep_checkpoint_every_n_hours;
    int64_t log_step_count_steps, save_summary_steps, shards, memory_limit;
    const char *iterations_per_loop;
    bool fresh, force, shuffle, require_exact, json_log;
    sx_data_args data_args;
    sx_device_args device_args;
} options;

enum { MAX_BATCH = 1 << 24 };

static const sx_option rows[] = {
    {"data", SX_OPTION_LIST, SX_OPT(options, data),
     "training data: a TFRecord pattern; a directory, .tar or .zip of class folders; a pair of "
     "IDX files; .npy files; CSV files; or generated:digits?n=60000",
     "DATA", .required = true},
    {"eval-data", SX_OPTION_LIST, SX_OPT(options, eval_data), "evaluation data, in the same forms",
     "DATA"},
    {"model-dir", SX_OPTION_STRING, SX_OPT(options, model_dir),
     "directory of the run: checkpoints, graphs, configuration; an existing run is resumed", "DIR"},
    {"config", SX_OPTION_STRING, SX_OPT(options, config),
     "read options from a JSON object; the command line takes precedence", "FILE"},
    {"fresh", SX_OPTION_FLAG, SX_OPT(options, fresh),
     "delete the run in --model-dir and start over"},
    {"force", SX_OPTION_FLAG, SX_OPT(options, force),
     "train in --model-dir even if it contains other files instead of a run"},

    {"warm-start-from", SX_OPTION_STRING, SX_OPT(options, warm_start_from),
     "start from the weights of another run, a SavedModel or a checkpoint", "PATH"},
    {"vars-to-warm-start", SX_OPTION_STRING, SX_OPT(options, vars_to_warm_start),
     "warm-start only variables whose names match at their beginning; default: all", "REGEX"},

    {"epochs", SX_OPTION_INT, SX_OPT(options, epochs),
     "total number of passes over the training data, including earlier invocations", "N", .min = 1,
     .group = "Duration"},
    {"max-steps", SX_OPTION_INT, SX_OPT(options, max_steps),
     "total number of steps, including earlier invocations", "N", .min = 1},
    {"steps", SX_OPTION_INT, SX_OPT(options, steps), "number of additional steps", "N", .min = 1},

    {"batch-size", SX_OPTION_INT, SX_OPT(options, batch_size),
     "examples per batch in training and evaluation; default: 32", "N", .min = 1, .max = MAX_BATCH,
     .group = "Training"},
    {"train-batch-size", SX_OPTION_INT, SX_OPT(options, train_batch_size),
     "examples per training batch", "N", .min = 1, .max = MAX_BATCH},
    {"eval-batch-size", SX_OPTION_INT, SX_OPT(options, eval_batch_size),
     "examples per evaluation batch; does not change the results", "N", .min = 1, .max = MAX_BATCH},
    {"learning-rate", SX_OPTION_FLOAT, SX_OPT(options, learning_rate),
     "learning rate; default: the model's", "RATE", .min = 1e-30, .max = 1e30},
    {"base-batch-size", SX_OPTION_INT, SX_OPT(options, base_batch_size),
     "reference batch size; the learning rate scales linearly with it: rate * batch / N", "N",
     .min = 1, .max = MAX_BATCH},
    {"warmup-epochs", SX_OPTION_FLOAT, SX_OPT(options, warmup_epochs),
     "epochs over which the learning rate rises from 0", "EPOCHS", .min = 1e-6, .max = 1e6},
    {"warmup-steps", SX_OPTION_INT, SX_OPT(options, warmup_steps), "the same in steps", "N",
     .min = 1},
    {"l2", SX_OPTION_FLOAT, SX_OPT(options, l2),
     "L2 regularization: add RATE / 2 times the squared weights, batch norm's excluded, to the "
     "loss (lars: weight decay); default: the model's",
     "RATE", .min = 1e-30, .max = 1e30},
    {"optimizer", SX_OPTION_CHOICE, SX_OPT(options, optimizer), "optimizer; default: the model's",
     .choices = "sgd|momentum|rmsprop|adam|lars"},
    {"precision", SX_OPTION_CHOICE, SX_OPT(options, precision),
     "compute type of the layers; variables, sums and losses are float32; default: that of the "
     "run, else float32",
     .choices = "float32|bfloat16"},
    {"recipe", SX_OPTION_STRING, SX_OPT(options, recipe),
     "image preprocessing: simple or tpu-flowers; default: the model's", "NAME"},
    {"augment", SX_OPTION_STRING, SX_OPT(options, augment),
     "random changes of training images: none, or a list such as "
     "flip_left_right,crop=10,shear=20,zoom=0.2,brightness=0.25,contrast=0.2:1.8; with "
     "scaled_decode, JPEGs are decoded at 1/2, 1/4 or 1/8 of their size if that is enough, which "
     "is faster; default: the model's",
     "none|flip_left_right|crop=N|shear=N|zoom=N|brightness=N|contrast=N:N|scaled_decode"},
    {"param", SX_OPTION_EACH, SX_OPT(options, param), "model parameter; may also follow --",
     "NAME=VALUE"},
    {"seed", SX_OPTION_INT, SX_OPT(options, seed),
     "seed of initial weights, data order, dropout and augmentation", "N", .min = 0,
     .max = 9223372036854775807.0},
    {"tf-random-seed", SX_OPTION_INT, SX_OPT(options, tf_random_seed),
     "same as --seed, as named in RunConfig", "N", .min = 0, .max = 9223372036854775807.0},
    {"shuffle", SX_OPTION_FLAG, SX_OPT(options, shuffle),
     "shuffle the training data in every epoch"},

    {"steps-per-eval", SX_OPTION_INT, SX_OPT(options, steps_per_eval),
     "steps between evaluations, or epoch: at the end of each epoch", "N|epoch", .min = 1,
     .word = {"epoch", SX_EVERY_EPOCH}, .group = "Evaluation, checkpoints, logging"},
    {"eval-examples", SX_OPTION_INT, SX_OPT(options, eval_examples),
     "examples per evaluation; default: all", "N", .min = 1},
    {"eval-steps", SX_OPTION_INT, SX_OPT(options, eval_steps),
     "batches per evaluation, as in TensorFlow; default: all", "N", .min = 1},
    {"save-checkpoints-steps", SX_OPTION_INT, SX_OPT(options, save_checkpoints_steps),
     "steps between checkpoints", "N", .min = 1},
    {"save-checkpoints-secs", SX_OPTION_INT, SX_OPT(options, save_checkpoints_secs),
     "seconds between checkpoints; default: 600 unless --save-checkpoints-steps is given",
     "SECONDS", .min = 1},
    {"keep-checkpoint-max", SX_OPTION_INT, SX_OPT(options, keep_checkpoint_max),
     "recent checkpoints to keep; 0: all", "N", .min = 0, .max = 1e9},
    {"keep-checkpoint-every-n-hours", SX_OPTION_FLOAT,
     SX_OPT(options, keep_checkpoint_every_n_hours),
     "additionally keep one checkpoint every N hours", "N", .min = 1e-6, .max = 1e9},
    {"log-step-count-steps", SX_OPTION_INT, SX_OPT(options, log_step_count_steps),
     "steps between log lines; 0: none", "N", .min = 0, .max = 1e15},
    {"save-summary-steps", SX_OPTION_INT, SX_OPT(options, save_summary_steps),
     "accepted for compatibility with RunConfig; no event files are written, metrics are in "
     "history.json and --json-log",
     "N", .min = 0, .max = 1e15},
    {"json-log", SX_OPTION_FLAG, SX_OPT(options, json_log), "log one JSON object per event"},

    SX_DEVICE_ARGS_ROWS(options),
    {"memory-limit", SX_OPTION_SIZE, SX_OPT(options, memory_limit),
     "maximum memory of a training step on cpu: its variables, batch and temporaries; values that "
     "do not fit are computed again, which takes time but does not change the results; see "
     "`sextant compile --memory`. With a list of devices: maximum memory of all programs on each "
     "cpu device; default: no limit",
     "SIZE", .min = 1},
    {"iterations-per-loop", SX_OPTION_STRING, SX_OPT(options, iterations_per_loop),
     "steps per launch on a device that can loop: a number, or a time (30s, 5m, 1h); "
     "default: about half a second",
     "N|TIME"},
    {"shards", SX_OPTION_INT, SX_OPT(options, shards),
     "split batches into N shards, so that results do not depend on threads, replicas and virtual "
     "devices, which share them equally; a different N may change their last bits",
     "N", .min = 1, .max = 4096},
    {"require-exact", SX_OPTION_FLAG, SX_OPT(options, require_exact),
     "refuse to resume if results could differ in any bit or settings differ from the run's"},
    SX_PROCESS_ROWS(options),
    SX_DATA_ARGS_ROWS(options),
};

static const options defaults = {
    .steps_per_eval = SX_EVERY_EPOCH,
    .keep_checkpoint_max = 5,
    .keep_checkpoint_every_n_hours = 10000,
    .log_step_count_steps = 100,
    .shuffle = true,
    .device_args = SX_PROCESS_ARGS_DEFAULTS,
};

/* ---- Checks ---- */

static sx_status check_exclusive(sx_invocation *inv)
{
    static const char *const groups[][4] = {
        {"epochs", "max-steps", "steps"}, {"save-checkpoints-steps", "save-checkpoints-secs"},
        {"eval-examples", "eval-steps"},  {"warmup-epochs", "warmup-steps"},
        {"seed", "tf-random-seed"},
    };
    for (size_t i = 0; i < SX_COUNT(groups); i++) {
        SX_TRY(sx_options_exclusive(inv, groups[i]));
    }
    return SX_OK;
}

/* The texts of --augment and --recipe, before any data is read. */
static sx_status check_preprocess(sx_invocation *inv)
{
    enum { ANY_SIDE = 1024 }; /* the model's size is checked when it is known */
    const options *o = inv->options;
    sx_preprocess pre;
    SX_TRY(
        sx_preprocess_recipe(o->recipe != NULL ? o->recipe : "simple", ANY_SIDE, ANY_SIDE, 3, &pre),
        "--%s", sx_option_typed(inv, "recipe"));
    if (o->augment != NULL) {
        SX_TRY(sx_preprocess_set_augment(&pre, o->augment), "--%s",
               sx_option_typed(inv, "augment"));
    }
    return SX_OK;
}

/* "100", "30s", "5m", "1h": TPUConfig's iterations_per_loop, as a number or as a time. */
static sx_status read_iterations(sx_invocation *inv, const char *text, int64_t *out_steps,
                                 double *out_seconds)
{
    static const struct {
        const char *unit;
        double seconds;
    } units[] = {{"s", 1}, {"m", 60}, {"h", 3600}};
    char *end = NULL;
    if (text == NULL) {
        return SX_OK;
    }
    long long n = strtoll(text, &end, 10);
    bool is_number = end > text && *text >= '0' && *text <= '9' && n > 0 && n <= (1LL << 40);
    if (is_number && *end == '\0') {
        *out_steps = n;
        return SX_OK;
    }
    for (size_t i = 0; is_number && i < SX_COUNT(units); i++) {
        if (strcmp(end, units[i].unit) == 0) {
            *out_seconds = (double)n * units[i].seconds;
            return SX_OK;
        }
    }
    return sx_error(SX_INVALID_ARGUMENT,
                    "--%s is \"%s\", expected a number of steps or a time: 100, 30s, 5m, 1h",
                    sx_option_typed(inv, "iterations-per-loop"), text);
}

/* Refuses to write a run into a directory of other files, such as photographs. */
static sx_status check_model_dir(sx_invocation *inv)
{
    const options *o = inv->options;
    sx_status status = o->model_dir == NULL || o->force ? SX_OK : sx_run_check_place(o->model_dir);
    if (sx_status_code(status) != SX_FAILED_PRECONDITION) {
        return status;
    }
    sx_status asked =
        sx_error(SX_FAILED_PRECONDITION, "%s; choose another --%s, or add --force to train there",
                 sx_status_message(status), sx_option_typed(inv, "model-dir"));
    sx_status_free(status);
    return asked;
}

static int64_t first_given(int64_t a, int64_t b)
{
    return a > 0 ? a : b;
}

/* ---- Training ---- */

static sx_status run(sx_invocation *inv)
{
    const options *o = inv->options;
    sx_model_args model = {.def = NULL};
    sx_strategy *strategy = NULL;
    sx_dataset *data = NULL, *eval_data = NULL;
    sx_data_options how;
    sx_model_inputs declared;
    const char *spec = NULL, *eval_spec = NULL;
    char *description = NULL;
    sx_trainer *trainer = NULL;
    int64_t loop_steps = 0;
    double loop_seconds = 0;
    bool bad_params = false;

    SX_TRY(sx_usage(inv, check_exclusive(inv)));
    SX_TRY(sx_usage(inv, read_iterations(inv, o->iterations_per_loop, &loop_steps, &loop_seconds)));
    sx_status status = check_model_dir(inv);
    if (sx_status_code(status) == SX_PERMISSION_DENIED) {
        return status;
    }
    SX_TRY(sx_usage(inv, status));
    SX_TRY(sx_usage(inv, check_preprocess(inv)));

    SX_TRY_GOTO(status, sx_model_args_read(inv, inv->words.items[0], &o->param, &model), done);
    SX_TRY_GOTO(status, sx_device_args_strategy(inv, &o->device_args, &strategy), done);
    SX_TRY_GOTO(status, sx_usage(inv, sx_strategy_check_shards(strategy, (int)o->shards)), done);
    SX_TRY_GOTO(status, sx_data_args_options(inv, &o->data_args, &how), done);
    if (sx_model_has_names(model.def)) {
        SX_TRY_GOTO(status, sx_model_inputs_of(model.def, &inv->arena, &declared), done);
        SX_TRY_GOTO(
            status,
            sx_model_inputs_specs(&declared, SX_TRAIN, &inv->arena, &how.features, &how.n_features),
            done);
    }
    SX_TRY_GOTO(status, sx_data_spec(inv, &o->data, &spec), done);
    SX_TRY_GOTO(status, sx_data_args_open(spec, &how, &data, &description), done);
    if (o->eval_data.count > 0) {
        SX_TRY_GOTO(status, sx_data_spec(inv, &o->eval_data, &eval_spec), done);
        SX_TRY_GOTO(status, sx_data_args_open(eval_spec, &how, &eval_data, NULL), done);
    }

    sx_report report = {
        .terminal = sx_terminal_of(stdout, sx_common_of(inv)->color),
        .json = o->json_log,
        .quiet = sx_is_quiet(inv) || !sx_is_chief(sx_strategy_processes(strategy)),
        .unit = model.def->image[0] > 0 ? "img/s" : "ex/s",
        .rerun = o->model_dir == NULL ? NULL
                 : o->fresh           ? "run the same command without --fresh to continue"
                                      : "run the same command to continue",
    };
    sx_dtype precision = SX_DTYPE_NONE; /* that of the run */
    (void)(o->precision != NULL && sx_dtype_parse(o->precision, &precision));
    const sx_run_config config = {
        .struct_size = sizeof(config),
        .model_dir = o->model_dir,
        .tf_random_seed = (uint64_t)first_given(o->seed, o->tf_random_seed),
        .save_checkpoints_steps = o->save_checkpoints_steps,
        .save_checkpoints_secs = o->save_checkpoints_secs,
        .keep_checkpoint_max =
            o->keep_checkpoint_max == 0 ? SX_KEEP_ALL : (int)o->keep_checkpoint_max,
        .keep_checkpoint_every_n_hours = o->keep_checkpoint_every_n_hours,
        .log_step_count_steps = o->log_step_count_steps == 0 ? SX_NEVER : o->log_step_count_steps,
        .save_summary_steps = o->save_summary_steps,
        .iterations_per_loop = loop_steps,
        .iterations_per_loop_secs = loop_seconds,
        .train_batch_size = first_given(o->train_batch_size, o->batch_size),
        .eval_batch_size = first_given(o->eval_batch_size, o->batch_size),
        .steps_per_eval = o->steps_per_eval,
        .train_distribute = strategy,
        .threads = (int)o->device_args.threads,
        .shards = (int)o->shards,
        .precision = precision,
        .no_shuffle = !o->shuffle,
        .require_exact = o->require_exact,
        .no_compile_cache = !o->device_args.compile_cache,
        .warm_start_from = o->warm_start_from,
        .vars_to_warm_start = o->vars_to_warm_start,
        .fresh = o->fresh,
        .observer = sx_report_event,
        .observer_user = &report,
        .stop = sx_stop_flag(),
        .memory_limit_bytes = o->memory_limit,
    };
    sx_optimizer optimizer = {0}; /* a zero field means the model's default */
    if (o->optimizer != NULL) {
        SX_TRY_GOTO(status, sx_optimizer_by_name(o->optimizer, &optimizer), done);
    }
    optimizer.learning_rate = o->learning_rate;
    optimizer.l2 = o->l2;
    optimizer.base_batch_size = o->base_batch_size;
    optimizer.schedule.warmup_epochs = o->warmup_epochs;
    optimizer.schedule.warmup_steps = o->warmup_steps;
    const sx_trainer_options wanted = {
        .config = &config,
        .def = model.def,
        .source = model.file.library != NULL ? inv->words.items[0] : "zoo",
        .params = model.params,
        .optimizer = &optimizer,
        .recipe = o->recipe,
        .augment = o->augment,
        .data = data,
        .data_spec = spec,
        .data_description = description,
        .image_key = how.image_key,
        .label_key = how.label_key,
        .label_base = how.label_base,
        .out_bad_params = &bad_params,
    };
    status = sx_trainer_create(&wanted, &trainer);
    if (bad_params) {
        status = sx_usage(inv, status);
    }
    SX_TRY_GOTO(status, status, done);
    const sx_fit_request request = {
        .train = data,
        .eval = eval_data,
        .steps = o->steps,
        .max_steps = o->max_steps,
        .epochs = o->epochs,
        .eval_examples = o->eval_examples,
        .eval_steps = o->eval_steps,
    };
    status = sx_trainer_fit(trainer, &request);
    sx_report_end(&report);
done:
    if (strategy != NULL) {
        status = sx_processes_end(sx_strategy_processes(strategy), status);
    }
    sx_trainer_destroy(trainer);
    sx_dataset_release(data);
    sx_dataset_release(eval_data);
    sx_text_free(description);
    sx_strategy_release(strategy);
    sx_model_args_end(&model);
    return status;
}

const sx_command sx_command_train = {
    .name = "train",
    .summary = "train a model from the zoo or a C file",
    .words = "MODEL|./model.c",
    .about = "Trains for one epoch unless --epochs, --max-steps or --steps is given. Ctrl-C "
             "finishes the current step (the current launch on a device that loops) and saves a "
             "checkpoint. Running the same command again resumes, and ends with the same weights "
             "as an uninterrupted run. history.json in --model-dir has the loss and the metrics of "
             "each epoch and evaluation, named as in Keras: loss, accuracy, val_loss, "
             "val_accuracy. Several processes share each batch if the same command is run in "
             "each, with its --process-id, or with a TF_CONFIG that names a chief and workers; "
             "--model-dir must be a directory that all can read, and process 0 writes to it. If "
             "one is lost, all end with an error that names it; running the commands again "
             "resumes.",
    .examples =
        "  sextant train flowers_cnn --data 'data/train-*' --eval-data 'data/val-*' "
        "--model-dir run1 --epochs 20 --seed 7\n"
        "  sextant train ./flowers.c --data photos/ --model-dir run2 -- --num_classes 5\n"
        "  sextant train mnist_cnn --data 'generated:digits?n=6000' --model-dir run3\n"
        "  sextant train resnet50 --data 'imagenet/train-*' --epochs 90 --batch-size 1024 -- "
        "--schedule reference\n"
        "  sextant train mnist_cnn --data 'generated:digits?n=6000' --device tpu --explain\n"
        "  sextant train mnist_cnn --data 'generated:digits?n=6000' --device pjrt:cpu:4 "
        "--batch-norm replica\n"
        "  sextant train mnist_cnn --data 'generated:digits?n=6000' --virtual-devices 4\n"
        "  sextant train resnet50 --data 'imagenet/train-*' --model-dir /shared/run4 --device "
        "cuda:8 "
        "--coordinator host0:8470 --num-processes 4 --process-id 0\n"
        "  sextant train mnist_cnn --data 'generated:digits?n=6000' --devices /gpu:0,/gpu:2 "
        "--all-reduce reduction-to-one-device\n"
        "  sextant train mnist_cnn --data 'generated:digits?n=6000' --strategy central-storage "
        "--devices cpu:0,cpu:1 --parameter-device cpu:0",
    .min_words = 1,
    .max_words = 1,
    .rest = "model parameters",
    .stops_itself = true,
    SX_COMMAND_OPTIONS(rows, options),
    .defaults = &defaults,
    .run = run,
};
