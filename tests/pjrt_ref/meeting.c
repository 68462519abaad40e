/* See meeting.h.
 *
 *   round k:   each replica brings its array; the last to come makes the sum and opens the round;
 *              each copies the sum; the last to leave clears the table for round k + 1, which
 *              nobody enters before. */
#include "pjrt_ref/meeting.h"

#include <pthread.h>
#include <string.h>

#include "base/memory.h"

struct ref_meeting {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int replicas; /* here */
    int in_all;
    ref_peers *peers;
    int came, left; /* of this round */
    bool is_open, is_off;
    int64_t channel;
    ref_array **brought; /* [replicas] */
    ref_array *sum;      /* somebody's result array, which the others copy */
};

sx_status ref_meeting_create(int here, int replicas, ref_peers *peers, ref_meeting **out)
{
    ref_meeting *m = sx_alloc(1, sizeof(*m));
    ref_array **brought = sx_alloc((size_t)here, sizeof(*brought));
    if (m == NULL || brought == NULL) {
        sx_free(m);
        sx_free(brought);
        return sx_error(SX_RESOURCE_EXHAUSTED, "out of memory for a collective");
    }
    *m = (ref_meeting){.replicas = here, .in_all = replicas, .peers = peers, .brought = brought};
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->changed, NULL);
    *out = m;
    return SX_OK;
}

void ref_meeting_destroy(ref_meeting *m)
{
    if (m != NULL) {
        pthread_cond_destroy(&m->changed);
        pthread_mutex_destroy(&m->lock);
        sx_free(m->brought);
        sx_free(m);
    }
}

void ref_meeting_call_off(ref_meeting *m)
{
    pthread_mutex_lock(&m->lock);
    m->is_off = true;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
    ref_peers_break(m->peers);
}

/* With the lock: has this replica come to the same collective as the others? */
static bool fits(const ref_meeting *m, int64_t channel, const ref_array *mine)
{
    for (int r = 0; r < m->replicas && m->came > 0; r++) {
        if (m->brought[r] != NULL &&
            (m->channel != channel || !sx_type_equal(&m->brought[r]->type, &mine->type))) {
            return false;
        }
    }
    return true;
}

static sx_status off(void)
{
    return sx_error(SX_ABORTED, "a collective was called off: another replica failed");
}

/* With the lock. Comes in, waits for the others. */
static sx_status come(ref_meeting *m, int replica, int64_t channel, ref_array *mine)
{
    while (m->is_open && !m->is_off) { /* the last round's are still leaving */
        pthread_cond_wait(&m->changed, &m->lock);
    }
    if (!m->is_off && !fits(m, channel, mine)) {
        m->is_off = true;
        pthread_cond_broadcast(&m->changed);
        return sx_error(SX_INTERNAL, "replicas came to different collectives (channel %lld)",
                        (long long)channel);
    }
    m->channel = channel;
    m->brought[replica] = mine;
    m->came++;
    return SX_OK;
}

/* With the lock. The last to leave clears the table. */
static void leave(ref_meeting *m)
{
    if (++m->left == m->replicas) {
        memset(m->brought, 0, (size_t)m->replicas * sizeof(m->brought[0]));
        m->came = m->left = 0;
        m->is_open = false;
        m->sum = NULL;
    }
    pthread_cond_broadcast(&m->changed);
}

/* All that are here have come; of an error the others learn that it is called off. */
static sx_status conclude(ref_meeting *m, int64_t channel, ref_meet_fn *fn, void *user,
                          ref_array *result)
{
    sx_status status = SX_OK;
    if (m->peers == NULL) {
        fn(user, m->brought, m->replicas, result);
    } else {
        status =
            ref_peers_meet(m->peers, channel, m->brought, m->replicas, m->in_all, fn, user, result);
    }
    m->sum = result;
    m->is_open = status == SX_OK;
    m->is_off = status != SX_OK;
    pthread_cond_broadcast(&m->changed);
    return status;
}

sx_status ref_meet(ref_meeting *m, int replica, int64_t channel, ref_array *mine, ref_meet_fn *fn,
                   void *user, ref_array *result)
{
    pthread_mutex_lock(&m->lock);
    sx_status status = come(m, replica, channel, mine);
    if (status == SX_OK && m->came == m->replicas && !m->is_off) {
        status = conclude(m, channel, fn, user, result);
    }
    while (status == SX_OK && !m->is_open && !m->is_off) {
        pthread_cond_wait(&m->changed, &m->lock);
    }
    if (status == SX_OK && m->is_off) {
        status = off();
    }
    if (status == SX_OK) {
        if (m->sum != result) {
            memcpy(result->data, m->sum->data, (size_t)result->bytes);
        }
        leave(m);
        while (m->is_open && !m->is_off) { /* `result` and `mine` stay until all have copied */
            pthread_cond_wait(&m->changed, &m->lock);
        }
    }
    pthread_mutex_unlock(&m->lock);
    return status;
}
