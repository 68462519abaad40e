/* See zoo.h. */
#include "nn/zoo/zoo.h"

#include <string.h>

const sx_model_def *const sx_zoo[] = {
#define SX_ZOO_MODEL(name) &sx_zoo_##name,
#include "nn/zoo/zoo.def"
#undef SX_ZOO_MODEL
    NULL};

const sx_model_def *sx_zoo_find(const char *name)
{
    for (int i = 0; sx_zoo[i] != NULL; i++) {
        if (strcmp(sx_zoo[i]->name, name) == 0) {
            return sx_zoo[i];
        }
    }
    return NULL;
}
