/* saved_model.pb: any bytes are refused, or give a model whose signatures become functions of a
 * library or are refused; and the functions are specialized, or refused. */
#include "graph/specialize_examples.h"
#include "savedmodel/import_library.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sx_saved_model *model = NULL;
    size_t n = 0;
    sx_status status = sx_saved_model_parse((sx_bytes){data, size}, &model);
    if (status == SX_OK) {
        (void)sx_saved_model_signatures(model, &n);
    }
    sx_status refused[4] = {SX_OK};
    if (status == SX_OK && n <= 4) {
        sx_library *library = NULL;
        const sx_import_limits limits = {
            .nodes = 1000, .constant_bytes = 1 << 20, .devices = size % 2 == 0};
        status = sx_import_library(model, &limits, &library, refused);
        for (int k = 0; status == SX_OK && k < library->n_functions; k++) {
            sx_specialized *program = NULL;
            const sx_specialize_limits few = {.nodes = 1000};
            int device;
            sx_status_free(
                sx_specialize_examples(library, &library->functions[k], &few, &program, &device));
            sx_specialized_destroy(program);
        }
        sx_library_destroy(library);
    }
    for (size_t i = 0; i < n && i < 4; i++) {
        sx_status_free(refused[i]);
    }
    sx_saved_model_close(model);
    sx_status_free(status);
    return 0;
}
