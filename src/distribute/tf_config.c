/* See tf_config.h. */
#include "distribute/tf_config.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"

enum { DEFAULT_PORT = 8470, MAX_INDEX = 1 << 20 };

/* ---- Untrusted JSON ---- */

sx_status sx_foreign_json(const char *text, size_t size, const char *what, json_t **out_object)
{
    json_error_t error;
    if (size > SX_LAUNCH_JSON_BYTES) {
        return sx_error(SX_INVALID_ARGUMENT, "%s: %zu bytes; the limit is %d", what, size,
                        SX_LAUNCH_JSON_BYTES);
    }
    json_t *json = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    if (json == NULL) {
        return sx_error(SX_INVALID_ARGUMENT, "%s: invalid JSON: %s (line %d, column %d)", what,
                        error.text, error.line, error.column);
    }
    if (!json_is_object(json)) {
        json_decref(json);
        return sx_error(SX_INVALID_ARGUMENT, "%s: expected a JSON object", what);
    }
    *out_object = json;
    return SX_OK;
}

static bool is_plain(const char *text, size_t size)
{
    if (size > SX_MAX_ADDRESS) {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f) {
            return false;
        }
    }
    return true;
}

static sx_status copy_text(const json_t *value, const char *where, const char *what,
                           sx_arena *arena, const char **out)
{
    if (!json_is_string(value) || !is_plain(json_string_value(value), json_string_length(value))) {
        return sx_error(SX_INVALID_ARGUMENT, "%s: \"%.100s\" must be a string of at most %d bytes",
                        what, where, SX_MAX_ADDRESS);
    }
    const char *copy = sx_arena_strdup(arena, json_string_value(value));
    if (copy == NULL) {
        return sx_no_memory("reading %s", what);
    }
    *out = copy;
    return SX_OK;
}

sx_status sx_foreign_text(const json_t *object, const char *member, const char *what,
                          sx_arena *arena, const char **out)
{
    const json_t *value = json_object_get(object, member);
    if (value == NULL || json_is_null(value) ||
        (json_is_string(value) && json_string_length(value) == 0)) {
        return SX_OK;
    }
    return copy_text(value, member, what, arena, out);
}

/* ---- Addresses ---- */

static bool is_host(const char *host, size_t size)
{
    bool bracketed = size > 2 && host[0] == '[' && host[size - 1] == ']';
    size_t from = bracketed ? 1 : 0, to = bracketed ? size - 1 : size;
    for (size_t i = from; i < to; i++) {
        bool fine = isalnum((unsigned char)host[i]) || host[i] == '.' || host[i] == '-' ||
                    host[i] == '_' || (bracketed && host[i] == ':');
        if (!fine) {
            return false;
        }
    }
    return to > from;
}

static bool parse_port(const char *text, size_t size, int *out)
{
    int port = 0;
    if (size < 1 || size > 5) {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return false;
        }
        port = 10 * port + (text[i] - '0');
    }
    *out = port;
    return port >= 1 && port <= 65535;
}

sx_status sx_tpu_address(const char *text, size_t size, sx_arena *arena, const char **out)
{
    static const char scheme[] = "grpc://";
    const char *host = text;
    size_t left = size, host_size;
    int port = DEFAULT_PORT;
    if (left > sizeof(scheme) - 1 && strncmp(host, scheme, sizeof(scheme) - 1) == 0) {
        host += sizeof(scheme) - 1;
        left -= sizeof(scheme) - 1;
    }
    const char *end = left > 0 && host[0] == '[' ? memchr(host, ']', left) : NULL;
    const char *colon =
        memchr(end != NULL ? end : host, ':', left - (end != NULL ? (size_t)(end - host) : 0));
    host_size = colon != NULL ? (size_t)(colon - host) : left;
    bool fine = left > 0 && left <= SX_MAX_ADDRESS && is_host(host, host_size) &&
                (colon == NULL || parse_port(colon + 1, left - host_size - 1, &port));
    if (!fine) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "invalid address \"%.*s\"; expected HOST, HOST:PORT or grpc://HOST:PORT",
                        (int)SX_MIN(size, (size_t)SX_MAX_ADDRESS), text);
    }
    const char *copy = sx_arena_printf(arena, "%.*s:%d", (int)host_size, host, port);
    if (copy == NULL) {
        return sx_no_memory("for an address");
    }
    *out = copy;
    return SX_OK;
}

/* ---- TF_CONFIG ---- */

static const char tf_config[] = "TF_CONFIG";

/* A number, or a string of digits. */
static sx_status parse_index(const json_t *value, const char *where, int *out)
{
    long long index = json_is_integer(value) ? json_integer_value(value) : -1;
    if (json_is_string(value)) {
        char *end = NULL;
        const char *text = json_string_value(value);
        bool digits = text[0] >= '0' && text[0] <= '9' && json_string_length(value) < 10;
        index = digits ? strtoll(text, &end, 10) : -1;
        index = digits && *end == '\0' ? index : -1;
    }
    if (index < 0 || index > MAX_INDEX) {
        return sx_error(SX_INVALID_ARGUMENT, "%s: %.100s: index must be 0 to %d", tf_config, where,
                        MAX_INDEX);
    }
    *out = (int)index;
    return SX_OK;
}

static int by_index(const void *a, const void *b)
{
    const sx_tf_task *x = a, *y = b;
    return (x->index > y->index) - (x->index < y->index);
}

static sx_status parse_listed(const json_t *list, const char *job, sx_arena *arena,
                              sx_tf_task *tasks)
{
    size_t i;
    json_t *address;
    json_array_foreach(list, i, address)
    {
        tasks[i].index = (int)i;
        SX_TRY(copy_text(address, job, tf_config, arena, &tasks[i].address));
    }
    return SX_OK;
}

static sx_status parse_mapped(json_t *map, const char *job, sx_arena *arena, sx_tf_task *tasks)
{
    const char *key;
    json_t *address;
    int n = 0;
    json_object_foreach(map, key, address)
    {
        json_t *index = json_string(key);
        sx_status status = index != NULL ? parse_index(index, job, &tasks[n].index)
                                         : sx_no_memory("reading %s", tf_config);
        json_decref(index);
        SX_TRY(status);
        SX_TRY(copy_text(address, job, tf_config, arena, &tasks[n++].address));
    }
    qsort(tasks, (size_t)n, sizeof(*tasks), by_index);
    for (int i = 1; i < n; i++) {
        if (tasks[i].index == tasks[i - 1].index) {
            return sx_error(SX_INVALID_ARGUMENT, "%s: job \"%.100s\" has task %d twice", tf_config,
                            job, tasks[i].index);
        }
    }
    return SX_OK;
}

static sx_status parse_job(json_t *value, const char *name, sx_arena *arena, sx_tf_config *c,
                           sx_tf_job *job)
{
    bool listed = json_is_array(value);
    if (!listed && !json_is_object(value)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%s: job \"%.100s\": expected a list of addresses, or a map from index to "
                        "address",
                        tf_config, name);
    }
    size_t n = listed ? json_array_size(value) : json_object_size(value);
    if (!is_plain(name, strlen(name)) || n > (size_t)(SX_MAX_TASKS - c->n_tasks)) {
        return sx_error(SX_INVALID_ARGUMENT, "%s: job with %zu tasks; the limit for all jobs is %d",
                        tf_config, n, SX_MAX_TASKS);
    }
    sx_tf_task *tasks = sx_arena_array(arena, n + 1, sx_tf_task);
    job->name = sx_arena_strdup(arena, name);
    if (tasks == NULL || job->name == NULL) {
        return sx_no_memory("reading %s", tf_config);
    }
    SX_TRY(listed ? parse_listed(value, name, arena, tasks)
                  : parse_mapped(value, name, arena, tasks));
    job->tasks = tasks;
    job->n_tasks = (int)n;
    c->n_tasks += (int)n;
    return SX_OK;
}

static sx_status parse_cluster(const json_t *root, sx_arena *arena, sx_tf_config *c)
{
    json_t *cluster = json_object_get(root, "cluster"), *value;
    const char *name;
    if (cluster == NULL || json_is_null(cluster)) {
        return SX_OK;
    }
    if (!json_is_object(cluster) || json_object_size(cluster) > SX_MAX_JOBS) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%s: \"cluster\" must be an object with at most %d jobs", tf_config,
                        SX_MAX_JOBS);
    }
    sx_tf_job *jobs = sx_arena_array(arena, json_object_size(cluster) + 1, sx_tf_job);
    if (jobs == NULL) {
        return sx_no_memory("reading %s", tf_config);
    }
    json_object_foreach(cluster, name, value)
    {
        SX_TRY(parse_job(value, name, arena, c, &jobs[c->n_jobs]));
        c->n_jobs++;
    }
    c->jobs = jobs;
    return SX_OK;
}

static sx_status parse_task(const json_t *root, sx_arena *arena, sx_tf_config *c)
{
    const json_t *task = json_object_get(root, "task");
    if (task == NULL || json_is_null(task)) {
        return SX_OK;
    }
    if (!json_is_object(task)) {
        return sx_error(SX_INVALID_ARGUMENT, "%s: \"task\" must be an object", tf_config);
    }
    SX_TRY(sx_foreign_text(task, "type", tf_config, arena, &c->task_type));
    const json_t *index = json_object_get(task, "index");
    return index == NULL ? SX_OK : parse_index(index, "task", &c->task_index);
}

static sx_status parse_root(const json_t *root, sx_arena *arena, sx_tf_config *c)
{
    SX_TRY(parse_cluster(root, arena, c));
    SX_TRY(parse_task(root, arena, c));
    SX_TRY(sx_foreign_text(root, "rpc_layer", tf_config, arena, &c->rpc_layer));
    return sx_foreign_text(root, "session_master", tf_config, arena, &c->session_master);
}

sx_status sx_tf_config_parse(const char *text, size_t size, sx_arena *arena, sx_tf_config *out)
{
    sx_tf_config c = {0};
    json_t *root = NULL;
    SX_TRY(sx_foreign_json(text, size, tf_config, &root));
    sx_status status = parse_root(root, arena, &c);
    json_decref(root);
    if (status == SX_OK) {
        *out = c;
    }
    return status;
}

const sx_tf_job *sx_tf_config_job(const sx_tf_config *config, const char *name)
{
    for (int i = 0; i < config->n_jobs; i++) {
        if (strcmp(config->jobs[i].name, name) == 0) {
            return &config->jobs[i];
        }
    }
    return NULL;
}

/* ---- TPU_CONFIG ---- */

sx_status sx_env_tpu_config_parse(const char *text, size_t size, sx_arena *arena,
                                  sx_env_tpu_config *out)
{
    static const char what[] = "TPU_CONFIG";
    sx_env_tpu_config c = {0};
    json_t *root = NULL;
    SX_TRY(sx_foreign_json(text, size, what, &root));
    sx_status status = sx_foreign_text(root, "tpu_node_name", what, arena, &c.name);
    if (status == SX_OK) {
        status = sx_foreign_text(root, "project", what, arena, &c.project);
    }
    if (status == SX_OK) {
        status = sx_foreign_text(root, "zone", what, arena, &c.zone);
    }
    json_decref(root);
    if (status == SX_OK && c.name == NULL) {
        status = sx_error(SX_INVALID_ARGUMENT, "%s: no \"tpu_node_name\"", what);
    }
    if (status == SX_OK) {
        *out = c;
    }
    return status;
}
