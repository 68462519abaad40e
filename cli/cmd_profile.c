/* sextant profile */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "base/pool.h"
#include "command.h"
#include "data_args.h"
#include "device_args.h"
#include "io/commit.h"
#include "io/path.h"
#include "profile_report.h"
#include "profile_svg.h"
#include "profile_trace.h"

typedef struct options {
    const char *mode, *precision, *signature, *by, *trace, *svg;
    sx_words data, param;
    int64_t batch_size, image_size, open_size, steps, iterations, rows;
    sx_data_args data_args;
    sx_device_args device_args;
    bool json, measure;
} options;

static const sx_option rows[] = {
    {"mode", SX_OPTION_CHOICE, SX_OPT(options, mode),
     "what to run; default: train; predict for a SavedModel", .choices = "train|predict"},
    {"batch-size", SX_OPTION_INT, SX_OPT(options, batch_size),
     "examples per step; default: the run's own, else 16 to train, 1 to predict", "N", .min = 1,
     .max = 1 << 24},
    {"data", SX_OPTION_LIST, SX_OPT(options, data),
     "data for training steps, in any form that train takes; default: the run's own, else inputs "
     "are generated",
     "DATA"},
    {"precision", SX_OPTION_CHOICE, SX_OPT(options, precision),
     "compute type of the layers of a zoo model or C file, or of a SavedModel's convolutions; "
     "default: float32",
     .choices = "bfloat16|float32"},
    {"param", SX_OPTION_EACH, SX_OPT(options, param), "model parameter; may also follow --",
     "NAME=VALUE"},
    {"signature", SX_OPTION_STRING, SX_OPT(options, signature),
     "signature of a SavedModel; default: serving_default", "NAME"},
    {"signature-def", SX_OPTION_STRING, SX_OPT(options, signature), "the same as --signature",
     "NAME"},
    {"image-size", SX_OPTION_INT, SX_OPT(options, image_size),
     "height and width of the input images; default: the model's, or 224 if it leaves them open",
     "PIXELS", .min = 1, .max = 1 << 14},
    {"open-size", SX_OPTION_INT, SX_OPT(options, open_size),
     "length of other dimensions that a signature leaves open, such as words; default: 32", "N",
     .min = 1, .max = 1 << 20},
    {"steps", SX_OPTION_INT, SX_OPT(options, steps),
     "steps to record after the warm-up; a device that loops finishes its launch; default: as many "
     "as take two seconds, at least 3",
     "N", .min = 1, .max = 1000000},
    {"iterations-per-loop", SX_OPTION_INT, SX_OPT(options, iterations),
     "steps per launch on a device that can loop; default: about half a second", "N", .min = 1,
     .max = 1 << 30},
    {"by", SX_OPTION_CHOICE, SX_OPT(options, by), "which tables to print; default: all",
     .choices = "op|layer|kernel", .group = "Output"},
    {"rows", SX_OPTION_INT, SX_OPT(options, rows), "maximum number of rows of each table", "N",
     .min = 0, .max = 100000},
    {"json", SX_OPTION_FLAG, SX_OPT(options, json), "print a JSON object with all figures"},
    {"trace", SX_OPTION_STRING, SX_OPT(options, trace),
     "write what every thread and the device did in Chrome's trace-event format, for "
     "ui.perfetto.dev",
     "FILE"},
    {"svg", SX_OPTION_STRING, SX_OPT(options, svg),
     "write a picture: the step loop, causes, a timeline of one step, operators, layers, kernels",
     "FILE"},
    {"measure-limits", SX_OPTION_FLAG, SX_OPT(options, measure),
     "measure again what the processor can do, instead of using the figures in the user cache"},
    SX_DEVICE_ARGS_ROWS(options),
    SX_DATA_ARGS_ROWS(options),
};
static const options defaults = {.rows = 20, .device_args = SX_DEVICE_ARGS_DEFAULTS};

typedef sx_status put_fn(sx_buf *out, const sx_profile_report *r);

static sx_status write_file(const char *path, put_fn *put, const sx_profile_report *r)
{
    sx_buf text;
    sx_buf_init(&text, 0);
    sx_status status = put(&text, r);
    if (status == SX_OK) {
        status = sx_commit_bytes(path, text.data, text.size);
    }
    sx_buf_deinit(&text);
    return status;
}

static bool stat_dir(const char *path, struct stat *out)
{
    char *dir = NULL;
    sx_status status = sx_path_dirname(path, &dir);
    const bool known = status == SX_OK && stat(dir, out) == 0;
    sx_status_free(status);
    sx_free(dir);
    return known;
}

/* Whether both would be written to one file: by one name in one directory. */
static bool is_one_file(const char *a, const char *b)
{
    struct stat of_a, of_b;
    return a != NULL && b != NULL && strcmp(sx_path_basename(a), sx_path_basename(b)) == 0 &&
           stat_dir(a, &of_a) && stat_dir(b, &of_b) && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}

static unsigned tables_of(const char *by)
{
    return by == NULL                 ? 0
           : strcmp(by, "op") == 0    ? SX_PROFILE_BY_OP
           : strcmp(by, "layer") == 0 ? SX_PROFILE_BY_LAYER
                                      : SX_PROFILE_BY_KERNEL;
}

static sx_status answer(const options *o, const sx_profile_report *r)
{
    sx_buf text;
    sx_status status = SX_OK;
    sx_buf_init(&text, 0);
    if (o->json) {
        status = sx_put_profile_json(&text, r);
    } else {
        sx_put_profile_report(&text, r, (int)o->rows, tables_of(o->by));
        status = sx_buf_status(&text);
    }
    if (status == SX_OK) {
        sx_print_visible(stdout, sx_buf_text(&text));
    }
    sx_buf_deinit(&text);
    return status;
}

/* Kernels and causes of cpu; of another device, what it tells of its operations. */
static sx_status explain(sx_invocation *inv, sx_profile_report *report, sx_cpu_limits *limits,
                         sx_profile_causes *causes)
{
    const options *o = inv->options;
    const sx_profiled *p = report->run;
    report->causes = causes;
    if (!sx_profiled_on_cpu(p)) {
        *causes = (sx_profile_causes){.total = p->seconds, .whole = p->seconds};
        report->why_none = p->why_no_ops;
        if (strcmp(p->kind, "cpu") == 0) { /* XLA's, which is this processor */
            SX_TRY(sx_cpu_limits_get(sx_cpu_count(), o->measure, limits));
            report->limits = limits;
        }
        return p->ops.n > 0 ? sx_profile_ops_group(&p->ops, &p->nodes, p->steps, causes) : SX_OK;
    }
    SX_TRY(sx_cpu_limits_get(p->threads, o->measure, limits));
    report->limits = limits;
    return sx_profile_find_causes(p->profile, limits, &p->nodes, p->seconds, &inv->arena, causes);
}

static sx_status run(sx_invocation *inv)
{
    const options *o = inv->options;
    const sx_profile_request wanted = {
        .name = inv->words.items[0],
        .mode = o->mode,
        .precision = o->precision,
        .signature = o->signature,
        .params = &o->param,
        .data = &o->data,
        .data_args = &o->data_args,
        .device_args = &o->device_args,
        .batch = o->batch_size,
        .image_size = o->image_size,
        .open_size = o->open_size,
        .steps = o->steps,
        .iterations = o->iterations,
        .keep_events = o->trace != NULL || o->svg != NULL,
    };
    char cpu[160];
    sx_profiled profiled;
    sx_cpu_limits limits;
    sx_profile_causes causes;
    sx_profile_report report = {.model = wanted.name, .cpu = cpu, .run = &profiled};
    if (is_one_file(o->svg, o->trace)) {
        return sx_usage(inv, sx_error(SX_INVALID_ARGUMENT,
                                      "--svg and --trace name the same file, %s; give each a file "
                                      "of its own",
                                      o->svg));
    }
    sx_cpu_kind(cpu, sizeof(cpu));
    sx_status status = sx_profile_model(inv, &wanted, &profiled);
    if (status == SX_OK) {
        status = explain(inv, &report, &limits, &causes);
    }
    if (status == SX_OK && o->trace != NULL) {
        status = write_file(o->trace, sx_put_profile_trace, &report);
    }
    if (status == SX_OK && o->svg != NULL) {
        status = write_file(o->svg, sx_put_profile_svg, &report);
    }
    if (status == SX_OK) {
        status = answer(o, &report);
    }
    sx_profiled_end(&profiled);
    return status;
}

const sx_command sx_command_profile = {
    .name = "profile",
    .summary = "show where a model's time goes and what bounds it",
    .words = "MODEL|./model.c|RUN_DIR|MODEL_DIR",
    .about =
        "Runs training steps as train does, on a run's data or those of --data, and prints how "
        "long each launch reads input, copies it to the device, computes and waits, and which of "
        "these bounds the run; nothing is saved. Without data, and for predictions, inputs are "
        "generated. On the CPU it prints the time, arithmetic and memory traffic of each operator, "
        "layer and kernel beside what this processor can do, which is measured once, in about a "
        "second, and kept in the user cache; then how much of the threads' time goes to each "
        "cause. On another device it prints the same of the operations that its plugin's profiler "
        "records, if it has one. Run it on an idle machine.",
    .examples = "  sextant profile resnet50 --batch-size 16\n"
                "  sextant profile run1 --svg run1.svg --trace run1.json\n"
                "  sextant profile flowers_cnn --data 'data/train-*' --batch-size 32 --device tpu\n"
                "  sextant profile run1 --device pjrt:cpu --by layer\n"
                "  sextant profile models/flowers/1 --batch-size 1 --threads 2\n"
                "  sextant profile models/bert --signature_def serving_default --open-size 128\n"
                "  sextant profile ./flowers.c --precision bfloat16 --json -- --num_classes 5",
    .min_words = 1,
    .max_words = 1,
    .rest = "model parameters",
    SX_COMMAND_OPTIONS(rows, options),
    .defaults = &defaults,
    .run = run,
};
