/* The discovery document of managed prediction; see managed_rest.h. Google's clients make their
 * methods of it. */
#include <string.h>

#include "base/checked.h"
#include "serve/managed_rest.h"

struct method {
    const char *resource; /* "projects.models" */
    const char *name, *http_method;
    const char *path; /* of one parameter, in braces */
    const char *parameter, *pattern;
    const char *request, *response; /* schemas; NULL = no body */
    const char *description;
};

#define PROJECT "^projects/[^/]+$"
#define MODEL   "^projects/[^/]+/models/[^/]+$"
#define VERSION "^projects/[^/]+/models/[^/]+/versions/[^/]+$"

/* Those of one resource are together, a resource before those below it. */
static const struct method methods[] = {
    {"projects", "predict", "POST", "v1/{+name}:predict", "name", "^projects/.*$", "PredictRequest",
     "PredictResponse", "Predictions of a model's default version, or of a version."},
    {"projects.models", "create", "POST", "v1/{+parent}/models", "parent", PROJECT, "Model",
     "Model", "Creates a model, without versions."},
    {"projects.models", "delete", "DELETE", "v1/{+name}", "name", MODEL, NULL, "Operation",
     "Deletes a model without versions."},
    {"projects.models", "get", "GET", "v1/{+name}", "name", MODEL, NULL, "Model", "A model."},
    {"projects.models", "list", "GET", "v1/{+parent}/models", "parent", PROJECT, NULL,
     "ListModelsResponse", "All models."},
    {"projects.models.versions", "create", "POST", "v1/{+parent}/versions", "parent", MODEL,
     "Version", "Operation", "Creates a version of the SavedModel at deploymentUri."},
    {"projects.models.versions", "delete", "DELETE", "v1/{+name}", "name", VERSION, NULL,
     "Operation", "Deletes a version."},
    {"projects.models.versions", "get", "GET", "v1/{+name}", "name", VERSION, NULL, "Version",
     "A version."},
    {"projects.models.versions", "list", "GET", "v1/{+parent}/versions", "parent", MODEL, NULL,
     "ListVersionsResponse", "The versions of a model."},
    {"projects.models.versions", "setDefault", "POST", "v1/{+name}:setDefault", "name", VERSION,
     "SetDefaultVersionRequest", "Version", "Makes a version the default of its model."},
    {"projects.operations", "get", "GET", "v1/{+name}", "name", "^projects/[^/]+/operations/[^/]+$",
     NULL, "Operation", "The state of an operation."},
};

static const char schemas[] =
    "\"PredictRequest\":{\"id\":\"PredictRequest\",\"type\":\"object\",\"properties\":{"
    "\"instances\":{\"type\":\"array\",\"items\":{\"type\":\"any\"}},"
    "\"signature_name\":{\"type\":\"string\"}}},"
    "\"PredictResponse\":{\"id\":\"PredictResponse\",\"type\":\"object\",\"properties\":{"
    "\"predictions\":{\"type\":\"array\",\"items\":{\"type\":\"any\"}},"
    "\"error\":{\"type\":\"string\"}}},"
    "\"Model\":{\"id\":\"Model\",\"type\":\"object\",\"properties\":{"
    "\"name\":{\"type\":\"string\"},\"defaultVersion\":{\"$ref\":\"Version\"}}},"
    "\"Version\":{\"id\":\"Version\",\"type\":\"object\",\"properties\":{"
    "\"name\":{\"type\":\"string\"},\"deploymentUri\":{\"type\":\"string\"},"
    "\"isDefault\":{\"type\":\"boolean\"},\"state\":{\"type\":\"string\","
    "\"enum\":[\"UNKNOWN\",\"READY\",\"CREATING\",\"FAILED\",\"DELETING\",\"UPDATING\"]},"
    "\"errorMessage\":{\"type\":\"string\"},\"framework\":{\"type\":\"string\"}}},"
    "\"ListModelsResponse\":{\"id\":\"ListModelsResponse\",\"type\":\"object\",\"properties\":{"
    "\"models\":{\"type\":\"array\",\"items\":{\"$ref\":\"Model\"}},"
    "\"nextPageToken\":{\"type\":\"string\"}}},"
    "\"ListVersionsResponse\":{\"id\":\"ListVersionsResponse\",\"type\":\"object\","
    "\"properties\":{\"versions\":{\"type\":\"array\",\"items\":{\"$ref\":\"Version\"}},"
    "\"nextPageToken\":{\"type\":\"string\"}}},"
    "\"SetDefaultVersionRequest\":{\"id\":\"SetDefaultVersionRequest\",\"type\":\"object\","
    "\"properties\":{}},"
    "\"Operation\":{\"id\":\"Operation\",\"type\":\"object\",\"properties\":{"
    "\"name\":{\"type\":\"string\"},\"done\":{\"type\":\"boolean\"},"
    "\"error\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"any\"}},"
    "\"response\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"any\"}}}}";

static void print_method(sx_buf *out, const struct method *m)
{
    sx_buf_printf(out,
                  "\"%s\":{\"id\":\"ml.%s.%s\",\"path\":\"%s\",\"flatPath\":\"%s\","
                  "\"httpMethod\":\"%s\",\"description\":\"%s\",\"parameterOrder\":[\"%s\"],"
                  "\"parameters\":{\"%s\":{\"type\":\"string\",\"required\":true,"
                  "\"location\":\"path\",\"pattern\":\"%s\"}},\"response\":{\"$ref\":\"%s\"}",
                  m->name, m->resource, m->name, m->path, m->path, m->http_method, m->description,
                  m->parameter, m->parameter, m->pattern, m->response);
    if (m->request != NULL) {
        sx_buf_printf(out, ",\"request\":{\"$ref\":\"%s\"}", m->request);
    }
    sx_buf_puts(out, "}");
}

/* "name":{"methods":{...},"resources":{...}} of a resource, "projects" and what is below it. */
static void print_resource(sx_buf *out, const char *resource)
{
    const size_t size = strlen(resource);
    const char *dot = strrchr(resource, '.'), *before = "";
    sx_buf_printf(out, "\"%s\":{\"methods\":{", dot != NULL ? dot + 1 : resource);
    for (size_t i = 0; i < SX_COUNT(methods); i++) {
        if (strcmp(methods[i].resource, resource) == 0) {
            sx_buf_puts(out, before);
            print_method(out, &methods[i]);
            before = ",";
        }
    }
    sx_buf_puts(out, "},\"resources\":{");
    before = "";
    for (size_t i = 0; i < SX_COUNT(methods); i++) {
        const char *below = methods[i].resource;
        const bool first = i == 0 || strcmp(methods[i - 1].resource, below) != 0;
        if (first && strncmp(below, resource, size) == 0 && below[size] == '.' &&
            strchr(below + size + 1, '.') == NULL) {
            sx_buf_puts(out, before);
            print_resource(out, below);
            before = ",";
        }
    }
    sx_buf_puts(out, "}}");
}

void sx_managed_print_discovery(const char *root_url, sx_buf *out)
{
    sx_buf_puts(out, "{\"kind\":\"discovery#restDescription\",\"discoveryVersion\":\"v1\","
                     "\"id\":\"ml:v1\",\"name\":\"ml\",\"version\":\"v1\","
                     "\"title\":\"Managed prediction\",\"protocol\":\"rest\","
                     "\"servicePath\":\"\",\"batchPath\":\"batch\",\"parameters\":{},\"rootUrl\":");
    sx_json_print_string(out, root_url, strlen(root_url));
    sx_buf_puts(out, ",\"baseUrl\":");
    sx_json_print_string(out, root_url, strlen(root_url));
    sx_buf_printf(out, ",\"schemas\":{%s},\"resources\":{", schemas);
    print_resource(out, "projects");
    sx_buf_puts(out, "}}\n");
}
