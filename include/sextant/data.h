/* Datasets: from files to a stream of batches.
 *
 *   source (n records, random access)  ->  order: shuffle take skip shard repeat
 *                                      ->  map, map, ... (parallel, ordered)  ->  batch  ->  repeat
 *
 * sx_dataset is the immutable description of such a pipeline, sx_iterator its running state. An
 * element is a fixed list of named components, each of a type that is known up front, plus its
 * record id: its number in the source, the same for ever.
 *
 * Invariants. The element at position p of an iteration is a pure function of the description and
 * p: which record, which epoch, which random numbers. Thus the state of an iterator is p, whatever
 * the number of workers, and a restored iterator yields exactly what was left (design D6, D19).
 *
 * Life cycle: open or make a dataset; transform it (each call replaces *dataset by the longer
 * pipeline, and leaves it untouched on failure); create iterators; release.
 *
 *     sx_dataset *data = NULL;
 *     SX_TRY(sx_data_open("data/train-*", NULL, &data, NULL));
 *     sx_dataset_shuffle(&data, .seed = 7);   sx_dataset_batch(&data, .size = 32);
 *
 * Datasets may be shared by threads; an iterator belongs to one thread at a time. */
#ifndef SEXTANT_DATA_H
#define SEXTANT_DATA_H

#include <sextant/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sx_dataset sx_dataset;
typedef struct sx_iterator sx_iterator;

enum {
    SX_MAX_COMPONENTS = 16,
    SX_CURSOR_BYTES = 40, /* of a saved iterator */
};
#define SX_ENDLESS INT64_MAX /* the count of a dataset that repeats for ever */

typedef struct sx_component {
    const char *name; /* "image", "label"; owned by the dataset */
    sx_type type;     /* static; a string is a scalar or a static array of them */
} sx_component;

typedef struct sx_schema {
    int count;
    sx_component components[SX_MAX_COMPONENTS];
} sx_schema;

SX_API sx_dataset *sx_dataset_retain(sx_dataset *dataset); /* returns it */
SX_API void sx_dataset_release(sx_dataset *dataset);       /* NULL is fine */

/* What one element is; after batch() each type has SX_BATCH in front. Borrowed from the dataset. */
SX_API const sx_schema *sx_dataset_schema(const sx_dataset *dataset);
/* The component's index, −1 if there is none of that name. */
SX_API int sx_dataset_find(const sx_dataset *dataset, const char *component);
/* Elements (after batch(): batches) of one whole iteration; SX_ENDLESS after an endless repeat. */
SX_API int64_t sx_dataset_count(const sx_dataset *dataset);
/* Records in the source, before any transform. */
SX_API int64_t sx_dataset_records(const sx_dataset *dataset);
/* The largest batch; 0 before batch(). */
SX_API int64_t sx_dataset_batch_size(const sx_dataset *dataset);
/* [*out_count] names by label, or NULL and 0 when the source knows none. Borrowed. */
SX_API const char *const *sx_dataset_class_names(const sx_dataset *dataset, int *out_count);
/* "data/train-00003-of-00008: record 17, offset 40213": where a record comes from, for messages.
 * Writes at most `capacity` bytes with the final NUL; returns `buffer`. */
SX_API char *sx_dataset_record_name(const sx_dataset *dataset, int64_t record, char *buffer,
                                    size_t capacity);

/* ---- sources ---- */

/* The rows of tensors in memory: component i is tensors[i] without its leading dimension, which all
 * share. `release(user)` is called when the dataset no longer needs the memory (NULL: the caller
 * keeps it alive as long as the dataset). Not called on failure.
 * Errors: INVALID_ARGUMENT rank 0, leading dimensions that differ, no components, no rows. */
SX_API SX_MUST_USE sx_status sx_dataset_from_tensors(int count, const char *const *names,
                                                     const sx_tensor *tensors,
                                                     void (*release)(void *user), void *user,
                                                     sx_dataset **out_dataset);

typedef struct sx_data_options sx_data_options;

/* The records of TFRecord files as they are: one component "record" (string), for maps that parse
 * them themselves. `patterns` are paths or shell patterns; records are numbered through in their
 * order. `options` (may be NULL): compression, skip_corrupt, memory_budget.
 * Errors: NOT_FOUND a pattern without match; DATA_LOSS; INVALID_ARGUMENT no records. */
SX_API SX_MUST_USE sx_status sx_dataset_from_records(const char *const *patterns, int count,
                                                     const sx_data_options *options,
                                                     sx_dataset **out_dataset);

struct sx_data_options {
    size_t struct_size;
    int label_base;        /* labels in record files count from this; 0 = ask the sidecar, else 0 */
    bool label_base_set;   /* label_base counts although it is 0 */
    const char *image_key; /* feature that holds the image; NULL = recognise */
    const char *label_key; /* feature that holds the label; NULL = recognise */
    const char *compression; /* "none", "gzip", "zlib"; NULL = recognise */
    bool skip_corrupt;       /* drop and count records that fail their CRC or do not parse */
    int64_t memory_budget;   /* bytes that a source may keep decompressed; 0 = half of the RAM */
};

/* Opens whatever `spec` names, recognised by content: TFRecord files (paths or patterns, separated
 * by commas), a folder of class folders, a .tar or .zip of class folders, an IDX pair (both files,
 * or the images' alone, gzip or not), .npy (features[,labels]), "generated:digits?n=60000&seed=1",
 * "generated:flowers?n=1000&size=64". Images come as "image" (string, encoded; or uint8 [H,W,C])
 * and "label" (int64, from 0). `options` may be NULL.
 *
 * *out_description (may be NULL) gets a text of one or more lines that says what was found and what
 * was assumed (keys, label base, corrupt records dropped); free with sx_text_free().
 * Errors: NOT_FOUND with the nearest names, INVALID_ARGUMENT for what is no data set, DATA_LOSS,
 * PERMISSION_DENIED, RESOURCE_EXHAUSTED beyond the budget. */
SX_API SX_MUST_USE sx_status sx_data_open(const char *spec, const sx_data_options *options,
                                          sx_dataset **out_dataset, char **out_description);

/* ---- order: which record comes when; no data is touched ---- */

typedef struct sx_shuffle_args {
    size_t struct_size;
    uint64_t seed;
    int64_t buffer;       /* 0 = a keyed permutation of all; else tf.data's buffer of so many */
    bool same_each_epoch; /* default: another order in each epoch */
} sx_shuffle_args;

/* Errors: INVALID_ARGUMENT after an endless repeat, or a buffer over more than 2^28 elements. */
#define sx_dataset_shuffle(dataset, ...) \
    sx_dataset_shuffle_at((dataset),     \
                          &(sx_shuffle_args){.struct_size = sizeof(sx_shuffle_args), __VA_ARGS__})
SX_API SX_MUST_USE sx_status sx_dataset_shuffle_at(sx_dataset **dataset,
                                                   const sx_shuffle_args *args);

/* The first `count` / all but the first `count` elements (after batch(): batches). */
SX_API SX_MUST_USE sx_status sx_dataset_take(sx_dataset **dataset, int64_t count);
SX_API SX_MUST_USE sx_status sx_dataset_skip(sx_dataset **dataset, int64_t count);
/* Every `shards`-th element, beginning with number `index`. */
SX_API SX_MUST_USE sx_status sx_dataset_shard(sx_dataset **dataset, int64_t shards, int64_t index);
/* The whole `times` over, 0 = for ever. Before batch() batches straddle epochs, as in tf.data;
 * after batch() they do not. Each time is an epoch of its own: new order, new augmentation. */
SX_API SX_MUST_USE sx_status sx_dataset_repeat(sx_dataset **dataset, int64_t times);

/* ---- map ---- */

/* Memory of one worker for one element: everything is gone with the next element. */
typedef struct sx_scratch sx_scratch;
/* Aligned to 64, not zeroed; NULL when out of memory or over 2 GiB. Reaches a steady state without
 * allocations. */
SX_API void *sx_scratch_alloc(sx_scratch *scratch, size_t bytes);

typedef struct sx_map_call {
    uint64_t epoch;      /* 0 below a cache */
    int64_t record;      /* id; with epoch, the counter of all randomness (D5) */
    const sx_tensor *in; /* [input components]; data borrowed for this call */
    sx_tensor *out;      /* [output components]; data already points to where the result belongs,
                          * sized by the declared type (strings: sx_bytes to be set, to memory that
                          * lasts until the worker's next element) */
    sx_scratch *scratch;
    void *worker; /* what worker_create made for this thread */
} sx_map_call;

typedef sx_status sx_map_fn(const sx_map_call *call, void *user);

typedef struct sx_map_args {
    size_t struct_size;
    const char *name; /* "decode": in messages and in the cursor's fingerprint; required */
    sx_map_fn *fn;    /* pure in (epoch, record, in); called by several threads; required */
    int count;        /* output components; 0 = the same as the input's */
    const sx_component *components; /* [count] */
    void *user;
    void (*release)(void *user); /* when the last dataset with this map is gone; not on failure */
    sx_status (*worker_create)(void *user, void **out_worker); /* NULL = worker is NULL */
    void (*worker_destroy)(void *worker);
    uint64_t fingerprint; /* tells maps of one name apart (their parameters' hash), for cursors */
    bool views; /* string outputs point into the input's strings: nothing to copy if those last */
} sx_map_args;

/* Errors: INVALID_ARGUMENT after batch(), or for an output type that is not static. */
#define sx_dataset_map(dataset, ...) \
    sx_dataset_map_at((dataset), &(sx_map_args){.struct_size = sizeof(sx_map_args), __VA_ARGS__})
SX_API SX_MUST_USE sx_status sx_dataset_map_at(sx_dataset **dataset, const sx_map_args *args);

/* Keeps the elements so far in memory, by record, up to `budget_bytes` (0 = a quarter of the RAM);
 * what does not fit is computed again. Maps below see epoch 0, so that the result does not depend
 * on what was kept. The cache belongs to the dataset: all its iterators fill and use it. */
SX_API SX_MUST_USE sx_status sx_dataset_cache(sx_dataset **dataset, int64_t budget_bytes);

/* ---- batch ---- */

typedef struct sx_batch_args {
    size_t struct_size;
    int64_t size;        /* >= 1; required */
    bool drop_remainder; /* default: the last batch of an epoch has its own, smaller size */
} sx_batch_args;

/* Errors: INVALID_ARGUMENT size < 1 or absurd (over 2^24, or a batch over 2^40 bytes), batched
 * already. */
#define sx_dataset_batch(dataset, ...) \
    sx_dataset_batch_at((dataset),     \
                        &(sx_batch_args){.struct_size = sizeof(sx_batch_args), __VA_ARGS__})
SX_API SX_MUST_USE sx_status sx_dataset_batch_at(sx_dataset **dataset, const sx_batch_args *args);

/* ---- images ---- */

struct sx_preprocess; /* src/image/preprocess.h: decode, resize, crop, augment, scale */

typedef struct sx_image_args {
    size_t struct_size;
    const struct sx_preprocess *preprocess; /* copied; required */
    bool augment;         /* its random parts on (training); off = their centre form */
    uint64_t seed;        /* of the random parts */
    int num_classes;      /* labels outside [0, n) are errors; 0 = any */
    sx_dtype label_dtype; /* SX_I64 (0) or SX_I32 */
} sx_image_args;

/* The standard map of image classification, working on components "image" (an encoded string, or
 * uint8 [H,W], [H,W,C]) and, if there is one, "label" (an integer scalar). Result: "image" float32
 * [height,width,channels], "label". Errors while iterating name the record: those of decoding, and
 * INVALID_ARGUMENT for a label that is no class.
 * Errors: INVALID_ARGUMENT no such component, or preprocess makes no sense. */
#define sx_image_pipeline(dataset, ...) \
    sx_image_pipeline_at((dataset),     \
                         &(sx_image_args){.struct_size = sizeof(sx_image_args), __VA_ARGS__})
SX_API SX_MUST_USE sx_status sx_image_pipeline_at(sx_dataset **dataset, const sx_image_args *args);

/* ---- iterating ---- */

struct sx_batch_data {
    int64_t size;                /* elements in it; 1 without batch() */
    int count;                   /* components */
    const sx_tensor *components; /* [count]; with batch() the leading dimension is `size` */
    const int64_t *ids;          /* [size] record ids */
    uint64_t epoch;              /* of its first element */
    int64_t number;              /* of this batch in the iteration, from 0 */
    bool ends_epoch;             /* the next batch, if any, begins another epoch */
};

typedef struct sx_iterator_args {
    size_t struct_size;
    int workers;           /* threads; 0 = tuned while running, −1 = none: work in next() */
    int prefetch;          /* batches made ahead; 0 = as the memory budget allows */
    int64_t memory_budget; /* bytes for prefetched batches; 0 = an eighth of the RAM, <= 1 GiB */
} sx_iterator_args;

#define sx_iterator_create(dataset, out_iterator, ...)                                        \
    sx_iterator_create_at(                                                                    \
        (dataset), &(sx_iterator_args){.struct_size = sizeof(sx_iterator_args), __VA_ARGS__}, \
        (out_iterator))
/* Retains the dataset. Threads start with the first next(). */
SX_API SX_MUST_USE sx_status sx_iterator_create_at(sx_dataset *dataset,
                                                   const sx_iterator_args *args,
                                                   sx_iterator **out_iterator);
SX_API void sx_iterator_destroy(sx_iterator *iterator); /* NULL is fine; waits for its threads */

/* The next batch; *out_batch and all it points to are borrowed until the next call on the iterator.
 * Errors: OUT_OF_RANGE at the end only; else the first failing element's own error (read, parse,
 * map; its OUT_OF_RANGE becomes INVALID_ARGUMENT), naming its file and record; the next call gives
 * it again, until the iterator is restored elsewhere. */
SX_API SX_MUST_USE sx_status sx_iterator_next(sx_iterator *iterator,
                                              const struct sx_batch_data **out_batch);

/* The cursor: SX_CURSOR_BYTES that say which batch comes next. */
SX_API void sx_iterator_save(const sx_iterator *iterator, uint8_t cursor[SX_CURSOR_BYTES]);
/* Goes there; any position, forwards or back.
 * Errors: DATA_LOSS no cursor; FAILED_PRECONDITION one of another pipeline (records, order, maps or
 * batch size differ): the iterator stays where it is. */
SX_API SX_MUST_USE sx_status sx_iterator_restore(sx_iterator *iterator,
                                                 const uint8_t cursor[SX_CURSOR_BYTES]);
/* Goes to batch `number` of the iteration. */
SX_API SX_MUST_USE sx_status sx_iterator_seek(sx_iterator *iterator, int64_t number);

typedef struct sx_iterator_stats {
    int64_t batches, elements; /* handed out since creation */
    int64_t wait_ns;           /* the caller stood in next() without a batch ready */
    int64_t busy_ns;           /* summed over workers */
    int workers;               /* at work now */
    int prefetch;              /* batches made ahead at most */
} sx_iterator_stats;

/* A snapshot; waiting over elapsed time is the share of "input" in a progress line. */
SX_API void sx_iterator_get_stats(const sx_iterator *iterator, sx_iterator_stats *out_stats);

#ifdef __cplusplus
}
#endif
#endif
