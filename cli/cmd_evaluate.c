/* sextant evaluate */
#include <stdio.h>

#include "base/memory.h"
#include "io/json_text.h"

#include "command.h"
#include "run_args.h"

typedef struct options {
    sx_words data;
    const char *checkpoint;
    int64_t batch_size, examples, eval_steps;
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
     "maximum number of batches, as in TensorFlow; default: every example", "N", .min = 1},
    {"batch-size", SX_OPTION_INT, SX_OPT(options, batch_size),
     "examples per batch; does not change the results", "N", .min = 1, .max = 1 << 24},
    {"json", SX_OPTION_FLAG, SX_OPT(options, json),
     "print a JSON object: step, examples, loss and each metric"},
    SX_DEVICE_ARGS_ROWS(options),
    SX_DATA_ARGS_ROWS(options),
};
static const options defaults = {.checkpoint = "latest", .device_args = SX_DEVICE_ARGS_DEFAULTS};

/* Numbers that JSON cannot write become null. */
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

static sx_status evaluate(sx_invocation *inv, sx_trainer *trainer)
{
    const options *o = inv->options;
    sx_dataset *data = NULL;
    sx_eval_result result;
    SX_TRY(sx_open_run_data(inv, &o->data, &o->data_args, sx_trainer_info(trainer), &data));
    sx_status status =
        sx_trainer_evaluate_at_most(trainer, data, o->examples, o->eval_steps, &result);
    sx_dataset_release(data);
    SX_TRY(status);
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
    SX_TRY(sx_open_run_on(inv, &o->device_args, o->checkpoint, o->batch_size, &trainer));
    sx_status status = evaluate(inv, trainer);
    sx_trainer_destroy(trainer);
    return status;
}

const sx_command sx_command_evaluate = {
    .name = "evaluate",
    .summary = "evaluate a checkpoint on a data set",
    .words = "RUN_DIR",
    .about = "Every example is scored exactly once. Results are bit-identical for every batch "
             "size. The graphs stored in the run are used; the model's source is not needed.",
    .examples = "  sextant evaluate run1 --data 'data/test-*' --json\n"
                "  sextant evaluate run1 --data photos/ --checkpoint best",
    .min_words = 1,
    .max_words = 1,
    .stops_itself = true,
    SX_COMMAND_OPTIONS(rows, options),
    .defaults = &defaults,
    .run = run,
};
