/* Requests to the store of a run's processes: a store that gets any bytes, one request after
 * another, answers each once. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "distribute/store.h"

enum { MOST = 16 };

static void answer(void *call, sx_code code, sx_bytes body)
{
    int *answers = call;
    assert(++*answers == 1);
    assert(code <= SX_UNAUTHENTICATED && (body.size == 0 || body.data != NULL));
    if (code == SX_UNAVAILABLE) {
        sx_store_failure failure;
        sx_status status = sx_store_parse_failure(body, &failure);
        assert(status == SX_OK);
        sx_status_free(status);
    }
}

/* Requests are separated by a byte 0xff. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const sx_store_options options = {
        .processes = 2, .join_ms = 1 << 20, .lost_ms = 1 << 20, .answer = answer};
    int answers[MOST] = {0}, n = 0;
    sx_store *store;
    sx_status status = sx_store_create(&options, &store);
    if (status != SX_OK) {
        sx_status_free(status);
        return 0;
    }
    sx_store_failure failure;
    sx_status_free(sx_store_parse_failure((sx_bytes){data, size}, &failure));
    for (size_t at = 0; at < size && n < MOST; n++) {
        const uint8_t *end = memchr(data + at, 0xff, size - at);
        const size_t length = end != NULL ? (size_t)(end - data) - at : size - at;
        sx_store_take(store, &answers[n], (sx_bytes){(const char *)data + at, length});
        at += length + 1;
    }
    sx_store_tick(store);
    sx_store_end(store);
    for (int i = 0; i < n; i++) {
        assert(answers[i] == 1);
    }
    sx_store_destroy(store);
    return 0;
}
