/* Tensors as text, for messages (host.h). */
#include "graph/host.h"

#include "base/buffer.h"
#include "base/checked.h"

void sx_host_print(const sx_host_tensor *t, int64_t most, sx_buf *out)
{
    enum { MOST_STRING_BYTES = 500 };
    const int64_t n = sx_type_elems(&t->type);
    for (int64_t k = 0; k < SX_MIN(n, most) && out->failed == 0; k++) {
        sx_buf_puts(out, k > 0 ? " " : "");
        switch (sx_carrier_of(t->type.dtype)) {
        case SX_CARRIER_S:
            sx_buf_put_utf8(out, t->s[k].data, SX_MIN(t->s[k].size, MOST_STRING_BYTES));
            break;
        case SX_CARRIER_U:
            sx_buf_printf(out, "%llu", (unsigned long long)t->u[k]);
            break;
        case SX_CARRIER_I:
            sx_buf_printf(out, "%lld", (long long)t->i[k]);
            break;
        default:
            sx_buf_printf(out, "%g", sx_host_get(t, k));
            break;
        }
    }
    sx_buf_puts(out, n > most ? " ..." : "");
}
