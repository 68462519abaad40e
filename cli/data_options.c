/* See data_options.h. */
#include "data_options.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "command.h"

static const int64_t show_every_ns = 100 * 1000 * 1000;

static sx_status read_feature(const char *word, sx_data_options *options)
{
    if (strncmp(word, "image=", 6) == 0 && word[6] != '\0') {
        options->image_key = word + 6;
    } else if (strncmp(word, "label=", 6) == 0 && word[6] != '\0') {
        options->label_key = word + 6;
    } else {
        return sx_error(SX_INVALID_ARGUMENT, "--feature is \"%s\", expected image=KEY or label=KEY",
                        word);
    }
    return SX_OK;
}

sx_status sx_data_words_read(const sx_data_words *words, sx_data_options *out_options)
{
    sx_data_options options = {.struct_size = sizeof(options),
                               .compression = words->compression,
                               .skip_corrupt = words->skip_corrupt};
    if (words->label_base != INT64_MIN) {
        options.label_base = (int)words->label_base;
        options.label_base_set = true;
    }
    for (int i = 0; i < words->features.count; i++) {
        SX_TRY(read_feature(words->features.items[i], &options));
    }
    *out_options = options;
    return SX_OK;
}

sx_status sx_data_words_join(const sx_words *words, char **out_spec)
{
    sx_buf spec;
    sx_buf_init(&spec, 0);
    for (int i = 0; i < words->count; i++) {
        sx_buf_puts(&spec, i == 0 ? "" : ",");
        sx_buf_puts(&spec, words->items[i]);
    }
    sx_status status = sx_buf_status(&spec);
    if (status == SX_OK) {
        *out_spec = sx_buf_take(&spec, NULL);
    }
    sx_buf_deinit(&spec);
    return status;
}

bool sx_data_progress_show(void *user, int64_t done, int64_t total)
{
    sx_data_progress *progress = user;
    int64_t now_ns = sx_now_ns();
    if (isatty(STDERR_FILENO) && now_ns - progress->shown_ns > show_every_ns) {
        progress->shown_ns = now_ns;
        fprintf(stderr, "\r%s: ", progress->label);
        if (total > 0) {
            fprintf(stderr, "%3d %%", (int)(done * 100 / total));
        }
        if (progress->bytes) {
            fprintf(stderr, "  %.1f MiB", (double)done / (1 << 20));
        }
        fprintf(stderr, "\033[K");
    }
    return sx_stop_signal() == 0;
}

void sx_data_progress_end(sx_data_progress *progress)
{
    if (progress->shown_ns != 0) {
        fprintf(stderr, "\r\033[K");
    }
}
