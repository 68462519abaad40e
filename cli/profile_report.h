/* The output of `profile`: tables, or one JSON object. */
#ifndef SX_CLI_PROFILE_REPORT_H
#define SX_CLI_PROFILE_REPORT_H

#include "profile_causes.h"
#include "profile_model.h"

typedef struct sx_profile_report {
    const char *model;
    const char *cpu; /* sx_cpu_kind() */
    const sx_profiled *run;
    const sx_cpu_limits *limits;
    const sx_profile_causes *causes;
} sx_profile_report;

/* `rows`: kernels in the table; the rest is summed in a line. */
void sx_put_profile_report(sx_buf *out, const sx_profile_report *r, int rows);
/* Text that ends with a newline. */
SX_MUST_USE sx_status sx_put_profile_json(sx_buf *out, const sx_profile_report *r);
/* Seconds of threads as time by the clock in a step, in ms or, of short steps, in µs. */
double sx_profile_per_step(const sx_profile_report *r, double seconds, const char **out_unit);
/* "resnet50, train step, float32, batch 16, 2 threads" */
void sx_put_profile_title(sx_buf *out, const sx_profile_report *r);

#endif
