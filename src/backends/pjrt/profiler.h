/* A plugin's profiler, through PJRT's profiler extension: what its devices did between start and
 * stop, as a serialized XSpace (xspace.h). One at a time in a process. */
#ifndef SX_BACKENDS_PJRT_PROFILER_H
#define SX_BACKENDS_PJRT_PROFILER_H

#include "backends/pjrt/plugin.h"
#include "base/buffer.h"

typedef struct sx_pjrt_profiler sx_pjrt_profiler;

/* UNIMPLEMENTED: the plugin has no profiler; its own errors. */
SX_MUST_USE sx_status sx_pjrt_profiler_start(const sx_pjrt_plugin *plugin, sx_pjrt_profiler **out);
/* Appends the XSpace, and ends the profiler, also after an error. NULL is fine: nothing. */
SX_MUST_USE sx_status sx_pjrt_profiler_stop(sx_pjrt_profiler *p, sx_buf *out);

#endif
