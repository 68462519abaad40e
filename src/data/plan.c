#include "data/plan.h"

#include <string.h>

#include "base/checked.h"
#include "base/map.h"
#include "base/memory.h"
#include "data/cache.h"

/* ---- Flattening ---- */

/* Everything that determines the sequence of a pipeline, as text; its hash is the cursor's
 * fingerprint. Paths are excluded: a data set may be moved. */
static void describe_node(const sx_dataset *node, sx_buf *text)
{
    const sx_order_op *op = &node->as.order;
    switch (node->kind) {
    case SX_NODE_SOURCE:
        sx_buf_printf(text, "source %s %lld;", node->source->def->kind, (long long)node->count);
        break;
    case SX_NODE_ORDER:
        sx_buf_printf(text, "%s %lld %lld %llu %d;", op->def->name, (long long)op->a,
                      (long long)op->b, (unsigned long long)op->seed, op->same_each_epoch);
        break;
    case SX_NODE_MAP:
        sx_buf_printf(text, "map %s %llu;", node->as.map.name,
                      (unsigned long long)node->as.map.fingerprint);
        break;
    case SX_NODE_CACHE:
        sx_buf_puts(text, "cache;");
        break;
    case SX_NODE_BATCH:
        sx_buf_printf(text, "batch %lld %d;", (long long)node->batch.size,
                      node->batch.drop_remainder);
        break;
    }
}

static sx_status add_order(sx_plan_order *order, const sx_dataset *node)
{
    if (order->count == SX_MAX_STAGES) {
        return sx_error(SX_INVALID_ARGUMENT, "dataset: more than %d order transforms in a row",
                        (int)SX_MAX_STAGES);
    }
    order->ops[order->count++] = &node->as.order;
    return SX_OK;
}

static sx_status add_stage(sx_plan *plan, const sx_dataset *node)
{
    if (plan->stage_count == SX_MAX_STAGES) {
        return sx_error(SX_INVALID_ARGUMENT, "dataset: more than %d maps and caches",
                        (int)SX_MAX_STAGES);
    }
    plan->stages[plan->stage_count++] = node;
    return SX_OK;
}

static void add_batch(sx_plan *plan, const sx_dataset *node)
{
    plan->batched = true;
    plan->batch_size = node->batch.size;
    plan->batches = node->count;
    plan->elements = node->parent->count;
    plan->element = node->parent->schema;
}

static sx_status add_node(sx_plan *plan, const sx_dataset *node)
{
    switch (node->kind) {
    case SX_NODE_ORDER:
        return add_order(node->batch.size != 0 ? &plan->outer : &plan->inner, node);
    case SX_NODE_MAP:
    case SX_NODE_CACHE:
        return add_stage(plan, node);
    case SX_NODE_BATCH:
        add_batch(plan, node);
        return SX_OK;
    case SX_NODE_SOURCE:
        return SX_OK;
    }
    return SX_OK;
}

static void reverse_stages(sx_plan *plan)
{
    for (int i = 0, j = plan->stage_count - 1; i < j; i++, j--) {
        const sx_dataset *node = plan->stages[i];
        plan->stages[i] = plan->stages[j];
        plan->stages[j] = node;
    }
}

static bool has_strings(const sx_schema *schema)
{
    for (int i = 0; i < schema->count; i++) {
        if (schema->components[i].type.dtype == SX_STRING) {
            return true;
        }
    }
    return false;
}

static sx_strings_life strings_life(const sx_plan *plan)
{
    for (int i = 0; i < plan->stage_count; i++) {
        const sx_dataset *node = plan->stages[i];
        /* if the cache is full, the input is passed on */
        if (node->kind == SX_NODE_CACHE || (has_strings(&node->schema) && !node->as.map.views)) {
            return SX_STRINGS_ELEMENT;
        }
    }
    return plan->dataset->source->def->stable ? SX_STRINGS_SOURCE : SX_STRINGS_READ;
}

sx_status sx_plan_init(sx_plan *plan, sx_dataset *dataset)
{
    memset(plan, 0, sizeof(*plan));
    plan->dataset = sx_dataset_retain(dataset);
    plan->batch_size = 1;
    plan->batches = plan->elements = plan->total = dataset->count;
    plan->element = dataset->schema;
    sx_buf text;
    sx_buf_init(&text, 1 << 20);
    sx_status status = SX_OK;
    for (const sx_dataset *node = dataset; node != NULL && status == SX_OK; node = node->parent) {
        status = add_node(plan, node);
        describe_node(node, &text);
    }
    if (status == SX_OK) {
        status = sx_buf_status(&text);
    }
    reverse_stages(plan);
    plan->strings_life = strings_life(plan);
    plan->fingerprint = sx_hash64(sx_buf_text(&text), text.size);
    sx_buf_deinit(&text);
    if (status != SX_OK) {
        sx_plan_deinit(plan);
    }
    return status;
}

void sx_plan_deinit(sx_plan *plan)
{
    for (int i = 0; i < SX_MAX_STAGES; i++) {
        sx_order_state_deinit(&plan->outer.states[i]);
        sx_order_state_deinit(&plan->inner.states[i]);
    }
    sx_dataset_release(plan->dataset);
    memset(plan, 0, sizeof(*plan));
}

/* ---- Locating ---- */

static sx_status apply(sx_plan_order *order, uint64_t *epoch, int64_t *position)
{
    for (int i = 0; i < order->count; i++) {
        SX_TRY(order->ops[i]->def->at(order->ops[i], &order->states[i], epoch, position));
    }
    return SX_OK;
}

sx_status sx_plan_locate_batch(sx_plan *plan, int64_t number, sx_plan_batch *out_batch)
{
    uint64_t epoch = 0;
    int64_t j = number;
    SX_TRY(apply(&plan->outer, &epoch, &j));
    out_batch->outer_epoch = epoch;
    out_batch->first = j * plan->batch_size;
    out_batch->size = SX_MIN(plan->batch_size, plan->elements - out_batch->first);
    return SX_OK;
}

sx_status sx_plan_locate(sx_plan *plan, const sx_plan_batch *batch, int64_t row,
                         uint64_t *out_epoch, int64_t *out_record)
{
    uint64_t epoch = batch->outer_epoch;
    int64_t position = batch->first + row;
    SX_TRY(apply(&plan->inner, &epoch, &position));
    *out_epoch = epoch;
    *out_record = position;
    return SX_OK;
}

/* ---- Producing ---- */

sx_status sx_producer_init(sx_producer *producer, const sx_plan *plan)
{
    sx_scratch_init(&producer->scratch);
    sx_scratch_init(&producer->read);
    for (int i = 0; i < plan->stage_count; i++) {
        const sx_dataset *node = plan->stages[i];
        if (node->kind == SX_NODE_MAP && node->as.map.worker_create != NULL) {
            SX_TRY(node->as.map.worker_create(node->as.map.user, &producer->workers[i]),
                   "map \"%s\"", node->as.map.name);
            producer->created[i] = true;
        }
        for (int c = 0; c < node->schema.count; c++) {
            producer->tensors[i + 1][c].type = node->schema.components[c].type;
        }
    }
    const sx_schema *source = &plan->dataset->source->schema;
    for (int c = 0; c < source->count; c++) {
        producer->tensors[0][c].type = source->components[c].type;
    }
    return SX_OK;
}

void sx_producer_deinit(sx_producer *producer, const sx_plan *plan)
{
    for (int i = 0; i < plan->stage_count; i++) {
        const sx_dataset *node = plan->stages[i];
        if (producer->created[i] && node->as.map.worker_destroy != NULL) {
            node->as.map.worker_destroy(producer->workers[i]);
        }
        producer->created[i] = false;
    }
    sx_scratch_deinit(&producer->scratch);
    sx_scratch_deinit(&producer->read);
}

void sx_producer_begin(sx_producer *producer, const int64_t *records, int64_t count,
                       sx_scratch *kept)
{
    producer->coming = records;
    producer->coming_count = count;
    producer->kept = kept;
    producer->run_count = 0;
}

/* The arguments of produce() that are the same for all stages of a record. */
struct element {
    sx_producer *producer;
    const sx_plan *plan;
    int64_t record;
    void *const *destinations;
};

static sx_status produce(const struct element *e, int stage, uint64_t epoch, sx_tensor **out);

static sx_status run_map(const struct element *e, int stage, uint64_t epoch, sx_tensor *out)
{
    const sx_dataset *node = e->plan->stages[stage - 1];
    const sx_map_args *map = &node->as.map;
    sx_producer *producer = e->producer;
    sx_map_call call = {.epoch = epoch, .record = e->record, .out = out};
    sx_tensor *in;
    SX_TRY(produce(e, stage - 1, epoch, &in));
    call.in = in;
    bool last = stage == e->plan->stage_count;
    for (int c = 0; c < node->schema.count; c++) {
        out[c].data = last ? e->destinations[c]
                           : sx_scratch_alloc(&producer->scratch, sx_data_bytes(&out[c].type));
        if (out[c].data == NULL) {
            return sx_error(SX_RESOURCE_EXHAUSTED, "map \"%s\": out of scratch memory", map->name);
        }
    }
    call.scratch = &producer->scratch;
    call.worker = producer->workers[stage - 1];
    SX_TRY(map->fn(&call, map->user));
    return SX_OK;
}

static sx_status run_cache(const struct element *e, int stage, sx_tensor *out)
{
    const sx_dataset *node = e->plan->stages[stage - 1];
    if (sx_cache_get(node->as.cache, e->record, out)) {
        return SX_OK;
    }
    sx_tensor *in;
    SX_TRY(produce(e, stage - 1, 0, &in));
    sx_cache_put(node->as.cache, e->record, in);
    for (int c = 0; c < node->schema.count; c++) {
        out[c].data = in[c].data;
    }
    return SX_OK;
}

static sx_status read_record(sx_producer *producer, sx_source *source, int64_t record,
                             sx_tensor *out)
{
    bool at_hand =
        record >= producer->run_first && record - producer->run_first < producer->run_count;
    sx_scratch *scratch = producer->kept;
    if (!at_hand && scratch == NULL) {
        scratch = &producer->read;
        sx_scratch_reset(scratch);
    }
    if (source->def->read_run == NULL) {
        return source->def->read(source, record, scratch, out);
    }
    if (!at_hand) {
        while (producer->coming_count > 0 && *producer->coming != record) {
            producer->coming++;
            producer->coming_count--;
        }
        int64_t count = 1, most = SX_MIN(producer->coming_count, (int64_t)SX_MAX_RUN);
        while (count < most && producer->coming[count] == record + count) {
            count++;
        }
        producer->run_count = 0;
        SX_TRY(source->def->read_run(source, record, count, scratch, producer->run,
                                     &producer->run_count));
        producer->run_first = record;
    }
    out[0].data = &producer->run[record - producer->run_first];
    return SX_OK;
}

/* The element after `stage` stages; *out is owned by the producer. */
static sx_status produce(const struct element *e, int stage, uint64_t epoch, sx_tensor **out)
{
    sx_tensor *tensors = e->producer->tensors[stage];
    *out = tensors;
    if (stage == 0) {
        return read_record(e->producer, e->plan->dataset->source, e->record, tensors);
    }
    return e->plan->stages[stage - 1]->kind == SX_NODE_MAP ? run_map(e, stage, epoch, tensors)
                                                           : run_cache(e, stage, tensors);
}

/* Prepends the record's name, unless the source has done so; says when skip_corrupt helps. */
static sx_status name_record(sx_status status, const sx_plan *plan, int64_t record)
{
    const sx_source *source = plan->dataset->source;
    if (source->def->is_corrupt != NULL && source->def->is_corrupt(source, record)) {
        status = sx_hint_skip_corrupt(status);
    }
    char name[1024];
    sx_dataset_record_name(plan->dataset, record, name, sizeof(name));
    if (strncmp(sx_status_message(status), name, strlen(name)) == 0) {
        return status;
    }
    return sx_status_annotate(status, __FILE__, __LINE__, "%s", name);
}

sx_status sx_producer_run(sx_producer *producer, const sx_plan *plan, uint64_t epoch,
                          int64_t record, void *const *destinations)
{
    sx_scratch_reset(&producer->scratch);
    struct element e = {producer, plan, record, destinations};
    sx_tensor *out;
    sx_status status = produce(&e, plan->stage_count, epoch, &out);
    if (status != SX_OK) {
        return name_record(status, plan, record);
    }
    for (int c = 0; c < plan->element.count; c++) {
        if (out[c].data != destinations[c]) {
            memcpy(destinations[c], out[c].data, sx_data_bytes(&plan->element.components[c].type));
        }
    }
    return SX_OK;
}
