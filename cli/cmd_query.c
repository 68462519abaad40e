/* sextant query: sends requests to a model server over REST. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "base/memory.h"
#include "command.h"
#include "image_files.h"
#include "io/file.h"
#include "io/http_client.h"
#include "npy_files.h"
#include "serve/base64.h"
#include "serve/json_scan.h"
#include "serve/predict_json.h"

typedef struct options {
    sx_words image, input;
    const char *request, *signature;
    int64_t timeout, max_response_bytes;
    bool json;
} options;

static const sx_option rows[] = {
    {"image", SX_OPTION_LIST, SX_OPT(options, image), "send JPEG or PNG files, one instance each",
     "FILE"},
    {"input", SX_OPTION_LIST, SX_OPT(options, input),
     "send arrays, one instance per row; NAME may be omitted if the signature has one input",
     "[NAME=]X.npy"},
    {"request", SX_OPTION_STRING, SX_OPT(options, request), "send a file with a JSON request",
     "FILE"},
    {"signature", SX_OPTION_STRING, SX_OPT(options, signature),
     "signature to call; default: serving_default", "NAME"},
    {"json", SX_OPTION_FLAG, SX_OPT(options, json), "print the response unchanged"},
    {"timeout", SX_OPTION_INT, SX_OPT(options, timeout), "maximum time for the whole exchange",
     "SECONDS", .min = 1, .max = 86400},
    {"max-response-bytes", SX_OPTION_SIZE, SX_OPT(options, max_response_bytes),
     "refuse larger responses", "SIZE", .min = 1, .max = 0x1p40},
};
static const options defaults = {.timeout = 60, .max_response_bytes = 64 << 20};

enum { MAX_REQUEST = 1 << 30, MAX_HEADERS = 1 << 20 };

/* ---- The request ---- */

static sx_status put_images(const sx_image_files *images, sx_buf *out)
{
    sx_buf_puts(out, "\"instances\":[");
    for (int i = 0; i < images->count; i++) {
        sx_bytes bytes = images->bytes[i];
        sx_buf_puts(out, i > 0 ? ",{\"b64\":\"" : "{\"b64\":\"");
        char *room = sx_buf_extend(out, SX_BASE64_ENCODED(bytes.size));
        if (room != NULL) {
            sx_base64_encode(bytes.data, bytes.size, room);
        }
        sx_buf_puts(out, "\"}");
    }
    sx_buf_putc(out, ']');
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
        sx_buf_puts(out, "\"instances\":");
        sx_buf_append(out, value, (size_t)(end - value));
        status = sx_buf_status(out);
    }
    sx_buf_deinit(&text);
    return status;
}

/* ---- The response ---- */

/* The value of the header "Location: " in *out; false if there is none. */
static bool find_location(const sx_buf *headers, sx_bytes *out)
{
    static const char name[] = "location:";
    for (const char *line = sx_buf_text(headers); line != NULL && *line != '\0';) {
        if (strncasecmp(line, name, sizeof(name) - 1) == 0) {
            line += sizeof(name) - 1;
            line += strspn(line, " \t");
            *out = (sx_bytes){line, strcspn(line, "\r\n")};
            return out->size > 0;
        }
        line = strchr(line, '\n');
        line += line != NULL;
    }
    return false;
}

/* The server's message, {"error": "..."}, or else the body. Redirects are not followed: the inputs
 * would go to a server that the user has not named. */
static sx_status refused(const char *url, int http_status, const sx_buf *headers,
                         const sx_buf *body)
{
    sx_bytes location;
    if (http_status / 100 == 3 && find_location(headers, &location)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%s: HTTP status %d: redirected to %.*s; redirects are not followed, give "
                        "the URL of the model server",
                        url, http_status, (int)SX_MIN(location.size, (size_t)2000),
                        (const char *)location.data);
    }
    json_t *answer = json_loadb(sx_buf_text(body), body->size, 0, NULL);
    const char *error = json_string_value(json_object_get(answer, "error"));
    sx_status status = sx_error(http_status == 404   ? SX_NOT_FOUND
                                : http_status == 429 ? SX_RESOURCE_EXHAUSTED
                                : http_status < 500  ? SX_INVALID_ARGUMENT
                                                     : SX_UNAVAILABLE,
                                "%s: HTTP status %d%s%.2000s", url, http_status,
                                error != NULL || body->size > 0 ? ": " : "",
                                error != NULL ? error : sx_buf_text(body));
    json_decref(answer);
    return status;
}

/* A classifier's prediction: {"class": "rose", "classid": 2, "probabilities": [...]}. */
static bool print_class(const char *what, const json_t *row)
{
    const json_t *class_name = json_object_get(row, "class");
    const json_t *classid = json_object_get(row, "classid");
    const json_t *probabilities = json_object_get(row, "probabilities");
    const json_t *p = json_array_get(probabilities, (size_t)json_integer_value(classid));
    if (!json_is_integer(classid) || !json_is_number(p)) {
        return false;
    }
    if (json_is_string(class_name)) {
        sx_print_visible(stdout, what);
        printf(": ");
        sx_print_visible(stdout, json_string_value(class_name));
        printf(" %.1f %%\n", 100 * json_number_value(p));
    } else {
        printf("%s: class %lld %.1f %%\n", what, (long long)json_integer_value(classid),
               100 * json_number_value(p));
    }
    return true;
}

/* NaN and infinities are taken: TensorFlow Serving writes them. */
static sx_status check_json(const char *url, const sx_buf *body)
{
    sx_json json;
    sx_json_init(&json, (sx_bytes){sx_buf_text(body), body->size}, NULL);
    sx_status status = sx_json_skip(&json);
    if (status == SX_OK) {
        status = sx_json_finish(&json);
    }
    if (status == SX_OK) {
        return SX_OK;
    }
    sx_status_free(status);
    return sx_error(SX_INVALID_ARGUMENT, "%s: not a JSON response: \"%.100s\"%s", url,
                    sx_buf_text(body), body->size > 100 ? "..." : "");
}

static void print_answer(const options *o, const sx_buf *body)
{
    json_t *answer = o->json ? NULL : json_loadb(sx_buf_text(body), body->size, 0, NULL);
    const json_t *rows_array = json_object_get(answer, "predictions");
    bool printed = json_array_size(rows_array) > 0;
    for (size_t i = 0; i < json_array_size(rows_array) && printed; i++) {
        char number[32];
        snprintf(number, sizeof(number), "%zu", i);
        const char *what = i < (size_t)o->image.count ? o->image.items[i] : number;
        printed = print_class(what, json_array_get(rows_array, i));
    }
    if (!printed && o->json) {
        fwrite(body->data, 1, body->size, stdout);
    } else if (!printed) {
        sx_buf visible;
        sx_buf_init(&visible, 0);
        sx_buf_put_visible(&visible, body->data, body->size, "\n\t\r");
        fwrite(visible.data, 1, visible.size, stdout);
        sx_buf_deinit(&visible);
    }
    if (!printed && body->data[body->size - 1] != '\n') {
        putchar('\n');
    }
    json_decref(answer);
}

/* ---- Request ---- */

static sx_status ask(sx_invocation *inv, const char *url, sx_bytes request)
{
    const options *o = inv->options;
    int http_status = 0;
    sx_buf body, headers;
    sx_http_call call = {.url = url, .body = request, .timeout_ms = (int)o->timeout * 1000};
    sx_buf_init(&body, (size_t)o->max_response_bytes);
    sx_buf_init(&headers, MAX_HEADERS);
    sx_status status = sx_http_fetch(&call, &body, &headers, &http_status);
    if (body.failed == SX_OUT_OF_RANGE) {
        sx_status_free(status);
        status = sx_error(
            SX_RESOURCE_EXHAUSTED, "%s: the response is larger than %lld bytes; raise --%s", url,
            (long long)o->max_response_bytes, sx_option_typed(inv, "max-response-bytes"));
    } else if (sx_status_code(status) == SX_DEADLINE_EXCEEDED) {
        sx_status_free(status);
        status = sx_error(SX_UNAVAILABLE, "%s: no complete response within %lld s (--%s)", url,
                          (long long)o->timeout, sx_option_typed(inv, "timeout"));
    }
    if (status == SX_OK && http_status / 100 != 2) {
        status = refused(url, http_status, &headers, &body);
    }
    if (status == SX_OK) {
        status = check_json(url, &body);
    }
    if (status == SX_OK) {
        print_answer(o, &body);
    }
    sx_buf_deinit(&headers);
    sx_buf_deinit(&body);
    return status;
}

static sx_status run(sx_invocation *inv)
{
    const options *o = inv->options;
    const char *url = inv->words.items[0], *name = strrchr(url, '/');
    static const char *const inputs[] = {"image", "input", "request", NULL};
    SX_TRY(sx_usage(inv, sx_options_exclusive(inv, inputs)));
    if (o->image.count == 0 && o->input.count == 0 && o->request == NULL) {
        return ask(inv, url, (sx_bytes){0});
    }
    /* http://host/v1/models/flowers -> …:predict, unless the URL already has a verb */
    if (name != NULL && strchr(name, ':') == NULL) {
        size_t size = strlen(url);
        while (size > 0 && url[size - 1] == '/') {
            size--;
        }
        url = sx_arena_printf(&inv->arena, "%.*s:predict", (int)size, url);
        if (url == NULL) {
            return sx_no_memory("for the request");
        }
    }
    if (o->request != NULL) {
        char *data = NULL;
        size_t size = 0;
        SX_TRY(sx_file_read_stream(o->request, MAX_REQUEST, sx_stop_flag(), &data, &size));
        sx_status status = ask(inv, url, (sx_bytes){data, size});
        sx_free(data);
        return status;
    }
    sx_image_files images = {0};
    sx_npy_file *arrays = NULL;
    sx_buf request;
    sx_status status = SX_OK;
    SX_TRY(sx_npy_files_read(inv, &o->input, &arrays));
    sx_buf_init(&request, MAX_REQUEST);
    SX_TRY_GOTO(status, sx_image_files_read(&o->image, &images), done);
    sx_buf_putc(&request, '{');
    if (o->signature != NULL) {
        sx_buf_puts(&request, "\"signature_name\":");
        sx_json_print_string(&request, o->signature, strlen(o->signature));
        sx_buf_putc(&request, ',');
    }
    SX_TRY_GOTO(status,
                images.count > 0 ? put_images(&images, &request)
                                 : put_arrays(inv, arrays, o->input.count, &request),
                done);
    sx_buf_putc(&request, '}');
    SX_TRY_GOTO(status, sx_buf_status(&request), done);
    status = ask(inv, url, (sx_bytes){sx_buf_text(&request), request.size});
done:
    sx_buf_deinit(&request);
    sx_image_files_free(&images);
    sx_npy_files_free(arrays, o->input.count);
    return status;
}

const sx_command sx_command_query = {
    .name = "query",
    .summary = "send images or arrays to a model server",
    .words = "URL",
    .about =
        "URL is the model's: http://HOST:8501/v1/models/NAME, optionally with /versions/N. Without "
        "inputs, prints what the URL itself returns: the model's status.",
    .examples = "  sextant query http://localhost:8501/v1/models/flowers --image rose.jpg\n"
                "  sextant query http://localhost:8501/v1/models/flowers --signature tensors "
                "--input x.npy",
    .min_words = 1,
    .max_words = 1,
    SX_COMMAND_OPTIONS(rows, options),
    .defaults = &defaults,
    .run = run,
};
