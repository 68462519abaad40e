/* The output of `compile`: text, or one JSON object. */
#ifndef SX_CLI_COMPILE_REPORT_H
#define SX_CLI_COMPILE_REPORT_H

#include "backends/pjrt/aot_plan.h"
#include "base/buffer.h"

typedef struct sx_compile_report {
    const char *model, *mode, *precision, *target_text;
    const sx_target *target;
    int64_t batch, steps; /* of a launch */
    const sx_aot_plan *plan;
} sx_compile_report;

/* The report without the largest batch, which sx_put_compile_largest() adds after the search: one
 * line, or nothing. */
void sx_put_compile_report(sx_buf *out, const sx_compile_report *r);
void sx_put_compile_largest(sx_buf *out, const sx_compile_report *r);
/* One step of that search: "batch size 4,096: 3.1 GiB of 15.7 GiB per device, fits; compiled in
 * 12.3 s". */
void sx_put_compile_trial(sx_buf *out, int64_t batch, const sx_aot_result *result, bool fits);
/* Text that ends with a newline. */
SX_MUST_USE sx_status sx_put_compile_json(sx_buf *out, const sx_compile_report *r);
/* "a batch of 4,096 needs about 60.1 GiB per device, which has 15.7 GiB; …" */
void sx_put_compile_misfit(sx_buf *out, const sx_compile_report *r);

#endif
