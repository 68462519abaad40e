/* Functions that a model has for each kind of device. Those with the same attribute api_implements
 * are one function, written for the device that api_preferred_device names (none: for the others),
 * and TensorFlow runs the one for its device, whichever a node calls. Which one it is can be seen:
 * the random numbers of TensorFlow Probability differ.
 *
 * Source   TensorFlow core/grappler/optimizers/implementation_selector.cc, function_api_info.cc */
#include <string.h>

#include "savedmodel/import_library_internal.h"

static const ProtobufCBinaryData *text_attr(const Tensorflow__FunctionDef *f, const char *name)
{
    for (size_t i = 0; i < f->n_attr; i++) {
        const Tensorflow__AttrValue *value = f->attr[i]->value;
        if (strcmp(f->attr[i]->key, name) == 0) {
            return value != NULL && value->value_case == TENSORFLOW__ATTR_VALUE__VALUE_S ? &value->s
                                                                                         : NULL;
        }
    }
    return NULL;
}

/* What it is an implementation of, as text in `key`; false: only of itself. */
static bool implements(const Tensorflow__FunctionDef *f, sx_buf *key, bool *out_for_cpu)
{
    const ProtobufCBinaryData *what = text_attr(f, "api_implements"),
                              *device = text_attr(f, "api_preferred_device");
    sx_buf_reset(key);
    if (what == NULL) {
        return false;
    }
    sx_buf_append(key, what->data, what->len);
    sx_buf_puts(key, text_attr(f, "backward_function_name") != NULL  ? " forward"
                     : text_attr(f, "forward_function_name") != NULL ? " backward"
                                                                     : "");
    *out_for_cpu = device != NULL && device->len == 3 && memcmp(device->data, "CPU", 3) == 0;
    return true;
}

static bool same_types(size_t n, Tensorflow__OpDef__ArgDef *const *a, size_t n_b,
                       Tensorflow__OpDef__ArgDef *const *b)
{
    bool same = n == n_b;
    for (size_t i = 0; i < n && same; i++) {
        same = a[i]->type == b[i]->type;
    }
    return same;
}

static sx_status choose(sx_library_importer *im, sx_map *for_cpu, sx_buf *key)
{
    const Tensorflow__FunctionDefLibrary *defs = sx_saved_model_graph(im->model)->library;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; defs != NULL && i < defs->n_function; i++) {
            const Tensorflow__FunctionDef *f = defs->function[i];
            bool is_for_cpu = false;
            if (f->signature == NULL || !implements(f, key, &is_for_cpu)) {
                continue;
            }
            SX_TRY(sx_buf_status(key));
            Tensorflow__FunctionDef *twin = sx_map_get(for_cpu, sx_buf_text(key));
            if (pass == 0 && is_for_cpu && twin == NULL) {
                SX_TRY(sx_map_put(for_cpu, sx_buf_text(key),
                                  sx_map_get(&im->defs, f->signature->name)));
            } else if (pass == 1 && !is_for_cpu && twin != NULL &&
                       same_types(f->signature->n_input_arg, f->signature->input_arg,
                                  twin->signature->n_input_arg, twin->signature->input_arg) &&
                       same_types(f->signature->n_output_arg, f->signature->output_arg,
                                  twin->signature->n_output_arg, twin->signature->output_arg)) {
                SX_TRY(sx_map_put(&im->defs, f->signature->name, twin));
            }
        }
    }
    return SX_OK;
}

sx_status sx_tf_choose_implementations(sx_library_importer *im)
{
    sx_map for_cpu; /* interface -> FunctionDef */
    sx_buf key;
    sx_map_init(&for_cpu);
    sx_buf_init(&key, 1 << 16);
    sx_status status = choose(im, &for_cpu, &key);
    sx_buf_deinit(&key);
    sx_map_deinit(&for_cpu);
    return status;
}
