/* See pace.h. */
#include "backends/cpu/pace.h"

#include "base/checked.h"

enum { LONGEST_PAUSE = 256 }; /* executions */

sx_cpu_pacing sx_cpu_pace_begin(const sx_cpu_pace *p)
{
    return p->left > 0 ? SX_CPU_ALONE : SX_CPU_TEAM;
}

void sx_cpu_pace_end(sx_cpu_pace *p, sx_cpu_pacing how, int64_t ns, int members)
{
    const int64_t most = ns < INT64_MAX / members ? ns * members : INT64_MAX;
    switch (how) {
    case SX_CPU_TEAM: /* one thread takes at most as long as all members together */
        p->alone_ns = p->alone_ns > 0 ? SX_MIN(p->alone_ns, most) : most;
        p->pause = 0;
        break;
    case SX_CPU_TEAM_FAILED:
        p->pause = p->pause > 0 ? SX_MIN(p->pause * 2, (int)LONGEST_PAUSE) : 1;
        p->left = p->pause;
        break;
    default: /* the first of them tells most: before, the machine had less other work */
        p->alone_ns = p->left == p->pause ? ns : (p->alone_ns * 3 + ns) / 4;
        p->left--;
        break;
    }
}
