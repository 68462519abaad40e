/* sextant data take */
#include <stdio.h>

#include "base/memory.h"
#include "command.h"
#include "data/prepare.h"
#include "data_options.h"
#include "image/preprocess.h"

struct options {
    sx_data_words data;
    const char *out, *labels, *recipe;
    int64_t count, skip, size, channels;
};

static const struct options defaults = {
    .data = SX_DATA_WORDS_DEFAULT, .count = 1, .recipe = "simple", .channels = 3};

static const sx_option options[] = {
    {.name = "out",
     .kind = SX_OPTION_STRING,
     SX_OPT(struct options, out),
     .value = "X.npy",
     .help = "where the images or features go",
     .required = true},
    {.name = "labels",
     .kind = SX_OPTION_STRING,
     SX_OPT(struct options, labels),
     .value = "Y.npy",
     .help = "where the labels go"},
    {.name = "count",
     .kind = SX_OPTION_INT,
     SX_OPT(struct options, count),
     .value = "N",
     .help = "how many examples",
     .min = 1,
     .max = 1e9},
    {.name = "skip",
     .kind = SX_OPTION_INT,
     SX_OPT(struct options, skip),
     .value = "N",
     .help = "examples to pass over before",
     .min = 0,
     .max = 1e15},
    {.name = "size",
     .kind = SX_OPTION_INT,
     SX_OPT(struct options, size),
     .value = "PIXELS",
     .help = "preprocess to float32 of this height and width (default: uint8 as they are)",
     .min = 1,
     .max = 65536},
    {.name = "channels",
     .kind = SX_OPTION_INT,
     SX_OPT(struct options, channels),
     .value = "N",
     .help = "channels when preprocessing, 1 or 3",
     .min = 1,
     .max = 3},
    {.name = "recipe",
     .kind = SX_OPTION_STRING,
     SX_OPT(struct options, recipe),
     .value = "NAME",
     .help = "how to preprocess, in its evaluation form: simple or tpu-flowers"},
    SX_DATA_OPTIONS(struct options, data),
};

static sx_status take(const struct options *o, sx_dataset **data)
{
    if (o->size > 0) {
        sx_preprocess pre;
        SX_TRY(sx_preprocess_recipe(o->recipe, (int)o->size, (int)o->size, (int)o->channels, &pre));
        SX_TRY(sx_image_pipeline(data, .preprocess = &pre));
    }
    return sx_data_take(*data, o->skip, o->count, o->out, o->labels);
}

static sx_status run(sx_invocation *inv)
{
    const struct options *o = inv->options;
    sx_data_options data_options;
    char *spec = NULL, *description = NULL;
    sx_dataset *data = NULL;
    SX_TRY(sx_data_words_read(&o->data, &data_options));
    SX_TRY(sx_data_words_join(&inv->words, &spec));
    sx_status status = sx_data_open(spec, &data_options, &data, &description);
    if (status == SX_OK) {
        fputs(description, stdout);
        status = take(o, &data);
    }
    if (status == SX_OK) {
        printf("wrote %lld examples to %s\n", (long long)o->count, o->out);
    }
    sx_dataset_release(data);
    sx_text_free(description);
    sx_free(spec);
    return status;
}

const sx_command sx_command_data_take = {
    .name = "data take",
    .summary = "write examples as .npy",
    .words = "DATA...",
    .examples =
        "sextant data take 'data/test-*' --count 3 --out x.npy\n"
        "sextant data take 'data/test-*' --skip 10 --count 3 --size 128 --out x.npy --labels y.npy",
    .min_words = 1,
    .max_words = -1,
    SX_COMMAND_OPTIONS(options, struct options),
    .defaults = &defaults,
    .run = run,
};
