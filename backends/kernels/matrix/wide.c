// SPDX-License-Identifier: Apache-2.0
// How the work is cut: rows whose part of x stays in the second cache while all panels go by; where there are
// more weights than x, threads share the panels.
#include "kernels/matrix/wide.h"

#include "kernels/instructions.h"

/* Elements of x of a block, the fewest rows of one, units per thread if the work is for several, and
 * multiplications that are. */
enum {
  BLOCK = 131072,
  LEAST_ROWS = 2 * KERNEL_WIDE_ROWS,
  UNITS = 4,
  PAIR = 2 * KERNEL_WIDE_PANEL,
  GRAIN = 200000
};

bool kernel_wide_runs_here(void) {
  return kernel_instructions(KERNEL_AVX512) == KERNEL_AVX512;
}

static int64_t quotient_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

static int64_t at_least_one(int64_t value) {
  return value < 1 ? 1 : value;
}

kernel_wide_cut_t kernel_wide_cut(const kernel_wide_t *wide, int32_t threads) {
  int64_t pairs = quotient_up(wide->columns, PAIR);
  int64_t most = at_least_one(wide->rows / LEAST_ROWS);
  int64_t blocks = quotient_up(wide->rows * wide->depth, BLOCK);
  kernel_wide_cut_t cut = {.blocks = blocks < most ? blocks : most, .parts = 1};
  bool is_worth = (double)wide->rows * (double)wide->depth * (double)wide->columns >= GRAIN;
  if (threads > 1 && wide->images % threads != 0 && is_worth) {
    int64_t units = UNITS * (int64_t)threads;
    if (wide->columns > wide->rows || most < threads) {
      cut.parts = pairs < units ? pairs : units;
    } else {
      blocks = quotient_up(cut.blocks, units) * units;
      cut.blocks = blocks < most ? blocks : most / threads * threads;
    }
  }
  return cut;
}

int64_t kernel_wide_units(const kernel_wide_t *wide, const kernel_wide_cut_t *cut) {
  return wide->images * cut->blocks * cut->parts;
}

void kernel_wide_run(const kernel_wide_t *wide, const kernel_wide_cut_t *cut, const kernel_wide_data_t *data,
                     int64_t unit) {
  int64_t image = unit / (cut->blocks * cut->parts);
  int64_t block = unit / cut->parts % cut->blocks;
  int64_t part = unit % cut->parts;
  int64_t panels = quotient_up(wide->columns, KERNEL_WIDE_PANEL);
  int64_t pairs = quotient_up(panels, 2);
  int64_t last = pairs * (part + 1) / cut->parts * 2;
  kernel_wide_data_t own = *data;
  own.x += image * wide->x_image;
  own.y += image * wide->y_image;
  own.sum = data->sum != NULL ? data->sum + image * wide->y_image : NULL;
  kernel_wide_block(wide, &own, wide->rows * block / cut->blocks, wide->rows * (block + 1) / cut->blocks,
                    pairs * part / cut->parts * 2, last < panels ? last : panels);
}
