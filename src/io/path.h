/* Paths and directories. The separator is '/'. */
#ifndef SX_IO_PATH_H
#define SX_IO_PATH_H

#include <stdbool.h>

#include <sextant/types.h>

/* dir + "/" + name; just `name` if it is absolute or dir is empty. Free with sx_free. */
SX_MUST_USE sx_status sx_path_join(const char *dir, const char *name, char **out_path);
/* Formats a new path; free with sx_free. */
SX_MUST_USE sx_status sx_path_format(char **out_path, const char *format, ...) SX_PRINTF(2, 3);
/* The part before the last name: "a/b" -> "a", "b" -> ".", "/b" -> "/". Free with sx_free. */
SX_MUST_USE sx_status sx_path_dirname(const char *path, char **out_dir);
/* The part after the last '/'; borrowed from `path`. */
const char *sx_path_basename(const char *path);

bool sx_path_exists(const char *path); /* follows symbolic links */
bool sx_path_is_dir(const char *path);

/* Creates the directory and its parents as needed; succeeds if it exists. */
SX_MUST_USE sx_status sx_dir_create(const char *path);
/* Removes a file or directory tree without following symbolic links; succeeds if it is missing. */
SX_MUST_USE sx_status sx_dir_remove(const char *path);
/* Calls fsync() on the directory, so that its names survive a power failure. */
SX_MUST_USE sx_status sx_dir_sync(const char *path);

/* A list of paths that owns its strings; {0} is empty. */
typedef struct sx_paths {
    char **items;
    size_t count;
} sx_paths;

void sx_paths_deinit(sx_paths *paths);

/* The names in a directory except hidden ones (those that start with "."), sorted by bytes. */
SX_MUST_USE sx_status sx_dir_list(const char *dir, sx_paths *out_names);

/* The files that match the shell patterns, in the order of the patterns and sorted by bytes within
 * each. A pattern that is an existing path stands for itself. NOT_FOUND: a pattern matches nothing.
 */
SX_MUST_USE sx_status sx_paths_glob(const char *const *patterns, size_t count, sx_paths *out_paths);

/* Whether an untrusted name of `length` bytes can be used below a directory: relative, without
 * empty, "." or ".." components, NULs, control characters or backslashes, at most 4096 bytes. */
bool sx_path_is_safe(const char *name, size_t length);

#endif
