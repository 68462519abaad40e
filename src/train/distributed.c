/* See distributed.h. */
#include "train/distributed.h"

#include <inttypes.h>
#include <string.h>

#include "base/args.h"
#include "base/log.h"
#include "base/memory.h"
#include "io/path.h"

sx_status sx_at_user_line(sx_status status, const char *file, int line)
{
    return sx_status_annotate(status, __FILE__, __LINE__, "%s:%d", sx_path_basename(file), line);
}

static sx_status create(sx_strategy *strategy, const sx_distribute_args *args, const char *file,
                        int line, sx_distributed **out)
{
    if (args->global_batch_size < 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "global_batch_size is %" PRId64 ", expected a number of examples",
                        args->global_batch_size);
    }
    sx_distributed *d = sx_alloc(1, sizeof(*d));
    if (d == NULL) {
        return sx_no_memory("for distributed data");
    }
    *d = (sx_distributed){.strategy = sx_strategy_retain(strategy),
                          .batch = args->global_batch_size,
                          .mode = args->mode,
                          .file = file,
                          .line = line};
    *out = d;
    return SX_OK;
}

void sx_distributed_free(sx_distributed *d)
{
    if (d != NULL) {
        sx_inputs_release(&d->inputs);
        sx_strategy_release(d->strategy);
        sx_free(d);
    }
}

/* ---- Global batches ---- */

/* A training batch is divided among the replicas; the last of an epoch need not be. */
static sx_status check_batch(const sx_distributed *d)
{
    const int64_t own = sx_dataset_batch_size(d->inputs.data[0]);
    if (own > 0 && d->batch > 0 && own != d->batch) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "the data set has batches of %" PRId64 ", but global_batch_size is %" PRId64
                        "; give elements, or batches of that size",
                        own, d->batch);
    }
    const int64_t batch = own > 0 ? own : d->batch;
    return d->mode == SX_TRAIN && batch > 0
               ? sx_check_batch_divides(&(sx_run_config){.train_distribute = d->strategy}, batch)
               : SX_OK;
}

static sx_status distribute(sx_strategy *strategy, sx_dataset *dataset,
                            const sx_distribute_args *args, sx_distributed **out, const char *file,
                            int line)
{
    sx_distributed *d = NULL;
    SX_NEED(strategy);
    SX_NEED(dataset);
    SX_NEED(out);
    SX_TAKE_ARGS(sx_distribute_args, args);
    SX_TRY(create(strategy, args, file, line, &d));
    d->inputs = (sx_inputs){.data = {sx_dataset_retain(dataset)}, .n = 1, .pulls = 1};
    sx_status status = check_batch(d);
    if (status != SX_OK) {
        sx_distributed_free(d);
        return status;
    }
    *out = d;
    return SX_OK;
}

sx_status sx_distribute_dataset_at(sx_strategy *strategy, sx_dataset *dataset,
                                   const sx_distribute_args *args, sx_distributed **out_distributed,
                                   const char *file, int line)
{
    return sx_at_user_line(distribute(strategy, dataset, args, out_distributed, file, line), file,
                           line);
}

/* ---- Data sets from a function ---- */

static void warn_of_size(const sx_distributed *d)
{
    const sx_inputs *in = &d->inputs;
    const int64_t own = sx_dataset_batch_size(in->data[0]);
    const int64_t step = in->step_batch > 0 ? in->step_batch : own;
    if (own > 0 && step != d->batch) {
        sx_log(SX_LOG_WARN,
               "%s:%d: the function's batches have %" PRId64
               " examples, but context->batch_size is "
               "%" PRId64 ": it ignores its context; a step takes %" PRId64 " examples instead of "
               "%" PRId64,
               sx_path_basename(d->file), d->line, own, own * d->batch / step, step, d->batch);
    }
}

/* The first batch of a data set is read, at its beginning. */
static sx_status first_batches_equal(sx_iterator *a, sx_iterator *b, bool *out_equal)
{
    const struct sx_batch_data *x, *y;
    SX_TRY(sx_iterator_next(a, &x));
    SX_TRY(sx_iterator_next(b, &y));
    bool equal = x->count == y->count && x->size == y->size;
    for (int c = 0; c < x->count && equal; c++) {
        const sx_tensor *s = &x->components[c], *t = &y->components[c];
        const int64_t n = sx_type_elems(&s->type), bytes = sx_type_bytes(&s->type);
        equal = sx_type_equal(&s->type, &t->type);
        if (equal && bytes >= 0) {
            equal = memcmp(s->data, t->data, (size_t)bytes) == 0;
        }
        for (int64_t i = 0; i < n && equal && bytes < 0; i++) {
            const sx_bytes *u = (const sx_bytes *)s->data + i, *v = (const sx_bytes *)t->data + i;
            equal = u->size == v->size && memcmp(u->data, v->data, u->size) == 0;
        }
    }
    *out_equal = equal;
    return SX_OK;
}

/* Two inputs that read the same examples: pipelines with one fingerprint, and one beginning. */
static sx_status same_data(sx_dataset *a, sx_dataset *b, bool *out_same)
{
    uint8_t x[SX_CURSOR_BYTES], y[SX_CURSOR_BYTES];
    sx_iterator *first = NULL, *second = NULL;
    sx_status status = sx_iterator_create(a, &first, .workers = -1);
    if (status == SX_OK) {
        status = sx_iterator_create(b, &second, .workers = -1);
    }
    *out_same = false;
    if (status == SX_OK) {
        sx_iterator_save(first, x);
        sx_iterator_save(second, y);
        if (memcmp(x, y, sizeof(x)) == 0) {
            status = first_batches_equal(first, second, out_same);
        }
    }
    sx_iterator_destroy(first);
    sx_iterator_destroy(second);
    return status;
}

static sx_status warn_of_sharing(const sx_distributed *d)
{
    bool same = false;
    if (d->inputs.n > 1) {
        SX_TRY(same_data(d->inputs.data[0], d->inputs.data[1], &same));
    }
    if (same) {
        sx_log(
            SX_LOG_WARN,
            "%s:%d: the function gave inputs 0 and 1 the same data: it ignores its context; each "
            "example is read %d times an epoch (take every context->num_invocations-th, from "
            "context->invocation_index on: sx_dataset_shard())",
            sx_path_basename(d->file), d->line, d->inputs.n);
    }
    return SX_OK;
}

static sx_status call_function(sx_distributed *d, sx_input_fn *fn, void *user,
                               sx_input_config input)
{
    const sx_run_config config = {.struct_size = sizeof(config),
                                  .train_distribute = d->strategy,
                                  .tpu_config.per_host_input_for_training =
                                      input != 0 ? input : SX_PER_HOST_V2};
    SX_TRY(sx_inputs_call(&config, NULL, d->mode, d->batch, fn, user, &d->inputs));
    warn_of_size(d);
    return warn_of_sharing(d);
}

static sx_status from_function(sx_strategy *strategy, sx_input_fn *fn, void *user,
                               const sx_distribute_args *args, sx_distributed **out,
                               const char *file, int line)
{
    sx_distributed *d = NULL;
    SX_NEED(strategy);
    SX_NEED(fn);
    SX_NEED(out);
    SX_TAKE_ARGS(sx_distribute_args, args);
    if (args->global_batch_size == 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "global_batch_size is missing: the function's context is made from it");
    }
    SX_TRY(create(strategy, args, file, line, &d));
    sx_status status = call_function(d, fn, user, args->input);
    if (status != SX_OK) {
        sx_distributed_free(d);
        return status;
    }
    *out = d;
    return SX_OK;
}

sx_status sx_distribute_datasets_from_function_at(sx_strategy *strategy, sx_input_fn *fn,
                                                  void *user, const sx_distribute_args *args,
                                                  sx_distributed **out_distributed,
                                                  const char *file, int line)
{
    return sx_at_user_line(from_function(strategy, fn, user, args, out_distributed, file, line),
                           file, line);
}
