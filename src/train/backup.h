/* Files of a run that nothing can replace are stored twice:
 *
 *   run1/sextant.json           run1/graphs/train.graph       the file
 *   run1/.backup/sextant.json   run1/.backup/train.graph      its copy
 *
 * A file that is missing, empty or damaged is read from its copy, with a warning. */
#ifndef SX_TRAIN_BACKUP_H
#define SX_TRAIN_BACKUP_H

#include <sextant/types.h>

#include "io/commit.h"

#define SX_BACKUP_DIR ".backup"

/* Receives a warning, one sentence without a line break. */
typedef void sx_warn_fn(void *user, const char *text);

/* OK if `text` is what was written; else DATA_LOSS, without the path. */
typedef sx_status sx_text_check_fn(void *user, const char *text, size_t size);

typedef struct sx_backup_file {
    const char *dir, *name; /* the file is dir/name */
    size_t max_bytes;
    sx_text_check_fn *check;
    void *check_user;
    sx_warn_fn *warn; /* NULL = the log */
    void *warn_user;
} sx_backup_file;

/* Reads the file, or its copy if the file is missing or damaged. Free the text with sx_free().
 * Errors: NOT_FOUND: neither exists; DATA_LOSS: neither is intact; those of reading. */
SX_MUST_USE sx_status sx_backup_read(const sx_backup_file *file, char **out_text, size_t *out_size);

/* Makes the file and its copy equal again: a missing or damaged file is replaced by its copy, with
 * a warning; a copy that differs from the file, by the file. Errors: as sx_backup_read(); those of
 * writing. */
SX_MUST_USE sx_status sx_backup_repair(const sx_backup_file *file);

bool sx_backup_exists(const char *dir, const char *name); /* the copy */

/* Creates the directory of the copies. */
SX_MUST_USE sx_status sx_backup_make_dir(const char *dir);
/* Adds dir/name to the commit. */
SX_MUST_USE sx_status sx_backup_add_file(sx_commit *commit, const char *dir, const char *name,
                                         const char *text, size_t size);
/* Adds its copy. */
SX_MUST_USE sx_status sx_backup_add_copy(sx_commit *commit, const char *dir, const char *name,
                                         const char *text, size_t size);

/* Deletes the copies of these files, then their directory if it is empty. */
SX_MUST_USE sx_status sx_backup_delete(const char *dir, const char *const *names, size_t n);

#endif
