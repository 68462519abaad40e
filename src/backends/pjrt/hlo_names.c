/* See hlo_names.h. */
#include "backends/pjrt/hlo_names.h"

#include "proto/wire.h"

typedef struct reading {
    sx_hlo_name_visit *visit;
    void *user;
    bool is_over;
} reading;

/* Field `number` of a message, which is bytes; empty if there is none. */
static bool text_of(sx_bytes message, uint32_t number, sx_bytes *out)
{
    sx_wire at = sx_wire_over(message);
    const uint8_t *where;
    *out = (sx_bytes){"", 0};
    const sx_wire_found found = sx_wire_find(&at, number, &where, out);
    return found == SX_WIRE_FOUND || found == SX_WIRE_NO_MORE;
}

static bool read_instruction(sx_bytes message, reading *r)
{
    sx_bytes name, metadata, op_name;
    if (!text_of(message, 1, &name) || !text_of(message, 7, &metadata) ||
        !text_of(metadata, 2, &op_name)) {
        return false;
    }
    r->is_over = r->is_over || !r->visit(r->user, name, op_name);
    return true;
}

/* Calls `read` with each field `number` of the message. */
static bool each(sx_bytes message, uint32_t number, bool (*read)(sx_bytes, reading *), reading *r)
{
    sx_wire at = sx_wire_over(message);
    sx_wire_field f;
    while (sx_wire_more(&at) && !r->is_over) {
        if (!sx_wire_next(&at, &f) ||
            (f.number == number && (f.type != SX_WIRE_BYTES || !read(f.value, r)))) {
            return false;
        }
    }
    return true;
}

static bool read_computation(sx_bytes message, reading *r)
{
    return each(message, 2, read_instruction, r);
}

static bool read_module(sx_bytes message, reading *r)
{
    return each(message, 3, read_computation, r);
}

sx_status sx_hlo_names_visit(const void *data, size_t size, sx_hlo_name_visit *visit, void *user)
{
    reading r = {.visit = visit, .user = user};
    return each((sx_bytes){data, size}, 1, read_module, &r)
               ? SX_OK
               : sx_error(SX_DATA_LOSS,
                          "the plugin's optimized program is not a valid HloModuleProto");
}
