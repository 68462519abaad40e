/* The guard: what it lets through protobuf-c unpacks, within the memory that the guard allowed, and
 * packs again; packing what was unpacked from that gives the same bytes. The first byte picks the
 * type. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "proto/guard.h"
#include "proto/saved_model.pb-c.h"
#include "proto/tensor_bundle.pb-c.h"
#include "proto/saved_object_graph.pb-c.h"
#include "proto/trackable_object_graph.pb-c.h"

static void pack_twice(const ProtobufCMessageDescriptor *type, ProtobufCMessage *message)
{
    sx_buf first, second;
    ProtobufCMessage *again = NULL;
    sx_proto_limits wide = {.max_expansion = 10000};
    sx_buf_init(&first, 0);
    sx_buf_init(&second, 0);
    sx_status status = sx_proto_pack(message, &first);
    assert(status == SX_OK);
    status =
        sx_proto_unpack(type, (sx_bytes){sx_buf_text(&first), first.size}, &wide, "packed", &again);
    assert(status == SX_OK);
    status = sx_proto_pack(again, &second);
    assert(status == SX_OK);
    assert(first.size == second.size &&
           memcmp(sx_buf_text(&first), sx_buf_text(&second), first.size) == 0);
    sx_proto_free(again);
    sx_buf_deinit(&second);
    sx_buf_deinit(&first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const ProtobufCMessageDescriptor *const types[] = {
        &tensorflow__saved_model__descriptor, &tensorflow__graph_def__descriptor,
        &tensorflow__bundle_entry_proto__descriptor,
        &tensorflow__trackable_object_graph__descriptor,
        &tensorflow__saved_object_graph__descriptor};
    if (size == 0) {
        return 0;
    }
    const ProtobufCMessageDescriptor *type = types[data[0] % 4];
    ProtobufCMessage *message = NULL;
    sx_status status =
        sx_proto_unpack(type, (sx_bytes){data + 1, size - 1}, NULL, "fuzz", &message);
    if (status == SX_OK) {
        pack_twice(type, message);
        sx_proto_free(message);
    }
    sx_status_free(status);
    return 0;
}
