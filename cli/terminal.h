/* Terminal output: colors, a line that is redrawn in place, the width. */
#ifndef SX_CLI_TERMINAL_H
#define SX_CLI_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

#include "base/buffer.h"

typedef struct sx_terminal {
    FILE *stream;
    bool is_tty; /* and not TERM=dumb: lines can be redrawn */
    bool colors;
} sx_terminal;

/* `color` is --color's value: auto, always, never. auto heeds NO_COLOR (no-color.org). */
sx_terminal sx_terminal_of(FILE *stream, const char *color);

typedef enum sx_style {
    SX_STYLE_NONE,
    SX_STYLE_BOLD,
    SX_STYLE_ERROR,
    SX_STYLE_DIM,
    SX_STYLE_BAR, /* the filled part of a progress bar */
} sx_style_id;
/* The escape sequence, or "" without colors. */
const char *sx_style(const sx_terminal *t, sx_style_id style);

/* The current width of the window in columns; 80 if unknown. */
int sx_terminal_width(const sx_terminal *t);

/* Replaces the line drawn by the last call; "" clears it. Only the first `width - 1` columns are
 * shown, so that it stays on one line. Only for a terminal. */
void sx_terminal_overwrite(const sx_terminal *t, const char *line);

/* The text that clears this line, to be printed before a message on stderr; "" if there is none. */
const char *sx_terminal_fresh_line(void);

/* The width of a line: one column per UTF-8 sequence, none for escape sequences. */
int sx_terminal_columns(const char *line);

/* "▇▇▇▇▇▁▁": `done` (0 to 1) of `columns`, with colors if the terminal has them. */
void sx_put_bar(sx_buf *out, const sx_terminal *t, double done, int columns);
/* "1:12", "2:03:10". */
void sx_put_duration(sx_buf *out, double seconds);
/* "1,204". */
void sx_put_grouped(sx_buf *out, double number);

#endif
