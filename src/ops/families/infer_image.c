// SPDX-License-Identifier: Apache-2.0
// Resize, GridSample and AffineGrid.

#include <math.h>
#include <string.h>

#include "ops/context/infer_context.h"

typedef struct resize {
  int32_t axes[CLEAVE_MAX_RANK]; /* that scales and sizes speak of */
  uint32_t axis_count;
} resize_t;

/* An operand that is given as an empty vector counts as left out. */
static bool is_given(const cleave_fact_t *fact) {
  return fact != NULL && cleave_fact_dim(fact, 0) != 0;
}

static cleave_status_t resize_axes(const cleave_infer_t *infer, int32_t rank, resize_t *out,
                                   cleave_error_t *error) {
  uint32_t count = 0;
  const int64_t *given = cleave_infer_int_list(infer, "axes", &count);
  bool all = given == NULL || count == 0;
  out->axis_count = all ? (uint32_t)rank : count;
  CLEAVE_TRY(cleave_infer_rank_in_range(infer, out->axis_count, error));
  for (uint32_t k = 0; k < out->axis_count; k++) {
    CLEAVE_TRY(cleave_infer_axis(infer, all ? k : given[k], rank, &out->axes[k], error));
  }
  return CLEAVE_OK;
}

static cleave_status_t resize_by_sizes(cleave_infer_t *infer, const resize_t *resize, cleave_fact_t *sizes,
                                       cleave_error_t *error) {
  const cleave_fact_t *input = cleave_infer_input(infer, 0);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  const char *policy = cleave_infer_text(infer, "keep_aspect_ratio_policy", "stretch");
  const cleave_element_t *elements = cleave_infer_elements(infer, sizes);
  double scale = 0.0; /* common to all axes, if the policy asks for it */
  bool stretches = strcmp(policy, "stretch") == 0;
  bool smaller = strcmp(policy, "not_larger") == 0;
  if (!stretches && !smaller && strcmp(policy, "not_smaller") != 0) {
    return cleave_infer_fail(
        infer, error, "keep_aspect_ratio_policy: expected stretch, not_larger or not_smaller, found '%.32s'",
        policy);
  }
  for (uint32_t k = 0; elements != NULL && k < resize->axis_count; k++) {
    cleave_dim_t size = cleave_element_dim(&elements[k]);
    cleave_dim_t before = cleave_fact_dim(input, resize->axes[k]);
    if (elements[k].kind == CLEAVE_ELEMENT_INT && elements[k].i < 0) {
      return cleave_infer_fail(infer, error, "sizes has the size %lld", (long long)elements[k].i);
    }
    if (stretches) {
      CLEAVE_TRY(cleave_infer_set_dim(infer, output, resize->axes[k], size, error));
      continue;
    }
    if (!cleave_dim_is_known(size) || !cleave_dim_is_known(before) || before == 0) {
      return CLEAVE_OK;
    }
    double own = (double)size / (double)before;
    scale = k == 0 || (smaller ? own < scale : own > scale) ? own : scale;
  }
  for (uint32_t k = 0; elements != NULL && !stretches && k < resize->axis_count; k++) {
    double size = floor(scale * (double)cleave_fact_dim(input, resize->axes[k]) + 0.5);
    if (size < 9.0e15) {
      CLEAVE_TRY(cleave_infer_set_dim(infer, output, resize->axes[k], (cleave_dim_t)size, error));
    }
  }
  return CLEAVE_OK;
}

/* floor(size * scale), and of the cropped part with tf_crop_and_resize. */
static cleave_status_t resize_by_scales(cleave_infer_t *infer, const resize_t *resize, cleave_fact_t *scales,
                                        cleave_error_t *error) {
  const cleave_fact_t *input = cleave_infer_input(infer, 0);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  const char *mode = cleave_infer_text(infer, "coordinate_transformation_mode", "half_pixel");
  bool crops = strcmp(mode, "tf_crop_and_resize") == 0;
  const cleave_element_t *elements = cleave_infer_elements(infer, scales);
  const cleave_element_t *roi = crops ? cleave_infer_elements(infer, cleave_infer_input(infer, 1)) : NULL;
  if (elements == NULL || (crops && (roi == NULL || cleave_fact_count(cleave_infer_input(infer, 1)) !=
                                                        2 * (int64_t)resize->axis_count))) {
    return CLEAVE_OK;
  }
  for (uint32_t k = 0; k < resize->axis_count; k++) {
    cleave_element_t factor = elements[k];
    if (factor.kind == CLEAVE_ELEMENT_FLOAT && !(factor.f > 0.0)) {
      return cleave_infer_fail(infer, error, "scales has the factor %g", factor.f);
    }
    if (crops) {
      const cleave_element_t *begin = &roi[k];
      const cleave_element_t *end = &roi[resize->axis_count + k];
      bool known = begin->kind == CLEAVE_ELEMENT_FLOAT && end->kind == CLEAVE_ELEMENT_FLOAT;
      factor.f = known && factor.kind == CLEAVE_ELEMENT_FLOAT ? factor.f * (end->f - begin->f) : 0.0;
      factor.kind = known ? factor.kind : (uint8_t)CLEAVE_ELEMENT_UNKNOWN;
    }
    cleave_dim_t size = cleave_element_scale(infer, cleave_fact_dim(input, resize->axes[k]), &factor);
    CLEAVE_TRY(cleave_infer_set_dim(infer, output, resize->axes[k], size, error));
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_infer_resize(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  cleave_fact_t *scales = cleave_infer_input(infer, 2);
  cleave_fact_t *sizes = cleave_infer_input(infer, 3);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  resize_t resize = {.axis_count = 0};
  CLEAVE_TRY(cleave_infer_types(infer, "x - F[?] L[?] > x", error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, output, cleave_fact_rank(input), error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, input, cleave_fact_rank(output), error));
  int32_t rank = cleave_fact_rank(input);
  if (rank < 0) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(resize_axes(infer, rank, &resize, error));
  bool is_resized[CLEAVE_MAX_RANK] = {false};
  for (uint32_t k = 0; k < resize.axis_count; k++) {
    is_resized[resize.axes[k]] = true;
  }
  for (int32_t d = 0; d < rank; d++) {
    if (!is_resized[d]) {
      CLEAVE_TRY(cleave_infer_same_dim(infer, input, d, output, d, error));
    }
  }
  cleave_fact_t *given = is_given(sizes) ? sizes : scales;
  if (!is_given(given)) {
    return cleave_infer_fail(infer, error, "neither scales nor sizes are given");
  }
  CLEAVE_TRY(cleave_infer_set_dim(infer, given, 0, resize.axis_count, error));
  return given == sizes ? resize_by_sizes(infer, &resize, sizes, error)
                        : resize_by_scales(infer, &resize, scales, error);
}

/* X [N, C, D...], grid [N, D'..., spatial rank] -> [N, C, D'...]. */
cleave_status_t cleave_infer_grid_sample(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *input = cleave_infer_input(infer, 0);
  cleave_fact_t *grid = cleave_infer_input(infer, 1);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  CLEAVE_TRY(cleave_infer_same_dtype(infer, input, output, error));
  CLEAVE_TRY(cleave_infer_check_rank(infer, input, 3, CLEAVE_MAX_RANK, error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, grid, cleave_fact_rank(input), error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, output, cleave_fact_rank(input), error));
  int32_t rank = cleave_fact_rank(input);
  if (rank < 0) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_infer_set_dim(infer, grid, rank - 1, rank - 2, error));
  CLEAVE_TRY(cleave_infer_types(infer, "-[nc*] -[n*] > -[nc*]", error));
  for (int32_t d = 2; d < rank; d++) {
    CLEAVE_TRY(cleave_infer_same_dim(infer, grid, d - 1, output, d, error));
  }
  return CLEAVE_OK;
}

/* theta [N, s, s + 1], size (N, C, D...) -> grid [N, D..., s]. */
cleave_status_t cleave_infer_affine_grid(cleave_infer_t *infer, cleave_error_t *error) {
  cleave_fact_t *theta = cleave_infer_input(infer, 0);
  cleave_fact_t *size = cleave_infer_input(infer, 1);
  cleave_fact_t *output = cleave_infer_output(infer, 0);
  cleave_dim_t dims[CLEAVE_MAX_RANK];
  int32_t rank = -1;
  CLEAVE_TRY(cleave_infer_types(infer, "x[???] > x", error));
  CLEAVE_TRY(cleave_infer_shape_operand(infer, size, 0, &rank, dims, error));
  if (rank < 0) {
    return CLEAVE_OK;
  }
  if (rank < 4 || rank > 5) {
    return cleave_infer_fail(infer, error, "size has %d number%s, expected 4 or 5", rank,
                             CLEAVE_PLURAL(rank));
  }
  CLEAVE_TRY(cleave_infer_set_dim(infer, theta, 0, dims[0], error));
  CLEAVE_TRY(cleave_infer_set_dim(infer, theta, 1, rank - 2, error));
  CLEAVE_TRY(cleave_infer_set_dim(infer, theta, 2, rank - 1, error));
  CLEAVE_TRY(cleave_infer_set_rank(infer, output, rank, error));
  CLEAVE_TRY(cleave_infer_same_dim(infer, theta, 0, output, 0, error));
  for (int32_t d = 2; d < rank; d++) {
    CLEAVE_TRY(cleave_infer_set_dim(infer, output, d - 1, dims[d], error));
  }
  return cleave_infer_set_dim(infer, output, rank - 1, rank - 2, error);
}
