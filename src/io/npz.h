/* NumPy's .npz files: zip archives of .npy files. */
#ifndef SX_IO_NPZ_H
#define SX_IO_NPZ_H

#include "io/archive.h"

/* Reads the archive's current member, a .npy file, as sx_npy_parse() does. A member that has by its
 * header, or has in fact, more bytes than the archive's limits allow is refused before its elements
 * are unpacked. */
SX_MUST_USE sx_status sx_npz_read(sx_archive *archive, const char *name, sx_tensor *out_tensor);

#endif
