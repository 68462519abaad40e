/* Shared by the layers: a scope that records the user's source line, variables in that scope, the
 * random inputs. */
#ifndef SX_NN_LAYER_H
#define SX_NN_LAYER_H

#include <sextant/nn.h>

#include "graph/builder.h"
#include "graph/ops/attrs.h"
#include "graph/ops/precision.h"

/* Begins the layer's scope and makes its line the current one; false if the builder has failed. */
bool sx_layer_begin(sx_builder *b, const char *base, const char *name, const char *file, int line);
/* Ends it and returns `result`. */
sx_value sx_layer_end(sx_builder *b, sx_value result);
/* Fails the builder with "file.c:14: dense "dense_1": <message>". */
void sx_layer_fail(sx_builder *b, const char *base, sx_status status);
/* Returns whether x has that rank; if not, fails the builder with INVALID_ARGUMENT: "input
 * float32[N,2] has rank 2, expected [N,H,W,C]; hint". */
bool sx_layer_check_rank(sx_builder *b, const char *base, sx_value x, int rank,
                         const char *expected, const char *hint);

/* Variable `scope/leaf`; float32. */
sx_value sx_layer_variable(sx_builder *b, const char *leaf, sx_type type, sx_variable_role role,
                           sx_initializer init, sx_initializer otherwise);
/* A weight variable, cast to the precision in which the layer computes. */
sx_value sx_layer_weight(sx_builder *b, const char *leaf, sx_type type, sx_initializer init,
                         sx_initializer otherwise);

/* The run's seed, uint32[2], an input fed by the session; created at the first call. */
sx_value sx_seed_input(sx_builder *b);
/* The variable global_step, int64. */
sx_value sx_global_step(sx_builder *b);

#endif
