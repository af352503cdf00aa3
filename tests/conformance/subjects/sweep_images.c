// SPDX-License-Identifier: Apache-2.0
// Images that are read between their elements: GridSample, AffineGrid, RoiAlign, MaxRoiPool, and Resize with
// all of its modes.
#include <stdio.h>

#include "sweep_case.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const char *const floats[] = {"f32", "f64", "f16", "bf16"};

/* What has no gradient: cubic sampling, the largest of a region, and what no finite difference follows. */
static void forward(sweep_t *sweep, const char *const *list, size_t count) {
  for (size_t k = 0; k < count && !sweep->gradients; k++) {
    sweep_nodes(sweep, "%s", list[k]);
  }
}

static void grids(sweep_t *sweep) {
  static const char *const paddings[] = {"zeros", "border", "reflection"};
  static const char *const modes[] = {"linear", "nearest", "cubic"};
  static const char *const list[] = {
      "AffineGrid(t[2,2,3], #[2,1,3,4])",
      "AffineGrid{align_corners=1}(t[1,3,4], #[1,1,2,3,2])",
      "AffineGrid{align_corners=1}(t[2,2,3], #[2,1,1,5])",
      "AffineGrid(t[0,2,3], #[0,1,3,4])",
      "GridSample(x[0,2,3,3], g[0,2,2,2])",
      "GridSample(x[2,3,3,3], g[2,0,2,2])",
      "GridSample(x[2,3,1,1], g[2,3,2,2])",
      "GridSample{padding_mode=reflection, align_corners=1}(x[2,3,1,4], g[2,3,2,2])",
      "GridSample(x[1,17,5,4], g~[1,4,5,2])",
      "GridSample{mode=nearest, padding_mode=border}(x[1,17,5,4], g~[1,4,5,2])",
      "GridSample(x[1,2,3,4], g!:f64[1,4,5,2])",
      "GridSample{mode=nearest}(x[1,9,6,6], g%[1,7,5,2])",
      "Relu(GridSample(Conv(x[1,3,6,6], $w[17,3,3,3]), AffineGrid(t[1,2,3], #[1,17,5,7])))",
  };
  static const char *const others[] = {
      "GridSample{mode=cubic, padding_mode=reflection}(x[1,17,5,4], g~[1,4,5,2])",
  };
  for (size_t p = 0; p < COUNT(paddings); p++) {
    for (int k = 0; k < (sweep->gradients ? 4 : 6); k++) {
      sweep_nodes(sweep, "GridSample{mode=%s, padding_mode=%s, align_corners=%d}(x[2,2,4,5], g[2,3,3,2])",
                  modes[k / 2], paddings[p], k % 2);
    }
    for (int k = 0; k < 4; k++) {
      sweep_nodes(sweep, "GridSample{mode=%s, padding_mode=%s, align_corners=%d}(x[1,2,3,2,4], g[1,2,2,2,3])",
                  modes[k / 2], paddings[p], k % 2);
    }
    for (size_t t = 0; t < COUNT(floats); t++) {
      sweep_nodes(sweep, "GridSample{mode=%s, padding_mode=%s}(x:%s[1,10,5,4], g:%s[1,3,3,2])",
                  modes[t % (sweep->gradients ? 2 : 3)], paddings[p], floats[t], floats[t]);
    }
  }
  for (size_t k = 0; k < COUNT(list); k++) {
    sweep_nodes(sweep, "%s", list[k]);
  }
  forward(sweep, others, COUNT(others));
  for (size_t t = 0; t < COUNT(floats); t++) {
    sweep_nodes(sweep, "AffineGrid(t:%s[2,2,3], #[2,1,3,4])", floats[t]);
  }
}

static void regions(sweep_t *sweep) {
  static const char *const list[] = {
      "RoiAlign{output_height=2, output_width=3}(x[2,2,5,6], $r+[3,4], #[0,1,0])",
      "RoiAlign{output_height=2, sampling_ratio=2, spatial_scale=0.7, "
      "coordinate_transformation_mode=output_half_pixel}(x[2,2,5,6], $r+[3,4], #[0,1,0])",
      "RoiAlign{output_height=3, output_width=2, spatial_scale=3}(x[1,3,9,8], $r[5,4], #[0,0,0,0,0])",
      "RoiAlign{output_height=2}(x[2,2,5,6], r[0,4], i:i64[0])",
  };
  static const char *const others[] = {
      "RoiAlign{mode=max, output_height=2, output_width=2}(x[2,3,5,6], r[4,4], #[0,1,0,1])",
      "RoiAlign{mode=max, sampling_ratio=3, spatial_scale=4}(x[1,3,9,8], r[5,4], #[0,0,0,0,0])",
      "RoiAlign{output_height=2, output_width=2, spatial_scale=2}(x[2,3,5,6], r![3,4], #[0,1,0])",
      "MaxRoiPool{pooled_shape=[2,3]}(x[1,3,7,6], Abs(Mul(r[3,5], #0)))",
      "MaxRoiPool{pooled_shape=[2,2], spatial_scale=3}(x[1,3,7,6], Mul(r[4,5], Cast{to=1}(#[0,1,1,1,1])))",
      "MaxRoiPool{pooled_shape=[2,2]}(x[1,3,7,6], r[0,5])",
  };
  for (size_t k = 0; k < COUNT(list); k++) {
    sweep_nodes(sweep, "%s", list[k]);
  }
  forward(sweep, others, COUNT(others));
  for (size_t t = 0; t < COUNT(floats); t++) {
    sweep_nodes(
        sweep,
        "RoiAlign{output_height=2, output_width=2, spatial_scale=3}(x:%s[1,3,5,6], $r:%s[3,4], #[0,0,0])",
        floats[t], floats[t]);
  }
  for (size_t t = 0; t < COUNT(floats) && !sweep->gradients; t++) {
    sweep_nodes(sweep,
                "MaxRoiPool{pooled_shape=[2,2], spatial_scale=2}(x:%s[1,3,7,6], Mul(r:%s[4,5], "
                "CastLike(#[0,1,1,1,1], r)))",
                floats[t], floats[t]);
  }
}

static void resizes(sweep_t *sweep) {
  static const char *const places[] = {"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel",
                                       "half_pixel_symmetric"};
  static const char *const modes[] = {"linear", "nearest", "cubic"};
  static const char *const rounding[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  static const char *const list[] = {
      "Resize{mode=linear, antialias=1, axes=[2,3]}(x[1,2,6,8], _, _, #[3,5])",
      "Resize{mode=cubic, antialias=1, axes=[2,3]}(x[1,2,6,8], _, _, #[3,5])",
      "Resize{mode=cubic, cubic_coeff_a=-0.5, exclude_outside=1}(x[1,2,4,4], _, _, #[1,2,7,8])",
      "Resize{mode=linear}(x[2,3,4], _, _, #[3,3,6])",
  };
  for (size_t m = 0; m < COUNT(modes); m++) {
    for (size_t p = 0; p < COUNT(places); p++) {
      sweep_nodes(sweep,
                  "Resize{mode=%s, coordinate_transformation_mode=%s, nearest_mode=%s}(x[1,2,4,5], _, _, "
                  "#[1,2,%d,7])",
                  modes[m], places[p], rounding[(m + p) % COUNT(rounding)], p % 2 == 0 ? 3 : 8);
    }
  }
  for (size_t k = 0; k < COUNT(list); k++) {
    sweep_nodes(sweep, "%s", list[k]);
  }
}

void sweep_images(sweep_t *sweep) {
  grids(sweep);
  regions(sweep);
  resizes(sweep);
}
