// SPDX-License-Identifier: Apache-2.0
/*
 * Products of rows with a matrix of narrow numbers: integers of 8 or 4 bits, which stand for (integer - zero
 * point) times the scale of their column and block of the depth (ONNX DequantizeLinear-21 with `axis` along
 * the depth), float16, or bfloat16. For few rows the time is that of reading the matrix once; for many,
 * panels of it become float32 that stays in a cache, and tiles.inc multiplies. float32 sums, for AVX2 and
 * AVX-512; few rows are multiplied with AVX2 on both.
 *
 * Sums are in an order that depth, block and rows decide: results are the same on any number of threads.
 */
#ifndef CLEAVE_KERNELS_NARROW_H
#define CLEAVE_KERNELS_NARROW_H

#include <stddef.h>

#include "kernels/matrix/matrix.h"

typedef enum kernel_narrow_kind {
  KERNEL_NARROW_INTEGERS,
  KERNEL_NARROW_FLOAT16,
  KERNEL_NARROW_BFLOAT16
} kernel_narrow_kind_t;

typedef struct kernel_narrow {
  kernel_matrix_t matrix; /* its `panel`: which tiles multiply many rows; the packed form is one */
  kernel_narrow_kind_t kind;
  int64_t block; /* elements of the depth with one scale: a multiple of 8, or the depth; floats: the depth */
  int32_t bits;  /* 8 or 4; floats: 16, and the next two are not used */
  bool has_zeros;
  float zero; /* without `has_zeros`: the zero point of all, less the lowest integer */
} kernel_narrow_t;

/* Numbers as a model has them, a byte each, floats two: that of element k of the depth and column n is
 * numbers[k depth_stride + n column_stride], integers from `lowest` to lowest + 2^bits - 1, signed or not;
 * the scale of an integer is scales[k / block block_stride + n scale_stride], and so its zero point. Floats
 * have neither. Integers may be packed, in as many bits as the kernel has or fewer: those of column n from
 * byte n column_stride on, the first in the lowest bits of a byte, each with `least` added. */
typedef struct kernel_narrow_source {
  const void *numbers;
  int64_t depth_stride; /* of packed integers: not read */
  int64_t column_stride;
  int32_t packed; /* bits of a packed integer: 2, 4 or 8; or 0 */
  int32_t least;  /* of packed integers; `lowest` or more */
  int32_t lowest;
  const float *scales;
  const int32_t *zeros; /* if `has_zeros`; within 255 of `lowest` */
  int64_t block_stride;
  int64_t scale_stride;
  const float *factors; /* of columns, which scales are multiplied by; or NULL */
} kernel_narrow_source_t;

typedef struct kernel_narrow_data {
  const float *x;
  const void *packed; /* 4-byte aligned */
  const float *bias;  /* as in kernel_matrix_data_t */
  const float *sum;
  const float *x_sums; /* as kernel_narrow_sum wrote them; not read if that has nothing to write */
  float *y;
} kernel_narrow_data_t;

/* Does this processor run it? */
bool kernel_narrow_runs_here(void);

/* Bytes of the packed form, its panels, and writing those from `begin` to before `end`. */
size_t kernel_narrow_bytes(const kernel_narrow_t *narrow);
int64_t kernel_narrow_panels(const kernel_narrow_t *narrow);
void kernel_narrow_pack(const kernel_narrow_t *narrow, const kernel_narrow_source_t *source, int64_t begin,
                        int64_t end, void *out);

/* How many sums of x running takes, none for many rows, and their values. */
int64_t kernel_narrow_sum_count(const kernel_narrow_t *narrow);
void kernel_narrow_sum(const kernel_narrow_t *narrow, const float *x, float *out);

/* Units of work and computing them, as those of kernel_matrix_t. With integers, infinities in x, and numbers
 * that overflow, become NaN and raise the flag "invalid". */
int64_t kernel_narrow_units(const kernel_narrow_t *narrow);
int64_t kernel_narrow_grain(const kernel_narrow_t *narrow);
void kernel_narrow_run(const kernel_narrow_t *narrow, const kernel_narrow_data_t *data, int64_t begin,
                       int64_t end);

#endif /* CLEAVE_KERNELS_NARROW_H */
