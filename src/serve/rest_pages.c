/* Errors, model status and metadata as JSON; see rest_pages.h. */
#include "serve/rest_pages.h"

#include <inttypes.h>
#include <string.h>

#include "serve/predict_json.h"

static void print_text(sx_buf *out, const char *text)
{
    sx_json_print_string(out, text, strlen(text));
}

void sx_rest_print_error(sx_buf *out, const char *message)
{
    sx_buf_puts(out, "{\n    \"error\": ");
    print_text(out, message);
    sx_buf_puts(out, "\n}");
}

void sx_rest_print_status(sx_buf *out, const sx_version_status *rows, size_t count)
{
    sx_buf_puts(out, "{\n \"model_version_status\": [");
    for (size_t i = 0; i < count; i++) {
        sx_buf_printf(out, "%s\n  {\n   \"version\": \"%" PRId64 "\",\n   \"state\": \"%s\",\n",
                      i > 0 ? "," : "", rows[i].version, sx_version_state_name(rows[i].state));
        sx_buf_printf(out, "   \"status\": {\n    \"error_code\": \"%s\",\n    \"error_message\": ",
                      sx_code_name(rows[i].code));
        print_text(out, sx_version_error_text(rows[i].code));
        sx_buf_puts(out, "\n   }\n  }");
    }
    sx_buf_puts(out, "\n ]\n}\n");
}

static void print_shape(sx_buf *out, const sx_serve_tensor *tensor)
{
    const int rank = tensor->unknown_rank ? 0 : tensor->type.rank;
    sx_buf_puts(out, "      \"tensor_shape\": {\n       \"dim\": [");
    for (int i = 0; i < rank; i++) {
        const int64_t size = tensor->type.dims[i] < 0 ? -1 : tensor->type.dims[i];
        sx_buf_printf(out,
                      "%s\n        {\n         \"size\": \"%" PRId64
                      "\",\n         \"name\": \"\"\n        }",
                      i > 0 ? "," : "", size);
    }
    sx_buf_printf(out, "%s],\n       \"unknown_rank\": %s\n      },\n", rank > 0 ? "\n       " : "",
                  tensor->unknown_rank ? "true" : "false");
}

static void print_tensors(sx_buf *out, const char *key, const sx_serve_tensor *tensors,
                          size_t count)
{
    sx_buf_printf(out, "    \"%s\": {", key);
    for (size_t i = 0; i < count; i++) {
        sx_buf_puts(out, i > 0 ? ",\n     " : "\n     ");
        print_text(out, tensors[i].name);
        sx_buf_printf(out, ": {\n      \"dtype\": \"%s\",\n",
                      sx_serve_dtype_name(tensors[i].type.dtype));
        print_shape(out, &tensors[i]);
        sx_buf_puts(out, "      \"name\": ");
        print_text(out, tensors[i].tensor_name != NULL ? tensors[i].tensor_name : "");
        sx_buf_puts(out, "\n     }");
    }
    sx_buf_puts(out, count > 0 ? "\n    },\n" : "},\n");
}

static void print_signature(sx_buf *out, const sx_serve_signature *signature)
{
    sx_buf_puts(out, "   ");
    print_text(out, signature->name);
    sx_buf_puts(out, ": {\n");
    print_tensors(out, "inputs", signature->inputs, signature->input_count);
    print_tensors(out, "outputs", signature->outputs, signature->output_count);
    sx_buf_puts(out, "    \"method_name\": ");
    print_text(out, signature->method != NULL ? signature->method : "");
    sx_buf_puts(out, ",\n    \"defaults\": {}\n   }");
}

void sx_rest_print_metadata(sx_buf *out, const char *model, int64_t version,
                            const sx_serve_signature *signatures, size_t count)
{
    sx_buf_puts(out, "{\n\"model_spec\":{\n \"name\": ");
    print_text(out, model);
    sx_buf_printf(out, ",\n \"signature_name\": \"\",\n \"version\": \"%" PRId64 "\"\n}\n,\n",
                  version);
    sx_buf_puts(out, "\"metadata\": {\"signature_def\": {\n \"signature_def\": {\n");
    for (size_t i = 0; i < count; i++) {
        sx_buf_puts(out, i > 0 ? ",\n" : "");
        print_signature(out, &signatures[i]);
    }
    sx_buf_puts(out, "\n }\n}\n}\n}\n");
}
