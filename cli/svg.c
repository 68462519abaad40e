#include "svg.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/utf8.h"

/* As XML, which has no control characters and no bytes that are not UTF-8. */
static void put_escaped(sx_buf *out, const char *text)
{
    static const struct {
        char letter;
        const char *name;
    } names[] = {{'<', "&lt;"}, {'>', "&gt;"}, {'&', "&amp;"}, {'"', "&quot;"}};
    while (*text != '\0') {
        size_t plain = 0, k = 0;
        while (((unsigned char)text[plain] >= ' ' || text[plain] == '\n') &&
               strchr("<>&\"", text[plain]) == NULL) {
            plain++;
        }
        sx_buf_put_utf8(out, text, plain);
        text += plain;
        if (*text == '\0') {
            return;
        }
        while (k < SX_COUNT(names) && names[k].letter != *text) {
            k++;
        }
        sx_buf_puts(out, k < SX_COUNT(names) ? names[k].name : " ");
        text++;
    }
}

void sx_svg_begin(sx_buf *out, int width, int height)
{
    sx_buf_printf(out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                  "viewBox=\"0 0 %d %d\" font-family=\"'DejaVu Sans', Verdana, sans-serif\">\n",
                  width, height, width, height);
    sx_svg_rect(out, 0, 0, width, height, SX_SVG_PAPER, NULL);
}

void sx_svg_end(sx_buf *out)
{
    sx_buf_puts(out, "</svg>\n");
}

void sx_svg_rect(sx_buf *out, double x, double y, double width, double height, const char *color,
                 const char *about)
{
    sx_buf_printf(out, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"", x,
                  y, width, height, color);
    if (about == NULL) {
        sx_buf_puts(out, "/>\n");
        return;
    }
    sx_buf_puts(out, "><title>");
    put_escaped(out, about);
    sx_buf_puts(out, "</title></rect>\n");
}

void sx_svg_line(sx_buf *out, double x, double y, double to_x, double to_y, const char *color)
{
    sx_buf_printf(out, "<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" stroke=\"%s\"/>\n", x,
                  y, to_x, to_y, color);
}

void sx_svg_text(sx_buf *out, double x, double y, int size, const char *anchor, const char *color,
                 const char *text)
{
    sx_buf_printf(out,
                  "<text x=\"%.2f\" y=\"%.2f\" font-size=\"%d\" text-anchor=\"%s\" fill=\"%s\">", x,
                  y, size, anchor, color);
    put_escaped(out, text);
    sx_buf_puts(out, "</text>\n");
}

void sx_svg_label(sx_buf *out, double x, double y, double width, const char *color,
                  const char *text)
{
    enum { LEAST = 3, MOST = 200 };
    const size_t room = width > 0 ? (size_t)(width / SX_SVG_LETTER) : 0, length = strlen(text);
    char shown[MOST + sizeof("…")];
    if (room < LEAST) {
        return;
    }
    if (length <= room) {
        snprintf(shown, sizeof(shown), "%s", text);
    } else {
        const size_t cut = sx_utf8_prefix(text, SX_MIN(room - 1, (size_t)MOST));
        snprintf(shown, sizeof(shown), "%.*s…", (int)cut, text);
    }
    sx_svg_text(out, x, y, SX_SVG_SMALL, "start", color, shown);
}

/* A round step for about `wanted` marks on an axis to `most`. */
static double round_step(double most, int wanted)
{
    double step = 1e-6;
    for (int i = 0; step * wanted < most; i++) {
        step *= i % 3 == 1 ? 2.5 : 2;
    }
    return step;
}

void sx_svg_time_axis(sx_buf *out, double ms, double x, double width, double top, double bottom)
{
    const double step = round_step(ms, 10);
    for (double at = 0; at <= ms; at += step) {
        const double px = x + width * at / ms;
        char text[32];
        snprintf(text, sizeof(text), "%.6g ms", at);
        sx_svg_line(out, px, top, px, bottom, SX_SVG_GRID);
        sx_svg_text(out, px, bottom + 14, SX_SVG_SMALL, "middle", SX_SVG_FAINT, text);
    }
}
