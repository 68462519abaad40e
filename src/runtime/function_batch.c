/* See function_batch.h. */
#include "runtime/function_batch.h"

#include <stdio.h>

/* Of the sizes that symbols have, the one that most dimensions have; of those, the first that is
 * not 1, which may stand for any other. INVALID_ARGUMENT: a symbol has two sizes. */
static sx_status commonest_size(const sx_graph *body, const sx_run_value *args, int n, int64_t *out)
{
    int64_t best_count = 0;
    for (int i = 0; i < n; i++) {
        const sx_type *declared = sx_graph_type(body, body->args[i].value);
        for (int d = 0; d < declared->rank && declared->rank == args[i].type.rank; d++) {
            const int64_t symbol = declared->dims[d], size = args[i].type.dims[d];
            int64_t count = 0;
            for (int k = 0; k < n && sx_dim_is_symbol(symbol); k++) {
                const sx_type *other = sx_graph_type(body, body->args[k].value);
                for (int e = 0; e < other->rank && other->rank == args[k].type.rank; e++) {
                    const bool same = args[k].type.dims[e] == size;
                    count += same && sx_dim_is_symbol(other->dims[e]);
                    if (!same && other->dims[e] == symbol) {
                        char a[SX_TYPE_TEXT], b[SX_TYPE_TEXT];
                        return sx_error(
                            SX_INVALID_ARGUMENT,
                            "argument \"%s\" is %s and argument \"%s\" is %s, but "
                            "dimensions %d and %d are declared to be equal",
                            body->args[i].name, sx_type_format(&args[i].type, a, sizeof(a)),
                            body->args[k].name, sx_type_format(&args[k].type, b, sizeof(b)), d, e);
                    }
                }
            }
            if (count > best_count || (count > 0 && count == best_count && *out == 1)) {
                *out = size;
                best_count = count;
            }
        }
    }
    return SX_OK;
}

sx_status sx_function_batch(const sx_graph *body, const sx_run_value *args, int n, bool symbols,
                            int64_t *out_batch)
{
    int64_t batch = SX_NO_BATCH, symbol_size = SX_NO_BATCH;
    bool symbols_differ = false;
    for (int i = 0; i < n; i++) {
        const sx_type *declared = sx_graph_type(body, body->args[i].value);
        for (int d = 0; d < declared->rank && declared->rank == args[i].type.rank; d++) {
            const int64_t dim = args[i].type.dims[d];
            if (sx_dim_is_symbol(declared->dims[d])) {
                symbols_differ = symbols_differ || (symbol_size >= 0 && symbol_size != dim);
                symbol_size = dim;
            }
            if (!sx_dim_is_batch(declared->dims[d])) {
                continue;
            }
            const int64_t c = -declared->dims[d];
            if (dim % c != 0 || (batch >= 0 && dim != c * batch)) {
                char a[SX_TYPE_TEXT], b[SX_TYPE_TEXT], size[32] = "is not known";
                if (batch >= 0) {
                    snprintf(size, sizeof(size), "is %lld", (long long)batch);
                }
                return sx_error(SX_INVALID_ARGUMENT,
                                "argument %d, \"%s\", is %s, but is declared as %s, and N %s", i,
                                body->args[i].name, sx_type_format(&args[i].type, a, sizeof(a)),
                                sx_type_format(declared, b, sizeof(b)), size);
            }
            batch = dim / c;
        }
    }
    if (symbols && batch == SX_NO_BATCH) {
        batch = symbol_size;
        SX_TRY(symbols_differ ? commonest_size(body, args, n, &batch) : SX_OK);
    }
    *out_batch = batch;
    return SX_OK;
}
