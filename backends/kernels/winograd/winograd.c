// SPDX-License-Identifier: Apache-2.0
// How the work is cut: a unit is a block of tiles and some panels of outputs. Transformed tiles and products
// of four panels stay in the second cache; weights are read once per block of tiles.
#include "kernels/winograd/winograd.h"

#include <math.h>

#include "kernels/matrix/tiles.h"
#include "kernels/winograd/tiles.h"

/* Tiles of a block times points of a tile, panels whose products are there at a time, and outputs that
 * threads rather share than tiles. */
enum { BLOCK = 864, GROUP = 4, WIDE = 256 };
/* Keeps the matrices of a tile out of the same sets of the first cache. */
enum { GAP = 16 };
enum { PANEL = KERNEL_MATRIX_PANEL, WINDOW = 3 };

bool kernel_winograd_runs_here(void) {
  return kernel_matrix_runs_here();
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
  kernel_winograd_cut_t cut = {.blocks = quotient_up(tiles, BLOCK / count_points(winograd)), .parts = 1};
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
  int64_t begin = unit / cut->parts * cut->tiles;
  int64_t left = count_tiles(winograd) - begin;
  int64_t tiles = left < cut->tiles ? left : cut->tiles;
  int64_t panel = unit % cut->parts * cut->panels;
  int64_t panels = quotient_up(winograd->outputs, PANEL);
  int64_t end = panel + cut->panels < panels ? panel + cut->panels : panels;
  int64_t points = count_points(winograd);
  int64_t apart = products_apart(cut);
  float *products = scratch + points * tiles_apart(winograd, cut);
  const kernel_matrix_t matrix = {.rows = tiles,
                                  .columns = PANEL,
                                  .depth = winograd->inputs,
                                  .x_stride = winograd->inputs,
                                  .y_stride = PANEL,
                                  .low = -INFINITY,
                                  .high = INFINITY};
  kernel_winograd_gather(winograd, data->x, begin, begin + tiles, tiles_apart(winograd, cut), scratch);
  for (; panel < end; panel += GROUP) {
    int64_t group = end - panel < GROUP ? end - panel : GROUP;
    for (int64_t point = 0; point < points; point++) {
      for (int64_t k = 0; k < group; k++) {
        const kernel_matrix_data_t product = {
            .x = scratch + point * tiles_apart(winograd, cut),
            .weights = data->weights + ((panel + k) * points + point) * winograd->inputs * PANEL,
            .y = products + (k * points + point) * apart};
        kernel_matrix_block(&matrix, &product, 0, tiles, 0, 1);
      }
    }
    for (int64_t k = 0; k < group; k++) {
      const winograd_products_t made = {.data = data,
                                        .from = products + k * points * apart,
                                        .apart = apart,
                                        .begin = begin,
                                        .end = begin + tiles};
      kernel_winograd_scatter(winograd, &made, panel + k);
    }
  }
}
