/* The implementation of sx_tpu_cluster_resolve(), with parameters for tests. */
#ifndef SX_DISTRIBUTE_RESOLVER_H
#define SX_DISTRIBUTE_RESOLVER_H

#include <sextant/distribute.h>

#include "base/arena.h"
#include "distribute/tpu_chips.h"

/* Strings are allocated in the arena, which must outlive *out. `pci_root`: SX_PCI_DEVICES.
 * *out_explanation (may be NULL) is set also on failure. */
SX_MUST_USE sx_status sx_tpu_find(const sx_tpu_request *request, const char *pci_root,
                                  sx_arena *arena, sx_tpu_cluster *out,
                                  const char **out_explanation);

#endif
