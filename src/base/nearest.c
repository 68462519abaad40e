#include "base/nearest.h"

#include <string.h>

#include "base/checked.h"

enum { LONGEST = 127, MOST = 3, MIN_BEGINNING = 3 };

static int least(int a, int b, int c)
{
    return SX_MIN(a, SX_MIN(b, c));
}

int sx_edit_distance(const char *a, const char *b)
{
    /* rows[i % 3][j]: the distance between the first i bytes of a and the first j of b. */
    int rows[3][LONGEST + 1];
    size_t n = strnlen(a, LONGEST), m = strnlen(b, LONGEST);
    for (size_t j = 0; j <= m; j++) {
        rows[0][j] = (int)j;
    }
    for (size_t i = 1; i <= n; i++) {
        int *row = rows[i % 3], *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = (int)i;
        for (size_t j = 1; j <= m; j++) {
            int replaced = above[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = least(replaced, above[j] + 1, row[j - 1] + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = SX_MIN(row[j], two_above[j - 2] + 1);
            }
        }
    }
    return rows[n % 3][m];
}

int sx_nearest_names(const char *name, const char *const *names, size_t count, sx_buf *out)
{
    const char *best[MOST] = {NULL};
    int distances[MOST];
    int found = 0;
    for (size_t i = 0; i < count; i++) {
        int distance = sx_edit_distance(name, names[i]);
        size_t length = strlen(name), longer = SX_MAX(length, strlen(names[i]));
        bool begins = length >= MIN_BEGINNING && strncmp(names[i], name, length) == 0;
        if ((size_t)distance * 3 > longer && !begins) {
            continue;
        }
        int at = found < MOST ? found++ : MOST;
        for (; at > 0 && distances[at - 1] > distance; at--) {
            if (at < MOST) {
                best[at] = best[at - 1];
                distances[at] = distances[at - 1];
            }
        }
        if (at < MOST) {
            best[at] = names[i];
            distances[at] = distance;
        }
    }
    for (int i = 0; i < found; i++) {
        sx_buf_printf(out, "%s\"%s\"", i == 0 ? "" : i + 1 == found ? " or " : ", ", best[i]);
    }
    return found;
}

void sx_nearest_list(const char *name, const char *const *names, size_t count, sx_buf *out)
{
    sx_buf near;
    sx_buf_init(&near, 1 << 12);
    sx_buf_puts(out, count > 0 ? "(it has " : "(it has none");
    for (size_t i = 0; i < count; i++) {
        sx_buf_printf(out, "%s\"%s\"", i > 0 ? ", " : "", names[i]);
    }
    sx_buf_putc(out, ')');
    if (sx_nearest_names(name, names, count, &near) > 0) {
        sx_buf_printf(out, "; did you mean %s?", sx_buf_text(&near));
    }
    sx_buf_deinit(&near);
}
