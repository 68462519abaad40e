/* The rows' functions, and what several of them share. */
#ifndef SX_GRAPH_LOWER_STABLEHLO_ROWS_H
#define SX_GRAPH_LOWER_STABLEHLO_ROWS_H

#include "graph/lower/stablehlo/lower.h"

#define HLO(name) sx_hlo_lower_fn sx_hlo_lower_##name;
#define NONE(name, why)
#include "graph/lower/stablehlo/rows.def"

/* index[i...] -> bool [i..., depth]: is it that class? */
sx_hlo sx_hlo_hits(sx_hlo_writer *w, sx_hlo index, int64_t depth);

#endif
