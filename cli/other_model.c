#include "other_model.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "io/path.h"

enum { HEAD_BYTES = 16 };

static const char checkpoint[] =
    "is a TensorFlow checkpoint, which has weights and no graph: start a training with them by "
    "`sextant train MODEL --warm_start_from`, or export the model as a SavedModel";

static const char torch[] =
    "is a file of PyTorch, which no command takes: models are SavedModels of TensorFlow";

static const char lite[] =
    "is a TensorFlow Lite model, which no command takes: export the model that it was converted "
    "from as a SavedModel";

static const char hdf5[] = "is a Keras file in the HDF5 format, which no command takes: in Keras, "
                           "keras.models.load_model(FILE).export(DIR) makes a SavedModel";

static const char keras_archive[] =
    "is a ZIP archive, as Keras writes .keras files, which no command takes: in Keras, "
    "keras.models.load_model(FILE).export(DIR) makes a SavedModel";

/* By a file in the directory, which is no SavedModel. */
static const struct {
    const char *file, *what;
} parts[] = {
    {"/checkpoint", checkpoint},
    {"/saved_model.pbtxt",
     "has the text form of a SavedModel, which no command takes: save it in the binary form"},
    {"/model.json", "is a TensorFlow.js model, which no command takes: export the model that it "
                    "was converted from as a SavedModel"},
};

/* By the bytes of a file. */
static const struct {
    size_t at;
    const char *bytes;
    size_t n;
    const char *what;
} magics[] = {
    {4, "TFL3", 4, lite},
    {0, "\x89HDF\r\n\x1a\n", 8, hdf5},
    {0, "PK\x03\x04", 4, keras_archive},
    {0, "\x1f\x8b", 2,
     "is a compressed archive, as TensorFlow Hub distributes models: unpack it, and name the "
     "directory with saved_model.pb"},
};

/* By the end of its name, before its bytes are looked at. */
static const struct {
    const char *end, *what;
} names[] = {
    {"saved_model.pb", "is a file of a SavedModel: name the directory that it is in"},
    {"saved_model.pbtxt",
     "is the text form of a SavedModel, which no command takes: save it in the binary form"},
    {"fingerprint.pb", "is a file of a SavedModel: copy the whole directory"},
    {".tflite", lite},
    {".keras", keras_archive},
    {".h5", hdf5},
    {".hdf5", hdf5},
    {".pb",
     "is a frozen graph (GraphDef) or another protocol buffer, which no command takes: in "
     "TensorFlow, tf.compat.v1.saved_model.simple_save makes a SavedModel of an imported graph"},
    {".pbtxt", "is a graph as text, which no command takes: in TensorFlow, "
               "tf.compat.v1.saved_model.simple_save makes a SavedModel of an imported graph"},
    {".index", checkpoint},
    {".ckpt", checkpoint},
    {".data-00000-of-00001", checkpoint},
    {".onnx", "is an ONNX model, which no command takes: export the model that it was converted "
              "from as a SavedModel"},
    {".pt", torch},
    {".pth", torch},
    {"pytorch_model.bin", torch},
    {".safetensors", "is a file of weights (safetensors), which no command takes: models are "
                     "SavedModels of TensorFlow"},
    {".meta",
     "is a graph of TensorFlow's Saver (MetaGraphDef), which no command takes: in TensorFlow, "
     "tf.compat.v1.saved_model.simple_save makes a SavedModel of an imported graph"},
};

static bool has(sx_arena *arena, const char *path, const char *rest)
{
    const char *file = sx_arena_printf(arena, "%s%s", path, rest);
    return file != NULL && sx_path_exists(file);
}

/* The first bytes of a file that is not empty, and how many; 0 if there is no such file. A named
 * pipe would wait for somebody who writes to it. */
static size_t read_head(const char *path, char head[HEAD_BYTES])
{
    struct stat info;
    FILE *f = stat(path, &info) == 0 && S_ISREG(info.st_mode) ? fopen(path, "rbe") : NULL;
    const size_t n = f != NULL ? fread(head, 1, HEAD_BYTES, f) : 0;
    if (f != NULL) {
        fclose(f);
    }
    return n;
}

static const char *by_name(const char *path)
{
    const size_t length = strlen(path);
    for (size_t i = 0; i < SX_COUNT(names); i++) {
        const size_t end = strlen(names[i].end);
        if (length >= end && strcmp(path + length - end, names[i].end) == 0) {
            return names[i].what;
        }
    }
    return NULL;
}

/* Of a directory: a model of another kind in it. */
static const char *find_inside(sx_arena *arena, const char *dir)
{
    char head[HEAD_BYTES];
    sx_paths files = {0};
    const char *found = NULL;
    sx_status_free(sx_dir_list(dir, &files)); /* what cannot be read is no model */
    for (size_t i = 0; i < files.count && found == NULL; i++) {
        const char *path = sx_arena_printf(arena, "%s/%s", dir, files.items[i]),
                   *what = path != NULL ? by_name(path) : NULL;
        if (what != NULL && read_head(path, head) > 0) {
            found =
                sx_arena_printf(arena, "has no saved_model.pb; its %s %s", files.items[i], what);
        }
    }
    sx_paths_deinit(&files);
    return found;
}

const char *sx_other_model(sx_arena *arena, const char *path)
{
    char head[HEAD_BYTES];
    if (has(arena, path, ".index")) {
        return checkpoint; /* its prefix, as TensorFlow names it */
    }
    for (size_t i = 0; i < SX_COUNT(parts) && !has(arena, path, "/saved_model.pb"); i++) {
        if (has(arena, path, parts[i].file)) {
            return parts[i].what;
        }
    }
    if (has(arena, path, "/tfhub_module.pb")) {
        return "is a module of TensorFlow Hub for TensorFlow 1, which has no signatures that can "
               "be run: in TensorFlow, load it with hub.Module and save it with "
               "tf.compat.v1.saved_model.simple_save";
    }
    if (sx_path_is_dir(path)) {
        return find_inside(arena, path);
    }
    const size_t n = read_head(path, head);
    if (n == 0) {
        return NULL;
    }
    const char *what = by_name(path);
    for (size_t i = 0; i < SX_COUNT(magics) && what == NULL; i++) {
        const bool same = n >= magics[i].at + magics[i].n &&
                          memcmp(head + magics[i].at, magics[i].bytes, magics[i].n) == 0;
        what = same ? magics[i].what : NULL;
    }
    return what != NULL ? what : "is a file, expected a directory";
}
