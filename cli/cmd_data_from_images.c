/* sextant data from-images */
#include <stdio.h>

#include "command.h"
#include "data/prepare.h"
#include "data_options.h"

struct options {
    const char *out, *split;
    int64_t shards, label_base, seed;
};

static const sx_option options[] = {
    {.name = "out",
     .kind = SX_OPTION_STRING,
     SX_OPT(struct options, out),
     .value = "PATH",
     .help = "beginning of the files' names; with --split their folder",
     .required = true},
    {.name = "split",
     .kind = SX_OPTION_STRING,
     SX_OPT(struct options, split),
     .value = "NAME=FRACTION,...",
     .help = "sets to divide the images into, by the hash of their names"},
    {.name = "shards",
     .kind = SX_OPTION_INT,
     SX_OPT(struct options, shards),
     .value = "N",
     .help = "files of each set (default: one for each 128 MiB)",
     .min = 1,
     .max = 16384},
    {.name = "label-base",
     .kind = SX_OPTION_INT,
     SX_OPT(struct options, label_base),
     .value = "N",
     .help = "number of the first class; 1 for TPU-style files",
     .min = 0,
     .max = 1e6},
    {.name = "seed",
     .kind = SX_OPTION_INT,
     SX_OPT(struct options, seed),
     .value = "N",
     .help = "of split and order"},
};

static sx_status run(sx_invocation *inv)
{
    const struct options *o = inv->options;
    sx_data_progress progress = {.label = o->out};
    sx_from_images_args args = {.source = inv->words.items[0],
                                .out = o->out,
                                .split = o->split,
                                .shards = (int)o->shards,
                                .label_base = (int)o->label_base,
                                .seed = (uint64_t)o->seed,
                                .progress = sx_data_progress_show,
                                .user = &progress};
    sx_buf text;
    sx_buf_init(&text, 0);
    sx_status status = sx_from_images(&args, &text);
    sx_data_progress_end(&progress);
    fputs(sx_buf_text(&text), stdout);
    sx_buf_deinit(&text);
    return status;
}

const sx_command sx_command_data_from_images = {
    .name = "data from-images",
    .summary = "write class folders of JPEG and PNG files as TFRecords",
    .words = "FOLDER|TAR|ZIP",
    .about =
        "Each sub-folder is a class; classes are numbered by name. The files' bytes are kept as\n"
        "they are. The same images, split and seed give the same files.",
    .examples =
        "sextant data from-images photos/ --out data/ --split train=.8,val=.1,test=.1 --shards 8\n"
        "sextant data from-images flowers.tar --out data/train",
    .min_words = 1,
    .max_words = 1,
    SX_COMMAND_OPTIONS(options, struct options),
    .run = run,
};
