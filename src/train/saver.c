/* See saver.h. */
#include "train/saver.h"

#include "base/clock.h"
#include "base/memory.h"
#include "io/path.h"

static void *write_snapshot(void *user)
{
    sx_saver *s = user;
    s->status = sx_snapshot_write(&s->snapshot, s->prefix);
    if (s->status == SX_OK) {
        s->status = sx_checkpoint_register(s->dir, s->name, sx_wall_seconds(), &s->keep);
    }
    s->ended_ns = sx_now_ns();
    atomic_store(&s->done, true);
    return NULL;
}

static void free_texts(sx_saver *s)
{
    sx_free(s->dir);
    sx_free(s->name);
    sx_free(s->prefix);
    s->dir = s->name = s->prefix = NULL;
}

static sx_status begin(sx_saver *s, sx_session *session, const char *dir, const char *name,
                       const sx_checkpoint_contents *contents)
{
    SX_TRY(sx_path_join(dir, name, &s->prefix));
    s->dir = sx_strdup(dir);
    s->name = sx_strdup(name);
    if (s->dir == NULL || s->name == NULL) {
        return sx_no_memory("for a checkpoint");
    }
    SX_TRY(sx_session_read_step(session, &s->step));
    return sx_snapshot_take(&s->snapshot, session, contents);
}

sx_status sx_saver_begin(sx_saver *s, sx_session *session, const char *dir, const char *name,
                         const sx_checkpoint_contents *contents,
                         const sx_checkpoint_retention *keep)
{
    free_texts(s);
    s->began_ns = sx_now_ns();
    s->keep = *keep;
    s->status = SX_OK;
    atomic_store(&s->done, false);
    sx_status status = begin(s, session, dir, name, contents);
    if (status != SX_OK) {
        return sx_status_annotate(status, __FILE__, __LINE__, "saving %s/%s", dir, name);
    }
    s->running = true;
    s->has_thread = pthread_create(&s->thread, NULL, write_snapshot, s) == 0;
    if (!s->has_thread) { /* then at once */
        write_snapshot(s);
    }
    return SX_OK;
}

sx_status sx_saver_end(sx_saver *s)
{
    if (s->has_thread) {
        pthread_join(s->thread, NULL);
    }
    s->running = s->has_thread = false;
    sx_status status = s->status;
    s->status = SX_OK;
    return status;
}

void sx_saver_deinit(sx_saver *s)
{
    sx_status_free(sx_saver_end(s));
    sx_snapshot_deinit(&s->snapshot);
    free_texts(s);
}
