/* sextant data from-idx */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "data/prepare.h"
#include "data_options.h"

struct options {
    const char *out, *format;
    int64_t shards, label_base;
};

static const struct options defaults = {.format = "raw"};

static const sx_option options[] = {
    {.name = "out",
     .kind = SX_OPTION_STRING,
     SX_OPT(struct options, out),
     .value = "PREFIX",
     .help = "beginning of the files' names",
     .required = true},
    {.name = "format",
     .kind = SX_OPTION_CHOICE,
     SX_OPT(struct options, format),
     .value = "FORMAT",
     .choices = "raw|png",
     .help = "raw: image_raw and label; png: image/encoded and image/class/label"},
    {.name = "shards",
     .kind = SX_OPTION_INT,
     SX_OPT(struct options, shards),
     .value = "N",
     .help = "files (default: one for each 128 MiB)",
     .min = 1,
     .max = 16384},
    {.name = "label-base",
     .kind = SX_OPTION_INT,
     SX_OPT(struct options, label_base),
     .value = "N",
     .help = "number that the first class gets",
     .min = 0,
     .max = 1e6},
};

static sx_status run(sx_invocation *inv)
{
    const struct options *o = inv->options;
    sx_data_progress progress = {.label = o->out};
    sx_from_idx_args args = {.images = inv->words.items[0],
                             .labels = inv->words.items[1],
                             .out = o->out,
                             .png = strcmp(o->format, "png") == 0,
                             .shards = (int)o->shards,
                             .label_base = (int)o->label_base,
                             .progress = sx_data_progress_show,
                             .user = &progress};
    sx_buf text;
    sx_buf_init(&text, 0);
    sx_status status = sx_from_idx(&args, &text);
    sx_data_progress_end(&progress);
    fputs(sx_buf_text(&text), stdout);
    sx_buf_deinit(&text);
    return status;
}

const sx_command sx_command_data_from_idx = {
    .name = "data from-idx",
    .summary = "write an IDX pair (MNIST) as TFRecords",
    .words = "IMAGES LABELS",
    .examples = "sextant data from-idx train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz "
                "--out data/mnist-train",
    .min_words = 2,
    .max_words = 2,
    SX_COMMAND_OPTIONS(options, struct options),
    .defaults = &defaults,
    .run = run,
};
