/* See tpu_node.h. */
#include "distribute/tpu_node.h"

#include <string.h>

#include "base/memory.h"
#include "distribute/tf_config.h"

static const char what[] = "the TPU API's answer";

/* {"ipAddress": "10.1.2.3", "port": 8470}; the port is a number or a string of digits. */
static sx_status parse_endpoint(const json_t *endpoint, sx_arena *arena, const char **out)
{
    const char *host = NULL, *port = NULL;
    const json_t *number = json_object_get(endpoint, "port");
    SX_TRY(sx_foreign_text(endpoint, "ipAddress", what, arena, &host));
    if (host == NULL) {
        return sx_error(SX_INVALID_ARGUMENT, "%s: endpoint without \"ipAddress\"", what);
    }
    if (json_is_integer(number)) {
        port = sx_arena_printf(arena, "%lld", (long long)json_integer_value(number));
        if (port == NULL) {
            return sx_no_memory("reading %s", what);
        }
    } else {
        SX_TRY(sx_foreign_text(endpoint, "port", what, arena, &port));
    }
    const char *text = port == NULL ? host : sx_arena_printf(arena, "%s:%s", host, port);
    return text != NULL ? sx_tpu_address(text, strlen(text), arena, out)
                        : sx_no_memory("reading %s", what);
}

static sx_status parse_endpoints(const json_t *root, sx_arena *arena, sx_tpu_node *node)
{
    const json_t *list = json_object_get(root, "networkEndpoints");
    bool single = list == NULL && json_object_get(root, "ipAddress") != NULL;
    size_t n = single ? 1 : json_array_size(list);
    if ((list != NULL && !json_is_array(list)) || n > SX_MAX_TPU_WORKERS) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%s: \"networkEndpoints\" must be a list of at most %d workers", what,
                        SX_MAX_TPU_WORKERS);
    }
    const char **workers = sx_arena_array(arena, n + 1, const char *);
    if (workers == NULL) {
        return sx_no_memory("reading %s", what);
    }
    for (size_t i = 0; i < n; i++) {
        SX_TRY(parse_endpoint(single ? root : json_array_get(list, i), arena, &workers[i]));
    }
    node->workers = workers;
    node->n_workers = (int)n;
    return SX_OK;
}

static sx_status parse_root(const json_t *root, sx_arena *arena, sx_tpu_node *node)
{
    SX_TRY(sx_foreign_text(root, "state", what, arena, &node->state));
    SX_TRY(sx_foreign_text(root, "health", what, arena, &node->health));
    SX_TRY(sx_foreign_text(root, "acceleratorType", what, arena, &node->accelerator_type));
    return parse_endpoints(root, arena, node);
}

sx_status sx_tpu_node_parse(const char *text, size_t size, sx_arena *arena, sx_tpu_node *out)
{
    sx_tpu_node node = {0};
    json_t *root = NULL;
    SX_TRY(sx_foreign_json(text, size, what, &root));
    sx_status status = parse_root(root, arena, &node);
    json_decref(root);
    if (status == SX_OK) {
        *out = node;
    }
    return status;
}

const char *sx_tpu_node_error(const char *text, size_t size, sx_arena *arena)
{
    const char *message = NULL;
    json_t *root = NULL;
    sx_status status = sx_foreign_json(text, size, what, &root);
    if (status == SX_OK) {
        status = sx_foreign_text(json_object_get(root, "error"), "message", what, arena, &message);
    }
    json_decref(root);
    sx_status_free(status);
    return message;
}
