/* The profiler extension, which the plugin has with the setting "profiler=1" (fault.h): an event
 * for each operation that a device runs, named as on a TPU, with the `loc` of our text. */
#ifndef PJRT_REF_PROFILER_H
#define PJRT_REF_PROFILER_H

#include <stdint.h>

#include "backends/pjrt/abi.h"
#include "pjrt_ref/program.h"

/* The extension; the table's list of extensions is this one. */
const sx_pjrt_extension *ref_profiler_extension(void);

/* The time, or 0 while nothing is recorded. */
int64_t ref_profiler_begin(void);
/* An operation has run since `start_ns`, which is not 0. */
void ref_profiler_end(const ref_op *op, int64_t start_ns);

#endif
