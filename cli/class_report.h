/* Writes the files of `evaluate --report DIR`: report.html, report.json, classes.csv,
 * confusion.csv, mistakes.csv. All files appear together; texts are UTF-8. The same scores give the
 * same bytes. */
#ifndef SX_CLI_CLASS_REPORT_H
#define SX_CLI_CLASS_REPORT_H

#include <sextant/train.h>

#include "class_scores.h"
#include "origin.h"
#include "train/run_dir.h"

typedef struct sx_class_report {
    const char *run, *data; /* as the user named them */
    const sx_run_info *info;
    const sx_eval_result *result;
    const sx_class_scores *scores; /* mistakes sorted */
    sx_origin *origin;
    int pictures; /* mistakes with pictures in the page, and in report.json */
} sx_class_report;

/* Creates `dir` if it is missing. */
SX_MUST_USE sx_status sx_class_report_write(const sx_class_report *report, const char *dir);

/* The name of a class, or its index formatted in `number`. */
const char *sx_report_class_name(const sx_class_report *r, int i, char number[12]);

/* Writes the HTML page (class_page.c). */
SX_MUST_USE sx_status sx_put_class_page(sx_buf *out, const sx_class_report *report);

#endif
