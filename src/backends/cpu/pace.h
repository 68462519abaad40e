/* Whether a team of threads is worth its waiting, for one run state.
 *
 * A team waits for its slowest member in every step. If other processes take the members'
 * processors, one thread that does everything finishes sooner, many times sooner where the members
 * spin. So an execution that the team has not finished when one thread would have is finished by
 * one thread, and so is the next one. Then the team tries again; each time that it fails, one
 * thread does twice as many before the next try. The bits are the same either way. */
#ifndef SX_BACKENDS_CPU_PACE_H
#define SX_BACKENDS_CPU_PACE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sx_cpu_pace {
    int64_t alone_ns; /* what one thread takes, as far as is known; 0: nothing is */
    int pause, left;  /* executions by one thread since the team failed last: all, still to come */
} sx_cpu_pace;

typedef enum sx_cpu_pacing { SX_CPU_TEAM, SX_CPU_TEAM_FAILED, SX_CPU_ALONE } sx_cpu_pacing;

/* How an execution begins: with the team or alone. */
sx_cpu_pacing sx_cpu_pace_begin(const sx_cpu_pace *p);
/* Whether the team, after so long, fails. */
static inline bool sx_cpu_pace_is_late(const sx_cpu_pace *p, int64_t ns)
{
    return p->alone_ns > 0 && ns > p->alone_ns;
}
/* What became of an execution, in all of `ns`, by a team of `members`. */
void sx_cpu_pace_end(sx_cpu_pace *p, sx_cpu_pacing how, int64_t ns, int members);

#endif
