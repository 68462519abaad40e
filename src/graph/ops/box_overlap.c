/* Overlaps of boxes: see box_overlap.h. */
#include "graph/ops/box_overlap.h"

#include <math.h>

float sx_box_overlap(const double a[4], const double b[4])
{
    float low[2][2], high[2][2], area[2];
    for (int i = 0; i < 2; i++) {
        const double *box = i == 0 ? a : b;
        for (int d = 0; d < 2; d++) {
            low[i][d] = fminf((float)box[d], (float)box[d + 2]);
            high[i][d] = fmaxf((float)box[d], (float)box[d + 2]);
        }
        area[i] = (high[i][0] - low[i][0]) * (high[i][1] - low[i][1]);
    }
    if (area[0] <= 0 || area[1] <= 0) {
        return 0;
    }
    float both = 1;
    for (int d = 0; d < 2; d++) {
        both *= fmaxf(fminf(high[0][d], high[1][d]) - fmaxf(low[0][d], low[1][d]), 0);
    }
    return both / (area[0] + area[1] - both);
}

int sx_scored_order(const void *a, const void *b)
{
    const sx_scored *x = a, *y = b;
    return x->score != y->score ? (x->score > y->score ? -1 : 1)
                                : (x->box > y->box) - (x->box < y->box);
}
