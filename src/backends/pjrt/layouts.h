/* The memory of the arrays in an optimized program, from the layouts that the plugin chose
 * (PJRT_Executable_OptimizedProgram, format "hlo_with_config": a serialized
 * HloModuleProtoWithConfig).
 *
 * A TPU stores arrays in tiles: T(8,128) pads the two minor dimensions to multiples of 8 and 128,
 * so an array with a minor dimension of 1 takes up to 128 times its size. The padded size of an
 * array is that with the minor dimensions rounded up to the first tile; further tiles only reorder
 * elements.
 *
 * Message fields used (of XLA's protos; all others are skipped):
 *
 *   HloModuleProtoWithConfig  1 module
 *   HloModuleProto            3 computations*  6 entry_computation_id
 *   HloComputationProto       2 instructions*  5 id
 *   HloInstructionProto       2 opcode  3 shape  7 metadata{2 op_name}  9 parameter_number
 *                             38 called_computation_ids*, of a while: body, condition
 *   ShapeProto                2 element_type  3 dimensions*  4 tuple_shapes*  5 layout
 *   LayoutProto               1 minor_to_major*  6 tiles*{1 dimensions*}  8 memory_space
 *
 * The bytes are untrusted: every length is checked, nesting and ranks are limited. */
#ifndef SX_BACKENDS_PJRT_LAYOUTS_H
#define SX_BACKENDS_PJRT_LAYOUTS_H

#include <sextant/types.h>

/* An array of the entry computation, or of the body of a loop in it. */
typedef struct sx_layout_array {
    int parameter;  /* its index, or -1 for an intermediate value */
    const char *op; /* name before optimization: "conv2d/relu"; not NUL-terminated */
    size_t op_size;
    int64_t bytes, padded; /* without and with padding */
    int memory;            /* 0 = the device's main memory, otherwise on the chip */
    const char *text;      /* "f32[256,28,28,1]", valid during the call */
} sx_layout_array;

typedef void sx_layout_visit(void *user, const sx_layout_array *array);

/* Calls `visit` for each parameter and array of the entry computation, and for the arrays of one
 * iteration of its loops; views of other arrays (tuples, bitcasts, asynchronous copies) are
 * omitted. Errors: DATA_LOSS: not a valid message. */
SX_MUST_USE sx_status sx_layouts_visit(const void *data, size_t size, sx_layout_visit *visit,
                                       void *user);

/* The number of elements of dims[rank], in the order minor_to_major, after padding to `tile` (n
 * dimensions; 0 = none), times their size. −1 on overflow. */
int64_t sx_padded_bytes(const int64_t *dims, const int64_t *minor_to_major, int rank,
                        const int64_t *tile, int n_tile, int64_t elem_bits);

#endif
