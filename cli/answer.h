/* Prints a classifier's result: "rose.jpg: rose 93.2 %, tulip 4.1 %, daisy 1.9 %". */
#ifndef SX_CLI_ANSWER_H
#define SX_CLI_ANSWER_H

#include <sextant/types.h>

/* Class names by index, from a SavedModel's asset, if it has one. */
typedef struct sx_class_names {
    char *text;   /* owned; the names end in NUL */
    char **items; /* [count], into text */
    int count;
} sx_class_names;

/* Reads dir/assets/classes.txt; without this file, there are no names. */
SX_MUST_USE sx_status sx_class_names_read(const char *dir, sx_class_names *out_names);
void sx_class_names_free(sx_class_names *names); /* may be zeroed */

/* Prints the line: the three most probable classes, by name or by index. */
void sx_print_answer(const char *what, const float *probabilities, int n,
                     const sx_class_names *names);

#endif
