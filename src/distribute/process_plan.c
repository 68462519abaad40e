/* See process_plan.h. */
#include "distribute/process_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "distribute/store.h"
#include "distribute/tf_config.h"

/* ---- Options ---- */

static sx_status take_options(const sx_process_wish *w, sx_arena *arena, sx_process_plan *out)
{
    if (w->coordinator == NULL || w->coordinator[0] == '\0') {
        return sx_error(SX_INVALID_ARGUMENT,
                        "num_processes and process_id need a coordinator: the address host:port of "
                        "process 0, the same for all");
    }
    if (w->count == 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "coordinator \"%.200s\" needs num_processes, the same for all, and "
                        "process_id, the number of this process",
                        w->coordinator);
    }
    if (w->count < 1 || w->count > SX_MAX_PROCESSES) {
        return sx_error(SX_INVALID_ARGUMENT, "num_processes is %d, expected 1 to %d", w->count,
                        SX_MAX_PROCESSES);
    }
    if (w->index < 0 || w->index >= w->count) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "process_id is %d, expected 0 to %d, as num_processes is %d", w->index,
                        w->count - 1, w->count);
    }
    SX_TRY(sx_tpu_address(w->coordinator, strlen(w->coordinator), arena, &out->coordinator),
           "coordinator");
    out->count = w->count;
    out->index = w->index;
    out->explanation = sx_arena_printf(arena, "options: process %d of %d; process 0 is at %s\n",
                                       out->index, out->count, out->coordinator);
    return out->explanation != NULL ? SX_OK : sx_no_memory("for a strategy");
}

/* ---- TF_CONFIG ---- */

static bool is_leader(const char *job)
{
    return strcmp(job, "chief") == 0 || strcmp(job, "master") == 0;
}

/* The tasks that train, in the order of their numbers: the chief's, or master's, then the workers'.
 */
typedef struct training_tasks {
    const sx_tf_job *jobs[3];
    int n_jobs, n;
} training_tasks;

static sx_status list_tasks(const sx_tf_config *c, training_tasks *out)
{
    static const char *const order[] = {"chief", "master", "worker"};
    *out = (training_tasks){.n = 0};
    for (int i = 0; i < 3; i++) {
        const sx_tf_job *job = sx_tf_config_job(c, order[i]);
        if (job != NULL && job->n_tasks > 0) {
            out->jobs[out->n_jobs++] = job;
            out->n += job->n_tasks;
        }
    }
    const sx_tf_job *ps = sx_tf_config_job(c, "ps");
    if (ps != NULL && ps->n_tasks > 0 && out->n > 1) {
        return sx_error(SX_UNIMPLEMENTED,
                        "TF_CONFIG has %d parameter server%s, which are not supported; without "
                        "them the workers train in step",
                        ps->n_tasks, ps->n_tasks == 1 ? "" : "s");
    }
    if (out->n_jobs > 1 && is_leader(out->jobs[0]->name) && is_leader(out->jobs[1]->name)) {
        return sx_error(SX_INVALID_ARGUMENT, "TF_CONFIG has both a chief and a master");
    }
    return SX_OK;
}

/* The number of the task among those that train; -1 = it is not one of them. */
static int number_of(const training_tasks *tasks, const char *type, int index)
{
    int number = 0;
    for (int j = 0; j < tasks->n_jobs; j++) {
        for (int i = 0; i < tasks->jobs[j]->n_tasks; i++, number++) {
            if (strcmp(tasks->jobs[j]->name, type) == 0 &&
                tasks->jobs[j]->tasks[i].index == index) {
                return number;
            }
        }
    }
    return -1;
}

static sx_status take_tf_config(const char *text, sx_arena *arena, sx_process_plan *out)
{
    sx_tf_config c;
    training_tasks tasks;
    SX_TRY(sx_tf_config_parse(text, strlen(text), arena, &c));
    SX_TRY(list_tasks(&c, &tasks));
    if (tasks.n < 2 || c.session_master != NULL || sx_tf_config_job(&c, "tpu_worker") != NULL) {
        return SX_OK; /* one process, or a TPU's, which resolver.c reads */
    }
    if (c.task_type != NULL && strcmp(c.task_type, "evaluator") == 0) {
        out->explanation = "TF_CONFIG: this is an evaluator, which works alone\n";
        return SX_OK;
    }
    const int number = c.task_type != NULL ? number_of(&tasks, c.task_type, c.task_index) : -1;
    if (number < 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "TF_CONFIG: its task, %s %d, is none of the cluster's %d that train",
                        c.task_type != NULL ? c.task_type : "without a type", c.task_index,
                        tasks.n);
    }
    if (tasks.n > SX_MAX_PROCESSES) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "TF_CONFIG: its cluster has %d tasks that train, expected at most %d",
                        tasks.n, SX_MAX_PROCESSES);
    }
    const char *first = tasks.jobs[0]->tasks[0].address;
    SX_TRY(sx_tpu_address(first, strlen(first), arena, &out->coordinator), "TF_CONFIG");
    out->count = tasks.n;
    out->index = number;
    out->role = sx_arena_printf(arena, "%s %d", c.task_type, c.task_index);
    out->explanation =
        out->role != NULL
            ? sx_arena_printf(arena, "TF_CONFIG: %s is process %d of %d; process 0 is at %s\n",
                              out->role, number, tasks.n, out->coordinator)
            : NULL;
    return out->explanation != NULL ? SX_OK : sx_no_memory("for a strategy");
}

/* One that cannot be used says nothing against the options. */
static sx_status check_tf_config(const char *text, sx_arena *arena, const sx_process_plan *plan)
{
    sx_process_plan said = {.count = 1};
    sx_status status = take_tf_config(text, arena, &said);
    const bool contradicts = status == SX_OK && said.count > 1 &&
                             (said.count != plan->count || said.index != plan->index);
    sx_status_free(status);
    return contradicts ? sx_error(SX_INVALID_ARGUMENT,
                                  "num_processes %d and process_id %d contradict TF_CONFIG, by "
                                  "which %s is process %d of %d; unset TF_CONFIG, or leave out "
                                  "coordinator, num_processes and process_id",
                                  plan->count, plan->index, said.role, said.index, said.count)
                       : SX_OK;
}

sx_status sx_process_plan_make(const sx_process_wish *wish, sx_arena *arena, sx_process_plan *out)
{
    const char *text = wish->from_environment ? getenv("TF_CONFIG") : NULL;
    const bool has_config = text != NULL && text[0] != '\0';
    *out = (sx_process_plan){.count = 1, .explanation = ""};
    if (wish->coordinator != NULL || wish->count != 0 || wish->index != 0) {
        SX_TRY(take_options(wish, arena, out));
        return has_config ? check_tf_config(text, arena, out) : SX_OK;
    }
    return has_config ? take_tf_config(text, arena, out) : SX_OK;
}
