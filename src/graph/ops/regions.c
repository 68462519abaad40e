/* See regions.h. */
#include "graph/ops/regions.h"

#include <string.h>

sx_status sx_require_region_args(const char *what, const sx_graph *body, const sx_type *types,
                                 int n)
{
    if (body == NULL) {
        return sx_error(SX_INVALID_ARGUMENT, "region %s is missing", what);
    }
    if (body->n_args != n) {
        return sx_error(SX_INVALID_ARGUMENT, "region %s has %d arguments, but %d values are passed",
                        what, body->n_args, n);
    }
    for (int i = 0; i < n; i++) {
        const sx_type *type = sx_graph_type(body, body->args[i].value);
        if (!sx_type_equal(type, &types[i])) {
            return sx_error(SX_INVALID_ARGUMENT, "region %s expects %s as argument %d, got %s",
                            what, SX_TEXT(type), i, SX_TEXT(&types[i]));
        }
    }
    return SX_OK;
}

void sx_region_copy(const sx_kernel_call *c, const sx_host_tensor *from, const sx_host_tensor *to)
{
    memcpy(to->data, from->data, sx_interpret_bytes(c, &to->type));
}
