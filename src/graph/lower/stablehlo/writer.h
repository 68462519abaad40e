/* The internals of the StableHLO writer, for stablehlo.c (text) and operations.c:
 *
 *   body     the function's lines so far
 *   attrs    "name = value, …" staged for the next operation
 *   types    of every value, by SSA number
 *   open     operations whose regions are being written; their types are printed by sx_hlo_end() */
#ifndef SX_GRAPH_LOWER_STABLEHLO_WRITER_H
#define SX_GRAPH_LOWER_STABLEHLO_WRITER_H

#include "base/buffer.h"
#include "graph/lower/stablehlo/stablehlo.h"

/* An operation whose regions are open. */
typedef struct sx_hlo_open {
    sx_hlo *in; /* owned */
    int n_in;
    sx_hlo first;
    int n_out;
    int regions;
} sx_hlo_open;

struct sx_hlo_writer {
    sx_hlo_options options;
    sx_buf body, attrs, module;
    sx_type *types;
    int n_types, max_types;
    sx_hlo_arg *args;
    int n_args;
    sx_hlo_open open[SX_HLO_MAX_DEPTH];
    int depth;
    sx_hlo reached;
    sx_hlo_bound *bounds;
    int n_bounds;
    int channels; /* number of collectives so far: each has its own channel */
    const char *name;
    sx_status error;
};

typedef struct sx_hlo_dtype {
    const char *text;
    const char *compare; /* comparison_type */
    double least, most;  /* the range to which a double is clamped; integers only */
} sx_hlo_dtype;

/* The properties of an element type; NULL if it is not supported. */
const sx_hlo_dtype *sx_hlo_dtype_of(sx_dtype dtype);

static inline bool sx_hlo_is_narrow(sx_dtype dtype)
{
    return dtype == SX_BF16 || dtype == SX_F16;
}

/* Stages "name = " for the next operation; the caller appends the value to `attrs`. */
void sx_hlo_begin_attr(sx_hlo_writer *w, const char *name);

#endif
