/* What a model's programs are fed: features and labels, each a component of the data.
 *
 *   model                 component of the data              input of the programs
 *   .image, .features     features|image, or the first       features
 *                         labels|label, or the second        labels
 *   .inputs {"age"}       age                                features/age
 *   .labels {"rich"}      rich                               labels/rich
 *   .example_weight "w"   w                                  weights (training)
 *
 * A feature of variable length is followed by its mask, a feature of its own.
 *
 * Of a model with preprocessing (preprocess_graph.h), the declared inputs are what its function
 * takes, and the programs' features are what it gives. */
#ifndef SX_NN_MODEL_INPUTS_H
#define SX_NN_MODEL_INPUTS_H

#include <sextant/model.h>

#include "base/arena.h"

/* The only names of a model without named features. */
#define SX_FEATURES "features"
#define SX_LABELS   "labels"
/* The weights of a batch's examples. */
#define SX_WEIGHTS "weights"

typedef enum sx_input_kind {
    SX_INPUT_FEATURE,
    SX_INPUT_LABEL,
    SX_INPUT_WEIGHT,
    SX_INPUT_KINDS
} sx_input_kind;

/* By sx_input_kind: "feature", "label", "weight". */
extern const char *const sx_input_kind_names[SX_INPUT_KINDS];

typedef struct sx_model_input {
    sx_input_kind kind;
    const char *name;            /* of the component: "age" */
    const char *program_name;    /* of the programs' input: "features/age" */
    sx_type type;                /* of a batch: [SX_BATCH, ...] */
    const sx_feature_spec *spec; /* as declared; NULL for masks and for models without names */
} sx_model_input;

enum { SX_MAX_MODEL_INPUTS = SX_MAX_COMPONENTS };

/* In the order of the programs' inputs: features, labels, weights. */
typedef struct sx_model_inputs {
    bool named;
    int n;
    const sx_model_input *items; /* [n], in an arena */
} sx_model_inputs;

/* The inputs of a model without names, with these types of a batch. */
SX_MUST_USE sx_status sx_model_inputs_unnamed(const sx_type *features, const sx_type *labels,
                                              sx_arena *arena, sx_model_inputs *out_inputs);
/* Named inputs; the rows and their texts are copied; `weight` may be NULL. `image`: height, width
 * and channels of the row that is one, or NULL. Errors: INVALID_ARGUMENT naming the row: those of
 * sx_feature_spec_check(), a repeated name, an image without a size, two images. */
SX_MUST_USE sx_status sx_model_inputs_named(const sx_feature_spec *features, int n_features,
                                            const sx_feature_spec *labels, int n_labels,
                                            const char *weight, const int image[3], sx_arena *arena,
                                            sx_model_inputs *out_inputs);
/* The named input that is an image; NULL = none. */
const sx_model_input *sx_model_inputs_image(const sx_model_inputs *inputs);
/* The inputs of programs that are fed what preprocessing gives, [n] `given` ([SX_BATCH, ...], names
 * are copied): declared labels, by their names, and features. Labels that it does not give, and
 * weights, are those of `declared`. Errors: INVALID_ARGUMENT: as above, a type that a program
 * cannot take, a label that stays a string. */
SX_MUST_USE sx_status sx_model_inputs_given(const sx_model_inputs *declared,
                                            const sx_component *given, int n, sx_arena *arena,
                                            sx_model_inputs *out_inputs);
/* The declared label of that name; NULL = none. */
const sx_model_input *sx_model_inputs_label(const sx_model_inputs *inputs, const char *name);
/* Those that a model declares: its rows, or its image or vector and an int32 label.
 * INVALID_ARGUMENT if it declares neither, or both. */
SX_MUST_USE sx_status sx_model_inputs_of(const sx_model_def *def, sx_arena *arena,
                                         sx_model_inputs *out_inputs);
bool sx_model_has_names(const sx_model_def *def);
/* INVALID_ARGUMENT, naming the field and its value: sizes that are negative or partly 0. */
SX_MUST_USE sx_status sx_model_check_sizes(const sx_model_def *def);

/* The index of the input that a program calls `program_name`; -1 = none. */
int sx_model_inputs_find(const sx_model_inputs *inputs, const char *program_name);
/* The first input of a kind; NULL = none. */
const sx_model_input *sx_model_inputs_first(const sx_model_inputs *inputs, sx_input_kind kind);

/* The rows of the inputs that `mode` is fed, as data sources take them; *out_n is 0 for a model
 * without names. */
SX_MUST_USE sx_status sx_model_inputs_specs(const sx_model_inputs *inputs, sx_mode mode,
                                            sx_arena *arena, const sx_feature_spec **out_specs,
                                            int *out_n);
/* Whether the mode needs the input from the data, and whether its program has it as an input. */
bool sx_mode_feeds(sx_mode mode, const sx_model_input *input);
bool sx_mode_takes(sx_mode mode, const sx_model_input *input);

#endif
