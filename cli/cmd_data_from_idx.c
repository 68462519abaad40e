/* sextant data from-idx */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "data/prepare.h"
#include "data_args.h"

typedef struct options {
    const char *out, *format;
    int64_t shards, label_base;
} options;

static const sx_option rows[] = {
    {"out", SX_OPTION_STRING, SX_OPT(options, out), "prefix of the output files", "PATH",
     .required = true},
    {"format", SX_OPTION_CHOICE, SX_OPT(options, format),
     "raw: features image_raw and label; png: image/encoded and the other features of from-images",
     .choices = "raw|png"},
    {"shards", SX_OPTION_INT, SX_OPT(options, shards),
     "number of files; default: one per 128 MiB of pixels", "N", .min = 1, .max = 100000},
    {"label-base", SX_OPTION_INT, SX_OPT(options, label_base), "label of the first class", "N",
     .min = 0, .max = 1},
};
static const options defaults = {.format = "raw"};

static sx_status run(sx_invocation *inv)
{
    const options *o = inv->options;
    sx_work_line line = {.inv = inv, .what = "writing"};
    sx_from_idx_args args = {
        .images = inv->words.items[0],
        .labels = inv->words.items[1],
        .out = o->out,
        .png = strcmp(o->format, "png") == 0,
        .shards = (int)o->shards,
        .label_base = (int)o->label_base,
        .progress = sx_work_progress,
        .user = &line,
    };
    sx_buf text;
    sx_buf_init(&text, 0);
    sx_status status = sx_from_idx(&args, &text);
    sx_work_end(&line);
    if (status == SX_OK) {
        sx_print_done(inv, sx_buf_text(&text));
    }
    sx_buf_deinit(&text);
    return status;
}

const sx_command sx_command_data_from_idx = {
    .name = "data from-idx",
    .summary = "convert a pair of IDX files (MNIST) to TFRecord files",
    .words = "IMAGES LABELS",
    .examples = "  sextant data from-idx train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz "
                "--out data/mnist-train",
    .min_words = 2,
    .max_words = 2,
    .stops_itself = true,
    SX_COMMAND_OPTIONS(rows, options),
    .defaults = &defaults,
    .run = run,
};
