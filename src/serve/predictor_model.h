/* The model runtime (model.h) for SavedModels. */
#ifndef SX_SERVE_PREDICTOR_MODEL_H
#define SX_SERVE_PREDICTOR_MODEL_H

#include "savedmodel/predictor.h"
#include "serve/model.h"

/* `user` of load is a const sx_predictor_options *, or NULL. */
extern const sx_serve_model_ops sx_predictor_model_ops;

#endif
