/* sextant evaluate */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "class_report.h"
#include "command.h"
#include "io/json_text.h"
#include "io/path.h"
#include "run_args.h"

typedef struct options {
    sx_words data;
    const char *checkpoint;
    const char *report;
    int64_t batch_size, examples, eval_steps, report_mistakes;
    bool json;
    sx_data_args data_args;
    sx_device_args device_args;
} options;

static const sx_option rows[] = {
    {"data", SX_OPTION_LIST, SX_OPT(options, data), "evaluation data, in any form that train takes",
     "DATA", .required = true},
    SX_CHECKPOINT_ROW(options),
    {"examples", SX_OPTION_INT, SX_OPT(options, examples),
     "maximum number of examples; default: all", "N", .min = 1},
    {"eval-steps", SX_OPTION_INT, SX_OPT(options, eval_steps),
     "maximum number of batches, as in TensorFlow; default: all", "N", .min = 1},
    {"batch-size", SX_OPTION_INT, SX_OPT(options, batch_size),
     "examples per batch; does not change the results", "N", .min = 1, .max = 1 << 24},
    {"json", SX_OPTION_FLAG, SX_OPT(options, json),
     "print a JSON object: step, examples, loss and each metric"},
    {"report", SX_OPTION_STRING, SX_OPT(options, report),
     "write a report on a classifier to this directory: report.html, report.json, classes.csv, "
     "confusion.csv, mistakes.csv",
     "DIR"},
    {"report-mistakes", SX_OPTION_INT, SX_OPT(options, report_mistakes),
     "number of mistakes shown in report.html, worst first", "N", .min = 0, .max = 10000},
    SX_DEVICE_ARGS_ROWS(options),
    SX_PROCESS_ROWS(options),
    SX_DATA_ARGS_ROWS(options),
};
static const sx_option_hint hints[] = {{"count", "use --examples"}};
static const options defaults = {
    .checkpoint = "latest", .report_mistakes = 48, .device_args = SX_PROCESS_ARGS_DEFAULTS};

/* NaN and infinities become null. */
static void set_number(json_t *object, const char *name, double value)
{
    json_t *number = json_real(value);
    json_object_set_new(object, name, number != NULL ? number : json_null());
}

static sx_status print_json(const sx_eval_result *result)
{
    json_t *object = json_object();
    json_object_set_new(object, "step", json_integer(result->step));
    json_object_set_new(object, "examples", json_integer(result->examples));
    set_number(object, "loss", result->loss);
    for (int i = 0; i < result->n_metrics; i++) {
        set_number(object, result->metrics[i].name, result->metrics[i].value);
    }
    char *text = NULL;
    sx_status status = sx_json_text(object, JSON_ENSURE_ASCII, &text);
    json_decref(object);
    if (status == SX_OK) {
        printf("%s\n", text);
    }
    sx_free(text);
    return status;
}

static void print_line(const sx_eval_result *result)
{
    sx_metric all[1 + SX_MAX_METRICS] = {{"loss", result->loss}};
    sx_buf line;
    for (int i = 0; i < result->n_metrics; i++) {
        all[1 + i] = result->metrics[i];
    }
    sx_buf_init(&line, 1 << 16);
    sx_put_results(&line, all, 1 + result->n_metrics);
    if (result->steps > 0) {
        sx_buf_puts(&line, "; ");
        sx_put_scored(&line, result->examples, result->available, result->steps);
    } else {
        sx_buf_puts(&line, " (");
        sx_put_scored(&line, result->examples, 0, 0);
        sx_buf_putc(&line, ')');
    }
    printf("Eval results at step %lld: %s\n", (long long)result->step, sx_buf_text(&line));
    sx_buf_deinit(&line);
}

/* ---- The report ---- */

typedef struct scoring {
    sx_origin origin;
    sx_class_scores scores;
} scoring;

static sx_status score_row(void *user, const sx_prediction *p)
{
    scoring *s = user;
    int64_t label = 0;
    float target = 0;
    if (p->n_classes == 0 || s->origin.label < 0 || !s->origin.label_is_integer) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "--report needs a model with class probabilities and one integer label per "
                        "example");
    }
    SX_TRY(sx_origin_label(&s->origin, p->record, &label, &target));
    return sx_class_scores_add(&s->scores, p->n_classes, label, p->classid, p->probabilities,
                               p->number, p->record);
}

/* Arguments may be any bytes, but the report is UTF-8. */
static const char *utf8_argument(sx_invocation *inv, const char *text)
{
    sx_buf clean;
    sx_buf_init(&clean, 1 << 20);
    sx_buf_put_utf8(&clean, text, strlen(text));
    const char *copy = sx_arena_strdup(&inv->arena, sx_buf_text(&clean));
    sx_buf_deinit(&clean);
    return copy != NULL ? copy : "";
}

static sx_status write_report(sx_invocation *inv, sx_trainer *trainer, sx_dataset *data,
                              const sx_eval_result *result)
{
    const options *o = inv->options;
    scoring s = {.scores = {.n = 0}};
    const char *spec = NULL;
    sx_status status;
    SX_TRY(sx_data_spec(inv, &o->data, &spec));
    SX_TRY_GOTO(status, sx_origin_init(&s.origin, data), done);
    SX_TRY_GOTO(status, sx_trainer_predict(trainer, data, result->examples, score_row, &s), done);
    if (!sx_trainer_is_chief(trainer)) {
        goto done;
    }
    sx_class_scores_sort(&s.scores);
    const sx_class_report report = {
        .run = utf8_argument(inv, inv->words.items[0]),
        .data = utf8_argument(inv, spec),
        .info = sx_trainer_info(trainer),
        .result = result,
        .scores = &s.scores,
        .origin = &s.origin,
        .pictures = (int)o->report_mistakes,
    };
    SX_TRY_GOTO(status, sx_class_report_write(&report, o->report), done);
    sx_log(SX_LOG_INFO, "wrote %s/report.html", o->report);
done:
    sx_class_scores_deinit(&s.scores);
    sx_origin_deinit(&s.origin);
    return status;
}

static sx_status evaluate(sx_invocation *inv, sx_trainer *trainer)
{
    const options *o = inv->options;
    sx_dataset *data = NULL;
    sx_eval_result result;
    SX_TRY(
        sx_open_run_data(inv, &o->data, &o->data_args, sx_trainer_info(trainer), SX_EVAL, &data));
    sx_status status =
        sx_trainer_evaluate_at_most(trainer, data, o->examples, o->eval_steps, &result);
    if (status == SX_OK && o->report != NULL) {
        status = write_report(inv, trainer, data, &result);
    }
    sx_dataset_release(data);
    SX_TRY(status);
    if (!sx_trainer_is_chief(trainer)) {
        return SX_OK;
    }
    if (o->json) {
        return print_json(&result);
    }
    print_line(&result);
    return SX_OK;
}

static sx_status run(sx_invocation *inv)
{
    const options *o = inv->options;
    sx_trainer *trainer = NULL;
    const bool makes_dir = o->report != NULL && !sx_path_exists(o->report);
    if (o->report != NULL) {
        SX_TRY(sx_dir_create(o->report)); /* fail before evaluating */
    }
    sx_status status = sx_open_run_on(inv, &o->device_args, o->checkpoint, o->batch_size, &trainer);
    if (status == SX_OK) {
        status = evaluate(inv, trainer);
        sx_trainer_destroy(trainer);
    }
    if (status != SX_OK && makes_dir) {
        (void)rmdir(o->report); /* unless it has files */
    }
    return status;
}

const sx_command sx_command_evaluate = {
    .name = "evaluate",
    .summary = "evaluate a checkpoint on a data set",
    .words = "RUN_DIR",
    .about = "Every example is scored exactly once. Results are bit-identical for every batch "
             "size. The graphs stored in the run are used; the model's source is not needed.",
    .examples = "  sextant evaluate run1 --data 'data/test-*' --json\n"
                "  sextant evaluate run1 --data photos/ --checkpoint best\n"
                "  sextant evaluate run1 --data photos/ --report report/\n"
                "  sextant evaluate /shared/run4 --data 'imagenet/val-*' --device cuda:8 "
                "--coordinator host0:8470 --num-processes 4 --process-id 0",
    .min_words = 1,
    .max_words = 1,
    .stops_itself = true,
    SX_COMMAND_OPTIONS(rows, options),
    SX_COMMAND_HINTS(hints),
    .defaults = &defaults,
    .run = run,
};
