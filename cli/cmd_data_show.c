/* sextant data show */
#include <stdio.h>

#include "command.h"
#include "data/prepare.h"
#include "data_args.h"

typedef struct options {
    int64_t count;
    sx_data_args data_args;
} options;

static const sx_option rows[] = {
    {"count", SX_OPTION_INT, SX_OPT(options, count), "number of examples to print", "N", .min = 0,
     .max = 1e9},
    SX_DATA_ARGS_ROWS(options),
};
static const sx_option_hint hints[] = {{"examples", "use --count"}, {"n", "use --count"}};
static const options defaults = {.count = 2};

static sx_status run(sx_invocation *inv)
{
    const options *o = inv->options;
    sx_data_options how;
    const char *spec;
    SX_TRY(sx_data_args_options(inv, &o->data_args, &how));
    SX_TRY(sx_data_spec(inv, &inv->words, &spec));
    sx_buf text;
    sx_buf_init(&text, 0);
    sx_status status = sx_data_show(spec, &how, o->count, &text);
    if (status == SX_OK) {
        sx_print_visible(stdout, sx_buf_text(&text));
    }
    sx_buf_deinit(&text);
    return status;
}

const sx_command sx_command_data_show = {
    .name = "data show",
    .summary = "describe a data set; print examples",
    .words = "DATA",
    .examples = "  sextant data show 'data/train-*'\n  sextant data show photos/ --count 1\n"
                "  sextant data show people.csv\n"
                "  sextant data show 'generated:digits?n=100'",
    .min_words = 1,
    .max_words = -1,
    SX_COMMAND_OPTIONS(rows, options),
    SX_COMMAND_HINTS(hints),
    .defaults = &defaults,
    .run = run,
};
