/* sextant data fetch */
#include <stdio.h>

#include "command.h"
#include "data/prepare.h"
#include "data_options.h"

struct options {
    const char *dir, *sha256;
};

static const sx_option options[] = {
    {.name = "dir",
     .kind = SX_OPTION_STRING,
     SX_OPT(struct options, dir),
     .value = "DIR",
     .help = "where it goes; made if missing",
     .required = true},
    {.name = "sha256",
     .kind = SX_OPTION_STRING,
     SX_OPT(struct options, sha256),
     .value = "HEX",
     .help = "what an address's file must hash to"},
};

static sx_status run(sx_invocation *inv)
{
    const struct options *o = inv->options;
    sx_data_progress progress = {.label = inv->words.items[0], .bytes = true};
    sx_fetch_set_args args = {.name = inv->words.items[0],
                              .dir = o->dir,
                              .sha256 = o->sha256,
                              .progress = sx_data_progress_show,
                              .user = &progress};
    sx_buf text;
    sx_buf_init(&text, 0);
    sx_status status = sx_fetch_set(&args, &text);
    sx_data_progress_end(&progress);
    fputs(sx_buf_text(&text), stdout);
    sx_buf_deinit(&text);
    return status;
}

const sx_command sx_command_data_fetch = {
    .name = "data fetch",
    .summary = "download a data set and unpack it",
    .words = "flowers|mnist|catsdogs|URL",
    .about = "An interrupted download goes on where it stopped. MNIST is checked against its\n"
             "SHA-256; for the other two no sum is published by their owners.",
    .examples = "sextant data fetch flowers --dir photos/",
    .min_words = 1,
    .max_words = 1,
    SX_COMMAND_OPTIONS(options, struct options),
    .run = run,
};
