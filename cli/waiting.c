#include "waiting.h"

#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"

enum { FIRST_LINE_SECONDS = 5 };

/* Runs on the thread, with the lock held. */
static void show(sx_waiting *w)
{
    int64_t seconds = (sx_now_ns() - w->began_ns) / 1000000000;
    if (w->terminal.is_tty) {
        sx_buf line;
        sx_buf_init(&line, 1 << 12);
        sx_buf_printf(&line, "%s … %lld s", w->text, (long long)seconds);
        sx_terminal_overwrite(&w->terminal, sx_buf_text(&line));
        sx_buf_deinit(&line);
        w->drawn = true;
    } else if (!w->drawn && seconds >= FIRST_LINE_SECONDS) {
        fprintf(w->terminal.stream, "%s …\n", w->text);
        fflush(w->terminal.stream);
        w->drawn = true;
    }
}

static void *count_seconds(void *user)
{
    sx_waiting *w = user;
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    pthread_mutex_lock(&w->lock);
    w->counting = true;
    pthread_cond_signal(&w->changed);
    while (!w->over) {
        next.tv_sec++;
        int woken = 0;
        while (!w->over && woken != ETIMEDOUT) {
            woken = pthread_cond_timedwait(&w->changed, &w->lock, &next);
        }
        if (!w->over) {
            show(w);
        }
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

void sx_waiting_begin(sx_waiting *w, const sx_terminal *terminal, const char *text)
{
    pthread_condattr_t clock;
    sx_waiting_end(w);
    *w = (sx_waiting){.terminal = *terminal, .began_ns = sx_now_ns()};
    snprintf(w->text, sizeof(w->text), "%s", text);
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&w->changed, &clock);
    pthread_condattr_destroy(&clock);
    w->running = sx_thread_create(&w->thread, NULL, count_seconds, w) == 0;
    /* The caller's work may fork; wait until the thread has started, so that it does not hold an
     * allocator lock then. */
    pthread_mutex_lock(&w->lock);
    while (w->running && !w->counting) {
        pthread_cond_wait(&w->changed, &w->lock);
    }
    pthread_mutex_unlock(&w->lock);
}

bool sx_waiting_end(sx_waiting *w)
{
    if (!w->running) {
        return false;
    }
    pthread_mutex_lock(&w->lock);
    w->over = true;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    w->running = false;
    if (w->drawn && w->terminal.is_tty) {
        sx_terminal_overwrite(&w->terminal, "");
    }
    return w->drawn && !w->terminal.is_tty;
}
