/* A graph compiled for all replicas, and its runs. These are functions of the backend interface. */
#ifndef SX_BACKENDS_PJRT_EXECUTABLE_H
#define SX_BACKENDS_PJRT_EXECUTABLE_H

#include "backends/backend.h"

SX_MUST_USE sx_status sx_pjrt_executable_create(sx_platform *platform, const sx_graph *graph,
                                                const sx_compile_options *options,
                                                sx_executable **out);
void sx_pjrt_executable_destroy(sx_executable *head);
SX_MUST_USE sx_status sx_pjrt_executable_info(const sx_executable *head, sx_executable_info *out);

SX_MUST_USE sx_status sx_pjrt_run_create(sx_executable *executable, sx_run **out);
void sx_pjrt_run_destroy(sx_run *head);
SX_MUST_USE sx_status sx_pjrt_run_submit(sx_run *head, sx_device_buffer *const *args,
                                         sx_device_buffer *const *outputs);
void sx_pjrt_run_await(sx_run *head);
void sx_pjrt_run_watch(sx_run *head);

#endif
