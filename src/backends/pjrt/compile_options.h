/* Encoding of CompileOptionsProto, the only protobuf message that a PJRT client must write.
 *
 *   3 executable_build_options { 1 device_ordinal = -1, 4 num_replicas, 5 num_partitions = 1,
 *                                9 device_assignment { 1 replica_count, 2 computation_count = 1,
 *                                                      3 computation_devices { 1 ids, packed } } }
 *   4 compile_portable_executable = true, for one replica: it can then run on any device
 *   7 env_option_overrides { 1 key, 2 value { 1 string_field, 2 bool_field, 3 int_field,
 *                            4 double_field } }, an entry for each option of XLA: those that the
 *                            user gives, and xla_disable_hlo_passes = "fusion" if not to be fused
 *
 * If absent, device_ordinal means device 0, and num_replicas (0) aborts the process. */
#ifndef SX_BACKENDS_PJRT_COMPILE_OPTIONS_H
#define SX_BACKENDS_PJRT_COMPILE_OPTIONS_H

#include "backends/pjrt/settings.h"
#include "base/buffer.h"

/* Appends the message for `replicas` copies of a program, on devices ids[replicas], with options of
 * XLA (NULL: none). `unfused`: each operation is a kernel of its own. XLA's CPU contracts products
 * and sums of one kernel to fused multiply-adds, so that the bits of an operation depend on those
 * it is fused with. */
void sx_pjrt_put_compile_options(sx_buf *buf, int replicas, const int *ids,
                                 const sx_pjrt_settings *xla, bool unfused);

#endif
