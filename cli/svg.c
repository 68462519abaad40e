#include "svg.h"

#include <stdio.h>

static void put_escaped(sx_buf *out, const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        switch (*c) {
        case '<':
            sx_buf_puts(out, "&lt;");
            break;
        case '>':
            sx_buf_puts(out, "&gt;");
            break;
        case '&':
            sx_buf_puts(out, "&amp;");
            break;
        case '"':
            sx_buf_puts(out, "&quot;");
            break;
        default: /* control characters are not XML */
            sx_buf_putc(out, (unsigned char)*c < ' ' && *c != '\n' ? ' ' : *c);
        }
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
    char shown[MOST + 4];
    if (room < LEAST) {
        return;
    }
    if (length <= room) {
        snprintf(shown, sizeof(shown), "%s", text);
    } else {
        snprintf(shown, sizeof(shown), "%.*s…", (int)(room - 1 < MOST ? room - 1 : MOST), text);
    }
    sx_svg_text(out, x, y, SX_SVG_SMALL, "start", color, shown);
}
