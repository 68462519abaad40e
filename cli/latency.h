/* A histogram of latencies: 128 buckets for each doubling, so that a value is off by less than 1 %.
 */
#ifndef SX_CLI_LATENCY_H
#define SX_CLI_LATENCY_H

#include <stdint.h>

#include "base/buffer.h"

enum {
    SX_LATENCY_PARTS = 128, /* of a doubling */
    SX_LATENCY_DOUBLINGS = 34,
    SX_LATENCY_SLOTS = SX_LATENCY_PARTS * SX_LATENCY_DOUBLINGS,
};

/* Zero-initialized. */
typedef struct sx_latencies {
    uint64_t slots[SX_LATENCY_SLOTS]; /* of 1 us << doubling; the last one has all above */
    uint64_t count;
    double sum_us, max_us;
} sx_latencies;

void sx_latencies_add(sx_latencies *l, int64_t ns);
/* The least latency that the share `q` of all does not exceed; 0 if there are none. */
double sx_latencies_at(const sx_latencies *l, double q);

/* A line for each of some percentiles, with a bar. */
void sx_latencies_print(const sx_latencies *l, sx_buf *out);
/* The share of the calls over the latency, on a logarithmic scale, as a picture with a title and a
 * line below it. */
void sx_latencies_print_svg(const sx_latencies *l, const char *title, const char *about,
                            sx_buf *out);

#endif
