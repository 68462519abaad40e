#include "answer.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "command.h"
#include "io/file.h"
#include "io/path.h"
#include "savedmodel/export.h"

enum { TOP = 3, MAX_NAMES_BYTES = 64 << 20 };

static sx_status split_lines(sx_class_names *names, size_t size)
{
    int lines = 0;
    for (size_t i = 0; i < size; i++) {
        lines += names->text[i] == '\n' || i + 1 == size;
    }
    names->items = sx_alloc((size_t)lines + 1, sizeof(char *));
    if (names->items == NULL) {
        return sx_no_memory("for the answer");
    }
    for (char *at = names->text; at < names->text + size;) {
        size_t length = strcspn(at, "\n");
        names->items[names->count++] = at;
        at[length] = '\0';
        at += length + 1;
    }
    return SX_OK;
}

sx_status sx_class_names_read(const char *dir, sx_class_names *out_names)
{
    char *path = NULL;
    size_t size = 0;
    sx_class_names names = {0};
    SX_TRY(sx_path_format(&path, "%s/assets/" SX_CLASSES_ASSET, dir));
    sx_status status =
        sx_path_exists(path) ? sx_file_read(path, MAX_NAMES_BYTES, &names.text, &size) : SX_OK;
    sx_free(path);
    if (status == SX_OK && names.text != NULL) {
        status = split_lines(&names, size);
    }
    if (status != SX_OK) {
        sx_class_names_free(&names);
        return status;
    }
    *out_names = names;
    return SX_OK;
}

void sx_class_names_free(sx_class_names *names)
{
    sx_free(names->items);
    sx_free(names->text);
    *names = (sx_class_names){0};
}

/* The most probable class that is not in taken[0 .. n_taken). */
static int next_best(const float *probabilities, int n, const int *taken, int n_taken)
{
    int best = -1;
    for (int i = 0; i < n; i++) {
        bool free = true;
        for (int k = 0; k < n_taken; k++) {
            free &= taken[k] != i;
        }
        if (free && (best < 0 || probabilities[i] > probabilities[best])) {
            best = i;
        }
    }
    return best;
}

void sx_print_answer(const char *what, const float *probabilities, int n,
                     const sx_class_names *names)
{
    int taken[TOP];
    sx_print_visible(stdout, what);
    putchar(':');
    for (int k = 0; k < TOP && k < n; k++) {
        int i = taken[k] = next_best(probabilities, n, taken, k);
        printf("%s", k > 0 ? ", " : " ");
        if (i < names->count) {
            sx_print_visible(stdout, names->items[i]);
        } else {
            printf("class %d", i);
        }
        printf(" %.1f %%", 100 * (double)probabilities[i]);
    }
    putchar('\n');
}
