#include "graph/node_label.h"

#include <stdio.h>
#include <string.h>

const char *sx_node_label(const char *name, char text[SX_NODE_LABEL])
{
    static const char call[] = "/call/";
    enum { MAX_CALLS = 3, PART = 150 };
    const size_t bytes = strlen(call);
    const char *first = NULL, *before_last = NULL, *last = NULL;
    int calls = 0;
    for (const char *at = strstr(name, call); at != NULL; at = strstr(at + bytes - 1, call)) {
        first = calls++ == 0 ? at : first;
        before_last = last;
        last = at;
    }
    if (calls <= MAX_CALLS) {
        return name;
    }
    snprintf(text, SX_NODE_LABEL, "%.*s/call/... %d more .../%.*s",
             (int)(first - name < PART ? first - name : PART), name, calls - 2, PART,
             before_last + bytes);
    return text;
}
