/* sextant data from-images */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "data/prepare.h"
#include "data_args.h"

typedef struct options {
    const char *out, *split;
    int64_t shards, label_base, seed, max_unpacked_size;
    bool recursive, skip_corrupt, decode;
} options;

static const sx_option rows[] = {
    {"out", SX_OPTION_STRING, SX_OPT(options, out),
     "prefix of the output files; with --split, the directory for them", "PATH", .required = true},
    {"split", SX_OPTION_STRING, SX_OPT(options, split),
     "split into sets by fraction: train=.8,val=.1,test=.1", "NAME=FRACTION,..."},
    {"shards", SX_OPTION_INT, SX_OPT(options, shards),
     "number of files per set; default: one per 128 MiB", "N", .min = 1, .max = 100000},
    {"label-base", SX_OPTION_INT, SX_OPT(options, label_base),
     "label of the first class: 0, or 1 as in TPU-style files", "N", .min = 0, .max = 1},
    {"seed", SX_OPTION_INT, SX_OPT(options, seed), "seed of the split and of the order", "N"},
    {"recursive", SX_OPTION_FLAG, SX_OPT(options, recursive),
     "include images in subfolders of class folders"},
    {"skip-corrupt", SX_OPTION_FLAG, SX_OPT(options, skip_corrupt),
     "skip images that cannot be decoded, and name them"},
    {"decode", SX_OPTION_FLAG, SX_OPT(options, decode),
     "decode every image to check it; with --no-decode, only headers are checked"},
    {"max-unpacked-size", SX_OPTION_SIZE, SX_OPT(options, max_unpacked_size),
     "bytes that an archive may be decompressed to; default: 100 times its size, at least 256M",
     "SIZE", .min = 1},
};
static const options defaults = {.decode = true};

static sx_status run(sx_invocation *inv)
{
    const options *o = inv->options;
    sx_work_line line = {.inv = inv, .what = "images"};
    sx_from_images_args args = {
        .source = inv->words.items[0],
        .out = o->out,
        .split = o->split,
        .shards = (int)o->shards,
        .label_base = (int)o->label_base,
        .seed = (uint64_t)o->seed,
        .recursive = o->recursive,
        .skip_corrupt = o->skip_corrupt,
        .no_decode = !o->decode,
        .max_unpacked_bytes = o->max_unpacked_size,
        .progress = sx_work_progress,
        .user = &line,
    };
    sx_buf text;
    if (o->split == NULL && o->out[strlen(o->out) - 1] == '/') {
        return sx_usage(inv, sx_error(SX_INVALID_ARGUMENT,
                                      "--%s is \"%s\", expected a prefix of file names, such as "
                                      "%strain, or a directory with --split",
                                      sx_option_typed(inv, "out"), o->out, o->out));
    }
    SX_TRY(sx_usage(inv, sx_from_images_check(&args)), "--%s", sx_option_typed(inv, "split"));
    sx_buf_init(&text, 0);
    sx_status status = sx_from_images(&args, &text);
    sx_work_end(&line);
    if (status == SX_OK) {
        sx_print_done(inv, sx_buf_text(&text));
    }
    sx_buf_deinit(&text);
    return status;
}

const sx_command sx_command_data_from_images = {
    .name = "data from-images",
    .summary = "convert class folders of images to TFRecord files",
    .words = "SOURCE",
    .about =
        "SOURCE is a directory with one folder per class, or a .tar or .zip of it. Files without "
        "an image's extension are skipped and counted. Every image is checked first; images that "
        "cannot be decoded are an error, unless --skip-corrupt is given. Images are stored as they "
        "are, not encoded again. The record files appear together at the end, or not at all.",
    .examples = "  sextant data from-images photos/ --out data/ --split train=.8,val=.1,test=.1 "
                "--shards 8\n  sextant data from-images photos.tar --out data/all",
    .min_words = 1,
    .max_words = 1,
    .stops_itself = true,
    SX_COMMAND_OPTIONS(rows, options),
    .defaults = &defaults,
    .run = run,
};
