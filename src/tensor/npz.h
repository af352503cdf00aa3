// SPDX-License-Identifier: Apache-2.0
/* NumPy's .npz files: zip archives (PKWARE APPNOTE 6.3) of .npy files that are stored, not compressed, as
 * numpy.savez writes them, with the 64-bit extension. */
#ifndef CLEAVE_TENSOR_NPZ_H
#define CLEAVE_TENSOR_NPZ_H

#include "base/containers/array.h"
#include "tensor/npy.h"

typedef struct cleave_npz_entry {
  char *name; /* without ".npy"; owned */
  cleave_tensor_t *tensor;
} cleave_npz_entry_t;

/* All zero is an empty archive. */
typedef struct cleave_npz {
  CLEAVE_ARRAY(cleave_npz_entry_t) entries; /* in the order of the file; names are different */
} cleave_npz_t;

/* Tensors borrow from the mapped file. With `check`, the checksum of every entry is compared with its bytes;
 * without, data is not touched. Entries that are no .npy files, and archives that are compressed, are
 * refused. Must be deinitialised also when this fails. */
CLEAVE_STATUS cleave_npz_read(const char *path, bool check, cleave_npz_t *out_npz, cleave_error_t *error);
void cleave_npz_deinit(cleave_npz_t *npz);
/* NULL: there is none of this name. */
const cleave_tensor_t *cleave_npz_find(const cleave_npz_t *npz, const char *name);

typedef struct cleave_npz_item {
  const char *name; /* without ".npy"; at most 1000 bytes */
  const cleave_tensor_t *tensor;
} cleave_npz_item_t;

/* Written whole or not at all, and on the disk when the call returns. CLEAVE_ERROR_LIMIT: more than 4 GiB, or
 * than 16,384 items. */
CLEAVE_STATUS cleave_npz_write(const char *path, const cleave_npz_item_t *items, size_t count,
                               cleave_error_t *error);

#endif /* CLEAVE_TENSOR_NPZ_H */
