/* Names of the text form that printer and parser share. */
#ifndef SX_GRAPH_TEXT_H
#define SX_GRAPH_TEXT_H

extern const char *const sx_role_names[];        /* by sx_variable_role, NULL-terminated */
extern const char *const sx_initializer_names[]; /* by sx_initializer, NULL-terminated */

#endif
