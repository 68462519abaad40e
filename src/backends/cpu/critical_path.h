/* What the busiest worker does in each stage, added up: what a step takes on so many processors as
 * the plan has workers, whether there are so many or not. */
#ifndef SX_BACKENDS_CPU_CRITICAL_PATH_H
#define SX_BACKENDS_CPU_CRITICAL_PATH_H

#include "backends/cpu/plan.h"

typedef struct sx_cpu_work {
    int64_t steps;
    double flops, bytes;
} sx_cpu_work;

typedef struct sx_cpu_critical_path {
    int stages;        /* a barrier after each */
    sx_cpu_work all;   /* of all workers */
    sx_cpu_work path;  /* of the busiest */
    sx_cpu_work alone; /* of that, in common steps that are not divided */
} sx_cpu_critical_path;

SX_MUST_USE sx_status sx_cpu_find_critical_path(const sx_cpu_plan *plan, sx_cpu_critical_path *out);

#endif
