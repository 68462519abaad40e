/* Overlaps of boxes: see box_overlap.h. */
#include "graph/ops/box_overlap.h"

/* ---- Boxes ---- */

void sx_boxes_of(const double *corners, int64_t n, sx_box *out)
{
    for (int64_t i = 0; i < n; i++) {
        for (int d = 0; d < 2; d++) {
            const float a = (float)corners[i * 4 + d], b = (float)corners[i * 4 + d + 2];
            out[i].low[d] = SX_MIN(a, b);
            out[i].high[d] = SX_MAX(a, b);
        }
        out[i].area = (out[i].high[0] - out[i].low[0]) * (out[i].high[1] - out[i].low[1]);
    }
}

float sx_box_overlap(const sx_box *a, const sx_box *b)
{
    const float height = SX_MIN(a->high[0], b->high[0]) - SX_MAX(a->low[0], b->low[0]),
                width = SX_MIN(a->high[1], b->high[1]) - SX_MAX(a->low[1], b->low[1]);
    if (a->area <= 0 || b->area <= 0 || height <= 0 || width <= 0) {
        return 0;
    }
    const float both = height * width;
    return both / (a->area + b->area - both);
}

/* ---- Scores ---- */

static bool comes_before(const sx_scored *a, const sx_scored *b)
{
    return a->score != b->score ? a->score > b->score : a->box < b->box;
}

int sx_scored_order(const void *a, const void *b)
{
    return comes_before(a, b) ? -1 : comes_before(b, a);
}

/* Puts `one` at `at` or, while one of the two below comes before it, below. */
static void sink(sx_scored *heap, int64_t n, int64_t at, sx_scored one)
{
    for (int64_t below = 2 * at + 1; below < n; below = 2 * at + 1) {
        below += below + 1 < n && comes_before(&heap[below + 1], &heap[below]);
        if (!comes_before(&heap[below], &one)) {
            break;
        }
        heap[at] = heap[below];
        at = below;
    }
    heap[at] = one;
}

void sx_scored_heap_order(sx_scored *heap, int64_t n)
{
    for (int64_t at = n / 2 - 1; at >= 0; at--) {
        sink(heap, n, at, heap[at]);
    }
}

void sx_scored_heap_push(sx_scored *heap, int64_t *n, sx_scored one)
{
    int64_t at = (*n)++;
    for (; at > 0 && comes_before(&one, &heap[(at - 1) / 2]); at = (at - 1) / 2) {
        heap[at] = heap[(at - 1) / 2];
    }
    heap[at] = one;
}

sx_scored sx_scored_heap_pop(sx_scored *heap, int64_t *n)
{
    const sx_scored first = heap[0];
    (*n)--;
    sink(heap, *n, 0, heap[*n]);
    return first;
}
