/* See diagonals.h. */
#include "graph/ops/diagonals.h"

static const char *const align_names[] = {"RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT",
                                          NULL};

const sx_attr_def sx_diagonals_rows[4] = {
    SX_ATTR(sx_diagonals_attrs, k, SX_ATTR_INTS),
    SX_ATTR_NAMES(sx_diagonals_attrs, align, align_names),
    SX_ATTR(sx_diagonals_attrs, num_rows, SX_ATTR_INT),
    SX_ATTR(sx_diagonals_attrs, num_cols, SX_ATTR_INT),
};

sx_status sx_diagonals_of(const sx_diagonals_attrs *attrs, sx_diagonals *out)
{
    const sx_ints *k = &attrs->k;
    const int64_t low = k->n > 0 ? k->v[0] : 0, high = k->n > 1 ? k->v[1] : low;
    if (k->n > 2 || low > high || low < INT32_MIN || high > INT32_MAX) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "k has %d numbers, from %lld to %lld, expected one diagonal, or the lowest "
                        "and the highest",
                        k->n, (long long)low, (long long)high);
    }
    *out = (sx_diagonals){.low = low, .high = high, .single = low == high};
    return SX_OK;
}

int64_t sx_diagonal_length(int64_t d, int64_t rows, int64_t columns)
{
    return SX_MIN(rows + SX_MIN(d, 0), columns - SX_MAX(d, 0));
}

sx_status sx_diagonals_fit(const sx_diagonals *d, int64_t rows, int64_t columns,
                           int64_t *out_length)
{
    /* of a matrix without elements, the main diagonal is there, too */
    const bool low = (d->low > -rows && d->low < columns) || d->low == 0;
    const bool high = (d->high > -rows && d->high < columns) || d->high == 0;
    if (!low || !high) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "diagonals %lld to %lld of matrices of %lld rows and %lld columns",
                        (long long)d->low, (long long)d->high, (long long)rows, (long long)columns);
    }
    *out_length = SX_MIN(rows + SX_MIN(d->high, 0), columns - SX_MAX(d->low, 0));
    return SX_OK;
}

int64_t sx_diagonal_begin(const sx_diagonals_attrs *attrs, int64_t d, int64_t length, int64_t width)
{
    const bool above_left =
        attrs->align == SX_ALIGN_LEFT_RIGHT || attrs->align == SX_ALIGN_LEFT_LEFT;
    const bool below_left =
        attrs->align == SX_ALIGN_RIGHT_LEFT || attrs->align == SX_ALIGN_LEFT_LEFT;
    return (d >= 0 && above_left) || (d <= 0 && below_left) ? 0 : width - length;
}

void sx_put_diagonals(const sx_kernel_call *c, const sx_diagonals *d, int in, int64_t width)
{
    const sx_diagonals_attrs *attrs = c->attrs;
    const sx_type *y = &c->out[0].type;
    const int64_t rows = y->dims[y->rank - 2], columns = y->dims[y->rank - 1];
    const int64_t matrices = sx_dims_product(y, 0, y->rank - 2), count = d->high - d->low + 1;
    for (int64_t p = 0; p < matrices; p++) {
        for (int64_t row = 0; row < count; row++) {
            const int64_t at = d->high - row, length = sx_diagonal_length(at, rows, columns);
            const int64_t begin = sx_diagonal_begin(attrs, at, length, width);
            for (int64_t k = 0; k < length; k++) {
                const int64_t to = (k - SX_MIN(at, 0)) * columns + k + SX_MAX(at, 0);
                sx_host_move(c, p * rows * columns + to, in, (p * count + row) * width + begin + k,
                             1);
            }
        }
    }
}

sx_status sx_tf_read_diagonals(const sx_tf_node *n, void *attrs)
{
    sx_diagonals_attrs *out = attrs;
    for (int i = 0; align_names[i] != NULL; i++) {
        out->align = sx_tf_read_is(n, "align", align_names[i], i == 0) ? i : out->align;
    }
    return SX_OK;
}

sx_status sx_tf_read_diagonals_left(const sx_tf_node *n, void *attrs)
{
    (void)n;
    ((sx_diagonals_attrs *)attrs)->align = SX_ALIGN_LEFT_LEFT;
    return SX_OK;
}

sx_tf_value sx_tf_diagonals(sx_tf_writer *w, const sx_diagonals_attrs *attrs)
{
    const int32_t low = attrs->k.n > 0 ? (int32_t)attrs->k.v[0] : 0;
    const int32_t ends[2] = {low, attrs->k.n > 1 ? (int32_t)attrs->k.v[1] : low};
    return sx_tf_const_i32s(w, "k", 2, ends);
}

sx_tf_attr sx_tf_align(const sx_diagonals_attrs *attrs)
{
    return sx_tf_attr_string("align", align_names[attrs->align]);
}
