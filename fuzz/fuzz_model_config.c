/* The configuration of a ReloadConfigRequest: any bytes are models, or an error. */
#include "serve/model_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sx_model_config *models = NULL;
    size_t count = 0;
    sx_arena arena;
    sx_arena_init(&arena, 0);
    sx_status_free(sx_model_config_read((sx_bytes){data, size}, &arena, &models, &count));
    sx_arena_deinit(&arena);
    return 0;
}
