/* transpose, slice, pad, concat, any broadcast: elements moved as they are. Each input is one move:
 *
 *   out[to + Σ i[d] to_stride[d]] = in[from + Σ i[d] from_stride[d]]     for all i within `size`
 *
 * in elements. Dimensions that follow one another in both are joined, so that the innermost loop is
 * as long as it can be; where it is contiguous in both, it is a copy of bytes. A concat,
 * where it is, may have some of its values in bfloat16 and others not, and converts them. */
#include <string.h>

#include "backends/cpu/kernel.h"
#include "base/checked.h"
#include "graph/host.h"
#include "graph/ops/attrs.h"

typedef struct move {
    int rank;          /* at least 1 */
    size_t from_bytes; /* of an element */
    int64_t from, to;
    int64_t size[SX_MAX_RANK], from_stride[SX_MAX_RANK], to_stride[SX_MAX_RANK];
} move;

typedef struct move_data {
    const sx_cpu_vec *vec;
    size_t elem_bytes; /* of the output's */
    bool fills;        /* the output, before the moves, which do not write all of it */
    uint64_t fill;
    int n;
    move moves[];
} move_data;

/* ---- Preparing ---- */

static bool match_move(sx_cpu_match *m)
{
    (void)m;
    return true;
}

static void row_major(const sx_type *t, int64_t *strides)
{
    int64_t stride = 1;
    for (int d = t->rank - 1; d >= 0; d--) {
        strides[d] = stride;
        stride *= t->dims[d];
    }
}

/* Leaves out dimensions of 1 and joins those that follow one another in both. */
static void join(move *m)
{
    int kept = 0;
    for (int d = 0; d < m->rank; d++) {
        const int last = kept - 1;
        if (m->size[d] == 1) {
            continue;
        }
        if (kept > 0 && m->from_stride[last] == m->size[d] * m->from_stride[d] &&
            m->to_stride[last] == m->size[d] * m->to_stride[d]) {
            m->size[last] *= m->size[d];
            m->from_stride[last] = m->from_stride[d];
            m->to_stride[last] = m->to_stride[d];
            continue;
        }
        m->size[kept] = m->size[d];
        m->from_stride[kept] = m->from_stride[d];
        m->to_stride[kept++] = m->to_stride[d];
    }
    if (kept == 0) {
        m->size[0] = m->from_stride[0] = m->to_stride[0] = 1;
        kept = 1;
    }
    m->rank = kept;
}

static void run_move(const sx_cpu_step *step, const sx_cpu_call *call);

static sx_status prepare_move(const sx_cpu_site *site, sx_cpu_step *step)
{
    const sx_type *y = &site->out[0];
    const void *attrs = site->nodes[0]->attrs;
    const int op = site->nodes[0]->op->id;
    move_data *d = sx_arena_alloc(&site->plan->arena, 1,
                                  sizeof(*d) + (size_t)site->n_in * sizeof(d->moves[0]));
    int64_t along = 0; /* concat: before input i */
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    const size_t bytes = sx_dtype_bytes(y->dtype), narrow = sx_dtype_bytes(SX_BF16);
    *d = (move_data){
        .vec = site->vec, .elem_bytes = site->narrow_out ? narrow : bytes, .n = site->n_in};
    for (int i = 0; i < site->n_in; i++) {
        const sx_type *x = &site->in[i];
        const bool is_narrow = i < 32 && (site->narrow_in >> i & 1) != 0;
        move m = {.rank = x->rank, .from_bytes = is_narrow ? narrow : bytes};
        int64_t strides[SX_MAX_RANK];
        memcpy(m.size, x->dims, sizeof(m.size));
        row_major(x, m.from_stride);
        row_major(y, m.to_stride);
        if (op == SX_OPID_transpose) {
            const sx_transpose_attrs *a = attrs;
            memcpy(strides, m.from_stride, sizeof(strides));
            memcpy(m.size, y->dims, sizeof(m.size));
            for (int k = 0; k < y->rank; k++) {
                m.from_stride[k] = strides[a->perm.v[k]];
            }
        } else if (op == SX_OPID_broadcast_to) {
            memcpy(strides, m.from_stride, sizeof(strides));
            memcpy(m.size, y->dims, sizeof(m.size));
            m.rank = y->rank;
            for (int k = 0; k < y->rank; k++) {
                const int at = k - (y->rank - x->rank);
                m.from_stride[k] = at < 0 || x->dims[at] == 1 ? 0 : strides[at];
            }
        } else if (op == SX_OPID_slice) {
            const sx_slice_attrs *a = attrs;
            memcpy(m.size, y->dims, sizeof(m.size));
            for (int k = 0; k < y->rank; k++) {
                m.from += a->begin.v[k] * m.from_stride[k];
            }
        } else if (op == SX_OPID_pad) {
            const sx_pad_attrs *a = attrs;
            for (int k = 0; k < y->rank; k++) {
                m.to += a->before.v[k] * m.to_stride[k];
            }
            d->fills = true;
            sx_host_store_element(y->dtype, a->value, &d->fill);
        } else {
            const int axis = (int)((const sx_axis_attrs *)attrs)->axis;
            m.to = along * m.to_stride[axis];
            along += x->dims[axis];
        }
        if (sx_type_elems(x) == 0 || sx_type_elems(y) == 0) {
            m = (move){.rank = 1, .from_bytes = bytes, .size = {0}, .to_stride = {1}};
        }
        join(&m);
        d->moves[i] = m;
    }
    step->run = run_move;
    step->data = d;
    step->range = sx_type_elems(y);
    return SX_OK;
}

/* ---- Running ---- */

#define MOVE_STRIDED(type)                                                   \
    for (int64_t i = 0; i < n; i++) {                                        \
        ((type *)to)[i * to_stride] = ((const type *)from)[i * from_stride]; \
    }

/* A row of n elements. */
static inline void move_row(const void *from, int64_t from_stride, void *to, int64_t to_stride,
                            int64_t n, size_t elem_bytes)
{
    if (from_stride == 1 && to_stride == 1) {
        memcpy(to, from, (size_t)n * elem_bytes);
        return;
    }
    if (from_stride == 0 && to_stride == 1) {
        memcpy(to, from, elem_bytes);
        sx_cpu_repeat(to, elem_bytes, (size_t)n * elem_bytes);
        return;
    }
    switch (elem_bytes) {
    case 1:
        MOVE_STRIDED(uint8_t)
        break;
    case 2:
        MOVE_STRIDED(uint16_t)
        break;
    case 4:
        MOVE_STRIDED(uint32_t)
        break;
    default:
        MOVE_STRIDED(uint64_t)
        break;
    }
}

/* A row of a concat whose sides differ: of n elements, in runs of those that follow one another. */
static void convert_row(const sx_cpu_vec *vec, const char *from, int64_t from_stride, char *to,
                        int64_t to_stride, int64_t n, bool widens)
{
    const bool whole = from_stride == 1 && to_stride == 1;
    const size_t from_bytes = sx_dtype_bytes(widens ? SX_BF16 : SX_F32);
    const size_t to_bytes = sx_dtype_bytes(widens ? SX_F32 : SX_BF16);
    for (int64_t i = 0, run = whole ? n : 1; i < n; i += run) {
        const void *x = from + (size_t)(i * from_stride) * from_bytes;
        void *y = to + (size_t)(i * to_stride) * to_bytes;
        if (widens) {
            vec->from_bf16(x, y, run);
        } else {
            vec->to_bf16(x, y, run);
        }
    }
}

/* Those rows of the first dimension that reach into elements [begin, end) of the output. */
static move part_of(const move *m, int64_t begin, int64_t end)
{
    move part = *m;
    const int64_t stride = m->to_stride[0], before = m->to / stride;
    const int64_t first = SX_MAX(begin / stride - before, (int64_t)0);
    const int64_t last = SX_MIN((end - 1) / stride - before + 1, m->size[0]);
    part.size[0] = SX_MAX(last - first, (int64_t)0);
    part.from += first * m->from_stride[0];
    part.to += first * stride;
    return part;
}

/* What of it lies in elements [begin, end) of the output. */
static void run_one(const move_data *data, const move *whole, const char *x, char *y, int64_t begin,
                    int64_t end)
{
    const int inner = whole->rank - 1;
    const move part = part_of(whole, begin, end), *m = &part;
    const size_t elem_bytes = data->elem_bytes;
    int64_t at[SX_MAX_RANK] = {0}, from = m->from, to = m->to;
    for (int d = 0; d < m->rank; d++) {
        if (m->size[d] == 0) {
            return;
        }
    }
    for (;;) {
        const int64_t stride = m->to_stride[inner];
        const int64_t first = to < begin ? (begin - to + stride - 1) / stride : 0;
        const int64_t last = to + (m->size[inner] - 1) * stride < end
                                 ? m->size[inner]
                                 : (end - to + stride - 1) / stride;
        const char *source = x + (size_t)(from + first * m->from_stride[inner]) * m->from_bytes;
        char *target = y + (size_t)(to + first * stride) * elem_bytes;
        if (first < last && m->from_bytes != elem_bytes) {
            convert_row(data->vec, source, m->from_stride[inner], target, stride, last - first,
                        m->from_bytes < elem_bytes);
        } else if (first < last) {
            move_row(source, m->from_stride[inner], target, stride, last - first, elem_bytes);
        }
        int d = inner - 1;
        for (; d >= 0; d--) { /* the next row */
            from += m->from_stride[d];
            to += m->to_stride[d];
            if (++at[d] < m->size[d]) {
                break;
            }
            from -= m->size[d] * m->from_stride[d];
            to -= m->size[d] * m->to_stride[d];
            at[d] = 0;
        }
        if (d < 0) {
            return;
        }
    }
}

static void run_move(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const move_data *d = step->data;
    char *y = sx_cpu_out(step, call, 0), *first = y + (size_t)call->begin * d->elem_bytes;
    const size_t bytes = (size_t)(call->end - call->begin) * d->elem_bytes;
    if (bytes == 0) {
        return;
    }
    if (d->fills && d->fill == 0) {
        memset(first, 0, bytes);
    } else if (d->fills) {
        memcpy(first, &d->fill, d->elem_bytes);
        sx_cpu_repeat(first, d->elem_bytes, bytes);
    }
    for (int i = 0; i < d->n; i++) {
        run_one(d, &d->moves[i], sx_cpu_in(step, call, i), y, call->begin, call->end);
    }
}

const sx_cpu_kernel sx_cpu_kernel_transpose = {
    .name = "transpose", .op = SX_OPID_transpose, .match = match_move, .prepare = prepare_move};
const sx_cpu_kernel sx_cpu_kernel_broadcast_any = {.name = "broadcast_to",
                                                   .op = SX_OPID_broadcast_to,
                                                   .match = match_move,
                                                   .prepare = prepare_move};
const sx_cpu_kernel sx_cpu_kernel_slice = {
    .name = "slice", .op = SX_OPID_slice, .match = match_move, .prepare = prepare_move};
const sx_cpu_kernel sx_cpu_kernel_pad = {
    .name = "pad", .op = SX_OPID_pad, .match = match_move, .prepare = prepare_move};
const sx_cpu_kernel sx_cpu_kernel_concat = {.name = "concat",
                                            .op = SX_OPID_concat,
                                            .match = match_move,
                                            .prepare = prepare_move,
                                            .narrow_in = ~0u,
                                            .narrow_out = true};
