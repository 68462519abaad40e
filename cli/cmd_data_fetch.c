/* sextant data fetch */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "data/prepare.h"
#include "data_args.h"

typedef struct options {
    const char *dir, *sha256;
} options;

enum { SHA256_DIGITS = 64 };

static const sx_option rows[] = {
    {"dir", SX_OPTION_STRING, SX_OPT(options, dir),
     "directory to download into; created if missing", "DIR", .required = true},
    {"sha256", SX_OPTION_STRING, SX_OPT(options, sha256),
     "expected SHA-256 of the file at URL, 64 hexadecimal digits", "HEX"},
};

static sx_status run(sx_invocation *inv)
{
    const options *o = inv->options;
    const bool is_url = strstr(inv->words.items[0], "://") != NULL;
    if (o->sha256 != NULL && !is_url) {
        return sx_usage(inv, sx_error(SX_INVALID_ARGUMENT,
                                      "--%s is for URLs; the data sets known by name are checked "
                                      "against their own",
                                      sx_option_typed(inv, "sha256")));
    }
    if (o->sha256 != NULL && (strlen(o->sha256) != SHA256_DIGITS ||
                              strspn(o->sha256, "0123456789abcdefABCDEF") != SHA256_DIGITS)) {
        return sx_usage(
            inv, sx_error(SX_INVALID_ARGUMENT, "--%s is \"%.200s\", expected %d hexadecimal digits",
                          sx_option_typed(inv, "sha256"), o->sha256, (int)SHA256_DIGITS));
    }
    sx_work_line line = {.inv = inv, .what = inv->words.items[0], .in_bytes = true};
    sx_fetch_set_args args = {
        .name = inv->words.items[0],
        .dir = o->dir,
        .sha256 = o->sha256,
        .progress = sx_work_progress,
        .user = &line,
    };
    sx_buf text;
    sx_buf_init(&text, 0);
    sx_status status = sx_fetch_set(&args, &text);
    sx_work_end(&line);
    sx_print_done(inv, sx_buf_text(&text));
    sx_buf_deinit(&text);
    return sx_status_code(status) == SX_NOT_FOUND && !is_url ? sx_usage(inv, status) : status;
}

const sx_command sx_command_data_fetch = {
    .name = "data fetch",
    .summary = "download a data set",
    .words = "flowers|mnist|catsdogs|URL",
    .about = "An interrupted download resumes where it stopped. Archives are unpacked. flowers and "
             "mnist are checked against their SHA-256.",
    .examples = "  sextant data fetch flowers --dir photos/\n"
                "  sextant data fetch https://example.org/birds.zip --dir birds/ --sha256 2c26...",
    .min_words = 1,
    .max_words = 1,
    .stops_itself = true,
    SX_COMMAND_OPTIONS(rows, options),
    .run = run,
};
