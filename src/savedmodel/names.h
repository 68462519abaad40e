/* Names used by all SavedModels. */
#ifndef SX_SAVEDMODEL_NAMES_H
#define SX_SAVEDMODEL_NAMES_H

#define SX_SAVED_MODEL_FILE "saved_model.pb"
#define SX_SERVING_DEFAULT  "serving_default"
/* Not a real signature: in TF2 models, its output is the initialization operation. */
#define SX_INIT_SIGNATURE "__saved_model_init_op"
/* Attribute of While nodes: the number of iterations after which it is an error that the condition
 * is still true. */
#define SX_TF_WHILE_TRIPS "_sextant_trips"

#endif
