/* See signatures.h. */
#include "client/signatures.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "client/messages.h"
#include "proto/guard.h"
#include "proto/meta_graph.pb-c.h"
#include "proto/tensor_value.h"
#include "proto/wire.h"
#include "serve/json_scan.h"

static sx_status no_metadata(const char *where)
{
    return sx_error(SX_DATA_LOSS, "%s: an answer that is no description of a model", where);
}

/* A dimension of a signature: -1 on the wire if it is unknown. */
static int64_t dim_of(int64_t size)
{
    return size < 0 ? SX_UNKNOWN_DIM : size;
}

/* ---- JSON ---- */

static sx_dtype dtype_named(const char *name)
{
    for (sx_dtype dtype = SX_F32; name != NULL && dtype <= SX_U64; dtype++) {
        if (strcmp(sx_serve_dtype_name(dtype), name) == 0) {
            return dtype;
        }
    }
    return SX_DTYPE_NONE;
}

/* An integer of protobuf's JSON: 3 or "3". */
static int64_t integer_of(const json_t *value)
{
    return json_is_string(value) ? strtoll(json_string_value(value), NULL, 10)
                                 : (int64_t)json_integer_value(value);
}

static void read_json_tensor(const json_t *json, sx_serve_tensor *out)
{
    const json_t *shape = json_object_get(json, "tensor_shape"),
                 *dims = json_object_get(shape, "dim");
    const size_t rank = json_array_size(dims);
    const char *name = json_string_value(json_object_get(json, "name"));
    out->tensor_name = name != NULL ? name : "";
    out->type.dtype = dtype_named(json_string_value(json_object_get(json, "dtype")));
    out->unknown_rank = json_is_true(json_object_get(shape, "unknown_rank")) || rank > SX_MAX_RANK;
    for (size_t i = 0; !out->unknown_rank && i < rank; i++) {
        out->type.dims[out->type.rank++] =
            dim_of(integer_of(json_object_get(json_array_get(dims, i), "size")));
    }
}

static sx_status read_json_tensors(json_t *json, sx_arena *arena, size_t *out_count,
                                   const sx_serve_tensor **out)
{
    sx_serve_tensor *tensors = sx_arena_array(arena, json_object_size(json) + 1, sx_serve_tensor);
    size_t count = 0;
    const char *name;
    json_t *value;
    if (tensors == NULL) {
        return sx_no_memory("for a signature");
    }
    json_object_foreach(json, name, value)
    {
        sx_serve_tensor *tensor = &tensors[count++];
        read_json_tensor(value, tensor);
        tensor->name = sx_arena_strdup(arena, name);
        tensor->tensor_name = sx_arena_strdup(arena, tensor->tensor_name);
        if (tensor->name == NULL || tensor->tensor_name == NULL) {
            return sx_no_memory("for a signature");
        }
    }
    *out_count = count;
    *out = tensors;
    return SX_OK;
}

static sx_status read_json_signature(const char *name, const json_t *json, sx_arena *arena,
                                     sx_serve_signature *out)
{
    const char *method = json_string_value(json_object_get(json, "method_name"));
    out->name = sx_arena_strdup(arena, name);
    out->method = sx_arena_strdup(arena, method != NULL ? method : "");
    if (out->name == NULL || out->method == NULL) {
        return sx_no_memory("for a signature");
    }
    SX_TRY(
        read_json_tensors(json_object_get(json, "inputs"), arena, &out->input_count, &out->inputs));
    return read_json_tensors(json_object_get(json, "outputs"), arena, &out->output_count,
                             &out->outputs);
}

static sx_status read_json(const json_t *json, const char *where, sx_arena *arena,
                           sx_client_signatures *out)
{
    json_t *map = json_object_get(
        json_object_get(json_object_get(json, "metadata"), "signature_def"), "signature_def");
    const char *name;
    json_t *value;
    if (!json_is_object(map)) {
        return no_metadata(where);
    }
    sx_serve_signature *rows = sx_arena_array(arena, json_object_size(map) + 1, sx_serve_signature);
    if (rows == NULL) {
        return sx_no_memory("for signatures");
    }
    *out = (sx_client_signatures){
        .version = integer_of(json_object_get(json_object_get(json, "model_spec"), "version")),
        .rows = rows};
    json_object_foreach(map, name, value)
    {
        SX_TRY(read_json_signature(name, value, arena, &rows[out->count++]));
    }
    return SX_OK;
}

sx_status sx_client_signatures_of_json(sx_bytes text, const char *where, sx_arena *arena,
                                       sx_client_signatures *out)
{
    json_t *json = json_loadb(text.data, text.size, 0, NULL);
    sx_status status = read_json(json, where, arena, out);
    json_decref(json);
    return status;
}

/* ---- Protobuf ---- */

static sx_status read_proto_tensor(const char *name, const Tensorflow__TensorInfo *info,
                                   sx_arena *arena, sx_serve_tensor *out)
{
    const Tensorflow__TensorShapeProto *shape = info->tensor_shape;
    out->name = sx_arena_strdup(arena, name);
    out->tensor_name = sx_arena_strdup(arena, info->name != NULL ? info->name : "");
    if (out->name == NULL || out->tensor_name == NULL) {
        return sx_no_memory("for a signature");
    }
    out->type.dtype = sx_tf_plain_dtype((int)info->dtype);
    out->unknown_rank = shape != NULL && (shape->unknown_rank || shape->n_dim > SX_MAX_RANK);
    for (size_t i = 0; shape != NULL && !out->unknown_rank && i < shape->n_dim; i++) {
        out->type.dims[out->type.rank++] = dim_of(shape->dim[i]->size);
    }
    return SX_OK;
}

static sx_status read_proto_signature(const char *name, const Tensorflow__SignatureDef *def,
                                      sx_arena *arena, sx_serve_signature *out)
{
    sx_serve_tensor *inputs = sx_arena_array(arena, def->n_inputs + 1, sx_serve_tensor);
    sx_serve_tensor *outputs = sx_arena_array(arena, def->n_outputs + 1, sx_serve_tensor);
    *out = (sx_serve_signature){.name = name,
                                .method = sx_arena_strdup(arena, def->method_name),
                                .input_count = def->n_inputs,
                                .output_count = def->n_outputs,
                                .inputs = inputs,
                                .outputs = outputs};
    if (inputs == NULL || outputs == NULL || out->method == NULL) {
        return sx_no_memory("for a signature");
    }
    for (size_t i = 0; i < def->n_inputs; i++) {
        SX_TRY(read_proto_tensor(def->inputs[i]->key, def->inputs[i]->value, arena, &inputs[i]));
    }
    for (size_t i = 0; i < def->n_outputs; i++) {
        SX_TRY(read_proto_tensor(def->outputs[i]->key, def->outputs[i]->value, arena, &outputs[i]));
    }
    return SX_OK;
}

/* An entry of the map of signatures. */
static sx_status read_entry(sx_bytes entry, const char *where, sx_arena *arena,
                            sx_serve_signature *out)
{
    sx_bytes key, value;
    ProtobufCMessage *def = NULL;
    if (!sx_client_field(entry, 1, &key) || !sx_client_field(entry, 2, &value)) {
        return no_metadata(where);
    }
    const char *name = sx_arena_strndup(arena, key.data, key.size);
    if (name == NULL) {
        return sx_no_memory("for a signature");
    }
    SX_TRY(sx_proto_unpack(&tensorflow__signature_def__descriptor, value, NULL, where, &def));
    sx_status status =
        read_proto_signature(name, (const Tensorflow__SignatureDef *)def, arena, out);
    sx_proto_free(def);
    return status;
}

/* model_spec 1 {version 2 {value 1}}, metadata 2, a map with one entry: "signature_def", an Any
 * with a SignatureDefMap, whose field 1 is the map. */
sx_status sx_client_signatures_of_proto(sx_bytes message, const char *where, sx_arena *arena,
                                        sx_client_signatures *out)
{
    sx_bytes spec, version, entry, any, map, value;
    const uint8_t *at;
    uint64_t number = 0;
    size_t count = 0;
    if (!sx_client_field(message, 1, &spec) || !sx_client_field(spec, 2, &version) ||
        !sx_client_field(message, 2, &entry) || !sx_client_field(entry, 2, &any) ||
        !sx_client_field(any, 2, &map)) {
        return no_metadata(where);
    }
    sx_wire wire = sx_wire_over(version);
    sx_wire_field field;
    while (sx_wire_more(&wire)) {
        if (!sx_wire_next(&wire, &field) ||
            (field.number == 1 && !sx_wire_number(&field, &number))) {
            return no_metadata(where);
        }
    }
    for (wire = sx_wire_over(map); sx_wire_find(&wire, 1, &at, &value) == SX_WIRE_FOUND;) {
        count++;
    }
    sx_serve_signature *rows = sx_arena_array(arena, count + 1, sx_serve_signature);
    if (rows == NULL) {
        return sx_no_memory("for signatures");
    }
    *out = (sx_client_signatures){.version = (int64_t)number, .rows = rows};
    for (wire = sx_wire_over(map); sx_wire_find(&wire, 1, &at, &value) == SX_WIRE_FOUND;) {
        SX_TRY(read_entry(value, where, arena, &rows[out->count++]));
    }
    return SX_OK;
}
