#include "terminal.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/checked.h"

/* Global: whether a progress line is on the terminal. */
static atomic_bool line_is_drawn;

int sx_terminal_width(const sx_terminal *t)
{
    struct winsize size;
    bool known = ioctl(fileno(t->stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return known ? size.ws_col : 80;
}

sx_terminal sx_terminal_of(FILE *stream, const char *color)
{
    const char *kind = getenv("TERM"), *no_color = getenv("NO_COLOR");
    sx_terminal t = {.stream = stream};
    t.is_tty = isatty(fileno(stream)) && (kind == NULL || strcmp(kind, "dumb") != 0);
    t.colors = strcmp(color, "always") == 0 || (strcmp(color, "auto") == 0 && t.is_tty &&
                                                (no_color == NULL || no_color[0] == '\0'));
    return t;
}

const char *sx_style(const sx_terminal *t, sx_style_id style)
{
    static const char *const sequences[] = {
        [SX_STYLE_NONE] = "\033[0m", [SX_STYLE_BOLD] = "\033[1m", [SX_STYLE_ERROR] = "\033[1;31m",
        [SX_STYLE_DIM] = "\033[2m",  [SX_STYLE_BAR] = "\033[32m",
    };
    return t->colors ? sequences[style] : "";
}

/* The length of the character or escape sequence at `text`; *out_columns is its width. */
static int unit_at(const char *text, int *out_columns)
{
    int size = 1;
    *out_columns = text[0] != '\033';
    if (text[0] == '\033' && text[1] == '[') { /* up to its final letter */
        for (size = 2; text[size] != '\0' && (text[size] < '@' || text[size] > '~'); size++) {
        }
        return size + (text[size] != '\0');
    }
    while (((unsigned char)text[size] & 0xc0) == 0x80) {
        size++;
    }
    return size;
}

int sx_terminal_columns(const char *line)
{
    int columns = 0, more;
    for (; *line != '\0'; columns += more) {
        line += unit_at(line, &more);
    }
    return columns;
}

/* The bytes of `line` that fit in `columns`. */
static int prefix(const char *line, int columns)
{
    int at = 0, more;
    while (line[at] != '\0') {
        int size = unit_at(line + at, &more);
        if (more > columns) {
            break;
        }
        columns -= more;
        at += size;
    }
    return at;
}

/* The cursor is left in the first column: if the window gets narrower and the terminal wraps the
 * line, the next line still starts at the same place, and everything below is cleared. */
void sx_terminal_overwrite(const sx_terminal *t, const char *line)
{
    int shown = prefix(line, SX_MAX(sx_terminal_width(t) - 1, 1));
    fprintf(t->stream, "\r%.*s%s\033[J\r", shown, line,
            line[shown] != '\0' ? sx_style(t, SX_STYLE_NONE) : "");
    fflush(t->stream);
    line_is_drawn = line[0] != '\0';
}

const char *sx_terminal_fresh_line(void)
{
    return line_is_drawn && isatty(STDERR_FILENO) ? "\r\033[J" : "";
}

void sx_put_bar(sx_buf *out, const sx_terminal *t, double done, int columns)
{
    int filled = SX_MIN((int)(done * columns + 0.5), columns);
    sx_buf_puts(out, sx_style(t, SX_STYLE_BAR));
    for (int i = 0; i < columns; i++) {
        sx_buf_puts(out, i == filled ? sx_style(t, SX_STYLE_NONE) : "");
        sx_buf_puts(out, i == filled ? sx_style(t, SX_STYLE_DIM) : "");
        sx_buf_puts(out, i < filled ? "▇" : "▁");
    }
    sx_buf_puts(out, sx_style(t, SX_STYLE_NONE));
}

void sx_put_duration(sx_buf *out, double seconds)
{
    long long s = (long long)(seconds + 0.5), hours = s / 3600, minutes = s / 60 % 60;
    if (hours > 0) {
        sx_buf_printf(out, "%lld:%02lld:%02lld", hours, minutes, s % 60);
    } else {
        sx_buf_printf(out, "%lld:%02lld", minutes, s % 60);
    }
}

void sx_put_grouped(sx_buf *out, double number)
{
    char digits[64];
    int n = snprintf(digits, sizeof(digits), "%.0f", fmin(fabs(number), 1e18));
    if (number < 0) {
        sx_buf_putc(out, '-');
    }
    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0) {
            sx_buf_putc(out, ',');
        }
        sx_buf_putc(out, digits[i]);
    }
}
