#include "proto/text_format.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "proto/descriptor.h"
#include "proto/guard.h"

static void print_escaped(sx_buf *out, const void *bytes, size_t size)
{
    static const char letters[] = "\n\r\t\"'\\", names[] = "nrt\"'\\";
    const unsigned char *c = bytes;
    sx_buf_putc(out, '"');
    for (size_t i = 0; i < size; i++) {
        const char *letter = c[i] != '\0' ? strchr(letters, c[i]) : NULL;
        if (letter != NULL) {
            sx_buf_printf(out, "\\%c", names[letter - letters]);
        } else if (c[i] < 0x20 || c[i] >= 0x7f) {
            sx_buf_printf(out, "\\%03o", c[i]);
        } else {
            sx_buf_putc(out, (char)c[i]);
        }
    }
    sx_buf_putc(out, '"');
}

/* Prints with the fewest digits, from `least` to `most`, that read back as the same number. */
static void print_float(sx_buf *out, double value, int least, int most)
{
    char text[64];
    if (isnan(value)) {
        sx_buf_puts(out, "nan");
        return;
    }
    for (int digits = least; digits <= most; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        double back = most == 9 ? (double)strtof(text, NULL) : strtod(text, NULL);
        if (back == value) {
            break;
        }
    }
    sx_buf_puts(out, text);
}

static void print_enum(sx_buf *out, const ProtobufCEnumDescriptor *type, int value)
{
    const ProtobufCEnumValue *known = protobuf_c_enum_descriptor_get_value(type, value);
    if (known != NULL) {
        sx_buf_puts(out, known->name);
    } else {
        sx_buf_printf(out, "%d", value);
    }
}

static void print_scalar(sx_buf *out, const ProtobufCFieldDescriptor *field, const void *value)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        sx_buf_printf(out, "%" PRId32, *(const int32_t *)value);
        break;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        sx_buf_printf(out, "%" PRIu32, *(const uint32_t *)value);
        break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        sx_buf_printf(out, "%" PRId64, *(const int64_t *)value);
        break;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        sx_buf_printf(out, "%" PRIu64, *(const uint64_t *)value);
        break;
    case PROTOBUF_C_TYPE_FLOAT:
        print_float(out, (double)*(const float *)value, 6, 9);
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        print_float(out, *(const double *)value, 15, 17);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        sx_buf_puts(out, *(const protobuf_c_boolean *)value ? "true" : "false");
        break;
    case PROTOBUF_C_TYPE_ENUM:
        print_enum(out, field->descriptor, *(const int *)value);
        break;
    case PROTOBUF_C_TYPE_STRING: {
        const char *text = *(char *const *)value;
        print_escaped(out, text, text != NULL ? strlen(text) : 0);
        break;
    }
    case PROTOBUF_C_TYPE_BYTES: {
        const ProtobufCBinaryData *bytes = value;
        print_escaped(out, bytes->data, bytes->len);
        break;
    }
    case PROTOBUF_C_TYPE_MESSAGE:
        break; /* print_message */
    }
}

/* sx_proto_sort_maps() has limited the recursion to SX_PROTO_MAX_DEPTH levels. */
static void print_message(sx_buf *out, const ProtobufCMessage *message, int indent)
{
    for (unsigned f = 0; f < message->descriptor->n_fields; f++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[f];
        size_t count = sx_proto_count(message, field);
        for (size_t i = 0; i < count; i++) {
            const void *value = sx_proto_value(message, field, i);
            sx_buf_printf(out, "%*s%s", indent, "", field->name);
            if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
                sx_buf_puts(out, " {\n");
                print_message(out, *(ProtobufCMessage *const *)value, indent + 2);
                sx_buf_printf(out, "%*s}\n", indent, "");
            } else {
                sx_buf_puts(out, ": ");
                print_scalar(out, field, value);
                sx_buf_putc(out, '\n');
            }
        }
    }
}

sx_status sx_text_format_print(ProtobufCMessage *message, sx_buf *out)
{
    SX_TRY(sx_proto_sort_maps(message));
    print_message(out, message, 0);
    return sx_buf_status(out);
}
