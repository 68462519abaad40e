#include "io/user_cache.h"

#include <stdlib.h>

#include "io/path.h"

sx_status sx_user_cache(const char *name, char **out_dir)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache != NULL && cache[0] == '/') {
        return sx_path_format(out_dir, "%s/sextant/%s", cache, name);
    }
    if (home != NULL && home[0] == '/') {
        return sx_path_format(out_dir, "%s/.cache/sextant/%s", home, name);
    }
    return sx_error(SX_NOT_FOUND, "no user cache: neither XDG_CACHE_HOME nor HOME is set");
}
