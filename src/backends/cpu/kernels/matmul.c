/* matmul: oneDNN's sgemm; tiny products use a simple loop, which costs less than the call. */
#include "backends/cpu/kernel.h"
#include "backends/cpu/onednn2.h"

typedef struct matmul_data {
    bool ta, tb;
    int64_t m, n, k;
} matmul_data;

enum { TINY_OPS = 2048 };

static bool match_matmul(sx_cpu_match *m)
{
    return sx_cpu_is_f32(m, m->out[0]) && sx_type_elems(sx_graph_type(m->graph, m->out[0])) > 0;
}

static void run_matmul(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const matmul_data *d = step->data;
    sx_dnn_gemm(d->ta, d->tb, d->m, d->n, d->k, sx_cpu_in(step, call, 0), sx_cpu_in(step, call, 1),
                0, sx_cpu_out(step, call, 0));
}

static void run_tiny(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const matmul_data *d = step->data;
    const float *a = sx_cpu_in(step, call, 0), *b = sx_cpu_in(step, call, 1);
    float *c = sx_cpu_out(step, call, 0);
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

static sx_status prepare_matmul(const sx_cpu_site *site, sx_cpu_step *step)
{
    const sx_matmul_attrs *attrs = site->nodes[0]->attrs;
    matmul_data *d = sx_cpu_new(site, matmul_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    *d = (matmul_data){.ta = attrs->transpose_a,
                       .tb = attrs->transpose_b,
                       .m = site->out[0].dims[0],
                       .n = site->out[0].dims[1],
                       .k = site->in[0].dims[attrs->transpose_a ? 0 : 1]};
    bool tiny = d->m * d->n <= TINY_OPS && d->m * d->n * d->k <= TINY_OPS;
    step->run = tiny ? run_tiny : run_matmul;
    step->data = d;
    step->kernel = tiny ? "matmul tiny" : "matmul onednn sgemm";
    return SX_OK;
}

const sx_cpu_kernel sx_cpu_kernel_matmul = {
    .name = "matmul", .op = SX_OPID_matmul, .match = match_matmul, .prepare = prepare_matmul};
