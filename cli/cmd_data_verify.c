/* sextant data verify */
#include <stdio.h>

#include "command.h"
#include "data/prepare.h"
#include "data_options.h"
#include "io/path.h"

struct options {
    sx_data_words data;
    bool decode;
};

static const struct options defaults = {.data = SX_DATA_WORDS_DEFAULT};

static const sx_option options[] = {
    {.name = "decode",
     .kind = SX_OPTION_FLAG,
     SX_OPT(struct options, decode),
     .help = "decode every image too"},
    SX_DATA_OPTIONS(struct options, data),
};

static void print_result(const sx_verify_result *r)
{
    printf("%lld files, %lld records, %.1f MiB: ", (long long)r->files, (long long)r->records,
           (double)r->bytes / (1 << 20));
    if (r->corrupt + r->undecodable == 0) {
        printf("no fault\n");
    } else {
        printf("%lld corrupt, %lld undecodable\n", (long long)r->corrupt,
               (long long)r->undecodable);
    }
}

static sx_status verify(const struct options *o, const sx_paths *paths)
{
    sx_data_options data;
    SX_TRY(sx_data_words_read(&o->data, &data));
    sx_data_progress progress = {.label = "verify"};
    sx_verify_args args = {.paths = (const char *const *)paths->items,
                           .path_count = paths->count,
                           .decode = o->decode,
                           .options = &data,
                           .progress = sx_data_progress_show,
                           .user = &progress};
    sx_verify_result result;
    sx_buf text;
    sx_buf_init(&text, 0);
    sx_status status = sx_data_verify(&args, &text, &result);
    sx_data_progress_end(&progress);
    fputs(sx_buf_text(&text), stdout);
    sx_buf_deinit(&text);
    if (status == SX_OK) {
        print_result(&result);
    }
    return status;
}

static sx_status run(sx_invocation *inv)
{
    sx_paths paths = {0};
    SX_TRY(sx_paths_glob(inv->words.items, (size_t)inv->words.count, &paths));
    sx_status status = verify(inv->options, &paths);
    sx_paths_deinit(&paths);
    return status;
}

const sx_command sx_command_data_verify = {
    .name = "data verify",
    .summary = "read every byte of TFRecord files and say whether it is right",
    .words = "PATTERN...",
    .about =
        "Checks checksums, that each record is an Example, its label, and counts and sums that\n"
        "the schema beside the files notes. Stops at the first fault, which it names with file,\n"
        "record and offset; with --skip-corrupt it counts them all.",
    .examples = "sextant data verify 'data/train-*' --decode",
    .min_words = 1,
    .max_words = -1,
    SX_COMMAND_OPTIONS(options, struct options),
    .defaults = &defaults,
    .run = run,
};
