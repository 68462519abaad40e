/* The CUDA libraries that XLA's GPU plugin opens by name at run time. Python packages install them
 * beside the plugin:
 *
 *   site-packages/jax_plugins/xla_cuda13/xla_cuda_plugin.so
 *   site-packages/nvidia/cu13/lib/libcudart.so.13              (CUDA 12: nvidia/cuda_runtime/lib/…)
 *   site-packages/nvidia/cudnn/lib/libcudnn.so.9
 *
 * The dynamic loader does not search there. But it finds a library by name if it is already loaded,
 * so they are loaded first, dependencies before the libraries that need them. */
#ifndef SX_BACKENDS_PJRT_COMPANIONS_H
#define SX_BACKENDS_PJRT_COMPANIONS_H

#include <sextant/status.h>

/* Loads the libraries for the plugin at `path`, from the packages or from the loader's search path;
 * they are never unloaded. A missing library is not an error, because the plugin may not need it.
 */
void sx_pjrt_load_companions(const char *path);

/* Adds the missing libraries, if any, to an error of the plugin. */
sx_status sx_pjrt_blame_companions(const char *path, sx_status status);

#endif
