// SPDX-License-Identifier: Apache-2.0
// The packed form: words of all panels, then scales, then zero points, so that each is read from front to
// back. A unit of few rows is a panel; of many rows, that of matrix.c.
#include "kernels/matrix/narrow.h"

#include <string.h>

#include "kernels/instructions.h"
#include "kernels/matrix/narrow_tiles.h"
#include "kernels/matrix/tiles.h"

enum { PANEL = KERNEL_MATRIX_PANEL, GRAIN = 32768 /* integers that are worth a thread */ };

typedef struct sizes {
  int64_t panels;
  int64_t words; /* of a column */
  int64_t blocks;
} sizes_t;

static sizes_t sizes_of(const kernel_narrow_t *narrow) {
  int64_t depth = narrow->matrix.depth;
  return (sizes_t){.panels = (narrow->matrix.columns - 1) / PANEL + 1,
                   .words = (depth * narrow->bits - 1) / 32 + 1,
                   .blocks = (depth - 1) / narrow->block + 1};
}

bool kernel_narrow_runs_here(void) {
  return kernel_instructions(KERNEL_AVX2) == KERNEL_AVX2;
}

size_t kernel_narrow_bytes(const kernel_narrow_t *narrow) {
  sizes_t sizes = sizes_of(narrow);
  size_t scales = (size_t)(sizes.panels * sizes.blocks) * PANEL;
  return (size_t)(sizes.panels * sizes.words) * PANEL * sizeof(uint32_t) + scales * sizeof(float) +
         (narrow->has_zeros ? scales : 0);
}

static kernel_narrow_panel_t panel_at(const kernel_narrow_t *narrow, const void *packed, int64_t panel) {
  sizes_t sizes = sizes_of(narrow);
  const uint32_t *words = packed;
  const float *scales = (const float *)packed + sizes.panels * sizes.words * PANEL;
  const uint8_t *zeros = (const uint8_t *)(scales + sizes.panels * sizes.blocks * PANEL);
  int64_t first = panel * sizes.blocks * PANEL;
  return (kernel_narrow_panel_t){.column = panel * PANEL,
                                 .words = words + panel * sizes.words * PANEL,
                                 .scales = scales + first,
                                 .zeros = narrow->has_zeros ? zeros + first : NULL};
}

/* ---- packing ---- */

static bool are_floats(const kernel_narrow_t *narrow) {
  return narrow->kind != KERNEL_NARROW_INTEGERS;
}

static int64_t width_of(const kernel_narrow_t *narrow, int64_t panel) {
  int64_t left = narrow->matrix.columns - panel * PANEL;
  return left < PANEL ? left : PANEL;
}

/* Integers that are a byte each. Columns behind the last one are zero, scales and all. */
static void pack_bytes(const kernel_narrow_t *narrow, const kernel_narrow_source_t *source, int64_t panel,
                       int64_t words, uint32_t *out) {
  const uint8_t *from = (const uint8_t *)source->numbers + panel * PANEL * source->column_stride;
  const uint8_t lowest = (uint8_t)source->lowest;
  int64_t per_word = 32 / narrow->bits;
  int64_t width = width_of(narrow, panel);
  uint8_t row[PANEL];
  memset(row, lowest, sizeof(row));
  memset(out, 0, (size_t)(words * PANEL) * sizeof(uint32_t));
  for (int64_t k = 0; k < narrow->matrix.depth; k++, from += source->depth_stride) {
    uint32_t *word = out + k / per_word * PANEL;
    int64_t shift = k % per_word * narrow->bits;
    if (source->column_stride == 1 && width == PANEL) {
      memcpy(row, from, PANEL);
    } else {
      for (int64_t n = 0; n < width; n++) {
        row[n] = from[n * source->column_stride];
      }
    }
    for (int n = 0; n < PANEL; n++) {
      word[n] |= (uint32_t)(uint8_t)(row[n] - lowest) << shift;
    }
  }
}

/* Numbers of `bits` bits in the lower half of a word get twice as many. */
static uint32_t widened(uint32_t word, int32_t bits) {
  for (int32_t part = 8; part >= bits; part /= 2) {
    word = (word | word << part) & UINT32_MAX / ((1U << part) + 1);
  }
  return word;
}

/* So many bytes, 1, 2 or 4, as a word. */
static uint32_t word_at(const uint8_t *from, int64_t bytes) {
  uint16_t half = from[0];
  uint32_t word;
  if (bytes == sizeof(word)) {
    memcpy(&word, from, sizeof(word));
    return word;
  }
  if (bytes == sizeof(half)) {
    memcpy(&half, from, sizeof(half));
  }
  return half;
}

/* Words `begin` to before `end` of a column, which packed integers are in the order of already. What is
 * behind the depth in the last one is multiplied by nothing. */
static void pack_column(const kernel_narrow_t *narrow, const kernel_narrow_source_t *source,
                        const uint8_t *from, int64_t begin, int64_t end, uint32_t *out) {
  const int64_t bytes = 4 * source->packed / narrow->bits; /* that make a word */
  const int64_t all = (narrow->matrix.depth * source->packed - 1) / 8 + 1;
  const uint32_t each = UINT32_MAX / ((1U << narrow->bits) - 1);
  const uint32_t added = each * (uint32_t)(-source->least - source->lowest);
  for (int64_t w = begin; w < end; w++) {
    const uint8_t *at = from + w * bytes;
    uint8_t last[4] = {0};
    if (all - w * bytes < bytes) {
      memcpy(last, at, (size_t)(all - w * bytes));
      at = last;
    }
    uint32_t word = word_at(at, bytes);
    for (int32_t bits = source->packed; bits < narrow->bits; bits *= 2) {
      word = widened(word, bits);
    }
    out[w * PANEL] = word + added;
  }
}

/* A column is read as far as a line of the cache goes: those of a panel may lie any power of 2 apart. */
static void pack_bits(const kernel_narrow_t *narrow, const kernel_narrow_source_t *source, int64_t panel,
                      int64_t words, uint32_t *out) {
  enum { LINE = 16 };
  const uint8_t *from = (const uint8_t *)source->numbers + panel * PANEL * source->column_stride;
  int64_t width = width_of(narrow, panel);
  if (width < PANEL) {
    memset(out, 0, (size_t)(words * PANEL) * sizeof(uint32_t));
  }
  for (int64_t begin = 0; begin < words; begin += LINE) {
    int64_t end = begin + LINE < words ? begin + LINE : words;
    for (int64_t n = 0; n < width; n++) {
      pack_column(narrow, source, from + n * source->column_stride, begin, end, out + n);
    }
  }
}

/* Floats of a panel, [depth, 16]. A model may have them at any address. */
static void pack_floats(const kernel_narrow_t *narrow, const kernel_narrow_source_t *source, int64_t panel,
                        int64_t words, uint32_t *out) {
  const unsigned char *from = source->numbers;
  unsigned char *to = (unsigned char *)out;
  int64_t width = width_of(narrow, panel);
  memset(out, 0, (size_t)(words * PANEL) * sizeof(uint32_t));
  for (int64_t k = 0; k < narrow->matrix.depth; k++) {
    int64_t first = k * source->depth_stride + panel * PANEL * source->column_stride;
    for (int64_t n = 0; n < width; n++) {
      memcpy(to + (k * PANEL + n) * 2, from + (first + n * source->column_stride) * 2, 2);
    }
  }
}

static void pack_words(const kernel_narrow_t *narrow, const kernel_narrow_source_t *source, int64_t panel,
                       int64_t words, uint32_t *out) {
  if (are_floats(narrow)) {
    pack_floats(narrow, source, panel, words, out);
  } else if (source->packed != 0) {
    pack_bits(narrow, source, panel, words, out);
  } else {
    pack_bytes(narrow, source, panel, words, out);
  }
}

/* The scale of a column in a block, with the factor of the column. */
static float scale_at(const kernel_narrow_t *narrow, const kernel_narrow_source_t *source, int64_t block,
                      int64_t n) {
  if (n >= narrow->matrix.columns) {
    return 0.0F;
  }
  float factor = source->factors != NULL ? source->factors[n] : 1.0F;
  return are_floats(narrow)
             ? factor
             : source->scales[block * source->block_stride + n * source->scale_stride] * factor;
}

int64_t kernel_narrow_panels(const kernel_narrow_t *narrow) {
  return sizes_of(narrow).panels;
}

void kernel_narrow_pack(const kernel_narrow_t *narrow, const kernel_narrow_source_t *source, int64_t begin,
                        int64_t end, void *out) {
  sizes_t sizes = sizes_of(narrow);
  uint32_t *words = out;
  float *scales = (float *)out + sizes.panels * sizes.words * PANEL;
  uint8_t *zeros = (uint8_t *)(scales + sizes.panels * sizes.blocks * PANEL);
  for (int64_t panel = begin; panel < end; panel++) {
    pack_words(narrow, source, panel, sizes.words, words + panel * sizes.words * PANEL);
    int64_t at = panel * sizes.blocks * PANEL;
    for (int64_t b = 0; b < sizes.blocks; b++) {
      for (int64_t n = panel * PANEL; n < (panel + 1) * PANEL; n++, at++) {
        bool is_there = n < narrow->matrix.columns;
        int64_t from = b * source->block_stride + n * source->scale_stride;
        scales[at] = scale_at(narrow, source, b, n);
        if (narrow->has_zeros) {
          zeros[at] = (uint8_t)(is_there ? source->zeros[from] - source->lowest : 0);
        }
      }
    }
  }
}

/* ---- running ---- */

static bool is_few(const kernel_narrow_t *narrow) {
  return narrow->matrix.rows <= NARROW_ROWS;
}

/* Are sums of x needed? */
static bool has_sums(const kernel_narrow_t *narrow) {
  return is_few(narrow) && !are_floats(narrow);
}

int64_t kernel_narrow_sum_count(const kernel_narrow_t *narrow) {
  return has_sums(narrow) ? narrow->matrix.rows * sizes_of(narrow).blocks : 0;
}

/* [blocks, rows]; eight sums side by side, so that a processor with vectors adds as many at a time. */
void kernel_narrow_sum(const kernel_narrow_t *narrow, const float *x, float *out) {
  enum { LANES = 8 };
  const kernel_matrix_t *matrix = &narrow->matrix;
  for (int64_t begin = 0; has_sums(narrow) && begin < matrix->depth; begin += narrow->block) {
    int64_t left = matrix->depth - begin;
    int64_t count = narrow->block < left ? narrow->block : left;
    for (int64_t r = 0; r < matrix->rows; r++) {
      const float *from = x + r * matrix->x_stride + begin;
      float lanes[LANES] = {0};
      for (int64_t k = 0; k + LANES <= count; k += LANES) {
        for (int lane = 0; lane < LANES; lane++) {
          lanes[lane] += from[k + lane];
        }
      }
      for (int64_t k = count / LANES * LANES; k < count; k++) {
        lanes[k % LANES] += from[k];
      }
      *out++ =
          ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
    }
  }
}

int64_t kernel_narrow_units(const kernel_narrow_t *narrow) {
  return is_few(narrow) ? sizes_of(narrow).panels : kernel_matrix_units(&narrow->matrix);
}

int64_t kernel_narrow_grain(const kernel_narrow_t *narrow) {
  return is_few(narrow) ? GRAIN / (narrow->matrix.depth * PANEL) + 1 : kernel_matrix_grain(&narrow->matrix);
}

/* As many panels as matrix.c has in one, over a block of rows, a part of the depth at a time. */
static void run_unit(const kernel_narrow_t *narrow, const kernel_narrow_data_t *data, int64_t unit) {
  enum { NUMBERS = 24576 /* of a part */ };
  const kernel_matrix_t *matrix = &narrow->matrix;
  const kernel_matrix_data_t numbers = {.x = data->x, .bias = data->bias, .sum = data->sum, .y = data->y};
  int64_t most = NUMBERS / matrix->panel;
  int64_t units = (matrix->columns - 1) / matrix->panel + 1;
  int64_t rows = kernel_matrix_block_rows(matrix);
  int64_t begin = unit / units * rows;
  int64_t end = begin + rows < matrix->rows ? begin + rows : matrix->rows;
  int64_t column = unit % units * matrix->panel;
  int64_t first = column / PANEL;
  int64_t last = (unit % units + 1) * matrix->panel / PANEL;
  last = last < sizes_of(narrow).panels ? last : sizes_of(narrow).panels;
  float weights[NUMBERS];
  for (int64_t from = 0; from < matrix->depth; from += most) {
    int64_t to = from + most < matrix->depth ? from + most : matrix->depth;
    const kernel_matrix_part_t part = {
        .column = column, .from = from, .depth = to - from, .weights = weights};
    for (int64_t k = first; k < last; k++) {
      kernel_narrow_panel_t panel = panel_at(narrow, data->packed, k);
      kernel_narrow_expand(narrow, &panel, from, to, weights + (k - first) * PANEL, matrix->panel);
    }
    kernel_matrix_part(matrix, &numbers, &part, begin, end);
  }
}

void kernel_narrow_run(const kernel_narrow_t *narrow, const kernel_narrow_data_t *data, int64_t begin,
                       int64_t end) {
  for (int64_t unit = begin; unit < end; unit++) {
    if (is_few(narrow)) {
      kernel_narrow_panel_t panel = panel_at(narrow, data->packed, unit);
      kernel_narrow_few(narrow, data, &panel);
    } else {
      run_unit(narrow, data, unit);
    }
  }
}
