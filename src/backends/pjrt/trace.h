/* Tells a timeline (backends/timeline.h) when the devices have copied and computed. */
#ifndef SX_BACKENDS_PJRT_TRACE_H
#define SX_BACKENDS_PJRT_TRACE_H

#include "backends/pjrt/client.h"
#include "backends/timeline.h"

/* Adds a span to the timeline once the array has its value; does nothing where that is NULL, or the
 * plugin does not say when. `start_ns`: when it was asked for. */
void sx_pjrt_trace(const sx_pjrt_client *c, sx_timeline *timeline, sx_span_kind kind,
                   int64_t start_ns, int64_t bytes, void *array);

#endif
