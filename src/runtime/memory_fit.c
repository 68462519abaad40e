/* See memory_fit.h. */
#include "runtime/memory_fit.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/buffer.h"
#include "base/checked.h"

int64_t sx_batch_within(int64_t batch_a, int64_t bytes_a, int64_t batch_b, int64_t bytes_b,
                        int64_t limit, int64_t unit)
{
    double slope = (double)(bytes_b - bytes_a) / (double)(batch_b - batch_a);
    double fixed = (double)bytes_a - slope * (double)batch_a;
    double most = ((double)limit - fixed) / slope;
    bool line = batch_a != batch_b && slope > 0 && most >= (double)unit && most < 1e15;
    return line ? (int64_t)most / unit * unit : 0;
}

/* Bytes of one device. */
static int64_t bytes_of(const sx_executable_info *info)
{
    return info->argument_bytes + info->output_bytes - info->alias_bytes + info->temporary_bytes +
           info->code_bytes;
}

/* With the launch that is fed ahead. */
static int64_t loop_bytes(const sx_executable_info *info, const sx_program *program, int64_t batch)
{
    return bytes_of(info) + sx_program_ahead_bytes(program, batch);
}

/* Of one replica, of which the device's memory is the sum; 0 = unknown. */
static sx_status limit_of(sx_session *s, int64_t *out)
{
    sx_memory_stats stats;
    SX_TRY(sx_device_get_memory_stats(sx_session_device(s), &stats));
    *out = stats.limit_bytes / SX_MAX(sx_session_replicas(s), 1);
    return SX_OK;
}

int64_t sx_program_suggest_batch(sx_session *session, sx_program *program, int64_t batch,
                                 int ok_output)
{
    sx_executable_info a, b;
    int64_t limit = 0, replicas = sx_session_replicas(session);
    int64_t half = batch / 2 / replicas * replicas, quarter = batch / 4 / replicas * replicas;
    if (quarter == 0) {
        return 0;
    }
    sx_status status = sx_program_loop_info(program, half, ok_output, &a);
    status = status != SX_OK ? status : limit_of(session, &limit);
    if (status == SX_OK && limit > 0) {
        status = sx_program_loop_info(program, quarter, ok_output, &b);
    }
    bool known = status == SX_OK && limit > 0;
    sx_status_free(status);
    return known ? sx_batch_within(half, loop_bytes(&a, program, half), quarter,
                                   loop_bytes(&b, program, quarter), limit, replicas)
                 : 0;
}

/* The memory that a batch needs on a device, and that the device has; 0 = unknown. */
typedef struct need {
    int64_t bytes, limit;
} need;

static sx_status measure(sx_session *s, sx_program *program, int64_t batch, need *out)
{
    sx_executable_info info;
    SX_TRY(sx_program_info(program, batch, &info));
    *out = (need){.bytes = bytes_of(&info)};
    return limit_of(s, &out->limit);
}

static bool fits(const need *n)
{
    return n->limit == 0 || n->bytes <= n->limit;
}

/* The error that `what` does not fit. `advice`, "; what to do", may be empty. */
static sx_status misfit(sx_session *s, const need *n, const char *what, const char *advice)
{
    sx_buf text;
    sx_buf_init(&text, 1 << 12);
    sx_buf_printf(&text, "%s takes ", what);
    sx_buf_put_size(&text, (double)n->bytes);
    sx_buf_printf(&text, " of each device's memory, and %s has ", sx_session_device(s)->name);
    sx_buf_put_size(&text, (double)n->limit);
    sx_buf_puts(&text, advice);
    sx_status status = sx_error(SX_RESOURCE_EXHAUSTED, "%s", sx_buf_text(&text));
    sx_buf_deinit(&text);
    return status;
}

sx_status sx_program_prove_fit(sx_session *session, sx_program *program, int64_t batch,
                               int ok_output)
{
    need n;
    char what[40], advice[80] = "";
    SX_TRY(measure(session, program, batch, &n));
    n.bytes += sx_program_ahead_bytes(program, batch);
    if (fits(&n)) {
        return SX_OK;
    }
    int64_t largest = sx_program_suggest_batch(session, program, batch, ok_output);
    if (largest > 0) {
        snprintf(advice, sizeof(advice), "; the largest batch that fits is about %" PRId64,
                 largest);
    }
    snprintf(what, sizeof(what), "a batch of %" PRId64, batch);
    return misfit(session, &n, what, advice);
}

sx_status sx_program_prove_remainder_fits(sx_session *session, sx_program *program, int64_t batch)
{
    need n;
    char what[160];
    SX_TRY(measure(session, program, batch, &n));
    if (fits(&n)) {
        return SX_OK;
    }
    snprintf(what, sizeof(what),
             "the last batch of an epoch, %" PRId64 " examples, is not divisible by %" PRId64
             " replicas: each computes it whole, which",
             batch, (int64_t)sx_session_replicas(session));
    return misfit(session, &n, what, "; choose a batch size that leaves less");
}
