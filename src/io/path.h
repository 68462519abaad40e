/* Paths: pure text helpers, and what is asked of directories. Separator is '/'. */
#ifndef SX_IO_PATH_H
#define SX_IO_PATH_H

#include <stdbool.h>

#include <sextant/types.h>

/* dir + "/" + name; `name` alone when it is absolute or dir is empty. Free with sx_free. */
SX_MUST_USE sx_status sx_path_join(const char *dir, const char *name, char **out_path);
/* printf into a new path; free with sx_free. */
SX_MUST_USE sx_status sx_path_format(char **out_path, const char *format, ...) SX_PRINTF(2, 3);
/* The part before the last name: "a/b" -> "a", "b" -> ".", "/b" -> "/". Free with sx_free. */
SX_MUST_USE sx_status sx_path_dirname(const char *path, char **out_dir);
/* The part after the last '/'; borrowed from `path`. */
const char *sx_path_basename(const char *path);

bool sx_path_exists(const char *path); /* follows symbolic links */
bool sx_path_is_dir(const char *path);

/* Makes the directory and its missing parents; one that exists is fine. */
SX_MUST_USE sx_status sx_dir_create(const char *path);
/* Removes a file or a whole tree without following symbolic links; a missing one is fine. */
SX_MUST_USE sx_status sx_dir_remove(const char *path);

/* A list of paths that owns its strings; {0} is empty. */
typedef struct sx_paths {
    char **items;
    size_t count;
} sx_paths;

void sx_paths_deinit(sx_paths *paths);

/* The names in a directory (no "." and "..", hidden ones left out), sorted by bytes. */
SX_MUST_USE sx_status sx_dir_list(const char *dir, sx_paths *out_names);

/* The files that the shell patterns match: pattern by pattern, sorted by bytes within one. A
 * pattern that is itself an existing path is that path. NOT_FOUND names a pattern without match. */
SX_MUST_USE sx_status sx_paths_glob(const char *const *patterns, size_t count, sx_paths *out_paths);

/* Whether a name from outside may be used below a directory: relative, no ".." or "." or empty
 * component, no NUL (length says how long it claims to be), no control character, no backslash,
 * at most 4096 bytes. */
bool sx_path_is_safe(const char *name, size_t length);

#endif
