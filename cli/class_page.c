/* The HTML page of an evaluation: self-contained, with inline style and pictures, without scripts.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "class_page_css.h"
#include "class_report.h"
#include "image/encode.h"
#include "serve/base64.h"
#include "terminal.h"

enum {
    MAX_MATRIX_CLASSES = 50, /* larger matrices are only in confusion.csv */
    MANY_CLASSES = 8,        /* from here on, cells are narrow */
    SHORT_NAME = 3,          /* and column names vertical unless all are short */
    MAX_PAIRS = 10,
    PICTURE_SIDE = 320, /* maximum pixels of the longer side */
    SMALL_SIDE = 96,    /* up to here, pictures are enlarged */
    PIXELS_SIDE = 32,   /* and up to here, with visible pixels */
    JPEG_QUALITY = 85,
};

/* ---- Text ---- */

/* A name, isolated so that it may be written right to left. */
static void put_name(sx_buf *out, const char *name)
{
    sx_buf_puts(out, "<bdi>");
    sx_buf_put_html(out, name);
    sx_buf_puts(out, "</bdi>");
}

static void put_class_name(sx_buf *out, const sx_class_report *r, int i)
{
    char number[12];
    put_name(out, sx_report_class_name(r, i, number));
}

static void put_count(sx_buf *out, int64_t count)
{
    sx_put_grouped(out, (double)count);
}

/* "93.1 %", or "–" if undefined. The bar is decorative. */
static void put_ratio_cell(sx_buf *out, double value)
{
    if (isnan(value)) {
        sx_buf_puts(out, "<td>–</td>");
    } else {
        sx_buf_printf(out, "<td>%.1f %%<span class=\"bar\" style=\"--p:%.3f\"></span></td>",
                      100 * value, value);
    }
}

/* ---- Head ---- */

static void put_fact(sx_buf *out, const char *name, const char *value)
{
    sx_buf_printf(out, "<div><dt>%s</dt><dd>", name);
    put_name(out, value);
    sx_buf_puts(out, "</dd></div>\n");
}

static void put_tile(sx_buf *out, const char *name, const char *value)
{
    sx_buf_puts(out, "<div><dt>");
    sx_buf_put_html(out, name);
    sx_buf_printf(out, "</dt><dd>%s</dd></div>\n", value);
}

static void put_head(sx_buf *out, const sx_class_report *r)
{
    const sx_class_scores *s = r->scores;
    char text[64];
    sx_buf_puts(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                     "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                     "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                     "img-src data:; style-src 'unsafe-inline'\">\n<title>Evaluation of ");
    sx_buf_put_html(out, r->run);
    sx_buf_puts(out, "</title>\n<style>\n");
    sx_buf_append(out, class_page_css, sizeof(class_page_css));
    sx_buf_puts(out, "</style>\n</head>\n<body>\n<header>\n<h1>Evaluation of ");
    put_name(out, r->run);
    sx_buf_puts(out, "</h1>\n<dl class=\"facts\">\n");
    put_fact(out, "Model", r->info->model);
    snprintf(text, sizeof(text), "step %" PRId64, r->result->step);
    put_fact(out, "Checkpoint", text);
    put_fact(out, "Data", r->data);
    sx_buf_puts(out, "</dl>\n</header>\n<main>\n<dl class=\"tiles\">\n");

    sx_class_score macro, weighted;
    sx_class_scores_average(s, &macro, &weighted);
    snprintf(text, sizeof(text), "%.2f %%", 100 * (double)s->correct / (double)s->examples);
    put_tile(out, "Accuracy", text);
    snprintf(text, sizeof(text), "%.4g", r->result->loss);
    put_tile(out, "Loss", text);
    for (int i = 0; i < r->result->n_metrics; i++) {
        if (strcmp(r->result->metrics[i].name, "accuracy") != 0) {
            snprintf(text, sizeof(text), "%.4g", r->result->metrics[i].value);
            put_tile(out, r->result->metrics[i].name, text);
        }
    }
    snprintf(text, sizeof(text), "%.1f %%", 100 * macro.f1);
    put_tile(out, "F1, mean of classes", text);
    sx_buf count;
    sx_buf_init(&count, 64);
    put_count(&count, s->examples);
    put_tile(out, "Examples", sx_buf_text(&count));
    sx_buf_reset(&count);
    put_count(&count, s->n_mistakes);
    put_tile(out, "Mistakes", sx_buf_text(&count));
    sx_buf_deinit(&count);
    sx_buf_puts(out, "</dl>\n");
}

/* ---- Confusion matrix ---- */

static void put_cell(sx_buf *out, const sx_class_report *r, int label, int i)
{
    const sx_class_scores *s = r->scores;
    int64_t count = s->confusion[(int64_t)label * s->n + i];
    if (count == 0) {
        sx_buf_puts(out, "<td class=\"z\">0</td>");
        return;
    }
    double share = (double)count / (double)s->support[label];
    sx_buf_printf(out, "<td class=\"%c\" style=\"--p:%.3f\" title=\"", label == i ? 'r' : 'w',
                  share);
    char number[12];
    sx_buf_put_html(out, sx_report_class_name(r, label, number));
    sx_buf_puts(out, " → ");
    sx_buf_put_html(out, sx_report_class_name(r, i, number));
    sx_buf_printf(out, ": %.1f %%\">", 100 * share);
    put_count(out, count);
    if (s->n < MANY_CLASSES) {
        sx_buf_printf(out, "<small>%.*f %%</small>", share < 0.01 ? 1 : 0, 100 * share);
    }
    sx_buf_puts(out, "</td>");
}

static void put_matrix(sx_buf *out, const sx_class_report *r)
{
    const sx_class_scores *s = r->scores;
    sx_buf_puts(out, "<section aria-labelledby=\"confusion\">\n"
                     "<h2 id=\"confusion\">Confusion matrix</h2>\n");
    if (s->n > MAX_MATRIX_CLASSES) {
        sx_buf_printf(out,
                      "<p>%d classes are too many to show; the matrix is in <a "
                      "href=\"confusion.csv\">confusion.csv</a>.</p>\n</section>\n",
                      s->n);
        return;
    }
    sx_buf_puts(out, "<p class=\"quiet\">Each row has the examples of one true class, each "
                     "column those predicted as one class. Shades show the share of the row.</p>\n"
                     "<div class=\"scroll\" role=\"region\" aria-labelledby=\"confusion\" "
                     "tabindex=\"0\">\n");
    int longest = 0;
    for (int i = 0; i < s->n; i++) {
        char number[12];
        longest = SX_MAX(longest, sx_terminal_columns(sx_report_class_name(r, i, number)));
    }
    sx_buf_printf(out,
                  "<table class=\"matrix%s\">\n<thead>\n<tr><td class=\"axis\"></td><th "
                  "class=\"axis\" scope=\"colgroup\" colspan=\"%d\">Predicted</th><td "
                  "class=\"axis\"></td></tr>\n<tr><th class=\"axis\" scope=\"col\">True</th>",
                  s->n < MANY_CLASSES     ? ""
                  : longest <= SHORT_NAME ? " many"
                                          : " many upright",
                  s->n);
    for (int i = 0; i < s->n; i++) {
        char number[12];
        sx_buf_puts(out, "<th class=\"name\" scope=\"col\" title=\"");
        sx_buf_put_html(out, sx_report_class_name(r, i, number));
        sx_buf_puts(out, "\"><span>");
        put_class_name(out, r, i);
        sx_buf_puts(out, "</span></th>");
    }
    sx_buf_puts(out, "<th class=\"axis\" scope=\"col\">Examples</th></tr>\n</thead>\n<tbody>\n");
    for (int label = 0; label < s->n; label++) {
        sx_buf_puts(out, "<tr><th scope=\"row\">");
        put_class_name(out, r, label);
        sx_buf_puts(out, "</th>");
        for (int i = 0; i < s->n; i++) {
            put_cell(out, r, label, i);
        }
        sx_buf_puts(out, "<td class=\"sum\">");
        put_count(out, s->support[label]);
        sx_buf_puts(out, "</td></tr>\n");
    }
    sx_buf_puts(out, "</tbody>\n</table>\n</div>\n<p class=\"key\" aria-hidden=\"true\">"
                     "<span>Correct: 0 %<i class=\"r\"></i>100 %</span>"
                     "<span>Wrong: 0 %<i class=\"w\"></i>100 %</span></p>\n</section>\n");
}

/* ---- Scores by class, confused pairs ---- */

static void put_score_cells(sx_buf *out, const sx_class_score *score)
{
    put_ratio_cell(out, score->precision);
    put_ratio_cell(out, score->recall);
    put_ratio_cell(out, score->f1);
}

static void put_scores(sx_buf *out, const sx_class_report *r)
{
    const sx_class_scores *s = r->scores;
    sx_class_score macro, weighted;
    sx_class_scores_average(s, &macro, &weighted);
    sx_buf_puts(out, "<section aria-labelledby=\"classes\">\n"
                     "<h2 id=\"classes\">Scores by class</h2>\n"
                     "<p class=\"quiet\">Precision: the share of the predictions of a class that "
                     "are right. Recall: the share of the examples of a class that are found. F1: "
                     "their harmonic mean.</p>\n"
                     "<div class=\"scroll\" role=\"region\" aria-labelledby=\"classes\" "
                     "tabindex=\"0\">\n<table class=\"list\">\n<thead>\n<tr><th "
                     "scope=\"col\">Class</th><th scope=\"col\">Precision</th><th "
                     "scope=\"col\">Recall</th><th scope=\"col\">F1</th><th "
                     "scope=\"col\">Examples</th><th scope=\"col\">Predicted</th></tr>\n"
                     "</thead>\n<tbody>\n");
    for (int i = 0; i < s->n; i++) {
        sx_class_score score = sx_class_score_of(s, i);
        sx_buf_puts(out, "<tr><th scope=\"row\">");
        put_class_name(out, r, i);
        sx_buf_puts(out, "</th>");
        put_score_cells(out, &score);
        sx_buf_puts(out, "<td>");
        put_count(out, s->support[i]);
        sx_buf_puts(out, "</td><td>");
        put_count(out, s->predicted[i]);
        sx_buf_puts(out, "</td></tr>\n");
    }
    const struct {
        const char *name;
        const sx_class_score *score;
    } means[] = {{"Mean of classes", &macro}, {"Weighted by examples", &weighted}};
    sx_buf_puts(out, "</tbody>\n<tfoot>\n");
    for (size_t i = 0; i < SX_COUNT(means); i++) {
        sx_buf_printf(out, "<tr><th scope=\"row\">%s</th>", means[i].name);
        put_score_cells(out, means[i].score);
        sx_buf_puts(out, "<td>");
        put_count(out, s->examples);
        sx_buf_puts(out, "</td><td>");
        put_count(out, s->examples);
        sx_buf_puts(out, "</td></tr>\n");
    }
    sx_buf_puts(out, "</tfoot>\n</table>\n</div>\n</section>\n");
}

static void put_pairs(sx_buf *out, const sx_class_report *r)
{
    const sx_class_scores *s = r->scores;
    sx_confused pairs[MAX_PAIRS];
    int n = sx_class_scores_confused(s, pairs, MAX_PAIRS);
    if (n == 0) {
        return;
    }
    sx_buf_puts(
        out, "<section aria-labelledby=\"pairs\">\n"
             "<h2 id=\"pairs\">Most confused classes</h2>\n"
             "<div class=\"scroll\" role=\"region\" aria-labelledby=\"pairs\" "
             "tabindex=\"0\">\n<table class=\"list\">\n<thead>\n<tr><th "
             "scope=\"col\">True class</th><th class=\"text\" scope=\"col\">Predicted as</th><th "
             "scope=\"col\">Times</th><th scope=\"col\">Share of the true "
             "class</th></tr>\n</thead>\n<tbody>\n");
    for (int i = 0; i < n; i++) {
        double share = (double)pairs[i].count / (double)s->support[pairs[i].label];
        sx_buf_puts(out, "<tr><th scope=\"row\">");
        put_class_name(out, r, pairs[i].label);
        sx_buf_puts(out, "</th><td class=\"text\">");
        put_class_name(out, r, pairs[i].classid);
        sx_buf_puts(out, "</td><td>");
        put_count(out, pairs[i].count);
        sx_buf_printf(out,
                      "</td><td>%.1f %%<span class=\"bar w\" style=\"--p:%.3f\"></span></td>"
                      "</tr>\n",
                      100 * share, share);
    }
    sx_buf_puts(out, "</tbody>\n</table>\n</div>\n</section>\n");
}

/* ---- Mistakes ---- */

/* Averages blocks of pixels so that the longer side is at most PICTURE_SIDE; the caller frees
 * `out`. */
static sx_status shrink(const sx_image *in, sx_image *out)
{
    int side = SX_MAX(in->height, in->width);
    int height = SX_MAX((int)((int64_t)in->height * PICTURE_SIDE / side), 1);
    int width = SX_MAX((int)((int64_t)in->width * PICTURE_SIDE / side), 1);
    int channels = in->channels;
    SX_TRY(sx_image_reserve(out, SX_U8, height, width, channels));
    sx_image_set(out, SX_U8, height, width, channels);
    const uint8_t *from = in->pixels;
    uint8_t *to = out->pixels;
    for (int y = 0; y < height; y++) {
        int64_t top = (int64_t)y * in->height / height, end = (y + 1LL) * in->height / height;
        for (int x = 0; x < width; x++) {
            int64_t left = (int64_t)x * in->width / width, right = (x + 1LL) * in->width / width;
            int64_t sum[SX_IMAGE_MAX_CHANNELS] = {0}, count = (end - top) * (right - left);
            for (int64_t v = top; v < end; v++) {
                for (int64_t u = left; u < right; u++) {
                    for (int c = 0; c < channels; c++) {
                        sum[c] += from[(v * in->width + u) * channels + c];
                    }
                }
            }
            for (int c = 0; c < channels; c++) {
                *to++ = (uint8_t)((sum[c] + count / 2) / count);
            }
        }
    }
    return SX_OK;
}

static void put_data_uri(sx_buf *out, const char *type, const sx_buf *bytes)
{
    sx_buf_printf(out, "data:image/%s;base64,", type);
    char *text = sx_buf_extend(out, SX_BASE64_ENCODED(bytes->size));
    if (text != NULL) {
        sx_base64_encode(bytes->data, bytes->size, text);
    }
}

/* Pictures up to SMALL_SIDE keep their pixels; larger ones are shrunk and compressed. */
static sx_status put_picture(sx_buf *out, const sx_class_report *r, const sx_mistake *m)
{
    sx_image image = {0}, small = {0};
    sx_buf encoded;
    sx_buf_init(&encoded, 0);
    sx_status status = sx_origin_picture(r->origin, m->record, &image);
    if (sx_status_code(status) == SX_NOT_FOUND) {
        sx_status_free(status);
        goto done;
    }
    SX_TRY_GOTO(status, status, failed);
    int side = SX_MAX(image.height, image.width);
    bool is_small = side <= SMALL_SIDE;
    const sx_image *shown = &image;
    if (side > PICTURE_SIDE) {
        SX_TRY_GOTO(status, shrink(&image, &small), failed);
        shown = &small;
    }
    bool is_jpeg = !is_small && (shown->channels == 1 || shown->channels == 3);
    SX_TRY_GOTO(status,
                is_jpeg ? sx_jpeg_encode(shown, JPEG_QUALITY, &encoded)
                        : sx_png_encode(shown, &encoded),
                failed);
    sx_buf_printf(out,
                  "<div class=\"picture\"><img%s width=\"%d\" height=\"%d\" alt=\"Example %" PRId64
                  "\" src=\"",
                  side <= PIXELS_SIDE ? " class=\"small pixels\""
                  : is_small          ? " class=\"small\""
                                      : "",
                  shown->width, shown->height, m->number);
    put_data_uri(out, is_jpeg ? "jpeg" : "png", &encoded);
    sx_buf_puts(out, "\"></div>\n");
done:
    status = SX_OK;
failed:
    sx_buf_deinit(&encoded);
    sx_image_deinit(&small);
    sx_image_deinit(&image);
    return status;
}

static void put_verdict(sx_buf *out, const sx_class_report *r, const char *what, char kind, int i,
                        float probability)
{
    sx_buf_printf(out, "<div><dt>%s</dt><dd class=\"%c\">", what, kind);
    put_class_name(out, r, i);
    sx_buf_printf(out, "</dd><dd>%.1f %%</dd></div>\n", 100 * (double)probability);
}

static sx_status put_mistakes(sx_buf *out, const sx_class_report *r)
{
    const sx_class_scores *s = r->scores;
    int64_t shown = SX_MIN(s->n_mistakes, (int64_t)r->pictures);
    sx_buf_puts(out, "<section aria-labelledby=\"mistakes\">\n"
                     "<h2 id=\"mistakes\">Worst mistakes</h2>\n");
    if (s->n_mistakes == 0) {
        sx_buf_puts(out, "<p>None: every example is predicted correctly.</p>\n</section>\n");
        return SX_OK;
    }
    sx_buf_puts(out, "<p class=\"quiet\">");
    if (shown < s->n_mistakes) {
        put_count(out, shown);
        sx_buf_puts(out, " of ");
    }
    put_count(out, s->n_mistakes);
    sx_buf_puts(out, ", lowest probability of the true class first. All are in <a "
                     "href=\"mistakes.csv\">mistakes.csv</a>.</p>\n<ol class=\"cards\">\n");
    for (int64_t i = 0; i < shown; i++) {
        const sx_mistake *m = &s->mistakes[i];
        sx_buf_puts(out, "<li>\n");
        SX_TRY(put_picture(out, r, m));
        sx_buf_puts(out, "<dl>\n");
        put_verdict(out, r, "true", 'r', m->label, m->label_probability);
        put_verdict(out, r, "predicted", 'w', m->classid, m->probability);
        sx_buf_printf(out, "</dl>\n<p>example %" PRId64, m->number);
        const char *file = sx_origin_file(r->origin, m->record);
        size_t prefix = strlen(r->data);
        if (file != NULL && prefix > 0 && strncmp(file, r->data, prefix) == 0 &&
            (file[prefix] == '/' || r->data[prefix - 1] == '/')) {
            file += prefix + (file[prefix] == '/'); /* the head of the page shows the prefix */
        }
        if (file != NULL) {
            sx_buf_puts(out, "<br>");
            put_name(out, file);
        }
        sx_buf_puts(out, "</p>\n</li>\n");
    }
    sx_buf_puts(out, "</ol>\n</section>\n");
    return SX_OK;
}

/* ---- The page ---- */

sx_status sx_put_class_page(sx_buf *out, const sx_class_report *r)
{
    put_head(out, r);
    put_matrix(out, r);
    put_scores(out, r);
    put_pairs(out, r);
    SX_TRY(put_mistakes(out, r));
    sx_buf_puts(out, "</main>\n<footer>\n<p>The figures as data: <a "
                     "href=\"report.json\">report.json</a>, <a "
                     "href=\"classes.csv\">classes.csv</a>, <a "
                     "href=\"confusion.csv\">confusion.csv</a>, <a "
                     "href=\"mistakes.csv\">mistakes.csv</a>. Sextant " SX_VERSION
                     ".</p>\n</footer>\n</body>\n</html>\n");
    return sx_buf_status(out);
}
