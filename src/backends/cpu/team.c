/* See team.h. */
#include "backends/cpu/team.h"

#include "backends/cpu/onednn2.h"
#include "base/checked.h"

bool sx_cpu_divide(const sx_cpu_step *s, int64_t grain, int worker, int workers, sx_cpu_call *call)
{
    const int64_t blocks = (s->range + SX_CPU_SPLIT - 1) / SX_CPU_SPLIT;
    const int64_t parts = sx_cpu_parts_of(s, grain, workers);
    if (parts < 2) {
        return false;
    }
    call->begin = SX_MIN(blocks * SX_MIN(worker, parts) / parts * SX_CPU_SPLIT, s->range);
    call->end = SX_MIN(blocks * SX_MIN(worker + 1, parts) / parts * SX_CPU_SPLIT, s->range);
    call->part = worker;
    return true;
}

enum { TEAM_GRAINS = 4 }; /* beginning takes some time */

typedef struct team_step {
    const sx_cpu_step *step;
    const sx_cpu_call *call;
} team_step;

static void run_part(void *user, int worker)
{
    const team_step *t = user;
    sx_cpu_call call = *t->call;
    call.team = 1;
    if (sx_cpu_divide(t->step, TEAM_GRAINS * t->step->grain, worker, t->call->team, &call) &&
        call.begin < call.end) {
        t->step->run(t->step, &call);
    }
}

int64_t sx_cpu_team_parts(const sx_cpu_step *s, int team)
{
    return sx_cpu_parts_of(s, TEAM_GRAINS * s->grain, team);
}

void sx_cpu_run_whole(const sx_cpu_step *s, const sx_cpu_call *call)
{
    if (sx_cpu_team_parts(s, call->team) == 1) {
        s->run(s, call);
        return;
    }
    team_step t = {s, call};
    if (!call->alone) {
        sx_dnn_team_run(call->team, run_part, &t);
        return;
    }
    const int before = sx_dnn_enter(1);
    for (int w = 0; w < call->team; w++) {
        run_part(&t, w);
    }
    sx_dnn_leave(before);
}
