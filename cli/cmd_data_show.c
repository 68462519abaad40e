/* sextant data show */
#include <stdio.h>

#include "base/memory.h"
#include "command.h"
#include "data/prepare.h"
#include "data_options.h"

struct options {
    sx_data_words data;
    int64_t count;
};

static const struct options defaults = {.data = SX_DATA_WORDS_DEFAULT, .count = 3};

static const sx_option options[] = {
    {.name = "count",
     .kind = SX_OPTION_INT,
     SX_OPT(struct options, count),
     .value = "N",
     .help = "examples to print",
     .min = 0,
     .max = 1e9},
    SX_DATA_OPTIONS(struct options, data),
};

static sx_status run(sx_invocation *inv)
{
    const struct options *o = inv->options;
    sx_data_options data;
    char *spec = NULL;
    sx_buf text;
    SX_TRY(sx_data_words_read(&o->data, &data));
    SX_TRY(sx_data_words_join(&inv->words, &spec));
    sx_buf_init(&text, 0);
    sx_status status = sx_data_show(spec, &data, o->count, &text);
    fputs(sx_buf_text(&text), stdout);
    sx_buf_deinit(&text);
    sx_free(spec);
    return status;
}

const sx_command sx_command_data_show = {
    .name = "data show",
    .summary = "say what some data are and print their first examples",
    .words = "DATA...",
    .about = "DATA is a TFRecord pattern, a folder or archive of class folders, an IDX pair, .npy\n"
             "arrays, or generated:digits?n=60000.",
    .examples = "sextant data show 'data/train-*'",
    .min_words = 1,
    .max_words = -1,
    SX_COMMAND_OPTIONS(options, struct options),
    .defaults = &defaults,
    .run = run,
};
