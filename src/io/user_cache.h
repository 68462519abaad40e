/* The user's cache: files of ours that can be made again, each kind in a folder of its own.
 *
 *   $XDG_CACHE_HOME/sextant/NAME     ~/.cache/sextant/NAME where XDG_CACHE_HOME is not set */
#ifndef SX_IO_USER_CACHE_H
#define SX_IO_USER_CACHE_H

#include <sextant/types.h>

/* The folder's path, which need not exist yet; free with sx_free. NOT_FOUND: neither
 * XDG_CACHE_HOME nor HOME says an absolute path. */
SX_MUST_USE sx_status sx_user_cache(const char *name, char **out_dir);

#endif
