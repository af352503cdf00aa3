// SPDX-License-Identifier: Apache-2.0
// GridSample (opset 20: two or three spatial axes) and AffineGrid. Taps and weights of an output position are
// found once and used for all channels. Grid values come from outside: coordinates are clamped before they
// become integers.
#include <math.h>
#include <string.h>

#include "cpu/common/nn.h"

#define GRID_AXES 3
#define GRID_MAX_TAPS 16

typedef enum grid_mode { GRID_LINEAR, GRID_NEAREST, GRID_CUBIC } grid_mode_t;
typedef enum grid_padding { GRID_ZEROS, GRID_BORDER, GRID_REFLECTION } grid_padding_t;

typedef struct grid_state {
  grid_mode_t mode;
  grid_padding_t padding;
  bool align_corners;
} grid_state_t;

typedef struct grid {
  const grid_state_t *state;
  const cpu_tensor_t *x;
  const cpu_tensor_t *grid;
  cpu_tensor_t *y;
  int32_t spatial;
  int64_t channels;
  int64_t in_count;
  int64_t out_count;
} grid_t;

// Taps of one axis: index or -1 (zero), and weight.
typedef struct grid_taps {
  int32_t count;
  int64_t index[4];
  double weight[4];
} grid_taps_t;

// Folds a coordinate back between `low` and `high`, as a mirror at both does.
static double reflect(double x, double low, double high) {
  double span = high - low;
  if (!(span > 0)) {
    return 0;
  }
  double distance = fabs(x - low);
  double folds = floor(distance / span);
  double rest = distance - folds * span;
  return fmod(folds, 2) == 0 ? low + rest : high - rest;
}

static double clip(double x, double low, double high) {
  return x > low ? (x < high ? x : high) : low;
}

static double place(const grid_state_t *state, double x, int64_t size) {
  double last = (double)(size - 1);
  if (state->padding == GRID_BORDER) {
    return clip(x, 0, last);
  }
  if (state->padding == GRID_REFLECTION) {
    x = state->align_corners ? reflect(x, 0, last) : reflect(x, -0.5, last + 0.5);
    return clip(x, 0, last);
  }
  // Far outside is outside: all taps are zero there.
  return clip(x, -8, last + 8);
}

static int64_t tap_index(const grid_state_t *state, double at, int64_t size) {
  if (state->mode == GRID_CUBIC) {
    at = place(state, at, size);
  }
  return at >= 0 && at <= (double)(size - 1) ? (int64_t)at : -1;
}

static double cubic_weight(double distance) {
  const double a = -0.75;
  double d = fabs(distance);
  return d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
}

static void find_taps(const grid_state_t *state, double normalised, int64_t size, grid_taps_t *taps) {
  double extent = (double)size;
  double x = state->align_corners ? (normalised + 1) / 2 * (extent - 1) : ((normalised + 1) * extent - 1) / 2;
  x = x == x ? x : -1;
  if (state->mode == GRID_NEAREST) {
    taps->count = 1;
    taps->index[0] = tap_index(state, nearbyint(place(state, x, size)), size);
    taps->weight[0] = 1;
    return;
  }
  if (state->mode == GRID_LINEAR) {
    x = place(state, x, size);
    double base = floor(x);
    taps->count = 2;
    for (int k = 0; k < 2; k++) {
      taps->index[k] = tap_index(state, base + k, size);
      taps->weight[k] = k == 0 ? 1 - (x - base) : x - base;
    }
    return;
  }
  // Cubic pads every tap, not the coordinate.
  x = clip(x, -1e15, 1e15);
  double base = floor(x);
  taps->count = 4;
  for (int k = 0; k < 4; k++) {
    taps->index[k] = tap_index(state, base + k - 1, size);
    taps->weight[k] = cubic_weight(x - base - (k - 1));
  }
}

// All combinations of the taps of the axes, as offsets into a plane.
static int32_t combine_taps(const grid_t *c, const grid_taps_t *taps, int64_t *offsets, double *weights) {
  int32_t count = 1;
  offsets[0] = 0;
  weights[0] = 1;
  for (int32_t axis = 0; axis < c->spatial; axis++) {
    int64_t size = c->x->dims[2 + axis];
    for (int32_t k = taps[axis].count - 1; k >= 0; k--) {
      for (int32_t i = 0; i < count; i++) {
        bool inside = taps[axis].index[k] >= 0;
        offsets[k * count + i] = offsets[i] * size + (inside ? taps[axis].index[k] : 0);
        weights[k * count + i] = inside ? weights[i] * taps[axis].weight[k] : 0;
      }
    }
    count *= taps[axis].count;
  }
  return count;
}

#define FOR_REALS "cpu/signal/grid.inc"
#include "cpu/common/for_reals.inc"

static cleave_status_t grid_prepare(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  static const struct {
    const char *name;
    grid_mode_t mode;
  } modes[] = {{"linear", GRID_LINEAR},
               {"bilinear", GRID_LINEAR},
               {"nearest", GRID_NEAREST},
               {"cubic", GRID_CUBIC},
               {"bicubic", GRID_CUBIC}};
  static const char *const paddings[] = {"zeros", "border", "reflection"};
  grid_state_t *grid = state;
  CPU_TRY(cpu_nn_require_float(prepare, 0, message));
  CPU_TRY(cpu_nn_require_float(prepare, 1, message));
  CPU_TRY(cpu_nn_require_same_outputs(prepare, 0, message));
  const char *mode = cleave_view_string(prepare->node, "mode", "linear");
  const char *padding = cleave_view_string(prepare->node, "padding_mode", "zeros");
  size_t m = 0;
  while (m < sizeof modes / sizeof modes[0] && strcmp(mode, modes[m].name) != 0) {
    m++;
  }
  size_t p = 0;
  while (p < 3 && strcmp(padding, paddings[p]) != 0) {
    p++;
  }
  if (m == sizeof modes / sizeof modes[0] || p == 3) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "mode '%.32s' or padding_mode '%.32s' is unknown",
                       mode, padding);
  }
  grid->mode = modes[m].mode;
  grid->padding = (grid_padding_t)p;
  grid->align_corners = cleave_view_int(prepare->node, "align_corners", 0) != 0;
  return CLEAVE_OK;
}

// ---- AffineGrid ---------------------------------------------------------------------------------------

typedef struct affine {
  const cpu_tensor_t *theta;  // [N, spatial, spatial + 1]
  cpu_tensor_t *y;            // [N, spatial..., spatial]
  int32_t spatial;
  bool align_corners;
} affine_t;

static void affine_positions(void *context, int64_t begin, int64_t end) {
  const affine_t *c = context;
  int32_t s = c->spatial;
  for (int64_t item = begin; item < end; item++) {
    double base[GRID_AXES + 1] = {0};
    int64_t rest = item;
    // The last spatial axis is x, the first coordinate.
    for (int32_t axis = s - 1; axis >= 0; axis--) {
      int64_t size = c->y->dims[1 + axis];
      double at = (double)(rest % size);
      double last = (double)(size - 1);
      rest /= size;
      base[s - 1 - axis] =
          c->align_corners ? (size > 1 ? 2 * at / last - 1 : 0) : (2 * at + 1) / (double)size - 1;
    }
    base[s] = 1;
    for (int32_t row = 0; row < s; row++) {
      double sum = 0;
      for (int32_t k = 0; k <= s; k++) {
        sum += cpu_read_float(c->theta, (rest * s + row) * (s + 1) + k) * base[k];
      }
      cpu_write_float(c->y, item * s + row, sum);
    }
  }
}

static cleave_status_t affine_prepare(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  grid_state_t *grid = state;
  grid->align_corners = cleave_view_int(prepare->node, "align_corners", 0) != 0;
  CPU_TRY(cpu_nn_require_output(prepare, 0, CPU_NN_FLOATS, message));
  return cpu_nn_require_float(prepare, 0, message);
}

static cleave_status_t affine_run(const cpu_call_t *call, cleave_message_t *message) {
  const grid_state_t *state = call->state;
  const cpu_tensor_t *theta = call->inputs[0];
  cpu_tensor_t *y = call->outputs[0];
  CPU_TRY(cpu_nn_check_outputs(call, message));
  affine_t context = {theta, y, y->rank - 2, state->align_corners};
  if ((context.spatial != 2 && context.spatial != 3) || y->dims[y->rank - 1] != context.spatial ||
      theta->rank != 3 || theta->dims[0] != y->dims[0] || theta->dims[1] != context.spatial ||
      theta->dims[2] != context.spatial + 1) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "theta of rank %d does not fit an output of rank %d",
                       theta->rank, y->rank);
  }
  cpu_parallel(call, y->count / context.spatial, 512, affine_positions, &context);
  return CLEAVE_OK;
}

const cpu_kernel_t cpu_kernels_vision_grid[] = {
    CPU_KERNEL("GridSample", 2, .state_size = sizeof(grid_state_t), .prepare = grid_prepare,
               CPU_FLOAT_RUN(grid_run)),
    CPU_KERNEL("AffineGrid", 2, .state_size = sizeof(grid_state_t), .prepare = affine_prepare,
               .run = affine_run),
    {.op = NULL},
};
