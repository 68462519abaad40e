/* The status object: a code and two texts that grow as the error is passed up.
 *
 *   message   "loading run1: model.ckpt-7.index: truncated at byte 48"      outermost first
 *   trace     "src/io/file.c:81 < src/checkpoint/bundle.c:40"               innermost first
 *
 * A status is either on the heap or `out_of_memory`, a static object used when there is no memory
 * for an error. If there is no memory for an annotation, it is dropped and the error kept. */
#include <sextant/status.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"

struct sx_status_object {
    sx_code code;
    char *message;  /* owned */
    char *trace;    /* owned */
    bool no_memory; /* an allocation failed */
};

/* Long names and texts from files must not make an error of megabytes. */
enum { MAX_MESSAGE_BYTES = 16 * 1024, MAX_TRACE_BYTES = 4 * 1024 };

static struct sx_status_object out_of_memory = {
    .code = SX_RESOURCE_EXHAUSTED,
    .message = (char *)"out of memory; free memory or use a smaller batch size",
    .trace = (char *)"",
    .no_memory = true,
};

static char *format_bounded(size_t max_bytes, const char *format, va_list args)
{
    va_list copy;
    va_copy(copy, args);
    int length = vsnprintf(NULL, 0, format, copy);
    va_end(copy);
    size_t size = length < 0 ? 1 : SX_MIN((size_t)length + 1, max_bytes);
    char *text = sx_alloc(size, 1);
    if (text != NULL && length >= 0) {
        vsnprintf(text, size, format, args);
    }
    return text;
}

static char *format_text(size_t max_bytes, const char *format, ...) SX_PRINTF(2, 3);

static char *format_text(size_t max_bytes, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = format_bounded(max_bytes, format, args);
    va_end(args);
    return text;
}

static sx_status make(sx_code code, bool no_memory, const char *file, int line, const char *format,
                      va_list args)
{
    char *message = format_bounded(MAX_MESSAGE_BYTES, format, args);
    char *trace = format_text(MAX_TRACE_BYTES, "%s:%d", file, line);
    sx_status status = sx_alloc(1, sizeof(*status));
    if (message == NULL || trace == NULL || status == NULL) {
        sx_free(message);
        sx_free(trace);
        sx_free(status);
        return &out_of_memory;
    }
    *status = (struct sx_status_object){.code = code == SX_CODE_OK ? SX_INTERNAL : code,
                                        .message = message,
                                        .trace = trace,
                                        .no_memory = no_memory};
    return status;
}

sx_status sx_status_make(sx_code code, const char *file, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    sx_status status = make(code, false, file, line, format, args);
    va_end(args);
    return status;
}

sx_status sx_status_no_memory(const char *file, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    sx_status status = make(SX_RESOURCE_EXHAUSTED, true, file, line, format, args);
    va_end(args);
    return status;
}

bool sx_status_is_no_memory(sx_status status)
{
    return status != SX_OK && status->no_memory;
}

/* Replaces *slot with `text`, unless `text` is NULL. */
static void replace_text(char **slot, char *text)
{
    if (text != NULL) {
        sx_free(*slot);
        *slot = text;
    }
}

sx_status sx_status_annotate(sx_status status, const char *file, int line, const char *format, ...)
{
    if (status == SX_OK || status == &out_of_memory) {
        return status;
    }
    va_list args;
    va_start(args, format);
    char *context = format_bounded(MAX_MESSAGE_BYTES, format, args);
    va_end(args);
    if (context != NULL) {
        replace_text(&status->message,
                     format_text(MAX_MESSAGE_BYTES, "%s: %s", context, status->message));
    }
    sx_free(context);
    replace_text(&status->trace,
                 format_text(MAX_TRACE_BYTES, "%s < %s:%d", status->trace, file, line));
    return status;
}

sx_code sx_status_code(sx_status status)
{
    return status == SX_OK ? SX_CODE_OK : status->code;
}

const char *sx_status_message(sx_status status)
{
    return status == SX_OK ? "OK" : status->message;
}

const char *sx_status_trace(sx_status status)
{
    return status == SX_OK ? "" : status->trace;
}

void sx_status_free(sx_status status)
{
    if (status != SX_OK && status != &out_of_memory) {
        sx_free(status->message);
        sx_free(status->trace);
        sx_free(status);
    }
}

const char *sx_code_name(sx_code code)
{
    static const char *const names[] = {
        [SX_CODE_OK] = "OK",
        [SX_CANCELLED] = "CANCELLED",
        [SX_UNKNOWN] = "UNKNOWN",
        [SX_INVALID_ARGUMENT] = "INVALID_ARGUMENT",
        [SX_DEADLINE_EXCEEDED] = "DEADLINE_EXCEEDED",
        [SX_NOT_FOUND] = "NOT_FOUND",
        [SX_ALREADY_EXISTS] = "ALREADY_EXISTS",
        [SX_PERMISSION_DENIED] = "PERMISSION_DENIED",
        [SX_RESOURCE_EXHAUSTED] = "RESOURCE_EXHAUSTED",
        [SX_FAILED_PRECONDITION] = "FAILED_PRECONDITION",
        [SX_ABORTED] = "ABORTED",
        [SX_OUT_OF_RANGE] = "OUT_OF_RANGE",
        [SX_UNIMPLEMENTED] = "UNIMPLEMENTED",
        [SX_INTERNAL] = "INTERNAL",
        [SX_UNAVAILABLE] = "UNAVAILABLE",
        [SX_DATA_LOSS] = "DATA_LOSS",
        [SX_UNAUTHENTICATED] = "UNAUTHENTICATED",
    };
    return (size_t)code < SX_COUNT(names) ? names[code] : "?";
}
