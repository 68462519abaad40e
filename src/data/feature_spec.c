/* See feature_spec.h. */
#include "data/feature_spec.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"

static bool is_name(const char *name)
{
    enum { MAX_NAME = 64 };
    size_t size = name != NULL ? strlen(name) : 0;
    bool begins = size > 0 && ((*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
                               *name == '_');
    return begins && size <= MAX_NAME &&
           size == strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-.");
}

/* The dtypes of features, and the integers that they hold. */
static const struct {
    sx_dtype dtype;
    double low, high;
} ranges[] = {
    {SX_F32, -HUGE_VAL, HUGE_VAL},
    {SX_I32, INT32_MIN, INT32_MAX},
    {SX_I64, -0x1p53, 0x1p53},
    {SX_U8, 0, UINT8_MAX},
    {SX_BOOL, 0, 1},
};

bool sx_dtype_holds(sx_dtype dtype, double value)
{
    for (size_t i = 0; i < SX_COUNT(ranges); i++) {
        if (ranges[i].dtype == dtype) {
            return dtype == SX_F32 ||
                   (value >= ranges[i].low && value <= ranges[i].high && value == floor(value));
        }
    }
    return false;
}

static sx_status check_dtype(const char *what, const char *name, sx_dtype dtype)
{
    return sx_dtype_holds(dtype, 0) || dtype == SX_STRING
               ? SX_OK
               : sx_error(SX_INVALID_ARGUMENT,
                          "%s \"%s\" is %s, expected float32, int32, int64, uint8, bool or string",
                          what, name, sx_dtype_name(dtype));
}

sx_status sx_feature_spec_check(const sx_feature_spec *spec, const char *what, sx_type *out_type,
                                sx_type *out_mask)
{
    sx_type type = {.dtype = spec->dtype != SX_DTYPE_NONE ? spec->dtype : SX_F32};
    if (!is_name(spec->name)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%s \"%.200s\": expected a name of at most 64 letters, digits, \"_\", "
                        "\"-\" and \".\" that begins with a letter or \"_\"",
                        what, spec->name != NULL ? spec->name : "");
    }
    SX_TRY(check_dtype(what, spec->name, type.dtype));
    if (spec->image) {
        const bool plain = spec->max_length == 0 && spec->dims[0] == 0 && !spec->optional;
        if (!plain || (spec->dtype != SX_DTYPE_NONE && spec->dtype != SX_STRING)) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "%s \"%s\" is an image: its dtype, dimensions, max_length and optional "
                            "are not set; the size is the model's .image",
                            what, spec->name);
        }
        type.dtype = SX_STRING;
    }
    if (spec->max_length < 0) {
        return sx_error(SX_INVALID_ARGUMENT, "%s \"%s\": max_length is %" PRId64, what, spec->name,
                        spec->max_length);
    }
    if (spec->max_length > 0) {
        type.dims[type.rank++] = spec->max_length;
    }
    for (int i = 0; i < SX_MAX_FEATURE_RANK && spec->dims[i] != 0; i++) {
        if (spec->dims[i] < 0) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "%s \"%s\": dimension %d is %" PRId64
                            "; give the dimensions of one example, without the batch",
                            what, spec->name, i, spec->dims[i]);
        }
        type.dims[type.rank++] = spec->dims[i];
    }
    int64_t bytes = type.dtype == SX_STRING ? sx_type_elems(&type) : sx_type_bytes(&type);
    if (bytes < 0 || bytes > INT32_MAX) {
        return sx_error(SX_INVALID_ARGUMENT, "%s \"%s\": an example has more than 2 GiB", what,
                        spec->name);
    }
    if (type.dtype == SX_STRING ? spec->padding_value != 0 || spec->default_value != 0
                                : spec->default_text != NULL) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%s \"%s\": default_value and padding_value are for numbers, default_text "
                        "is for strings, which are padded with empty ones",
                        what, spec->name);
    }
    if (type.dtype != SX_STRING && (!sx_dtype_holds(type.dtype, spec->padding_value) ||
                                    !sx_dtype_holds(type.dtype, spec->default_value))) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%s \"%s\": the padding value %g and the default value %g must be of its "
                        "type, %s",
                        what, spec->name, spec->padding_value, spec->default_value,
                        sx_dtype_name(type.dtype));
    }
    *out_type = type;
    *out_mask = sx_type_make(SX_BOOL, 1, &spec->max_length);
    return SX_OK;
}
