#include "data/element.h"

#include "base/memory.h"

sx_status sx_element_reader_init(sx_element_reader *reader, sx_dataset *data)
{
    *reader = (sx_element_reader){.begun = false};
    SX_TRY(sx_plan_init(&reader->plan, data));
    reader->begun = true;
    SX_TRY(sx_producer_init(&reader->producer, &reader->plan));
    const sx_schema *schema = &reader->plan.element;
    for (int c = 0; c < schema->count; c++) {
        const sx_type *type = &schema->components[c].type;
        reader->tensors[c] = (sx_tensor){*type, sx_alloc(sx_data_bytes(type) + 1, 1)};
        if (reader->tensors[c].data == NULL) {
            return sx_no_memory("for an element");
        }
    }
    return SX_OK;
}

void sx_element_reader_deinit(sx_element_reader *reader)
{
    if (reader->begun) {
        sx_producer_deinit(&reader->producer, &reader->plan);
    }
    for (int c = 0; c < SX_MAX_COMPONENTS; c++) {
        sx_free(reader->tensors[c].data);
    }
    sx_plan_deinit(&reader->plan);
    *reader = (sx_element_reader){.begun = false};
}

sx_status sx_element_read(sx_element_reader *reader, int64_t record, const sx_tensor **out_tensors)
{
    void *destinations[SX_MAX_COMPONENTS];
    for (int c = 0; c < SX_MAX_COMPONENTS; c++) {
        destinations[c] = reader->tensors[c].data;
    }
    SX_TRY(sx_producer_run(&reader->producer, &reader->plan, 0, record, destinations));
    *out_tensors = reader->tensors;
    return SX_OK;
}

bool sx_record_file(const sx_dataset *data, int64_t record, sx_buf *out)
{
    const sx_source *source = data->source;
    return source->def->file != NULL && source->def->file(source, record, out);
}
