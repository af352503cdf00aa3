// SPDX-License-Identifier: Apache-2.0
/* NumPy's .npy files, format 1.0 to 3.0 (numpy.lib.format): little-endian. */
#ifndef CLEAVE_TENSOR_NPY_H
#define CLEAVE_TENSOR_NPY_H

#include "base/text.h"
#include "tensor/tensor.h"

/* The tensor may borrow from the mapped file, but if it is in Fortran order. Big-endian and object arrays are
 * refused. */
CLEAVE_STATUS cleave_npy_read(const char *path, cleave_tensor_t **out_tensor, cleave_error_t *error);
/* Reads a file that is in memory already; the tensor borrows from it and retains it. */
CLEAVE_STATUS cleave_npy_read_file(cleave_file_t *file, cleave_tensor_t **out_tensor, cleave_error_t *error);
/* Reads a part of a file, an entry of an archive, in the same way. `name` stands for it in messages. */
CLEAVE_STATUS cleave_npy_read_part(cleave_file_t *file, size_t offset, size_t size, const char *name,
                                   cleave_tensor_t **out_tensor, cleave_error_t *error);
/* Appends what stands before the data of a tensor: magic, version and dict. `name` is for messages. */
CLEAVE_STATUS cleave_npy_print_header(const cleave_tensor_t *tensor, const char *name, cleave_text_t *out,
                                      cleave_error_t *error);
CLEAVE_STATUS cleave_npy_write(const char *path, const cleave_tensor_t *tensor, cleave_error_t *error);

#endif /* CLEAVE_TENSOR_NPY_H */
