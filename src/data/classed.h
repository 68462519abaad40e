/* Class folders: which of many file names are examples, and of which class.
 *
 *   flower_photos/daisy/1.jpg    ->  class "daisy" = 0
 *   flower_photos/roses/7.png    ->  class "roses" = 1
 *   flower_photos/LICENSE.txt    ->  ignored: lies in no class folder
 *
 * A class folder is one that holds images, known by their extension; all class folders must have
 * the same parent, which may lie at any depth. Classes are sorted by name (bytes), and numbered.
 * Every visible file in a class folder is an example, so that one which is no image gets an error
 * with its name instead of vanishing. Names with a component that begins with '.' and __MACOSX are
 * ignored. */
#ifndef SX_DATA_CLASSED_H
#define SX_DATA_CLASSED_H

#include "base/arena.h"
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
    int64_t ignored; /* visible files outside class folders */
    sx_arena arena;
} sx_class_list;

/* Sorts out `names` (relative paths, '/'), which must outlive the list. `where` is for messages.
 * Errors: INVALID_ARGUMENT no images; images beside no class folder; class folders with different
 * parents (a folder of folders of class folders). */
SX_MUST_USE sx_status sx_class_list_init(const char *const *names, size_t count, const char *where,
                                         sx_class_list *out_list);
void sx_class_list_deinit(sx_class_list *list);

/* All files below `dir`, as relative paths sorted by bytes; hidden ones left out. At most 16
 * folders deep and 2^24 files (RESOURCE_EXHAUSTED). */
SX_MUST_USE sx_status sx_list_tree(const char *dir, sx_paths *out_names);

#endif
