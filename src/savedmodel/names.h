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
/* Attributes of IdentityN nodes that have a gradient of their own: a function of the gradients of
 * the first so many outputs and of the inputs after those, which gives gradients of inputs, from
 * the first after those on. TensorFlow has no such form: it refuses the gradient. */
#define SX_TF_GRADIENT         "_sextant_gradient"
#define SX_TF_GRADIENT_RESULTS "_sextant_gradient_results"

#endif
