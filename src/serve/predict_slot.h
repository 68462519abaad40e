/* One input of a predict request: JSON values of any nesting, parsed into a typed tensor whose
 * shape is derived from them. */
#ifndef SX_SERVE_PREDICT_SLOT_H
#define SX_SERVE_PREDICT_SLOT_H

#include "serve/json_scan.h"
#include "serve/predict_json.h"

enum { SX_SLOT_SHOWN_BYTES = 60 }; /* maximum length of a value or name quoted in an error */

/* Reads one scalar at json->p into the slot's next element, which exists. */
typedef sx_status sx_slot_scalar_fn(sx_json *json, struct sx_predict_slot *slot);

/* One input being filled.
 *
 *   dims[0 .. rank)    SX_UNKNOWN_DIM while the first list of that level is open
 *   rank               the level of the first scalar; -1 before it
 *   data[0 .. count)   elements in row-major order, the order of the text */
struct sx_predict_slot {
    void *block; /* kept between requests */
    size_t block_bytes;

    const sx_serve_tensor *info;
    sx_slot_scalar_fn *read; /* depends on the type; NULL: it has no JSON form */
    size_t elem_bytes;
    size_t count, capacity;
    int rank;
    bool misfit; /* the values so far do not fit the signature's shape */
    int64_t dims[SX_MAX_RANK];
    size_t seen_at; /* 1 + index of the last object that named it, to find duplicates */
};

/* Bytes of one value in a slot. */
size_t sx_slot_elem_bytes(sx_dtype dtype);

/* Ensures at least `count` slots; existing ones are kept. */
SX_MUST_USE sx_status sx_predict_slots_reserve(sx_predict_slots *slots, size_t count);

/* Prepares a slot for a request: room for as many values as the text can contain. The block is not
 * touched, so unused parts take no physical memory. It is an earlier request's, unless that was
 * much larger. */
SX_MUST_USE sx_status sx_slot_prepare(struct sx_predict_slot *slot, const sx_serve_tensor *info,
                                      size_t max_elems);

/* Reads a value of any nesting; its outermost list is dimension `level`. INVALID_ARGUMENT: syntax,
 * types, lists of different lengths; UNIMPLEMENTED: a type without JSON form. */
SX_MUST_USE sx_status sx_slot_read(sx_json *json, struct sx_predict_slot *slot, int level);

/* INVALID_ARGUMENT if an input of that type is not what the signature takes. */
SX_MUST_USE sx_status sx_slot_check_type(const sx_serve_tensor *info, const sx_type *got);

/* The tensor of a filled slot, checked against the signature; `row`: the caller has set dimension
 * 0. */
SX_MUST_USE sx_status sx_slot_finish(struct sx_predict_slot *slot, bool row, sx_tensor *out);

#endif
