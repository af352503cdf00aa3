// SPDX-License-Identifier: Apache-2.0
/*
 * Tensors: dense, row-major, without gaps; one that is sparse in its file has that form beside (sparse.h).
 * Shared by reference count; data may be borrowed from a mapped file, and then is read-only and unaligned.
 * The version number changes with every change of content.
 */
#ifndef CLEAVE_TENSOR_TENSOR_H
#define CLEAVE_TENSOR_TENSOR_H

#include "system/file.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

typedef struct cleave_sparse cleave_sparse_t;

typedef struct cleave_tensor {
  cleave_dtype_t dtype;
  int32_t rank;
  int64_t dims[CLEAVE_MAX_RANK];
  int64_t count; /* elements */
  size_t bytes;
  void *data;              /* never NULL, unless bytes is 0 */
  uint64_t version;        /* unique over all tensors of the process; from cleave_tensor_touch */
  cleave_sparse_t *sparse; /* owned; NULL: there is only the dense form */
  bool is_four_bits;       /* int8 or uint8 whose file has int4 or uint4 */
  /* private */
  int32_t references;  /* atomic */
  cleave_file_t *file; /* owner of borrowed data, or NULL */
  bool owns_data;
} cleave_tensor_t;

/* Zeroed, 64-byte aligned memory for a shape. Strings: an array of `const char *`, all "". */
CLEAVE_STATUS cleave_tensor_create(cleave_dtype_t dtype, int32_t rank, const int64_t *dims,
                                   cleave_tensor_t **out_tensor, cleave_error_t *error);

/* A tensor with the dtype, the shape and the data of a view. The data is inside `file` (retained; may be
 * NULL: then the data must outlive the tensor). `bytes` must be what the shape asks for. Not for strings. */
CLEAVE_STATUS cleave_tensor_create_borrowed(const cleave_tensor_view_t *view, size_t bytes,
                                            cleave_file_t *file, cleave_tensor_t **out_tensor,
                                            cleave_error_t *error);

/* Bytes of the data of a view: by dtype and shape, or by what a sparse one stores. False if the shape is not
 * known, or the size overflows. */
bool cleave_tensor_view_bytes(const cleave_tensor_view_t *tensor, size_t *out_bytes);

/* int64 vector (rank 1), or scalar (rank 0, count 1). */
CLEAVE_STATUS cleave_tensor_create_ints(int32_t rank, const int64_t *values, int64_t count,
                                        cleave_tensor_t **out_tensor, cleave_error_t *error);
/* float32 scalar. */
CLEAVE_STATUS cleave_tensor_create_float(float value, cleave_tensor_t **out_tensor, cleave_error_t *error);

cleave_tensor_t *cleave_tensor_retain(cleave_tensor_t *tensor);
void cleave_tensor_release(cleave_tensor_t *tensor);

/* Gives the tensor a new version: call after changing its content. Its sparse form goes. */
void cleave_tensor_touch(cleave_tensor_t *tensor);

/* Copies a text into string element `index`; the tensor owns the copy. */
CLEAVE_STATUS cleave_tensor_set_string(cleave_tensor_t *tensor, int64_t index, const char *text,
                                       size_t length, cleave_error_t *error);

/* Element as double or int64 (saturating; NaN is 0), any numeric dtype or bool, unaligned data is allowed. */
double cleave_tensor_get_float(const cleave_tensor_t *tensor, int64_t index);
int64_t cleave_tensor_get_int(const cleave_tensor_t *tensor, int64_t index);
void cleave_tensor_set_float(cleave_tensor_t *tensor, int64_t index, double value);

/* Fills with numbers that depend on seed and element index only. Floats: normal with the given mean and
 * deviation; integers: uniform in [low, high); bool: coin flips. */
void cleave_tensor_fill_normal(cleave_tensor_t *tensor, uint64_t seed, double mean, double deviation);
void cleave_tensor_fill_uniform(cleave_tensor_t *tensor, uint64_t seed, double low, double high);

/* Do they have the same dtype, shape and content, bit by bit (texts by their characters)? */
bool cleave_tensor_is_same(const cleave_tensor_t *a, const cleave_tensor_t *b);

/* How two tensors differ: |actual - expected| <= atol + rtol * |expected|, NaN equal to NaN, infinities to
 * themselves; strings, integers and bools too. */
typedef struct cleave_difference {
  bool same_type;      /* dtype and shape agree; the rest is only filled in if so */
  int64_t mismatches;  /* elements outside the tolerance */
  int64_t first;       /* index of the first of them, or -1 */
  double first_actual; /* values there */
  double first_expected;
  double max_absolute; /* largest |actual - expected|; infinite if NaN meets a number */
  double max_expected; /* largest |expected| among finite values */
} cleave_difference_t;

void cleave_tensor_compare(const cleave_tensor_t *actual, const cleave_tensor_t *expected, double rtol,
                           double atol, cleave_difference_t *out_difference);

#endif /* CLEAVE_TENSOR_TENSOR_H */
