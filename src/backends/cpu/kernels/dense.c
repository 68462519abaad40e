/* Products of rows by a frozen matrix: matmuls, and convolutions of 1x1 and stride 1, whose rows
 * are the pixels,
 *
 *     y = act(x b + bias + added)
 *
 * b is packed once, [part of k][panel][k][column]: a panel is as many columns as give sums that
 * stay in registers, of 8 rows. What is added and the activation are computed from these sums
 * before they are written: swish, of which EfficientNet computes 6 million an image, takes 0.3 ns.
 *
 * Blocking (vec/dense.inc): rows are divided into blocks, and k into parts, so that a block's part
 * of x and a panel's part of b stay in the second-level cache. Each block goes through all panels,
 * for one part of k after the other, between which the sums are kept in scratch memory. The next
 * panel is fetched meanwhile. Blocks and panels are what workers divide.
 *
 * Choice: matmuls, but for up to four rows by a matrix that stays in the cache (matmul.c);
 * convolutions with swish, and of images of few pixels, where fetching b is most of the time; for
 * others oneDNN's kernels are as fast or faster (bench/README.md). Of large matrices it does not
 * look at the batch, so that executables for all batch sizes have one packed matrix; but of few
 * rows in a loop the matrix is read as it lies, which is as fast from a cache. */
#include <math.h>

#include "backends/cpu/kernels/conv.h"
#include "backends/cpu/kernels/dense.h"
#include "base/checked.h"

enum {
    BLOCK_BYTES = 256 << 10, /* of x, for a block */
    LEAST_ROWS = 128,        /* of a block: fewer would read b too often */
    FEW_PIXELS = 64,
    MANY_ROWS = 8,           /* of a matmul, for each example */
    LEAST_COLUMNS = 8,       /* fewer leave most of a vector empty */
    GRAIN_FLOPS = 1 << 19,   /* for each worker */
    GRAIN_BYTES = 128 << 10, /* of b, for each worker, where that is less work */
};

typedef struct dense_data {
    sx_vec_dense shape;
    const sx_cpu_vec *vec;
    const float *zeros; /* [n]: the bias, if there is none */
    int64_t scratch;    /* floats, of each part of a call */
} dense_data;

const sx_cpu_dense_act *sx_cpu_dense_act_of(const sx_node *n)
{
    static const sx_cpu_dense_act rows[] = {
        {SX_OPID_relu, SX_VEC_CLIP, 0, INFINITY},
        {SX_OPID_relu6, SX_VEC_CLIP, 0, 6},
        {SX_OPID_swish, SX_VEC_SWISH, -INFINITY, INFINITY},
        {SX_OPID_gelu, SX_VEC_GELU, -INFINITY, INFINITY},
    };
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        if (rows[i].op == n->op->id) {
            return &rows[i];
        }
    }
    return NULL;
}

bool sx_cpu_conv_is_dense(const sx_cpu_site *site, const sx_conv2d_attrs *attrs)
{
    sx_conv_geometry g;
    sx_status status = sx_conv_geometry_of(attrs, &site->in[0], &site->in[1], &g);
    const bool fits =
        status == SX_OK && (site->frozen_in & 2) != 0 && site->narrow_in == 0 &&
        sx_cpu_conv_is_product(&g) && g.c > 0 &&
        (sx_cpu_act_of(site->nodes[0]) == SX_DNN_SWISH || g.h.out * g.w.out <= FEW_PIXELS);
    sx_status_free(status);
    return fits;
}

void sx_cpu_divide_products(sx_cpu_step *step, int64_t units, double flops)
{
    step->range = units * SX_CPU_SPLIT;
    step->grain = (int64_t)(GRAIN_FLOPS * (double)step->range / (flops + 1)) + 1;
}

bool sx_cpu_product_is_dense(int64_t m, int64_t k, int64_t n, int64_t examples, bool region)
{
    if (region && m <= SX_VEC_ROWS) {
        return false;
    }
    const double bytes = (double)k * (double)n * sizeof(float);
    return k > 0 && (m >= MANY_ROWS * SX_MAX(examples, 1) ||
                     (n >= LEAST_COLUMNS && (bytes > SX_VEC_CACHED_BYTES || m > SX_VEC_ROWS)));
}

bool sx_cpu_matmul_is_dense(const sx_cpu_site *site, int64_t m, int64_t k, int64_t n)
{
    const sx_cpu_plan *p = site->plan;
    const int64_t examples = p->shard_max - (p->n_variants > 1 && site->graph == p->variants[1]);
    return (site->frozen_in & 2) != 0 && site->in[1].rank == 2 &&
           sx_cpu_product_is_dense(m, k, n, examples, p->region);
}

static void pack_matrix(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const dense_data *d = step->data;
    d->vec->dense_pack(&d->shape, sx_cpu_in(step, call, 1), sx_cpu_at(call, step->kept));
}

static void run_dense(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const dense_data *d = step->data;
    float *scratch = sx_cpu_at(call, step->scratch);
    d->vec->dense(&d->shape,
                  &(sx_vec_dense_args){.x = sx_cpu_in(step, call, 0),
                                       .packed = sx_cpu_at(call, step->kept),
                                       .bias = step->n_in > 2 ? sx_cpu_in(step, call, 2) : d->zeros,
                                       .added = step->n_in > 3 ? sx_cpu_in(step, call, 3) : NULL,
                                       .y = sx_cpu_out(step, call, 0),
                                       .scratch = scratch + call->part * d->scratch},
                  call->begin / SX_CPU_SPLIT, call->end / SX_CPU_SPLIT);
}

sx_status sx_cpu_prepare_dense(const sx_cpu_site *site, const sx_cpu_dense_spec *spec,
                               sx_cpu_step *step)
{
    const int workers = site->plan->team ? site->plan->workers : 1;
    const int64_t k = spec->k, n = spec->n, float_bytes = (int64_t)sizeof(float);
    static const sx_cpu_dense_act none = {.act = SX_VEC_CLIP, .low = -INFINITY, .high = INFINITY};
    const sx_cpu_dense_act *act = spec->act != NULL ? spec->act : &none;
    dense_data *d = sx_cpu_new(site, dense_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    d->vec = site->vec;
    d->shape = (sx_vec_dense){.m = spec->m,
                              .k = k,
                              .n = n,
                              .panels = d->vec->dense_panels(n),
                              .transposed = spec->transposed,
                              .act = act->act,
                              .low = act->low,
                              .high = act->high};
    const int64_t most = SX_MAX(BLOCK_BYTES / (k * float_bytes), (int64_t)LEAST_ROWS);
    const int64_t block = sx_cpu_block_rows(d->shape.m, most, d->shape.panels, workers);
    const int64_t blocks = block > 0 ? (d->shape.m + block - 1) / block : 0;
    d->shape.block = block;
    d->scratch = sx_cpu_round_up(d->vec->dense_scratch(&d->shape) * float_bytes) / float_bytes;
    if (site->n_in < 3) {
        d->zeros = sx_arena_array(&site->plan->arena, n + 1, float);
        if (d->zeros == NULL) {
            return sx_cpu_no_memory();
        }
    }
    const double flops = 2.0 * (double)d->shape.block * (double)k * (double)n;
    const double bytes = (double)sizeof(float) * (double)k * (double)n;
    const double units = (double)d->shape.panels *
                         SX_MIN(GRAIN_FLOPS / SX_MAX(flops, 1), GRAIN_BYTES / SX_MAX(bytes, 1));
    step->run = run_dense;
    step->data = d;
    step->range = blocks * d->shape.panels * SX_CPU_SPLIT;
    step->grain = workers > 1 ? (int64_t)(units * SX_CPU_SPLIT) + 1 : step->range + 1;
    step->scratch_bytes = workers * d->scratch * float_bytes;
    step->prepare_once = pack_matrix;
    step->kept_bytes = d->vec->dense_packed(&d->shape) * float_bytes;
    step->read_once = 2;
    return SX_OK;
}

sx_status sx_cpu_prepare_dense_conv(const sx_cpu_site *site, sx_cpu_step *step)
{
    const sx_type *filter = &site->in[1];
    const sx_cpu_dense_spec spec = {.m = sx_type_elems(&site->in[0]) / filter->dims[2],
                                    .k = filter->dims[2],
                                    .n = filter->dims[3],
                                    .act = sx_cpu_dense_act_of(site->nodes[0])};
    step->kernel = "conv2d dense";
    return sx_cpu_prepare_dense(site, &spec, step);
}
