/* sx_dataset: making, sharing and transforming descriptions of pipelines. */
#include "base/args.h"
#include "data/dataset.h"

#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "data/cache.h"

static const int64_t max_batch = (int64_t)1 << 24;
static const int64_t max_batch_bytes = (int64_t)1 << 40;
static const int64_t max_buffer_count = (int64_t)1 << 28;
static const int64_t max_element_bytes = (int64_t)1 << 31;

/* ---- Creation and destruction ---- */

sx_dataset *sx_dataset_retain(sx_dataset *dataset)
{
    atomic_fetch_add(&dataset->refs, 1);
    return dataset;
}

static void destroy_node(sx_dataset *node)
{
    if (node->kind == SX_NODE_SOURCE) {
        node->source->def->destroy(node->source);
    } else if (node->kind == SX_NODE_MAP && node->as.map.release != NULL) {
        node->as.map.release(node->as.map.user);
    } else if (node->kind == SX_NODE_CACHE) {
        sx_cache_destroy(node->as.cache);
    }
    sx_free(node->names);
    sx_free(node);
}

void sx_dataset_release(sx_dataset *dataset)
{
    while (dataset != NULL && atomic_fetch_sub(&dataset->refs, 1) == 1) {
        sx_dataset *parent = dataset->parent;
        destroy_node(dataset);
        dataset = parent;
    }
}

/* A copy of `parent` as a new node on top of it; does not retain the parent yet. */
static sx_status make_node(sx_node_kind kind, sx_dataset *parent, sx_dataset **out_node)
{
    sx_dataset *node = sx_alloc(1, sizeof(*node));
    if (node == NULL) {
        return sx_no_memory("for a dataset");
    }
    atomic_init(&node->refs, 1);
    node->kind = kind;
    if (parent != NULL) {
        node->schema = parent->schema;
        node->count = parent->count;
        node->source = parent->source;
        node->batch = parent->batch;
        node->class_names = parent->class_names;
        node->class_count = parent->class_count;
    }
    *out_node = node;
    return SX_OK;
}

/* Moves the caller's reference to the parent to the node. */
static void replace(sx_dataset **dataset, sx_dataset *node)
{
    node->parent = *dataset;
    *dataset = node;
}

size_t sx_data_bytes(const sx_type *type)
{
    return type->dtype == SX_STRING ? (size_t)sx_type_elems(type) * sizeof(sx_bytes)
                                    : (size_t)sx_type_bytes(type);
}

static sx_status check_component(const sx_component *component, const char *what)
{
    char text[SX_TYPE_TEXT];
    int64_t elems = sx_type_elems(&component->type);
    int64_t each = component->type.dtype == SX_STRING
                       ? (int64_t)sizeof(sx_bytes)
                       : (int64_t)sx_dtype_bytes(component->type.dtype);
    int64_t bytes;
    if (component->name == NULL || component->name[0] == '\0') {
        return sx_error(SX_INVALID_ARGUMENT, "%s: a component has no name", what);
    }
    if (elems < 0 || each == 0 || !sx_mul_i64(elems, each, &bytes) || bytes > max_element_bytes) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%s: component \"%s\" is %s; it needs a static shape of at most 2 GiB",
                        what, component->name,
                        sx_type_format(&component->type, text, sizeof(text)));
    }
    return SX_OK;
}

static sx_status check_schema(int count, const sx_component *components, const char *what)
{
    if (count < 1 || count > SX_MAX_COMPONENTS) {
        return sx_error(SX_INVALID_ARGUMENT, "%s: %d components, expected 1 to %d", what, count,
                        (int)SX_MAX_COMPONENTS);
    }
    for (int i = 0; i < count; i++) {
        SX_TRY(check_component(&components[i], what));
    }
    return SX_OK;
}

sx_status sx_hint_skip_corrupt(sx_status status)
{
    sx_status hinted =
        sx_error(sx_status_code(status), "%s (--skip-corrupt skips it)", sx_status_message(status));
    sx_status_free(status);
    return hinted;
}

sx_status sx_dataset_from_source(sx_source *source, sx_dataset **out_dataset)
{
    sx_dataset *node = NULL;
    sx_status status =
        check_schema(source->schema.count, source->schema.components, source->def->kind);
    if (status == SX_OK) {
        status = make_node(SX_NODE_SOURCE, NULL, &node);
    }
    if (status != SX_OK) {
        source->def->destroy(source);
        return status;
    }
    node->schema = source->schema;
    node->count = source->count;
    node->source = source;
    *out_dataset = node;
    return SX_OK;
}

/* ---- Queries ---- */

const sx_schema *sx_dataset_schema(const sx_dataset *dataset)
{
    return &dataset->schema;
}

int sx_dataset_find(const sx_dataset *dataset, const char *component)
{
    for (int i = 0; i < dataset->schema.count; i++) {
        if (strcmp(dataset->schema.components[i].name, component) == 0) {
            return i;
        }
    }
    return -1;
}

int64_t sx_dataset_count(const sx_dataset *dataset)
{
    return dataset->count;
}

int64_t sx_dataset_records(const sx_dataset *dataset)
{
    return dataset->source->count;
}

int64_t sx_dataset_batch_size(const sx_dataset *dataset)
{
    return dataset->batch.size;
}

const char *const *sx_dataset_class_names(const sx_dataset *dataset, int *out_count)
{
    const bool own = dataset->class_names != NULL;
    *out_count = own ? dataset->class_count : dataset->source->class_count;
    return (const char *const *)(own ? dataset->class_names : dataset->source->class_names);
}

char *sx_dataset_record_name(const sx_dataset *dataset, int64_t record, char *buffer,
                             size_t capacity)
{
    sx_buf text;
    sx_buf_init(&text, 4096);
    dataset->source->def->name_record(dataset->source, record, &text);
    size_t length = SX_MIN(text.size, capacity - 1);
    memcpy(buffer, sx_buf_text(&text), length);
    buffer[length] = '\0';
    sx_buf_deinit(&text);
    return buffer;
}

/* ---- Order ---- */

static sx_status add_order(sx_dataset **dataset, const sx_order_op *op, int64_t count)
{
    sx_dataset *node = NULL;
    SX_TRY(make_node(SX_NODE_ORDER, *dataset, &node));
    node->as.order = *op;
    node->as.order.in_count = (*dataset)->count;
    node->count = count;
    replace(dataset, node);
    return SX_OK;
}

sx_status sx_dataset_shuffle_at(sx_dataset **dataset, const sx_shuffle_args *args)
{
    SX_TAKE_ARGS(sx_shuffle_args, args);
    int64_t count = (*dataset)->count;
    if (count == SX_ENDLESS) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "shuffle: the input repeats forever; shuffle before repeat");
    }
    if (args->buffer < 0 || (args->buffer > 0 && count > max_buffer_count)) {
        return sx_error(
            SX_INVALID_ARGUMENT,
            "shuffle: buffer %lld over %lld elements; expected 0 (a permutation of all) "
            "or a positive buffer over at most %lld",
            (long long)args->buffer, (long long)count, (long long)max_buffer_count);
    }
    sx_order_op op = {.def = args->buffer == 0 ? &sx_order_permute : &sx_order_buffer,
                      .a = args->buffer,
                      .seed = args->seed,
                      .same_each_epoch = args->same_each_epoch};
    return add_order(dataset, &op, count);
}

static sx_status check_count(const char *what, int64_t count)
{
    if (count < 0) {
        return sx_error(SX_INVALID_ARGUMENT, "%s: %lld is negative", what, (long long)count);
    }
    return SX_OK;
}

sx_status sx_dataset_take(sx_dataset **dataset, int64_t count)
{
    SX_TRY(check_count("take", count));
    sx_order_op op = {.def = &sx_order_take, .a = count};
    return add_order(dataset, &op, SX_MIN(count, (*dataset)->count));
}

sx_status sx_dataset_skip(sx_dataset **dataset, int64_t count)
{
    SX_TRY(check_count("skip", count));
    int64_t in_count = (*dataset)->count;
    sx_order_op op = {.def = &sx_order_skip, .a = count};
    return add_order(dataset, &op,
                     in_count == SX_ENDLESS ? SX_ENDLESS : in_count - SX_MIN(count, in_count));
}

sx_status sx_dataset_shard(sx_dataset **dataset, int64_t shards, int64_t index)
{
    if (shards < 1 || index < 0 || index >= shards) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "shard: index %lld of %lld shards; expected 0 <= index < "
                        "shards",
                        (long long)index, (long long)shards);
    }
    int64_t count = (*dataset)->count;
    if (count != SX_ENDLESS) {
        count = index >= count ? 0 : (count - index - 1) / shards + 1;
    }
    sx_order_op op = {.def = &sx_order_shard, .a = shards, .b = index};
    return add_order(dataset, &op, count);
}

sx_status sx_dataset_repeat(sx_dataset **dataset, int64_t times)
{
    SX_TRY(check_count("repeat", times));
    int64_t in_count = (*dataset)->count, count;
    if (in_count == SX_ENDLESS) {
        return sx_error(SX_INVALID_ARGUMENT, "repeat: the input already repeats forever");
    }
    if (in_count == 0) {
        count = 0; /* repeating nothing gives nothing */
    } else if (times == 0 || !sx_mul_i64(in_count, times, &count)) {
        count = SX_ENDLESS;
    }
    sx_order_op op = {.def = &sx_order_repeat, .a = times};
    return add_order(dataset, &op, count);
}

/* ---- Map, cache ---- */

/* Copies `text` to *end and advances; the block is large enough. */
static char *put_name(char **end, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *result = memcpy(*end, text, bytes);
    *end += bytes;
    return result;
}

static sx_status copy_names(sx_dataset *node, const sx_map_args *args)
{
    size_t bytes = strlen(args->name) + 1;
    for (int i = 0; i < args->count; i++) {
        bytes += strlen(args->components[i].name) + 1;
    }
    char *end = node->names = sx_alloc(bytes, 1);
    if (end == NULL) {
        return sx_no_memory("for a map");
    }
    node->as.map.name = put_name(&end, args->name);
    for (int i = 0; i < args->count; i++) {
        node->schema.components[i] = args->components[i];
        node->schema.components[i].name = put_name(&end, args->components[i].name);
    }
    node->schema.count = args->count != 0 ? args->count : node->schema.count;
    return SX_OK;
}

sx_status sx_dataset_map_at(sx_dataset **dataset, const sx_map_args *args)
{
    SX_TAKE_ARGS(sx_map_args, args);
    if (args->name == NULL || args->fn == NULL) {
        return sx_error(SX_INVALID_ARGUMENT, "map: expected a name and a function");
    }
    if ((*dataset)->batch.size != 0) {
        return sx_error(SX_INVALID_ARGUMENT, "map \"%s\": the input is batched; map before batch",
                        args->name);
    }
    if (args->count != 0) {
        SX_TRY(check_schema(args->count, args->components, args->name));
    }
    sx_dataset *node = NULL;
    SX_TRY(make_node(SX_NODE_MAP, *dataset, &node));
    node->as.map = *args;
    sx_status status = copy_names(node, args);
    if (status != SX_OK) {
        sx_free(node);
        return status;
    }
    replace(dataset, node);
    return SX_OK;
}

sx_status sx_dataset_cache(sx_dataset **dataset, int64_t budget_bytes)
{
    if ((*dataset)->batch.size != 0) {
        return sx_error(SX_INVALID_ARGUMENT, "cache: the input is batched; cache before batch");
    }
    sx_dataset *node = NULL;
    SX_TRY(make_node(SX_NODE_CACHE, *dataset, &node));
    sx_status status =
        sx_cache_create(&node->schema, node->source->count,
                        budget_bytes > 0 ? budget_bytes : sx_ram_bytes() / 4, &node->as.cache);
    if (status != SX_OK) {
        sx_free(node);
        return status;
    }
    replace(dataset, node);
    return SX_OK;
}

/* ---- Batch ---- */

static sx_status check_batch_bytes(const sx_schema *schema, int64_t size)
{
    for (int i = 0; i < schema->count; i++) {
        int64_t each = sx_type_bytes(&schema->components[i].type), bytes;
        if (each > 0 && (!sx_mul_i64(each, size, &bytes) || bytes > max_batch_bytes)) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "batch size %lld: component \"%s\" of %lld bytes needs more than "
                            "1 TiB; use a smaller batch",
                            (long long)size, schema->components[i].name, (long long)each);
        }
    }
    return SX_OK;
}

static sx_status add_batch_dimension(sx_schema *schema)
{
    for (int i = 0; i < schema->count; i++) {
        sx_type *type = &schema->components[i].type;
        if (type->rank == SX_MAX_RANK) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "batch: component \"%s\" already has rank %d, the maximum",
                            schema->components[i].name, type->rank);
        }
        memmove(type->dims + 1, type->dims, (size_t)type->rank * sizeof(type->dims[0]));
        type->dims[0] = SX_BATCH;
        type->rank++;
    }
    return SX_OK;
}

/* Batches over `count` elements. */
static int64_t count_batches(int64_t count, const sx_batch_args *args)
{
    if (count == SX_ENDLESS) {
        return SX_ENDLESS;
    }
    return args->drop_remainder ? count / args->size
                                : count / args->size + (count % args->size != 0);
}

sx_status sx_dataset_batch_at(sx_dataset **dataset, const sx_batch_args *args)
{
    SX_TAKE_ARGS(sx_batch_args, args);
    if ((*dataset)->batch.size != 0) {
        return sx_error(SX_INVALID_ARGUMENT, "batch: the input is already batched");
    }
    if (args->size < 1 || args->size > max_batch) {
        return sx_error(SX_INVALID_ARGUMENT, "batch size %lld: expected 1 to %lld",
                        (long long)args->size, (long long)max_batch);
    }
    SX_TRY(check_batch_bytes(&(*dataset)->schema, args->size));
    sx_dataset *node = NULL;
    SX_TRY(make_node(SX_NODE_BATCH, *dataset, &node));
    sx_status status = add_batch_dimension(&node->schema);
    if (status != SX_OK) {
        sx_free(node);
        return status;
    }
    node->batch = *args;
    node->count = count_batches(node->count, args);
    replace(dataset, node);
    return SX_OK;
}
