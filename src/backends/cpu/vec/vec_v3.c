/* The loops of vec.h for one instruction set; the flags are CMake's (cmake/flags.cmake). */
#if defined(__x86_64__)
#define SX_VEC_NAME v3
#include "backends/cpu/vec/all.inc"
#else
typedef int sx_vec_nothing_here;
#endif
