/* Upper and lower case of strings: ASCII's letters, or all of Unicode's. */
#ifndef SX_GRAPH_OPS_TEXT_CASE_H
#define SX_GRAPH_OPS_TEXT_CASE_H

#include "graph/ops/host_ops.h"

typedef struct sx_encoding_attrs {
    const char *encoding; /* "" or "utf-8" */
} sx_encoding_attrs;

SX_MUST_USE sx_status sx_text_case_infer(sx_infer_context *c);
SX_MUST_USE sx_status sx_text_case_host(const sx_kernel_call *c, bool upper);

extern const sx_attr_def sx_text_case_attrs[1];

#define SX_TEXT_CASE_SAMPLES                                                                     \
    SX_SAMPLES_STRING_MAP(),                                                                     \
    {                                                                                            \
        .name = "utf8",                                                                          \
        .inputs = {SX_SAMPLE_TEXTS(((const char *const[]){"ÜNÏcödé ß", "ΌΣΟΣ ΑΣ. Σ", "ǆ ﬃ ŉ İI", \
                                                          "\xff\xe2\x82 x", "", NULL}),          \
                                   SX_BATCH)},                                                   \
        .n_inputs = 1, .attrs = &(const sx_encoding_attrs)                                       \
        {                                                                                        \
            .encoding = "utf-8"                                                                  \
        }                                                                                        \
    }

#endif
