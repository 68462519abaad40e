/* The output of `profile`: tables, or one JSON object. */
#ifndef SX_CLI_PROFILE_REPORT_H
#define SX_CLI_PROFILE_REPORT_H

#include "profile_causes.h"
#include "profile_model.h"

/* Which tables; 0 = all. */
typedef enum sx_profile_by {
    SX_PROFILE_BY_OP = 1 << 0,
    SX_PROFILE_BY_LAYER = 1 << 1,
    SX_PROFILE_BY_KERNEL = 1 << 2
} sx_profile_by;

typedef struct sx_profile_report {
    const char *model;
    const char *cpu; /* sx_cpu_kind() */
    const sx_profiled *run;
    const sx_cpu_limits *limits;     /* NULL: what the device can do is unknown */
    const sx_profile_causes *causes; /* of a device that is not cpu: no causes, but operations */
    const char *why_none;            /* no operations are known; NULL: they are */
} sx_profile_report;

/* `rows`: of operators, layers and kernels in their tables; the rest is summed in a line. */
void sx_put_profile_report(sx_buf *out, const sx_profile_report *r, int rows, unsigned by);
/* Text that ends with a newline. */
SX_MUST_USE sx_status sx_put_profile_json(sx_buf *out, const sx_profile_report *r);
/* Whether the step loop is told of: of a run on data, or on a device that is not cpu; elsewhere it
 * only computes. */
bool sx_profile_tells_loop(const sx_profiled *p);
/* One line without its newline: "what bounds this run: …". */
void sx_put_profile_verdict(sx_buf *out, const sx_profile_report *r);
/* Seconds of threads as time by the clock in a step, in ms or, of short steps, in µs. */
double sx_profile_per_step(const sx_profile_report *r, double seconds, const char **out_unit);
/* "resnet50, train step, float32, batch 16, 2 threads" */
void sx_put_profile_title(sx_buf *out, const sx_profile_report *r);

#endif
