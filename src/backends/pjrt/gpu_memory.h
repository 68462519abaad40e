/* How much memory the GPUs have, asked of CUDA's driver, before a plugin is opened. */
#ifndef SX_BACKENDS_PJRT_GPU_MEMORY_H
#define SX_BACKENDS_PJRT_GPU_MEMORY_H

#include <stdint.h>

#include <sextant/status.h>

/* Bytes of the GPU that has the most, of those that CUDA_VISIBLE_DEVICES leaves. Errors:
 * FAILED_PRECONDITION: no driver; UNAVAILABLE: no GPU. */
SX_MUST_USE sx_status sx_gpu_memory(int64_t *out_bytes);

#endif
