/* Pictures: what is drawn of an SVG, in pixels from the upper left. The text is self-contained, and
 * shows what a thing is when the mouse rests on it. */
#ifndef SX_CLI_SVG_H
#define SX_CLI_SVG_H

#include "base/buffer.h"

enum { SX_SVG_SMALL = 11, SX_SVG_NORMAL = 13, SX_SVG_HEADING = 18 }; /* sizes of letters */
/* One letter of SX_SVG_SMALL is about this wide. */
#define SX_SVG_LETTER 6.2

void sx_svg_begin(sx_buf *out, int width, int height);
void sx_svg_end(sx_buf *out);
/* `about`: shown under the mouse; may be NULL. */
void sx_svg_rect(sx_buf *out, double x, double y, double width, double height, const char *color,
                 const char *about);
void sx_svg_line(sx_buf *out, double x, double y, double to_x, double to_y, const char *color);
/* `y` is the line that letters stand on; anchor: "start", "middle" or "end". */
void sx_svg_text(sx_buf *out, double x, double y, int size, const char *anchor, const char *color,
                 const char *text);
/* As much of the text as fits in `width`, with "…" if it is not all; nothing if three letters do
 * not fit. */
void sx_svg_label(sx_buf *out, double x, double y, double width, const char *color,
                  const char *text);

/* A time axis below y = `bottom`, from 0 at `x` to `ms` at `x + width`, with lines up to `top`. It
 * is SX_SVG_AXIS high. */
enum { SX_SVG_AXIS = 18 };
void sx_svg_time_axis(sx_buf *out, double ms, double x, double width, double top, double bottom);

#define SX_SVG_INK   "#1f2430"
#define SX_SVG_FAINT "#6b7280"
#define SX_SVG_GRID  "#d9dde3"
#define SX_SVG_PAPER "#ffffff"

#endif
