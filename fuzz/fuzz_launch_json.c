/* What launchers and the cloud hand in as JSON: parsed, or refused, within the limits. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "distribute/tf_config.h"
#include "distribute/tpu_node.h"

static void check_cluster(const sx_tf_config *c)
{
    int tasks = 0;
    for (int i = 0; i < c->n_jobs; i++) {
        for (int k = 0; k < c->jobs[i].n_tasks; k++) {
            assert(strlen(c->jobs[i].tasks[k].address) <= SX_MAX_ADDRESS);
            assert(k == 0 || c->jobs[i].tasks[k].index > c->jobs[i].tasks[k - 1].index);
        }
        tasks += c->jobs[i].n_tasks;
    }
    assert(tasks == c->n_tasks && tasks <= SX_MAX_TASKS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    sx_arena arena;
    sx_tf_config cluster;
    sx_env_tpu_config config;
    sx_tpu_node node;
    const char *address = NULL;
    sx_arena_init(&arena, 256 << 20);
    sx_status status = sx_tf_config_parse(text, size, &arena, &cluster);
    if (status == SX_OK) {
        check_cluster(&cluster);
    }
    sx_status_free(status);
    sx_status_free(sx_env_tpu_config_parse(text, size, &arena, &config));
    status = sx_tpu_node_parse(text, size, &arena, &node);
    for (int i = 0; status == SX_OK && i < node.n_workers; i++) {
        assert(strchr(node.workers[i], ':') != NULL);
    }
    sx_status_free(status);
    sx_tpu_node_error(text, size, &arena);
    status = sx_tpu_address(text, size, &arena, &address);
    assert(status != SX_OK || strpbrk(address, "/@ \r\n") == NULL);
    sx_status_free(status);
    sx_arena_deinit(&arena);
    return 0;
}
