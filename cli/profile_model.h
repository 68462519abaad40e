/* Runs a model for `sextant profile`: training steps or predictions of a model or a run, a
 * signature of a SavedModel; on data, or on generated inputs. */
#ifndef SX_CLI_PROFILE_MODEL_H
#define SX_CLI_PROFILE_MODEL_H

#include "backends/profile.h"
#include "command.h"
#include "data_args.h"
#include "device_args.h"
#include "profile_layers.h"
#include "profile_loop.h"
#include "profile_ops.h"
#include "profile_timeline.h"
#include "runtime/session.h"

typedef struct sx_profile_request {
    const char *name; /* of a model, a run, a SavedModel */
    const char *mode; /* "train", "predict"; NULL: train, of a SavedModel predict */
    const char *precision, *signature;
    const sx_words *params;
    const sx_words
        *data; /* none: a run's own, where it is still there; else inputs are generated */
    const sx_data_args *data_args;
    const sx_device_args *device_args;
    int64_t batch; /* 0 = the run's own, or 16 to train, 1 to predict */
    int64_t image_size, open_size;
    int64_t steps;      /* 0 = as many as take about two seconds */
    int64_t iterations; /* steps per launch of a device that loops; 0 = as `train` chooses */
    bool keep_events;
} sx_profile_request;

typedef struct sx_profiled {
    sx_profile *profile;        /* of kernels, on cpu */
    sx_timeline *timeline;      /* of the step loop */
    sx_timeline_sums loop;      /* n = 0: there is none */
    sx_profile_ops ops;         /* of a device that is not cpu; ops.steps = 0: */
    const char *why_no_ops;     /* one line */
    const char *why_no_loop;    /* one line; NULL: there is one, or nothing to tell */
    double input_rate;          /* examples per second that the pipeline gives alone; 0 = no data */
    sx_profile_nodes nodes;     /* of the program; none of a SavedModel */
    sx_executable_info program; /* as the device knows it; zeros of a SavedModel */
    bool train;
    const char *signature; /* of a SavedModel; else NULL */
    const char *precision;
    const char *device, *kind; /* "cpu", "pjrt:cpu"; of a device that is not cpu, what it is */
    const char *data;          /* NULL: generated inputs */
    const char *unit;          /* what examples are: "images" */
    int64_t batch, steps;
    int threads;    /* 1 where the device is not cpu */
    double seconds; /* of all steps */
} sx_profiled;

/* Whether kernels and causes are known. */
static inline bool sx_profiled_on_cpu(const sx_profiled *p)
{
    return p->kind == NULL;
}

/* Call sx_profiled_end() also after an error. Errors: those of sx_compile_model_open(),
 * sx_predictor_load(), sx_generate_input(), of opening the device, the run and the data. */
SX_MUST_USE sx_status sx_profile_model(sx_invocation *inv, const sx_profile_request *request,
                                       sx_profiled *out);
void sx_profiled_end(sx_profiled *p);

/* Sums the timeline, while the session is there: with it the device's last answers are lost. A
 * device that did not tell when its launches ended has none, which out->why_no_loop says. */
SX_MUST_USE sx_status sx_profile_sum_loop(const sx_profile_looped *looped, sx_arena *arena,
                                          sx_profiled *out);

/* Records what a device computes in a few steps more, or notes in out->why_no_ops why it cannot.
 * Errors: those of the steps. */
SX_MUST_USE sx_status sx_profile_record_ops(const sx_profile_loop *loop, sx_session *session,
                                            sx_profiled *out);

#endif
