// SPDX-License-Identifier: Apache-2.0
// How the work is cut: a unit is a block of tiles and some panels of outputs. Transformed tiles and products
// of four panels stay in the second cache; weights are read once per block of tiles.
#include "kernels/winograd/winograd.h"

#include "kernels/instructions.h"
#include "kernels/winograd/tiles.h"

/* Tiles of a block times points of a tile, for AVX-512 and for AVX2, panels whose products are there at a
 * time, and outputs that threads rather share than tiles. */
enum { BLOCK_WIDE = 1008, BLOCK = 864, GROUP = 4, WIDE = 256 };
/* Keeps the matrices of a tile out of the same sets of the first cache. */
enum { GAP = 16 };
enum { PANEL = 16, WINDOW = 3, LANES_AVX2 = 8, LANES_AVX512 = 16 };

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

kernel_winograd_cut_t kernel_winograd_cut(const kernel_winograd_t *winograd, int32_t threads) {
  int64_t tiles = count_tiles(winograd);
  int64_t panels = quotient_up(winograd->outputs, PANEL);
  int64_t block = (winograd->lanes == LANES_AVX512 ? BLOCK_WIDE : BLOCK) / count_points(winograd);
  kernel_winograd_cut_t cut = {.blocks = quotient_up(tiles, block), .parts = 1};
  if (threads > 1 && cut.blocks < 16 * threads && cut.blocks % threads != 0) {
    if (winograd->outputs >= WIDE || tiles < 2 * threads) {
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

// From one point to the next, of tiles and of products.
static int64_t tiles_apart(const kernel_winograd_t *winograd, const kernel_winograd_cut_t *cut) {
  return cut->tiles * winograd->inputs + GAP;
}

static int64_t products_apart(const kernel_winograd_cut_t *cut) {
  return cut->tiles * PANEL + GAP;
}

size_t kernel_winograd_scratch(const kernel_winograd_t *winograd, const kernel_winograd_cut_t *cut) {
  return (size_t)(count_points(winograd) * (tiles_apart(winograd, cut) + GROUP * products_apart(cut)));
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
  loops->gather(winograd, data->x, &tiles);
  for (; panel < end; panel += GROUP) {
    int64_t group = end - panel < GROUP ? end - panel : GROUP;
    products.from = scratch + points * tiles.apart;
    loops->multiply(winograd, &tiles, &products, panel, group);
    for (int64_t k = 0; k < group; k++, products.from += points * products.apart) {
      loops->scatter(winograd, &products, panel + k);
    }
  }
}
