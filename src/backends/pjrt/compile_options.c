/* See compile_options.h. */
#include "backends/pjrt/compile_options.h"

#include <string.h>

#include "base/byte_order.h"

static void put_varint(sx_buf *buf, uint64_t v)
{
    for (; v >= 0x80; v >>= 7) {
        sx_buf_putc(buf, (char)(v | 0x80));
    }
    sx_buf_putc(buf, (char)v);
}

static void put_number(sx_buf *buf, unsigned field, int64_t v)
{
    put_varint(buf, field << 3);
    put_varint(buf, (uint64_t)v);
}

/* Appends a length-delimited field: a message, or packed numbers; fails if writing these failed. */
static void put_bytes(sx_buf *buf, unsigned field, const sx_buf *bytes)
{
    buf->failed = buf->failed != 0 ? buf->failed : bytes->failed;
    put_varint(buf, field << 3 | 2);
    put_varint(buf, bytes->size);
    sx_buf_append(buf, sx_buf_text(bytes), bytes->size);
}

static void put_text(sx_buf *buf, unsigned field, const char *text)
{
    put_varint(buf, field << 3 | 2);
    put_varint(buf, strlen(text));
    sx_buf_append(buf, text, strlen(text));
}

static void put_assignment(sx_buf *buf, int replicas, const int *ids)
{
    sx_buf packed, devices, assignment;
    sx_buf_init(&packed, 0);
    sx_buf_init(&devices, 0);
    sx_buf_init(&assignment, 0);
    for (int i = 0; i < replicas; i++) {
        put_varint(&packed, (uint64_t)(int64_t)ids[i]);
    }
    put_bytes(&devices, 1, &packed);
    put_number(&assignment, 1, replicas);
    put_number(&assignment, 2, 1);
    put_bytes(&assignment, 3, &devices);
    put_bytes(buf, 9, &assignment);
    sx_buf_deinit(&packed);
    sx_buf_deinit(&devices);
    sx_buf_deinit(&assignment);
}

static void put_double(sx_buf *buf, unsigned field, double v)
{
    uint64_t bits;
    char bytes[sizeof(bits)];
    memcpy(&bits, &v, sizeof(bits));
    sx_store_le64(bytes, bits);
    put_varint(buf, field << 3 | 1);
    sx_buf_append(buf, bytes, sizeof(bytes));
}

static void put_override(sx_buf *buf, const sx_pjrt_named *option)
{
    sx_buf value, entry;
    sx_buf_init(&value, 0);
    sx_buf_init(&entry, 0);
    switch (option->type) {
    case SX_PJRT_BOOL:
        put_number(&value, 2, option->boolean);
        break;
    case SX_PJRT_INT64:
        put_number(&value, 3, option->int64);
        break;
    case SX_PJRT_FLOAT:
        put_double(&value, 4, (double)option->real);
        break;
    default:
        put_text(&value, 1, option->string);
        break;
    }
    put_text(&entry, 1, option->name);
    put_bytes(&entry, 2, &value);
    put_bytes(buf, 7, &entry);
    sx_buf_deinit(&value);
    sx_buf_deinit(&entry);
}

void sx_pjrt_put_compile_options(sx_buf *buf, int replicas, const int *ids,
                                 const sx_pjrt_settings *xla, bool unfused)
{
    sx_buf build;
    sx_buf_init(&build, 0);
    put_number(&build, 1, -1);
    put_number(&build, 4, replicas);
    put_number(&build, 5, 1);
    if (replicas > 1) {
        put_assignment(&build, replicas, ids);
    } else {
        put_number(buf, 4, 1);
    }
    put_bytes(buf, 3, &build);
    for (size_t i = 0; xla != NULL && i < xla->n; i++) {
        put_override(buf, &xla->rows[i]);
    }
    if (unfused) {
        sx_pjrt_named fusion = sx_pjrt_setting("xla_disable_hlo_passes", SX_PJRT_STRING);
        fusion.string = "fusion";
        put_override(buf, &fusion);
    }
    sx_buf_deinit(&build);
}
