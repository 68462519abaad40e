/* See jpeg_error.h. */
#include "image/jpeg_error.h"

#include <string.h>

#include <jerror.h>

#include "base/checked.h"
#include "base/memory.h"

/* Every other fatal error means a damaged file: DATA_LOSS. */
static const struct code_row {
    int jpeg;
    sx_code code;
} codes[] = {
    {JERR_OUT_OF_MEMORY, SX_RESOURCE_EXHAUSTED},
    {JERR_NO_BACKING_STORE, SX_RESOURCE_EXHAUSTED},
    {JERR_WIDTH_OVERFLOW, SX_RESOURCE_EXHAUSTED},
    {JERR_IMAGE_TOO_BIG, SX_RESOURCE_EXHAUSTED},
    {JERR_NO_SOI, SX_DATA_LOSS},
    {JERR_CONVERSION_NOTIMPL, SX_INVALID_ARGUMENT},
    {JERR_SOF_UNSUPPORTED, SX_UNIMPLEMENTED},
    {JERR_BAD_PRECISION, SX_UNIMPLEMENTED},
    {JERR_ARITH_NOTIMPL, SX_UNIMPLEMENTED},
    {JERR_CCIR601_NOTIMPL, SX_UNIMPLEMENTED},
    {JERR_FRACT_SAMPLE_NOTIMPL, SX_UNIMPLEMENTED},
    {JERR_NOTIMPL, SX_UNIMPLEMENTED},
};

static sx_code code_of(int jpeg)
{
    for (size_t i = 0; i < SX_COUNT(codes); i++) {
        if (codes[i].jpeg == jpeg) {
            return codes[i].code;
        }
    }
    return SX_DATA_LOSS;
}

sx_status sx_jpeg_error_status(const sx_jpeg_error *error, const char *prefix, const char *doing)
{
    return error->manager.msg_code == JERR_OUT_OF_MEMORY
               ? sx_no_memory("%s", doing)
               : sx_error(error->code, "%s: %s", prefix, error->message);
}

static void exit_by_jump(j_common_ptr info)
{
    sx_jpeg_error *error = (sx_jpeg_error *)info->err;
    info->err->format_message(info, error->message);
    error->code = code_of(info->err->msg_code);
    longjmp(error->jump, 1);
}

/* Level −1 is a warning, higher levels are traces. */
static void count_warning(j_common_ptr info, int level)
{
    if (level < 0) {
        info->err->num_warnings++;
    }
}

static void print_nothing(j_common_ptr info)
{
    (void)info;
}

struct jpeg_error_mgr *sx_jpeg_error_init(sx_jpeg_error *error)
{
    memset(error, 0, sizeof(*error));
    struct jpeg_error_mgr *manager = jpeg_std_error(&error->manager);
    manager->error_exit = exit_by_jump;
    manager->emit_message = count_warning;
    manager->output_message = print_nothing;
    return manager;
}
