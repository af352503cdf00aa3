// SPDX-License-Identifier: Apache-2.0
// Geometry of windows, pads, axes and Resize coordinates. Attribute values are bounded here, so that sums
// and products of them cannot overflow later.
#include "onednn/units/windows.h"

#include <math.h>
#include <string.h>

#include "kernels/resize/resize.h"

static const int64_t largest = (int64_t)1 << 30;

// Nearest is compared index by index up to this size.
static const int64_t most_nearest = 1 << 16;

static cleave_status_t check_list(const cleave_node_view_t *node, const char *name, uint32_t expected,
                                  int64_t least, cleave_message_t *message) {
  uint32_t count = 0;
  const int64_t *list = cleave_view_ints(node, name, &count);
  if (count == 0) {
    return CLEAVE_OK;
  }
  if (count != expected) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "%s '%s': expected %u %s, found %u", node->op,
                       onednn_node_name(node), (unsigned)expected, name, (unsigned)count);
  }
  for (uint32_t k = 0; k < count; k++) {
    if (list[k] < least || list[k] > largest) {
      return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED,
                         "%s '%s': %s has %lld, which oneDNN does not support", node->op,
                         onednn_node_name(node), name, (long long)list[k]);
    }
  }
  return CLEAVE_OK;
}

cleave_status_t onednn_window_check(const cleave_node_view_t *node, int32_t spatial,
                                    cleave_message_t *message) {
  static const char *const modes[] = {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"};
  uint32_t n = (uint32_t)spatial;
  ONEDNN_TRY(check_list(node, "kernel_shape", n, 1, message));
  ONEDNN_TRY(check_list(node, "strides", n, 1, message));
  ONEDNN_TRY(check_list(node, "dilations", n, 1, message));
  ONEDNN_TRY(check_list(node, "pads", 2 * n, 0, message));
  ONEDNN_TRY(check_list(node, "output_padding", n, 0, message));
  const char *mode = cleave_view_string(node, "auto_pad", "NOTSET");
  for (size_t k = 0; k < sizeof(modes) / sizeof(modes[0]); k++) {
    if (strcmp(mode, modes[k]) == 0) {
      return CLEAVE_OK;
    }
  }
  return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "%s '%s': auto_pad '%s' is unknown", node->op,
                     onednn_node_name(node), mode);
}

static int64_t entry(const cleave_node_view_t *node, const char *name, uint32_t index, int64_t fallback) {
  uint32_t count = 0;
  const int64_t *list = cleave_view_ints(node, name, &count);
  return index < count ? list[index] : fallback;
}

static cleave_status_t start(const cleave_node_view_t *node, const int64_t *kernel, const onednn_shape_t *in,
                             const onednn_shape_t *out, onednn_window_t *window, cleave_message_t *message) {
  memset(window, 0, sizeof(*window));
  window->rank = in->rank - 2;
  if (in->rank < 3 || in->rank > 5 || out->rank != in->rank) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "%s '%s': expected ranks 3 to 5, found %d and %d",
                       node->op, onednn_node_name(node), (int)in->rank, (int)out->rank);
  }
  for (int32_t d = 0; d < window->rank; d++) {
    uint32_t k = (uint32_t)d;
    window->kernel[d] = kernel != NULL ? kernel[d] : entry(node, "kernel_shape", k, 0);
    window->strides[d] = entry(node, "strides", k, 1);
    window->dilations[d] = entry(node, "dilations", k, 1) - 1;
    window->dilated = window->dilated || window->dilations[d] != 0;
    if (window->kernel[d] < 1 || window->kernel[d] > largest || in->dims[d + 2] > largest * 4 ||
        out->dims[d + 2] > largest * 4) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "%s '%s': its window or image is out of range",
                         node->op, onednn_node_name(node));
    }
  }
  return CLEAVE_OK;
}

// The extent of the kernel with its holes.
static int64_t extent(const onednn_window_t *window, int32_t d) {
  return (window->kernel[d] - 1) * (window->dilations[d] + 1) + 1;
}

static bool is_same(const cleave_node_view_t *node, bool *upper) {
  const char *mode = cleave_view_string(node, "auto_pad", "NOTSET");
  *upper = strcmp(mode, "SAME_UPPER") == 0;
  return *upper || strcmp(mode, "SAME_LOWER") == 0;
}

// Is the output size what the attributes say? The pad at the end may fall short of the declared one, if
// the last stride does not fit, or exceed it, if ceil_mode rounds up.
// Wide: numbers of one formula.
static bool gives_output(const cleave_node_view_t *node, const onednn_window_t *window, int32_t d, bool same,
                         int64_t in, int64_t out, const int64_t *extra) {
  int64_t stride = window->strides[d];
  if (same) {
    return out == (in + stride - 1) / stride && window->pad_end[d] > -stride;
  }
  bool explicit_pads = strcmp(cleave_view_string(node, "auto_pad", "NOTSET"), "NOTSET") == 0;
  int64_t declared = explicit_pads ? entry(node, "pads", (uint32_t)(window->rank + d), 0) : 0;
  // Pads of a Pad have batch and channel between begin and end.
  declared += extra != NULL ? extra[window->rank + 2 + d] : 0;
  int64_t most = declared + (cleave_view_int(node, "ceil_mode", 0) != 0 ? stride - 1 : 0);
  return window->pad_end[d] > declared - stride && window->pad_end[d] <= most && window->pad_end[d] > -stride;
}

cleave_status_t onednn_window_forward(const cleave_node_view_t *node, const int64_t *kernel,
                                      const int64_t *extra, const onednn_shape_t *in,
                                      const onednn_shape_t *out, onednn_window_t *window,
                                      cleave_message_t *message) {
  ONEDNN_TRY(start(node, kernel, in, out, window, message));
  bool upper = false;
  bool same = is_same(node, &upper);
  bool explicit_pads = strcmp(cleave_view_string(node, "auto_pad", "NOTSET"), "NOTSET") == 0;
  for (int32_t d = 0; d < window->rank; d++) {
    int64_t reach = (out->dims[d + 2] - 1) * window->strides[d] + extent(window, d) - in->dims[d + 2];
    if (same) {
      int64_t total = reach > 0 ? reach : 0;
      window->pad_begin[d] = upper ? total / 2 : total - total / 2;
    } else {
      window->pad_begin[d] = explicit_pads ? entry(node, "pads", (uint32_t)d, 0) : 0;
      window->pad_begin[d] += extra != NULL ? extra[d] : 0;
    }
    window->pad_end[d] = reach - window->pad_begin[d];
    if (!gives_output(node, window, d, same, in->dims[d + 2], out->dims[d + 2], extra)) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "%s '%s': its window does not give the output shape",
                         node->op, onednn_node_name(node));
    }
  }
  return CLEAVE_OK;
}

cleave_status_t onednn_window_transposed(const cleave_node_view_t *node, const int64_t *kernel,
                                         const onednn_shape_t *in, const onednn_shape_t *out,
                                         onednn_window_t *window, cleave_message_t *message) {
  ONEDNN_TRY(start(node, kernel, in, out, window, message));
  bool upper = false;
  uint32_t fixed = 0;
  bool same = is_same(node, &upper);
  (void)cleave_view_ints(node, "output_shape", &fixed);
  for (int32_t d = 0; d < window->rank; d++) {
    int64_t whole = (in->dims[d + 2] - 1) * window->strides[d] + extent(window, d);
    int64_t padded = whole + entry(node, "output_padding", (uint32_t)d, 0) - out->dims[d + 2];
    int64_t total = padded > 0 ? padded : 0;
    if (same || fixed > 0) {
      window->pad_begin[d] = upper ? total / 2 : total - total / 2;
    } else {
      window->pad_begin[d] = entry(node, "pads", (uint32_t)d, 0);
    }
    window->pad_end[d] = whole - out->dims[d + 2] - window->pad_begin[d];
    if (window->pad_end[d] <= -window->strides[d]) {
      return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED,
                         "ConvTranspose '%s': its output padding reaches past the stride",
                         onednn_node_name(node));
    }
  }
  return CLEAVE_OK;
}

bool onednn_pads_of(const cleave_region_view_t *region, const cleave_node_view_t *node, int32_t rank,
                    int64_t pads[2 * CLEAVE_MAX_RANK]) {
  const cleave_value_view_t *list = cleave_view_input(region, node, 1);
  const cleave_value_view_t *fill = cleave_view_input(region, node, 2);
  const cleave_value_view_t *axes = cleave_view_input(region, node, 3);
  double value = cleave_view_float(node, "value", 0);
  uint32_t count = 0;
  const int64_t *attribute = cleave_view_ints(node, "pads", &count);
  if (strcmp(cleave_view_string(node, "mode", "constant"), "constant") != 0 || axes != NULL ||
      (fill != NULL && !onednn_scalar(fill, &value)) || value != 0) {
    return false;
  }
  if (list != NULL) {
    if (!onednn_is_constant(list) || list->tensor.dtype != CLEAVE_DTYPE_I64 || list->tensor.rank != 1 ||
        list->tensor.dims[0] != 2 * (int64_t)rank) {
      return false;
    }
    memcpy(pads, list->tensor.data, 2 * (size_t)rank * sizeof(int64_t));
  } else {
    if (attribute == NULL || count != 2 * (uint32_t)rank) {
      return false;
    }
    memcpy(pads, attribute, 2 * (size_t)rank * sizeof(int64_t));
  }
  for (int32_t d = 0; d < 2 * rank; d++) {
    if (pads[d] < 0 || pads[d] > largest) {
      return false;
    }
  }
  return true;
}

bool onednn_transpose_order(const cleave_node_view_t *node, int32_t rank, int32_t order[CLEAVE_MAX_RANK]) {
  uint32_t count = 0;
  const int64_t *list = cleave_view_ints(node, "perm", &count);
  bool seen[CLEAVE_MAX_RANK] = {false};
  for (int32_t d = 0; d < rank; d++) {
    int64_t from = count == 0 ? rank - 1 - d : (d < (int32_t)count ? list[d] : -1);
    if (from < 0 || from >= rank || seen[from]) {
      return false;
    }
    seen[from] = true;
    order[d] = (int32_t)from;
  }
  return count == 0 || count == (uint32_t)rank;
}

static int64_t clamp(int64_t x, int64_t low, int64_t high) {
  return x < low ? low : (x > high ? high : x);
}

bool onednn_slice_of(const cleave_region_view_t *region, const cleave_node_view_t *node,
                     const onednn_shape_t *x, onednn_slice_t *slice) {
  const cleave_value_view_t *from = cleave_view_input(region, node, 1);
  const cleave_value_view_t *axes_value = cleave_view_input(region, node, 3);
  const cleave_value_view_t *steps_value = cleave_view_input(region, node, 4);
  int64_t starts[CLEAVE_MAX_RANK];
  int64_t axes[CLEAVE_MAX_RANK];
  int64_t steps[CLEAVE_MAX_RANK];
  uint32_t count = 0;
  uint32_t axis_count = 0;
  uint32_t step_count = 0;
  if (from == NULL || !onednn_integers(from, starts, &count) ||
      (axes_value != NULL && (!onednn_integers(axes_value, axes, &axis_count) || axis_count != count)) ||
      (steps_value != NULL && (!onednn_integers(steps_value, steps, &step_count) || step_count != count))) {
    return false;
  }
  for (int32_t d = 0; d < x->rank; d++) {
    slice->starts[d] = 0;
    slice->steps[d] = 1;
  }
  for (uint32_t k = 0; k < count; k++) {
    int32_t axis = onednn_axis(axes_value != NULL ? axes[k] : (int64_t)k, x->rank);
    int64_t step = steps_value != NULL ? steps[k] : 1;
    if (axis < 0 || step < 1) {
      return false;
    }
    int64_t size = x->dims[axis];
    slice->starts[axis] = clamp(starts[k] < 0 ? clamp(starts[k], -size, 0) + size : starts[k], 0, size);
    slice->steps[axis] = step;
  }
  return true;
}

bool onednn_reduced_axes(const cleave_region_view_t *region, const cleave_node_view_t *node, int32_t rank,
                         bool axes[CLEAVE_MAX_RANK]) {
  const cleave_value_view_t *input = cleave_view_input(region, node, 1);
  int64_t list[CLEAVE_MAX_RANK];
  uint32_t count = 0;
  if (input != NULL) {
    if (!onednn_integers(input, list, &count)) {
      return false;
    }
  } else {
    const int64_t *attribute = cleave_view_ints(node, "axes", &count);
    if (count > CLEAVE_MAX_RANK) {
      return false;
    }
    if (count > 0) {
      memcpy(list, attribute, count * sizeof(int64_t));
    }
  }
  bool all = count == 0 && cleave_view_int(node, "noop_with_empty_axes", 0) == 0;
  for (int32_t d = 0; d < rank; d++) {
    axes[d] = all;
  }
  for (uint32_t k = 0; k < count; k++) {
    int32_t axis = onednn_axis(list[k], rank);
    if (axis < 0) {
      return false;
    }
    axes[axis] = true;
  }
  return true;
}

static bool nearest_agrees(const kernel_resize_rule_t *rule, const kernel_resize_axis_t *axis) {
  for (int64_t index = 0; index < axis->out; index++) {
    float at = roundf(((float)index + 0.5F) * (float)axis->in / (float)axis->out - 0.5F);
    int64_t mine = (int64_t)at;
    mine = mine < 0 ? 0 : (mine >= axis->in ? axis->in - 1 : mine);
    if (mine != kernel_resize_nearest(rule, axis, index)) {
      return false;
    }
  }
  return true;
}

static cleave_status_t refuse(const cleave_node_view_t *node, const char *why, cleave_message_t *message) {
  return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "Resize '%s': %s", onednn_node_name(node), why);
}

// oneDNN's factor is out / in; a scale that is not would sample elsewhere.
static cleave_status_t check_scales(const cleave_region_view_t *region, const cleave_node_view_t *node,
                                    const onednn_shape_t *in, const onednn_shape_t *out,
                                    cleave_message_t *message) {
  const cleave_value_view_t *scales = cleave_view_input(region, node, 2);
  double list[CLEAVE_MAX_RANK];
  uint32_t count = 0;
  if (scales == NULL || cleave_view_element_count(&scales->tensor) == 0) {
    return CLEAVE_OK;
  }
  if (!onednn_numbers(scales, list, &count) || count != (uint32_t)in->rank) {
    return refuse(node, "its scales are not constant", message);
  }
  for (int32_t d = 0; d < in->rank; d++) {
    bool exact = fabs((double)in->dims[d] * list[d] - (double)out->dims[d]) < 1e-4;
    if (in->dims[d] < 0 || out->dims[d] < 0 ? list[d] != floor(list[d]) : !exact) {
      return refuse(node, "a scale is not the quotient of the sizes", message);
    }
  }
  return CLEAVE_OK;
}

// The scale of dimension `d`; 0 if none is given.
static float scale_of(const cleave_region_view_t *region, const cleave_node_view_t *node, int32_t d) {
  const cleave_value_view_t *scales = cleave_view_input(region, node, 2);
  double list[CLEAVE_MAX_RANK];
  uint32_t count = 0;
  bool given = scales != NULL && onednn_numbers(scales, list, &count) && (uint32_t)d < count;
  return given ? (float)list[d] : 0;
}

cleave_status_t onednn_resize_check(const cleave_region_view_t *region, const cleave_node_view_t *node,
                                    cleave_message_t *message) {
  const cleave_value_view_t *data = cleave_view_input(region, node, 0);
  const cleave_value_view_t *result = cleave_view_output(region, node, 0);
  kernel_resize_rule_t rule;
  ONEDNN_TRY(kernel_resize_read(node, &rule, message));
  if (data == NULL || result == NULL || data->tensor.rank < 3 || data->tensor.rank > 5 ||
      result->tensor.rank != data->tensor.rank) {
    return refuse(node, "expected one to three spatial dimensions", message);
  }
  if (rule.axis_count != 0 || rule.antialias || rule.policy != KERNEL_RESIZE_STRETCH) {
    return refuse(node, "axes, antialias or keep_aspect_ratio_policy are set", message);
  }
  onednn_shape_t in = onednn_shape_of(data);
  onednn_shape_t out = onednn_shape_of(result);
  bool of_pytorch = rule.coordinates == KERNEL_RESIZE_PYTORCH_HALF_PIXEL;
  bool half_pixel = of_pytorch || rule.coordinates == KERNEL_RESIZE_HALF_PIXEL;
  bool linear = rule.mode == KERNEL_RESIZE_LINEAR;
  ONEDNN_TRY(check_scales(region, node, &in, &out, message));
  if (!linear && rule.mode != KERNEL_RESIZE_NEAREST) {
    return refuse(node, "its mode is neither nearest nor linear", message);
  }
  if (!half_pixel && (linear || rule.coordinates != KERNEL_RESIZE_ASYMMETRIC)) {
    return refuse(node, "oneDNN samples at half-pixel centres", message);
  }
  for (int32_t d = 0; d < in.rank; d++) {
    bool known = in.dims[d] >= 0 && out.dims[d] >= 0;
    if (d < 2 && known && in.dims[d] != out.dims[d]) {
      return refuse(node, "the batch or the channels change size", message);
    }
    if (d < 2) {
      continue;
    }
    // If sizes are unknown, a scale decides: check_scales has made sure that it is whole.
    int64_t from = known ? in.dims[d] : 16;
    float scale = scale_of(region, node, d);
    int64_t to = known ? out.dims[d] : scale >= 1 && scale <= 1024 ? from * (int64_t)scale : 0;
    bool one_pixel = of_pytorch && to == 1 && from != 1;
    kernel_resize_axis_t axis = {.in = from, .out = to, .scale = scale > 0 ? scale : (float)to / (float)from};
    if (!linear && (to < 1 || to > most_nearest)) {
      return refuse(node, "its sizes are unknown, or too large for nearest", message);
    }
    if (one_pixel || (!linear && !nearest_agrees(&rule, &axis))) {
      return refuse(node, "its rounding differs from oneDNN's", message);
    }
  }
  return CLEAVE_OK;
}
