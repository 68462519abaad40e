/* Class folders: determines which of the file names are examples, and their classes.
 *
 *   flower_photos/daisy/1.jpg           ->  class "daisy" = 0
 *   flower_photos/roses/7.png           ->  class "roses" = 1
 *   flower_photos/roses/wild/8.png      ->  "roses" if recursive, else skipped: nested
 *   flower_photos/roses/Thumbs.db       ->  skipped: not an image
 *   flower_photos/LICENSE.txt           ->  skipped: not an image
 *   flower_photos/cover.jpg             ->  skipped: outside the class folders
 *
 * Images are recognized by extension. The class folders are the subfolders of the deepest folder
 * that contains all images. Classes are sorted by name (bytes) and numbered. Skipped files are
 * counted. Names with a component that begins with '.' and __MACOSX are ignored. */
#ifndef SX_DATA_CLASSED_H
#define SX_DATA_CLASSED_H

#include "base/arena.h"
#include "base/buffer.h"
#include "io/path.h"
#include <sextant/types.h>

typedef struct sx_class_item {
    const char *name; /* as given; borrowed */
    size_t index;     /* in the list that was given */
    int label;
} sx_class_item;

typedef struct sx_class_list {
    sx_class_item *items; /* [count], sorted by name */
    int64_t count;
    char **classes; /* [class_count] */
    int class_count;
    char **without_images; /* [without_images_count]: folders beside the class folders, skipped
                              because all their images are nested */
    int without_images_count;
    int64_t not_images;     /* visible files without an image's extension */
    int64_t outside;        /* images in no class folder */
    int64_t nested;         /* images in subfolders of class folders; 0 if recursive */
    int64_t unread_folders; /* names that end in '/'; see sx_list_tree */
    sx_arena arena;
} sx_class_list;

/* Classifies `names` (relative paths, '/'), which must outlive the list. `recursive`: images in
 * subfolders of a class folder belong to the class. `where` is for messages. Errors:
 * INVALID_ARGUMENT: no images; images that are in no folder; unless recursive, class folders at
 * different depths (a folder of folders of class folders), where fewer than two folders have images
 * directly or one is named "train" or "training"; a class folder's name is not UTF-8.
 * RESOURCE_EXHAUSTED: `recursive`, and a folder is more than 16 deep. */
SX_MUST_USE sx_status sx_class_list_init(const char *const *names, size_t count, bool recursive,
                                         const char *where, sx_class_list *out_list);
void sx_class_list_deinit(sx_class_list *list);

/* Appends "; skipped 3 files that are not images, ..." if anything was skipped. */
void sx_class_list_put_skipped(const sx_class_list *list, sx_buf *out);

/* All files below `dir`, as relative paths sorted by bytes; without hidden ones. Folders more than
 * 16 deep and symbolic links to a folder that contains them are not read but listed, with a '/' at
 * the end: "roses/loop/". At most 2^24 files (RESOURCE_EXHAUSTED). */
SX_MUST_USE sx_status sx_list_tree(const char *dir, sx_paths *out_names);

#endif
