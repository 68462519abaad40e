/* sextant run: runs a SavedModel on given inputs. */
#include <stdio.h>
#include <string.h>

#include <sextant/infer.h>

#include "answer.h"
#include "base/memory.h"
#include "command.h"
#include "image_files.h"
#include "npy_files.h"
#include "serve/predict_json.h"

typedef struct options {
    sx_words image, input;
    const char *signature, *device;
    int64_t threads, model_memory_limit;
    bool json;
} options;

static const sx_option rows[] = {
    {"image", SX_OPTION_LIST, SX_OPT(options, image), "JPEG or PNG files, one example each",
     "FILE"},
    {"input", SX_OPTION_LIST, SX_OPT(options, input),
     "arrays for the inputs of the signature; NAME may be omitted if it has one input",
     "[NAME=]X.npy"},
    {"signature", SX_OPTION_STRING, SX_OPT(options, signature),
     "signature to run; default: serving_default, or the first that takes what is given", "NAME"},
    {"json", SX_OPTION_FLAG, SX_OPT(options, json), "print all outputs as JSON, as serve does"},
    {"device", SX_OPTION_STRING, SX_OPT(options, device), "device to compute on; default: cpu",
     "NAME", .group = "Computing"},
    {"threads", SX_OPTION_INT, SX_OPT(options, threads),
     "threads of the device; default: all available processors", "N", .min = 1, .max = 4096},
    {"model-memory-limit", SX_OPTION_SIZE, SX_OPT(options, model_memory_limit),
     "maximum memory of the model: larger ones are refused, large batches run in parts; default: "
     "a quarter of the machine's memory or of the cgroup's limit",
     "SIZE", .min = 1, .word = {"none", -1}},
};

enum { MAX_INPUTS = 64 };

typedef struct job {
    sx_invocation *inv;
    const options *o;
    const char *dir;
    sx_image_files images;
    sx_npy_file *arrays;
    sx_servable *model;
    const sx_signature_info *signature;
    sx_tensor inputs[MAX_INPUTS];
} job;

/* ---- Which signature ---- */

static bool takes(const sx_signature_info *s, bool strings)
{
    return s->n_inputs == 1 && (s->inputs[0].type.dtype == SX_STRING) == strings;
}

/* serving_default if it accepts the given inputs, else the first signature that does. */
static sx_status choose_signature(job *j)
{
    if (j->o->signature != NULL) {
        return sx_servable_find(j->model, j->o->signature, &j->signature);
    }
    bool strings = j->images.count > 0;
    int n = 0;
    const sx_signature_info *all = sx_servable_signatures(j->model, &n);
    for (int i = 0; i < n; i++) {
        bool is_default = strcmp(all[i].name, "serving_default") == 0;
        if (takes(&all[i], strings) && (j->signature == NULL || is_default)) {
            j->signature = &all[i];
        }
    }
    if (j->signature == NULL && !strings) {
        return sx_servable_find(j->model, NULL, &j->signature);
    }
    return j->signature != NULL
               ? SX_OK
               : sx_error(SX_INVALID_ARGUMENT, "%s: no signature takes encoded images; use --input",
                          j->dir);
}

/* ---- Inputs ---- */

static sx_status bind_arrays(job *j)
{
    const sx_signature_info *s = j->signature;
    for (int i = 0; i < s->n_inputs; i++) {
        const sx_npy_file *found = NULL;
        for (int k = 0; k < j->o->input.count; k++) {
            const char *name = j->arrays[k].name;
            bool same = name == NULL ? s->n_inputs == 1 : strcmp(name, s->inputs[i].name) == 0;
            found = same ? &j->arrays[k] : found;
        }
        if (found == NULL) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "signature %s: input \"%s\" is missing; give --input %s=X.npy", s->name,
                            s->inputs[i].name, s->inputs[i].name);
        }
        j->inputs[i] = found->tensor;
    }
    return SX_OK;
}

static sx_status bind(job *j)
{
    if (j->signature->n_inputs > MAX_INPUTS) {
        return sx_error(SX_UNIMPLEMENTED, "signature %s has %d inputs; at most %d are supported",
                        j->signature->name, j->signature->n_inputs, MAX_INPUTS);
    }
    if (j->images.count == 0) {
        return bind_arrays(j);
    }
    if (!takes(j->signature, true)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "signature %s does not take encoded images; use --input",
                        j->signature->name);
    }
    j->inputs[0] = (sx_tensor){sx_type_of(SX_STRING, j->images.count), j->images.bytes};
    return SX_OK;
}

/* ---- Outputs ---- */

static const char *row_name(const job *j, int64_t i, char *buffer, size_t capacity)
{
    if (i < j->images.count) {
        return j->images.paths[i];
    }
    snprintf(buffer, capacity, "%lld", (long long)i);
    return buffer;
}

static sx_status print_classes(const job *j, const sx_tensor *probabilities)
{
    char buffer[32];
    sx_class_names names;
    int n = (int)probabilities->type.dims[1];
    SX_TRY(sx_class_names_read(sx_servable_dir(j->model), &names));
    for (int64_t i = 0; i < probabilities->type.dims[0]; i++) {
        sx_print_answer(row_name(j, i, buffer, sizeof(buffer)),
                        (const float *)probabilities->data + i * n, n, &names);
    }
    sx_class_names_free(&names);
    return SX_OK;
}

/* In the row form of the server's predict responses. */
static sx_status print_json(job *j, const sx_outputs *outputs)
{
    const sx_signature_info *s = j->signature;
    sx_serve_tensor *ports = sx_arena_array(&j->inv->arena, s->n_outputs + 1, sx_serve_tensor);
    sx_tensor *tensors = sx_arena_array(&j->inv->arena, s->n_outputs + 1, sx_tensor);
    sx_buf text;
    if (ports == NULL || tensors == NULL) {
        return sx_no_memory("for the inputs");
    }
    for (int i = 0; i < s->n_outputs; i++) {
        ports[i] = (sx_serve_tensor){.name = s->outputs[i].name, .type = s->outputs[i].type};
        tensors[i] = *sx_outputs_at(outputs, i);
    }
    sx_serve_signature signature = {
        .name = s->name, .output_count = (size_t)s->n_outputs, .outputs = ports};
    sx_buf_init(&text, 0);
    sx_status status = sx_predict_print(&signature, tensors, true, SX_FLOAT_SHORTEST, NULL, &text);
    if (status == SX_OK) {
        printf("%s\n", sx_buf_text(&text));
    }
    sx_buf_deinit(&text);
    return status;
}

static sx_status print_outputs(job *j, const sx_outputs *outputs)
{
    const sx_tensor *p = sx_outputs_find(outputs, "probabilities");
    bool classes = p != NULL && p->type.dtype == SX_F32 && p->type.rank == 2;
    return classes && !j->o->json ? print_classes(j, p) : print_json(j, outputs);
}

static sx_status run_model(job *j)
{
    sx_servable_options wanted = {.struct_size = sizeof(wanted),
                                  .device = j->o->device,
                                  .threads = (int)j->o->threads,
                                  .memory_limit_bytes = j->o->model_memory_limit};
    sx_outputs *outputs = NULL;
    SX_TRY(sx_servable_load(j->dir, &wanted, &j->model));
    SX_TRY(choose_signature(j));
    SX_TRY(bind(j));
    SX_TRY(sx_servable_run(j->model, j->signature->name, j->inputs, &outputs));
    sx_status status = print_outputs(j, outputs);
    sx_outputs_free(outputs);
    return status;
}

static sx_status run(sx_invocation *inv)
{
    job j = {.inv = inv, .o = inv->options, .dir = inv->words.items[0]};
    if ((j.o->image.count > 0) == (j.o->input.count > 0)) {
        return sx_usage(inv, sx_error(SX_INVALID_ARGUMENT, "give either --image or --input"));
    }
    SX_TRY(sx_npy_files_read(inv, &j.o->input, &j.arrays));
    sx_status status = sx_image_files_read(&j.o->image, &j.images);
    if (status == SX_OK) {
        status = run_model(&j);
    }
    sx_servable_release(j.model);
    sx_image_files_free(&j.images);
    sx_npy_files_free(j.arrays, j.o->input.count);
    return status;
}

const sx_command sx_command_run = {
    .name = "run",
    .summary = "run a SavedModel on images or arrays",
    .words = "MODEL_DIR",
    .about = "MODEL_DIR is a version directory (models/flowers/1) or a directory of versions "
             "(models/flowers), whose highest version is run.",
    .examples = "  sextant run models/flowers --image rose.jpg tulip.jpg\n"
                "  sextant run models/flowers/1 --input x.npy --json",
    .min_words = 1,
    .max_words = 1,
    SX_COMMAND_OPTIONS(rows, options),
    .run = run,
};
