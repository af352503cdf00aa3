// SPDX-License-Identifier: Apache-2.0
// Strided copies. Rows that are contiguous on both sides are moved whole. If the source is contiguous
// along another dim than the destination, that dim and the last one are transposed in blocks that fit the
// first cache.
#include <string.h>

#include "cpu/common/loop.h"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

enum { BLOCK_ROWS = 32, BLOCK_ELEMENTS = 1024, COPY_COST = 1 };

#define COPY_ROW(name, T)                                                                                  \
  static void name(void *context, unsigned char *const *pointers, const int64_t *strides, int64_t count) { \
    (void)context;                                                                                         \
    unsigned char *to = pointers[0];                                                                       \
    const unsigned char *from = pointers[1];                                                               \
    int64_t to_stride = strides[0];                                                                        \
    int64_t from_stride = strides[1];                                                                      \
    if (to_stride == (int64_t)sizeof(T) && from_stride == (int64_t)sizeof(T)) {                            \
      memcpy(to, from, (size_t)count * sizeof(T));                                                         \
    } else if (to_stride == (int64_t)sizeof(T) && from_stride == 0) {                                      \
      T value = *(const T *)(const void *)from;                                                            \
      T *out = (T *)(void *)to;                                                                            \
      for (int64_t k = 0; k < count; k++) {                                                                \
        out[k] = value;                                                                                    \
      }                                                                                                    \
    } else {                                                                                               \
      for (int64_t k = 0; k < count; k++) {                                                                \
        *(T *)(void *)(to + k * to_stride) = *(const T *)(const void *)(from + k * from_stride);           \
      }                                                                                                    \
    }                                                                                                      \
  }

COPY_ROW(copy_row_1, uint8_t)
COPY_ROW(copy_row_2, uint16_t)
COPY_ROW(copy_row_4, uint32_t)
COPY_ROW(copy_row_8, uint64_t)

/* to[r * to_stride + c] = from[r + c * from_stride] for a block; strides in elements. */
#define TRANSPOSE_BLOCK(name, T)                                                               \
  static void name(T *to, int64_t to_stride, const T *from, int64_t from_stride, int64_t rows, \
                   int64_t columns) {                                                          \
    for (int64_t r = 0; r < rows; r++) {                                                       \
      for (int64_t c = 0; c < columns; c++) {                                                  \
        to[r * to_stride + c] = from[r + c * from_stride];                                     \
      }                                                                                        \
    }                                                                                          \
  }

TRANSPOSE_BLOCK(transpose_1, uint8_t)
TRANSPOSE_BLOCK(transpose_2, uint16_t)
TRANSPOSE_BLOCK(transpose_8, uint64_t)
TRANSPOSE_BLOCK(transpose_4_plain, uint32_t)

static void transpose_4(uint32_t *to, int64_t to_stride, const uint32_t *from, int64_t from_stride,
                        int64_t rows, int64_t columns) {
#if defined(__SSE__)
  int64_t whole_rows = rows / 4 * 4;
  int64_t whole_columns = columns / 4 * 4;
  for (int64_t r = 0; r < whole_rows; r += 4) {
    for (int64_t c = 0; c < whole_columns; c += 4) {
      const float *in = (const float *)(const void *)(from + r + c * from_stride);
      float *out = (float *)(void *)(to + r * to_stride + c);
      __m128 a = _mm_loadu_ps(in);
      __m128 b = _mm_loadu_ps(in + from_stride);
      __m128 d = _mm_loadu_ps(in + 2 * from_stride);
      __m128 e = _mm_loadu_ps(in + 3 * from_stride);
      _MM_TRANSPOSE4_PS(a, b, d, e);
      _mm_storeu_ps(out, a);
      _mm_storeu_ps(out + to_stride, b);
      _mm_storeu_ps(out + 2 * to_stride, d);
      _mm_storeu_ps(out + 3 * to_stride, e);
    }
  }
  transpose_4_plain(to + whole_columns, to_stride, from + whole_columns * from_stride, from_stride,
                    whole_rows, columns - whole_columns);
  transpose_4_plain(to + whole_rows * to_stride, to_stride, from + whole_rows, from_stride, rows - whole_rows,
                    columns);
#else
  transpose_4_plain(to, to_stride, from, from_stride, rows, columns);
#endif
}

typedef struct transpose_work {
  const cpu_loop_t *loop;
  size_t element_size;
  int32_t row_dim;    /* contiguous in the source */
  int32_t column_dim; /* contiguous in the destination: the last */
  int64_t block_rows;
  int64_t block_columns;
  int64_t row_blocks;
  int64_t column_blocks;
} transpose_work_t;

static void transpose_units(void *context, int64_t begin, int64_t end) {
  const transpose_work_t *work = context;
  const cpu_loop_t *loop = work->loop;
  int64_t size = (int64_t)work->element_size;
  int64_t to_stride = loop->strides[0][work->row_dim] / size;
  int64_t from_stride = loop->strides[1][work->column_dim] / size;
  for (int64_t unit = begin; unit < end; unit++) {
    int64_t column = unit % work->column_blocks * work->block_columns;
    int64_t rest = unit / work->column_blocks;
    int64_t row = rest % work->row_blocks * work->block_rows;
    rest /= work->row_blocks;
    unsigned char *to = loop->bases[0] + row * loop->strides[0][work->row_dim] + column * size;
    const unsigned char *from = loop->bases[1] + row * size + column * loop->strides[1][work->column_dim];
    for (int32_t d = loop->rank - 1; d >= 0; d--) {
      if (d == work->row_dim || d == work->column_dim) {
        continue;
      }
      int64_t index = rest % loop->dims[d];
      rest /= loop->dims[d];
      to += index * loop->strides[0][d];
      from += index * loop->strides[1][d];
    }
    int64_t rows = loop->dims[work->row_dim] - row;
    int64_t columns = loop->dims[work->column_dim] - column;
    rows = rows < work->block_rows ? rows : work->block_rows;
    columns = columns < work->block_columns ? columns : work->block_columns;
    void *out = to;
    const void *in = from;
    switch (size) {
      case 1: transpose_1(out, to_stride, in, from_stride, rows, columns); break;
      case 2: transpose_2(out, to_stride, in, from_stride, rows, columns); break;
      case 4: transpose_4(out, to_stride, in, from_stride, rows, columns); break;
      default: transpose_8(out, to_stride, in, from_stride, rows, columns); break;
    }
  }
}

/* The dim along which the source is contiguous, if the last dim is not; -1 if there is none. */
static int32_t find_transposed_dim(const cpu_loop_t *loop, int64_t size) {
  int32_t last = loop->rank - 1;
  if (last < 1 || loop->strides[0][last] != size || loop->strides[1][last] == size ||
      loop->strides[1][last] % size != 0) {
    return -1;
  }
  for (int32_t d = 0; d < last; d++) {
    if (loop->strides[1][d] == size && loop->dims[d] > 1 && loop->strides[0][d] % size == 0) {
      return d;
    }
  }
  return -1;
}

static void copy_transposed(const cpu_call_t *call, const cpu_loop_t *loop, size_t element_size,
                            int32_t row_dim) {
  transpose_work_t work = {
      .loop = loop, .element_size = element_size, .row_dim = row_dim, .column_dim = loop->rank - 1};
  int64_t rows = loop->dims[row_dim];
  int64_t columns = loop->dims[work.column_dim];
  work.block_rows = rows < BLOCK_ROWS ? rows : BLOCK_ROWS;
  work.block_columns = BLOCK_ELEMENTS / work.block_rows;
  if (columns < work.block_columns) {
    work.block_columns = columns;
    work.block_rows = BLOCK_ELEMENTS / columns < rows ? BLOCK_ELEMENTS / columns : rows;
  }
  work.row_blocks = (rows + work.block_rows - 1) / work.block_rows;
  work.column_blocks = (columns + work.block_columns - 1) / work.block_columns;
  int64_t units = work.row_blocks * work.column_blocks * (cpu_count(loop->rank, loop->dims) / rows / columns);
  cpu_parallel(call, units, CPU_WORK_GRAIN / 2 / (work.block_rows * work.block_columns) + 1, transpose_units,
               &work);
}

void cpu_loop_copy(const cpu_call_t *call, cpu_loop_t *loop, size_t element_size) {
  for (int32_t d = 0; d < loop->rank; d++) {
    if (loop->dims[d] <= 0) {
      return;
    }
  }
  cpu_loop_merge(loop);
  int32_t row_dim = find_transposed_dim(loop, (int64_t)element_size);
  if (row_dim >= 0) {
    copy_transposed(call, loop, element_size, row_dim);
    return;
  }
  cpu_row_fn_t row = element_size == 1   ? copy_row_1
                     : element_size == 2 ? copy_row_2
                     : element_size == 4 ? copy_row_4
                                         : copy_row_8;
  cpu_loop_run(call, loop, row, NULL, COPY_COST);
}

void cpu_copy(const cpu_call_t *call, void *destination, const void *source, int64_t bytes) {
  if (bytes <= 0 || destination == source) {
    return;
  }
  cpu_loop_t loop = {.rank = 1, .operand_count = 2, .dims = {bytes}, .strides = {{1}, {1}}};
  loop.bases[0] = destination;
  loop.bases[1] = (unsigned char *)(uintptr_t)source;
  cpu_loop_copy(call, &loop, 1);
}

void cpu_fill(const cpu_call_t *call, void *destination, const void *value, size_t element_size,
              int64_t count) {
  cpu_loop_t loop = {
      .rank = 1, .operand_count = 2, .dims = {count}, .strides = {{(int64_t)element_size}, {0}}};
  loop.bases[0] = destination;
  loop.bases[1] = (unsigned char *)(uintptr_t)value;
  cpu_loop_copy(call, &loop, element_size);
}
