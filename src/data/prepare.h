/* The implementation of `sextant data ...`: writing, showing and checking record files. The
 * commands only parse arguments and print. */
#ifndef SX_DATA_PREPARE_H
#define SX_DATA_PREPARE_H

#include "base/buffer.h"
#include <sextant/data.h>

/* Called periodically; returning false stops with CANCELLED. */
typedef bool sx_progress_fn(void *user, int64_t done, int64_t total);

enum { SX_MAX_SPLITS = 16 };

/* ---- From the network ---- */

typedef struct sx_fetch_set_args {
    const char *name;   /* "flowers", "mnist", "catsdogs", or an http, https or file address */
    const char *dir;    /* target directory; created if missing */
    const char *sha256; /* of the file at a URL, or NULL; named sets have their own */
    sx_progress_fn *progress; /* bytes; total 0 while unknown; may be NULL */
    void *user;
} sx_fetch_set_args;

/* Downloads missing files, resuming where an earlier attempt stopped, and unpacks archives. Tries
 * to connect for 5 seconds. Appends a summary to `text`. Errors: those of io/fetch.h; NOT_FOUND for
 * an unknown name. */
SX_MUST_USE sx_status sx_fetch_set(const sx_fetch_set_args *args, sx_buf *text);

/* ---- Class folders to records ----
 *
 * Every image becomes an Example with image/encoded (the file's bytes, untouched), image/format,
 * image/height, image/width, image/class/label, image/class/text, image/filename. */
typedef struct sx_from_images_args {
    const char *source;       /* a folder, .tar or .zip of class folders */
    const char *out;          /* the prefix of the files; with splits, their directory */
    const char *split;        /* "train=.8,val=.1,test=.1", or NULL: one set */
    int shards;               /* files of each set; 0 = one for each 128 MiB */
    int label_base;           /* number of the first class */
    uint64_t seed;            /* of split and order */
    bool recursive;           /* images in subfolders of a class folder belong to its class */
    bool skip_corrupt;        /* skip images that cannot be decoded */
    bool no_decode;           /* do not decode images to check them: only their headers are read */
    sx_progress_fn *progress; /* images checked, then images written; may be NULL */
    void *user;
    int64_t max_unpacked_bytes; /* as in sx_data_options */
} sx_from_images_args;

/* Which files are examples: classed.h. Every image is checked before anything is written. An
 * image's split and its place in the order depend on the hash of its name and the seed; the splits'
 * sizes are the fractions of the whole, rounded. No file appears before all are written.
 * Appends lines to `text` with the images found, skipped (the first 20 corrupt ones by name) and
 * written. Errors: DATA_LOSS: images that are not JPEG or PNG or cannot be decoded (the first 20 by
 * name), unless skip_corrupt is set and there are others; INVALID_ARGUMENT a bad or empty split, no
 * images. */
SX_MUST_USE sx_status sx_from_images(const sx_from_images_args *args, sx_buf *text);
/* INVALID_ARGUMENT for options that are wrong whatever the source holds; sx_from_images() checks
 * the same. */
SX_MUST_USE sx_status sx_from_images_check(const sx_from_images_args *args);

/* ---- IDX pairs to records ---- */

typedef struct sx_from_idx_args {
    const char *images, *labels;
    const char *out; /* the prefix of the files */
    bool png;        /* image/encoded as PNG; else raw: image_raw, label, height, width, depth */
    int shards;      /* 0 = one for each 128 MiB of pixels */
    int label_base;
    sx_progress_fn *progress; /* may be NULL */
    void *user;
} sx_from_idx_args;

/* Order and content of the arrays are kept. Appends one line to `text`. */
SX_MUST_USE sx_status sx_from_idx(const sx_from_idx_args *args, sx_buf *text);

/* ---- Looking ---- */

/* Appends a description of the data and of its first `count` examples: each feature of record files
 * with its kind and first values; images with format and size. */
SX_MUST_USE sx_status sx_data_show(const char *spec, const sx_data_options *options, int64_t count,
                                   sx_buf *text);

/* ---- Checking ---- */

typedef struct sx_verify_args {
    const char *const *paths; /* [path_count] TFRecord files */
    size_t path_count;
    bool decode;                    /* decode every image too */
    const sx_data_options *options; /* keys, label base, compression, skip_corrupt; may be NULL */
    sx_progress_fn *progress;       /* files; may be NULL */
    void *user;
} sx_verify_args;

typedef struct sx_verify_result {
    int64_t files, records, bytes;
    int64_t corrupt;     /* corrupt records or regions; 0 unless skip_corrupt */
    int64_t undecodable; /* likewise */
} sx_verify_result;

/* Reads every byte: checksums, Examples, label ranges, images if requested, and the counts and
 * checksums of the sidecar schema; of CSV files the number of fields in each row. The first error
 * is returned, with file, record and offset; with skip_corrupt, corrupt records are counted and
 * listed in `text` (the first 20). */
SX_MUST_USE sx_status sx_data_verify(const sx_verify_args *args, sx_buf *text,
                                     sx_verify_result *out_result);

/* ---- Taking ---- */

/* Writes examples [first, first + count) of an unbatched dataset as .npy: component "image" or
 * "features" to `path`, and "label" to `label_path` unless NULL. Encoded images are decoded to
 * uint8; all must then have the same size. Errors: OUT_OF_RANGE: fewer examples; INVALID_ARGUMENT:
 * different sizes (the message has both). */
SX_MUST_USE sx_status sx_data_take(sx_dataset *dataset, int64_t first, int64_t count,
                                   const char *path, const char *label_path);

#endif
