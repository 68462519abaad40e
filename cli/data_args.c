#include "data_args.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "command.h"
#include "terminal.h"

static sx_status read_feature(const char *word, sx_data_options *options)
{
    static const char *const names[] = {"image=", "label="};
    const char **keys[] = {&options->image_key, &options->label_key};
    for (size_t i = 0; i < SX_COUNT(names); i++) {
        if (strncmp(word, names[i], 6) == 0 && word[6] != '\0') {
            *keys[i] = word + 6;
            return SX_OK;
        }
    }
    return sx_error(SX_INVALID_ARGUMENT, "--feature is \"%s\", expected image=KEY or label=KEY",
                    word);
}

sx_status sx_data_args_options(sx_invocation *inv, const sx_data_args *args,
                               sx_data_options *out_options)
{
    sx_data_options options = {
        .struct_size = sizeof(options),
        .label_base = (int)args->label_base,
        .label_base_set = sx_option_given(inv, "label-base"),
        .compression = args->compression,
        .skip_corrupt = args->skip_corrupt,
        .recursive = args->recursive,
        .max_unpacked_bytes = args->max_unpacked_size,
    };
    for (int i = 0; i < args->feature.count; i++) {
        SX_TRY(sx_usage(inv, read_feature(args->feature.items[i], &options)));
    }
    *out_options = options;
    return SX_OK;
}

sx_status sx_data_spec(sx_invocation *inv, const sx_words *words, const char **out_spec)
{
    sx_buf text;
    sx_buf_init(&text, 1 << 26);
    for (int i = 0; i < words->count; i++) {
        sx_buf_printf(&text, "%s%s", i > 0 ? "," : "", words->items[i]);
    }
    sx_status status = sx_buf_status(&text);
    const char *spec = sx_arena_strdup(&inv->arena, sx_buf_text(&text));
    sx_buf_deinit(&text);
    if (status == SX_OK && spec == NULL) {
        status = sx_no_memory("for the data options");
    }
    if (status == SX_OK) {
        *out_spec = spec;
    }
    return status;
}

sx_status sx_data_args_open(const char *spec, const sx_data_options *options,
                            sx_dataset **out_dataset, char **out_description)
{
    char *description = NULL;
    SX_TRY(sx_data_open(spec, options, out_dataset, &description));
    size_t size = strlen(description);
    sx_log(SX_LOG_INFO, "%.*s", (int)(size - (size > 0 && description[size - 1] == '\n')),
           description);
    if (out_description != NULL) {
        *out_description = description;
    } else {
        sx_text_free(description);
    }
    return SX_OK;
}

static const int64_t redraw_ns = 100000000;

static void put_amount(sx_buf *out, const sx_work_line *line, int64_t amount)
{
    if (line->in_bytes) {
        sx_buf_put_size(out, (double)amount);
    } else {
        sx_put_grouped(out, (double)amount);
    }
}

bool sx_work_progress(void *user, int64_t done, int64_t total)
{
    sx_work_line *line = user;
    int64_t now = sx_now_ns();
    sx_terminal t = sx_terminal_of(stderr, sx_common_of(line->inv)->color);
    if (t.is_tty && !sx_is_quiet(line->inv) && now >= line->next_ns) {
        sx_buf text;
        sx_buf_init(&text, 4096);
        sx_buf_printf(&text, "%s  ", line->what);
        put_amount(&text, line, done);
        if (total > 0) {
            sx_buf_puts(&text, " of ");
            put_amount(&text, line, total);
            sx_buf_puts(&text, "  ");
            sx_put_bar(&text, &t, (double)done / (double)total, 20);
        }
        sx_terminal_overwrite(&t, sx_buf_text(&text));
        sx_buf_deinit(&text);
        line->next_ns = now + redraw_ns;
        line->drawn = true;
    }
    return sx_stop_signal() == 0;
}

void sx_work_end(sx_work_line *line)
{
    if (line->drawn) {
        sx_terminal t = sx_terminal_of(stderr, "never");
        sx_terminal_overwrite(&t, "");
        line->drawn = false;
    }
}

void sx_print_done(const sx_invocation *inv, const char *text)
{
    if (!sx_is_quiet(inv)) {
        sx_print_visible(stdout, text);
    }
}
