/* A server on this machine of the model "m" that fake_publish() makes. */
#ifndef SX_TESTS_FAKE_SERVER_H
#define SX_TESTS_FAKE_SERVER_H

#include "serve/fake_model.h"
#include "serve/server.h"

/* Creates and starts it, at any port, with what `config` says besides; does not wait until the
 * model is there. The caller destroys *out. */
static inline void fake_serve(const char *base, struct fake_runtime *runtime,
                              sx_server_config config, sx_server **out)
{
    config.host = "127.0.0.1";
    config.rest_api_port = SX_ANY_PORT;
    config.model_name = "m";
    config.model_base_path = base;
    config.ops = &fake_ops;
    config.ops_user = runtime;
    assert_ok(sx_server_create(&config, out));
    assert_ok(sx_server_start(*out));
}

#endif
