/* Reading a SavedModel: the graph, its signatures, and which checkpoint key fills which variable.
 *
 * saved_model.pb is untrusted: it is unpacked through proto/guard, with a budget of 64 MiB plus
 * four times its size, and every name in it is looked up. Nothing is run.
 *
 * Thread-safe once opened; everything it returns is borrowed and valid until close. */
#ifndef SX_SAVEDMODEL_SAVED_MODEL_READ_H
#define SX_SAVEDMODEL_SAVED_MODEL_READ_H

#include "base/arena.h"
#include "checkpoint/bundle.h"
#include "proto/saved_model.pb-c.h"
#include "proto/tensor_value.h"
#include "savedmodel/names.h"

typedef struct sx_saved_model sx_saved_model;

/* An input or output of a signature. */
typedef struct sx_signature_tensor {
    const char *key;    /* "image_bytes"; of a part of a ragged one "words.row_splits" */
    const char *tensor; /* "image_bytes:0" */
    sx_type type;       /* unknown dimensions: SX_BATCH for the first, SX_UNKNOWN_DIM for others */
    int tf_dtype;
    bool unknown_rank; /* or a rank above SX_MAX_RANK; the type then has only the dtype */
    bool no_shape;     /* the file does not say; the type is then a scalar's */
} sx_signature_tensor;

typedef struct sx_signature {
    const char *key, *method;
    const sx_signature_tensor *inputs, *outputs; /* each sorted by key */
    size_t n_inputs, n_outputs;
} sx_signature;

/* Opens dir/saved_model.pb and, if there is one, its checkpoint. The graph is the one tagged
 * exactly {"serve"}. NOT_FOUND: no file or no such graph, listing those that exist. DATA_LOSS: not
 * a SavedModel, a corrupt index. */
SX_MUST_USE sx_status sx_saved_model_open(const char *dir, sx_saved_model **out_model);
/* The same for the graph tagged with exactly the comma-separated `tags` (NULL = "serve"), within a
 * limit of memory, which is charged for the file while it is read and bounds what it unpacks to.
 * RESOURCE_EXHAUSTED: it would exceed that. */
SX_MUST_USE sx_status sx_saved_model_open_within(const char *dir, const char *tags,
                                                 sx_budget *memory, sx_saved_model **out_model);
/* The same from the bytes of a saved_model.pb (not kept), without variables. */
SX_MUST_USE sx_status sx_saved_model_parse(sx_bytes bytes, sx_saved_model **out_model);
void sx_saved_model_close(sx_saved_model *model); /* NULL is allowed */

/* Unpacks dir/saved_model.pb as it is: every graph, whatever its tags. Free it with sx_proto_free.
 * NOT_FOUND, DATA_LOSS. */
SX_MUST_USE sx_status sx_saved_model_unpack(const char *dir, Tensorflow__SavedModel **out);

/* The graph tagged with exactly the comma-separated tags. NOT_FOUND lists the sets that exist. */
SX_MUST_USE sx_status sx_saved_model_tagged(const Tensorflow__SavedModel *model, const char *tags,
                                            const Tensorflow__MetaGraphDef **out);

const char *sx_saved_model_dir(const sx_saved_model *model);
const sx_signature *sx_saved_model_signatures(const sx_saved_model *model,
                                              size_t *out_count); /* sorted by key */
/* NOT_FOUND lists those that exist. */
SX_MUST_USE sx_status sx_saved_model_find_signature(const sx_saved_model *model, const char *key,
                                                    const sx_signature **out_signature);
/* The memory budget of importing it: 64 MiB plus four times the file. */
size_t sx_saved_model_budget(const sx_saved_model *model);
const Tensorflow__GraphDef *sx_saved_model_graph(const sx_saved_model *model);
/* An operator's definition in the model; NULL: it has none. */
const Tensorflow__OpDef *sx_saved_model_find_op(const sx_saved_model *model, const char *op);
/* Frees the bytes of the graph's constants, of which an import has made its own: it cannot be
 * imported again. */
void sx_saved_model_drop_constants(sx_saved_model *model);
bool sx_saved_model_has_constants(const sx_saved_model *model);         /* until they are dropped */
const sx_bundle *sx_saved_model_variables(const sx_saved_model *model); /* NULL if there are none */

/* The checkpoint key from which the restore operation fills the variable of the graph's VarHandleOp
 * `node`. NULL if it restores none. */
const char *sx_saved_model_variable_key(const sx_saved_model *model, const char *node);
/* The part of that key's tensor, as RestoreV2 has it ("4 6 0,2:0,6"); NULL: all of it. */
const char *sx_saved_model_variable_part(const sx_saved_model *model, const char *node);

/* The checkpoint keys from which the restore operation fills the table of the graph's node; NULL if
 * it restores none. */
typedef struct sx_saved_table {
    const char *keys, *values;
} sx_saved_table;
const sx_saved_table *sx_saved_model_table(const sx_saved_model *model, const char *node);
const Tensorflow__MetaGraphDef *sx_saved_model_meta(const sx_saved_model *model);

/* ---- saved_model_init.c: what runs when a model is loaded ---- */

/* The operation that initializes the model: the output of its initialization signature, or what its
 * collections name; "" if there is none. */
const char *sx_saved_model_init_op(const sx_saved_model *model);

/* A file of the model's directory, and the tensor that is fed with its path while loading. */
typedef struct sx_saved_asset {
    const char *tensor, *path; /* "asset_path:0", "assets/vocabulary.txt" */
} sx_saved_asset;
/* In `arena`. DATA_LOSS: a name that is not one of a file. */
SX_MUST_USE sx_status sx_saved_model_assets(const sx_saved_model *model, sx_arena *arena,
                                            sx_saved_asset **out, size_t *out_n);

/* Whether the node is a variable's: its handle, or of TensorFlow 1 itself. */
bool sx_tf_is_variable(const Tensorflow__NodeDef *node);
/* Whether the operator makes a lookup table; the table's name, in `arena` (NULL: no memory). */
bool sx_tf_is_table(const char *tf_op);
const char *sx_tf_table_name(const Tensorflow__NodeDef *node, sx_arena *arena);

/* ---- Graphs ---- */

/* The attribute of that name; NULL if absent. If there are duplicates, the last counts. */
const Tensorflow__AttrValue *sx_tf_node_attr(const Tensorflow__NodeDef *node, const char *name);

/* Splits "node", "node:1", "node:output_arg:1", "^node". `node_bytes` is the length of the name. */
typedef struct sx_tf_ref {
    const char *node;
    size_t node_bytes;
    int output;
    const char *arg; /* the output argument of the three-part form, or NULL */
    size_t arg_bytes;
    bool control;
} sx_tf_ref;
SX_MUST_USE bool sx_tf_ref_parse(const char *text, sx_tf_ref *out);

/* The type that a file gives in TensorFlow's terms. Unknown dimensions: SX_BATCH for the first,
 * SX_UNKNOWN_DIM for others; without a shape, a scalar's; SX_DTYPE_NONE for an unsupported dtype.
 * False: the rank is unknown or above SX_MAX_RANK, and the type has only the dtype. */
bool sx_tf_type(int tf_dtype, const Tensorflow__TensorShapeProto *shape, sx_type *out);

#endif
