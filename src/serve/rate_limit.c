/* Token buckets; see rate_limit.h. */
#include "serve/rate_limit.h"

#include "base/checked.h"

enum { WAYS = 8 }; /* places of a key */

void sx_rate_limit_init(sx_rate_limit *limit)
{
    *limit = (sx_rate_limit){0};
    pthread_mutex_init(&limit->mutex, NULL);
}

void sx_rate_limit_deinit(sx_rate_limit *limit)
{
    pthread_mutex_destroy(&limit->mutex);
}

/* The bucket of the key, or the one in its places that was used longest ago. */
static struct sx_rate_bucket *find(sx_rate_limit *limit, uint64_t key)
{
    struct sx_rate_bucket *places = &limit->buckets[key % (SX_RATE_BUCKETS / WAYS) * WAYS];
    struct sx_rate_bucket *oldest = &places[0];
    for (int i = 0; i < WAYS; i++) {
        if (places[i].key == key) {
            return &places[i];
        }
        oldest = places[i].used_ns < oldest->used_ns ? &places[i] : oldest;
    }
    return oldest;
}

bool sx_rate_limit_take(sx_rate_limit *limit, uint64_t key, double per_second, int64_t now_ns)
{
    const double room = SX_MAX(per_second, 1.0);
    key = key != 0 ? key : 1;
    pthread_mutex_lock(&limit->mutex);
    struct sx_rate_bucket *bucket = find(limit, key);
    if (bucket->key != key) {
        *bucket = (struct sx_rate_bucket){key, room, now_ns};
    }
    const double flowed = (double)SX_MAX(now_ns - bucket->used_ns, (int64_t)0) * 1e-9 * per_second;
    bucket->tokens = SX_MIN(bucket->tokens + flowed, room);
    bucket->used_ns = SX_MAX(bucket->used_ns, now_ns);
    const bool taken = bucket->tokens >= 1;
    bucket->tokens -= taken ? 1 : 0;
    pthread_mutex_unlock(&limit->mutex);
    return taken;
}
