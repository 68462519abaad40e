/* A step divided into ranges: among the workers of a common stage, or, where one shard of much work
 * has oneDNN's team, among that. */
#ifndef SX_BACKENDS_CPU_TEAM_H
#define SX_BACKENDS_CPU_TEAM_H

#include "backends/cpu/plan.h"

/* The elements of a step for one of `workers`, none for some if it is small; false: it is too small
 * to be divided, or cannot be. */
bool sx_cpu_divide(const sx_cpu_step *s, int64_t grain, int worker, int workers, sx_cpu_call *call);
/* How many of a team run the step, which is not oneDNN's own; 1: it is too small. */
int64_t sx_cpu_team_parts(const sx_cpu_step *s, int team);
/* All of a step, by call->team threads if it is large. */
void sx_cpu_run_whole(const sx_cpu_step *s, const sx_cpu_call *call);

#endif
