/* The JSON of REST predict: requests straight into typed tensors, outputs straight to text.
 *
 *   request    {"signature_name": "...", "instances": [...]}   row form, or
 *              {"signature_name": "...", "inputs": ...}        column form
 *   response   {"predictions": [...]} or {"outputs": ...}
 *
 * Row form: a list of values (one input), or of objects with one key per input; the length of the
 * list becomes dimension 0. Column form: the value of the one input, or an object with one key per
 * input. Types come from the signature; strings may be {"b64": "..."}; NaN and infinities are
 * numbers. In responses, strings of outputs whose name ends in _bytes, or that are not UTF-8, are
 * written as {"b64": "..."}.
 *
 * No JSON tree is built: each number is parsed into its tensor, which is allocated once from the
 * number of commas. Source: TensorFlow Serving's RESTful API; error messages use its wording where
 * clients match on it. In addition, uint16 is supported, integers are checked against the range of
 * their type, and trailing bytes and duplicate keys are refused. */
#ifndef SX_SERVE_PREDICT_JSON_H
#define SX_SERVE_PREDICT_JSON_H

#include <sextant/types.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "serve/model.h"

/* Tensor memory that is reused between requests: a block for each input. One thread at a time. */
typedef struct sx_predict_slots {
    struct sx_predict_slot *slots;
    size_t count;
    sx_budget *budget;    /* of the current request; NULL = none */
    size_t charged_bytes; /* to it */
} sx_predict_slots;

void sx_predict_slots_init(sx_predict_slots *slots);
void sx_predict_slots_deinit(sx_predict_slots *slots);
/* Ends a request: frees large blocks and releases their charges. */
void sx_predict_slots_trim(sx_predict_slots *slots);

typedef struct sx_predict_request {
    const sx_serve_signature *signature;
    bool row;
    sx_tensor *inputs; /* [signature->input_count], in arena; data in the slots */
} sx_predict_request;

/* Parses `body`. String elements are views of `body` or memory of `arena`: both must outlive the
 * run. The tensors are charged to the arena's budget until sx_predict_slots_trim. Errors:
 * INVALID_ARGUMENT (syntax, shapes, types, unknown signature), UNIMPLEMENTED (a dtype that has no
 * JSON form), RESOURCE_EXHAUSTED. */
SX_MUST_USE sx_status sx_predict_parse(sx_bytes body, const sx_serve_signature *signatures,
                                       size_t signature_count, sx_arena *arena,
                                       sx_predict_slots *slots, sx_predict_request *out_request);

typedef enum sx_float_format {
    SX_FLOAT_SHORTEST, /* the shortest text that reads back to the same value */
    SX_FLOAT_TFS, /* TensorFlow Serving's bytes: %.6g if that reads back, else 9 or 17 digits */
} sx_float_format;

/* Of the response: "outputs"; "predictions", each the value of the one output, or an object of
 * several; "predictions", each an object. */
typedef enum sx_predict_form { SX_COLUMNS, SX_ROWS, SX_NAMED_ROWS } sx_predict_form;

/* Appends the response to `out`. `cancel` (may be NULL) is checked periodically. INVALID_ARGUMENT
 * if the row form is impossible: an output without dimensions, or outputs that differ in dimension
 * 0; UNIMPLEMENTED for dtypes without JSON form; CANCELLED. */
SX_MUST_USE sx_status sx_predict_print(const sx_serve_signature *signature,
                                       const sx_tensor *outputs, sx_predict_form form,
                                       sx_float_format format, const sx_cancel *cancel,
                                       sx_buf *out);

/* Appends row `row` of the outputs on one line: the value of the one output, or an object of
 * several. Errors: as sx_predict_print. */
SX_MUST_USE sx_status sx_predict_print_row(const sx_serve_signature *signature,
                                           const sx_tensor *outputs, int64_t row, sx_buf *out);

/* Appends the elements of a tensor of numbers or booleans as one flat list. Errors: as
 * sx_predict_print. */
SX_MUST_USE sx_status sx_predict_print_numbers(const sx_tensor *tensor, sx_float_format format,
                                               const sx_cancel *cancel, sx_buf *out);

/* Writes a number into SX_NUMBER_TEXT bytes; returns its end. */
char *sx_json_print_f32(char *at, float value, sx_float_format format);

/* Appends `text` as a JSON string with its quotes; it should be UTF-8; invalid bytes become U+FFFD.
 */
void sx_json_print_string(sx_buf *out, const char *text, size_t size);

#endif
