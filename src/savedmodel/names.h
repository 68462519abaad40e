/* Names that SavedModels agree on. */
#ifndef SX_SAVEDMODEL_NAMES_H
#define SX_SAVEDMODEL_NAMES_H

#define SX_SAVED_MODEL_FILE "saved_model.pb"
#define SX_SERVING_DEFAULT  "serving_default"
/* The signature of TF2 models that is none: its output is an operation that initializes. */
#define SX_INIT_SIGNATURE "__saved_model_init_op"

#endif
