/* The events of a plugin's profiler, from its answer, a serialized XSpace.
 *
 * Message fields used (of XLA's protos; all others are skipped):
 *
 *   XSpace          1 planes*
 *   XPlane          2 name  3 lines*  4 event_metadata{1 key, 2 XEventMetadata}*
 *                   5 stat_metadata{1 key, 2 XStatMetadata}*
 *   XLine           2 name  3 timestamp_ns  4 events*
 *   XEvent          1 metadata_id  2 offset_ps  3 duration_ps  4 stats*
 *   XEventMetadata  2 name  5 stats*
 *   XStat           1 metadata_id  3 uint64  4 int64  5 text  7 the id of a stat metadata, whose
 *                   name is the text
 *   XStatMetadata   2 name
 *
 * A plane is a device, or the host; a line is a thread or a stream of it. The bytes are untrusted:
 * every length is checked, numbers of metadata are limited. */
#ifndef SX_BACKENDS_PJRT_XSPACE_H
#define SX_BACKENDS_PJRT_XSPACE_H

#include <sextant/types.h>

#include "base/buffer.h"

/* Texts are not NUL-terminated, and valid during the call; empty where there is none. */
typedef struct sx_xspace_event {
    sx_bytes plane, line, name;
    sx_bytes op, op_name; /* stats "hlo_op", "tf_op" or "op_name" */
    int64_t start_ns;     /* of the plugin's clock */
    double seconds;
} sx_xspace_event;

typedef void sx_xspace_visit(void *user, const sx_xspace_event *event);

/* Calls `visit` for each event. Errors: DATA_LOSS: not a valid message; RESOURCE_EXHAUSTED. */
SX_MUST_USE sx_status sx_xspace_read(const void *data, size_t size, sx_xspace_visit *visit,
                                     void *user);

#endif
