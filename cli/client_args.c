/* See client_args.h. */
#include "client_args.h"

#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "image_files.h"
#include "io/file.h"
#include "npy_files.h"
#include "serve/base64.h"
#include "serve/predict_json.h"

enum { MAX_REQUEST = 1 << 30, MAX_KEY = 64 * 1024 };

/* ---- The server and the model ---- */

/* Server and model of http://HOST:PORT/v1/models/NAME[/versions/N|/labels/L][:VERB]. Over REST the
 * URL is used as it is, unless --model is given. */
sx_status sx_call_args_target(sx_invocation *inv, const sx_call_args *args, const char **url,
                              sx_client_model *out)
{
    static const char prefix[] = "/v1/models/";
    static const char *const inputs[] = {"image", "input", "request", "lines", NULL};
    static const char *const versions[] = {"version", "label", NULL};
    static const char *const names[] = {"/versions/", "/labels/"};
    sx_client_model model = {args->model, args->version, args->label, args->signature};
    const char **const parts[] = {&model.version, &model.label};
    const char *at = strstr(*url, prefix);
    SX_TRY(sx_usage(inv, sx_options_exclusive(inv, inputs)));
    SX_TRY(sx_usage(inv, sx_options_exclusive(inv, versions)));
    *out = model;
    if (at == NULL || (model.name == NULL && strcmp(args->protocol, "rest") == 0)) {
        return SX_OK;
    }
    if (model.name != NULL) {
        return sx_error(SX_INVALID_ARGUMENT, "%s names a model, as --%s does: expected one of them",
                        *url, sx_option_typed(inv, "model"));
    }
    *url = sx_arena_strndup(&inv->arena, *url, (size_t)(at - *url));
    at += sizeof(prefix) - 1;
    model.name = sx_arena_strndup(&inv->arena, at, strcspn(at, "/:"));
    at += strcspn(at, "/:");
    for (size_t i = 0; i < SX_COUNT(names); i++) {
        if (strncmp(at, names[i], strlen(names[i])) == 0) {
            at += strlen(names[i]);
            *parts[i] = sx_arena_strndup(&inv->arena, at, strcspn(at, "/:"));
        }
    }
    *out = model;
    return *url != NULL && model.name != NULL ? SX_OK : sx_no_memory("for an address");
}

/* The key itself, or the first line of @FILE. */
static sx_status read_api_key(sx_invocation *inv, const char **key)
{
    char *text = NULL;
    size_t size = 0;
    if (*key == NULL || **key != '@') {
        return SX_OK;
    }
    SX_TRY(sx_file_read_stream(*key + 1, MAX_KEY, sx_stop_flag(), &text, &size));
    *key = sx_arena_strndup(&inv->arena, text, strcspn(text, "\r\n"));
    sx_free(text);
    return *key != NULL ? SX_OK : sx_no_memory("for a key");
}

sx_status sx_client_args_options(sx_invocation *inv, const sx_client_args *args,
                                 sx_client_options *out)
{
    static const char *const identities[] = {"api-key", "credentials", NULL};
    SX_TRY(sx_usage(inv, sx_options_exclusive(inv, identities)));
    *out = (sx_client_options){
        .struct_size = sizeof(*out),
        .ca_file = args->ca_file,
        .certificate_file = args->certificate_file,
        .key_file = args->key_file,
        .api_key = args->api_key,
        .credentials_file = args->credentials_file,
        .scope = args->scope,
        .timeout_ms = args->timeout * 1000,
    };
    return read_api_key(inv, &out->api_key);
}

/* ---- What is sent ---- */

static sx_status put_images(const sx_image_files *images, sx_buf *out)
{
    sx_buf_puts(out, "{\"instances\":[");
    for (int i = 0; i < images->count; i++) {
        sx_bytes bytes = images->bytes[i];
        sx_buf_puts(out, i > 0 ? ",{\"b64\":\"" : "{\"b64\":\"");
        char *room = sx_buf_extend(out, SX_BASE64_ENCODED(bytes.size));
        if (room != NULL) {
            sx_base64_encode(bytes.data, bytes.size, room);
        }
        sx_buf_puts(out, "\"}");
    }
    sx_buf_puts(out, "]}");
    return sx_buf_status(out);
}

/* Each line of the text as an instance; a last one without an end counts, too. */
static sx_status put_lines(sx_bytes text, sx_buf *out)
{
    const char *at = text.data, *end = at + text.size;
    sx_buf_puts(out, "{\"instances\":[");
    for (bool first = true; at < end; first = false) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop != NULL ? stop : end;
        sx_buf_puts(out, first ? "" : ",");
        sx_json_print_string(out, at, (size_t)(stop - at) - (stop > at && stop[-1] == '\r'));
        at = stop + 1;
    }
    sx_buf_puts(out, "]}");
    return sx_buf_status(out);
}

/* A request as it is, or a list as the instances or examples of one. */
static sx_status put_request(sx_bytes text, const char *member, sx_buf *out)
{
    const char *at = text.data;
    size_t i = 0;
    while (i < text.size && strchr(" \t\r\n", at[i]) != NULL) {
        i++;
    }
    const bool is_list = i < text.size && at[i] == '[';
    if (is_list) {
        sx_buf_printf(out, "{\"%s\":", member);
    }
    sx_buf_append(out, text.data, text.size);
    sx_buf_puts(out, is_list ? "}" : "");
    return sx_buf_status(out);
}

/* The arrays in row form: like the predictions printed by the server, but under "instances". */
static sx_status put_arrays(sx_invocation *inv, const sx_npy_file *files, int n, sx_buf *out)
{
    sx_serve_tensor *ports = sx_arena_array(&inv->arena, n, sx_serve_tensor);
    sx_tensor *tensors = sx_arena_array(&inv->arena, n, sx_tensor);
    sx_buf text;
    if (ports == NULL || tensors == NULL) {
        return sx_no_memory("for the request");
    }
    for (int i = 0; i < n; i++) {
        ports[i] = (sx_serve_tensor){.name = files[i].name != NULL ? files[i].name : "",
                                     .type = files[i].tensor.type};
        tensors[i] = files[i].tensor;
    }
    sx_serve_signature signature = {.name = "", .output_count = (size_t)n, .outputs = ports};
    sx_buf_init(&text, MAX_REQUEST);
    sx_status status = sx_predict_print(&signature, tensors, true, SX_FLOAT_SHORTEST, NULL, &text);
    if (status == SX_OK) {
        const char *value = strchr(sx_buf_text(&text), ':') + 1, *end = strrchr(value, '}');
        sx_buf_puts(out, "{\"instances\":");
        sx_buf_append(out, value, (size_t)(end - value));
        sx_buf_putc(out, '}');
        status = sx_buf_status(out);
    }
    sx_buf_deinit(&text);
    return status;
}

bool sx_call_args_send(const sx_call_args *args)
{
    return args->image.count > 0 || args->input.count > 0 || args->request != NULL ||
           args->lines != NULL;
}

sx_status sx_call_args_request(sx_invocation *inv, const sx_call_args *args, const char *member,
                               sx_buf *out)
{
    const char *path = args->request != NULL ? args->request : args->lines;
    if (path != NULL) {
        char *data = NULL;
        size_t size = 0;
        path = strcmp(path, "-") == 0 ? "/dev/stdin" : path;
        SX_TRY(sx_file_read_stream(path, MAX_REQUEST, sx_stop_flag(), &data, &size));
        sx_status status = args->lines != NULL ? put_lines((sx_bytes){data, size}, out)
                                               : put_request((sx_bytes){data, size}, member, out);
        sx_free(data);
        return status;
    }
    if (args->image.count > 0) {
        sx_image_files images = {0};
        SX_TRY(sx_image_files_read(&args->image, &images));
        sx_status status = put_images(&images, out);
        sx_image_files_free(&images);
        return status;
    }
    sx_npy_file *arrays = NULL;
    SX_TRY(sx_npy_files_read(inv, &args->input, &arrays));
    sx_status status = put_arrays(inv, arrays, args->input.count, out);
    sx_npy_files_free(arrays, args->input.count);
    return status;
}
