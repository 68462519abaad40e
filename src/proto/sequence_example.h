/* tf.train.SequenceExample: a zero-copy reader.
 *
 *   SequenceExample { context = 1 : Features, feature_lists = 2 : FeatureLists }
 *   FeatureLists { feature_list = 1 : map<string, FeatureList> }  FeatureList { feature = 1 :
 *                                                                  repeated Feature }
 *
 * As in example.h, every byte is checked when it is parsed, names and strings point into the
 * record, and the last value of a repeated key is used. */
#ifndef SX_PROTO_SEQUENCE_EXAMPLE_H
#define SX_PROTO_SEQUENCE_EXAMPLE_H

#include "proto/example.h"

typedef struct sx_feature_list {
    sx_bytes name; /* UTF-8 */
    size_t count;  /* of features, the steps */
    sx_bytes wire; /* the FeatureList in the record */
} sx_feature_list;

/* Can be reused for several records, keeping its memory. Views are valid as long as the record. */
typedef struct sx_sequence_example {
    sx_example context;
    sx_feature_list *lists; /* [count], ascending by name */
    size_t count, capacity;
} sx_sequence_example;

void sx_sequence_example_init(sx_sequence_example *example);
void sx_sequence_example_deinit(sx_sequence_example *example);

/* Errors: DATA_LOSS: not a SequenceExample (with the byte offset); RESOURCE_EXHAUSTED: more than
 * SX_EXAMPLE_MAX_FEATURES features or lists. On failure the example is empty. */
SX_MUST_USE sx_status sx_sequence_example_parse(sx_sequence_example *example, sx_bytes record);

/* The list, or NULL. */
const sx_feature_list *sx_sequence_example_find(const sx_sequence_example *example,
                                                const char *name);

/* The features of a parsed list, one by one: `rest` begins as list->wire. False: there are no more.
 */
bool sx_feature_list_next(sx_bytes *rest, sx_example_feature *out);

#endif
