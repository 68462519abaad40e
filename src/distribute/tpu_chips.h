/* TPU chips on this machine's PCI bus. */
#ifndef SX_DISTRIBUTE_TPU_CHIPS_H
#define SX_DISTRIBUTE_TPU_CHIPS_H

#include <sextant/status.h>

#define SX_PCI_DEVICES "/sys/bus/pci/devices"

/* Counts the chips listed in `pci_root`; *out_kind is "TPU v5e", static, or NULL without any. */
SX_MUST_USE sx_status sx_tpu_chips(const char *pci_root, int *out_chips, const char **out_kind);

/* Call before loading libtpu. On a machine without a chip it sets TPU_SKIP_MDS_QUERY=1, unless the
 * user has set it, because libtpu would query the cloud for minutes before it fails. */
void sx_tpu_spare_the_cloud(const char *pci_root);

#endif
