/* saved_model.pb: any bytes are refused, or give a model whose signatures import or are refused. */
#include "savedmodel/import.h"

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
    sx_saved_model_close(model);
    sx_status_free(status);
    return 0;
}
