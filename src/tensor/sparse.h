// SPDX-License-Identifier: Apache-2.0
/*
 * The sparse form of a tensor, beside its dense one: what pruned weights look like to a library that has
 * kernels for them. CSR for matrices, ROW_SPARSE for every other rank from 1 on (the storage types of MXNet's
 * ndarrays).
 */
#ifndef CLEAVE_TENSOR_SPARSE_H
#define CLEAVE_TENSOR_SPARSE_H

#include "tensor/tensor.h"

struct cleave_sparse {
  cleave_storage_t storage;
  cleave_sparse_view_t view; /* indices and offsets lie in `places` */
  int64_t *places;
  void *data; /* view.stored elements (CSR) or rows (ROW_SPARSE), 64-byte aligned; never NULL */
  size_t bytes;
};

/* Gives the tensor the sparse form of its content; an element is stored unless all its bits are zero. It goes
 * when the content changes. CLEAVE_ERROR_UNSUPPORTED: scalars and strings have none. */
CLEAVE_STATUS cleave_tensor_add_sparse(cleave_tensor_t *tensor, cleave_error_t *error);

void cleave_sparse_destroy(cleave_sparse_t *sparse);

#endif /* CLEAVE_TENSOR_SPARSE_H */
