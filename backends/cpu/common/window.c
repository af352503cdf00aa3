// SPDX-License-Identifier: Apache-2.0
// Sliding windows: attributes checked when they are read, so that no later sum or product overflows; shapes
// checked when they are known.
#include "cpu/common/window.h"

#include <string.h>

static cleave_status_t read_extents(const cpu_prepare_t *prepare, const char *name, int64_t lowest,
                                    uint32_t limit, int64_t *values, uint32_t *out_count,
                                    cleave_message_t *message) {
  uint32_t count = 0;
  const int64_t *given = cleave_view_ints(prepare->node, name, &count);
  if (count > limit) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "%s has %u entries, expected at most %u", name,
                       count, limit);
  }
  for (uint32_t k = 0; k < count; k++) {
    if (given[k] < lowest || given[k] >= CPU_NN_MAX_EXTENT) {
      return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "%s has entry %lld, expected at least %lld", name,
                         (long long)given[k], (long long)lowest);
    }
    values[k] = given[k];
  }
  *out_count = count;
  return CLEAVE_OK;
}

cleave_status_t cpu_window_prepare(const cpu_prepare_t *prepare, cpu_window_t *out_window,
                                   cleave_message_t *message) {
  memset(out_window, 0, sizeof *out_window);
  CPU_TRY(read_extents(prepare, "kernel_shape", 1, CPU_WINDOW_AXES, out_window->kernel,
                       &out_window->kernel_count, message));
  CPU_TRY(read_extents(prepare, "strides", 1, CPU_WINDOW_AXES, out_window->stride, &out_window->stride_count,
                       message));
  CPU_TRY(read_extents(prepare, "dilations", 1, CPU_WINDOW_AXES, out_window->dilation,
                       &out_window->dilation_count, message));
  CPU_TRY(read_extents(prepare, "pads", 1 - CPU_NN_MAX_EXTENT, 2 * CPU_WINDOW_AXES, out_window->pads,
                       &out_window->pad_count, message));
  static const char *const names[] = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"};
  const char *auto_pad = cleave_view_string(prepare->node, "auto_pad", "NOTSET");
  for (int k = 0; k < 4; k++) {
    if (strcmp(auto_pad, names[k]) == 0) {
      out_window->auto_pad = (cpu_auto_pad_t)k;
      return CLEAVE_OK;
    }
  }
  return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "auto_pad '%.32s' is unknown", auto_pad);
}

static cleave_status_t check_counts(const cpu_window_t *window, uint32_t spatial, cleave_message_t *message) {
  if ((window->kernel_count != 0 && window->kernel_count != spatial) ||
      (window->stride_count != 0 && window->stride_count != spatial) ||
      (window->dilation_count != 0 && window->dilation_count != spatial) ||
      (window->pad_count != 0 && window->pad_count != 2 * spatial)) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "attributes do not fit %u spatial ax%s", spatial,
                       KERNEL_BY_COUNT(spatial, "is", "es"));
  }
  return CLEAVE_OK;
}

// Padding of `auto_pad` SAME: what the last window needs beyond the tensor, the odd element at one end.
static void resolve_same(cpu_geometry_t *g, int32_t axis, bool upper) {
  int64_t reach = (g->kernel[axis] - 1) * g->dilation[axis] + 1;
  int64_t windows = (g->in[axis] + g->stride[axis] - 1) / g->stride[axis];
  int64_t total = cpu_nn_max((windows - 1) * g->stride[axis] + reach - g->in[axis], 0);
  g->pad[axis] = upper ? total / 2 : total - total / 2;
  g->pad_end[axis] = total - g->pad[axis];
}

cleave_status_t cpu_window_resolve(const cpu_window_t *window, const cpu_tensor_t *x, const cpu_tensor_t *y,
                                   const int64_t *kernel, cpu_geometry_t *out_geometry,
                                   cleave_message_t *message) {
  if (x->rank < 3 || x->rank > 2 + CPU_WINDOW_AXES || x->rank != y->rank) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "input has rank %d, expected 3 to %d", x->rank,
                       2 + CPU_WINDOW_AXES);
  }
  int32_t spatial = x->rank - 2;
  CPU_TRY(check_counts(window, (uint32_t)spatial, message));
  if (kernel == NULL && window->kernel_count == 0) {
    return kernel_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT, "kernel_shape is missing");
  }
  cpu_geometry_t g = {.spatial = spatial, .batch = x->dims[0], .channels = x->dims[1]};
  int32_t skipped = CPU_WINDOW_AXES - spatial;
  g.in_count = 1;
  g.out_count = 1;
  g.kernel_count = 1;
  for (int32_t axis = 0; axis < CPU_WINDOW_AXES; axis++) {
    int32_t k = axis - skipped;
    g.in[axis] = k < 0 ? 1 : x->dims[2 + k];
    g.out[axis] = k < 0 ? 1 : y->dims[2 + k];
    g.kernel[axis] = k < 0 ? 1 : (kernel != NULL ? kernel[k] : window->kernel[k]);
    g.stride[axis] = k < 0 || window->stride_count == 0 ? 1 : window->stride[k];
    g.dilation[axis] = k < 0 || window->dilation_count == 0 ? 1 : window->dilation[k];
    if (k >= 0 && window->pad_count != 0 && window->auto_pad == CPU_PAD_EXPLICIT) {
      g.pad[axis] = window->pads[k];
      g.pad_end[axis] = window->pads[spatial + k];
    }
    if (k >= 0 && kernel != NULL && window->kernel_count != 0 && window->kernel[k] != kernel[k]) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "kernel_shape has %lld, the weights have %lld",
                         (long long)window->kernel[k], (long long)kernel[k]);
    }
    if (g.kernel[axis] < 1 || g.in[axis] >= CPU_NN_MAX_EXTENT || g.out[axis] >= CPU_NN_MAX_EXTENT ||
        g.kernel[axis] >= CPU_NN_MAX_EXTENT) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "sizes out of range on spatial axis %d", k);
    }
    if (window->auto_pad == CPU_PAD_SAME_UPPER || window->auto_pad == CPU_PAD_SAME_LOWER) {
      resolve_same(&g, axis, window->auto_pad == CPU_PAD_SAME_UPPER);
    }
    g.in_count *= g.in[axis];
    g.out_count *= g.out[axis];
    g.kernel_count = cpu_nn_multiply(g.kernel_count, g.kernel[axis]);
  }
  *out_geometry = g;
  return CLEAVE_OK;
}

cleave_status_t cpu_window_check_output(const cpu_window_t *window, const cpu_geometry_t *g,
                                        cleave_message_t *message) {
  bool same = window->auto_pad == CPU_PAD_SAME_UPPER || window->auto_pad == CPU_PAD_SAME_LOWER;
  for (int32_t axis = 0; axis < CPU_WINDOW_AXES; axis++) {
    int64_t room =
        g->in[axis] + g->pad[axis] + g->pad_end[axis] - ((g->kernel[axis] - 1) * g->dilation[axis] + 1);
    int64_t expected = room < 0 ? 0 : room / g->stride[axis] + 1;
    if (same) {
      expected = (g->in[axis] + g->stride[axis] - 1) / g->stride[axis];
    }
    if (g->out[axis] != expected) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE,
                         "output has %lld element%s on spatial axis %d, expected %lld",
                         (long long)g->out[axis], KERNEL_PLURAL(g->out[axis]),
                         axis - (CPU_WINDOW_AXES - g->spatial), (long long)expected);
    }
  }
  return CLEAVE_OK;
}

void cpu_window_range(const cpu_geometry_t *g, int32_t axis, int64_t tap, int64_t *out_begin,
                      int64_t *out_end) {
  int64_t shift = g->pad[axis] - tap * g->dilation[axis];
  int64_t begin = -cpu_nn_floor_div(-shift, g->stride[axis]);
  int64_t end = cpu_nn_floor_div(g->in[axis] - 1 + shift, g->stride[axis]) + 1;
  *out_begin = cpu_nn_min(cpu_nn_max(begin, 0), g->out[axis]);
  *out_end = cpu_nn_max(cpu_nn_min(end, g->out[axis]), *out_begin);
}
