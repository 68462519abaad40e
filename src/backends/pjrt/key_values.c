/* See key_values.h. */
#include "backends/pjrt/key_values.h"

#include <string.h>

#include "base/memory.h"

enum { MAX_KEY_BYTES = 1 << 12, MAX_VALUE_BYTES = 16 << 20 };

/* The plugin's error object for a status, which is freed. */
static void *error_of(sx_pjrt_make_error **make, sx_status status)
{
    if (status == SX_OK) {
        return NULL;
    }
    const char *message = sx_status_message(status);
    void *error = (*make)((int)sx_status_code(status), message, strlen(message));
    sx_status_free(status);
    return error;
}

static void full_key(const sx_pjrt_key_values *kv, const char *key, size_t size, sx_buf *out)
{
    sx_buf_init(out, MAX_KEY_BYTES);
    sx_buf_printf(out, "pjrt/%d/", kv->number);
    sx_buf_append(out, key, size);
}

static void release(char *value)
{
    sx_free(value);
}

/* The value is NUL-terminated, though its size does not count that. */
static sx_status get(const sx_pjrt_key_values *kv, const char *key, size_t key_size,
                     int64_t timeout_ms, char **out_value, size_t *out_size)
{
    const sx_pjrt_processes *p = kv->processes;
    sx_buf full, value;
    full_key(kv, key, key_size, &full);
    sx_buf_init(&value, MAX_VALUE_BYTES + 1);
    sx_status status = sx_buf_status(&full);
    if (status == SX_OK) {
        status = p->get(p->store, (sx_bytes){full.data, full.size}, timeout_ms, &value);
    }
    if (status == SX_OK) {
        sx_buf_append(&value, "", 1);
        status = sx_buf_status(&value);
    }
    if (status == SX_OK) {
        *out_value = sx_buf_take(&value, out_size);
        --*out_size;
    }
    sx_buf_deinit(&full);
    sx_buf_deinit(&value);
    return status;
}

static void *on_get(sx_pjrt_kv_get *args)
{
    const int64_t timeout_ms = args->timeout_ms > 0 ? args->timeout_ms : 1;
    args->release = release;
    return error_of(args->error, get(args->user, args->key, args->key_size, timeout_ms,
                                     &args->value, &args->value_size));
}

static void *on_try_get(sx_pjrt_kv_try_get *args)
{
    args->release = release;
    return error_of(args->error,
                    get(args->user, args->key, args->key_size, 0, &args->value, &args->value_size));
}

static void *on_put(sx_pjrt_kv_put *args)
{
    const sx_pjrt_key_values *kv = args->user;
    const sx_pjrt_processes *p = kv->processes;
    sx_buf full;
    full_key(kv, args->key, args->key_size, &full);
    sx_status status = sx_buf_status(&full);
    if (status == SX_OK) {
        status = p->put(p->store, (sx_bytes){full.data, full.size},
                        (sx_bytes){args->value, args->value_size});
    }
    sx_buf_deinit(&full);
    return error_of(args->error, status);
}

void sx_pjrt_offer_key_values(sx_pjrt_client_create *args, sx_pjrt_key_values *kv)
{
    args->kv_get = on_get;
    args->kv_try_get = on_try_get;
    args->kv_put = on_put;
    args->kv_get_user = args->kv_try_get_user = args->kv_put_user = kv;
}
