/* Runs a model for `sextant profile`: a training step or prediction of a model or a run, a
 * signature of a SavedModel, on the CPU, with generated inputs. */
#ifndef SX_CLI_PROFILE_MODEL_H
#define SX_CLI_PROFILE_MODEL_H

#include "backends/profile.h"
#include "command.h"

typedef struct sx_profile_request {
    const char *name; /* of a model, a run, a SavedModel */
    const char *mode; /* "train", "predict"; NULL: train, of a SavedModel predict */
    const char *precision, *signature;
    const sx_words *params;
    int64_t batch; /* 0 = 16 to train, 1 to predict */
    int64_t image_size, open_size;
    int64_t steps; /* 0 = as many as take about two seconds */
    int threads;
    bool keep_events;
} sx_profile_request;

typedef struct sx_profiled {
    sx_profile *profile;
    bool train;
    const char *signature; /* of a SavedModel; else NULL */
    const char *precision;
    int64_t batch, steps;
    int threads;
    double seconds; /* of all steps */
} sx_profiled;

/* `out->profile` is the caller's to destroy, also after an error. Errors: those of
 * sx_compile_model_open(), sx_predictor_load(), sx_generate_input(). */
SX_MUST_USE sx_status sx_profile_model(sx_invocation *inv, const sx_profile_request *request,
                                       sx_profiled *out);

#endif
