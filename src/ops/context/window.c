// SPDX-License-Identifier: Apache-2.0
// Attributes of sliding windows, and output sizes. Every number that comes from a file is checked here.

#include "ops/context/window.h"

#include <string.h>

/* Beyond it nothing can be computed anyway; sums of a few numbers stay within int64. */
#define SIZE_LIMIT ((int64_t)1 << 48)

cleave_status_t cleave_window_list(const cleave_infer_t *infer, const char *name, int32_t count,
                                   int64_t lowest, int64_t *values, cleave_error_t *error) {
  const cleave_op_attribute_t *schema =
      cleave_op_find_attribute(cleave_node_op(infer->graph, infer->node), name);
  bool is_filled = schema != NULL && (schema->shaped == CLEAVE_OP_SHAPED_PER_AXIS ||
                                      schema->shaped == CLEAVE_OP_SHAPED_PER_SIDE);
  int64_t fallback = is_filled ? schema->fill : CLEAVE_DIM_UNKNOWN;
  uint32_t given_count = 0;
  const int64_t *given = cleave_infer_int_list(infer, name, &given_count);
  bool is_given = given != NULL && given_count > 0;
  if (is_given && given_count != (uint32_t)count) {
    return cleave_infer_fail(infer, error, "attribute '%s': expected %d number%s, found %u", name, count,
                             CLEAVE_PLURAL(count), given_count);
  }
  for (int32_t k = 0; k < count; k++) {
    values[k] = is_given ? given[k] : fallback;
    if (is_given && (values[k] < lowest || values[k] > INT32_MAX)) {
      return cleave_infer_fail(infer, error, "attribute '%s': expected numbers of %lld or more, found %lld",
                               name, (long long)lowest, (long long)values[k]);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t read_padding(const cleave_infer_t *infer, cleave_window_t *window,
                                    cleave_error_t *error) {
  static const char *const names[] = {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"};
  const char *text = cleave_infer_text(infer, "auto_pad", "NOTSET");
  for (uint32_t k = 0; k < 4; k++) {
    if (strcmp(text, names[k]) == 0) {
      window->padding = (cleave_padding_t)k;
      return CLEAVE_OK;
    }
  }
  return cleave_infer_fail(infer, error, "auto_pad is '%.32s'", text);
}

cleave_status_t cleave_window_read(const cleave_infer_t *infer, int32_t spatial_rank,
                                   cleave_window_t *out_window, cleave_error_t *error) {
  int64_t pads[2 * CLEAVE_MAX_RANK];
  int64_t kernel[CLEAVE_MAX_RANK];
  memset(out_window, 0, sizeof *out_window);
  out_window->spatial_rank = spatial_rank;
  out_window->ceil_mode = cleave_infer_int(infer, "ceil_mode", 0) != 0;
  CLEAVE_TRY(read_padding(infer, out_window, error));
  CLEAVE_TRY(cleave_window_list(infer, "kernel_shape", spatial_rank, 1, kernel, error));
  CLEAVE_TRY(cleave_window_list(infer, "strides", spatial_rank, 1, out_window->strides, error));
  CLEAVE_TRY(cleave_window_list(infer, "dilations", spatial_rank, 1, out_window->dilations, error));
  CLEAVE_TRY(cleave_window_list(infer, "pads", 2 * spatial_rank, 0, pads, error));
  for (int32_t axis = 0; axis < spatial_rank; axis++) {
    bool is_explicit = out_window->padding == CLEAVE_PADDING_EXPLICIT;
    out_window->kernel[axis] = kernel[axis];
    out_window->pads_begin[axis] = is_explicit ? pads[axis] : 0;
    out_window->pads_end[axis] = is_explicit ? pads[spatial_rank + axis] : 0;
  }
  return CLEAVE_OK;
}

cleave_dim_t cleave_window_extent(const cleave_window_t *window, int32_t axis) {
  cleave_dim_t kernel = window->kernel[axis];
  if (!cleave_dim_is_known(kernel) || kernel > INT32_MAX) {
    return CLEAVE_DIM_UNKNOWN;
  }
  return kernel == 0 ? 0 : window->dilations[axis] * (kernel - 1) + 1;
}

cleave_status_t cleave_window_size(const cleave_infer_t *infer, const cleave_window_t *window, int32_t axis,
                                   cleave_dim_t size, cleave_dim_t *out_size, cleave_error_t *error) {
  int64_t stride = window->strides[axis];
  *out_size = CLEAVE_DIM_UNKNOWN;
  if (window->padding == CLEAVE_PADDING_SAME_UPPER || window->padding == CLEAVE_PADDING_SAME_LOWER) {
    *out_size = cleave_infer_divide_up(infer, size, stride);
    return CLEAVE_OK;
  }
  cleave_dim_t extent = cleave_window_extent(window, axis);
  if (extent == CLEAVE_DIM_UNKNOWN || size == CLEAVE_DIM_UNKNOWN) {
    return CLEAVE_OK;
  }
  if (size > SIZE_LIMIT) {
    return cleave_infer_fail(infer, error, "spatial axis %d: expected a size of at most %lld, found %lld",
                             axis, (long long)SIZE_LIMIT, (long long)size);
  }
  int64_t pads = window->pads_begin[axis] + window->pads_end[axis];
  cleave_dim_t room = cleave_infer_offset(infer, size, pads - extent);
  if (cleave_dim_is_known(size) && room == CLEAVE_DIM_UNKNOWN) {
    return cleave_infer_fail(
        infer, error, "a window of %lld does not fit into spatial axis %d of size %lld with pad%s %lld",
        (long long)extent, axis, (long long)size, CLEAVE_PLURAL(size), (long long)pads);
  }
  cleave_dim_t steps = window->ceil_mode ? cleave_infer_divide_up(infer, room, stride)
                                         : cleave_infer_divide(infer, room, stride);
  /* a window that would start in the padding at the end does not count */
  if (window->ceil_mode && cleave_dim_is_known(steps) && steps * stride >= size + window->pads_begin[axis]) {
    steps--;
  }
  *out_size = cleave_infer_offset(infer, steps, 1);
  return CLEAVE_OK;
}
