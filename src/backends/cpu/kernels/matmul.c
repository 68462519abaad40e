/* matmul: oneDNN's sgemm, by a frozen matrix mostly dense.c; tiny products use a simple loop,
 * which costs less than the call. Of a stack of matrices each is one product; a stack by one matrix
 * b is one tall matrix. A product that is added to a loop's state, as the gradients of weights are,
 * is added to it in place. Workers divide the products and, of large ones, pieces of their longer
 * side. Products of up to four rows read b once (vec/product.inc), their columns divided among
 * workers. Products of doubles are our own (vec/product_f64.inc), rows or columns divided among
 * workers; those of integers are plain loops, whose rows are. */
#include "backends/cpu/kernels/dense.h"
#include "backends/cpu/onednn2.h"
#include "graph/ops/common.h"

typedef struct matmul_data {
    const sx_cpu_vec *vec;
    bool ta, tb;
    int64_t m, n, k;
    int64_t products;
    float beta;           /* 1: added to what is in c */
    bool by_rows;         /* the pieces that workers divide, */
    sx_dnn_pieces pieces; /* of each product */
    const int64_t *a, *b; /* [products]: where their operands begin; NULL: of one product at 0 */
} matmul_data;

enum {
    TINY_OPS = 2048,
    FEW_ROWS_COLUMNS = 64,    /* fewer leave vectors of a panel empty */
    GRAIN_BYTES = 128 * 1024, /* of b, for each worker */
    GRAIN_FLOPS = 1 << 19,    /* the same, of more rows */
};

static bool match_matmul(sx_cpu_match *m)
{
    return sx_cpu_is_f32(m, m->out[0]);
}

static sx_dnn_product product_of(const matmul_data *d, const sx_cpu_step *step,
                                 const sx_cpu_call *call, int64_t p)
{
    const float *a = sx_cpu_in(step, call, 0), *b = sx_cpu_in(step, call, 1);
    float *c = sx_cpu_out(step, call, 0);
    return (sx_dnn_product){.ta = d->ta,
                            .tb = d->tb,
                            .m = d->m,
                            .n = d->n,
                            .k = d->k,
                            .a = d->a != NULL ? a + d->a[p] : a,
                            .b = d->b != NULL ? b + d->b[p] : b,
                            .beta = d->beta,
                            .c = c + p * d->m * d->n};
}

static void run_matmul(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const matmul_data *d = step->data;
    for (int64_t u = call->begin / SX_CPU_SPLIT; u < call->end / SX_CPU_SPLIT; u++) {
        const sx_dnn_product p = product_of(d, step, call, u / d->pieces.n);
        const int64_t piece = u % d->pieces.n, first = piece * d->pieces.size;
        const int64_t elems = sx_dnn_piece_elems(&d->pieces, piece);
        sx_dnn_gemm_part(&p, d->by_rows ? first : 0, d->by_rows ? elems : d->m,
                         d->by_rows ? 0 : first, d->by_rows ? d->n : elems);
    }
}

static void multiply(const matmul_data *d, const float *a, const float *b, float *c)
{
    int64_t row_a = d->ta ? 1 : d->k, inner_a = d->ta ? d->m : 1;
    int64_t col_b = d->tb ? d->k : 1, inner_b = d->tb ? 1 : d->n;
    for (int64_t i = 0; i < d->m; i++) {
        for (int64_t j = 0; j < d->n; j++) {
            float sum = 0;
            for (int64_t l = 0; l < d->k; l++) {
                sum += a[i * row_a + l * inner_a] * b[j * col_b + l * inner_b];
            }
            c[i * d->n + j] = sum;
        }
    }
}

static void run_tiny(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const matmul_data *d = step->data;
    const float *a = sx_cpu_in(step, call, 0), *b = sx_cpu_in(step, call, 1);
    float *c = sx_cpu_out(step, call, 0);
    for (int64_t p = 0; p < d->products; p++) {
        multiply(d, d->a != NULL ? a + d->a[p] : a, d->b != NULL ? b + d->b[p] : b,
                 c + p * d->m * d->n);
    }
}

/* A few rows: columns [begin, end) of each product. */
static void run_few_rows(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const matmul_data *d = step->data;
    const float *a = sx_cpu_in(step, call, 0), *b = sx_cpu_in(step, call, 1);
    float *c = sx_cpu_out(step, call, 0);
    for (int64_t p = 0; p < d->products; p++) {
        d->vec->product(d->a != NULL ? a + d->a[p] : a, d->m, d->k, d->b != NULL ? b + d->b[p] : b,
                        d->n, c + p * d->m * d->n, call->begin, call->end);
    }
}

/* Where operand `in` of each of the products begins; NULL after running out of memory. */
static int64_t *offsets_of(const sx_cpu_site *site, const sx_type *in, int64_t products)
{
    int64_t *at = sx_arena_array(&site->plan->arena, products + 1, int64_t);
    sx_type head = *in, whole = site->out[0];
    const int64_t size = in->dims[in->rank - 2] * in->dims[in->rank - 1];
    head.rank -= 2;
    whole.rank -= 2;
    for (int64_t p = 0; at != NULL && p < products; p++) {
        at[p] = sx_broadcast_offset(&whole, &head, p) * size;
    }
    return at;
}

static double flops_of(const matmul_data *d)
{
    return 2.0 * (double)d->products * (double)d->m * (double)d->n * (double)d->k;
}

/* `product`: the matmul among the site's nodes, whose operands are its first two. */
static sx_status prepare_product(const sx_cpu_site *site, const sx_node *product, sx_cpu_step *step)
{
    const sx_matmul_attrs *attrs = product->attrs;
    matmul_data *d = sx_cpu_new(site, matmul_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    const sx_type *a = &site->in[0], *b = &site->in[1], *c = &site->out[0];
    *d = (matmul_data){.vec = site->vec,
                       .ta = attrs->transpose_a,
                       .tb = attrs->transpose_b,
                       .m = c->dims[c->rank - 2],
                       .n = c->dims[c->rank - 1],
                       .k = a->dims[a->rank - 2 + !attrs->transpose_a]};
    d->products = d->m * d->n > 0 ? sx_type_elems(c) / (d->m * d->n) : 0; /* 0: a batch of none */
    if (b->rank == 2 && !d->ta && d->products > 1) {
        d->m *= d->products;
        d->products = 1;
    }
    if (d->products > 1) {
        d->a = offsets_of(site, a, d->products);
        d->b = offsets_of(site, b, d->products);
        if (d->a == NULL || d->b == NULL) {
            return sx_cpu_no_memory();
        }
    }
    bool tiny = d->m * d->n <= TINY_OPS && d->m * d->n * d->k <= TINY_OPS;
    d->by_rows = d->m > d->n;
    d->pieces = sx_dnn_pieces_of(d->by_rows ? d->m : d->n, site->divided);
    if (!tiny) {
        sx_dnn_gemm_prepare();
        sx_cpu_divide_products(step, d->products * d->pieces.n, flops_of(d));
    }
    step->run = tiny ? run_tiny : run_matmul;
    step->data = d;
    step->kernel = tiny ? "matmul tiny" : "matmul onednn sgemm";
    return SX_OK;
}

static sx_status prepare_matmul(const sx_cpu_site *site, sx_cpu_step *step)
{
    SX_TRY(prepare_product(site, site->nodes[0], step));
    const matmul_data *d = step->data;
    if (step->run == run_matmul && !d->ta && d->products == 1 &&
        sx_cpu_matmul_is_dense(site, d->m, d->k, d->n)) {
        const sx_cpu_dense_spec spec = {.m = d->m, .k = d->k, .n = d->n, .transposed = d->tb};
        step->kernel = "matmul dense";
        return sx_cpu_prepare_dense(site, &spec, step);
    }
    if (step->run == run_matmul && d->m <= SX_VEC_ROWS && (!d->ta || d->m == 1) && !d->tb &&
        d->n >= FEW_ROWS_COLUMNS && d->k > 0) {
        step->run = run_few_rows;
        step->range = d->n;
        step->grain = (GRAIN_BYTES / (int64_t)sizeof(float) + d->k - 1) / d->k;
        step->kernel = "matmul few rows";
    }
    return SX_OK;
}

static bool match_matmul_add(sx_cpu_match *m)
{
    const sx_graph *g = m->graph;
    const sx_node *add = &g->nodes[m->root];
    for (int i = 0; i < 2; i++) {
        const sx_value sum = add->inputs[1 - i];
        const int k = sx_cpu_claimable(m, add->inputs[i], SX_OPID_matmul);
        if (k < 0 || sx_graph_maker(g, sum)->op->id != SX_OPID_parameter) {
            continue;
        }
        const sx_type *y = sx_graph_type(g, m->out[0]),
                      *b = sx_graph_type(g, g->nodes[k].inputs[1]);
        if (y->dtype != SX_F32 || y->rank != 2 || b->dtype != SX_F32 ||
            sx_type_elems(y) <= TINY_OPS || !sx_type_equal(y, sx_graph_type(g, sum)) ||
            !sx_type_equal(y, sx_graph_type(g, add->inputs[i]))) {
            continue;
        }
        sx_cpu_claim(m, k);
        m->in[0] = g->nodes[k].inputs[0];
        m->in[1] = g->nodes[k].inputs[1];
        m->in[2] = sum;
        m->n_in = 3;
        m->in_place = 1u << 2;
        return true;
    }
    return false;
}

/* The pieces are of rows. */
static void run_matmul_add(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const matmul_data *d = step->data;
    const sx_dnn_product p = product_of(d, step, call, 0);
    const float *sum = sx_cpu_in(step, call, 2);
    for (int64_t i = call->begin / SX_CPU_SPLIT; i < call->end / SX_CPU_SPLIT; i++) {
        const int64_t first = i * d->pieces.size, rows = sx_dnn_piece_elems(&d->pieces, i);
        if (p.c != sum) {
            memcpy(p.c + first * d->n, sum + first * d->n, (size_t)(rows * d->n) * sizeof(float));
        }
        sx_dnn_gemm_part(&p, first, rows, 0, d->n);
    }
}

static sx_status prepare_matmul_add(const sx_cpu_site *site, sx_cpu_step *step)
{
    SX_TRY(prepare_product(site, site->nodes[1], step));
    matmul_data *d = (matmul_data *)(uintptr_t)step->data;
    d->beta = 1;
    d->by_rows = true;
    d->pieces = sx_dnn_pieces_of(d->m, site->divided);
    step->run = run_matmul_add;
    sx_cpu_divide_products(step, d->pieces.n, flops_of(d));
    step->kernel = "matmul add";
    return SX_OK;
}

static bool match_matmul_any(sx_cpu_match *m)
{
    const sx_type *c = sx_graph_type(m->graph, m->out[0]);
    return c->dtype != SX_F16 && c->dtype != SX_BF16 && sx_type_elems(c) > 0;
}

/* Rows [first, last) of product p, columns [begin, end). */
static void multiply_f64(const sx_cpu_step *step, const sx_cpu_call *call, int64_t p, int64_t first,
                         int64_t last, int64_t begin, int64_t end)
{
    const matmul_data *d = step->data;
    const double *a = sx_cpu_in(step, call, 0), *b = sx_cpu_in(step, call, 1);
    double *c = sx_cpu_out(step, call, 0);
    if (d->k == 0) {
        memset(c + (p * d->m + first) * d->n, 0,
               (size_t)((last - first) * d->n) * sizeof(double)); /* one part: its rows are whole */
        return;
    }
    d->vec->product_f64(&(sx_vec_product_f64){.a = d->a != NULL ? a + d->a[p] : a,
                                              .b = d->b != NULL ? b + d->b[p] : b,
                                              .c = c + p * d->m * d->n,
                                              .n = d->n,
                                              .k = d->k,
                                              .row_a = d->ta ? 1 : d->k,
                                              .inner_a = d->ta ? d->m : 1,
                                              .transpose_b = d->tb,
                                              .first = first,
                                              .last = last,
                                              .begin = begin,
                                              .end = end});
}

/* Rows [begin, end) of all products. */
static void run_rows_f64(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const matmul_data *d = step->data;
    for (int64_t r = call->begin; r < call->end;) {
        const int64_t p = r / d->m, first = r % d->m;
        const int64_t last = SX_MIN(d->m, first + call->end - r);
        multiply_f64(step, call, p, first, last, 0, d->n);
        r += last - first;
    }
}

/* Columns [begin, end) of each product. */
static void run_columns_f64(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const matmul_data *d = step->data;
    for (int64_t p = 0; p < d->products; p++) {
        multiply_f64(step, call, p, 0, d->m, call->begin, call->end);
    }
}

static void prepare_f64(const matmul_data *d, sx_cpu_step *step)
{
    const int64_t rows = d->products * d->m;
    const bool by_rows = rows > d->n || d->k == 0;
    const double others = (double)(by_rows ? d->n : rows);
    step->run = by_rows ? run_rows_f64 : run_columns_f64;
    step->range = by_rows ? rows : d->n;
    step->grain = (int64_t)(GRAIN_FLOPS / (2.0 * (double)SX_MAX(d->k, 1) * others)) + 1;
    step->kernel = "matmul float64";
}

/* Rows [begin, end) of the products. Integers are unsigned: modulo 2^bits. */
#define MULTIPLY(name, type, wide)                                                                 \
    static void name(const sx_cpu_step *step, const sx_cpu_call *call)                             \
    {                                                                                              \
        const matmul_data *d = step->data;                                                         \
        const int64_t row_a = d->ta ? 1 : d->k, inner_a = d->ta ? d->m : 1;                        \
        for (int64_t r = call->begin; r < call->end; r++) {                                        \
            const int64_t p = r / d->m, i = r % d->m;                                              \
            const type *a =                                                                        \
                (const type *)sx_cpu_in(step, call, 0) + i * row_a + (d->a != NULL ? d->a[p] : 0); \
            const type *b = (const type *)sx_cpu_in(step, call, 1) + (d->b != NULL ? d->b[p] : 0); \
            type *c = (type *)sx_cpu_out(step, call, 0) + r * d->n;                                \
            memset(c, 0, (size_t)d->n * sizeof(*c));                                               \
            for (int64_t l = 0; l < d->k && !d->tb; l++) {                                         \
                const wide x = a[l * inner_a];                                                     \
                for (int64_t j = 0; j < d->n; j++) {                                               \
                    c[j] = (type)(c[j] + x * b[l * d->n + j]);                                     \
                }                                                                                  \
            }                                                                                      \
            for (int64_t j = 0; j < d->n && d->tb; j++) {                                          \
                wide sum = 0;                                                                      \
                for (int64_t l = 0; l < d->k; l++) {                                               \
                    sum += (wide)a[l * inner_a] * b[j * d->k + l];                                 \
                }                                                                                  \
                c[j] = (type)sum;                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
MULTIPLY(multiply_8, uint8_t, uint32_t)
MULTIPLY(multiply_16, uint16_t, uint32_t)
MULTIPLY(multiply_32, uint32_t, uint32_t)
MULTIPLY(multiply_64, uint64_t, uint64_t)

static sx_status prepare_matmul_any(const sx_cpu_site *site, sx_cpu_step *step)
{
    const sx_dtype dtype = site->out[0].dtype;
    const size_t bytes = sx_dtype_bytes(dtype);
    SX_TRY(prepare_product(site, site->nodes[0], step));
    const matmul_data *d = step->data;
    if (dtype == SX_F64) {
        prepare_f64(d, step);
        return SX_OK;
    }
    step->run = bytes == 1   ? multiply_8
                : bytes == 2 ? multiply_16
                : bytes == 4 ? multiply_32
                             : multiply_64;
    step->range = d->products * d->m;
    step->grain = (int64_t)(GRAIN_FLOPS / (2.0 * (double)SX_MAX(d->k, 1) * (double)d->n)) + 1;
    step->kernel = "matmul loops";
    return SX_OK;
}

const sx_cpu_kernel sx_cpu_kernel_matmul_any = {.name = "matmul_any",
                                                .op = SX_OPID_matmul,
                                                .match = match_matmul_any,
                                                .prepare = prepare_matmul_any};
const sx_cpu_kernel sx_cpu_kernel_matmul = {
    .name = "matmul", .op = SX_OPID_matmul, .match = match_matmul, .prepare = prepare_matmul};
const sx_cpu_kernel sx_cpu_kernel_matmul_add = {.name = "matmul add",
                                                .op = SX_OPID_add,
                                                .match = match_matmul_add,
                                                .prepare = prepare_matmul_add};
