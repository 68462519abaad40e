/* Datasets: from files to a stream of batches.
 *
 *   source (n records, random access)  ->  order: shuffle take skip shard repeat
 *                                      ->  map, map, ... (parallel, ordered)  ->  batch  ->  repeat
 *
 * sx_dataset is the immutable description of such a pipeline, sx_iterator its running state. An
 * element is a fixed list of named components, each with a type known in advance, and a record id:
 * its number in the source, which never changes.
 *
 * The element at position p of an iteration (its record, its epoch, its random numbers) is a pure
 * function of the description and p. The state of an iterator is therefore p, regardless of the
 * number of workers, and a restored iterator yields exactly the remaining elements.
 *
 * Life cycle: open or create a dataset; transform it (each call replaces *dataset with the extended
 * pipeline, or on failure leaves it unchanged); create iterators; release.
 *
 *     sx_dataset *data = NULL;
 *     SX_TRY(sx_data_open("data/train-*", NULL, &data, NULL));
 *     sx_dataset_shuffle(&data, .seed = 7);   sx_dataset_batch(&data, .size = 32);
 *
 * Threads may share a dataset; an iterator must be used by one thread at a time. */
#ifndef SEXTANT_DATA_H
#define SEXTANT_DATA_H

#include <sextant/image.h>
#include <sextant/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sx_dataset sx_dataset;
typedef struct sx_iterator sx_iterator;

enum {
    SX_MAX_COMPONENTS = 64,
    SX_CURSOR_BYTES = 40, /* size of a saved iterator position */
};
#define SX_ENDLESS INT64_MAX /* the count of a dataset that repeats forever */

typedef struct sx_component {
    const char *name; /* "image", "label"; owned by the dataset */
    sx_type type;     /* static; strings may be scalars or static arrays */
} sx_component;

typedef struct sx_schema {
    int count;
    sx_component components[SX_MAX_COMPONENTS];
} sx_schema;

/* One named feature or label of an example: a component of datasets, a feature of records, an input
 * of a model. As tf.io.FixedLenFeature or, with max_length, VarLenFeature:
 *
 *     {"age"}                                          float32
 *     {"city", SX_I32}                                 int32
 *     {"pixels", SX_U8, {28, 28, 1}}                   uint8 [28,28,1]
 *     {"words", SX_I32, .max_length = 12}              int32 [12], and "words_mask", bool [12]
 *     {"job", SX_STRING}                               string
 *     {"photo", .image = true}                         an encoded image
 *
 * A letter or "_" begins the name, up to 64 letters, digits, "_", "-" and "." in all. */
enum { SX_MAX_FEATURE_RANK = 6 };
#define SX_MASK_SUFFIX "_mask"

typedef struct sx_feature_spec {
    const char *name;
    /* SX_F32, SX_I32, SX_I64, SX_U8, SX_BOOL or SX_STRING; 0 = float32 (a label: int32) */
    sx_dtype dtype;
    int64_t dims[SX_MAX_FEATURE_RANK]; /* of an example, up to the first 0; none = a scalar */
    const char *key;                   /* the feature's name in records; NULL = `name` */
    /* > 0: an example has up to that many values (each of `dims`); the type is [max_length, dims].
     * Missing ones are padding_value or "", and <name>_mask, bool [max_length], says which are
     * there. */
    int64_t max_length;
    bool truncate; /* use the first max_length values of a longer example; else it is an error */
    double padding_value;
    bool optional; /* a record without it has default_value; else that is an error */
    double default_value;
    const char *default_text; /* the same for strings; NULL = "" */
    /* Of one of a model's inputs: an encoded image, a string in records, or uint8 pixels in .npy
     * files. The model takes it as float32 by its .image, .scale and .augment; dtype stays 0. */
    bool image;
} sx_feature_spec;

SX_API sx_dataset *sx_dataset_retain(sx_dataset *dataset); /* returns it */
SX_API void sx_dataset_release(sx_dataset *dataset);       /* NULL is fine */

/* The components of an element; after batch() each type begins with SX_BATCH. Borrowed from the
 * dataset. */
SX_API const sx_schema *sx_dataset_schema(const sx_dataset *dataset);
/* The component's index, or −1. */
SX_API int sx_dataset_find(const sx_dataset *dataset, const char *component);
/* Elements (after batch(): batches) in a complete iteration; SX_ENDLESS after an endless repeat. */
SX_API int64_t sx_dataset_count(const sx_dataset *dataset);
/* Records in the source, before any transform. */
SX_API int64_t sx_dataset_records(const sx_dataset *dataset);
/* The largest batch; 0 before batch(). */
SX_API int64_t sx_dataset_batch_size(const sx_dataset *dataset);
/* The [*out_count] class names, indexed by label; NULL and 0 if the source has none. Borrowed. */
SX_API const char *const *sx_dataset_class_names(const sx_dataset *dataset, int *out_count);
/* "data/train-00003-of-00008: record 17, offset 40213": the origin of a record, for messages.
 * Writes at most `capacity` bytes including the final NUL; returns `buffer`. */
SX_API char *sx_dataset_record_name(const sx_dataset *dataset, int64_t record, char *buffer,
                                    size_t capacity);

/* ---- Sources ---- */

/* The rows of tensors in memory: component i is tensors[i] without its leading dimension, which
 * must be the same for all. `release(user)` is called when the dataset no longer needs the memory
 * (NULL: the memory must outlive the dataset); it is not called on failure.
 * Errors: INVALID_ARGUMENT: rank 0, different leading dimensions, no components, no rows. */
SX_API SX_MUST_USE sx_status sx_dataset_from_tensors(int count, const char *const *names,
                                                     const sx_tensor *tensors,
                                                     void (*release)(void *user), void *user,
                                                     sx_dataset **out_dataset);

typedef struct sx_data_options sx_data_options;

/* The unparsed records of TFRecord files: one component "record" (string), to be parsed by a map.
 * `patterns` are paths or shell patterns; records are numbered consecutively in their order.
 * `options` (may be NULL): compression, skip_corrupt, memory_budget.
 * Errors: NOT_FOUND: a pattern matches no file; DATA_LOSS; INVALID_ARGUMENT: no records. */
SX_API SX_MUST_USE sx_status sx_dataset_from_records(const char *const *patterns, int count,
                                                     const sx_data_options *options,
                                                     sx_dataset **out_dataset);

struct sx_data_options {
    size_t struct_size;
    int label_base;          /* smallest label in record files; 0 = from the sidecar, otherwise 0 */
    bool label_base_set;     /* label_base is meant even if it is 0 */
    const char *image_key;   /* feature that holds the image; NULL = detect */
    const char *label_key;   /* feature that holds the label; NULL = detect */
    const char *compression; /* "none", "gzip", "zlib"; NULL = detect */
    bool skip_corrupt;       /* skip and count records with a wrong CRC or that do not parse, and
                                files in class folders that do not decode */
    int64_t memory_budget;   /* bytes of decompressed records kept in memory; 0 = half of the RAM */
    bool recursive;          /* images in subfolders of a class folder belong to its class */
    /* Bytes that an archive may be decompressed to; 0 = 100 times its size, at least 256 MiB. */
    int64_t max_unpacked_bytes;
    /* The [n_features] features to read, instead of an image and a label: of TFRecord files as
     * sx_dataset_parse_examples() does, of .npy files the array in <name>.npy, of CSV columns. */
    const sx_feature_spec *features;
    int n_features;
    /* Records of TFRecord files as they are, as sx_dataset_from_records() reads them. */
    bool unparsed;
};

/* Opens the data set that `spec` names; its kind is detected by content: TFRecord files (paths or
 * patterns, separated by commas), a folder of class folders, a .tar or .zip of class folders, an
 * IDX pair (both files or just the images, gzip or not), .npy (features[,labels]), CSV, JSON lines,
 * "generated:digits?n=60000&seed=1", "generated:flowers?n=1000&size=64". The components are "image"
 * (an encoded string, or uint8 [H,W,C]) and "label" (int64, from 0). `options` may be NULL.
 *
 * CSV (RFC 4180, commas, gzip or not) has the columns' names in the first row. The components are
 * the declared features, scalars, each the column of its key; without a declaration all columns, as
 * strings. An empty field is a missing value. Errors while iterating name file, line and column.
 *
 * JSON lines, text files that begin with a bracket (gzip or not), are not parsed: the one component
 * "line" has the lines that are not blank.
 *
 * *out_description (may be NULL) receives a text of one or more lines that describes what was found
 * and assumed (keys, label base, corrupt records skipped); free with sx_text_free().
 * Errors: NOT_FOUND with suggestions, INVALID_ARGUMENT: not a data set, DATA_LOSS,
 * PERMISSION_DENIED, RESOURCE_EXHAUSTED: over the budget. */
SX_API SX_MUST_USE sx_status sx_data_open(const char *spec, const sx_data_options *options,
                                          sx_dataset **out_dataset, char **out_description);

/* Parses the component "record" of sx_dataset_from_records() as tf.train.Examples: the components
 * become the [n] features of `specs` by name, each of variable length followed by its mask. A
 * float32 is read from a float feature, an integer or bool from an int64 feature, a string from a
 * bytes feature, uint8 also from one value of bytes. Errors while iterating name the record and the
 * feature: it is missing, of another kind or length, or out of the dtype's range. Errors:
 * INVALID_ARGUMENT: no component "record"; a bad name, dtype or shape. */
SX_API SX_MUST_USE sx_status sx_dataset_parse_examples(sx_dataset **dataset,
                                                       const sx_feature_spec *specs, int n);

/* ---- Order: rearranges positions without reading data ---- */

typedef struct sx_shuffle_args {
    size_t struct_size;
    uint64_t seed;
    int64_t buffer;       /* size of a shuffle buffer as in tf.data; 0 = permute all elements */
    bool same_each_epoch; /* default: each epoch has a different order */
} sx_shuffle_args;

/* Errors: INVALID_ARGUMENT: after an endless repeat, or a buffer over more than 2^28 elements. */
#define sx_dataset_shuffle(dataset, ...) \
    sx_dataset_shuffle_at((dataset), SX_ARGS_(sx_shuffle_args, __VA_ARGS__))
SX_API SX_MUST_USE sx_status sx_dataset_shuffle_at(sx_dataset **dataset,
                                                   const sx_shuffle_args *args);

/* The first `count` / all but the first `count` elements (after batch(): batches). */
SX_API SX_MUST_USE sx_status sx_dataset_take(sx_dataset **dataset, int64_t count);
SX_API SX_MUST_USE sx_status sx_dataset_skip(sx_dataset **dataset, int64_t count);
/* Every `shards`-th element, starting at `index`. */
SX_API SX_MUST_USE sx_status sx_dataset_shard(sx_dataset **dataset, int64_t shards, int64_t index);
/* The whole dataset `times` times, 0 = forever. Before batch(), batches may straddle epochs, as in
 * tf.data; after batch() they do not. Each repetition is an epoch with its own order and
 * augmentation. */
SX_API SX_MUST_USE sx_status sx_dataset_repeat(sx_dataset **dataset, int64_t times);

/* ---- Map ---- */

/* A worker's memory for one element; freed when the worker starts its next element. */
typedef struct sx_scratch sx_scratch;
/* Aligned to 64 bytes, not zeroed; NULL if out of memory or over 2 GiB. After the first elements it
 * reuses memory and no longer allocates. */
SX_API void *sx_scratch_alloc(sx_scratch *scratch, size_t bytes);

typedef struct sx_map_call {
    uint64_t epoch;      /* 0 below a cache */
    int64_t record;      /* id; (epoch, record) is the counter for random numbers */
    const sx_tensor *in; /* [input components]; data borrowed for this call */
    sx_tensor *out;      /* [output components]; write results to `data`, which is allocated by the
                          * declared type (strings: set the sx_bytes, to memory that lasts until the
                          * worker's next element) */
    sx_scratch *scratch;
    void *worker; /* from worker_create */
} sx_map_call;

typedef sx_status sx_map_fn(const sx_map_call *call, void *user);

typedef struct sx_map_args {
    size_t struct_size;
    const char *name; /* "decode": for messages and the cursor's fingerprint; required */
    sx_map_fn *fn;    /* a pure function of (epoch, record, in); must be thread-safe; required */
    int count;        /* output components; 0 = the same as the input's */
    const sx_component *components; /* [count] */
    void *user;
    void (*release)(void *user); /* called with the last release of a dataset; not on failure */
    sx_status (*worker_create)(void *user, void **out_worker); /* per thread; NULL: no state */
    void (*worker_destroy)(void *worker);
    uint64_t fingerprint; /* hash of the parameters: distinguishes maps of the same name */
    bool views; /* string outputs point into the input's strings: no copy if those persist */
} sx_map_args;

/* Errors: INVALID_ARGUMENT: after batch(), or an output type that is not static. */
#define sx_dataset_map(dataset, ...) \
    sx_dataset_map_at((dataset), SX_ARGS_(sx_map_args, __VA_ARGS__))
SX_API SX_MUST_USE sx_status sx_dataset_map_at(sx_dataset **dataset, const sx_map_args *args);

/* Caches elements in memory, by record, up to `budget_bytes` (0 = a quarter of the RAM); elements
 * that do not fit are computed each time. The maps before the cache see epoch 0, so that the result
 * does not depend on what was cached. The cache belongs to the dataset and is shared by its
 * iterators. */
SX_API SX_MUST_USE sx_status sx_dataset_cache(sx_dataset **dataset, int64_t budget_bytes);

/* ---- Batch ---- */

typedef struct sx_batch_args {
    size_t struct_size;
    int64_t size;        /* >= 1; required */
    bool drop_remainder; /* default: the last batch of an epoch may be smaller */
} sx_batch_args;

/* Errors: INVALID_ARGUMENT: size < 1 or too large (over 2^24, or a batch over 2^40 bytes), or the
 * dataset is already batched. */
#define sx_dataset_batch(dataset, ...) \
    sx_dataset_batch_at((dataset), SX_ARGS_(sx_batch_args, __VA_ARGS__))
SX_API SX_MUST_USE sx_status sx_dataset_batch_at(sx_dataset **dataset, const sx_batch_args *args);

/* ---- Images ---- */

typedef struct sx_image_args {
    size_t struct_size;
    int image[3]; /* height, width, channels (1 or 3) of the result; required */
    sx_scale scale;
    float mean[3], std[3]; /* SX_MEAN_STD */
    bool training;         /* apply the augmentations */
    uint64_t seed;         /* for their random numbers */
    unsigned augment;      /* SX_FLIP_LEFT_RIGHT | …; these and the next as in image.h */
    int random_crop;
    float random_shear, random_zoom, random_brightness, random_contrast[2];
    const char *recipe;   /* a named preprocessing instead: "tpu-flowers"; NULL = none */
    int num_classes;      /* labels outside [0, n) are errors; 0 = any */
    sx_dtype label_dtype; /* SX_I64 (0) or SX_I32 */
} sx_image_args;

/* The standard map for image classification:
 *     sx_image_pipeline(&data, .image = {128, 128, 3}, .scale = SX_MINUS1_1, .training = true,
 *                       .augment = SX_FLIP_LEFT_RIGHT, .random_zoom = .1, .seed = 7);
 * Input: the components "image" (an encoded string, or
 * uint8 [H,W] or [H,W,C]) and, optionally, "label" (an integer scalar). Output: "image", float32
 * [height,width,channels], and "label". Errors while iterating name the record: decoding errors,
 * and INVALID_ARGUMENT for a label out of range. Errors: INVALID_ARGUMENT: no such component, or
 * invalid preprocessing. */
#define sx_image_pipeline(dataset, ...) \
    sx_image_pipeline_at((dataset), SX_ARGS_(sx_image_args, __VA_ARGS__))
SX_API SX_MUST_USE sx_status sx_image_pipeline_at(sx_dataset **dataset, const sx_image_args *args);

/* ---- Iterating ---- */

struct sx_batch_data {
    int64_t size;                /* elements; 1 without batch() */
    int count;                   /* components */
    const sx_tensor *components; /* [count]; with batch() the leading dimension is `size` */
    const int64_t *ids;          /* [size] record ids */
    uint64_t epoch;              /* of the first element */
    int64_t number;              /* index of the batch in the iteration, from 0 */
    bool ends_epoch;             /* the next batch, if any, begins a new epoch */
};

typedef struct sx_iterator_args {
    size_t struct_size;
    int workers;           /* threads; 0 = tuned while running, −1 = none: next() does the work */
    int prefetch;          /* batches to prefetch; 0 = as many as the memory budget allows */
    int64_t memory_budget; /* bytes for prefetched batches; 0 = an eighth of the RAM, <= 1 GiB */
} sx_iterator_args;

#define sx_iterator_create(dataset, out_iterator, ...) \
    sx_iterator_create_at((dataset), SX_ARGS_(sx_iterator_args, __VA_ARGS__), (out_iterator))
/* Retains the dataset. The threads start at the first sx_iterator_next(). */
SX_API SX_MUST_USE sx_status sx_iterator_create_at(sx_dataset *dataset,
                                                   const sx_iterator_args *args,
                                                   sx_iterator **out_iterator);
SX_API void sx_iterator_destroy(sx_iterator *iterator); /* NULL is fine; waits for its threads */
/* The dataset that it iterates over; borrowed. */
SX_API sx_dataset *sx_iterator_dataset(const sx_iterator *iterator);

/* The next batch; *out_batch and everything it points to are borrowed until the next call on the
 * iterator.
 * Errors: OUT_OF_RANGE: the end; otherwise the error of the first failing element (read, parse,
 * map; OUT_OF_RANGE becomes INVALID_ARGUMENT), naming its file and record. Later calls return the
 * same error until the iterator is moved to another position. */
SX_API SX_MUST_USE sx_status sx_iterator_next(sx_iterator *iterator,
                                              const struct sx_batch_data **out_batch);

/* Saves the position: the cursor says which batch comes next. */
SX_API void sx_iterator_save(const sx_iterator *iterator, uint8_t cursor[SX_CURSOR_BYTES]);
/* Moves to a saved position, forwards or backwards. On failure the position does not change.
 * Errors: DATA_LOSS: not a cursor; FAILED_PRECONDITION: the cursor of a different pipeline
 * (records, order, maps or batch size differ). */
SX_API SX_MUST_USE sx_status sx_iterator_restore(sx_iterator *iterator,
                                                 const uint8_t cursor[SX_CURSOR_BYTES]);
/* Moves to batch `number` of the iteration. */
SX_API SX_MUST_USE sx_status sx_iterator_seek(sx_iterator *iterator, int64_t number);

typedef struct sx_iterator_stats {
    int64_t batches, elements; /* handed out since creation */
    int64_t wait_ns;           /* time that next() waited for a batch */
    int64_t busy_ns;           /* summed over workers */
    int workers;               /* currently running */
    int prefetch;              /* maximum of prefetched batches */
} sx_iterator_stats;

/* A snapshot; wait_ns over elapsed time is the "input" share in a progress line. */
SX_API void sx_iterator_get_stats(const sx_iterator *iterator, sx_iterator_stats *out_stats);

#ifdef __cplusplus
}
#endif
#endif
