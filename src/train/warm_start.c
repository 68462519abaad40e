/* See warm_start.h. */
#include "train/warm_start.h"

#include <regex.h>

#include "base/memory.h"
#include "checkpoint/checkpoint_state.h"
#include "io/path.h"

/* ---- The source ---- */

static sx_status bundle_exists(const char *prefix, bool *out)
{
    char *index = NULL;
    SX_TRY(sx_path_format(&index, "%s.index", prefix));
    *out = sx_path_exists(index);
    sx_free(index);
    return SX_OK;
}

static sx_status find_prefix(const char *from, sx_arena *arena, const char **out)
{
    const char *const candidates[] = {from, sx_arena_printf(arena, "%s/variables/variables", from)};
    for (int i = 0; i < 2; i++) {
        bool exists = false;
        if (candidates[i] == NULL) {
            return sx_no_memory("for a warm start");
        }
        SX_TRY(bundle_exists(candidates[i], &exists));
        if (exists) {
            *out = candidates[i];
            return SX_OK;
        }
    }
    sx_status status = sx_checkpoint_latest(from, arena, out);
    if (sx_status_code(status) != SX_NOT_FOUND) {
        return status;
    }
    sx_status_free(status);
    return sx_error(SX_NOT_FOUND, "not a run, SavedModel or complete checkpoint");
}

/* ---- Selecting variables ---- */

static bool matches(const regex_t *wanted, const char *name)
{
    regmatch_t at;
    return wanted == NULL || (regexec(wanted, name, 1, &at, 0) == 0 && at.rm_so == 0);
}

static sx_status copy_variables(const sx_bundle *bundle, sx_session *session, const regex_t *wanted)
{
    int copied = 0;
    for (int i = 0; i < sx_session_variable_count(session); i++) {
        const sx_session_variable *v = sx_session_variable_at(session, i);
        bool models = v->role == SX_ROLE_WEIGHT || v->role == SX_ROLE_STATE;
        if (models && matches(wanted, v->name)) {
            SX_TRY(sx_checkpoint_load_variable(session, bundle, i),
                   "use vars_to_warm_start to exclude variables");
            copied++;
        }
    }
    return copied > 0 ? SX_OK
                      : sx_error(SX_INVALID_ARGUMENT,
                                 "vars_to_warm_start matches no variable of the model");
}

static sx_status copy_wanted(const sx_bundle *bundle, const sx_trainer *t)
{
    regex_t wanted;
    const char *text = t->config.vars_to_warm_start;
    int wrong = text != NULL ? regcomp(&wanted, text, REG_EXTENDED) : 0;
    if (wrong != 0) {
        char why[128];
        regerror(wrong, &wanted, why, sizeof(why));
        return sx_error(SX_INVALID_ARGUMENT, "vars_to_warm_start is \"%s\": %s", text, why);
    }
    sx_status status = copy_variables(bundle, t->session, text != NULL ? &wanted : NULL);
    if (text != NULL) {
        regfree(&wanted);
    }
    return status;
}

static sx_status warm_start(const sx_trainer *t, sx_arena *arena)
{
    const char *prefix;
    sx_bundle *bundle = NULL;
    SX_TRY(find_prefix(t->config.warm_start_from, arena, &prefix));
    SX_TRY(sx_bundle_open(prefix, &bundle));
    sx_status status = copy_wanted(bundle, t);
    sx_bundle_close(bundle);
    return status;
}

sx_status sx_warm_start(sx_trainer *t)
{
    sx_arena arena;
    if (t->config.warm_start_from == NULL) {
        return SX_OK;
    }
    sx_arena_init(&arena, 0);
    sx_status status = warm_start(t, &arena);
    sx_arena_deinit(&arena);
    return sx_status_annotate(status, __FILE__, __LINE__, "warm start from %s",
                              t->config.warm_start_from);
}
