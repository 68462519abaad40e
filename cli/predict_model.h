/* sextant predict --model: a SavedModel's predictions of stored data, as files of JSON lines that
 * several processes write (predict_job.h). */
#ifndef SX_CLI_PREDICT_MODEL_H
#define SX_CLI_PREDICT_MODEL_H

#include "command.h"
#include "data_args.h"
#include "device_args.h"

typedef struct sx_predict_model_args {
    const char *model, *signature, *out;
    sx_words data;
    int64_t examples, batch_size, shards, max_errors, model_memory_limit;
    const sx_data_args *data_args;
    const sx_device_args *device_args;
} sx_predict_model_args;

SX_MUST_USE sx_status sx_predict_model(sx_invocation *inv, const sx_predict_model_args *args);

#endif
