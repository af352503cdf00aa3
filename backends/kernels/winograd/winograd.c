// SPDX-License-Identifier: Apache-2.0
// How the work is cut: a unit is a block of tiles and some panels of outputs. Transformed tiles and products
// of four panels stay in the second cache; weights are read once per block of tiles.
#include "kernels/winograd/winograd.h"

#include "kernels/instructions.h"
#include "kernels/winograd/tiles.h"

/* A block has so many tiles times points of a tile, with AVX-512 and with AVX2. Products of GROUP panels are
 * kept at a time. From WIDE outputs on, threads share the outputs and not the tiles. */
enum { BLOCK_WIDE = 1008, BLOCK = 864, GROUP = 4, WIDE = 256 };
/* Keeps the matrices of a tile out of the same sets of the first cache. */
enum { GAP = 16 };
enum { PANEL = 16, WINDOW = 3, AREA = WINDOW * WINDOW, LANES_AVX2 = 8, LANES_AVX512 = 16 };
/* Points times inputs whose weights are transformed at a time: with those of two panels (AVX2: one) they stay
 * in the second cache. */
enum { WEIGHTS = 2304 };

int32_t kernel_winograd_lanes(void) {
  switch (kernel_instructions(KERNEL_AVX512)) {
    case KERNEL_AVX512: return LANES_AVX512;
    case KERNEL_AVX2: return LANES_AVX2;
    default: return 0;
  }
}

static int64_t quotient_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

static int64_t count_tiles(const kernel_winograd_t *winograd) {
  return winograd->images * quotient_up(winograd->y.height, winograd->tile) *
         quotient_up(winograd->y.width, winograd->tile);
}

static int64_t count_points(const kernel_winograd_t *winograd) {
  return (winograd->tile + WINDOW - 1) * (int64_t)(winograd->tile + WINDOW - 1);
}

bool kernel_winograd_is_few(const kernel_winograd_t *winograd) {
  return winograd->lanes == LANES_AVX512 && winograd->tile == 4 && count_tiles(winograd) <= WINOGRAD_FEW;
}

kernel_winograd_cut_t kernel_winograd_cut(const kernel_winograd_t *winograd, int32_t threads) {
  int64_t tiles = count_tiles(winograd);
  int64_t panels = quotient_up(winograd->outputs, PANEL);
  int64_t block = (winograd->lanes == LANES_AVX512 ? BLOCK_WIDE : BLOCK) / count_points(winograd);
  kernel_winograd_cut_t cut = {.blocks = quotient_up(tiles, block), .parts = 1};
  if (threads > 1 && cut.blocks < 16 * threads && cut.blocks % threads != 0) {
    if (winograd->outputs >= WIDE || tiles < 2 * threads || kernel_winograd_is_few(winograd)) {
      cut.parts = panels < threads ? panels : threads;
    } else {
      cut.blocks = quotient_up(cut.blocks, threads) * threads;
    }
  }
  cut.tiles = quotient_up(tiles, cut.blocks);
  cut.blocks = quotient_up(tiles, cut.tiles);
  cut.panels = quotient_up(panels, cut.parts);
  cut.parts = quotient_up(panels, cut.panels);
  return cut;
}

int64_t kernel_winograd_units(const kernel_winograd_cut_t *cut) {
  return cut->blocks * cut->parts;
}

// The distances from one point to the next, of tiles and of products.
static int64_t tiles_apart(const kernel_winograd_t *winograd, const kernel_winograd_cut_t *cut) {
  return cut->tiles * winograd->inputs + GAP;
}

static int64_t products_apart(const kernel_winograd_cut_t *cut) {
  return cut->tiles * PANEL + GAP;
}

// Inputs and panels of windows that are transformed at a time.
static int64_t inputs_at_once(const kernel_winograd_t *winograd) {
  int64_t inputs = WEIGHTS / count_points(winograd);
  return inputs < winograd->inputs ? inputs : winograd->inputs;
}

static int64_t panels_at_once(const kernel_winograd_t *winograd) {
  return winograd->lanes == LANES_AVX512 ? 2 : 1;
}

static int64_t weights_apart(const kernel_winograd_t *winograd) {
  return inputs_at_once(winograd) * PANEL + GAP;
}

size_t kernel_winograd_scratch(const kernel_winograd_t *winograd, const kernel_winograd_cut_t *cut) {
  int64_t weights = winograd->windows ? panels_at_once(winograd) * weights_apart(winograd) : 0;
  return (size_t)(count_points(winograd) *
                  (tiles_apart(winograd, cut) + GROUP * products_apart(cut) + weights));
}

/* One unit at work. */
typedef struct work {
  const kernel_winograd_t *winograd;
  const winograd_loops_t *loops;
  const winograd_tiles_t *tiles;
  float *weights; /* scratch memory */
} work_t;

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

// Windows of `panels` panels from `panel` on, some inputs at a time.
static void multiply_windows(const work_t *work, const winograd_products_t *products, int64_t panel,
                             int64_t panels) {
  const kernel_winograd_t *winograd = work->winograd;
  const int64_t inputs = winograd->inputs;
  const int64_t step = inputs_at_once(winograd);
  const int64_t stride = inputs * AREA * PANEL;
  const float *windows = products->data->weights + panel * stride;
  winograd_weights_t weights = {.from = work->weights, .apart = weights_apart(winograd), .panels = panels};
  for (int64_t begin = 0; begin < inputs; begin += step) {
    weights.begin = begin;
    weights.end = least(begin + step, inputs);
    for (int64_t k = 0; k < panels; k++) {
      work->loops->expand(winograd, windows + k * stride + begin * AREA * PANEL, weights.end - begin,
                          weights.apart, work->weights + k * count_points(winograd) * weights.apart);
    }
    work->loops->multiply(winograd, work->tiles, products, &weights);
  }
}

// Windows that are transformed in registers.
static void multiply_few(const work_t *work, const winograd_products_t *products, int64_t panel,
                         int64_t panels) {
  const kernel_winograd_t *winograd = work->winograd;
  const int64_t stride = winograd->inputs * AREA * PANEL;
  const float *end = products->data->weights + quotient_up(winograd->outputs, PANEL) * stride;
  winograd_products_t part = *products;
  for (int64_t k = 0; k < panels; k++, part.from += count_points(winograd) * part.apart) {
    work->loops->multiply_few(winograd, work->tiles, &part, products->data->weights + (panel + k) * stride,
                              end);
  }
}

static void multiply(const work_t *work, const winograd_products_t *products, int64_t panel, int64_t panels) {
  const int64_t points = count_points(work->winograd);
  if (work->winograd->windows && kernel_winograd_is_few(work->winograd)) {
    multiply_few(work, products, panel, panels);
    return;
  }
  if (work->winograd->windows) {
    winograd_products_t part = *products;
    int64_t step = panels_at_once(work->winograd);
    for (int64_t k = 0; k < panels; k += step, part.from += step * points * part.apart) {
      multiply_windows(work, &part, panel + k, least(step, panels - k));
    }
    return;
  }
  const int64_t inputs = work->winograd->inputs;
  const winograd_weights_t weights = {.from = products->data->weights + panel * points * inputs * PANEL,
                                      .apart = inputs * PANEL,
                                      .end = inputs,
                                      .panels = panels};
  work->loops->multiply(work->winograd, work->tiles, products, &weights);
}

void kernel_winograd_run(const kernel_winograd_t *winograd, const kernel_winograd_cut_t *cut,
                         const kernel_winograd_data_t *data, int64_t unit, float *scratch) {
  const bool is_wide = winograd->lanes == LANES_AVX512;
  const winograd_loops_t *loops = is_wide ? &kernel_winograd_avx512 : &kernel_winograd_avx2;
  int64_t begin = unit / cut->parts * cut->tiles;
  int64_t left = count_tiles(winograd) - begin;
  int64_t count = left < cut->tiles ? left : cut->tiles;
  int64_t panel = unit % cut->parts * cut->panels;
  int64_t panels = quotient_up(winograd->outputs, PANEL);
  int64_t end = panel + cut->panels < panels ? panel + cut->panels : panels;
  int64_t points = count_points(winograd);
  // Narrow products read rows of all channels, wide ones 16 channels of all rows.
  const winograd_tiles_t tiles = {.data = scratch,
                                  .begin = begin,
                                  .end = begin + count,
                                  .apart = tiles_apart(winograd, cut),
                                  .tile = is_wide ? LANES_AVX512 : winograd->inputs,
                                  .block = is_wide ? count * LANES_AVX512 : LANES_AVX2};
  winograd_products_t products = {
      .data = data, .apart = products_apart(cut), .begin = begin, .end = begin + count};
  const work_t work = {.winograd = winograd,
                       .loops = loops,
                       .tiles = &tiles,
                       .weights = scratch + points * (tiles.apart + GROUP * products.apart)};
  loops->gather(winograd, data->x, &tiles);
  for (; panel < end; panel += GROUP) {
    int64_t group = end - panel < GROUP ? end - panel : GROUP;
    products.from = scratch + points * tiles.apart;
    multiply(&work, &products, panel, group);
    for (int64_t k = 0; k < group; k++, products.from += points * products.apart) {
      loops->scatter(winograd, &products, panel + k);
    }
  }
}
