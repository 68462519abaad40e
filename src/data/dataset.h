/* The inside of sx_dataset, shared by the files of src/data.
 *
 *   batch -> map -> repeat -> shuffle -> source      each node points to its parent (the input)
 *
 * A node is immutable once made. Order nodes determine which record is at a position (order.h), map
 * and cache nodes compute the element; they are independent, so an iterator applies all order nodes
 * first and then all others. */
#ifndef SX_DATA_DATASET_H
#define SX_DATA_DATASET_H

#include <stdatomic.h>

#include "base/buffer.h"
#include "base/ram.h"
#include "data/order.h"
#include "data/scratch.h"
#include <sextant/data.h>

struct sx_cache;

/* ---- Sources ---- */

typedef struct sx_source sx_source;

typedef struct sx_source_def {
    const char *kind; /* "tfrecord": in the fingerprint */
    bool stable;      /* strings from read() are valid as long as the source */
    /* Reads one record: sets out[i].data (types are already set) to memory of the source or of
     * `scratch`. Called by several threads at once. Errors need not name the record. */
    sx_status (*read)(sx_source *source, int64_t record, sx_scratch *scratch, sx_tensor *out);
    /* For sources of one string whose records are cheaper to read together: reads `first` and any
     * number of the count - 1 records after it. Errors are those of `first`: the read ends before a
     * later record that cannot be read. NULL: records are read one by one. */
    sx_status (*read_run)(sx_source *source, int64_t first, int64_t count, sx_scratch *scratch,
                          sx_bytes *out_records, int64_t *out_count);
    /* Appends the record's name for messages: "data/train-0: record 17, offset 40213". */
    void (*name_record)(const sx_source *source, int64_t record, sx_buf *out);
    /* Appends the file that the record is or was made from; false if there is none. NULL: no record
     * has one. */
    bool (*file)(const sx_source *source, int64_t record, sx_buf *out);
    /* Whether skip_corrupt, with which the source was not opened, would have left the record out.
     * NULL: the source has no corrupt records. */
    bool (*is_corrupt)(const sx_source *source, int64_t record);
    void (*destroy)(sx_source *source);
} sx_source_def;

/* The first member of every source's struct. */
struct sx_source {
    const sx_source_def *def;
    sx_schema schema; /* names are static or owned by the source */
    int64_t count;
    char **class_names; /* [class_count], or NULL; owned by the source */
    int class_count;
};

/* Adds to the error of a record that skip_corrupt leaves it out. */
sx_status sx_hint_skip_corrupt(sx_status status);

/* The worker of a map that parses records: an sx_example. `user` is not used. */
SX_MUST_USE sx_status sx_example_worker_create(void *user, void **out_worker);
void sx_example_worker_destroy(void *worker);

/* Creates the root node; takes ownership of the source, which is destroyed on failure. */
SX_MUST_USE sx_status sx_dataset_from_source(sx_source *source, sx_dataset **out_dataset);

/* ---- Nodes ---- */

typedef enum sx_node_kind {
    SX_NODE_SOURCE,
    SX_NODE_ORDER,
    SX_NODE_MAP,
    SX_NODE_CACHE,
    SX_NODE_BATCH,
} sx_node_kind;

struct sx_dataset {
    atomic_int refs;
    sx_node_kind kind;
    sx_dataset *parent;  /* NULL for a source; one reference */
    sx_schema schema;    /* names in `names` or the parent's */
    int64_t count;       /* elements, or batches */
    sx_source *source;   /* the root's; owned by the root */
    sx_batch_args batch; /* size 0 before batch() */
    char **class_names;  /* [class_count]: in place of the source's; owned by this node's map or an
                            ancestor's; NULL = the source's */
    int class_count;
    union {
        sx_order_op order;
        sx_map_args map;
        struct sx_cache *cache;
    } as;
    char *names; /* copies of the map's name and component names, one block; NULL for other nodes */
};

/* The bytes of a component's data; of strings, those of their sx_bytes. */
size_t sx_data_bytes(const sx_type *type);

#endif
