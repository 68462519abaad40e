/* What the devices compute, operation by operation: the plugin's profiler, and the names of our
 * nodes for what it calls by the names of its compiler. */
#ifndef SX_BACKENDS_PJRT_RECORD_H
#define SX_BACKENDS_PJRT_RECORD_H

#include "backends/pjrt/pjrt.h"

/* Notes the names in a compiled program, of a platform that has a timeline. Those that an earlier
 * program has, too, keep its nodes. Without memory, or where the plugin does not hand out programs,
 * nothing. */
void sx_pjrt_note_names(sx_pjrt_platform *p, void *executable);
void sx_pjrt_forget_names(sx_pjrt_platform *p);

/* Functions of the backend interface. */
SX_MUST_USE sx_status sx_pjrt_record(sx_platform *head);
SX_MUST_USE sx_status sx_pjrt_recorded(sx_platform *head, sx_device_op_visit *visit, void *user);

#endif
