/* What every front end does with a model's signatures; see model.h. */
#include "serve/model.h"

#include <string.h>

#include <sextant/complex.h>

#include "base/checked.h"
#include "serve/json_scan.h"

sx_bytes sx_serve_signature_name(sx_bytes name)
{
    static const char default_name[] = "serving_default";
    return name.size > 0 ? name : (sx_bytes){default_name, sizeof(default_name) - 1};
}

const sx_serve_signature *sx_serve_find_signature(const sx_serve_signature *signatures,
                                                  size_t count, sx_bytes name)
{
    for (size_t i = 0; i < count; i++) {
        if (sx_bytes_is(sx_serve_signature_name(name), signatures[i].name)) {
            return &signatures[i];
        }
    }
    return NULL;
}

sx_status sx_serve_no_signature(sx_bytes name)
{
    enum { SHOWN_BYTES = 60 };
    const sx_bytes wanted = sx_serve_signature_name(name);
    return sx_error(SX_FAILED_PRECONDITION, "Serving signature key \"%.*s\" not found.",
                    (int)SX_MIN(wanted.size, (size_t)SHOWN_BYTES), (const char *)wanted.data);
}

bool sx_serve_holds_bytes(const char *name)
{
    static const char end[] = "_bytes";
    const size_t size = strlen(name), end_size = sizeof(end) - 1;
    return size >= end_size && strcmp(name + size - end_size, end) == 0;
}

const char *sx_serve_dtype_name(sx_dtype dtype)
{
    static const struct {
        sx_dtype dtype;
        const char *name;
    } names[] = {
        {SX_F32, "DT_FLOAT"},       {SX_F64, "DT_DOUBLE"}, {SX_I32, "DT_INT32"},
        {SX_U8, "DT_UINT8"},        {SX_I16, "DT_INT16"},  {SX_I8, "DT_INT8"},
        {SX_STRING, "DT_STRING"},   {SX_I64, "DT_INT64"},  {SX_BOOL, "DT_BOOL"},
        {SX_BF16, "DT_BFLOAT16"},   {SX_U16, "DT_UINT16"}, {SX_F16, "DT_HALF"},
        {SX_U32, "DT_UINT32"},      {SX_U64, "DT_UINT64"}, {SX_C64, "DT_COMPLEX64"},
        {SX_C128, "DT_COMPLEX128"},
    };
    for (size_t i = 0; i < SX_COUNT(names); i++) {
        if (names[i].dtype == dtype) {
            return names[i].name;
        }
    }
    return "DT_INVALID";
}
