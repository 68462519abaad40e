/* Text format: what parses prints, and the print parses and prints to the same text. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "proto/graph.pb-c.h"
#include "proto/guard.h"
#include "proto/text_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const ProtobufCMessageDescriptor *type = &tensorflow__graph_def__descriptor;
    ProtobufCMessage *message = NULL, *again = NULL;
    sx_status status = sx_text_format_parse(type, (sx_bytes){data, size}, "fuzz", &message);
    if (status == SX_OK) {
        sx_buf first, second;
        sx_buf_init(&first, 0);
        sx_buf_init(&second, 0);
        status = sx_text_format_print(message, &first);
        assert(status == SX_OK);
        status =
            sx_text_format_parse(type, (sx_bytes){sx_buf_text(&first), first.size}, "own", &again);
        assert(status == SX_OK);
        status = sx_text_format_print(again, &second);
        assert(status == SX_OK && strcmp(sx_buf_text(&first), sx_buf_text(&second)) == 0);
        sx_buf_deinit(&second);
        sx_buf_deinit(&first);
    }
    sx_status_free(status);
    sx_proto_free(again);
    sx_proto_free(message);
    return 0;
}
