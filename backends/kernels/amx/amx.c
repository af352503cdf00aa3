// SPDX-License-Identifier: Apache-2.0
// A unit is a panel of weights over many rows. Of the processor's eight tiles four are sums of 32 rows and 32
// columns, half a panel, two are rows and two are weights. A part of the depth of 32 rows stays in the first
// cache for both halves of the panel; weights are read from the second one and do not enter the first, or
// else all that is read would come from the second. Sums lie in a buffer in between. While tiles are
// multiplied the weights that are read next are asked for, and the sums before them finished.
#include "kernels/amx/amx.h"

#include "kernels/instructions.h"

enum {
  ROWS = KERNEL_AMX_ROWS, /* of a tile */
  BYTES = 64,             /* of a row of a tile, and of a line of the caches */
  PANEL = KERNEL_AMX_PANEL,
  HALVES = 2, /* of a panel */
  WIDTH = PANEL / HALVES,
  BLOCK = 128,                /* rows whose sums lie in the buffer */
  X_BYTES = 1310720,          /* of the rows of a unit, which stay in the second cache */
  STEPS = 8,                  /* most tiles along the depth of a part */
  BUFFER = ROWS * WIDTH,      /* sums of 16 rows and half a panel */
  GRAIN = 4000000,            /* multiplied bytes that are worth a thread */
  LANES = 16,                 /* floats of a vector */
  STEP_BYTES = PANEL * BYTES, /* of the weights of a panel for a tile along the depth */
  HALF_BYTES = 4 * WIDTH      /* of those of half a panel in a row of a tile */
};

static int64_t quotient_up(int64_t a, int64_t b) {
  return (a - 1) / b + 1;
}

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static int64_t size_of(cleave_dtype_t dtype) {
  return dtype == CLEAVE_DTYPE_F32 ? 4 : dtype == CLEAVE_DTYPE_BF16 ? 2 : 1;
}

int64_t kernel_amx_depth(cleave_dtype_t x) {
  return BYTES / size_of(x);
}

/* Of a row of x. */
static int64_t depth_bytes(const kernel_amx_t *amx) {
  return amx->matrix.depth * size_of(amx->x);
}

/* Of a unit: about as many for all, whole pairs of tiles but for the last one. */
static int64_t unit_rows(const kernel_amx_t *amx) {
  int64_t rows = amx->matrix.rows;
  int64_t most = X_BYTES / depth_bytes(amx);
  most = most < BLOCK ? BLOCK : most;
  return quotient_up(quotient_up(rows, quotient_up(rows, most)), 2 * ROWS) * 2 * ROWS;
}

static int64_t count_panels(const kernel_amx_t *amx) {
  return quotient_up(amx->matrix.columns, PANEL);
}

int64_t kernel_amx_units(const kernel_amx_t *amx) {
  return quotient_up(amx->matrix.rows, unit_rows(amx)) * count_panels(amx);
}

int64_t kernel_amx_grain(const kernel_amx_t *amx) {
  return GRAIN / (least(unit_rows(amx), amx->matrix.rows) * depth_bytes(amx) * PANEL) + 1;
}

#if defined(__AMX_BF16__) && defined(__AMX_INT8__) && defined(__AVX512BF16__)
#include <cpuid.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernels/amx/tiles.h"

/* Asks the processor, which takes a hypervisor long, and the system. */
static bool may_run(void) {
  enum { REQUEST_STATE = 0x1023, TILE_DATA = 18 };                        /* of arch_prctl, Linux 5.16 */
  enum { TILES = 1 << 24, BFLOAT_TILES = 1 << 22, BYTE_TILES = 1 << 25 }; /* of leaf 7 */
  enum { BFLOAT_VECTORS = 1 << 5 };                                       /* of its subleaf 1 */
  const unsigned tiles = TILES | BFLOAT_TILES | BYTE_TILES;
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  bool has_tiles = __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & tiles) == tiles;
  bool rounds = __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & BFLOAT_VECTORS) != 0;
  return has_tiles && rounds && syscall(SYS_arch_prctl, REQUEST_STATE, TILE_DATA) == 0;
}

bool kernel_amx_runs_here(void) {
  static _Atomic int once = -1;
  int runs = atomic_load_explicit(&once, memory_order_relaxed);
  if (runs < 0) {
    bool is_allowed =
        kernel_instructions_allowed() == KERNEL_AMX && kernel_instructions(KERNEL_AVX512) == KERNEL_AVX512;
    runs = is_allowed && may_run() ? 1 : 0;
    atomic_store_explicit(&once, runs, memory_order_relaxed);
  }
  return runs == 1;
}

/* A block of rows of a unit. */
typedef struct block {
  const kernel_amx_t *amx;
  const kernel_amx_data_t *data;
  int64_t row;
  int64_t rows;
  int64_t column;
  int64_t halves;
  const unsigned char *weights;
  float *sums; /* [tiles of rows, halves, 16, 32]: float32, or integers of 32 bits */
} block_t;

/* A part of the depth. Meanwhile `lines` of 64 bytes at `ahead` are asked for. */
typedef struct part {
  int64_t first; /* tile along the depth */
  int64_t steps;
  bool is_last;
  const unsigned char *ahead;
  int64_t lines;
  int64_t lines_per_step;
} part_t;

static inline void ask(part_t *part) {
  for (int64_t n = 0; n < part->lines_per_step && part->lines > 0; n++, part->lines--) {
    __builtin_prefetch(part->ahead, 0, 2);
    part->ahead += BYTES;
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
  const unsigned lanes = count >= LANES ? LANES : count <= 0 ? 0 : (unsigned)count;
  return (__mmask16)((1U << lanes) - 1U);
}

static inline __m512 load(const unsigned char *from, cleave_dtype_t dtype, __mmask16 mask) {
  if (dtype == CLEAVE_DTYPE_F32) {
    return _mm512_maskz_loadu_ps(mask, from);
  }
  __m512i bits = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from));
  return _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
}

/* A NaN is the least integer. */
static inline __m512i rounded(const kernel_amx_t *amx, __m512 value) {
  const float many = 1048576.0F; /* beyond all integers of 8 bits */
  bool is_signed = amx->y == CLEAVE_DTYPE_I8;
  value = _mm512_max_ps(_mm512_mul_ps(value, _mm512_set1_ps(amx->factor)), _mm512_set1_ps(-many));
  __m512i out = _mm512_cvtps_epi32(_mm512_min_ps(value, _mm512_set1_ps(many)));
  out = _mm512_add_epi32(out, _mm512_set1_epi32(amx->zero));
  out = _mm512_max_epi32(out, _mm512_set1_epi32(is_signed ? INT8_MIN : 0));
  return _mm512_min_epi32(out, _mm512_set1_epi32(is_signed ? INT8_MAX : UINT8_MAX));
}

static inline void store(const kernel_amx_t *amx, unsigned char *to, __mmask16 mask, __m512 value) {
  switch (amx->y) {
    case CLEAVE_DTYPE_F32: _mm512_mask_storeu_ps(to, mask, value); break;
    case CLEAVE_DTYPE_BF16: _mm256_mask_storeu_epi16(to, mask, (__m256i)_mm512_cvtneps_pbh(value)); break;
    default: _mm512_mask_cvtepi32_storeu_epi8(to, mask, rounded(amx, value)); break;
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
  __m512 scale[2]; /* of integers */
  __m512 bias[2];
} rest_t;

static rest_t rest_of(const block_t *block, int64_t t, int64_t half) {
  const kernel_amx_t *amx = block->amx;
  const kernel_matrix_t *matrix = &amx->matrix;
  int64_t row = block->row + t * ROWS;
  int64_t column = block->column + half * WIDTH;
  rest_t rest = {.end = least(block->rows - t * ROWS, 2 * ROWS)};
  for (int k = 0; k < 2 && k * ROWS < rest.end; k++) {
    rest.sums[k] = sums_at(block, t + k, half) + (row - tile_row(block, t + k)) * WIDTH;
  }
  for (int v = 0; v < 2; v++) {
    rest.masks[v] = mask_of(matrix->columns - column - v * LANES);
    rest.scale[v] = amx->x == CLEAVE_DTYPE_BF16
                        ? _mm512_setzero_ps()
                        : _mm512_maskz_loadu_ps(rest.masks[v], block->data->scale + column + v * LANES);
    rest.bias[v] = block->data->bias == NULL
                       ? _mm512_setzero_ps()
                       : _mm512_maskz_loadu_ps(rest.masks[v], block->data->bias + column + v * LANES);
  }
  rest.added_size = size_of(amx->sum);
  rest.added_bytes = matrix->sum_stride * rest.added_size;
  if (block->data->sum != NULL) {
    rest.added = (const unsigned char *)block->data->sum + row * rest.added_bytes + column * rest.added_size;
  }
  rest.y_size = size_of(amx->y);
  rest.y_bytes = matrix->y_stride * rest.y_size;
  rest.y = (unsigned char *)block->data->y + row * rest.y_bytes + column * rest.y_size;
  return rest;
}

/* A vector of a row of sums, scaled, with the bias. */
static inline __m512 number(const kernel_amx_t *amx, const rest_t *rest, const float *sums, int v) {
  __m512 value = _mm512_load_ps(sums + (ptrdiff_t)v * LANES);
  return amx->x == CLEAVE_DTYPE_BF16
             ? _mm512_add_ps(value, rest->bias[v])
             : _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_castps_si512(value)), rest->scale[v], rest->bias[v]);
}

/* Scale, bias, what is added and bounds of row r. */
static inline void numbers(const kernel_amx_t *amx, const rest_t *rest, int64_t r, const float *sums,
                           __m512 out[2]) {
  const __m512 low = _mm512_set1_ps(amx->matrix.low);
  const __m512 high = _mm512_set1_ps(amx->matrix.high);
#pragma GCC unroll 2
  for (int v = 0; v < 2; v++) {
    __m512 value = number(amx, rest, sums, v);
    if (rest->added != NULL) {
      const unsigned char *added = rest->added + r * rest->added_bytes + v * LANES * rest->added_size;
      value = _mm512_add_ps(value, load(added, amx->sum, rest->masks[v]));
    }
    out[v] = _mm512_min_ps(high, _mm512_max_ps(low, value)); /* a NaN, the second operand, stays */
  }
}

static inline void store_row(const kernel_amx_t *amx, const rest_t *rest, int64_t r, const __m512 values[2]) {
  unsigned char *y = rest->y + r * rest->y_bytes;
  store(amx, y, rest->masks[0], values[0]);
  store(amx, y + LANES * rest->y_size, rest->masks[1], values[1]);
}

/* All that is left to do with rows `begin` to `end`, of one tile, with a function, which takes them at once.
 */
static void finish_by_function(const kernel_amx_t *amx, const rest_t *rest, int64_t begin, int64_t end) {
  const kernel_matrix_t *matrix = &amx->matrix;
  float *sums = rest->sums[begin / ROWS];
  float *first = sums + begin * WIDTH;
  __m512 values[2];
  for (int64_t r = begin; r < end; r++) {
    numbers(amx, rest, r, sums + r * WIDTH, values);
    _mm512_store_ps(sums + r * WIDTH, values[0]);
    _mm512_store_ps(sums + r * WIDTH + LANES, values[1]);
  }
  matrix->then(first, first, (end - begin) * WIDTH, matrix->alpha, matrix->beta);
  for (int64_t r = begin; r < end; r++) {
    values[0] = _mm512_load_ps(sums + r * WIDTH);
    values[1] = _mm512_load_ps(sums + r * WIDTH + LANES);
    store_row(amx, rest, r, values);
  }
}

/* All that is left to do with so many rows. */
static inline void finish_rows(const kernel_amx_t *amx, rest_t *rest, int64_t count) {
  int64_t end = least(rest->row + count, rest->end);
  if (amx->matrix.then != NULL) {
    for (int64_t next; rest->row < end; rest->row = next) {
      next = least((rest->row / ROWS + 1) * ROWS, end);
      finish_by_function(amx, rest, rest->row, next);
    }
  }
  for (; rest->row < end; rest->row++) {
    __m512 values[2];
    numbers(amx, rest, rest->row, rest->sums[rest->row / ROWS] + rest->row * WIDTH, values);
    store_row(amx, rest, rest->row, values);
  }
}

/* Tile `sum` and the products of tiles `x` and `w`; all three are literals. */
#define MULTIPLY(kind, sum, x, w)           \
  do {                                      \
    if ((kind) == CLEAVE_DTYPE_BF16) {      \
      _tile_dpbf16ps(sum, x, w);            \
    } else if ((kind) == CLEAVE_DTYPE_U8) { \
      _tile_dpbusd(sum, x, w);              \
    } else {                                \
      _tile_dpbssd(sum, x, w);              \
    }                                       \
  } while (0)

/* Adds a part to the sums of tile `t` of rows, and of the one behind it if there are two. */
static inline __attribute__((always_inline)) void add(const block_t *block, part_t *part, rest_t *rest,
                                                      int64_t t, int64_t half, const cleave_dtype_t kind,
                                                      const bool are_two) {
  const int64_t x_bytes = block->amx->matrix.x_stride * size_of(kind);
  const size_t sum_bytes = WIDTH * sizeof(float);
  const size_t weight_bytes = HALVES * HALF_BYTES;
  const int64_t rows_per_step = block->amx->matrix.then != NULL ? ROWS : quotient_up(2 * ROWS, part->steps);
  const unsigned char *weights = block->weights + part->first * STEP_BYTES + half * HALF_BYTES;
  const unsigned char *x = (const unsigned char *)block->data->x + part->first * BYTES;
  const unsigned char *upper = x + tile_row(block, t) * x_bytes;
  const unsigned char *lower = x + tile_row(block, t + 1) * x_bytes;
  float *above = sums_at(block, t, half);
  float *below = sums_at(block, t + 1, half);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  if (part->first > 0) {
    _tile_loadd(0, above, sum_bytes);
    _tile_loadd(1, above + LANES, sum_bytes);
    if (are_two) {
      _tile_loadd(2, below, sum_bytes);
      _tile_loadd(3, below + LANES, sum_bytes);
    }
  }
  for (int64_t step = 0; step < part->steps; step++) {
    ask(part);
    finish_rows(block->amx, rest, rows_per_step);
    _tile_stream_loadd(6, weights, weight_bytes);
    _tile_stream_loadd(7, weights + HALF_BYTES / 2, weight_bytes);
    _tile_loadd(4, upper, (size_t)x_bytes);
    MULTIPLY(kind, 0, 4, 6);
    MULTIPLY(kind, 1, 4, 7);
    if (are_two) {
      _tile_loadd(5, lower, (size_t)x_bytes);
      MULTIPLY(kind, 2, 5, 6);
      MULTIPLY(kind, 3, 5, 7);
    }
    weights += STEP_BYTES;
    upper += BYTES;
    lower += BYTES;
  }
  _tile_stored(0, above, sum_bytes);
  _tile_stored(1, above + LANES, sum_bytes);
  if (are_two) {
    _tile_stored(2, below, sum_bytes);
    _tile_stored(3, below + LANES, sum_bytes);
  }
}

static inline __attribute__((always_inline)) void add_tiles(const block_t *block, part_t *part, rest_t *rest,
                                                            int64_t t, int64_t half,
                                                            const cleave_dtype_t kind) {
  if (t + 1 < quotient_up(block->rows, ROWS)) {
    add(block, part, rest, t, half, kind, true);
  } else {
    add(block, part, rest, t, half, kind, false);
  }
}

static void add_part(const block_t *block, part_t *part) {
  rest_t rest = {.end = 0};
  for (int64_t t = 0; t < quotient_up(block->rows, ROWS); t += 2) {
    for (int64_t half = 0; half < block->halves; half++) {
      switch (block->amx->x) {
        case CLEAVE_DTYPE_BF16: add_tiles(block, part, &rest, t, half, CLEAVE_DTYPE_BF16); break;
        case CLEAVE_DTYPE_U8: add_tiles(block, part, &rest, t, half, CLEAVE_DTYPE_U8); break;
        default: add_tiles(block, part, &rest, t, half, CLEAVE_DTYPE_I8); break;
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
static void multiply(const block_t *block, bool is_first, const unsigned char *next) {
  int64_t steps = depth_bytes(block->amx) / BYTES;
  int64_t parts = quotient_up(steps, STEPS);
  int64_t pairs = quotient_up(quotient_up(block->rows, ROWS), 2);
  for (int64_t index = 0; index < parts; index++) {
    int64_t first = steps * index / parts;
    int64_t end = steps * (index + 1) / parts;
    part_t part = {.first = first, .steps = end - first, .is_last = index + 1 == parts};
    part.ahead = part.is_last ? next : is_first ? block->weights + end * STEP_BYTES : NULL;
    if (part.ahead != NULL) {
      int64_t ahead = part.is_last ? steps / parts : steps * (index + 2) / parts - end;
      part.lines = ahead * STEP_BYTES / BYTES;
      part.lines_per_step = quotient_up(part.lines, part.steps * pairs * block->halves);
    }
    add_part(block, &part);
  }
}

void kernel_amx_run(const kernel_amx_t *amx, const kernel_amx_data_t *data, int64_t begin, int64_t end) {
  const kernel_matrix_t *matrix = &amx->matrix;
  const unsigned char *weights = data->weights;
  const int64_t panel_bytes = depth_bytes(amx) * PANEL;
  _Alignas(64) float sums[BLOCK / ROWS * HALVES * BUFFER];
  int64_t panels = count_panels(amx);
  begin_tiles();
  for (int64_t index = begin; index < end; index++) {
    int64_t panel = index % panels;
    int64_t first = index / panels * unit_rows(amx);
    int64_t last = least(first + unit_rows(amx), matrix->rows);
    block_t block = {.amx = amx,
                     .data = data,
                     .column = panel * PANEL,
                     .halves = least(quotient_up(matrix->columns - panel * PANEL, WIDTH), HALVES),
                     .weights = weights + panel * panel_bytes,
                     .sums = sums};
    const unsigned char *next = index + 1 < end ? weights + (index + 1) % panels * panel_bytes : NULL;
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
