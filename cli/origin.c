#include "origin.h"

#include "image/decode.h"

sx_status sx_origin_init(sx_origin *o, sx_dataset *data)
{
    *o = (sx_origin){.data = data, .image = sx_dataset_find(data, "image")};
    sx_buf_init(&o->file, 1 << 16);
    o->label = sx_dataset_find(data, "label");
    o->label = o->label >= 0 ? o->label : sx_dataset_find(data, "labels");
    if (o->label >= 0) {
        const sx_type *type = &sx_dataset_schema(data)->components[o->label].type;
        o->label_is_integer = type->dtype == SX_I64 || type->dtype == SX_I32;
        if (type->rank != 0 || (!o->label_is_integer && type->dtype != SX_F32)) {
            o->label = -1;
        }
    }
    return sx_element_reader_init(&o->reader, data);
}

void sx_origin_deinit(sx_origin *o)
{
    sx_element_reader_deinit(&o->reader);
    sx_buf_deinit(&o->file);
}

const char *sx_origin_file(sx_origin *o, int64_t record)
{
    sx_buf raw;
    sx_buf_init(&raw, 1 << 14);
    bool found = sx_record_file(o->data, record, &raw);
    sx_buf_reset(&o->file);
    sx_buf_put_utf8(&o->file, sx_buf_text(&raw), raw.size);
    sx_buf_deinit(&raw);
    return found ? sx_buf_text(&o->file) : NULL;
}

sx_status sx_origin_label(sx_origin *o, int64_t record, int64_t *out_class, float *out_value)
{
    const sx_tensor *tensors;
    SX_TRY(sx_element_read(&o->reader, record, &tensors));
    const sx_tensor *label = &tensors[o->label];
    if (label->type.dtype == SX_I64) {
        *out_class = *(const int64_t *)label->data;
    } else if (label->type.dtype == SX_I32) {
        *out_class = *(const int32_t *)label->data;
    } else {
        *out_value = *(const float *)label->data;
    }
    return SX_OK;
}

sx_status sx_origin_picture(sx_origin *o, int64_t record, sx_image *image)
{
    if (o->image < 0) {
        return sx_error(SX_NOT_FOUND, "the data has no images");
    }
    const sx_tensor *tensors;
    SX_TRY(sx_element_read(&o->reader, record, &tensors));
    const sx_tensor *t = &tensors[o->image];
    if (t->type.dtype == SX_STRING && t->type.rank == 0) {
        return sx_image_decode(*(const sx_bytes *)t->data, NULL, image);
    }
    if (t->type.dtype != SX_U8 || t->type.rank < 2 || t->type.rank > 3) {
        return sx_error(SX_NOT_FOUND, "the data has no images");
    }
    sx_image_deinit(image);
    *image = sx_image_view(t->data, (int)t->type.dims[0], (int)t->type.dims[1],
                           t->type.rank == 3 ? (int)t->type.dims[2] : 1);
    return SX_OK;
}
