/* A trained model as a SavedModel directory.
 *
 *   model                  signature        input                         outputs
 *   with preprocessing     serving_default  image_bytes  string [N]       the graph's, and `class`
 *                          tensors          image        float32 [N,...]  the same
 *   on arrays              serving_default  features     float32 [N,...]  the same
 *   on named inputs        serving_default  each of them, by name         the same
 *   … one an image         serving_default  it as a string [N], the others       the same
 *                          tensors          it as float32 [N,H,W,C]              the same
 *   … with preprocessing   serving_default  what its graph takes          the same
 *     of its own           tensors          what its graph gives          the same
 *
 * The outputs are those of the predict graph, by name. If it has an output `classid` [N] and class
 * names are given, `class` [N] is the name of each: GatherV2 from a constant, because a table would
 * need an initialization that not every runtime performs. The names are also written to the asset
 * classes.txt, one per line.
 *
 * Both signatures share one body: what preprocessing gives are PlaceholderWithDefaults, whose
 * defaults it computes: the float input from the encoded images (graph/ops/preprocess_image.c).
 * Variables are not frozen. */
#ifndef SX_SAVEDMODEL_EXPORT_H
#define SX_SAVEDMODEL_EXPORT_H

#include "graph/ir.h"
#include "image/preprocess.h"
#include "savedmodel/saved_model_write.h"

#define SX_INPUT_IMAGE_BYTES "image_bytes"
#define SX_INPUT_IMAGE       "image"
#define SX_TENSORS_SIGNATURE "tensors"
#define SX_CLASS_OUTPUT      "class"
#define SX_CLASSID_OUTPUT    "classid"
#define SX_CLASSES_ASSET     "classes.txt"

typedef struct sx_export_request {
    const sx_graph *graph; /* predict: inputs and outputs [N,...], variables read only */
    sx_read_variable_fn *read_variable; /* gives the variables' values, one at a time */
    void *user;
    /* NULL = a model on arrays; height, width and channels are those of the input. */
    const sx_preprocess *preprocess;
    /* Of several inputs, the one that `preprocess` makes: of preprocess_graph, or of `graph`. */
    const char *image_input;
    /* Of a model on named inputs, or NULL: a graph that computes `graph`'s inputs "features/<name>"
     * as its outputs <name>, from inputs [N,...], without variables. */
    const sx_graph *preprocess_graph;
    const char *const *class_names; /* [n_classes], may be NULL */
    int n_classes;
    const char *image_bytes_key; /* names of the signatures' inputs; NULL = as above */
    const char *features_key;    /* of a graph with one input */
    const char *input_prefix;    /* left out of the inputs' names: "features/"; NULL = none */
    bool no_tensors;             /* omit the signature `tensors` */
    const char *base;            /* models/flowers */
    const char *version; /* "0001", or NULL = the highest + 1, again if it is taken meanwhile */
} sx_export_request;

/* Writes base/<version>; its path goes to *out_dir, free with sx_free. UNIMPLEMENTED: operators
 * without a TensorFlow form; the message names them all. INVALID_ARGUMENT: a graph without an
 * input, preprocessing or a name for the only one of several; an input that preprocessing does not
 * give, or with another type. And the errors of sx_version_directory and sx_saved_model_write. */
SX_MUST_USE sx_status sx_export_saved_model(const sx_export_request *request, char **out_dir);

#endif
