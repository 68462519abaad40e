/* sextant query: sends requests to a model server over REST or gRPC. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "client_args.h"
#include "serve/json_scan.h"

typedef struct options {
    const char *method;
    int64_t retries, max_response_bytes;
    bool json;
    sx_client_args client_args;
    sx_call_args call_args;
} options;

static const sx_option rows[] = {
    {"method", SX_OPTION_CHOICE, SX_OPT(options, method),
     "what to ask for; default: predict if there is something to send, otherwise status",
     .choices = "predict|classify|regress|status|metadata"},
    {"json", SX_OPTION_FLAG, SX_OPT(options, json), "print the response unchanged"},
    SX_CALL_ARGS_ROWS(options),
    SX_CLIENT_ARGS_ROWS(options),
    {"retries", SX_OPTION_INT, SX_OPT(options, retries),
     "how often to try again if the request could not be sent, or the server is overloaded or not "
     "ready; a request that may have run is not sent again, unless for status or metadata",
     "N", .min = 0, .max = 100},
    {"max-response-bytes", SX_OPTION_SIZE, SX_OPT(options, max_response_bytes),
     "refuse larger responses", "SIZE", .min = 1, .max = 0x1p40},
};
static const options defaults = {.client_args.timeout = 60,
                                 .call_args.protocol = "rest",
                                 .retries = 2,
                                 .max_response_bytes = 64 << 20};

static const sx_option_hint hints[] = {
    {"deadline", "use --timeout"},
    {"examples", "use --request"},
};

enum { MAX_REQUEST = 1 << 30 };

/* ---- The response ---- */

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
static sx_status check_json(const char *url, sx_bytes body)
{
    sx_json json;
    sx_json_init(&json, body, NULL);
    sx_status status = sx_json_skip(&json);
    if (status == SX_OK) {
        status = sx_json_finish(&json);
    }
    if (status == SX_OK) {
        return SX_OK;
    }
    sx_status_free(status);
    return sx_error(SX_INVALID_ARGUMENT, "%s: not a JSON response: \"%.100s\"%s", url,
                    (const char *)body.data, body.size > 100 ? "..." : "");
}

static void print_answer(const options *o, sx_bytes body)
{
    const char *text = body.data;
    json_t *answer = o->json ? NULL : json_loadb(text, body.size, 0, NULL);
    const json_t *rows_array = json_object_get(answer, "predictions");
    bool printed = json_array_size(rows_array) > 0;
    for (size_t i = 0; i < json_array_size(rows_array) && printed; i++) {
        char number[32];
        snprintf(number, sizeof(number), "%zu", i);
        const char *what =
            i < (size_t)o->call_args.image.count ? o->call_args.image.items[i] : number;
        printed = print_class(what, json_array_get(rows_array, i));
    }
    if (!printed && o->json) {
        fwrite(text, 1, body.size, stdout);
    } else if (!printed) {
        sx_buf visible;
        sx_buf_init(&visible, 0);
        sx_buf_put_visible(&visible, text, body.size, "\n\t\r");
        fwrite(visible.data, 1, visible.size, stdout);
        sx_buf_deinit(&visible);
    }
    if (!printed && text[body.size - 1] != '\n') {
        putchar('\n');
    }
    json_decref(answer);
}

/* ---- The call ---- */

/* Errors of limits name the option that sets them. */
static sx_status name_option(sx_invocation *inv, const char *url, sx_status status)
{
    const options *o = inv->options;
    sx_status named = status;
    if (sx_status_code(status) == SX_DEADLINE_EXCEEDED) {
        named = sx_error(SX_UNAVAILABLE, "%s: no complete response within %lld s (--%s)", url,
                         (long long)o->client_args.timeout, sx_option_typed(inv, "timeout"));
    } else if (sx_status_code(status) == SX_ABORTED) { /* whose exit code is that of a training */
        named = sx_error(SX_FAILED_PRECONDITION, "%s", sx_status_message(status));
    } else if (strstr(sx_status_message(status), "the response is larger than") != NULL) {
        named = sx_error(SX_RESOURCE_EXHAUSTED, "%s; raise --%s", sx_status_message(status),
                         sx_option_typed(inv, "max-response-bytes"));
    }
    if (named != status) {
        sx_status_free(status);
    }
    return named;
}

static sx_client_method method_of(const options *o, bool sends)
{
    static const struct {
        const char *name;
        sx_client_method method;
    } names[] = {{"predict", SX_CLIENT_PREDICT},
                 {"classify", SX_CLIENT_CLASSIFY},
                 {"regress", SX_CLIENT_REGRESS},
                 {"status", SX_CLIENT_STATUS},
                 {"metadata", SX_CLIENT_METADATA}};
    for (size_t i = 0; o->method != NULL && i < SX_COUNT(names); i++) {
        if (strcmp(names[i].name, o->method) == 0) {
            return names[i].method;
        }
    }
    return sends ? SX_CLIENT_PREDICT : SX_CLIENT_STATUS;
}

static sx_status ask(sx_invocation *inv, const char *url, const sx_client_model *model,
                     sx_client_method method, sx_bytes request)
{
    const options *o = inv->options;
    sx_client_options call;
    sx_client *client = NULL;
    sx_client_answer *answer = NULL;
    SX_TRY(sx_client_args_options(inv, &o->client_args, &call));
    call.protocol = strcmp(o->call_args.protocol, "grpc") == 0 ? SX_CLIENT_GRPC : SX_CLIENT_REST;
    call.retries = o->retries > 0 ? (int)o->retries : -1;
    call.max_answer_bytes = o->max_response_bytes;
    SX_TRY(sx_client_open(url, &call, &client));
    sx_status status = sx_client_ask(client, method, model, request, &answer);
    if (status == SX_OK) {
        status = check_json(url, sx_client_answer_json(answer));
    }
    if (status == SX_OK) {
        print_answer(o, sx_client_answer_json(answer));
    }
    sx_client_answer_free(answer);
    sx_client_close(client);
    return name_option(inv, url, status);
}

static sx_status run(sx_invocation *inv)
{
    const options *o = inv->options;
    const bool sends = sx_call_args_send(&o->call_args);
    const sx_client_method method = method_of(o, sends);
    const bool asks = method == SX_CLIENT_STATUS || method == SX_CLIENT_METADATA;
    if (asks == sends) {
        return sx_usage(inv, sx_error(SX_INVALID_ARGUMENT,
                                      sends ? "--method %s sends nothing"
                                            : "--method %s needs --request or another input",
                                      o->method));
    }
    const char *url = inv->words.items[0];
    sx_client_model model;
    sx_buf request;
    SX_TRY(sx_call_args_target(inv, &o->call_args, &url, &model));
    sx_buf_init(&request, MAX_REQUEST);
    sx_status status =
        sends
            ? sx_call_args_request(inv, &o->call_args,
                                   method == SX_CLIENT_PREDICT ? "instances" : "examples", &request)
            : SX_OK;
    if (status == SX_OK) {
        status = ask(inv, url, &model, method, (sx_bytes){sx_buf_text(&request), request.size});
    }
    sx_buf_deinit(&request);
    return status;
}

const sx_command sx_command_query = {
    .name = "query",
    .summary = "send images, arrays, texts or JSON to a model server",
    .words = "URL",
    .about =
        "URL is the model's: http://HOST:8501/v1/models/NAME, optionally with /versions/N or "
        "/labels/L; or the server's, HOST:PORT or unix:PATH, with --model. Without inputs, prints "
        "the status of the model's versions.",
    .examples = "  sextant query http://localhost:8501/v1/models/flowers --image rose.jpg\n"
                "  sextant query localhost:8500 --protocol grpc --model flowers --label stable "
                "--image rose.jpg\n"
                "  sextant query http://localhost:8501/v1/models/flowers --signature tensors "
                "--input x.npy\n"
                "  echo '[{\"age\": 39}]' | sextant query http://localhost:8501/v1/models/census "
                "--method classify --request -\n"
                "  sextant query https://models.example.org/v1/models/flowers --method metadata "
                "--credentials key.json",
    .min_words = 1,
    .max_words = 1,
    SX_COMMAND_OPTIONS(rows, options),
    SX_COMMAND_HINTS(hints),
    .defaults = &defaults,
    .run = run,
};
