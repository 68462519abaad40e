/* The sink is set before threads start and only read afterwards, so it needs no lock. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

enum { MAX_LINE_BYTES = 4096 };

static void print_to_stderr(void *user, sx_log_level level, const char *file, int line,
                            const char *message)
{
    (void)user;
    (void)file;
    (void)line;
    fprintf(stderr, "sextant: %s: %s\n", level == SX_LOG_ERROR ? "error" : "warning", message);
}

static sx_log_fn *sink = print_to_stderr;
static void *sink_user;
static sx_log_level sink_level = SX_LOG_WARN;

void sx_log_set_sink(sx_log_fn *fn, void *user, sx_log_level level)
{
    sink = fn;
    sink_user = user;
    sink_level = fn == NULL ? SX_LOG_NONE : level;
}

void sx_log_at(sx_log_level level, const char *file, int line, const char *format, ...)
{
    if (level < sink_level || sink == NULL) {
        return;
    }
    char message[MAX_LINE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    sink(sink_user, level, file, line, message);
}
