/* The reflection service; see grpc_reflection.h. */
#include "serve/grpc_reflection.h"

#include <string.h>

#include "base/checked.h"
#include "net/grpc.h"
#include "proto/wire.h"

/* FileDescriptorSet: file 1. */
static const uint8_t descriptors[] = {
#include "serve/api_descriptors.inc"
};

/* The parts of a descriptor that have names, which are their field 1. */
enum kind { FILE_KIND, MESSAGE, ENUM, SERVICE, LEAF };

static const struct child {
    enum kind parent;
    uint32_t number;
    enum kind kind;
} children[] = {
    {FILE_KIND, 4, MESSAGE}, {FILE_KIND, 5, ENUM},  {FILE_KIND, 6, SERVICE},
    {MESSAGE, 2, LEAF},      {MESSAGE, 3, MESSAGE}, {MESSAGE, 4, ENUM},
    {MESSAGE, 8, LEAF},      {ENUM, 2, LEAF},       {SERVICE, 2, LEAF},
};

static bool is_child(enum kind parent, uint32_t number, enum kind *out)
{
    for (size_t i = 0; i < SX_COUNT(children); i++) {
        if (children[i].parent == parent && children[i].number == number) {
            *out = children[i].kind;
            return true;
        }
    }
    return false;
}

/* The text of a descriptor's field; empty if it has none. */
static sx_bytes text_of(sx_bytes descriptor, uint32_t number)
{
    sx_wire wire = sx_wire_over(descriptor);
    const uint8_t *at;
    sx_bytes text = {"", 0};
    return sx_wire_find(&wire, number, &at, &text) == SX_WIRE_FOUND ? text : (sx_bytes){"", 0};
}

/* Takes `name` and the dot after it off the symbol, unless the symbol ends with it. */
static bool take_name(sx_bytes *symbol, sx_bytes name)
{
    const char *text = symbol->data;
    if (symbol->size < name.size || memcmp(text, name.data, name.size) != 0) {
        return false;
    }
    if (symbol->size > name.size && text[name.size] != '.') {
        return false;
    }
    const size_t taken = SX_MIN(name.size + 1, symbol->size);
    *symbol = (sx_bytes){text + taken, symbol->size - taken};
    return true;
}

/* Whether the descriptor has a part of that name, whose parts are separated by dots. As deep as our
 * own descriptors are nested. */
static bool has_symbol(sx_bytes descriptor, enum kind parent, sx_bytes symbol)
{
    sx_wire wire = sx_wire_over(descriptor);
    sx_wire_field field;
    enum kind kind;
    while (sx_wire_more(&wire) && sx_wire_next(&wire, &field)) {
        sx_bytes rest = symbol;
        if (is_child(parent, field.number, &kind) && take_name(&rest, text_of(field.value, 1)) &&
            (rest.size == 0 || has_symbol(field.value, kind, rest))) {
            return true;
        }
    }
    return false;
}

static bool file_has_symbol(sx_bytes file, sx_bytes symbol)
{
    sx_bytes rest = symbol;
    return take_name(&rest, text_of(file, 2)) && rest.size > 0 && has_symbol(file, FILE_KIND, rest);
}

static bool file_has_name(sx_bytes file, sx_bytes name)
{
    return sx_bytes_compare(text_of(file, 1), name) == 0;
}

static bool put_file(bool (*is_wanted)(sx_bytes file, sx_bytes text), sx_bytes text, sx_buf *out)
{
    sx_wire wire = sx_wire_over((sx_bytes){descriptors, sizeof(descriptors)});
    sx_wire_field file;
    while (sx_wire_more(&wire) && sx_wire_next(&wire, &file)) {
        if (is_wanted(file.value, text)) {
            const size_t at = sx_wire_begin(out, 4);
            sx_wire_append_bytes(out, 1, file.value);
            sx_wire_end(out, at);
            return true;
        }
    }
    return false;
}

static void put_services(sx_buf *out)
{
    sx_wire wire = sx_wire_over((sx_bytes){descriptors, sizeof(descriptors)});
    sx_wire_field file, field;
    const size_t list = sx_wire_begin(out, 6);
    while (sx_wire_more(&wire) && sx_wire_next(&wire, &file)) {
        sx_wire parts = sx_wire_over(file.value);
        while (sx_wire_more(&parts) && sx_wire_next(&parts, &field)) {
            if (field.number == 6) {
                const sx_bytes package = text_of(file.value, 2), name = text_of(field.value, 1);
                const size_t service = sx_wire_begin(out, 1);
                sx_wire_append_head(out, 1, package.size + 1 + name.size);
                sx_buf_append(out, package.data, package.size);
                sx_buf_putc(out, '.');
                sx_buf_append(out, name.data, name.size);
                sx_wire_end(out, service);
            }
        }
    }
    sx_wire_end(out, list);
}

static void put_error(sx_buf *out, sx_code code, const char *text)
{
    const size_t at = sx_wire_begin(out, 7);
    sx_wire_append_number(out, 1, code);
    sx_wire_append_text(out, 2, text);
    sx_wire_end(out, at);
}

sx_status sx_grpc_reflect(sx_bytes request, sx_buf *out)
{
    sx_wire wire = sx_wire_over(request);
    sx_wire_field field, asked = {.number = 0, .value = {"", 0}};
    sx_bytes host = {"", 0};
    while (sx_wire_more(&wire)) {
        if (!sx_wire_next(&wire, &field) || (field.number <= 7 && field.type != SX_WIRE_BYTES)) {
            return sx_error(SX_INVALID_ARGUMENT, "malformed ServerReflectionRequest");
        }
        host = field.number == 1 ? field.value : host;
        asked = field.number >= 3 && field.number <= 7 ? field : asked;
    }
    sx_wire_append_bytes(out, 1, host);
    sx_wire_append_bytes(out, 2, request);
    switch (asked.number) {
    case 3:
        if (!put_file(file_has_name, asked.value, out)) {
            put_error(out, SX_NOT_FOUND, "File not found.");
        }
        break;
    case 4:
        if (!put_file(file_has_symbol, asked.value, out)) {
            put_error(out, SX_NOT_FOUND, "Symbol not found.");
        }
        break;
    case 5:
    case 6: /* proto3 has none */
        put_error(out, SX_NOT_FOUND, "Extension not found.");
        break;
    case 7:
        put_services(out);
        break;
    default:
        put_error(out, SX_INVALID_ARGUMENT, "Invalid request: it asks for nothing");
    }
    return sx_buf_status(out);
}

static void on_sent(void *user, sx_http_exchange *exchange)
{
    (void)user;
    sx_http_request_await(exchange);
}

/* Answers the messages that are all there. What is left when the stream ends, or is longer than a
 * message may be, is an error. */
static void answer_some(sx_http_exchange *exchange)
{
    enum { MESSAGE_BYTES = 1024 };
    const sx_bytes body = sx_http_request_body(exchange);
    const bool whole = sx_http_request_is_whole(exchange);
    sx_bytes rest = body, message;
    sx_buf inflated, out;
    sx_status status = SX_OK;
    sx_buf_init(&inflated, 0);
    sx_buf_init(&out, SIZE_MAX / 4); /* limited by the budget */
    inflated.budget = out.budget = sx_http_request_budget(exchange);
    while (status == SX_OK && rest.size > 0 &&
           (whole || sx_grpc_has_message(rest) || rest.size > SX_GRPC_PREFIX + MESSAGE_BYTES)) {
        sx_buf_reset(&inflated);
        status = sx_grpc_unframe(sx_grpc_take_message(&rest), sx_grpc_is_gzip(exchange),
                                 MESSAGE_BYTES, &inflated, &message);
        if (status == SX_OK) {
            const size_t at = sx_grpc_message_begin(&out);
            status = sx_grpc_reflect(message, &out);
            sx_grpc_message_end(&out, at);
        }
    }
    sx_buf_deinit(&inflated);
    sx_http_request_take(exchange, body.size - rest.size);
    if (whole || status != SX_OK) {
        sx_grpc_respond(exchange, status, (sx_bytes){0}, &out);
    } else if (out.size > 0) {
        sx_grpc_send(exchange, &out, on_sent);
    } else {
        sx_buf_deinit(&out);
        sx_http_request_await(exchange);
    }
}

bool sx_grpc_reflection_is_stream(const sx_http_head *head)
{
    return sx_http_text_is(head->path,
                           "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo") ||
           sx_http_text_is(head->path,
                           "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo");
}

bool sx_grpc_reflection_handle(sx_http_exchange *exchange)
{
    const bool is_stream = sx_grpc_reflection_is_stream(sx_http_request_head(exchange));
    if (is_stream) {
        answer_some(exchange);
    }
    return is_stream;
}
