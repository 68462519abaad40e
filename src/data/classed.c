#include "data/classed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/checked.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "io/file.h"

enum { MAX_DEPTH = 16, MAX_FILES = 1 << 24, MAX_NAMED = 5 };

/* Includes formats that cannot be decoded: they are reported by name when read. */
static const char *const image_extensions[] = {".jpg", ".jpeg", ".jpe",  ".jfif", ".png",
                                               ".gif", ".bmp",  ".webp", ".tif",  ".tiff"};

static bool is_image_name(const char *name)
{
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot != NULL && i < SX_COUNT(image_extensions); i++) {
        if (strcasecmp(dot, image_extensions[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_hidden(const char *name)
{
    for (const char *part = name; part != NULL; part = strchr(part, '/')) {
        part += *part == '/';
        if (*part == '.' || strncmp(part, "__MACOSX/", 9) == 0) {
            return true;
        }
    }
    return false;
}

/* The length of the folder's part of a path: "a/b/c" -> 3; 0 = none. */
static size_t parent_length(const char *path, size_t length)
{
    while (length > 0 && path[length - 1] != '/') {
        length--;
    }
    return length > 0 ? length - 1 : 0;
}

/* ---- Finding the class folders ---- */

/* Whether `path` is below `folder` (of `length` bytes) or is the folder itself; "" contains
 * everything. */
static bool is_below(const char *path, const char *folder, size_t length)
{
    return length == 0 || (strncmp(path, folder, length) == 0 && path[length] == '/');
}

struct finder {
    const char *const *names;
    size_t count;
    const char *where;
    bool recursive;
    sx_class_list *list;
    const char *root; /* the deepest folder that contains all images: root[0 .. root_length) */
    size_t root_length;
    int64_t images, direct; /* image names; those directly in the root */
    sx_map classes;         /* the root's subfolders that hold images; the value is 1 if all those
                               are nested deeper, else 2; later the class number + 1 */
};

static void find_root(struct finder *finder)
{
    for (size_t i = 0; i < finder->count; i++) {
        const char *name = finder->names[i];
        if (is_hidden(name) || !is_image_name(name)) {
            continue;
        }
        if (finder->images++ == 0) {
            finder->root = name;
            finder->root_length = parent_length(name, strlen(name));
        }
        while (!is_below(name, finder->root, finder->root_length)) {
            finder->root_length = parent_length(finder->root, finder->root_length);
        }
    }
}

/* The class folder below the root in which `name` lies; *out_depth: 0 directly in the root, 1 in
 * the class folder, more in folders of that. The text is cut into `folder`. */
static int depth_below_root(const struct finder *finder, const char *name, sx_buf *folder)
{
    sx_buf_reset(folder);
    if (!is_below(name, finder->root, finder->root_length)) {
        return 0;
    }
    const char *rest = name + finder->root_length + (finder->root_length > 0);
    int depth = 0;
    for (const char *slash = strchr(rest, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        if (depth++ == 0) {
            sx_buf_append(folder, rest, (size_t)(slash - rest));
        }
    }
    return depth;
}

static sx_status find_classes(struct finder *finder, sx_buf *folder)
{
    sx_map_deinit(&finder->classes);
    sx_map_init(&finder->classes);
    finder->direct = 0;
    for (size_t i = 0; i < finder->count; i++) {
        const char *name = finder->names[i];
        if (is_hidden(name) || !is_image_name(name)) {
            continue;
        }
        int depth = depth_below_root(finder, name, folder);
        SX_TRY(sx_buf_status(folder));
        const char *class = sx_buf_text(folder);
        finder->direct += depth == 0;
        if (depth == 1 || (depth > 1 && !sx_map_has(&finder->classes, class))) {
            SX_TRY(sx_map_put(&finder->classes, class, (void *)(uintptr_t)(depth == 1 ? 2 : 1)));
        }
    }
    return SX_OK;
}

/* Whether `folder` has the name of the training part of a data set. */
static bool is_train_name(const char *folder)
{
    const char *slash = strrchr(folder, '/');
    const char *name = slash != NULL ? slash + 1 : folder;
    return strcasecmp(name, "train") == 0 || strcasecmp(name, "training") == 0;
}

/* Names the folders ("train", "validation") whose subfolders hold images. */
static sx_status mixed_depths(const struct finder *finder)
{
    const char *train = NULL, *other = NULL;
    sx_map parents;
    sx_map_init(&parents);
    sx_buf text;
    sx_buf_init(&text, 4096);
    sx_status status = SX_OK;
    for (size_t i = 0; i < finder->count && status == SX_OK; i++) {
        char parent[512];
        const char *name = finder->names[i];
        if (is_hidden(name) || !is_image_name(name)) {
            continue;
        }
        size_t length = parent_length(name, parent_length(name, strlen(name)));
        length = SX_MIN(length, sizeof(parent) - 1);
        memcpy(parent, name, length);
        parent[length] = '\0';
        if (parents.count < MAX_NAMED && !sx_map_has(&parents, parent)) {
            sx_buf_printf(&text, "%s\"%s\"", parents.count == 0 ? "" : ", ",
                          length == 0 ? "." : parent);
            status = sx_map_put(&parents, parent, NULL);
        }
    }
    for (size_t i = 0; i < parents.count; i++) {
        const char *parent = parents.entries[i].key;
        const char **part = is_train_name(parent) ? &train : &other;
        *part = *part != NULL ? *part : parent;
    }
    size_t where_length = strlen(finder->where);
    while (where_length > 1 && finder->where[where_length - 1] == '/') {
        where_length--;
    }
    if (status == SX_OK && train != NULL && other != NULL && other[0] != '\0') {
        bool archive = sx_path_exists(finder->where) && !sx_path_is_dir(finder->where);
        int length = archive ? 0 : (int)SX_MIN(where_length, (size_t)4096);
        const char *slash = archive ? "" : "/";
        status =
            sx_error(SX_INVALID_ARGUMENT,
                     "%s: class folders with different parents (%s); use each as a data set of "
                     "its own: %s--data %.*s%s%s --eval-data %.*s%s%s",
                     finder->where, sx_buf_text(&text), archive ? "unpack the archive, " : "",
                     length, finder->where, slash, train, length, finder->where, slash, other);
    } else if (status == SX_OK) {
        status = sx_error(
            SX_INVALID_ARGUMENT,
            "%s: class folders with different parents (%s); name the directory whose "
            "subdirectories are the classes, or use --recursive to take \"%.*s%s%s\" and its "
            "siblings as classes, with all images below them",
            finder->where, sx_buf_text(&text), (int)finder->root_length, finder->root,
            finder->root_length > 0 ? "/" : "", finder->classes.entries[0].key);
    }
    sx_buf_deinit(&text);
    sx_map_deinit(&parents);
    return status;
}

static sx_status check_classes(const struct finder *finder)
{
    if (finder->images == 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%s: no images found; expected one folder per class with .jpg, .jpeg or "
                        ".png files",
                        finder->where);
    }
    if (finder->classes.count == 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%s: images are not in class folders; expected one folder per class, as "
                        "in %s/roses/1.jpg",
                        finder->where, finder->where);
    }
    size_t with_images = 0;
    bool train = false;
    for (size_t i = 0; i < finder->classes.count; i++) {
        bool nested = (uintptr_t)finder->classes.entries[i].value == 1;
        with_images += !nested;
        train = train || (nested && is_train_name(finder->classes.entries[i].key));
    }
    /* Beside several classes, a folder with only nested images is a class to be named and skipped.
     * Otherwise the classes are likely at another level. */
    bool clear = with_images == finder->classes.count || (with_images > 1 && !train);
    return finder->recursive || clear ? SX_OK : mixed_depths(finder);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorts the class folders and numbers them. */
static sx_status number_classes(struct finder *finder)
{
    sx_class_list *list = finder->list;
    sx_map *classes = &finder->classes;
    list->classes = sx_arena_array(&list->arena, classes->count, char *);
    if (list->classes == NULL) {
        return sx_no_memory("listing the files of %s", finder->where);
    }
    list->without_images = sx_arena_array(&list->arena, classes->count, char *);
    if (list->without_images == NULL) {
        return sx_no_memory("listing the files of %s", finder->where);
    }
    for (size_t i = 0; i < classes->count; i++) {
        const char *name = classes->entries[i].key;
        bool nested = (uintptr_t)classes->entries[i].value == 1 && !finder->recursive;
        char **place = nested ? &list->without_images[list->without_images_count++]
                              : &list->classes[list->class_count++];
        if (!sx_utf8_valid(name, strlen(name))) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "%s: the name of class folder \"%s\" is not UTF-8; rename it",
                            finder->where, name);
        }
        *place = sx_arena_strdup(&list->arena, name);
        if (*place == NULL) {
            return sx_no_memory("listing the files of %s", finder->where);
        }
    }
    qsort(list->without_images, (size_t)list->without_images_count, sizeof(*list->without_images),
          compare_names);
    qsort(list->classes, (size_t)list->class_count, sizeof(*list->classes), compare_names);
    for (int i = 0; i < list->class_count; i++) {
        SX_TRY(sx_map_put(classes, list->classes[i], (void *)(uintptr_t)(i + 1)));
    }
    return SX_OK;
}

static int compare_items(const void *a, const void *b)
{
    return strcmp(((const sx_class_item *)a)->name, ((const sx_class_item *)b)->name);
}

static sx_status collect_items(struct finder *finder, sx_buf *folder)
{
    sx_class_list *list = finder->list;
    list->items = sx_alloc((size_t)finder->images, sizeof(*list->items));
    if (list->items == NULL) {
        return sx_no_memory("listing the files of %s", finder->where);
    }
    for (size_t i = 0; i < finder->count; i++) {
        const char *name = finder->names[i];
        if (is_hidden(name)) {
            continue;
        }
        if (name[strlen(name) - 1] == '/') {
            int parts = 0;
            for (const char *slash = name; (slash = strchr(slash, '/')) != NULL; slash++) {
                parts++;
            }
            if (finder->recursive && parts > MAX_DEPTH) {
                return sx_error(SX_RESOURCE_EXHAUSTED, "%s/%s: folders nested more than %d deep",
                                finder->where, name, (int)MAX_DEPTH);
            }
            list->unread_folders++;
            continue;
        }
        if (!is_image_name(name)) {
            list->not_images++;
            continue;
        }
        int depth = depth_below_root(finder, name, folder);
        SX_TRY(sx_buf_status(folder));
        if (depth == 0) {
            list->outside++;
        } else if (depth > 1 && !finder->recursive) {
            list->nested++;
        } else {
            uintptr_t number = (uintptr_t)sx_map_get(&finder->classes, sx_buf_text(folder));
            list->items[list->count++] = (sx_class_item){name, i, (int)number - 1};
        }
    }
    qsort(list->items, (size_t)list->count, sizeof(*list->items), compare_items);
    return SX_OK;
}

sx_status sx_class_list_init(const char *const *names, size_t count, bool recursive,
                             const char *where, sx_class_list *out_list)
{
    sx_class_list list = {0};
    sx_arena_init(&list.arena, 0);
    struct finder finder = {.names = names,
                            .count = count,
                            .where = where,
                            .recursive = recursive,
                            .list = &list,
                            .root = ""};
    sx_map_init(&finder.classes);
    sx_buf folder;
    sx_buf_init(&folder, 1 << 16);
    sx_status status;
    find_root(&finder);
    SX_TRY_GOTO(status, find_classes(&finder, &folder), done);
    if (finder.direct > 0 && finder.classes.count < 2 && finder.root_length > 0) {
        /* One class folder, possibly with a subfolder. */
        finder.root_length = parent_length(finder.root, finder.root_length);
        SX_TRY_GOTO(status, find_classes(&finder, &folder), done);
    }
    SX_TRY_GOTO(status, check_classes(&finder), done);
    SX_TRY_GOTO(status, number_classes(&finder), done);
    SX_TRY_GOTO(status, collect_items(&finder, &folder), done);
done:
    sx_buf_deinit(&folder);
    sx_map_deinit(&finder.classes);
    if (status == SX_OK) {
        *out_list = list;
    } else {
        sx_class_list_deinit(&list);
    }
    return status;
}

void sx_class_list_put_skipped(const sx_class_list *list, sx_buf *out)
{
    const struct {
        int64_t count;
        const char *one, *many, *hint;
    } rows[] = {
        {list->not_images, "file that is not an image", "files that are not images", ""},
        {list->outside, "image outside the class folders", "images outside the class folders", ""},
        {list->nested, "image in a nested folder", "images in nested folders",
         " (--recursive includes them)"},
        {list->unread_folders, "nested folder", "nested folders",
         " (more than 16 deep, or a link to a folder that contains it)"},
    };
    bool any = false;
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        if (rows[i].count > 0) {
            sx_buf_printf(out, "%s%lld %s%s", any ? ", " : "; skipped ", (long long)rows[i].count,
                          rows[i].count == 1 ? rows[i].one : rows[i].many, rows[i].hint);
            any = true;
        }
    }
    for (int i = 0; i < list->without_images_count && i < MAX_NAMED; i++) {
        sx_buf_printf(out, "%s%s", i == 0 ? "; " : ", ", list->without_images[i]);
    }
    if (list->without_images_count > MAX_NAMED) {
        sx_buf_printf(out, " and %d more", list->without_images_count - MAX_NAMED);
    }
    if (list->without_images_count > 0) {
        sx_buf_printf(out, ": all %s images are in subfolders; use --recursive",
                      list->without_images_count == 1 ? "its" : "their");
    }
}

void sx_class_list_deinit(sx_class_list *list)
{
    sx_free(list->items);
    sx_arena_deinit(&list->arena);
    memset(list, 0, sizeof(*list));
}

/* ---- Walking a tree ---- */

struct walk {
    const char *root;
    sx_paths names;
    size_t capacity;
    struct stat folders[MAX_DEPTH + 1]; /* the folder being listed and those that contain it */
};

/* Whether a symbolic link leads back to a folder that contains it. */
static bool is_loop(const struct walk *walk, const struct stat *info, int depth)
{
    for (int i = 0; i <= depth; i++) {
        if (walk->folders[i].st_dev == info->st_dev && walk->folders[i].st_ino == info->st_ino) {
            return true;
        }
    }
    return false;
}

/* Takes `relative`. */
static sx_status add_file(struct walk *walk, char *relative)
{
    if (walk->names.count == MAX_FILES) {
        sx_free(relative);
        return sx_error(SX_RESOURCE_EXHAUSTED, "%s: more than %d files", walk->root,
                        (int)MAX_FILES);
    }
    if (walk->names.count == walk->capacity) {
        size_t capacity = SX_MAX((size_t)256, walk->capacity * 2);
        char **items = sx_realloc(walk->names.items, capacity, sizeof(*items));
        if (items == NULL) {
            sx_free(relative);
            return sx_no_memory("listing the files of %s", walk->root);
        }
        walk->names.items = items;
        walk->capacity = capacity;
    }
    walk->names.items[walk->names.count++] = relative;
    return SX_OK;
}

static sx_status walk_folder(struct walk *walk, const char *relative, int depth);

/* Takes `relative`. */
static sx_status walk_entry(struct walk *walk, char *relative, int depth)
{
    char *path = NULL;
    struct stat info = {0};
    bool folder = false;
    sx_status status = SX_OK;
    if (!is_image_name(relative)) {
        SX_TRY_GOTO(status, sx_path_join(walk->root, relative, &path), done);
        folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
        sx_free(path);
    }
    if (!folder) {
        return add_file(walk, relative);
    }
    if (depth == MAX_DEPTH || is_loop(walk, &info, depth)) {
        char *unread = NULL;
        SX_TRY_GOTO(status, sx_path_format(&unread, "%s/", relative), done);
        sx_free(relative);
        return add_file(walk, unread);
    }
    walk->folders[depth + 1] = info;
    status = walk_folder(walk, relative, depth + 1);
done:
    sx_free(relative);
    return status;
}

static sx_status walk_folder(struct walk *walk, const char *relative, int depth)
{
    char *path = NULL;
    sx_paths entries = {0};
    SX_TRY(sx_path_join(walk->root, relative, &path));
    sx_status status = sx_dir_list(relative[0] == '\0' ? walk->root : path, &entries);
    sx_free(path);
    for (size_t i = 0; i < entries.count && status == SX_OK; i++) {
        char *name = NULL;
        status = relative[0] == '\0' ? sx_path_format(&name, "%s", entries.items[i])
                                     : sx_path_join(relative, entries.items[i], &name);
        if (status == SX_OK) {
            status = walk_entry(walk, name, depth);
        }
    }
    sx_paths_deinit(&entries);
    return status;
}

sx_status sx_list_tree(const char *dir, sx_paths *out_names)
{
    struct walk walk = {.root = dir};
    if (stat(dir, &walk.folders[0]) != 0) {
        return sx_errno_status(errno, "list", dir);
    }
    sx_status status = walk_folder(&walk, "", 0);
    if (status != SX_OK) {
        sx_paths_deinit(&walk.names);
        return status;
    }
    if (walk.names.count > 0) {
        qsort(walk.names.items, walk.names.count, sizeof(*walk.names.items), compare_names);
    }
    *out_names = walk.names;
    return SX_OK;
}
