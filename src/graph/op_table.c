/* The table of operators, expanded from ops.def. */
#include <string.h>

#include "graph/op_def.h"

const sx_op_def *const sx_op_table[SX_OPID_COUNT] = {
#define SX_OP(op_name) [SX_OPID_##op_name] = &sx_op_##op_name,
#include "graph/ops/ops.def"
#undef SX_OP
};

const sx_op_def *sx_op_find(const char *name)
{
    for (int i = 0; i < SX_OPID_COUNT; i++) {
        if (strcmp(sx_op_table[i]->name, name) == 0) {
            return sx_op_table[i];
        }
    }
    return NULL;
}

bool sx_op_has_regions(const sx_op_def *op)
{
    bool any = false;
    for (int row = 0; row < op->n_attrs; row++) {
        any = any || op->attrs[row].kind == SX_ATTR_BODY;
    }
    return any;
}
