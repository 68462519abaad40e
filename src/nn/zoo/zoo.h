/* Built-in models by name. To add one: a file here with one descriptor, and its row in zoo.def. */
#ifndef SX_NN_ZOO_H
#define SX_NN_ZOO_H

#include <sextant/model.h>

extern const sx_model_def *const sx_zoo[]; /* NULL-terminated, in the order of zoo.def */

/* NULL if there is no model of that name. */
const sx_model_def *sx_zoo_find(const char *name);

#define SX_ZOO_MODEL(name) extern const sx_model_def sx_zoo_##name;
#include "nn/zoo/zoo.def"
#undef SX_ZOO_MODEL

#endif
