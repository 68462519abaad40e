/* sextant data verify */
#include <stdio.h>

#include "command.h"
#include "data/prepare.h"
#include "data_args.h"
#include "io/path.h"
#include "terminal.h"

typedef struct options {
    bool decode;
    sx_data_args data_args;
} options;

static const sx_option rows[] = {
    {"decode", SX_OPTION_FLAG, SX_OPT(options, decode), "also decode every image (slow)"},
    SX_RECORD_ARGS_ROWS(options),
};

static void print_result(const sx_verify_result *r)
{
    sx_buf text;
    sx_buf_init(&text, 4096);
    sx_put_grouped(&text, (double)r->records);
    sx_buf_puts(&text, r->records == 1 ? " record in " : " records in ");
    sx_put_grouped(&text, (double)r->files);
    sx_buf_puts(&text, r->files == 1 ? " file, " : " files, ");
    sx_buf_put_size(&text, (double)r->bytes);
    if (r->corrupt + r->undecodable > 0) {
        sx_buf_printf(&text, ": %lld corrupt, %lld undecodable", (long long)r->corrupt,
                      (long long)r->undecodable);
    } else {
        sx_buf_puts(&text, ": all good");
    }
    printf("%s\n", sx_buf_text(&text));
    sx_buf_deinit(&text);
}

static sx_status verify(const sx_verify_args *args)
{
    sx_verify_result result;
    sx_buf text;
    sx_buf_init(&text, 0);
    sx_status status = sx_data_verify(args, &text, &result);
    sx_work_end(args->user);
    if (status == SX_OK) {
        sx_print_visible(stdout, sx_buf_text(&text));
        print_result(&result);
        if (result.corrupt + result.undecodable > 0) {
            status = sx_error(SX_DATA_LOSS, "corrupt records: %lld, undecodable images: %lld",
                              (long long)result.corrupt, (long long)result.undecodable);
        }
    }
    sx_buf_deinit(&text);
    return status;
}

static sx_status run(sx_invocation *inv)
{
    const options *o = inv->options;
    sx_data_options how;
    SX_TRY(sx_data_args_options(inv, &o->data_args, &how));
    sx_paths paths = {0};
    SX_TRY(sx_paths_glob(inv->words.items, (size_t)inv->words.count, &paths));
    sx_work_line line = {.inv = inv, .what = "files verified"};
    sx_verify_args args = {
        .paths = (const char *const *)paths.items,
        .path_count = paths.count,
        .decode = o->decode,
        .options = &how,
        .progress = sx_work_progress,
        .user = &line,
    };
    sx_status status = verify(&args);
    sx_paths_deinit(&paths);
    return status;
}

const sx_command sx_command_data_verify = {
    .name = "data verify",
    .summary = "check TFRecord and CSV files",
    .words = "FILE...",
    .about = "Of TFRecord files, checks checksums, Examples, labels and, with --decode, images; of "
             "CSV files, that each row has as many fields as the header. Stops at the first error, "
             "naming file, record and offset; with --skip-corrupt, "
             "counts all errors.",
    .examples = "  sextant data verify 'data/train-*' --decode\n  sextant data verify people.csv",
    .min_words = 1,
    .max_words = -1,
    .stops_itself = true,
    SX_COMMAND_OPTIONS(rows, options),
    .run = run,
};
