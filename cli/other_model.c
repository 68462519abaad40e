#include "other_model.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "io/path.h"

enum { HEAD_BYTES = 16 };

static const char checkpoint[] =
    "is a TensorFlow checkpoint, which has weights and no graph: start a training with them by "
    "`sextant train MODEL --warm_start_from`, or export the model as a SavedModel";

static const char torch[] =
    "is a file of PyTorch, which no command takes: models are SavedModels of TensorFlow";

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
    {4, "TFL3", 4,
     "is a TensorFlow Lite model, which no command takes: export the model that it was converted "
     "from as a SavedModel"},
    {0, "\x89HDF\r\n\x1a\n", 8,
     "is a Keras file in the HDF5 format, which no command takes: in Keras, "
     "keras.models.load_model(FILE).export(DIR) makes a SavedModel"},
    {0, "PK\x03\x04", 4,
     "is a ZIP archive, as Keras writes .keras files, which no command takes: in Keras, "
     "keras.models.load_model(FILE).export(DIR) makes a SavedModel"},
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
    {".meta",
     "is a graph of TensorFlow's Saver (MetaGraphDef), which no command takes: in TensorFlow, "
     "tf.compat.v1.saved_model.simple_save makes a SavedModel of an imported graph"},
};

static bool has(sx_arena *arena, const char *path, const char *rest)
{
    const char *file = sx_arena_printf(arena, "%s%s", path, rest);
    return file != NULL && sx_path_exists(file);
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
               "be "
               "run: in TensorFlow, load it with hub.Module and save it with "
               "tf.compat.v1.saved_model.simple_save";
    }
    FILE *f = fopen(path, "rbe");
    const size_t n = f != NULL ? fread(head, 1, sizeof(head), f) : 0;
    if (f == NULL) {
        return NULL;
    }
    fclose(f);
    for (size_t i = 0; i < SX_COUNT(names) && n > 0; i++) {
        const size_t length = strlen(path), end = strlen(names[i].end);
        if (length >= end && strcmp(path + length - end, names[i].end) == 0) {
            return names[i].what;
        }
    }
    for (size_t i = 0; i < SX_COUNT(magics); i++) {
        if (n >= magics[i].at + magics[i].n &&
            memcmp(head + magics[i].at, magics[i].bytes, magics[i].n) == 0) {
            return magics[i].what;
        }
    }
    return sx_path_is_dir(path) ? NULL : "is a file, expected a directory";
}
