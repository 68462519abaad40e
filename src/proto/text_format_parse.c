/* Converts the text to wire bytes and decodes those with the guard. The size of a sub-message is
 * not known when its tag is written, so five bytes are reserved for it and later filled with a
 * varint padded to that length. */
#include "proto/text_format.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "proto/descriptor.h"
#include "proto/guard.h"

enum {
    SIZE_BYTES = 5,   /* bytes of a padded size */
    MAX_FIELDS = 512, /* in a message type */
    MAX_TOKEN = 128,  /* length of a number or name */
};

struct parser {
    const char *name, *start, *at, *end;
    sx_buf *out;
    int depth;
    const ProtobufCFieldDescriptor *sought; /* by sx_text_format_line(): */
    size_t sought_index;                    /* that many of its values come before */
    const char *found;
};

struct scope {
    const ProtobufCMessageDescriptor *type;
    uint64_t seen[MAX_FIELDS / 64]; /* fields given so far */
};

static sx_status parse_message(struct parser *p, const ProtobufCMessageDescriptor *type,
                               char closing);

/* ---- Tokens ---- */

static sx_status fail(const struct parser *p, const char *format, ...) SX_PRINTF(2, 3);

/* From 1. */
static size_t line_of(const struct parser *p, const char *at, size_t *out_column)
{
    size_t line = 1, column = 1;
    for (const char *c = p->start; c < at; c++) {
        column = *c == '\n' ? 1 : column + 1;
        line += *c == '\n';
    }
    *out_column = column;
    return line;
}

static sx_status fail(const struct parser *p, const char *format, ...)
{
    size_t column;
    const size_t line = line_of(p, p->at, &column);
    char words[400];
    va_list args;
    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    return sx_error(SX_INVALID_ARGUMENT, "%s:%zu:%zu: %s", p->name, line, column, words);
}

static void skip_space(struct parser *p)
{
    while (p->at < p->end) {
        if (*p->at == '#') {
            while (p->at < p->end && *p->at != '\n') {
                p->at++;
            }
        } else if (isspace((unsigned char)*p->at)) {
            p->at++;
        } else {
            return;
        }
    }
}

/* The next character, or NUL at the end; a NUL in the text is not a token and causes an error. */
static char peek(struct parser *p)
{
    skip_space(p);
    return p->at < p->end ? *p->at : '\0';
}

static bool take(struct parser *p, char c)
{
    bool found = peek(p) == c && p->at < p->end;
    p->at += found;
    return found;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Whether `c` continues a name or number: letters, digits, '_', '.', and the sign of an exponent.
 */
static bool continues(const char *token, size_t size, char c)
{
    if (is_word(c) || c == '.') {
        return true;
    }
    bool number = size > 1 && (isdigit((unsigned char)token[0]) || token[0] == '.');
    bool hex = number && tolower((unsigned char)token[1]) == 'x';
    return (c == '+' || c == '-') && number && !hex &&
           tolower((unsigned char)token[size - 1]) == 'e';
}

static sx_status take_token(struct parser *p, char out[MAX_TOKEN])
{
    size_t size = 0;
    skip_space(p);
    const char *from = p->at;
    while (from < p->end && size < MAX_TOKEN && continues(out, size, *from)) {
        out[size++] = *from++;
    }
    if (size == 0 || size == MAX_TOKEN) {
        return fail(p, size == 0 ? "expected a name or a value" : "word too long");
    }
    out[size] = '\0';
    p->at = from;
    return SX_OK;
}

/* ---- Strings ---- */

/* Reads 1 to `most` digits of `base`; returns the value, or -1. */
static int64_t take_digits(struct parser *p, int base, int most)
{
    int64_t value = 0;
    int count = 0;
    for (; count < most && p->at < p->end; count++, p->at++) {
        char c = (char)tolower((unsigned char)*p->at);
        int digit = isdigit((unsigned char)c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
        if (digit >= base) {
            break;
        }
        value = value * base + digit;
    }
    return count == 0 ? -1 : value;
}

/* Reads the part of an escape after the backslash. */
static sx_status take_escape(struct parser *p)
{
    static const char letters[] = "ntrabfv'\"\\?", values[] = "\n\t\r\a\b\f\v'\"\\?";
    char c = p->at < p->end ? *p->at : '\0';
    const char *letter = c != '\0' ? strchr(letters, c) : NULL;
    if (letter != NULL) {
        sx_buf_putc(p->out, values[letter - letters]);
        p->at++;
        return SX_OK;
    }
    bool octal = c >= '0' && c <= '7', unicode = c == 'u' || c == 'U';
    p->at += !octal && c != '\0';
    int64_t value = octal      ? take_digits(p, 8, 3)
                    : c == 'x' ? take_digits(p, 16, 2)
                    : unicode  ? take_digits(p, 16, c == 'u' ? 4 : 8)
                               : -1;
    if (value < 0 || (!unicode && value > 255) || value > 0x10ffff) {
        return fail(p, "unknown or out-of-range escape");
    }
    if (unicode) {
        char bytes[4];
        sx_buf_append(p->out, bytes, (size_t)(sx_utf8_put(bytes, (uint32_t)value) - bytes));
    } else {
        sx_buf_putc(p->out, (char)value);
    }
    return SX_OK;
}

static sx_status take_quoted(struct parser *p)
{
    char quote = *p->at++;
    while (p->at < p->end && *p->at != quote) {
        char c = *p->at++;
        if (c == '\n') {
            p->at--;
            return fail(p, "unterminated string: missing %c before the end of the line", quote);
        }
        if (c == '\\') {
            SX_TRY(take_escape(p));
        } else {
            sx_buf_putc(p->out, c);
        }
    }
    return take(p, quote) ? SX_OK : fail(p, "unterminated string");
}

/* ---- Tags and sizes ---- */

static void put_tag(struct parser *p, const ProtobufCFieldDescriptor *field)
{
    sx_wire_append_varint(p->out, (uint64_t)field->id << 3 | sx_proto_scalar_of(field->type).wire);
}

/* Reserves bytes for a size; returns their offset. */
static size_t open_size(struct parser *p)
{
    size_t at = p->out->size;
    sx_buf_append(p->out, "\x80\x80\x80\x80", SIZE_BYTES);
    return at;
}

static void close_size(struct parser *p, size_t at)
{
    if (p->out->failed) {
        return;
    }
    size_t size = p->out->size - at - SIZE_BYTES;
    for (int i = 0; i < SIZE_BYTES; i++) {
        p->out->data[at + (size_t)i] =
            (char)((size >> (7 * i) & 0x7f) | (i + 1 < SIZE_BYTES ? 0x80 : 0));
    }
}

/* ---- Values ---- */

struct integer_range {
    bool is_signed, zigzag;
    uint64_t most;     /* maximum of a positive value */
    uint64_t most_neg; /* maximum magnitude of a negative value */
};

static struct integer_range range_of(ProtobufCType type)
{
    bool is_signed = type == PROTOBUF_C_TYPE_INT32 || type == PROTOBUF_C_TYPE_SINT32 ||
                     type == PROTOBUF_C_TYPE_SFIXED32 || type == PROTOBUF_C_TYPE_INT64 ||
                     type == PROTOBUF_C_TYPE_SINT64 || type == PROTOBUF_C_TYPE_SFIXED64 ||
                     type == PROTOBUF_C_TYPE_ENUM;
    bool wide = sx_proto_scalar_of(type).struct_bytes == 8;
    bool zigzag = type == PROTOBUF_C_TYPE_SINT32 || type == PROTOBUF_C_TYPE_SINT64;
    uint64_t most = wide ? UINT64_MAX : UINT32_MAX;
    return is_signed ? (struct integer_range){true, zigzag, most / 2, most / 2 + 1}
                     : (struct integer_range){false, false, most, 0};
}

/* Writes an integer with the field's wire type. */
static void put_integer(struct parser *p, const ProtobufCFieldDescriptor *field, uint64_t bits)
{
    if (range_of(field->type).zigzag) {
        bits = bits << 1 ^ (bits >> 63 ? UINT64_MAX : 0);
    }
    switch (sx_proto_scalar_of(field->type).wire) {
    case SX_WIRE_VARINT:
        sx_wire_append_varint(p->out, bits);
        break;
    case SX_WIRE_FIXED32:
        sx_buf_append(p->out, &(uint32_t){(uint32_t)bits}, 4);
        break;
    default:
        sx_buf_append(p->out, &bits, 8);
        break;
    }
}

static sx_status parse_integer(struct parser *p, const ProtobufCFieldDescriptor *field)
{
    struct integer_range range = range_of(field->type);
    char token[MAX_TOKEN], *end;
    bool negative = take(p, '-');
    const char *at = p->at;
    SX_TRY(take_token(p, token));
    errno = 0;
    unsigned long long value = strtoull(token, &end, 0);
    if (!isdigit((unsigned char)token[0]) || *end != '\0') {
        p->at = at;
        return fail(p, "%s: expected an integer, got '%s'", field->name, token);
    }
    if (errno != 0 || value > (negative ? range.most_neg : range.most)) {
        p->at = at;
        return fail(p, "%s%s is out of range for %s", negative ? "-" : "", token, field->name);
    }
    put_integer(p, field, negative ? -(uint64_t)value : value);
    return SX_OK;
}

static sx_status parse_float(struct parser *p, const ProtobufCFieldDescriptor *field)
{
    char token[MAX_TOKEN], *end;
    bool negative = take(p, '-');
    const char *at = p->at;
    SX_TRY(take_token(p, token));
    bool word = isalpha((unsigned char)token[0]);
    double value = strtod(token, &end);
    bool known = strcasecmp(token, "inf") == 0 || strcasecmp(token, "infinity") == 0 ||
                 strcasecmp(token, "nan") == 0;
    if (!word && (*end == 'f' || *end == 'F') && end > token) {
        end++;
    }
    if ((word && !known) || end == token || *end != '\0') {
        p->at = at;
        return fail(p, "%s: expected a number, got '%s'", field->name, token);
    }
    value = negative ? -value : value;
    if (field->type == PROTOBUF_C_TYPE_FLOAT) {
        /* Parse as float directly: via double it would be rounded twice. */
        float narrow = strtof(token, NULL);
        narrow = negative ? -narrow : narrow;
        sx_buf_append(p->out, &narrow, sizeof narrow);
    } else {
        sx_buf_append(p->out, &value, sizeof value);
    }
    return SX_OK;
}

static sx_status parse_bool(struct parser *p, const ProtobufCFieldDescriptor *field)
{
    static const char *const words[][2] = {
        {"false", "true"}, {"False", "True"}, {"f", "t"}, {"0", "1"}};
    char token[MAX_TOKEN];
    const char *at = p->at;
    SX_TRY(take_token(p, token));
    for (size_t i = 0; i < 2 * SX_COUNT(words); i++) {
        if (strcmp(token, words[i / 2][i % 2]) == 0) {
            sx_wire_append_varint(p->out, i % 2);
            return SX_OK;
        }
    }
    p->at = at;
    return fail(p, "%s: expected true or false, got '%s'", field->name, token);
}

static sx_status parse_enum(struct parser *p, const ProtobufCFieldDescriptor *field)
{
    char first = peek(p), token[MAX_TOKEN];
    if (first == '-' || isdigit((unsigned char)first)) {
        return parse_integer(p, field);
    }
    const char *at = p->at;
    SX_TRY(take_token(p, token));
    const ProtobufCEnumValue *value =
        protobuf_c_enum_descriptor_get_value_by_name(field->descriptor, token);
    if (value == NULL) {
        p->at = at;
        return fail(p, "'%s' is not a value of %s", token,
                    ((const ProtobufCEnumDescriptor *)field->descriptor)->short_name);
    }
    sx_wire_append_varint(p->out, (uint64_t)(int64_t)value->value);
    return SX_OK;
}

static sx_status parse_string(struct parser *p, const ProtobufCFieldDescriptor *field)
{
    if (peek(p) != '"' && peek(p) != '\'') {
        return fail(p, "%s: expected a quoted string", field->name);
    }
    size_t at = open_size(p);
    while (peek(p) == '"' || peek(p) == '\'') {
        SX_TRY(take_quoted(p));
    }
    close_size(p, at);
    return SX_OK;
}

static sx_status parse_submessage(struct parser *p, const ProtobufCFieldDescriptor *field)
{
    char closing = take(p, '{') ? '}' : take(p, '<') ? '>' : '\0';
    if (closing == '\0') {
        return fail(p, "%s is a message: expected '{'", field->name);
    }
    size_t at = open_size(p);
    SX_TRY(parse_message(p, field->descriptor, closing));
    close_size(p, at);
    return SX_OK;
}

static sx_status parse_value(struct parser *p, const ProtobufCFieldDescriptor *field)
{
    if (field == p->sought && p->found == NULL && p->sought_index-- == 0) {
        skip_space(p);
        p->found = p->at;
    }
    put_tag(p, field);
    switch (field->type) {
    case PROTOBUF_C_TYPE_MESSAGE:
        return parse_submessage(p, field);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
        return parse_string(p, field);
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE:
        return parse_float(p, field);
    case PROTOBUF_C_TYPE_BOOL:
        return parse_bool(p, field);
    case PROTOBUF_C_TYPE_ENUM:
        return parse_enum(p, field);
    default:
        return parse_integer(p, field);
    }
}

/* ---- Fields ---- */

static bool is_seen(const struct scope *scope, unsigned index)
{
    return scope->seen[index / 64] >> (index % 64) & 1;
}

/* A singular field may occur once, and only one field of a oneof. */
static sx_status mark_seen(struct parser *p, struct scope *scope,
                           const ProtobufCFieldDescriptor *field)
{
    const ProtobufCMessageDescriptor *type = scope->type;
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *other = &type->fields[i];
        bool same_choice = (field->flags & other->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0 &&
                           field->quantifier_offset == other->quantifier_offset;
        if ((other == field || same_choice) && is_seen(scope, i)) {
            return fail(
                p, other == field ? "%s is given twice" : "%s is given after %s of the same oneof",
                field->name, other->name);
        }
    }
    unsigned index = (unsigned)(field - type->fields);
    scope->seen[index / 64] |= (uint64_t)1 << (index % 64);
    return SX_OK;
}

static sx_status parse_list(struct parser *p, const ProtobufCFieldDescriptor *field)
{
    if (take(p, ']')) {
        return SX_OK;
    }
    do {
        SX_TRY(parse_value(p, field));
    } while (take(p, ','));
    return take(p, ']') ? SX_OK : fail(p, "%s: expected ',' or ']' in the list", field->name);
}

static sx_status parse_field(struct parser *p, struct scope *scope)
{
    char name[MAX_TOKEN];
    if (peek(p) == '[') {
        return fail(p, "extensions and Any are not supported");
    }
    const char *at = p->at;
    SX_TRY(take_token(p, name));
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(scope->type, name);
    if (field == NULL) {
        p->at = at;
        return fail(p, "%s has no field '%s'", scope->type->short_name, name);
    }
    bool repeated = field->label == PROTOBUF_C_LABEL_REPEATED;
    if (!repeated) {
        SX_TRY(mark_seen(p, scope, field));
    }
    if (!take(p, ':') && field->type != PROTOBUF_C_TYPE_MESSAGE) {
        return fail(p, "expected ':' after %s", name);
    }
    SX_TRY(repeated && take(p, '[') ? parse_list(p, field) : parse_value(p, field));
    if (!take(p, ',')) {
        take(p, ';');
    }
    return SX_OK;
}

/* Parses fields up to `closing`, or to the end of the text if it is NUL. */
static sx_status parse_message(struct parser *p, const ProtobufCMessageDescriptor *type,
                               char closing)
{
    struct scope scope = {.type = type};
    if (p->depth == SX_PROTO_MAX_DEPTH) {
        return fail(p, "messages nested deeper than %d levels", SX_PROTO_MAX_DEPTH);
    }
    if (type->n_fields > MAX_FIELDS) {
        return fail(p, "%s has more than %d fields", type->short_name, MAX_FIELDS);
    }
    p->depth++;
    for (;;) {
        skip_space(p);
        if (p->at == p->end || *p->at == closing) {
            break;
        }
        SX_TRY(parse_field(p, &scope));
    }
    p->depth--;
    if (closing != '\0' && !take(p, closing)) {
        return fail(p, "unterminated %s: expected '%c'", type->short_name, closing);
    }
    return SX_OK;
}

sx_status sx_text_format_parse(const ProtobufCMessageDescriptor *type, sx_bytes text,
                               const char *name, ProtobufCMessage **out_message)
{
    if (text.size > SX_TEXT_FORMAT_MAX_BYTES) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "%s: text of %zu bytes; the limit is %d", name,
                        text.size, SX_TEXT_FORMAT_MAX_BYTES);
    }
    sx_buf wire;
    sx_buf_init(&wire, INT_MAX);
    const char *start = text.size > 0 ? text.data : "";
    struct parser p = {
        .name = name, .start = start, .at = start, .end = start + text.size, .out = &wire};
    sx_status status = parse_message(&p, type, '\0');
    if (status == SX_OK && p.at < p.end) {
        status = fail(&p, "expected a field name");
    }
    if (status == SX_OK) {
        status = sx_buf_status(&wire);
    }
    if (status == SX_OK) {
        status = sx_proto_unpack(type, (sx_bytes){sx_buf_text(&wire), wire.size}, NULL, name,
                                 out_message);
    }
    sx_buf_deinit(&wire);
    return status;
}

size_t sx_text_format_line(const ProtobufCMessageDescriptor *type,
                           const ProtobufCMessageDescriptor *holder, const char *field,
                           size_t index, sx_bytes text)
{
    sx_buf wire;
    size_t column;
    sx_buf_init(&wire, INT_MAX);
    const char *start = text.size > 0 ? text.data : "";
    struct parser p = {.name = "",
                       .start = start,
                       .at = start,
                       .end = start + text.size,
                       .out = &wire,
                       .sought = protobuf_c_message_descriptor_get_field_by_name(holder, field),
                       .sought_index = index};
    sx_status_free(parse_message(&p, type, '\0'));
    sx_buf_deinit(&wire);
    return p.found != NULL ? line_of(&p, p.found, &column) : 0;
}
