/* The table of kernels.def. */
#include "backends/cpu/kernel.h"

#define SX_CPU_KERNEL(name) extern const sx_cpu_kernel sx_cpu_kernel_##name;
#include "backends/cpu/kernels.def"
#undef SX_CPU_KERNEL

const sx_cpu_kernel *const sx_cpu_kernels[] = {
#define SX_CPU_KERNEL(name) &sx_cpu_kernel_##name,
#include "backends/cpu/kernels.def"
#undef SX_CPU_KERNEL
};

const int sx_cpu_kernel_count = (int)(sizeof(sx_cpu_kernels) / sizeof(sx_cpu_kernels[0]));
