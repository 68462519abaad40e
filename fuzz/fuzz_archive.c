/* Archives: names that are handed out are safe, contents stay within the limits. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buffer.h"
#include "io/archive.h"
#include "io/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const sx_archive_limits limits = {1000, 1 << 20, 1 << 21};
    sx_archive *archive = NULL;
    sx_bytes bytes = {data, size};
    sx_status status = sx_archive_open_bytes(bytes, "fuzz", &limits, &archive);
    bool more = status == SX_OK;
    while (more && status == SX_OK) {
        sx_archive_member member = {0};
        status = sx_archive_next(archive, &member, &more);
        if (status == SX_OK && more) {
            assert(sx_path_is_safe(member.name, strlen(member.name)));
            sx_buf content;
            sx_buf_init(&content, 1 << 22);
            status = sx_archive_read(archive, &content);
            assert(content.size <= (1 << 20) + (1 << 16));
            sx_buf_deinit(&content);
        }
    }
    sx_status_free(status);
    sx_archive_close(archive);
    return 0;
}
