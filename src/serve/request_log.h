/* The request log: a sample of the requests that models answered, with their answers, as
 * PredictionLogs in TFRecord files. They can be replayed, and be a version's warm-up records.
 *
 *   PredictionLog   log_metadata 1 {model_spec 1, sampling_config 2 {sampling_rate 1},
 *                   saved_model_tags 3, timestamp_secs 4}, and one of
 *                   classify_log 2, regress_log 3, multi_inference_log 4, session_run_log 5,
 *                   predict_log 6 {request 1, response 2}
 *
 * Whatever a request came as, it is logged as the message of PredictionService that asks the same.
 * Which models are logged, how, and how often, is said by the logging_config of the configuration
 * file, or for all others by the server's options. Source: TensorFlow Serving's
 * prediction_log.proto and logging.proto. */
#ifndef SX_SERVE_REQUEST_LOG_H
#define SX_SERVE_REQUEST_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "serve/inference.h"
#include "serve/log_writer.h"
#include "serve/predict_proto.h"

typedef struct sx_request_log sx_request_log;
typedef struct sx_logged sx_logged; /* a model that is logged */

typedef struct sx_log_rule {
    const char *model;
    const char *prefix;   /* of its files; NULL: the model is not logged */
    double sampling_rate; /* of its requests, in (0, 1] */
} sx_log_rule;

/* A zero takes the default in the comment. */
typedef struct sx_request_log_config {
    const char *prefix;   /* of the files of models without a rule, PREFIX-MODEL; NULL: none */
    double sampling_rate; /* of their requests; 1 */
    int64_t max_file_bytes;
    double max_file_seconds; /* as in sx_log_file_config */
    const char *tags;        /* of the graph that is served; NULL = "serve" */
} sx_request_log_config;

SX_MUST_USE sx_status sx_request_log_create(const sx_request_log_config *config,
                                            sx_log_writer *writer, sx_request_log **out);
void sx_request_log_destroy(sx_request_log *log); /* NULL is allowed */

/* Replaces the rules of models. Errors: of opening a file; the rules stay as they were. */
SX_MUST_USE sx_status sx_request_log_set_rules(sx_request_log *log, const sx_log_rule *rules,
                                               size_t count);

/* Whether this request of a model is to be logged: then what with. `log` of NULL logs none. Any
 * thread. */
sx_logged *sx_request_log_sample(sx_request_log *log, const char *model);

/* ---- Records; errors are counted, as what is dropped ---- */

typedef enum sx_log_kind {
    SX_LOG_CLASSIFY = 2,
    SX_LOG_REGRESS = 3,
    SX_LOG_MULTI_INFERENCE = 4,
    SX_LOG_SESSION_RUN = 5,
    SX_LOG_PREDICT = 6,
} sx_log_kind;

/* Messages as they were received and are sent. */
void sx_log_messages(sx_logged *logged, sx_log_kind kind, const sx_predict_spec *ran,
                     sx_bytes request, sx_bytes response);
/* A run of a signature. */
void sx_log_run(sx_logged *logged, const sx_predict_spec *ran, const sx_serve_signature *signature,
                const sx_tensor *inputs, const sx_tensor *outputs);
/* Examples and what was inferred from them. */
void sx_log_inference(sx_logged *logged, const sx_predict_spec *ran, const sx_tensor *examples,
                      const sx_inference_result *result);

/* Appends the metric family of logged requests; `log` of NULL has none. */
void sx_request_log_print_metrics(sx_request_log *log, sx_buf *out);

#endif
