/* The page for people; see status_page.h. */
#include "serve/status_page.h"

#include <inttypes.h>
#include <stdio.h>

const char sx_status_page_headers[] =
    "Cache-Control: no-store\r\n"
    "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\n";

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"refresh\" content=\"5\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n<title>Sextant</title>\n<style>\n"
    "body { font: 15px/1.4 sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em; "
    "color: #222; background: #fff }\n"
    "table { border-collapse: collapse; width: 100% }\n"
    "th, td { padding: .3em .7em; text-align: left; border-bottom: 1px solid #ddd }\n"
    "th { font-weight: 600; border-bottom: 2px solid #999 }\n"
    ".n { text-align: right; font-variant-numeric: tabular-nums }\n"
    ".AVAILABLE { color: #06702c }\n.FAILED { color: #b00020; font-weight: 600 }\n"
    ".START, .LOADING, .UNLOADING { color: #8a5a00 }\n.END { color: #767676 }\n"
    "</style>\n</head>\n<body>\n<h1>Sextant</h1>\n";

static const char table_head[] =
    "<table>\n<thead>\n<tr><th scope=\"col\">model</th><th scope=\"col\">version</th>"
    "<th scope=\"col\">labels</th><th scope=\"col\">state</th>"
    "<th scope=\"col\" class=\"n\">requests</th><th scope=\"col\" class=\"n\">failed</th>"
    "<th scope=\"col\" class=\"n\">a second</th><th scope=\"col\" class=\"n\">median</th>"
    "<th scope=\"col\" class=\"n\">99 of 100</th><th scope=\"col\" class=\"n\">memory</th></tr>\n"
    "</thead>\n<tbody>\n";

static void print_duration(sx_buf *out, int64_t ns)
{
    const int64_t s = ns / 1000000000;
    if (s >= 86400) {
        sx_buf_printf(out, "%" PRId64 " d %" PRId64 " h", s / 86400, s % 86400 / 3600);
    } else if (s >= 3600) {
        sx_buf_printf(out, "%" PRId64 " h %" PRId64 " min", s / 3600, s % 3600 / 60);
    } else if (s >= 60) {
        sx_buf_printf(out, "%" PRId64 " min", s / 60);
    } else {
        sx_buf_printf(out, "%" PRId64 " s", s);
    }
}

static void print_ms(sx_buf *out, double ms)
{
    sx_buf_printf(out, "<td class=\"n\">");
    if (ms > 0) {
        sx_buf_printf(out, ms < 10 ? "%.2f ms" : "%.0f ms", ms);
    }
    sx_buf_puts(out, "</td>");
}

static void print_version(sx_buf *out, const char *model, const sx_version_status *v,
                          const sx_model_label *labels, size_t label_count)
{
    const char *state = v->code != SX_CODE_OK ? "FAILED" : sx_version_state_name(v->state);
    const char *comma = "";
    sx_buf_puts(out, "<tr><td>");
    sx_buf_put_html(out, model);
    sx_buf_printf(out, "</td><td class=\"n\">%" PRId64 "</td><td>", v->version);
    for (size_t i = 0; i < label_count; i++) {
        if (labels[i].version == v->version) {
            sx_buf_puts(out, comma);
            sx_buf_put_html(out, labels[i].label);
            comma = ", ";
        }
    }
    sx_buf_printf(out, "</td><td class=\"%s\">%s", state, state);
    if (v->code != SX_CODE_OK) {
        sx_buf_printf(out, " (%s)", sx_code_name(v->code));
    }
    if (v->state != SX_VERSION_AVAILABLE) {
        sx_buf_puts(out, "</td><td></td><td></td><td></td><td></td><td></td><td></td></tr>\n");
        return;
    }
    sx_buf_printf(out,
                  "</td><td class=\"n\">%" PRIu64 "</td><td class=\"n\">%" PRIu64
                  "</td><td class=\"n\">%.1f</td>",
                  v->requests, v->failed, v->per_second);
    print_ms(out, v->median_ms);
    print_ms(out, v->p99_ms);
    sx_buf_puts(out, "<td class=\"n\">");
    if (v->memory_bytes > 0) {
        sx_buf_put_size(out, (double)v->memory_bytes);
    }
    sx_buf_puts(out, "</td></tr>\n");
}

static sx_status print_model(sx_manager *manager, const char *name, sx_arena *arena, sx_buf *out)
{
    sx_version_status *rows = NULL;
    sx_model_label *labels = NULL;
    size_t count = 0, label_count = 0;
    SX_TRY(sx_manager_labels(manager, name, arena, &labels, &label_count));
    sx_status status = sx_manager_status(manager, name, SX_LATEST_VERSION, arena, &rows, &count);
    if (sx_status_code(status) != SX_NOT_FOUND) {
        SX_TRY(status);
    }
    sx_status_free(status);
    if (count == 0) {
        sx_buf_puts(out, "<tr><td>");
        sx_buf_put_html(out, name);
        sx_buf_puts(out, "</td><td colspan=\"9\" class=\"FAILED\">no versions</td></tr>\n");
    }
    for (size_t i = 0; i < count; i++) {
        print_version(out, name, &rows[i], labels, label_count);
    }
    return SX_OK;
}

static sx_status print_models(sx_manager *manager, sx_arena *arena, sx_buf *out)
{
    const char **names = NULL;
    size_t count = 0;
    SX_TRY(sx_manager_names(manager, arena, &names, &count));
    sx_buf_puts(out, table_head);
    for (size_t i = 0; i < count; i++) {
        SX_TRY(print_model(manager, names[i], arena, out));
    }
    sx_buf_puts(out, "</tbody>\n</table>\n");
    return SX_OK;
}

sx_status sx_status_page_print(const sx_status_page_config *config, sx_buf *out)
{
    sx_arena arena;
    sx_buf_puts(out, head);
    sx_buf_printf(out, "<p>Version " SX_VERSION ", running for ");
    print_duration(out, config->running_ns);
    sx_buf_printf(out,
                  "; %" PRIu64 " requests so far, %zu waiting for a thread; %" PRIu64
                  " connections open",
                  config->http.requests, config->queued, config->http.connections);
    if (config->memory != NULL) {
        sx_buf_puts(out, "; requests hold ");
        sx_buf_put_size(out, (double)sx_budget_used(config->memory));
        sx_buf_puts(out, " of ");
        sx_buf_put_size(out, (double)config->memory->limit_bytes);
    }
    sx_buf_puts(out, ".</p>\n");
    sx_arena_init(&arena, 0);
    sx_status status = print_models(config->manager, &arena, out);
    sx_arena_deinit(&arena);
    SX_TRY(status);
    sx_buf_puts(out,
                "<p>Requests are counted since the version was loaded; \"a second\" is the last "
                "minute's mean, and times are those of requests that succeeded.");
    if (config->metrics_path != NULL) {
        sx_buf_puts(out, " For programs: <a href=\"");
        sx_buf_put_html(out, config->metrics_path);
        sx_buf_puts(out, "\">metrics</a>.");
    }
    sx_buf_puts(out, "</p>\n</body>\n</html>\n");
    return SX_OK;
}
