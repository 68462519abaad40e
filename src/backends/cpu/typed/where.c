/* where: the elements that are not zero are counted, then listed. Each element of a piece of a row
 * writes its place, which the next one overwrites if it was zero: branches that data decide would
 * be mispredicted. */
#include "backends/cpu/typed/typed.h"
#include "base/checked.h"

/* WITH(type, X): X is whether x, elements of that type, is not zero; of 16-bit floats, what is
 * behind their sign. */
#define BY_DTYPE(dtype, WITH)                \
    switch (dtype) {                         \
    case SX_F32:                             \
        WITH(float, x[i] != 0)               \
        break;                               \
    case SX_F64:                             \
        WITH(double, x[i] != 0)              \
        break;                               \
    case SX_F16:                             \
    case SX_BF16:                            \
        WITH(uint16_t, (x[i] & 0x7fff) != 0) \
        break;                               \
    case SX_U16:                             \
    case SX_I16:                             \
        WITH(uint16_t, x[i] != 0)            \
        break;                               \
    case SX_U32:                             \
    case SX_I32:                             \
        WITH(uint32_t, x[i] != 0)            \
        break;                               \
    case SX_U64:                             \
    case SX_I64:                             \
        WITH(uint64_t, x[i] != 0)            \
        break;                               \
    default: /* SX_U8, SX_I8, SX_BOOL */     \
        WITH(uint8_t, x[i] != 0)             \
        break;                               \
    }

static bool takes(const void *attrs, const sx_tensor *in)
{
    (void)attrs;
    const sx_dtype dtype = in[0].type.dtype;
    return sx_carrier_of(dtype) != SX_CARRIER_NONE && dtype != SX_STRING && in[0].type.rank > 0;
}

static sx_status types(sx_typed_call *c, sx_type *out_types)
{
    const sx_type *t = &c->in[0].type;
    const int64_t n = sx_type_elems(t);
    int64_t count = 0;
#define COUNT(type, NONZERO)              \
    {                                     \
        const type *x = c->in[0].data;    \
        for (int64_t i = 0; i < n; i++) { \
            count += NONZERO;             \
        }                                 \
    }
    BY_DTYPE(t->dtype, COUNT)
#undef COUNT
    out_types[0] = sx_type_make(SX_I64, 2, (const int64_t[]){count, t->rank});
    return SX_OK;
}

static sx_status run(const sx_typed_call *c)
{
    enum { CHUNK = 256 };
    const sx_type *t = &c->in[0].type;
    const int64_t width = t->dims[t->rank - 1], rank = t->rank;
    int64_t at[SX_MAX_RANK] = {0}, found[CHUNK + 1], *to = c->out[0].data;
    const int64_t *const end = to + sx_type_elems(&c->out[0].type);
#define FIND(type, NONZERO)                     \
    {                                           \
        const type *x = c->in[0].data;          \
        for (int64_t i = from; i < stop; i++) { \
            found[n] = i - row;                 \
            n += NONZERO;                       \
        }                                       \
    }
    for (int64_t row = 0; to < end; row += width) {
        for (int64_t from = row; from < row + width; from += CHUNK) {
            const int64_t stop = SX_MIN(from + CHUNK, row + width);
            int64_t n = 0;
            BY_DTYPE(t->dtype, FIND)
            for (int64_t d = 0; d < rank - 1; d++) {
                for (int64_t k = 0; k < n; k++) {
                    to[k * rank + d] = at[d];
                }
            }
            for (int64_t k = 0; k < n; k++) {
                to[k * rank + rank - 1] = found[k];
            }
            to += n * rank;
        }
        for (int d = t->rank - 2; d >= 0 && ++at[d] == t->dims[d]; d--) {
            at[d] = 0;
        }
    }
#undef FIND
    return SX_OK;
}

const sx_typed_kernel sx_typed_where = {
    .op = SX_OPID_where, .takes = takes, .types = types, .run = run};
