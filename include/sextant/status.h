/* sx_status: the one result type of every fallible Sextant function.
 *
 * A status has the size of a pointer; OK is zero and costs nothing. An error owns a code (one of
 * gRPC's canonical codes, so that a server needs no mapping table), a message (what failed, where,
 * what was expected, what was found, what to do) and the annotations added as it was passed up.
 *
 * The caller of a function that returns a status either calls sx_status_free() or passes it on. A
 * status may be handed to another thread but must not be used by two at a time. */
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
    SX_CANCELLED = 1,        /* the caller or a signal requested a stop */
    SX_UNKNOWN = 2,          /* an error of another library that fits no other code */
    SX_INVALID_ARGUMENT = 3, /* wrong regardless of any state: shapes, flags, syntax */
    SX_DEADLINE_EXCEEDED = 4,
    SX_NOT_FOUND = 5, /* a file, key, model or operator does not exist */
    SX_ALREADY_EXISTS = 6,
    SX_PERMISSION_DENIED = 7,
    SX_RESOURCE_EXHAUSTED = 8,  /* memory, disk, a size budget, a queue */
    SX_FAILED_PRECONDITION = 9, /* not in this state: another model's directory, not built */
    SX_ABORTED = 10,
    SX_OUT_OF_RANGE = 11,  /* past the end; the end of an iteration */
    SX_UNIMPLEMENTED = 12, /* valid, but not supported */
    SX_INTERNAL = 13,      /* a bug in this library */
    SX_UNAVAILABLE = 14,   /* may work if retried: network, device lost */
    SX_DATA_LOSS = 15,     /* truncated or corrupt bytes */
    SX_UNAUTHENTICATED = 16,
} sx_code;

typedef struct sx_status_object *sx_status;

#define SX_OK ((sx_status)0)

/* Creates an error. `file` and `line` are the place in the source; the message is formatted as by
 * printf. If there is no memory, returns a static status with code RESOURCE_EXHAUSTED: creating an
 * error never fails. */
SX_API sx_status sx_status_make(sx_code code, const char *file, int line, const char *format, ...)
    SX_PRINTF(4, 5);
#define sx_error(code, ...) sx_status_make((code), __FILE__, __LINE__, __VA_ARGS__)

/* Prepends context to the message: "loading run1: <message>". Takes ownership of `status` and
 * returns it; OK stays OK. */
SX_API sx_status sx_status_annotate(sx_status status, const char *file, int line,
                                    const char *format, ...) SX_PRINTF(4, 5);

SX_API sx_code sx_status_code(sx_status status); /* SX_CODE_OK for SX_OK */

/* The message with its annotations, outermost first, separated by ": "; "OK" for SX_OK. Borrowed
 * from the status. */
SX_API const char *sx_status_message(sx_status status);

/* "src/io/tfrecord.c:81 < src/data/source.c:40": where the error was created and annotated, for
 * --verbosity debug; "" for SX_OK. Borrowed from the status. */
SX_API const char *sx_status_trace(sx_status status);

SX_API void sx_status_free(sx_status status); /* SX_OK is fine */

/* The canonical name, "INVALID_ARGUMENT"; static. */
SX_API const char *sx_code_name(sx_code code);

/* Returns from the calling function if `expr` is an error, optionally annotated:
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
