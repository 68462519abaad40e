/* Token buckets: how many requests a second each client may make of each model. A fixed number of
 * buckets; where there are more clients at once, those used longest ago begin anew. */
#ifndef SX_SERVE_RATE_LIMIT_H
#define SX_SERVE_RATE_LIMIT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { SX_RATE_BUCKETS = 4096 };

typedef struct sx_rate_limit {
    pthread_mutex_t mutex;
    struct sx_rate_bucket {
        uint64_t key; /* 0: unused */
        double tokens;
        int64_t used_ns;
    } buckets[SX_RATE_BUCKETS];
} sx_rate_limit;

void sx_rate_limit_init(sx_rate_limit *limit);
void sx_rate_limit_deinit(sx_rate_limit *limit);

/* Takes a token of the bucket `key`, a hash, into which `per_second` flow and which has room for a
 * second's, at least one. False: it is empty. `now_ns`: of sx_now_ns(). Any thread. */
bool sx_rate_limit_take(sx_rate_limit *limit, uint64_t key, double per_second, int64_t now_ns);

#endif
