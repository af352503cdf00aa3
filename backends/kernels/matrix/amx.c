// SPDX-License-Identifier: Apache-2.0
// A unit is a panel of weights over many rows. Of the processor's eight tiles four are sums of 32 rows and 32
// columns, half a panel, two are rows and two are weights. A part of the depth of 32 rows stays in the first
// cache for both halves of the panel; weights are read from the second one and do not enter the first, or
// else all that is read would come from the second. Sums lie in a buffer in between. While tiles are
// multiplied the weights that are read next are asked for, and the sums before them finished.
#include "kernels/matrix/amx.h"

#include "kernels/instructions.h"

/* Columns of half a panel, halves of one, rows of a block, elements of x of a unit, most tiles along the
 * depth of a part, floats of a tile of rows and half a panel, multiplications worth a thread, floats of a
 * vector, and elements of a line. */
enum {
  ROWS = KERNEL_AMX_ROWS,
  DEPTH = KERNEL_AMX_DEPTH,
  PANEL = KERNEL_AMX_PANEL,
  WIDTH = PANEL / 2,
  HALVES = 2,
  BLOCK = 128,
  X_ELEMENTS = 655360,
  STEPS = 8,
  BUFFER = ROWS * WIDTH,
  GRAIN = 2000000,
  LANES = 16,
  LINE = 32
};

static int64_t quotient_up(int64_t a, int64_t b) {
  return (a - 1) / b + 1;
}

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* Of a unit: about as many for all, whole pairs of tiles but for the last one. */
static int64_t unit_rows(const kernel_matrix_t *matrix) {
  int64_t most = X_ELEMENTS / matrix->depth;
  most = most < BLOCK ? BLOCK : most;
  int64_t rows = quotient_up(matrix->rows, quotient_up(matrix->rows, most));
  return quotient_up(rows, 2 * ROWS) * 2 * ROWS;
}

static int64_t count_panels(const kernel_matrix_t *matrix) {
  return quotient_up(matrix->columns, PANEL);
}

int64_t kernel_amx_units(const kernel_amx_t *amx) {
  const kernel_matrix_t *matrix = &amx->matrix;
  return quotient_up(matrix->rows, unit_rows(matrix)) * count_panels(matrix);
}

int64_t kernel_amx_grain(const kernel_amx_t *amx) {
  const kernel_matrix_t *matrix = &amx->matrix;
  return GRAIN / (least(unit_rows(matrix), matrix->rows) * matrix->depth * PANEL) + 1;
}

#if defined(__AMX_BF16__) && defined(__AVX512BF16__)
#include <cpuid.h>
#include <immintrin.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Asks the processor, which takes a hypervisor long, and the system. */
static bool may_run(void) {
  enum { REQUEST_STATE = 0x1023, TILE_DATA = 18 };                           /* of arch_prctl, Linux 5.16 */
  enum { BFLOAT_TILES = 1 << 22, TILES = 1 << 24, BFLOAT_VECTORS = 1 << 5 }; /* of leaf 7 */
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  bool has_tiles =
      __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & BFLOAT_TILES) != 0 && (d & TILES) != 0;
  bool rounds = __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & BFLOAT_VECTORS) != 0;
  return has_tiles && rounds && syscall(SYS_arch_prctl, REQUEST_STATE, TILE_DATA) == 0;
}

bool kernel_amx_runs_here(void) {
  static _Atomic int once = -1;
  int runs = atomic_load_explicit(&once, memory_order_relaxed);
  if (runs < 0) {
    runs = kernel_instructions(KERNEL_AVX512) == KERNEL_AVX512 && may_run() ? 1 : 0;
    atomic_store_explicit(&once, runs, memory_order_relaxed);
  }
  return runs == 1;
}

/* What the instruction reads: all eight tiles are whole. */
typedef struct tile_sizes {
  uint8_t palette;
  uint8_t start;
  uint8_t unused[14];
  uint16_t bytes[16];
  uint8_t rows[16];
} tile_sizes_t;

static void begin_tiles(void) {
  _Alignas(64) tile_sizes_t sizes = {.palette = 1};
  for (int k = 0; k < 8; k++) {
    sizes.bytes[k] = 2 * DEPTH;
    sizes.rows[k] = ROWS;
  }
  _tile_loadconfig(&sizes);
}

/* A block of rows of a unit. */
typedef struct block {
  const kernel_amx_t *amx;
  const kernel_amx_data_t *data;
  int64_t row;
  int64_t rows;
  int64_t column;
  int64_t halves;
  const uint16_t *weights;
  float *sums; /* [tiles of rows, halves, 16, 32] */
} block_t;

/* A part of the depth. Meanwhile `lines` of 64 bytes at `ahead` are asked for. */
typedef struct part {
  int64_t first; /* tile along the depth */
  int64_t steps;
  bool is_last;
  const uint16_t *ahead;
  int64_t lines;
  int64_t lines_per_step;
} part_t;

static inline void ask(part_t *part) {
  for (int64_t n = 0; n < part->lines_per_step && part->lines > 0; n++, part->lines--) {
    __builtin_prefetch(part->ahead, 0, 2);
    part->ahead += LINE;
  }
}

/* Where tile `t` of the unit's rows begins: one that would end behind the last row ends with it, and has rows
 * in common with the tile before. */
static int64_t tile_row(const block_t *block, int64_t t) {
  return least(block->row + t * ROWS, block->amx->matrix.rows - ROWS);
}

static float *sums_at(const block_t *block, int64_t t, int64_t half) {
  return block->sums + (t * HALVES + half) * BUFFER;
}

/* Of the first `count` lanes, which may be negative or more than there are. */
static __mmask16 mask_of(int64_t count) {
  return count >= LANES ? 0xffff : count <= 0 ? 0 : (__mmask16)((1U << count) - 1U);
}

static inline __m512 load(const unsigned char *from, bool is_short, __mmask16 mask) {
  if (!is_short) {
    return _mm512_maskz_loadu_ps(mask, from);
  }
  __m512i bits = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from));
  return _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
}

static inline void store(unsigned char *to, bool is_short, __mmask16 mask, __m512 value) {
  if (is_short) {
    _mm256_mask_storeu_epi16(to, mask, (__m256i)_mm512_cvtneps_pbh(value));
  } else {
    _mm512_mask_storeu_ps(to, mask, value);
  }
}

/* Sums to which all of the depth is added, 16 or 32 rows of half a panel: what is left to do with them, which
 * is done while the next ones are multiplied. */
typedef struct rest {
  int64_t row; /* of those */
  int64_t end;
  float *sums[2];             /* of row r: WIDTH r behind the first, or the second if r is 16 or more */
  const unsigned char *added; /* or NULL */
  unsigned char *y;
  int64_t added_bytes; /* from a row to the next, and of an element */
  int64_t added_size;
  int64_t y_bytes;
  int64_t y_size;
  __mmask16 masks[2];
  __m512 bias[2];
} rest_t;

static rest_t rest_of(const block_t *block, int64_t t, int64_t half) {
  const kernel_amx_t *amx = block->amx;
  const kernel_matrix_t *matrix = &amx->matrix;
  int64_t row = block->row + t * ROWS;
  int64_t column = block->column + half * WIDTH;
  rest_t rest = {.end = least(block->rows - t * ROWS, 2 * ROWS)};
  for (int k = 0; k < 2 && k * ROWS < rest.end; k++) {
    rest.sums[k] = sums_at(block, t + k, half) - tile_row(block, t + k) * WIDTH + row * WIDTH;
  }
  for (int v = 0; v < 2; v++) {
    rest.masks[v] = mask_of(matrix->columns - column - v * LANES);
    rest.bias[v] = block->data->bias == NULL
                       ? _mm512_setzero_ps()
                       : _mm512_maskz_loadu_ps(rest.masks[v], block->data->bias + column + v * LANES);
  }
  rest.added_size = amx->adds_short ? sizeof(uint16_t) : sizeof(float);
  rest.added_bytes = matrix->sum_stride * rest.added_size;
  if (block->data->sum != NULL) {
    rest.added = (const unsigned char *)block->data->sum + row * rest.added_bytes + column * rest.added_size;
  }
  rest.y_size = amx->gives_short ? sizeof(uint16_t) : sizeof(float);
  rest.y_bytes = matrix->y_stride * rest.y_size;
  rest.y = (unsigned char *)block->data->y + row * rest.y_bytes + column * rest.y_size;
  return rest;
}

/* Bias, what is added, bounds and the function, and the results, of so many rows. */
static inline void finish_rows(const kernel_amx_t *amx, rest_t *rest, int64_t count) {
  const kernel_matrix_t *matrix = &amx->matrix;
  const __m512 low = _mm512_set1_ps(matrix->low);
  const __m512 high = _mm512_set1_ps(matrix->high);
  int64_t end = least(rest->row + count, rest->end);
  for (int64_t r = rest->row; r < end; r++) {
    float *sums = rest->sums[r / ROWS] + r * WIDTH;
    __m512 left = _mm512_add_ps(_mm512_load_ps(sums), rest->bias[0]);
    __m512 right = _mm512_add_ps(_mm512_load_ps(sums + LANES), rest->bias[1]);
    if (rest->added != NULL) {
      const unsigned char *added = rest->added + r * rest->added_bytes;
      left = _mm512_add_ps(left, load(added, amx->adds_short, rest->masks[0]));
      right = _mm512_add_ps(right, load(added + LANES * rest->added_size, amx->adds_short, rest->masks[1]));
    }
    left = _mm512_min_ps(high, _mm512_max_ps(low, left)); /* a NaN, the second operand, stays */
    right = _mm512_min_ps(high, _mm512_max_ps(low, right));
    if (matrix->then != NULL) {
      _mm512_store_ps(sums, left);
      _mm512_store_ps(sums + LANES, right);
      matrix->then(sums, sums, WIDTH, matrix->alpha, matrix->beta);
      left = _mm512_load_ps(sums);
      right = _mm512_load_ps(sums + LANES);
    }
    unsigned char *y = rest->y + r * rest->y_bytes;
    store(y, amx->gives_short, rest->masks[0], left);
    store(y + LANES * rest->y_size, amx->gives_short, rest->masks[1], right);
  }
  rest->row = end;
}

/* Adds a part to the sums of tile `t` of rows, and of the one behind it if there are two. */
static inline __attribute__((always_inline)) void add(const block_t *block, part_t *part, rest_t *rest,
                                                      int64_t t, int64_t half, const bool are_two) {
  const kernel_matrix_t *matrix = &block->amx->matrix;
  const uint16_t *weights =
      block->weights + half / 2 * matrix->depth * PANEL + half % 2 * 2 * WIDTH + part->first * DEPTH * PANEL;
  const uint16_t *x = block->data->x + part->first * DEPTH;
  const uint16_t *upper = x + tile_row(block, t) * matrix->x_stride;
  const uint16_t *lower = x + tile_row(block, t + 1) * matrix->x_stride;
  const int64_t rows_per_step = quotient_up(2 * ROWS, part->steps);
  const size_t x_bytes = (size_t)matrix->x_stride * sizeof(uint16_t);
  const size_t sum_bytes = WIDTH * sizeof(float);
  const size_t weight_bytes = 2 * PANEL * sizeof(uint16_t);
  float *above = sums_at(block, t, half);
  float *below = sums_at(block, t + 1, half);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  if (part->first > 0) {
    _tile_loadd(0, above, sum_bytes);
    _tile_loadd(1, above + ROWS, sum_bytes);
    if (are_two) {
      _tile_loadd(2, below, sum_bytes);
      _tile_loadd(3, below + ROWS, sum_bytes);
    }
  }
  for (int64_t step = 0; step < part->steps; step++) {
    ask(part);
    finish_rows(block->amx, rest, rows_per_step);
    _tile_stream_loadd(6, weights, weight_bytes);
    _tile_stream_loadd(7, weights + WIDTH, weight_bytes);
    _tile_loadd(4, upper, x_bytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    if (are_two) {
      _tile_loadd(5, lower, x_bytes);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
    weights += DEPTH * PANEL;
    upper += DEPTH;
    lower += DEPTH;
  }
  _tile_stored(0, above, sum_bytes);
  _tile_stored(1, above + ROWS, sum_bytes);
  if (are_two) {
    _tile_stored(2, below, sum_bytes);
    _tile_stored(3, below + ROWS, sum_bytes);
  }
}

static void add_part(const block_t *block, part_t *part) {
  int64_t tiles = quotient_up(block->rows, ROWS);
  rest_t rest = {.end = 0};
  for (int64_t t = 0; t < tiles; t += 2) {
    bool are_two = t + 1 < tiles;
    for (int64_t half = 0; half < block->halves; half++) {
      if (are_two) {
        add(block, part, &rest, t, half, true);
      } else {
        add(block, part, &rest, t, half, false);
      }
      if (part->is_last) {
        rest = rest_of(block, t, half);
      }
    }
  }
  finish_rows(block->amx, &rest, rest.end);
}

/* A block of rows. `is_first`: its weights are in no near cache. `next`: weights that are read after it; or
 * NULL. */
static void multiply(const block_t *block, bool is_first, const uint16_t *next) {
  int64_t steps = block->amx->matrix.depth / DEPTH;
  int64_t parts = quotient_up(steps, STEPS);
  int64_t pairs = quotient_up(quotient_up(block->rows, ROWS), 2);
  for (int64_t index = 0; index < parts; index++) {
    int64_t first = steps * index / parts;
    int64_t end = steps * (index + 1) / parts;
    part_t part = {.first = first, .steps = end - first, .is_last = index + 1 == parts};
    part.ahead = part.is_last ? next : is_first ? block->weights + end * DEPTH * PANEL : NULL;
    if (part.ahead != NULL) {
      int64_t ahead = part.is_last ? steps / parts : steps * (index + 2) / parts - end;
      part.lines = ahead * DEPTH * PANEL / LINE;
      part.lines_per_step = quotient_up(part.lines, part.steps * pairs * block->halves);
    }
    add_part(block, &part);
  }
}

void kernel_amx_run(const kernel_amx_t *amx, const kernel_amx_data_t *data, int64_t begin, int64_t end) {
  const kernel_matrix_t *matrix = &amx->matrix;
  _Alignas(64) float sums[BLOCK / ROWS * HALVES * BUFFER];
  int64_t panels = count_panels(matrix);
  begin_tiles();
  for (int64_t index = begin; index < end; index++) {
    int64_t panel = index % panels;
    int64_t first = index / panels * unit_rows(matrix);
    int64_t last = least(first + unit_rows(matrix), matrix->rows);
    block_t block = {.amx = amx,
                     .data = data,
                     .column = panel * PANEL,
                     .halves = least(quotient_up(matrix->columns - panel * PANEL, WIDTH), HALVES),
                     .weights = data->weights + panel * PANEL * matrix->depth,
                     .sums = sums};
    const uint16_t *next =
        index + 1 < end ? data->weights + (index + 1) % panels * PANEL * matrix->depth : NULL;
    for (int64_t row = first; row < last; row += BLOCK) {
      block.row = row;
      block.rows = least(last - row, BLOCK);
      multiply(&block, row == first, last - row <= BLOCK ? next : NULL);
    }
  }
  _tile_release();
}
#else
bool kernel_amx_runs_here(void) {
  return false;
}

void kernel_amx_run(const kernel_amx_t *amx, const kernel_amx_data_t *data, int64_t begin, int64_t end) {
  (void)amx;
  (void)data;
  (void)begin;
  (void)end;
}
#endif
