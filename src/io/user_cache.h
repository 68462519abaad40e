/* The user cache: files that can be recreated, with one directory for each kind.
 *
 *   $XDG_CACHE_HOME/sextant/NAME, or ~/.cache/sextant/NAME if XDG_CACHE_HOME is not set */
#ifndef SX_IO_USER_CACHE_H
#define SX_IO_USER_CACHE_H

#include <sextant/types.h>

/* The directory's path, which may not exist yet; free with sx_free. NOT_FOUND: neither
 * XDG_CACHE_HOME nor HOME is an absolute path. */
SX_MUST_USE sx_status sx_user_cache(const char *name, char **out_dir);

#endif
