/* TPU chips in this machine, seen on its PCI bus. */
#ifndef SX_DISTRIBUTE_TPU_CHIPS_H
#define SX_DISTRIBUTE_TPU_CHIPS_H

#include <sextant/status.h>

/* How many there are below `pci_root`, and of what kind ("TPU v5e"; static; NULL without any). */
SX_MUST_USE sx_status sx_tpu_chips(const char *pci_root, int *out_chips, const char **out_kind);

#endif
