/* See aot_plan.h. */
#include "backends/pjrt/aot_plan.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"

enum { ROWS = 8, GROWTH = 8, GROWTHS = 3 };

/* Examples per device at the line's first point: the first of these that fits. They do not depend
 * on the requested batch, so that the result does not either. */
static const int64_t first_points[] = {256, 32, 4, 2};

/* ---- Linear estimate ---- */

double sx_aot_bytes_at(const sx_aot_result *a, const sx_aot_result *b, int64_t batch)
{
    double x = (double)a->batch, y = (double)sx_aot_total_bytes(a);
    double slope = ((double)sx_aot_total_bytes(b) - y) / ((double)b->batch - x);
    return y + slope * ((double)batch - x);
}

int64_t sx_aot_largest_batch(const sx_aot_result *a, const sx_aot_result *b)
{
    int64_t low = 0, high = SX_AOT_MOST_BATCH / a->devices;
    while (low < high) { /* binary search for the most examples per device that fit */
        int64_t middle = low + (high - low + 1) / 2;
        if (sx_aot_bytes_at(a, b, middle * a->devices) <= (double)a->hbm_bytes) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return (low >= ROWS ? low / ROWS * ROWS : low) * a->devices;
}

/* ---- Compiles ---- */

typedef struct planning {
    const sx_aot_plan_request *r;
    sx_aot_plan *out;
} planning;

static bool within(const sx_aot_result *r)
{
    return r->hbm_bytes == 0 || sx_aot_total_bytes(r) <= r->hbm_bytes;
}

/* Compiles for a batch; *out_fits is false if the compiler or its memory figures say that it does
 * not fit. */
static sx_status try_batch(planning *p, int64_t batch, bool keep, sx_aot_result *out,
                           bool *out_fits)
{
    sx_aot_request request = p->r->compile;
    request.batch = batch;
    request.keep = keep;
    if (batch == p->out->asked.batch) {
        *out = p->out->asked;
        *out_fits = p->out->fits;
        return SX_OK;
    }
    if (p->r->tell != NULL) {
        p->r->tell(p->r->user, batch, NULL, false);
    }
    sx_status status =
        sx_aot_compile(&request, out, keep ? &p->out->executable : NULL, &p->out->executable_size);
    if (sx_status_code(status) == SX_RESOURCE_EXHAUSTED) {
        *out = (sx_aot_result){.batch = 0};
        if (p->out->words[0] == '\0') {
            snprintf(p->out->words, sizeof(p->out->words), "%s", sx_status_message(status));
        }
        sx_status_free(status);
        *out_fits = false;
    } else {
        SX_TRY(status);
        *out_fits = within(out);
    }
    if (p->r->tell != NULL) {
        p->r->tell(p->r->user, batch, out, *out_fits);
    }
    return SX_OK;
}

/* `devices` × `each`, with `each` rounded down to a multiple of eight if it is at least eight. */
static int64_t batch_of(int64_t devices, int64_t each)
{
    each = each >= ROWS ? each / ROWS * ROWS : SX_MAX(each, 1);
    return devices * each;
}

/* Compiles a batch larger than the largest known to fit. */
static sx_status confirm(planning *p, int64_t batch)
{
    sx_aot_result result;
    bool fits = false;
    if (batch > p->out->largest) {
        SX_TRY(try_batch(p, batch, false, &result, &fits));
    }
    p->out->largest = fits ? batch : p->out->largest;
    return SX_OK;
}

static void draw_line(planning *p, const sx_aot_result *a, const sx_aot_result *b)
{
    p->out->points[0] = SX_MIN(a->batch, b->batch);
    p->out->points[1] = SX_MAX(a->batch, b->batch);
    p->out->by_line = sx_aot_largest_batch(a, b);
}

/* Whether a batch at most this large is known not to fit. */
static bool is_too_large(const planning *p, int64_t batch)
{
    return batch > SX_AOT_MOST_BATCH || (!p->out->fits && batch >= p->r->compile.batch);
}

static sx_status first_point(planning *p, int64_t devices, sx_aot_result *out, bool *out_fits)
{
    *out_fits = false;
    for (size_t i = 0; i < SX_COUNT(first_points) && !*out_fits; i++) {
        int64_t batch = devices * first_points[i];
        if (!is_too_large(p, batch)) {
            SX_TRY(try_batch(p, batch, false, out, out_fits));
        }
    }
    return SX_OK;
}

/* Finds the line's second point. If the first batch uses little memory, a batch eight times as
 * large is more informative, because small values are kept on the chip; if it uses much, one half
 * as large. Afterwards points[1] is the larger. */
static sx_status second_point(planning *p, sx_aot_result points[2], bool *out_found)
{
    bool fits = true;
    *out_found = false;
    for (int i = 0; i < GROWTHS && fits; i++) {
        sx_aot_result larger;
        int64_t batch = points[1].batch * GROWTH;
        if (sx_aot_total_bytes(&points[1]) > points[1].hbm_bytes / GROWTH ||
            is_too_large(p, batch)) {
            break;
        }
        SX_TRY(try_batch(p, batch, false, &larger, &fits));
        if (fits) {
            points[0] = points[1];
            points[1] = larger;
            *out_found = true;
        }
    }
    return *out_found ? SX_OK : try_batch(p, points[1].batch / 2, false, &points[0], out_found);
}

/* Estimates the batch with the line and compiles it; if it does not fit, tries an eighth less. */
sx_status sx_aot_plan_find_largest(const sx_aot_plan_request *request, sx_aot_plan *plan)
{
    planning p = {request, plan};
    sx_aot_result points[2];
    bool found;
    int64_t asked = request->compile.batch;
    int64_t devices =
        plan->asked.devices > 0 ? plan->asked.devices : request->compile.target->devices;
    if (plan->fits && plan->asked.hbm_bytes == 0) {
        return SX_OK;
    }
    plan->largest = plan->fits ? asked : 0;
    SX_TRY(first_point(&p, devices, &points[1], &found));
    if (!found || points[1].hbm_bytes == 0) {
        return SX_OK;
    }
    SX_TRY(second_point(&p, points, &found));
    plan->largest = SX_MAX(plan->largest, points[1].batch);
    if (!found) {
        return SX_OK;
    }
    draw_line(&p, &points[0], &points[1]);
    if (plan->asked.devices == 0) { /* it did not compile */
        plan->asked = points[1];
        plan->asked_bytes = sx_aot_bytes_at(&points[0], &points[1], asked);
    }
    int64_t known = plan->largest, most = plan->by_line;
    most = plan->fits ? most : SX_MIN(most, asked - devices);
    SX_TRY(confirm(&p, most));
    return plan->largest > known ? SX_OK : confirm(&p, batch_of(devices, most / devices / 8 * 7));
}

sx_status sx_aot_plan_make(const sx_aot_plan_request *request, sx_aot_plan *out)
{
    *out = (sx_aot_plan){.largest = 0};
    planning p = {request, out};
    const sx_aot_request *c = &request->compile;
    SX_TRY(try_batch(&p, c->batch, c->keep, &out->asked, &out->fits));
    out->asked_bytes = out->asked.devices > 0 ? (double)sx_aot_total_bytes(&out->asked) : 0;
    return SX_OK;
}
