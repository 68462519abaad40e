/* The loops of vec.h for one instruction set; the flags are CMake's (cmake/flags.cmake). */
#define SX_VEC_NAME base
#include "backends/cpu/vec/all.inc"
