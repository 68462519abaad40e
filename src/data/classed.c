#include "data/classed.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buffer.h"
#include "base/checked.h"
#include "base/map.h"
#include "base/memory.h"

enum { MAX_DEPTH = 16, MAX_FILES = 1 << 24, MAX_NAMED = 5 };

/* Formats that we do not decode are examples too: they are refused by name when read. */
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

/* ---- finding the class folders ---- */

struct finder {
    const char *const *names;
    size_t count;
    const char *where;
    sx_class_list *list;
    sx_map folders; /* those that hold images; the value is the class number + 1 */
};

static sx_status no_memory(const struct finder *finder)
{
    return sx_error(SX_RESOURCE_EXHAUSTED, "%s: out of memory listing its files", finder->where);
}

static const char *folder_of(struct finder *finder, const char *name)
{
    return sx_arena_strndup(&finder->list->arena, name, parent_length(name, strlen(name)));
}

static sx_status find_folders(struct finder *finder)
{
    const char *last = NULL; /* names come in runs of one folder */
    for (size_t i = 0; i < finder->count; i++) {
        const char *name = finder->names[i];
        size_t length = parent_length(name, strlen(name));
        if (is_hidden(name) || !is_image_name(name) ||
            (last != NULL && strlen(last) == length && memcmp(last, name, length) == 0)) {
            continue;
        }
        last = folder_of(finder, name);
        if (last == NULL) {
            return no_memory(finder);
        }
        if (!sx_map_has(&finder->folders, last)) {
            SX_TRY(sx_map_put(&finder->folders, last, NULL));
        }
    }
    return SX_OK;
}

/* "train, validation and 3 more": the folders in which class folders lie. */
static sx_status mixed_parents(const struct finder *finder)
{
    sx_map parents;
    sx_map_init(&parents);
    sx_buf text;
    sx_buf_init(&text, 4096);
    sx_status status = SX_OK;
    for (size_t i = 0; i < finder->folders.count && status == SX_OK; i++) {
        char parent[512];
        const char *folder = finder->folders.entries[i].key;
        size_t length = SX_MIN(parent_length(folder, strlen(folder)), sizeof(parent) - 1);
        memcpy(parent, folder, length);
        parent[length] = '\0';
        if (parents.count < MAX_NAMED && !sx_map_has(&parents, parent)) {
            sx_buf_printf(&text, "%s\"%s\"", parents.count == 0 ? "" : ", ",
                          length == 0 ? "." : parent);
            status = sx_map_put(&parents, parent, NULL);
        }
    }
    if (status == SX_OK) {
        status = sx_error(SX_INVALID_ARGUMENT,
                          "%s: class folders with different parents (%s); name the directory whose "
                          "subdirectories are the classes",
                          finder->where, sx_buf_text(&text));
    }
    sx_buf_deinit(&text);
    sx_map_deinit(&parents);
    return status;
}

static sx_status check_folders(const struct finder *finder)
{
    const sx_map *folders = &finder->folders;
    if (folders->count == 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%s: no images found; expected one folder per class with .jpg, .jpeg "
                        "or .png files",
                        finder->where);
    }
    const char *first = folders->entries[0].key;
    size_t length = parent_length(first, strlen(first));
    for (size_t i = 0; i < folders->count; i++) {
        const char *folder = folders->entries[i].key;
        if (folder[0] == '\0') {
            return sx_error(
                SX_INVALID_ARGUMENT,
                "%s: images are not in class folders; expected one folder per class, as "
                "in %s/roses/1.jpg",
                finder->where, finder->where);
        }
        if (parent_length(folder, strlen(folder)) != length || memcmp(folder, first, length) != 0) {
            return mixed_parents(finder);
        }
    }
    return SX_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorts the folders into classes and remembers each one's number. */
static sx_status number_classes(struct finder *finder)
{
    sx_class_list *list = finder->list;
    sx_map *folders = &finder->folders;
    char **sorted = sx_arena_array(&list->arena, folders->count, char *);
    list->classes = sx_arena_array(&list->arena, folders->count, char *);
    if (sorted == NULL || list->classes == NULL) {
        return no_memory(finder);
    }
    for (size_t i = 0; i < folders->count; i++) {
        sorted[i] = folders->entries[i].key;
    }
    qsort(sorted, folders->count, sizeof(*sorted), compare_names);
    for (size_t i = 0; i < folders->count; i++) {
        SX_TRY(sx_map_put(folders, sorted[i], (void *)(uintptr_t)(i + 1)));
        list->classes[i] = sx_arena_strdup(&list->arena, sx_path_basename(sorted[i]));
        if (list->classes[i] == NULL) {
            return no_memory(finder);
        }
    }
    list->class_count = (int)folders->count;
    return SX_OK;
}

static int compare_items(const void *a, const void *b)
{
    return strcmp(((const sx_class_item *)a)->name, ((const sx_class_item *)b)->name);
}

static sx_status collect_items(struct finder *finder)
{
    sx_class_list *list = finder->list;
    list->items = sx_alloc(finder->count, sizeof(*list->items));
    sx_buf folder;
    sx_buf_init(&folder, 1 << 16);
    for (size_t i = 0; list->items != NULL && i < finder->count; i++) {
        const char *name = finder->names[i];
        if (is_hidden(name)) {
            continue;
        }
        sx_buf_reset(&folder);
        sx_buf_append(&folder, name, parent_length(name, strlen(name)));
        uintptr_t number = (uintptr_t)sx_map_get(&finder->folders, sx_buf_text(&folder));
        if (number == 0) {
            list->ignored++;
        } else {
            list->items[list->count++] = (sx_class_item){name, i, (int)number - 1};
        }
    }
    sx_status status = list->items == NULL ? no_memory(finder) : sx_buf_status(&folder);
    sx_buf_deinit(&folder);
    if (status == SX_OK) {
        qsort(list->items, (size_t)list->count, sizeof(*list->items), compare_items);
    }
    return status;
}

sx_status sx_class_list_init(const char *const *names, size_t count, const char *where,
                             sx_class_list *out_list)
{
    sx_class_list list = {0};
    sx_arena_init(&list.arena, 0);
    struct finder finder = {.names = names, .count = count, .where = where, .list = &list};
    sx_map_init(&finder.folders);
    sx_status status;
    SX_TRY_GOTO(status, find_folders(&finder), done);
    SX_TRY_GOTO(status, check_folders(&finder), done);
    SX_TRY_GOTO(status, number_classes(&finder), done);
    SX_TRY_GOTO(status, collect_items(&finder), done);
done:
    sx_map_deinit(&finder.folders);
    if (status == SX_OK) {
        *out_list = list;
    } else {
        sx_class_list_deinit(&list);
    }
    return status;
}

void sx_class_list_deinit(sx_class_list *list)
{
    sx_free(list->items);
    sx_arena_deinit(&list->arena);
    memset(list, 0, sizeof(*list));
}

/* ---- walking a tree ---- */

struct walk {
    const char *root;
    sx_paths names;
    size_t capacity;
};

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
            return sx_error(SX_RESOURCE_EXHAUSTED, "%s: out of memory listing its files",
                            walk->root);
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
    bool folder = false;
    if (!is_image_name(relative)) {
        sx_status status = sx_path_join(walk->root, relative, &path);
        if (status != SX_OK) {
            sx_free(relative);
            return status;
        }
        folder = sx_path_is_dir(path);
        sx_free(path);
    }
    if (!folder) {
        return add_file(walk, relative);
    }
    sx_status status = walk_folder(walk, relative, depth + 1);
    sx_free(relative);
    return status;
}

static sx_status walk_folder(struct walk *walk, const char *relative, int depth)
{
    if (depth > MAX_DEPTH) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "%s/%s: folders nested more than %d deep",
                        walk->root, relative, (int)MAX_DEPTH);
    }
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
