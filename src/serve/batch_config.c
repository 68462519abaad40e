/* See batch_config.h. */
#include "serve/batch_config.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/log.h"
#include "base/memory.h"
#include "io/file.h"
#include "proto/batching_parameters.pb-c.h"
#include "proto/guard.h"
#include "proto/text_format.h"

enum {
    MAX_CONFIG_BYTES = 1 << 20,
    TFS_ROWS = 1000,  /* max_batch_size */
    TFS_BATCHES = 10, /* max_enqueued_batches */
    DEFAULT_QUEUED_ROWS = 4096,
};

typedef Tensorflow__Serving__BatchingParameters message;

/* 1, 2, 4 ... and `most`. */
static void set_powers(sx_batch_config *c, int64_t most)
{
    c->size_count = 0;
    for (int64_t size = 1; size < most; size *= 2) {
        c->sizes[c->size_count++] = size;
    }
    c->sizes[c->size_count++] = most;
}

sx_batch_config sx_batch_config_default(void)
{
    return (sx_batch_config){.batcher.rules = {.max_rows = SX_BATCH_DEFAULT_ROWS,
                                               .max_queued_rows = DEFAULT_QUEUED_ROWS}};
}

sx_batch_config sx_batch_config_enabled(sx_batch_policy policy)
{
    sx_batch_config c = {.batcher.rules = {.policy = policy,
                                           .max_rows = TFS_ROWS,
                                           .max_queued_rows = (int64_t)TFS_ROWS * TFS_BATCHES}};
    c.batcher.no_split = policy == SX_BATCH_TFS;
    return c;
}

sx_batch_config sx_batch_config_off(void)
{
    return (sx_batch_config){.batcher.rules = {.max_queued_rows = DEFAULT_QUEUED_ROWS}};
}

void sx_batch_config_pin(sx_batch_config *c, int64_t rows)
{
    c->sizes[0] = rows;
    c->size_count = 1;
    c->batcher.rules.max_rows = c->batcher.rules.max_rows == 0 ? 0 : rows;
}

/* ---- The file ---- */

/* The line on which the text has the field first. */
static int line_of(sx_bytes text, const char *field)
{
    const char *at = text.data, *const end = at + text.size;
    const size_t length = strlen(field);
    int line = 1;
    bool in_comment = false, begins = true;
    for (; at < end; at++) {
        in_comment = (in_comment || *at == '#') && *at != '\n';
        if (begins && !in_comment && (size_t)(end - at) >= length &&
            memcmp(at, field, length) == 0) {
            return line;
        }
        begins = *at == '\n' || *at == ' ' || *at == '\t' || *at == ',' || *at == ';' || *at == '}';
        line += *at == '\n';
    }
    return 1;
}

typedef struct reading {
    const char *path;
    sx_bytes text;
} reading;

static sx_status bad_value(const reading *r, const char *field, int64_t value, const char *expected)
{
    return sx_error(SX_INVALID_ARGUMENT, "%s:%d: %s: %lld, expected %s", r->path,
                    line_of(r->text, field), field, (long long)value, expected);
}

static sx_status read_sizes(const reading *r, const message *m, sx_batch_config *c)
{
    const size_t count = m->n_allowed_batch_sizes;
    if (count > SX_BATCH_SIZES) {
        return bad_value(r, "allowed_batch_sizes", (int64_t)count, "at most 32 sizes");
    }
    for (size_t i = 0; i < count; i++) {
        const int64_t size = m->allowed_batch_sizes[i];
        if (size < 1 || (i > 0 && size <= m->allowed_batch_sizes[i - 1])) {
            return bad_value(r, "allowed_batch_sizes", size, "sizes that ascend from 1");
        }
        c->sizes[i] = size;
    }
    c->size_count = (int)count;
    if (count > 0 && c->sizes[count - 1] != c->batcher.rules.max_rows) {
        char expected[80];
        snprintf(expected, sizeof(expected), "the last one to be max_batch_size, %lld",
                 (long long)c->batcher.rules.max_rows);
        return bad_value(r, "allowed_batch_sizes", c->sizes[count - 1], expected);
    }
    return SX_OK;
}

static sx_status read_message(const reading *r, const message *m, sx_batch_config *c)
{
    sx_batch_rules *rules = &c->batcher.rules;
    int64_t batches = TFS_BATCHES, run_rows = 0, threads = 0;
    const struct {
        const char *field;
        const Tensorflow__Serving__BatchingParameters__Number *given;
        int64_t *to, least, most;
        const char *expected;
    } rows[] = {
        {"max_batch_size", m->max_batch_size, &rules->max_rows, 1, 1 << 20, "1 to 1048576"},
        {"batch_timeout_micros", m->batch_timeout_micros, &rules->timeout_ns, 0, 3600000000LL,
         "0 to an hour"},
        {"max_enqueued_batches", m->max_enqueued_batches, &batches, 1, 1 << 30, "1 or more"},
        {"num_batch_threads", m->num_batch_threads, &threads, 1, 4096, "1 to 4096"},
        {"max_execution_batch_size", m->max_execution_batch_size, &run_rows, 1, 1 << 20,
         "1 to 1048576"},
    };
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        if (rows[i].given == NULL) {
            continue;
        }
        const int64_t value = rows[i].given->value;
        if (value < rows[i].least || value > rows[i].most) {
            return bad_value(r, rows[i].field, value, rows[i].expected);
        }
        *rows[i].to = value;
    }
    SX_TRY(read_sizes(r, m, c));
    const bool splits =
        m->enable_large_batch_splitting != NULL && m->enable_large_batch_splitting->value;
    if (run_rows > 0 && (!splits || run_rows > rules->max_rows)) {
        return bad_value(r, "max_execution_batch_size", run_rows,
                         !splits ? "it only with enable_large_batch_splitting"
                                 : "at most max_batch_size");
    }
    rules->max_queued_rows = rules->max_rows * batches;
    rules->max_rows = run_rows > 0 ? run_rows : rules->max_rows;
    rules->timeout_ns *= 1000;
    c->batcher.no_split = rules->policy == SX_BATCH_TFS && !splits;
    /* Work-conserving runs need no more states than processors. */
    c->batcher.run_states = rules->policy == SX_BATCH_TFS ? (int)threads : 0;
    if (c->size_count == 0) {
        set_powers(c, SX_MIN(rules->max_rows, (int64_t)SX_BATCH_MAX_ROWS));
    }
    if (m->pad_variable_length_inputs) {
        sx_log(SX_LOG_WARN,
               "%s:%d: pad_variable_length_inputs has no effect: calls are merged only where their "
               "rows alone vary",
               r->path, line_of(r->text, "pad_variable_length_inputs"));
    }
    return SX_OK;
}

sx_status sx_batch_config_read(const char *path, sx_batch_policy policy, sx_batch_config *out)
{
    char *text = NULL;
    size_t size = 0;
    ProtobufCMessage *parsed = NULL;
    SX_TRY(sx_file_read(path, MAX_CONFIG_BYTES, &text, &size));
    const reading r = {path, {text, size}};
    sx_status status = sx_text_format_parse(&tensorflow__serving__batching_parameters__descriptor,
                                            r.text, path, &parsed);
    *out = sx_batch_config_enabled(policy);
    if (status == SX_OK) {
        status = read_message(&r, (const message *)parsed, out);
    }
    sx_proto_free(parsed);
    sx_free(text);
    return status;
}
