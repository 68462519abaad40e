/* Convolutions of 3x3 and stride 1 and their gradients by Winograd's algorithm: a tile of m x m
 * results takes (m + 2)^2 products a channel and filter in place of 9 m^2,
 *
 *     y = A^T (sum over the channels of (G g G^T) * (B^T d B)) A
 *
 * of which only the sum of products, *, is much work: 4/9 of the direct one's for m = 2, 1/4 for
 * m = 4. d is a tile of the image, (m + 2)^2 pixels of which neighbours share two rows; G g G^T is
 * made of the filter, once if it is frozen, else in each execution (for all shards: filters.c), and
 * A, B, G hold small
 * constants. The gradient of the image is a convolution, too: of dy by the filter turned by half a
 * turn, whose channels and filters are swapped. vec/winograd_filter.inc has the filter's. Source:
 * Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015.
 *
 * Blocking (vec/winograd.inc): of a block of tiles, of one image or several, all places are made,
 * [place][tile][channel]; then for each panel of filters, (m + 2)^2 products of matrices and the
 * results, with bias, sum and activation. A panel's filters lie in the order in which they are
 * read, [panel][place][channel][filter]. So a block's values stay in the second-level cache, and
 * nothing but the result is written to memory. Blocks and panels are what workers divide; a worker
 * makes its own blocks' places. An element's bits depend on its tile alone, not on what is computed
 * with it.
 *
 * Error: tiles of 4 x 4 are computed at the points 0, 5/8, -5/8, 3/2, -3/2 and infinity, whose
 * constants are exact in float32. For random filters of 256 channels the error is 1.7 times the
 * direct sum's (with the usual points 1 and 2, 4 times), that of 2 x 2 is 0.7 times. Whole networks
 * keep within 1e-5 of their results (tests/backends/test_winograd.c, bench/README.md).
 *
 * Choice: by the time of one image, whatever the batch, so that executables for several batch sizes
 * have one packed filter, and the same bits. At 7x7 reading the filter, 16/9 as large at least,
 * takes what the products save. A filter that is not frozen is packed for all images of the shard,
 * and its gradient is the sum over them: there their number counts. */
#include <math.h>

#include "backends/cpu/kernels/conv.h"
#include "base/checked.h"

/* ---- Choosing ---- */

/* What takes how long, in multiply-adds: measured beside oneDNN's direct convolutions
 * (bench/README.md), on an Intel Xeon with AVX-512. */
enum {
    READING = 19,      /* an element of the filter, in the form that is multiplied, from memory */
    TRANSFORMING = 18, /* an element of a place, of the image or of the sums */
    PACKING = 60,      /* an element of the filter, into that form or out of it, to memory */
    LEAST_CHANNELS = 16,
};
/* A tile wins if it takes at most this part of the time of the next smaller one, whose filters take
 * less memory. */
static const double gain = 0.9;

static int64_t along(int64_t results, int tile)
{
    return (results + tile - 1) / tile;
}

/* Of `images`, in multiply-adds; `reading` an element of the filter. */
static double direct_cost(const sx_conv_geometry *g, int64_t images)
{
    const double pixels = (double)(images * g->h.out * g->w.out);
    return 9 * (double)g->c * (double)g->o * (pixels + READING);
}

static double cost(const sx_conv_geometry *g, int tile, int64_t images, int reading)
{
    const double c = (double)g->c, o = (double)g->o, places = (tile + 2) * (tile + 2);
    const double tiles = (double)(images * along(g->h.out, tile) * along(g->w.out, tile));
    return places * (c * o * (tiles + reading) + tiles * (c + o) * TRANSFORMING);
}

static bool is_3x3(const sx_conv_window *w)
{
    return w->kernel == 3 && w->stride == 1 && w->dilation == 1;
}

static bool is_image_gradient(const sx_node *n)
{
    return n->op->id == SX_OPID_conv2d_grad_input;
}

static bool is_frozen(const sx_cpu_site *site, const sx_node *n)
{
    return n->op->id == SX_OPID_conv2d && (site->frozen_in & 2) != 0;
}

static void swap(int64_t *a, int64_t *b)
{
    const int64_t was = *a;
    *a = *b;
    *b = was;
}

/* Of the convolution that is computed: that of the node, or of dy by the turned filter. */
static sx_status geometry_of(const sx_cpu_site *site, const sx_node *n, sx_conv_geometry *g)
{
    SX_TRY(sx_cpu_conv_geometry(site->graph, n, g));
    if (is_image_gradient(n)) {
        swap(&g->c, &g->o);
        swap(&g->h.in, &g->h.out);
        swap(&g->w.in, &g->w.out);
        g->h.pad_before = 2 - g->h.pad_before;
        g->w.pad_before = 2 - g->w.pad_before;
    }
    return SX_OK;
}

int sx_cpu_winograd_tile(const sx_cpu_site *site, const sx_node *n)
{
    sx_conv_geometry g;
    sx_status status = geometry_of(site, n, &g);
    const bool frozen = is_frozen(site, n);
    const bool fits = status == SX_OK && (frozen || !site->plan->team) && site->narrow_in == 0 &&
                      !((const sx_conv2d_attrs *)n->attrs)->bf16_operands &&
                      sx_cpu_act_of(site->nodes[0]) != SX_DNN_SWISH && is_3x3(&g.h) &&
                      is_3x3(&g.w) && g.groups == 1 && g.c >= LEAST_CHANNELS &&
                      g.o >= LEAST_CHANNELS;
    const int64_t images = frozen ? 1 : g.n;
    const int reading = frozen ? READING : READING + PACKING;
    int best = 0;
    double least = fits ? direct_cost(&g, images) : 0;
    for (int tile = 2; tile <= 4 && fits; tile += 2) {
        const double of_tile = cost(&g, tile, images, reading);
        if (of_tile <= gain * least) {
            best = tile;
            least = of_tile;
        }
    }
    sx_status_free(status);
    return best;
}

/* ---- Running ---- */

/* scratch: that of each part; if the step packs its filter, the packed form, and before it, if it
 * is turned, the turned one */
typedef struct winograd_data {
    sx_vec_winograd shape;
    const sx_cpu_vec *vec;
    bool turns;             /* the filter */
    int64_t scratch;        /* floats of a part */
    int64_t turned, packed; /* floats in scratch before them */
} winograd_data;

/* filter[3][3][o][c] -> turned[3][3][c][o], in which each place is where it is seen from the other
 * end: channels [begin, end). */
static void turn(const sx_vec_winograd *w, const float *filter, float *turned, int64_t begin,
                 int64_t end)
{
    enum { SIDE = 16 }; /* of a square whose rows and columns stay in cache */
    for (int place = 0; place < 9; place++) {
        const float *from = filter + (8 - place) * w->c * w->o;
        float *to = turned + place * w->c * w->o;
        for (int64_t c = begin; c < end; c += SIDE) {
            for (int64_t o = 0; o < w->o; o++) {
                for (int64_t k = c; k < SX_MIN(c + SIDE, end); k++) {
                    to[k * w->o + o] = from[o * w->c + k];
                }
            }
        }
    }
}

/* Channels [begin, end). */
static void pack(const winograd_data *d, const float *filter, float *turned, float *packed,
                 int64_t begin, int64_t end)
{
    if (d->turns) {
        turn(&d->shape, filter, turned, begin, end);
        filter = turned;
    }
    d->vec->winograd_pack(&d->shape, filter, packed, begin, end);
}

static void pack_frozen(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const winograd_data *d = step->data;
    pack(d, sx_cpu_in(step, call, 1), NULL, sx_cpu_at(call, step->kept), 0, d->shape.c);
}

/* in: the filter; out: what shards read in its place */
static void run_pack(const sx_cpu_step *step, const sx_cpu_call *call)
{
    pack(step->data, sx_cpu_in(step, call, 0), sx_cpu_at(call, step->scratch),
         sx_cpu_out(step, call, 0), call->begin / SX_CPU_SPLIT, call->end / SX_CPU_SPLIT);
}

static void run_winograd(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const winograd_data *d = step->data;
    float *scratch = sx_cpu_at(call, step->scratch);
    d->vec->winograd(&d->shape, sx_cpu_in(step, call, 0), sx_cpu_at(call, step->kept),
                     step->n_in > 2 ? sx_cpu_in(step, call, 2) : NULL,
                     step->n_in > 3 ? sx_cpu_in(step, call, 3) : NULL, sx_cpu_out(step, call, 0),
                     scratch + call->part * d->scratch, call->begin / SX_CPU_SPLIT,
                     call->end / SX_CPU_SPLIT);
}

/* in: x, filter, and a bias if there is one; or dy, filter */
static void run_packing(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const winograd_data *d = step->data;
    float *scratch = sx_cpu_at(call, step->scratch), *packed = scratch + d->packed;
    pack(d, sx_cpu_in(step, call, 1), scratch + d->turned, packed, 0, d->shape.c);
    d->vec->winograd(&d->shape, sx_cpu_in(step, call, 0), packed,
                     step->n_in > 2 ? sx_cpu_in(step, call, 2) : NULL, NULL,
                     sx_cpu_out(step, call, 0), scratch, 0, step->range / SX_CPU_SPLIT);
}

/* ---- Preparing ---- */

enum { BLOCK_TILES = 36 };

static void describe(const sx_conv_geometry *g, int tile, sx_vec_winograd *shape)
{
    *shape = (sx_vec_winograd){.m = tile,
                               .n = g->n,
                               .c = g->c,
                               .o = g->o,
                               .in_h = g->h.in,
                               .in_w = g->w.in,
                               .out_h = g->h.out,
                               .out_w = g->w.out,
                               .top = g->h.pad_before,
                               .left = g->w.pad_before,
                               .tiles_h = along(g->h.out, tile),
                               .tiles_w = along(g->w.out, tile)};
}

static sx_status name_step(const sx_cpu_site *site, const sx_node *n, const sx_vec_winograd *w,
                           sx_cpu_step *step)
{
    const double tiles = (double)(w->n * w->tiles_h * w->tiles_w);
    step->flops = 2.0 * (w->m + 2) * (w->m + 2) * tiles * (double)(w->c * w->o);
    step->kernel =
        sx_arena_printf(&site->plan->arena, "%s winograd %dx%d", n->op->name, w->m, w->m);
    return step->kernel != NULL ? SX_OK : sx_cpu_no_memory();
}

sx_status sx_cpu_prepare_winograd(const sx_cpu_site *site, const sx_node *n, int tile,
                                  sx_cpu_step *step)
{
    const sx_dnn_act act = sx_cpu_act_of(site->nodes[0]);
    const int workers = site->plan->team ? site->plan->workers : 1;
    const int64_t float_bytes = (int64_t)sizeof(float);
    sx_conv_geometry g;
    winograd_data *d = sx_cpu_new(site, winograd_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    SX_TRY(geometry_of(site, n, &g));
    d->vec = site->vec;
    describe(&g, tile, &d->shape);
    d->shape.low = act == SX_DNN_PLAIN ? -INFINITY : 0;
    d->shape.high = act == SX_DNN_RELU6 ? 6 : INFINITY;
    const int64_t tiles = g.n * d->shape.tiles_h * d->shape.tiles_w;
    const int64_t panels = (g.o + d->vec->winograd_width - 1) / d->vec->winograd_width;
    const int64_t block = sx_cpu_block_rows(tiles, BLOCK_TILES, panels, workers);
    const int64_t blocks = block > 0 ? (tiles + block - 1) / block : 0;
    d->shape.block = block;
    d->scratch = sx_cpu_round_up(d->vec->winograd_scratch(&d->shape) * float_bytes) / float_bytes;
    const int64_t packed_bytes = d->vec->winograd_packed(&d->shape) * float_bytes;
    const bool frozen = is_frozen(site, n);
    const bool shared = site->packed.bytes > 0 && site->packed.layout == (uint64_t)tile;
    step->data = d;
    step->range = blocks * panels * SX_CPU_SPLIT;
    step->grain = workers > 1 ? 1 : step->range + 1;
    step->scratch_bytes = workers * d->scratch * float_bytes;
    if (frozen || shared) {
        step->run = run_winograd;
    } else {
        d->turns = is_image_gradient(n);
        d->turned = d->packed = step->scratch_bytes / float_bytes;
        d->packed += d->turns ? sx_cpu_round_up(9 * g.c * g.o * float_bytes) / float_bytes : 0;
        step->run = run_packing;
        step->scratch_bytes = d->packed * float_bytes + packed_bytes;
    }
    if (frozen) {
        step->prepare_once = pack_frozen;
        step->kept_bytes = packed_bytes;
        step->read_once = 2;
        step->bytes -= (double)sx_type_bytes(&site->in[1]);
    }
    step->bytes += shared ? 0 : (double)packed_bytes;
    return name_step(site, n, &d->shape, step);
}

sx_status sx_cpu_pack_winograd(const sx_cpu_site *site, const sx_node *n, int tile,
                               sx_cpu_packed *out, sx_cpu_step *step)
{
    enum { GRAIN = 1 << 14 }; /* elements of the filter: some 30 us */
    const int64_t float_bytes = (int64_t)sizeof(float);
    sx_conv_geometry g;
    sx_vec_winograd shape;
    SX_TRY(geometry_of(site, n, &g));
    describe(&g, tile, &shape);
    *out = (sx_cpu_packed){site->vec->winograd_packed(&shape) * float_bytes, (uint64_t)tile};
    if (step == NULL) {
        return SX_OK;
    }
    winograd_data *d = sx_cpu_new(site, winograd_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    *d = (winograd_data){.shape = shape, .vec = site->vec, .turns = is_image_gradient(n)};
    step->data = d;
    step->run = run_pack;
    step->range = g.c * SX_CPU_SPLIT;
    step->grain = SX_MAX(GRAIN / (9 * g.o), 1) * SX_CPU_SPLIT;
    step->scratch_bytes = d->turns ? 9 * g.c * g.o * float_bytes : 0;
    step->bytes = (double)(9 * g.c * g.o * float_bytes + out->bytes);
    step->kernel = sx_arena_printf(&site->plan->arena, "filter for winograd %dx%d", tile, tile);
    return step->kernel != NULL ? SX_OK : sx_cpu_no_memory();
}

/* ---- The gradient of the filter ---- */

/* in: x, dy; out: the gradients of filter and bias */
static void run_filter(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const winograd_data *d = step->data;
    const sx_vec_winograd *w = &d->shape;
    const float *dy = sx_cpu_in(step, call, 1);
    d->vec->winograd_filter(w, sx_cpu_in(step, call, 0), dy, sx_cpu_out(step, call, 0),
                            sx_cpu_at(call, step->scratch));
    if (step->n_out > 1) {
        d->vec->sum_rows(dy, w->n * w->out_h * w->out_w, w->o, sx_cpu_out(step, call, 1));
    }
}

sx_status sx_cpu_prepare_winograd_filter(const sx_cpu_site *site, const sx_node *n, int tile,
                                         sx_cpu_step *step)
{
    sx_conv_geometry g;
    winograd_data *d = sx_cpu_new(site, winograd_data);
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    SX_TRY(geometry_of(site, n, &g));
    d->vec = site->vec;
    describe(&g, tile, &d->shape);
    const int64_t tiles = SX_MAX(g.n * d->shape.tiles_h * d->shape.tiles_w, 1);
    /* Larger blocks if the sums, which each block reads and writes, are many. */
    const int64_t most = SX_MAX(g.c * g.o / (g.c + g.o), (int64_t)BLOCK_TILES);
    d->shape.block = sx_cpu_block_rows(tiles, most, 1, 1);
    step->data = d;
    step->run = run_filter;
    step->scratch_bytes = d->vec->winograd_filter_scratch(&d->shape) * (int64_t)sizeof(float);
    return name_step(site, n, &d->shape, step);
}
