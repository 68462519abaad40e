/* sextant compile */
#include <stdio.h>
#include <string.h>

#include "backends/pjrt/settings.h"
#include "base/checked.h"
#include "base/log.h"
#include "base/memory.h"
#include "command.h"
#include "compile_memory.h"
#include "compile_model.h"
#include "compile_report.h"
#include "device_args.h"
#include "io/commit.h"
#include "io/user_cache.h"
#include "nn/model_program.h"
#include "train/trainer.h"
#include "waiting.h"

typedef struct options {
    const char *target, *mode, *precision, *signature, *save, *plugin, *python, *dump, *svg,
        *xla_options;
    sx_words param;
    int64_t batch_size, image_size, iterations, memory_limit;
    sx_device_args device_args;
    bool json, find_largest, compile_cache, memory;
} options;

static const sx_option rows[] = {
    {"target", SX_OPTION_STRING, SX_OPT(options, target),
     "what to compile for: tpu:v5e:2x2, v5litepod-4, v6e-8, v5p-8, v4-8, v3-8, v2-8, "
     "pjrt-cpu[:DEVICES] or cpu; default: cpu with --memory",
     "TARGET"},
    {"batch-size", SX_OPTION_INT, SX_OPT(options, batch_size),
     "global batch size: examples per step over all devices; default: 1024; 32 for cpu", "N",
     .min = 1, .max = 1 << 24},
    {"mode", SX_OPTION_CHOICE, SX_OPT(options, mode), "program to compile",
     .choices = "train|predict"},
    {"precision", SX_OPTION_CHOICE, SX_OPT(options, precision),
     "compute type of the layers; default: bfloat16 for a TPU, else float32",
     .choices = "bfloat16|float32"},
    {"param", SX_OPTION_EACH, SX_OPT(options, param), "model parameter; may also follow --",
     "NAME=VALUE"},
    {"iterations-per-loop", SX_OPTION_INT, SX_OPT(options, iterations),
     "compile the training loop over N batches, as `train` runs it; default: one step", "N",
     .min = 1, .max = 1024},
    {"image-size", SX_OPTION_INT, SX_OPT(options, image_size),
     "height and width of the input images; default: the model's", "PIXELS", .min = 1,
     .max = 1 << 14},
    {"signature", SX_OPTION_STRING, SX_OPT(options, signature),
     "signature of a SavedModel; default: serving_default", "NAME"},
    {"find-largest-batch", SX_OPTION_FLAG, SX_OPT(options, find_largest),
     "also find the largest batch that fits, with up to eight more compiles; default: only if the "
     "batch does not fit"},
    {"json", SX_OPTION_FLAG, SX_OPT(options, json),
     "print a JSON object with all figures, in bytes"},
    {"save", SX_OPTION_STRING, SX_OPT(options, save),
     "write the executable, as serialized by the plugin", "FILE"},
    {"memory", SX_OPTION_FLAG, SX_OPT(options, memory),
     "print the memory of a program on the CPU: what is alive at once, and how much more the plan "
     "takes",
     .group = "On the CPU"},
    {"memory-limit", SX_OPTION_SIZE, SX_OPT(options, memory_limit),
     "plan a training step within this memory, as `train --memory-limit` does", "SIZE", .min = 1},
    {"svg", SX_OPTION_STRING, SX_OPT(options, svg),
     "write a picture of the plan: what lies where, in which steps", "FILE"},
    SX_THREADS_ROW(options),
    {"pjrt-plugin", SX_OPTION_STRING, SX_OPT(options, plugin),
     "PJRT plugin: libtpu.so, xla_cpu_pjrt.so; default: searched for", "PATH", .group = "Compiler"},
    {"python", SX_OPTION_STRING, SX_OPT(options, python),
     "Python interpreter whose packages are searched for the plugin", "PATH"},
    {"xla-options", SX_OPTION_STRING, SX_OPT(options, xla_options),
     "options of XLA for the program, as train takes them", "NAME=VALUE,..."},
    {"dump-stablehlo", SX_OPTION_STRING, SX_OPT(options, dump),
     "write the StableHLO of each program to this directory", "DIR"},
    {"compile-cache", SX_OPTION_FLAG, SX_OPT(options, compile_cache),
     "cache the figures of compiled programs"},
};
static const options defaults = {.mode = "train", .compile_cache = true};

enum { BATCH = 1024, CPU_BATCH = 32 };

typedef struct job {
    sx_invocation *inv;
    const options *o;
    sx_target target;
    sx_compile_model model;
    int64_t batch;
    sx_waiting waiting;
    bool searching; /* for the largest batch */
} job;

/* ---- Compiling ---- */

/* Shows a line that counts the seconds of each compile; results of the search for the largest batch
 * stay on the terminal. */
static void tell(void *user, int64_t batch, const sx_aot_result *result, bool fits)
{
    job *j = user;
    char text[200];
    if (sx_is_quiet(j->inv)) {
        return;
    }
    if (result == NULL) {
        sx_terminal t = sx_terminal_of(stderr, sx_common_of(j->inv)->color);
        snprintf(text, sizeof(text), "%scompiling %s for batch size %lld on %s",
                 j->searching ? "finding the largest batch: " : "", j->inv->words.items[0],
                 (long long)batch, j->o->target);
        sx_waiting_begin(&j->waiting, &t, text);
        return;
    }
    sx_waiting_end(&j->waiting);
    if (j->searching) {
        sx_buf line;
        sx_buf_init(&line, 1 << 10);
        sx_put_compile_trial(&line, batch, result, fits);
        sx_log(SX_LOG_INFO, "%s", sx_buf_text(&line));
        sx_buf_deinit(&line);
    }
}

static sx_status find_largest(job *j, const sx_aot_plan_request *request, sx_aot_plan *plan)
{
    j->searching = true;
    sx_status status = sx_aot_plan_find_largest(request, plan);
    sx_waiting_end(&j->waiting);
    return status;
}

/* Reports the requested batch first. The search for the largest batch takes several compiles: it
 * runs if requested, or if the batch does not fit, unless disabled. */
static sx_status answer(job *j, const sx_aot_plan_request *request, sx_aot_plan *plan)
{
    const options *o = j->o;
    bool forbidden = sx_option_given(j->inv, "find-largest-batch") && !o->find_largest;
    const sx_compile_report report = {
        .model = j->inv->words.items[0],
        .mode = o->mode,
        .precision = sx_dtype_name(j->model.precision),
        .target_text = o->target,
        .target = &j->target,
        .batch = j->batch,
        .steps = SX_MAX(o->iterations, 1),
        .plan = plan,
    };
    sx_buf text;
    sx_status status = SX_OK;
    sx_buf_init(&text, 1 << 20);
    if (plan->fits && o->save != NULL) {
        SX_TRY_GOTO(status, sx_commit_bytes(o->save, plan->executable, plan->executable_size),
                    done);
    }
    if (plan->fits && !o->json) {
        sx_put_compile_report(&text, &report);
        fputs(sx_buf_text(&text), stdout);
        fflush(stdout);
        sx_buf_reset(&text);
    }
    if (!plan->fits && !forbidden) {
        sx_put_compile_misfit(&text, &report);
        sx_log(SX_LOG_INFO, "%s", sx_buf_text(&text));
        sx_buf_reset(&text);
    }
    if (plan->fits ? o->find_largest : !forbidden) {
        SX_TRY_GOTO(status, find_largest(j, request, plan), done);
    }
    if (o->json) {
        SX_TRY_GOTO(status, sx_put_compile_json(&text, &report), done);
    } else if (plan->fits) {
        sx_put_compile_largest(&text, &report);
    }
    fputs(sx_buf_text(&text), stdout);
    if (!plan->fits) {
        sx_buf_reset(&text);
        sx_put_compile_misfit(&text, &report);
        status = sx_error(SX_RESOURCE_EXHAUSTED, "%s", sx_buf_text(&text));
    }
done:
    sx_buf_deinit(&text);
    return status;
}

static sx_status compile(job *j)
{
    char *cache = NULL;
    sx_aot_plan plan;
    bool loops = j->o->iterations > 1;
    if (j->o->compile_cache) {
        sx_status_free(sx_user_cache("compiled", &cache));
    }
    const sx_aot_plan_request request = {
        .compile = {.graph = j->model.graph,
                    .target = &j->target,
                    .wish = {.path = j->o->plugin, .python = j->o->python},
                    .batch = j->batch,
                    .steps = j->o->iterations,
                    .ok_output = loops ? SX_OK_OUTPUT : NULL,
                    .hlo = {.precision = j->model.precision == SX_BF16 ? "DEFAULT" : "HIGHEST"},
                    .xla_options = j->o->xla_options,
                    .dump_dir = j->o->dump,
                    .cache_dir = cache,
                    .keep = j->o->save != NULL},
        .tell = tell,
        .user = j,
    };
    sx_status status = sx_aot_plan_make(&request, &plan);
    sx_waiting_end(&j->waiting);
    status = status != SX_OK ? status : answer(j, &request, &plan);
    sx_free(plan.executable);
    sx_free(cache);
    return status;
}

/* Fails before compiling if the output file cannot be created. */
static sx_status try_save(const char *path)
{
    sx_commit *commit = NULL;
    sx_commit_file *file = NULL;
    SX_TRY(sx_commit_create(&commit));
    sx_status status = sx_commit_add(commit, path, &file);
    sx_commit_destroy(commit);
    return status;
}

/* ---- On the CPU ---- */

/* The first option given that is for a compiler of PJRT, or NULL. */
static const char *pjrt_option(const sx_invocation *inv)
{
    static const char *const names[] = {
        "iterations-per-loop", "find-largest-batch", "save", "pjrt-plugin", "python",
        "xla-options",         "dump-stablehlo"};
    for (size_t i = 0; i < SX_COUNT(names); i++) {
        if (sx_option_given(inv, names[i])) {
            return names[i];
        }
    }
    return NULL;
}

static sx_status report_memory(const options *o, const sx_memory_report *r)
{
    sx_buf text;
    sx_status status = SX_OK;
    sx_buf_init(&text, 0);
    if (o->svg != NULL) {
        status = sx_put_memory_svg(&text, r);
        if (status == SX_OK) {
            status = sx_commit_bytes(o->svg, text.data, text.size);
        }
        sx_buf_reset(&text);
    }
    if (status == SX_OK && o->json) {
        status = sx_put_memory_json(&text, r);
    } else if (status == SX_OK) {
        sx_put_memory_report(&text, r);
        status = sx_buf_status(&text);
    }
    if (status == SX_OK) {
        sx_print_visible(stdout, sx_buf_text(&text));
    }
    sx_buf_deinit(&text);
    return status;
}

static sx_status plan_on_cpu(job *j)
{
    const options *o = j->o;
    const bool train = strcmp(o->mode, "train") == 0;
    const char *foreign = pjrt_option(j->inv);
    if (foreign != NULL) {
        return sx_usage(j->inv, sx_error(SX_INVALID_ARGUMENT,
                                         "--%s is not for the target cpu, whose plans are made "
                                         "when a program is started",
                                         sx_option_typed(j->inv, foreign)));
    }
    const sx_compile_model_request wanted = {
        .name = j->inv->words.items[0],
        .mode = train ? SX_TRAIN : SX_PREDICT,
        .precision = o->precision,
        .by_default = SX_F32,
        .params = &o->param,
        .image_size = o->image_size,
        .signature = o->signature,
    };
    SX_TRY(sx_compile_model_open(j->inv, &wanted, &j->model));
    const sx_memory_request request = {
        .model = wanted.name,
        .mode = o->mode,
        .precision = sx_dtype_name(j->model.precision),
        .graph = j->model.graph,
        .batch = o->batch_size > 0 ? o->batch_size : CPU_BATCH,
        .threads = (int)o->device_args.threads,
        .frozen = !train && j->model.saved != NULL,
        .eval_shards = j->model.saved == NULL ? SX_EVAL_SHARDS : 0,
        .limit = o->memory_limit,
    };
    sx_memory_report report;
    sx_status status = sx_memory_report_make(&request, &report);
    if (status == SX_OK) {
        status = report_memory(o, &report);
    }
    sx_memory_report_end(&report);
    return status;
}

/* ---- Main ---- */

static sx_status run_job(job *j)
{
    const options *o = j->o;
    const bool cpu = o->target == NULL ? o->memory : strcmp(o->target, "cpu") == 0;
    if (cpu) {
        return plan_on_cpu(j);
    }
    if (o->target == NULL) {
        return sx_usage(
            j->inv, sx_error(SX_INVALID_ARGUMENT, "give --target, or --memory for the CPU's plan"));
    }
    if (o->memory || o->svg != NULL || o->memory_limit > 0 || sx_option_given(j->inv, "threads")) {
        return sx_usage(j->inv,
                        sx_error(SX_INVALID_ARGUMENT,
                                 "--memory, --memory-limit, --svg and --threads are for the "
                                 "target cpu, "
                                 "not %s",
                                 o->target));
    }
    if (o->save != NULL) {
        SX_TRY(try_save(o->save));
    }
    SX_TRY(sx_usage(j->inv, sx_target_parse(o->target, &j->target)));
    sx_pjrt_settings xla;
    SX_TRY(sx_usage(j->inv, sx_pjrt_read_xla_settings(o->xla_options, &j->inv->arena, &xla)));
    if (o->iterations > 1 && strcmp(o->mode, "train") != 0) {
        return sx_usage(j->inv, sx_error(SX_INVALID_ARGUMENT, "--%s is for --mode train",
                                         sx_option_typed(j->inv, "iterations-per-loop")));
    }
    const sx_compile_model_request wanted = {
        .name = j->inv->words.items[0],
        .mode = strcmp(o->mode, "train") == 0 ? SX_TRAIN : SX_PREDICT,
        .precision = o->precision,
        .by_default = j->target.tpu != NULL ? SX_BF16 : SX_F32,
        .params = &o->param,
        .image_size = o->image_size,
        .signature = o->signature,
    };
    SX_TRY(sx_compile_model_open(j->inv, &wanted, &j->model));
    return compile(j);
}

static sx_status run(sx_invocation *inv)
{
    const options *o = inv->options;
    job j = {.inv = inv, .o = o, .batch = o->batch_size > 0 ? o->batch_size : BATCH};
    sx_status status = run_job(&j);
    sx_compile_model_end(&j.model);
    return status;
}

const sx_command sx_command_compile = {
    .name = "compile",
    .summary = "compile ahead of time for a TPU; report memory and cost",
    .words = "MODEL|./model.c|RUN_DIR|MODEL_DIR",
    .about = "libtpu (pip install libtpu) compiles for TPUs ahead of time: no TPU is needed, and "
             "nothing runs. A batch that does not fit in memory is an error with the figures, exit "
             "code 5. Figures are cached. Runs, and SavedModels (with --mode predict), are "
             "compiled as they were built. With --memory, prints how much memory the temporaries "
             "of a step take on the CPU, and the least that they could take: the largest number of "
             "bytes in use at the same time.",
    .examples = "  sextant compile resnet50 --target tpu:v5e:2x2 --batch-size 1024\n"
                "  sextant compile resnet50 --target v5litepod-16 --batch-size 4096 --json\n"
                "  sextant compile resnet50 --target v6e-8 --batch-size 2048 "
                "--iterations-per-loop 8\n"
                "  sextant compile ./flowers.c --target v6e-8 --mode predict --batch-size 256 -- "
                "--num_classes 5\n"
                "  sextant compile run1 --target pjrt-cpu:2 --batch-size 64\n"
                "  sextant compile models/flowers/1 --mode predict --target v5litepod-1 "
                "--batch-size 64\n"
                "  sextant compile resnet50 --memory --batch-size 16 --svg plan.svg",
    .min_words = 1,
    .max_words = 1,
    .rest = "model parameters",
    SX_COMMAND_OPTIONS(rows, options),
    .defaults = &defaults,
    .run = run,
};
