/* sx_status: the one result type of every fallible Sextant function.
 *
 * A status is the size of a pointer; OK is zero and costs nothing. An error owns a code (gRPC's
 * canonical codes, so that a server maps it to the wire without a table), a message that says what,
 * where, expected, got and what to do, and a chain of annotations added on its way up.
 *
 * Life cycle: a function returns it; whoever handles it calls sx_status_free(), or passes it on.
 * A status may cross threads, but belongs to one at a time. */
#ifndef SEXTANT_STATUS_H
#define SEXTANT_STATUS_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SX_API               __attribute__((visibility("default")))
#define SX_MUST_USE          __attribute__((warn_unused_result))
#define SX_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define SX_API
#define SX_MUST_USE
#define SX_PRINTF(fmt, args)
#endif

typedef enum sx_code {
    SX_CODE_OK = 0,
    SX_CANCELLED = 1,        /* the caller or a signal asked to stop */
    SX_UNKNOWN = 2,          /* an error of a foreign library that has no better code */
    SX_INVALID_ARGUMENT = 3, /* wrong whatever the state of the world: shapes, flags, syntax */
    SX_DEADLINE_EXCEEDED = 4,
    SX_NOT_FOUND = 5, /* a named thing (file, key, model, operator) is not there */
    SX_ALREADY_EXISTS = 6,
    SX_PERMISSION_DENIED = 7,
    SX_RESOURCE_EXHAUSTED = 8,  /* memory, disk, a size budget, a queue */
    SX_FAILED_PRECONDITION = 9, /* right call, wrong moment: other model's directory, not built */
    SX_ABORTED = 10,
    SX_OUT_OF_RANGE = 11,  /* past the end: iterators end with it */
    SX_UNIMPLEMENTED = 12, /* known, but not supported here */
    SX_INTERNAL = 13,      /* a broken invariant of ours */
    SX_UNAVAILABLE = 14,   /* try again: network, device lost */
    SX_DATA_LOSS = 15,     /* truncated or corrupt bytes */
    SX_UNAUTHENTICATED = 16,
} sx_code;

typedef struct sx_status_object *sx_status;

#define SX_OK ((sx_status)0)

/* Makes an error. `file` and `line` are where it was made; the message is printf-formatted. Out of
 * memory yields a static status of code RESOURCE_EXHAUSTED: making an error never fails. */
SX_API sx_status sx_status_make(sx_code code, const char *file, int line, const char *format, ...)
    SX_PRINTF(4, 5);
#define sx_error(code, ...) sx_status_make((code), __FILE__, __LINE__, __VA_ARGS__)

/* Adds context in front of the message: "loading run1: <message>". Takes and returns `status`;
 * OK stays OK. */
SX_API sx_status sx_status_annotate(sx_status status, const char *file, int line,
                                    const char *format, ...) SX_PRINTF(4, 5);

SX_API sx_code sx_status_code(sx_status status); /* SX_CODE_OK for SX_OK */

/* The message with its annotations, outermost first, separated by ": ". Borrowed from the status;
 * "OK" for SX_OK. */
SX_API const char *sx_status_message(sx_status status);

/* "src/io/tfrecord.c:81 < src/data/source.c:40": where it was made and annotated, for --verbosity
 * debug. Borrowed from the status; "" for SX_OK. */
SX_API const char *sx_status_trace(sx_status status);

SX_API void sx_status_free(sx_status status); /* SX_OK is fine */

/* The canonical name, "INVALID_ARGUMENT"; static. */
SX_API const char *sx_code_name(sx_code code);

/* Returns from the calling function when `expr` is an error, optionally annotated:
 *     SX_TRY(sx_file_open(path, &file));
 *     SX_TRY(parse(file), "reading %s", path); */
#define SX_TRY(...)                                                                   \
    SX_TRY_PICK_(__VA_ARGS__, SX_TRY_MORE_, SX_TRY_MORE_, SX_TRY_MORE_, SX_TRY_MORE_, \
                 SX_TRY_MORE_, SX_TRY_MORE_, SX_TRY_ONE_, 0)                          \
    (__VA_ARGS__)
#define SX_TRY_PICK_(a, b, c, d, e, f, g, name, ...) name
#define SX_TRY_ONE_(expr)           \
    do {                            \
        sx_status sx_try_ = (expr); \
        if (sx_try_ != SX_OK) {     \
            return sx_try_;         \
        }                           \
    } while (0)
#define SX_TRY_MORE_(expr, ...)                                                  \
    do {                                                                         \
        sx_status sx_try_ = (expr);                                              \
        if (sx_try_ != SX_OK) {                                                  \
            return sx_status_annotate(sx_try_, __FILE__, __LINE__, __VA_ARGS__); \
        }                                                                        \
    } while (0)

/* The same with cleanup: stores the error in `status` and jumps to `label`. */
#define SX_TRY_GOTO(status, expr, label) \
    do {                                 \
        (status) = (expr);               \
        if ((status) != SX_OK) {         \
            goto label;                  \
        }                                \
    } while (0)

#ifdef __cplusplus
}
#endif
#endif
