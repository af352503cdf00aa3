// SPDX-License-Identifier: Apache-2.0
// How the work is cut: with blocks of channels a unit is a block; with channels last it is rows of all of
// them, so that what lies side by side is read together, or several blocks if there are more channels than
// pixels.
#include "kernels/depthwise/depthwise.h"

/* Elements of a unit, about, and units per thread if there are several. */
enum { PANEL = KERNEL_DEPTHWISE_PANEL, STRIP = 32768, UNITS = 4 };

static int64_t count_blocks(const kernel_depthwise_t *depthwise) {
  return (depthwise->channels + PANEL - 1) / PANEL;
}

static int64_t between(int64_t value, int64_t low, int64_t high) {
  return value < low ? low : (value > high ? high : value);
}

kernel_depthwise_cut_t kernel_depthwise_cut(const kernel_depthwise_t *depthwise, int32_t threads) {
  int64_t blocks = count_blocks(depthwise);
  int64_t wanted = threads > 1 ? UNITS * (int64_t)threads : 1;
  // Rows or channels, as products of pixels are cut: what a thread reads is in its own cache.
  int64_t pixels = depthwise->y.height * depthwise->y.width;
  bool by_rows = pixels >= depthwise->channels || blocks < threads;
  if (depthwise->x.block != PANEL) {
    int64_t strips = by_rows ? between(threads, 1, depthwise->y.height) : 1;
    return (kernel_depthwise_cut_t){.strips = strips, .groups = blocks};
  }
  if (threads > 1 && !by_rows) {
    return (kernel_depthwise_cut_t){.strips = 1, .groups = between(wanted, 1, blocks)};
  }
  int64_t strips = depthwise->x.width * depthwise->x.height * depthwise->channels / STRIP;
  return (kernel_depthwise_cut_t){
      .strips = between(strips > wanted ? strips : wanted, 1, depthwise->y.height), .groups = 1};
}

int64_t kernel_depthwise_units(const kernel_depthwise_t *depthwise, const kernel_depthwise_cut_t *cut) {
  return depthwise->images * cut->strips * cut->groups;
}

void kernel_depthwise_run(const kernel_depthwise_t *depthwise, const kernel_depthwise_cut_t *cut,
                          const kernel_depthwise_data_t *data, int64_t unit) {
  int64_t image = unit / (cut->strips * cut->groups);
  int64_t strip = unit / cut->groups % cut->strips;
  int64_t group = unit % cut->groups;
  int64_t blocks = count_blocks(depthwise);
  int64_t rows = depthwise->y.height;
  kernel_depthwise_data_t own = *data;
  own.x += image * depthwise->x.image;
  own.y += image * depthwise->y.image;
  for (int64_t block = blocks * group / cut->groups; block < blocks * (group + 1) / cut->groups; block++) {
    kernel_depthwise_rows(depthwise, &own, block, rows * strip / cut->strips,
                          rows * (strip + 1) / cut->strips);
  }
}
