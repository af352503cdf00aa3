// SPDX-License-Identifier: Apache-2.0
// RoiAlign (opset 16) and MaxRoiPool. Regions come from outside at run time: batch indices are checked, and
// the number of samples is limited, before anything is computed.
#include <math.h>
#include <string.h>

#include "cpu/common/nn.h"

// Samples of one output element; more would mean a region far larger than any feature map.
#define ROI_MAX_SAMPLES ((double)(1 << 20))

typedef struct roi_state {
  bool max;         // RoiAlign's mode
  bool half_pixel;  // coordinates are shifted by half a pixel
  int64_t sampling;
  double scale;
} roi_state_t;

typedef struct roi {
  const roi_state_t *state;
  const cpu_tensor_t *x;
  const cpu_tensor_t *rois;
  const cpu_tensor_t *batches;  // RoiAlign
  cpu_tensor_t *y;
} roi_t;

// A region in feature coordinates, and its bins.
typedef struct region {
  double top;
  double left;
  double bin_height;
  double bin_width;
  int64_t rows;  // samples per bin
  int64_t columns;
} region_t;

static double sample_count(const roi_state_t *state, double bin) {
  return state->sampling > 0 ? (double)state->sampling : ceil(bin);
}

static cleave_status_t find_region(const roi_t *c, int64_t index, region_t *out_region,
                                   cleave_message_t *message) {
  double offset = c->state->half_pixel ? 0.5 : 0;
  double corners[4];
  for (int k = 0; k < 4; k++) {
    corners[k] = cpu_read_float(c->rois, index * 4 + k) * c->state->scale - offset;
  }
  double width = corners[2] - corners[0];
  double height = corners[3] - corners[1];
  if (!c->state->half_pixel) {
    width = fmax(width, 1);
    height = fmax(height, 1);
  }
  region_t region = {.top = corners[1], .left = corners[0]};
  region.bin_height = height / (double)c->y->dims[2];
  region.bin_width = width / (double)c->y->dims[3];
  double rows = sample_count(c->state, region.bin_height);
  double columns = sample_count(c->state, region.bin_width);
  if (!(fmax(rows, 1) * fmax(columns, 1) <= ROI_MAX_SAMPLES)) {
    return kernel_fail(message, CLEAVE_ERROR_LIMIT, "region %lld is too large", (long long)index);
  }
  region.rows = (int64_t)fmax(rows, 0);
  region.columns = (int64_t)fmax(columns, 0);
  *out_region = region;
  return CLEAVE_OK;
}

// Two neighbours of a coordinate on an axis of `size`, with weights; false if it lies outside.
static bool neighbours(double at, int64_t size, int64_t *indices, double *weights) {
  if (!(at >= -1 && at <= (double)size)) {
    return false;
  }
  at = at > 0 ? at : 0;
  int64_t low = cpu_nn_min((int64_t)at, size - 1);
  indices[0] = low;
  indices[1] = cpu_nn_min(low + 1, size - 1);
  weights[1] = low < size - 1 ? at - (double)low : 0;
  weights[0] = 1 - weights[1];
  return true;
}

static double pool_bin(const roi_t *c, const region_t *region, int64_t plane, int64_t row, int64_t column) {
  int64_t height = c->x->dims[2];
  int64_t width = c->x->dims[3];
  double sum = 0;
  double largest = -INFINITY;
  for (int64_t i = 0; i < region->rows; i++) {
    double y = region->top + ((double)row + ((double)i + 0.5) / (double)region->rows) * region->bin_height;
    for (int64_t j = 0; j < region->columns; j++) {
      double x =
          region->left + ((double)column + ((double)j + 0.5) / (double)region->columns) * region->bin_width;
      int64_t rows[2];
      int64_t columns[2];
      double row_weights[2];
      double column_weights[2];
      bool inside = neighbours(y, height, rows, row_weights) && neighbours(x, width, columns, column_weights);
      for (int k = 0; k < 4; k++) {
        double value = 0;
        if (inside) {
          value = row_weights[k / 2] * column_weights[k % 2] *
                  cpu_read_float(c->x, (plane * height + rows[k / 2]) * width + columns[k % 2]);
        }
        sum += value;
        largest = value > largest ? value : largest;
      }
    }
  }
  int64_t samples = region->rows * region->columns;
  if (c->state->max) {
    return samples > 0 ? largest : 0;
  }
  return sum / (double)cpu_nn_max(samples, 1);
}

// Items are (region, channel).
static void align_items(void *context, int64_t begin, int64_t end) {
  const roi_t *c = context;
  int64_t channels = c->x->dims[1];
  int64_t bins = c->y->dims[2] * c->y->dims[3];
  for (int64_t item = begin; item < end; item++) {
    region_t region;
    if (find_region(c, item / channels, &region, NULL) != CLEAVE_OK) {
      continue;
    }
    int64_t plane = cpu_read_int(c->batches, item / channels) * channels + item % channels;
    for (int64_t bin = 0; bin < bins; bin++) {
      double value = pool_bin(c, &region, plane, bin / c->y->dims[3], bin % c->y->dims[3]);
      cpu_write_float(c->y, item * bins + bin, value);
    }
  }
}

static cleave_status_t check_shapes(const roi_t *c, int64_t columns, cleave_message_t *message) {
  if (c->x->rank != 4 || c->y->rank != 4 || c->rois->rank != 2 || c->rois->dims[1] != columns ||
      c->y->dims[0] != c->rois->dims[0] || c->y->dims[1] != c->x->dims[1]) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE,
                       "input of rank %d, %lld region%s and the output do not fit", c->x->rank,
                       (long long)(c->rois->rank > 0 ? c->rois->dims[0] : 0),
                       KERNEL_PLURAL(c->rois->rank > 0 ? c->rois->dims[0] : 0));
  }
  if (c->y->count > 0 && c->x->count == 0) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "the input has no elements");
  }
  return CLEAVE_OK;
}

static cleave_status_t align_run(const cpu_call_t *call, cleave_message_t *message) {
  CPU_TRY(cpu_nn_check_outputs(call, message));
  roi_t context = {call->state, call->inputs[0], call->inputs[1], call->inputs[2], call->outputs[0]};
  CPU_TRY(check_shapes(&context, 4, message));
  CPU_TRY(cpu_nn_check_count("batch_indices", context.batches, context.rois->dims[0], message));
  if (context.y->count == 0) {
    return CLEAVE_OK;
  }
  for (int64_t k = 0; k < context.rois->dims[0]; k++) {
    region_t region;
    int64_t batch = cpu_read_int(context.batches, k);
    if (batch < 0 || batch >= context.x->dims[0]) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "batch index %lld is outside of %lld image%s",
                         (long long)batch, (long long)context.x->dims[0], KERNEL_PLURAL(context.x->dims[0]));
    }
    CPU_TRY(find_region(&context, k, &region, message));
  }
  cpu_parallel(call, context.rois->dims[0] * context.x->dims[1], 1, align_items, &context);
  return CLEAVE_OK;
}

static cleave_status_t align_prepare(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  roi_state_t *roi = state;
  CPU_TRY(cpu_nn_require_float(prepare, 0, message));
  CPU_TRY(cpu_nn_require_same_outputs(prepare, 0, message));
  CPU_TRY(cpu_nn_require_float(prepare, 1, message));
  CPU_TRY(cpu_nn_require_dtype(prepare, 2, CPU_NN_ONE(CLEAVE_DTYPE_I64), message));
  const char *mode = cleave_view_string(prepare->node, "mode", "avg");
  const char *shift = cleave_view_string(prepare->node, "coordinate_transformation_mode", "half_pixel");
  roi->max = strcmp(mode, "max") == 0;
  roi->half_pixel = strcmp(shift, "half_pixel") == 0;
  if ((!roi->max && strcmp(mode, "avg") != 0) ||
      (!roi->half_pixel && strcmp(shift, "output_half_pixel") != 0)) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED,
                       "mode '%.32s' or coordinate_transformation_mode '%.32s' is unknown", mode, shift);
  }
  roi->sampling = cleave_view_int(prepare->node, "sampling_ratio", 0);
  roi->scale = cleave_view_float(prepare->node, "spatial_scale", 1);
  return CLEAVE_OK;
}

// ---- MaxRoiPool ---------------------------------------------------------------------------------------

// Bin `index` of `bins` on an axis: [*out_begin, *out_end) within [0, size).
// Wide: numbers of one formula.
static void pool_range(double start, double extent, int64_t index, int64_t bins, int64_t size,
                       int64_t *out_begin, int64_t *out_end) {
  double begin = floor((double)index * extent / (double)bins) + start;
  double end = ceil((double)(index + 1) * extent / (double)bins) + start;
  *out_begin = (int64_t)fmin(fmax(begin, 0), (double)size);
  *out_end = (int64_t)fmin(fmax(end, 0), (double)size);
}

static void pool_items(void *context, int64_t begin, int64_t end) {
  const roi_t *c = context;
  int64_t channels = c->x->dims[1];
  int64_t bins = c->y->dims[2] * c->y->dims[3];
  for (int64_t item = begin; item < end; item++) {
    double corners[5];
    for (int k = 0; k < 5; k++) {
      double value = cpu_read_float(c->rois, item / channels * 5 + k);
      corners[k] = k == 0 ? value : round(value * c->state->scale);
    }
    int64_t plane = (int64_t)corners[0] * channels + item % channels;
    for (int64_t bin = 0; bin < bins; bin++) {
      int64_t top = 0;
      int64_t bottom = 0;
      int64_t left = 0;
      int64_t right = 0;
      pool_range(corners[2], fmax(corners[4] - corners[2] + 1, 1), bin / c->y->dims[3], c->y->dims[2],
                 c->x->dims[2], &top, &bottom);
      pool_range(corners[1], fmax(corners[3] - corners[1] + 1, 1), bin % c->y->dims[3], c->y->dims[3],
                 c->x->dims[3], &left, &right);
      double largest = bottom > top && right > left ? -INFINITY : 0;
      for (int64_t h = top; h < bottom; h++) {
        for (int64_t w = left; w < right; w++) {
          double value = cpu_read_float(c->x, (plane * c->x->dims[2] + h) * c->x->dims[3] + w);
          largest = value > largest ? value : largest;
        }
      }
      cpu_write_float(c->y, item * bins + bin, largest);
    }
  }
}

static cleave_status_t pool_run(const cpu_call_t *call, cleave_message_t *message) {
  CPU_TRY(cpu_nn_check_outputs(call, message));
  roi_t context = {call->state, call->inputs[0], call->inputs[1], NULL, call->outputs[0]};
  CPU_TRY(check_shapes(&context, 5, message));
  if (context.y->count == 0) {
    return CLEAVE_OK;
  }
  for (int64_t k = 0; k < context.rois->dims[0]; k++) {
    double batch = cpu_read_float(context.rois, k * 5);
    if (!(batch >= 0 && batch < (double)context.x->dims[0])) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "batch index %g is outside of %lld image%s", batch,
                         (long long)context.x->dims[0], KERNEL_PLURAL(context.x->dims[0]));
    }
  }
  cpu_parallel(call, context.rois->dims[0] * context.x->dims[1], 1, pool_items, &context);
  return CLEAVE_OK;
}

static cleave_status_t pool_prepare(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  roi_state_t *roi = state;
  CPU_TRY(cpu_nn_require_float(prepare, 0, message));
  CPU_TRY(cpu_nn_require_same_outputs(prepare, 0, message));
  roi->scale = cleave_view_float(prepare->node, "spatial_scale", 1);
  return cpu_nn_require_float(prepare, 1, message);
}

const cpu_kernel_t cpu_kernels_vision_roi[] = {
    CPU_KERNEL("RoiAlign", 3, .state_size = sizeof(roi_state_t), .prepare = align_prepare, .run = align_run),
    CPU_KERNEL("MaxRoiPool", 2, .state_size = sizeof(roi_state_t), .prepare = pool_prepare, .run = pool_run),
    {.op = NULL},
};
