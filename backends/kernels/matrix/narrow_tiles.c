// SPDX-License-Identifier: Apache-2.0
// An integer of b bits becomes the float 1 + integer / 2^b by a shift and two masks: its bits are the highest
// of the mantissa. Sums of products with these fractions are those with integers, divided by 2^b, and the sum
// of x more, which is subtracted once per block: no conversion is needed, and eight integers take four
// instructions.
#include "kernels/matrix/narrow_tiles.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

#include "cleave/half.h"
#include "kernels/matrix/vectors.h"

typedef uint32_t words_t __attribute__((vector_size(HALF * sizeof(uint32_t))));

enum { MANTISSA = 23, CHAINS = 2 };

static const uint32_t one = 0x3F800000;

TILE_INLINE words_t load_words(const uint32_t *from) {
  words_t out;
  memcpy(&out, from, sizeof(out));
  return out;
}

/* Integer `index` of each word; both numbers are literals. */
TILE_INLINE vector_t fraction(words_t words, const int index, const int bits) {
  const int left = MANTISSA - bits - bits * index;
  const uint32_t mask = ((1U << bits) - 1) << (MANTISSA - bits);
  words = left >= 0 ? words << (left >= 0 ? left : 0) : words >> (left >= 0 ? 0 : -left);
  return (vector_t)((words & mask) | one);
}

/* Loads what is subtracted per x from sums of products with fractions: 1 + zero point / 2^b. */
TILE_INLINE void load_zeros(const kernel_narrow_t *narrow, const kernel_narrow_panel_t *panel, int64_t block,
                            const int bits, vector_t out[2]) {
  const float unit = 1.0F / (float)(1 << bits);
  out[0] = all(1.0F + unit * narrow->zero);
  out[1] = out[0];
  if (panel->zeros != NULL) {
    float zeros[PANEL];
    for (int n = 0; n < PANEL; n++) {
      zeros[n] = 1.0F + unit * (float)panel->zeros[block * PANEL + n];
    }
    out[0] = load(zeros);
    out[1] = load(zeros + HALF);
  }
}

/* Elements of one word per column, times those of x; literals as everywhere. */
TILE_INLINE void add_words(const float *x, int64_t stride, const uint32_t *words,
                           vector_t sums[NARROW_ROWS][CHAINS][2], const int rows, const int bits) {
  const int chains = rows <= 2 ? CHAINS : 1;
  const int per_word = 32 / bits;
  words_t left = load_words(words);
  words_t right = load_words(words + HALF);
#pragma GCC unroll 8
  for (int k = 0; k < per_word; k++) {
    vector_t fractions[2] = {fraction(left, k, bits), fraction(right, k, bits)};
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
      vector_t factor = all(x[r * stride + k]);
      sums[r][k % chains][0] += factor * fractions[0];
      sums[r][k % chains][1] += factor * fractions[1];
    }
  }
}

/* One block of the depth is added to `out`. */
TILE_INLINE void add_block(const kernel_narrow_t *narrow, const kernel_narrow_data_t *data,
                           const kernel_narrow_panel_t *panel, int64_t block, vector_t out[NARROW_ROWS][2],
                           const int rows, const int bits) {
  const int per_word = 32 / bits;
  int64_t stride = narrow->matrix.x_stride;
  int64_t from = block * narrow->block;
  int64_t left = narrow->matrix.depth - from;
  int64_t count = narrow->block < left ? narrow->block : left;
  int64_t whole = count / per_word * per_word;
  const float *x = data->x + from;
  const uint32_t *words = panel->words + from / per_word * PANEL;
  vector_t sums[NARROW_ROWS][CHAINS][2] = {0};
  vector_t zeros[2];
  for (int64_t k = 0; k < whole; k += per_word, words += PANEL) {
    add_words(x + k, stride, words, sums, rows, bits);
  }
  if (whole < count) {
    float rest[NARROW_ROWS * HALF] = {0};
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
      memcpy(rest + r * HALF, x + r * stride + whole, (size_t)(count - whole) * sizeof(float));
    }
    add_words(rest, HALF, words, sums, rows, bits);
  }
  load_zeros(narrow, panel, block, bits, zeros);
  const float *scales = panel->scales + block * PANEL;
#pragma GCC unroll 4
  for (int r = 0; r < rows; r++) {
    vector_t x_sum = all(data->x_sums[block * rows + r]);
#pragma GCC unroll 2
    for (int half = 0; half < 2; half++) {
      vector_t sum = sums[r][0][half] + sums[r][1][half] - zeros[half] * x_sum;
      out[r][half] += sum * all((float)(1 << bits)) * load(scales + half * HALF);
    }
  }
}

/* Eight floats of 16 bits. */
TILE_INLINE vector_t widened(const uint16_t *from, const bool is_brain) {
#if defined(__F16C__)
  __m128i halves = _mm_loadu_si128((const __m128i *)from);
  return is_brain ? (vector_t)_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16)
                  : (vector_t)_mm256_cvtph_ps(halves);
#else
  vector_t out;
  for (int k = 0; k < HALF; k++) {
    out[k] = is_brain ? cleave_bfloat_to_float(from[k]) : cleave_half_to_float(from[k]);
  }
  return out;
#endif
}

/* All of the depth. */
TILE_INLINE void add_floats(const kernel_narrow_t *narrow, const kernel_narrow_data_t *data,
                            const kernel_narrow_panel_t *panel, vector_t out[NARROW_ROWS][2], const int rows,
                            const bool is_brain) {
  const int chains = rows <= 2 ? CHAINS : 1;
  const uint16_t *weights = (const uint16_t *)panel->words;
  const float *x = data->x;
  int64_t stride = narrow->matrix.x_stride;
  int64_t depth = narrow->matrix.depth;
  vector_t sums[NARROW_ROWS][CHAINS][2] = {0};
  for (int64_t k = 0; k < depth; k += chains) {
#pragma GCC unroll 2
    for (int c = 0; c < chains; c++) {
      if (k + c < depth) {
        vector_t left = widened(weights + (k + c) * PANEL, is_brain);
        vector_t right = widened(weights + (k + c) * PANEL + HALF, is_brain);
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
          vector_t factor = all(x[r * stride + k + c]);
          sums[r][c][0] += factor * left;
          sums[r][c][1] += factor * right;
        }
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < rows; r++) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; half++) {
      out[r][half] = (sums[r][0][half] + sums[r][1][half]) * load(panel->scales + half * HALF);
    }
  }
}

/* `bits` and `is_brain`, for floats, are literals as well. */
TILE_INLINE void multiply(const kernel_narrow_t *narrow, const kernel_narrow_data_t *data,
                          const kernel_narrow_panel_t *panel, const int rows, const int bits,
                          const bool is_brain) {
  const kernel_matrix_t *matrix = &narrow->matrix;
  int64_t left = matrix->columns - panel->column;
  int64_t width = left < PANEL ? left : PANEL;
  int64_t blocks = bits == 16 ? 0 : (matrix->depth - 1) / narrow->block + 1;
  vector_t out[NARROW_ROWS][2] = {0};
  for (int64_t block = 0; block < blocks; block++) {
    add_block(narrow, data, panel, block, out, rows, bits);
  }
  if (bits == 16) {
    add_floats(narrow, data, panel, out, rows, is_brain);
  }
  vector_t low = all(matrix->low);
  vector_t high = all(matrix->high);
#pragma GCC unroll 4
  for (int r = 0; r < rows; r++) {
    vector_t more[2];
    if (data->bias != NULL) {
      load_row(data->bias + panel->column, width, more, 2);
      out[r][0] += more[0];
      out[r][1] += more[1];
    }
    if (data->sum != NULL) {
      load_row(data->sum + r * matrix->sum_stride + panel->column, width, more, 2);
      out[r][0] += more[0];
      out[r][1] += more[1];
    }
    const vector_t result[2] = {bounded(out[r][0], low, high), bounded(out[r][1], low, high)};
    float *y = data->y + r * matrix->y_stride + panel->column;
    store_row(y, width, result, 2);
    if (matrix->then != NULL) {
      matrix->then(y, y, width, matrix->alpha, matrix->beta);
    }
  }
}

TILE_INLINE void multiply_rows(const kernel_narrow_t *narrow, const kernel_narrow_data_t *data,
                               const kernel_narrow_panel_t *panel, const int bits, const bool is_brain) {
  switch (narrow->matrix.rows) {
    case 1: multiply(narrow, data, panel, 1, bits, is_brain); break;
    case 2: multiply(narrow, data, panel, 2, bits, is_brain); break;
    case 3: multiply(narrow, data, panel, 3, bits, is_brain); break;
    default: multiply(narrow, data, panel, 4, bits, is_brain);
  }
}

void kernel_narrow_few(const kernel_narrow_t *narrow, const kernel_narrow_data_t *data,
                       const kernel_narrow_panel_t *panel) {
  switch (narrow->kind) {
    case KERNEL_NARROW_FLOAT16: multiply_rows(narrow, data, panel, 16, false); break;
    case KERNEL_NARROW_BFLOAT16: multiply_rows(narrow, data, panel, 16, true); break;
    default:
      if (narrow->bits == 4) {
        multiply_rows(narrow, data, panel, 4, false);
      } else {
        multiply_rows(narrow, data, panel, 8, false);
      }
  }
}

/* Exactly the numbers of DequantizeLinear: fractions, zeros and their differences are exact, so one product
 * rounds. */
TILE_INLINE void expand(const kernel_narrow_t *narrow, const kernel_narrow_panel_t *panel, int64_t from,
                        int64_t end, float *out, int64_t stride, const int bits) {
  const int per_word = 32 / bits;
  for (int64_t k = from; k < end;) {
    int64_t block = k / narrow->block;
    int64_t last = (block + 1) * narrow->block < end ? (block + 1) * narrow->block : end;
    const float *scales = panel->scales + block * PANEL;
    vector_t zeros[2];
    load_zeros(narrow, panel, block, bits, zeros);
    for (; k < last; k += per_word) {
      const uint32_t *words = panel->words + k / per_word * PANEL;
#pragma GCC unroll 8
      for (int j = 0; j < per_word; j++) {
        if (k + j < last) {
#pragma GCC unroll 2
          for (int half = 0; half < 2; half++) {
            vector_t integer =
                (fraction(load_words(words + half * HALF), j, bits) - zeros[half]) * all((float)(1 << bits));
            vector_t number = integer * load(scales + half * HALF);
            memcpy(out + (k + j - from) * stride + half * HALF, &number, sizeof(number));
          }
        }
      }
    }
    k = last;
  }
}

TILE_INLINE void expand_floats(const kernel_narrow_panel_t *panel, int64_t from, int64_t end, float *out,
                               int64_t stride, const bool is_brain) {
  const uint16_t *weights = (const uint16_t *)panel->words;
  for (int64_t k = from; k < end; k++, out += stride) {
#pragma GCC unroll 2
    for (int half = 0; half < PANEL; half += HALF) {
      store(out + half, widened(weights + k * PANEL + half, is_brain) * load(panel->scales + half));
    }
  }
}

void kernel_narrow_expand(const kernel_narrow_t *narrow, const kernel_narrow_panel_t *panel, int64_t from,
                          int64_t end, float *out, int64_t stride) {
  switch (narrow->kind) {
    case KERNEL_NARROW_FLOAT16: expand_floats(panel, from, end, out, stride, false); break;
    case KERNEL_NARROW_BFLOAT16: expand_floats(panel, from, end, out, stride, true); break;
    default:
      if (narrow->bits == 4) {
        expand(narrow, panel, from, end, out, stride, 4);
      } else {
        expand(narrow, panel, from, end, out, stride, 8);
      }
  }
}
