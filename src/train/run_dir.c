/* See run_dir.h. */
#include "train/run_dir.h"

#include <inttypes.h>
#include <string.h>

#include "base/buffer.h"
#include "base/checked.h"
#include "base/memory.h"
#include "graph/ir.h"
#include "io/commit.h"
#include "io/crc32c.h"
#include "io/file.h"
#include "io/json_text.h"
#include "io/path.h"
#include "nn/model_program.h"
#include "nn/preprocess_graph.h"
#include "train/checkpoint.h"
#include "train/history.h"
#include "train/run_info.h"

enum { MAX_JSON_BYTES = 1 << 24, MAX_GRAPH_BYTES = 1 << 30 };

static const char BEST_DIR[] = "best";
static const char *const graph_files[SX_RUN_GRAPHS] = {
    [SX_TRAIN] = "graphs/train.graph",
    [SX_EVAL] = "graphs/eval.graph",
    [SX_PREDICT] = "graphs/predict.graph",
    [SX_RUN_PREPROCESS] = "graphs/preprocess.graph",
};

void sx_run_graphs_destroy(sx_run_graphs *graphs)
{
    for (int i = 0; i < SX_RUN_GRAPHS; i++) {
        sx_graph_destroy(graphs->by_mode[i]);
        sx_status_free(graphs->lost[i]);
        graphs->by_mode[i] = NULL;
        graphs->lost[i] = SX_OK;
    }
}

bool sx_run_exists(const char *dir)
{
    char *path = NULL;
    sx_status status = sx_path_join(dir, SX_RUN_INFO_FILE, &path);
    bool exists = status == SX_OK && sx_path_exists(path);
    sx_status_free(status);
    sx_free(path);
    return exists || sx_backup_exists(dir, SX_RUN_INFO_FILE);
}

/* ---- Checks before a new run ---- */

/* The files that have copies. */
static const char *const copied[] = {"graphs/train.graph",   "graphs/eval.graph",
                                     "graphs/predict.graph", "graphs/preprocess.graph",
                                     SX_HISTORY_FILE,        SX_RUN_INFO_FILE};

/* What a run consists of besides its checkpoints. sextant.json is deleted last: a run that is half
 * deleted is still a run and can be deleted again. */
static const char *const parts[] = {"checkpoint", BEST_DIR, "history.json", "graphs",
                                    SX_RUN_INFO_FILE};

static bool is_part(const char *name)
{
    bool found = strncmp(name, SX_CHECKPOINT_BASENAME "-", sizeof(SX_CHECKPOINT_BASENAME)) == 0;
    for (size_t i = 0; i < SX_COUNT(parts); i++) {
        found |= strcmp(name, parts[i]) == 0;
    }
    return found;
}

sx_status sx_run_check_place(const char *dir)
{
    enum { NAMED = 3 };
    sx_paths names = {0};
    if (!sx_path_exists(dir) || sx_run_exists(dir)) {
        return SX_OK;
    }
    SX_TRY(sx_dir_list(dir, &names));
    bool has_part = false;
    size_t others = 0;
    sx_buf text;
    sx_buf_init(&text, 1 << 12);
    for (size_t i = 0; i < names.count; i++) {
        has_part |= is_part(names.items[i]);
        if (strcmp(names.items[i], "lost+found") != 0 && others++ < NAMED) {
            sx_buf_printf(&text, "%s%s", others > 1 ? ", " : "", names.items[i]);
        }
    }
    sx_status status = SX_OK;
    if (others > 0 && !has_part) {
        status = sx_error(SX_FAILED_PRECONDITION,
                          "%s is not empty and not a run directory (it has %s%s)", dir,
                          sx_buf_text(&text), others > NAMED ? ", …" : "");
    }
    sx_buf_deinit(&text);
    sx_paths_deinit(&names);
    return status;
}

/* ---- The four files and their copies ----
 *
 * sextant.json has the CRC-32C of each graph and, as its member "crc32c", its own: damage that
 * still parses is found, too. Runs that were written without checksums have no copies. */

typedef struct info_check {
    bool sealed; /* a checksum is required */
    json_t *json;
} info_check;

static sx_status check_info(void *user, const char *text, size_t size)
{
    info_check *check = user;
    json_error_t error;
    json_t *json = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    if (json == NULL) {
        return sx_error(SX_DATA_LOSS, "line %d: %s", error.line, error.text);
    }
    sx_status status = check->sealed || json_object_get(json, SX_JSON_SEAL) != NULL
                           ? sx_json_check_seal(json)
                           : SX_OK;
    if (status != SX_OK) {
        json_decref(json);
        return status;
    }
    check->json = json;
    return SX_OK;
}

/* `user` is the checksum as text, NULL = unknown. */
static sx_status check_graph(void *user, const char *text, size_t size)
{
    char actual[9];
    const char *expected = user;
    snprintf(actual, sizeof(actual), "%08" PRIx32, sx_crc32c(0, text, size));
    return expected == NULL || strcmp(actual, expected) == 0
               ? SX_OK
               : sx_error(SX_DATA_LOSS, "the checksum is %s, expected %s", actual, expected);
}

static sx_backup_file info_file(const char *dir, info_check *check, sx_warn_fn *warn,
                                void *warn_user)
{
    *check = (info_check){.sealed = sx_backup_exists(dir, SX_RUN_INFO_FILE)};
    return (sx_backup_file){.dir = dir,
                            .name = SX_RUN_INFO_FILE,
                            .max_bytes = MAX_JSON_BYTES,
                            .check = check_info,
                            .check_user = check,
                            .warn = warn,
                            .warn_user = warn_user};
}

static sx_backup_file graph_file(const char *dir, int mode, const char *crc32c, sx_warn_fn *warn,
                                 void *warn_user)
{
    return (sx_backup_file){.dir = dir,
                            .name = graph_files[mode],
                            .max_bytes = MAX_GRAPH_BYTES,
                            .check = check_graph,
                            .check_user = (void *)(uintptr_t)crc32c,
                            .warn = warn,
                            .warn_user = warn_user};
}

/* Adds to an error that the run is lost what is left of it. */
static sx_status say_what_is_left(const char *dir, sx_status lost)
{
    sx_arena arena;
    sx_checkpoints list = {0};
    sx_arena_init(&arena, 0);
    sx_status status = sx_checkpoints_list(dir, &arena, &list);
    if (status == SX_OK && list.count > 0) {
        status = sx_error(sx_status_code(lost),
                          "%s; %zu checkpoint%s left: train a new run in another directory with "
                          "--warm-start-from %s, or restore the file",
                          sx_status_message(lost), list.count, list.count == 1 ? " is" : "s are",
                          list.items[list.count - 1].prefix);
    } else if (status == SX_OK) {
        status = sx_error(sx_status_code(lost),
                          "%s; there are no checkpoints: start over with "
                          "--fresh",
                          sx_status_message(lost));
    }
    sx_status_free(lost);
    sx_arena_deinit(&arena);
    return status;
}

/* ---- Reading a run ---- */

static sx_status checksums_from_json(const json_t *json, sx_arena *arena, sx_run_info *info)
{
    for (int mode = 0; mode < SX_RUN_GRAPHS; mode++) {
        SX_TRY(sx_run_copy_text(arena, json_object_get(json, graph_files[mode]),
                                &info->graph_crc32c[mode]));
    }
    return SX_OK;
}

sx_status sx_run_read(const char *dir, sx_arena *arena, sx_warn_fn *warn, void *warn_user,
                      sx_run_info *out_info)
{
    info_check check;
    char *text = NULL;
    size_t size = 0;
    sx_run_info info = {0};
    const sx_backup_file file = info_file(dir, &check, warn, warn_user);
    sx_status status = sx_backup_read(&file, &text, &size);
    sx_free(text);
    if (sx_status_code(status) == SX_NOT_FOUND) {
        sx_status_free(status);
        status = sx_run_check_new(dir);
        return status != SX_OK ? status
                               : sx_error(SX_NOT_FOUND, "%s is not a run directory (it has no %s)",
                                          dir, SX_RUN_INFO_FILE);
    }
    if (sx_status_code(status) == SX_DATA_LOSS) {
        return say_what_is_left(dir, status);
    }
    SX_TRY(status);
    status = sx_run_info_from_json(check.json, arena, &info);
    if (status == SX_OK) {
        status = checksums_from_json(json_object_get(check.json, "checksums"), arena, &info);
    }
    json_decref(check.json);
    SX_TRY(status, "%s/%s", dir, SX_RUN_INFO_FILE);
    *out_info = info;
    return SX_OK;
}

sx_status sx_run_check_new(const char *dir)
{
    sx_arena arena;
    sx_checkpoints list = {0};
    sx_arena_init(&arena, 0);
    sx_status status = sx_checkpoints_list(dir, &arena, &list);
    if (status == SX_OK && list.count > 0) {
        const char *newest = list.items[list.count - 1].prefix;
        status =
            sx_error(SX_FAILED_PRECONDITION,
                     "%s contains %zu checkpoint%s (%s), but %s and its copy in %s are missing; "
                     "to keep the weights, train in another directory with --warm-start-from "
                     "%s; to delete them, start over with --fresh",
                     dir, list.count, list.count == 1 ? "" : "s", sx_path_basename(newest),
                     SX_RUN_INFO_FILE, SX_BACKUP_DIR, newest);
    }
    sx_arena_deinit(&arena);
    return status;
}

static sx_status read_graph(const char *dir, int mode, const sx_run_info *info, sx_warn_fn *warn,
                            void *warn_user, sx_graph **out)
{
    char *text = NULL;
    size_t size = 0;
    const sx_backup_file file = graph_file(dir, mode, info->graph_crc32c[mode], warn, warn_user);
    sx_status status = sx_backup_read(&file, &text, &size);
    if (status != SX_OK) {
        bool lost =
            sx_status_code(status) == SX_NOT_FOUND || sx_status_code(status) == SX_DATA_LOSS;
        return lost ? say_what_is_left(dir, status) : status;
    }
    status = sx_graph_parse(text, size, out);
    sx_free(text);
    const sx_code code = sx_status_code(status);
    if (code == SX_INVALID_ARGUMENT || code == SX_DATA_LOSS) {
        sx_status damaged =
            sx_error(SX_DATA_LOSS, "%s/%s: damaged, and there is no intact copy in %s: %s", dir,
                     graph_files[mode], SX_BACKUP_DIR, sx_status_message(status));
        sx_status_free(status);
        return say_what_is_left(dir, damaged);
    }
    if (status == SX_OK) {
        status = mode == SX_RUN_PREPROCESS
                     ? sx_preprocess_graph_check(*out, &info->declared, &info->inputs)
                     : sx_program_check_inputs(*out, (sx_mode)mode, &info->inputs);
    }
    return sx_status_annotate(status, __FILE__, __LINE__, "%s/%s", dir, graph_files[mode]);
}

static int graph_count(const sx_run_info *info)
{
    return info->has_program ? SX_RUN_GRAPHS : SX_RUN_PREPROCESS;
}

sx_status sx_run_read_graphs(const char *dir, const sx_run_info *info, sx_warn_fn *warn,
                             void *warn_user, sx_run_graphs *out_graphs)
{
    sx_run_graphs graphs = {{NULL}, {SX_OK}};
    for (int mode = 0; mode < graph_count(info); mode++) {
        sx_status status = read_graph(dir, mode, info, warn, warn_user, &graphs.by_mode[mode]);
        const sx_code code = sx_status_code(status);
        if (code == SX_NOT_FOUND || code == SX_DATA_LOSS) {
            graphs.lost[mode] = status;
        } else if (status != SX_OK) {
            sx_run_graphs_destroy(&graphs);
            return status;
        }
    }
    *out_graphs = graphs;
    return SX_OK;
}

sx_status sx_run_graph_lost(const sx_run_graphs *graphs, int which)
{
    sx_status lost = graphs->lost[which];
    return lost == SX_OK ? SX_OK : sx_error(sx_status_code(lost), "%s", sx_status_message(lost));
}

/* ---- Writing a run ---- */

/* Commits the files, then the copies, sextant.json last each time: the run is there with it. Takes
 * sextant.json without checksums. */
static sx_status write_files(const char *dir, json_t *info, const char *const graphs[SX_RUN_GRAPHS])
{
    char *graph_dir = NULL, *text = NULL;
    sx_commit *commit = NULL;
    json_t *checksums = json_object();
    for (int mode = 0; mode < SX_RUN_GRAPHS && graphs[mode] != NULL; mode++) {
        char crc32c[9];
        snprintf(crc32c, sizeof(crc32c), "%08" PRIx32,
                 sx_crc32c(0, graphs[mode], strlen(graphs[mode])));
        json_object_set_new(checksums, graph_files[mode], json_string(crc32c));
    }
    json_object_set_new(info, "checksums", checksums);
    sx_status status;
    SX_TRY_GOTO(status, sx_json_seal(info), done);
    SX_TRY_GOTO(status, sx_json_text(info, JSON_INDENT(2), &text), done);
    SX_TRY_GOTO(status, sx_path_join(dir, "graphs", &graph_dir), done);
    SX_TRY_GOTO(status, sx_dir_create(graph_dir), done);
    SX_TRY_GOTO(status, sx_backup_make_dir(dir), done);
    for (int copies = 0; copies <= 1; copies++) {
        sx_status (*add)(sx_commit *, const char *, const char *, const char *, size_t) =
            copies ? sx_backup_add_copy : sx_backup_add_file;
        SX_TRY_GOTO(status, sx_commit_create(&commit), done);
        for (int mode = 0; mode < SX_RUN_GRAPHS && graphs[mode] != NULL; mode++) {
            SX_TRY_GOTO(status,
                        add(commit, dir, graph_files[mode], graphs[mode], strlen(graphs[mode])),
                        done);
        }
        SX_TRY_GOTO(status, add(commit, dir, SX_RUN_INFO_FILE, text, strlen(text)), done);
        SX_TRY_GOTO(status, sx_commit_finish(commit), done);
        sx_commit_destroy(commit);
        commit = NULL;
    }
done:
    sx_commit_destroy(commit);
    sx_free(graph_dir);
    sx_free(text);
    return status;
}

sx_status sx_run_write(const char *dir, const sx_run_info *info, const sx_run_graphs *graphs)
{
    json_t *json = NULL;
    char *texts[SX_RUN_GRAPHS] = {NULL};
    sx_status status = sx_run_info_to_json(info, &json);
    for (int mode = 0; mode < graph_count(info) && status == SX_OK; mode++) {
        status = sx_run_graph_lost(graphs, mode);
        status = status == SX_OK ? sx_graph_print(graphs->by_mode[mode], &texts[mode]) : status;
    }
    if (status == SX_OK) {
        status = write_files(dir, json, (const char *const *)texts);
    }
    for (int mode = 0; mode < SX_RUN_GRAPHS; mode++) {
        sx_text_free(texts[mode]);
    }
    json_decref(json);
    return status;
}

/* A run that was written without checksums, before there was preprocessing, gets them, and copies.
 */
static sx_status add_checksums(const char *dir, json_t *info)
{
    char *texts[SX_RUN_GRAPHS] = {NULL};
    sx_status status = SX_OK;
    for (int mode = 0; mode < SX_RUN_PREPROCESS && status == SX_OK; mode++) {
        size_t size = 0;
        const sx_backup_file file = graph_file(dir, mode, NULL, NULL, NULL);
        status = sx_backup_read(&file, &texts[mode], &size);
    }
    if (status == SX_OK) {
        status = write_files(dir, info, (const char *const *)texts);
    }
    for (int mode = 0; mode < SX_RUN_GRAPHS; mode++) {
        sx_free(texts[mode]);
    }
    return status;
}

sx_status sx_run_repair(const char *dir, sx_warn_fn *warn, void *warn_user)
{
    info_check check;
    sx_backup_file file = info_file(dir, &check, warn, warn_user);
    sx_status status = sx_backup_repair(&file);
    json_t *info = check.json, *checksums = json_object_get(info, "checksums");
    if (status == SX_OK && checksums == NULL) {
        status = add_checksums(dir, info);
    }
    for (int mode = 0; mode < SX_RUN_GRAPHS && status == SX_OK; mode++) {
        const char *crc32c = json_string_value(json_object_get(checksums, graph_files[mode]));
        if (crc32c != NULL) {
            file = graph_file(dir, mode, crc32c, warn, warn_user);
            status = sx_backup_repair(&file);
        }
    }
    json_decref(info);
    return status;
}

/* ---- Another model's directory ---- */

/* The variable's type; NULL if the graph has no such variable. */
static const sx_type *variable_type(const sx_graph *g, const char *name)
{
    int i = sx_graph_find_arg(g, name);
    return i >= 0 && g->args[i].kind == SX_ARG_VARIABLE ? sx_graph_type(g, g->args[i].value) : NULL;
}

static sx_status differs(const char *dir, const char *name, const sx_type *has,
                         const sx_type *wants)
{
    char a[SX_TYPE_TEXT] = "missing", b[SX_TYPE_TEXT] = "missing";
    if (has != NULL) {
        sx_type_format(has, a, sizeof(a));
    }
    if (wants != NULL) {
        sx_type_format(wants, b, sizeof(b));
    }
    return sx_error(SX_FAILED_PRECONDITION,
                    "%s contains another model: variable \"%s\" is %s there, but %s in this model; "
                    "use another model directory, or start over with --fresh",
                    dir, name, a, b);
}

sx_status sx_run_check_variables(const char *dir, const sx_graph *stored, const sx_graph *wanted)
{
    for (int i = 0; i < wanted->n_args; i++) {
        const sx_arg *arg = &wanted->args[i];
        if (arg->kind != SX_ARG_VARIABLE) {
            continue;
        }
        const sx_type *wants = sx_graph_type(wanted, arg->value),
                      *has = variable_type(stored, arg->name);
        if (has == NULL || !sx_type_equal(has, wants)) {
            return differs(dir, arg->name, has, wants);
        }
    }
    for (int i = 0; i < stored->n_args; i++) {
        const sx_arg *arg = &stored->args[i];
        if (arg->kind == SX_ARG_VARIABLE && variable_type(wanted, arg->name) == NULL) {
            return differs(dir, arg->name, sx_graph_type(stored, arg->value), NULL);
        }
    }
    return SX_OK;
}

/* ---- Deleting ---- */

static sx_status delete_named(const char *dir, const char *name)
{
    char *path = NULL;
    SX_TRY(sx_path_join(dir, name, &path));
    sx_status status = sx_dir_remove(path);
    sx_free(path);
    return status;
}

static sx_status sweep_folder(const char *dir, const char *name)
{
    char *path = NULL;
    SX_TRY(sx_path_join(dir, name, &path));
    sx_status status = sx_path_is_dir(path) ? sx_checkpoints_sweep(path) : SX_OK;
    sx_free(path);
    return status;
}

sx_status sx_run_clean_up(const char *dir, int64_t best_step,
                          const sx_checkpoint_retention *retention)
{
    char *best = NULL;
    SX_TRY(sx_checkpoints_sweep(dir));
    SX_TRY(sx_checkpoints_adopt(dir, retention));
    SX_TRY(sweep_folder(dir, "graphs"));
    SX_TRY(sweep_folder(dir, BEST_DIR));
    SX_TRY(sweep_folder(dir, SX_BACKUP_DIR));
    if (best_step < 0) {
        return SX_OK; /* history.json may be lost: no reason to delete the best checkpoint */
    }
    SX_TRY(sx_path_join(dir, BEST_DIR, &best));
    sx_status status = sx_checkpoint_keep_only(best, best_step);
    sx_free(best);
    return status;
}

static sx_status delete_checkpoints(const char *dir)
{
    sx_arena arena;
    sx_checkpoints list = {0};
    sx_arena_init(&arena, 0);
    sx_status status = sx_checkpoints_list(dir, &arena, &list);
    for (size_t i = 0; i < list.count && status == SX_OK; i++) {
        if (strncmp(sx_path_basename(list.items[i].prefix), SX_CHECKPOINT_BASENAME "-",
                    sizeof(SX_CHECKPOINT_BASENAME)) == 0) {
            status = sx_checkpoint_delete(list.items[i].prefix);
        }
    }
    sx_arena_deinit(&arena);
    return status;
}

sx_status sx_run_delete(const char *dir)
{
    if (!sx_path_exists(dir)) {
        return SX_OK;
    }
    SX_TRY(delete_checkpoints(dir));
    SX_TRY(sx_checkpoints_sweep(dir));
    SX_TRY(sx_backup_delete(dir, copied, SX_COUNT(copied)));
    for (size_t i = 0; i < SX_COUNT(parts); i++) {
        SX_TRY(delete_named(dir, parts[i]));
    }
    return SX_OK;
}
