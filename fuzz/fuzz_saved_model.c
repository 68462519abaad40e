/* saved_model.pb: any bytes are refused, or give a model whose signatures import or are refused,
 * one by one as graphs, and all together as functions of a library. */
#include "savedmodel/import.h"
#include "savedmodel/import_library.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sx_saved_model *model = NULL;
    size_t n = 0;
    sx_status status = sx_saved_model_parse((sx_bytes){data, size}, &model);
    const sx_signature *signatures = status == SX_OK ? sx_saved_model_signatures(model, &n) : NULL;
    for (size_t i = 0; i < n && i < 4; i++) {
        sx_import *import = NULL;
        sx_status_free(sx_import_signature(model, signatures[i].key, NULL, &import));
        sx_import_destroy(import);
    }
    sx_status refused[4] = {SX_OK};
    if (status == SX_OK && n <= 4) {
        sx_library *library = NULL;
        const sx_import_limits limits = {.nodes = 1000, .constant_bytes = 1 << 20};
        status = sx_import_library(model, &limits, &library, refused);
        sx_library_destroy(library);
    }
    for (size_t i = 0; i < n && i < 4; i++) {
        sx_status_free(refused[i]);
    }
    sx_saved_model_close(model);
    sx_status_free(status);
    return 0;
}
