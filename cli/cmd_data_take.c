/* sextant data take */
#include <stdio.h>

#include "command.h"
#include "data/prepare.h"
#include "data_args.h"

typedef struct options {
    int64_t count, skip, size, channels;
    const char *out, *labels, *recipe;
    sx_data_args data_args;
} options;

static const sx_option rows[] = {
    {"count", SX_OPTION_INT, SX_OPT(options, count), "number of examples", "N", .min = 1,
     .max = 1e12},
    {"skip", SX_OPTION_INT, SX_OPT(options, skip), "number of examples to skip first", "N",
     .min = 0, .max = 1e12},
    {"out", SX_OPTION_STRING, SX_OPT(options, out), ".npy file to write", "FILE", .required = true},
    {"labels", SX_OPTION_STRING, SX_OPT(options, labels), ".npy file to write the labels to",
     "FILE"},
    {"size", SX_OPTION_INT, SX_OPT(options, size),
     "preprocess images to float32 of this height and width; default: unchanged, uint8", "PIXELS",
     .min = 1, .max = 65536},
    {"channels", SX_OPTION_INT, SX_OPT(options, channels),
     "channels of preprocessed images: 1 or 3", "N", .min = 1, .max = 3},
    {"recipe", SX_OPTION_STRING, SX_OPT(options, recipe),
     "preprocessing recipe for --size, as in evaluation: simple or tpu-flowers", "NAME"},
    SX_DATA_ARGS_ROWS(options),
};
static const sx_option_hint hints[] = {{"examples", "use --count"}, {"n", "use --count"}};
static const options defaults = {.count = 1, .channels = 3, .recipe = "simple"};

static sx_status take(sx_invocation *inv, sx_dataset **data)
{
    const options *o = inv->options;
    if (o->size > 0) {
        SX_TRY(sx_image_pipeline(data, .image = {(int)o->size, (int)o->size, (int)o->channels},
                                 .recipe = o->recipe));
    }
    SX_TRY(sx_data_take(*data, o->skip, o->count, o->out, o->labels));
    if (!sx_is_quiet(inv)) {
        printf("%s: %lld example%s\n", o->out, (long long)o->count, o->count == 1 ? "" : "s");
    }
    return SX_OK;
}

static sx_status run(sx_invocation *inv)
{
    const options *o = inv->options;
    sx_data_options how;
    const char *spec;
    sx_dataset *data = NULL;
    SX_TRY(sx_data_args_options(inv, &o->data_args, &how));
    SX_TRY(sx_data_spec(inv, &inv->words, &spec));
    SX_TRY(sx_data_args_open(spec, &how, &data, NULL));
    sx_status status = take(inv, &data);
    sx_dataset_release(data);
    return status;
}

const sx_command sx_command_data_take = {
    .name = "data take",
    .summary = "copy examples to a .npy array",
    .words = "DATA",
    .examples = "  sextant data take 'data/test-*' --count 3 --out x.npy\n"
                "  sextant data take 'data/test-*' --skip 10 --size 128 --out x.npy --labels y.npy",
    .min_words = 1,
    .max_words = -1,
    SX_COMMAND_OPTIONS(rows, options),
    SX_COMMAND_HINTS(hints),
    .defaults = &defaults,
    .run = run,
};
