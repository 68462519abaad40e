/* sextant run: runs a SavedModel on given inputs; with --dir, as saved_model_cli does. */
#include <stdio.h>
#include <string.h>

#include <sextant/infer.h>

#include "answer.h"
#include "base/memory.h"
#include "command.h"
#include "dir_hint.h"
#include "image_files.h"
#include "precision_args.h"
#include "io/npy.h"
#include "io/path.h"
#include "npy_files.h"
#include "numpy_text.h"
#include "run_inputs.h"
#include "servable_args.h"
#include "serve/predict_json.h"

typedef struct options {
    sx_words image, input;
    const char *signature;
    int64_t model_memory_limit;
    sx_device_args device_args;
    bool json, profile;
    const char *dir, *tag_set, *outdir;
    sx_run_inputs inputs;
    bool overwrite;
    sx_precision_args precision_args;
} options;

static const options defaults = {.device_args = SX_DEVICE_ARGS_DEFAULTS};

static const sx_option rows[] = {
    {"image", SX_OPTION_LIST, SX_OPT(options, image), "JPEG or PNG files, one example each",
     "FILE"},
    {"input", SX_OPTION_LIST, SX_OPT(options, input),
     "arrays for the inputs of the signature; NAME may be omitted if it has one input",
     "[NAME=]X.npy"},
    {"signature", SX_OPTION_STRING, SX_OPT(options, signature),
     "signature to run; default: serving_default, or the first that takes what is given", "NAME"},
    {"json", SX_OPTION_FLAG, SX_OPT(options, json), "print all outputs as JSON, as serve does"},
    {"profile", SX_OPTION_FLAG, SX_OPT(options, profile),
     "print to stderr where the time on the CPU went, kernel by kernel"},
    {"dir", SX_OPTION_STRING, SX_OPT(options, dir), "directory of the SavedModel", "MODEL_DIR",
     .group = "As saved_model_cli runs it"},
    {"tag-set", SX_OPTION_STRING, SX_OPT(options, tag_set),
     "tags of the graph to run, comma-separated; default: serve", "TAGS"},
    {"signature-def", SX_OPTION_STRING, SX_OPT(options, signature), "the same as --signature",
     "NAME"},
    {"inputs", SX_OPTION_STRING, SX_OPT(options, inputs.files),
     "arrays: a .npy, a .npz (with the array's name in brackets if there are several), an image, "
     "or @ and a text file, whose lines are strings",
     "'INPUT=FILE;...'"},
    {"input-exprs", SX_OPTION_STRING, SX_OPT(options, inputs.expressions),
     "arrays as Python literals, or by np.array, np.zeros, np.ones, np.full or np.arange, also "
     "with .reshape(); np.nan and np.inf",
     "'INPUT=VALUE;...'"},
    {"input-examples", SX_OPTION_STRING, SX_OPT(options, inputs.examples),
     "tf.train.Examples: [{\"feature\": [values]}]", "'INPUT=VALUE;...'"},
    {"outdir", SX_OPTION_STRING, SX_OPT(options, outdir),
     "also write each output to DIR/NAME.npy; strings as bytes, padded to one length", "DIR"},
    {"overwrite", SX_OPTION_FLAG, SX_OPT(options, overwrite),
     "with --outdir: replace files that exist"},
    SX_SERVABLE_ARGS_ROWS(options),
    SX_PRECISION_ARGS_ROWS(options),
};

enum { MAX_INPUTS = 64 };

/* ---- Signature and inputs ---- */

static bool takes(const sx_signature_info *s, bool strings)
{
    return s->n_inputs == 1 && (s->inputs[0].type.dtype == SX_STRING) == strings;
}

/* The signature given, else serving_default if it accepts the inputs, else the first that does. */
static sx_status choose_signature(const sx_servable *model, const char *given, bool strings,
                                  const sx_signature_info **out)
{
    int n = 0;
    const sx_signature_info *all = sx_servable_signatures(model, &n), *chosen = NULL;
    for (int i = 0; given == NULL && i < n; i++) {
        bool is_default = strcmp(all[i].name, "serving_default") == 0;
        if (takes(&all[i], strings) && (chosen == NULL || is_default)) {
            chosen = &all[i];
        }
    }
    if (chosen == NULL && strings && given == NULL) {
        return sx_error(SX_INVALID_ARGUMENT, "%s: no signature takes encoded images; use --input",
                        sx_servable_dir(model));
    }
    if (chosen == NULL) {
        return sx_servable_find(model, given, out);
    }
    *out = chosen;
    return SX_OK;
}

/* Sets inputs[n_inputs] of the signature from the images, or else from the arrays. */
static sx_status bind(const sx_signature_info *s, const sx_image_files *images,
                      const sx_npy_file *arrays, int n_arrays, sx_tensor *inputs)
{
    if (images->count > 0 && !takes(s, true)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "signature %s does not take encoded images; use --input", s->name);
    }
    if (images->count > 0) {
        inputs[0] = (sx_tensor){sx_type_of(SX_STRING, images->count), images->bytes};
        return SX_OK;
    }
    for (int k = 0, i; k < n_arrays; k++) {
        if (arrays[k].name != NULL) {
            SX_TRY(sx_run_inputs_find(s, arrays[k].name, &i), "--input");
        }
    }
    for (int i = 0; i < s->n_inputs; i++) {
        const sx_npy_file *found = NULL;
        for (int k = 0; k < n_arrays; k++) {
            const char *name = arrays[k].name;
            bool same = name == NULL ? s->n_inputs == 1 : strcmp(name, s->inputs[i].name) == 0;
            if (same && found != NULL) {
                return sx_error(SX_INVALID_ARGUMENT, "--input: input \"%s\" is given twice: %s, %s",
                                s->inputs[i].name, found->path, arrays[k].path);
            }
            found = same ? &arrays[k] : found;
        }
        if (found == NULL) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "signature %s: input \"%s\" is missing; give --input %s=X.npy", s->name,
                            s->inputs[i].name, s->inputs[i].name);
        }
        inputs[i] = found->tensor;
    }
    return SX_OK;
}

/* ---- Outputs ---- */

static sx_status print_classes(const sx_servable *model, const sx_image_files *images,
                               const sx_tensor *probabilities)
{
    sx_class_names names;
    int n = (int)probabilities->type.dims[1];
    SX_TRY(sx_class_names_read(sx_servable_dir(model), &names));
    for (int64_t i = 0; i < probabilities->type.dims[0]; i++) {
        char number[32];
        snprintf(number, sizeof(number), "%lld", (long long)i);
        sx_print_answer(i < images->count ? images->paths[i] : number,
                        (const float *)probabilities->data + i * n, n, &names);
    }
    sx_class_names_free(&names);
    return SX_OK;
}

/* As the server's predict responses: by rows, or by outputs if these have no rows in common. */
static sx_status print_json(sx_arena *arena, const sx_signature_info *s, const sx_outputs *outputs)
{
    sx_serve_tensor *ports = sx_arena_array(arena, s->n_outputs + 1, sx_serve_tensor);
    sx_tensor *tensors = sx_arena_array(arena, s->n_outputs + 1, sx_tensor);
    bool by_rows = true;
    sx_buf text;
    if (ports == NULL || tensors == NULL) {
        return sx_no_memory("for the outputs");
    }
    for (int i = 0; i < s->n_outputs; i++) {
        ports[i] = (sx_serve_tensor){.name = s->outputs[i].name, .type = s->outputs[i].type};
        tensors[i] = *sx_outputs_at(outputs, i);
        by_rows = by_rows && tensors[i].type.rank > 0 &&
                  tensors[i].type.dims[0] == tensors[0].type.dims[0];
    }
    sx_serve_signature signature = {
        .name = s->name, .output_count = (size_t)s->n_outputs, .outputs = ports};
    sx_buf_init(&text, 0);
    sx_status status =
        sx_predict_print(&signature, tensors, by_rows, SX_FLOAT_SHORTEST, NULL, &text);
    if (status == SX_OK) {
        printf("%s\n", sx_buf_text(&text));
    }
    sx_buf_deinit(&text);
    return status;
}

/* ---- As saved_model_cli ---- */

static sx_status write_outputs(sx_arena *arena, const char *dir, bool overwrite,
                               const sx_signature_info *s, const sx_outputs *outputs, sx_buf *text)
{
    if (dir != NULL) {
        SX_TRY(sx_dir_create(dir));
    }
    for (int i = 0; i < s->n_outputs; i++) {
        const sx_tensor *output = sx_outputs_at(outputs, i);
        sx_buf_puts(text, "Result for output key ");
        sx_buf_put_visible(text, s->outputs[i].name, strlen(s->outputs[i].name), "");
        sx_buf_puts(text, ":\n");
        sx_put_numpy(text, output);
        sx_buf_putc(text, '\n');
        if (dir == NULL) {
            continue;
        }
        const bool slash = dir[0] != '\0' && dir[strlen(dir) - 1] == '/';
        const char *path =
            sx_arena_printf(arena, "%s%s%s.npy", dir, slash ? "" : "/", s->outputs[i].name);
        if (path == NULL) {
            return sx_no_memory("for the outputs");
        }
        if (strchr(s->outputs[i].name, '/') != NULL) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "output \"%s\": a name with \"/\" cannot be a file's; run without "
                            "--outdir",
                            s->outputs[i].name);
        }
        if (!overwrite && sx_path_exists(path)) {
            return sx_error(SX_ALREADY_EXISTS,
                            "Output file %s already exists. Add \"--overwrite\" to overwrite the "
                            "existing output files.",
                            path);
        }
        SX_TRY(sx_npy_write(path, output));
        sx_buf_printf(text, "Output %s is saved to %s\n", s->outputs[i].name, path);
    }
    return sx_buf_status(text);
}

/* The first of these options that the user gave; NULL if none. */
static const char *first_given(const sx_invocation *inv, const char *const *names)
{
    while (*names != NULL && !sx_option_given(inv, *names)) {
        names++;
    }
    return *names;
}

static const char *const original_inputs[] = {"inputs", "input-exprs", "input-examples", NULL};

/* saved_model_cli run */
static sx_status run_as_original(sx_invocation *inv, sx_servable *model)
{
    const options *o = inv->options;
    const sx_signature_info *signature = NULL;
    sx_outputs *outputs = NULL;
    sx_buf text;
    SX_TRY(sx_servable_find(model, o->signature, &signature));
    if (signature->n_inputs > 0 && first_given(inv, original_inputs) == NULL) {
        return sx_usage(inv, sx_error(SX_INVALID_ARGUMENT, "give --inputs, --%s or --%s",
                                      sx_option_typed(inv, "input-exprs"),
                                      sx_option_typed(inv, "input-examples")));
    }
    sx_tensor *inputs = sx_arena_array(&inv->arena, signature->n_inputs + 1, sx_tensor);
    if (inputs == NULL) {
        return sx_no_memory("for the inputs");
    }
    SX_TRY(sx_run_inputs_read(&o->inputs, signature, &inv->arena, inputs));
    SX_TRY(sx_servable_run(model, signature->name, inputs, &outputs));
    sx_buf_init(&text, 0);
    sx_status status =
        write_outputs(&inv->arena, o->outdir, o->overwrite, signature, outputs, &text);
    fwrite(sx_buf_text(&text), 1, text.size, stdout);
    sx_buf_deinit(&text);
    sx_outputs_free(outputs);
    return status;
}

/* ---- The command ---- */

enum { PROFILE_ROWS = 30 };

/* `user`: how many there were before. */
static void print_kernel(void *user, const sx_kernel_profile *k)
{
    int *printed = user;
    const double per_call = k->calls > 0 ? k->seconds / (double)k->calls : 0;
    if (*printed == 0) {
        fprintf(stderr, "%10s %6s %9s %8s  %-36s %s\n", "ms", "calls", "GFLOP/s", "GB/s", "kernel",
                "node");
    }
    if ((*printed)++ < PROFILE_ROWS && per_call > 0) {
        fprintf(stderr, "%10.3f %6lld %9.1f %8.1f  %-36s %s\n", k->seconds * 1e3,
                (long long)k->calls, k->flops / per_call * 1e-9, k->bytes / per_call * 1e-9,
                k->kernel, k->node);
    }
}

static sx_status load(sx_invocation *inv, const char *dir, sx_servable **out)
{
    int *printed = sx_arena_new(&inv->arena, int); /* outlives the model */
    const char *limit =
        sx_arena_printf(&inv->arena, "--%s", sx_option_typed(inv, "model-memory-limit"));
    if (printed == NULL || limit == NULL) {
        return sx_no_memory("for the options of a model");
    }
    const options *o = inv->options;
    const sx_int8_calibration *int8;
    SX_TRY(sx_precision_args_read(inv, &o->precision_args, dir, o->tag_set, o->signature, &int8));
    const sx_servable_options wanted = {.struct_size = sizeof(wanted),
                                        .device = o->device_args.device,
                                        .pjrt_plugin = o->device_args.pjrt_plugin,
                                        .python = o->device_args.python,
                                        .device_options = o->device_args.device_options,
                                        .xla_options = o->device_args.xla_options,
                                        .gpu_memory_limit = o->device_args.gpu_memory_limit,
                                        .devices = o->device_args.devices,
                                        .replicas = (int)o->device_args.replicas,
                                        .virtual_devices = (int)o->device_args.virtual_devices,
                                        .strict_placement = !o->device_args.soft_placement,
                                        .log_device_placement = o->device_args.log_placement,
                                        .threads = (int)o->device_args.threads,
                                        .memory_limit_bytes = o->model_memory_limit,
                                        .memory_limit_name = limit,
                                        .tags = o->tag_set,
                                        .lazy = true, /* it runs once, any number of rows */
                                        .on_profile = o->profile ? print_kernel : NULL,
                                        .profile_user = printed,
                                        .int8 = int8,
                                        .bfloat16 =
                                            sx_precision_args_want_bfloat16(&o->precision_args)};
    sx_status status = sx_servable_load(dir, &wanted, out);
    return sx_status_code(status) == SX_NOT_FOUND
               ? sx_dir_explain(status, &inv->arena, dir, SX_WANTED_SAVED_MODEL)
               : status;
}

/* Sets *out to whether the model is run as saved_model_cli does, whose options do not mix with our
 * own. */
static sx_status is_original(sx_invocation *inv, bool *out)
{
    static const char *const own[] = {"image", "input", "json", NULL};
    static const char *const others[] = {"dir", "outdir", "overwrite", NULL};
    const char *input = first_given(inv, original_inputs), *ours = first_given(inv, own),
               *theirs = input != NULL ? input : first_given(inv, others);
    *out = theirs != NULL;
    return theirs != NULL && ours != NULL
               ? sx_options_exclusive(inv, (const char *const[]){ours, theirs, NULL})
               : SX_OK;
}

static sx_status give_either(sx_invocation *inv)
{
    return sx_usage(inv, sx_error(SX_INVALID_ARGUMENT, "give either --image or --input"));
}

static sx_status run(sx_invocation *inv)
{
    const options *o = inv->options;
    bool original = false;
    if ((o->dir != NULL) == (inv->words.count == 1)) {
        return sx_usage(
            inv, sx_error(SX_INVALID_ARGUMENT, o->dir != NULL ? "give MODEL_DIR or --dir, not both"
                                                              : "give the directory of the model"));
    }
    const char *dir = o->dir != NULL ? o->dir : inv->words.items[0];
    SX_TRY(sx_usage(inv, is_original(inv, &original)));
    SX_TRY(sx_servable_args_check(inv, &o->device_args));
    SX_TRY(sx_precision_args_check(inv, &o->precision_args));
    if (original) {
        sx_servable *model = NULL;
        SX_TRY(load(inv, dir, &model));
        sx_status status = run_as_original(inv, model);
        sx_servable_release(model);
        return status;
    }
    if (o->image.count > 0 && o->input.count > 0) {
        return give_either(inv);
    }
    sx_npy_file *arrays = NULL;
    sx_image_files images = {0};
    sx_servable *model = NULL;
    const sx_signature_info *signature = NULL;
    sx_tensor inputs[MAX_INPUTS];
    sx_outputs *outputs = NULL;
    sx_status status = SX_OK;
    SX_TRY(sx_npy_files_read(inv, &o->input, &arrays));
    SX_TRY_GOTO(status, sx_image_files_read(&o->image, &images), done);
    SX_TRY_GOTO(status, load(inv, dir, &model), done);
    SX_TRY_GOTO(status, choose_signature(model, o->signature, images.count > 0, &signature), done);
    if (signature->n_inputs > 0 && o->image.count == 0 && o->input.count == 0) {
        status = give_either(inv);
        goto done;
    }
    if (signature->n_inputs > MAX_INPUTS) {
        status = sx_error(SX_UNIMPLEMENTED, "signature %s has %d inputs; at most %d are supported",
                          signature->name, signature->n_inputs, MAX_INPUTS);
        goto done;
    }
    SX_TRY_GOTO(status, bind(signature, &images, arrays, o->input.count, inputs), done);
    SX_TRY_GOTO(status, sx_servable_run(model, signature->name, inputs, &outputs), done);
    const sx_tensor *p = sx_outputs_find(outputs, "probabilities");
    const bool classes = p != NULL && p->type.dtype == SX_F32 && p->type.rank == 2;
    status = classes && !o->json ? print_classes(model, &images, p)
                                 : print_json(&inv->arena, signature, outputs);
done:
    sx_outputs_free(outputs);
    sx_servable_release(model);
    sx_image_files_free(&images);
    sx_npy_files_free(arrays, o->input.count);
    return status;
}

const sx_command sx_command_run = {
    .name = "run",
    .summary = "run a SavedModel on images or arrays",
    .words = "[MODEL_DIR]",
    .about =
        "MODEL_DIR is a version directory (models/flowers/1) or a directory of versions "
        "(models/flowers), whose highest version is run. With --inputs, --input_exprs or "
        "--input_examples, each output is printed as TensorFlow's saved_model_cli run does: as "
        "NumPy prints arrays.",
    .examples = "  sextant run models/flowers --image rose.jpg tulip.jpg\n"
                "  sextant run models/flowers/1 --input x.npy --json\n"
                "  sextant run --dir models/m/1 --tag_set serve --signature_def serving_default "
                "--input_exprs 'x=np.ones((2, 3))' --outdir out\n"
                "  sextant run models/digits --input x.npy --precision int8 --calibration "
                "examples.npy",
    .max_words = 1,
    SX_COMMAND_OPTIONS(rows, options),
    .defaults = &defaults,
    .run = run,
};
