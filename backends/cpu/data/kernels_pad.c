// SPDX-License-Identifier: Apache-2.0
// Pad and CenterCropPad. What is kept of the input is copied to its place; the border is then a fill before
// that (constant), or copies of slabs of the output itself, one axis after the other (edge, reflect, wrap).
// Negative pads crop.
#include <string.h>

#include "cpu/common/loop.h"
#include "kernels/convert.h"

typedef enum pad_mode { PAD_CONSTANT, PAD_EDGE, PAD_REFLECT, PAD_WRAP } pad_mode_t;

typedef struct pad_state {
  pad_mode_t mode;
  const int64_t *axes; /* CenterCropPad */
  uint32_t axis_count;
} pad_state_t;

static cleave_status_t prepare_pad(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  static const char *const names[] = {"constant", "edge", "reflect", "wrap"};
  pad_state_t *self = state;
  const char *mode = cleave_view_string(prepare->node, "mode", "constant");
  for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
    if (strcmp(mode, names[k]) == 0) {
      self->mode = (pad_mode_t)k;
      return CLEAVE_OK;
    }
  }
  return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "mode '%s' is unknown", mode);
}

static cleave_status_t prepare_center_crop_pad(cpu_prepare_t *prepare, void *state,
                                               cleave_message_t *message) {
  (void)message;
  pad_state_t *self = state;
  return cpu_prepare_ints(prepare, "axes", &self->axes, &self->axis_count);
}

/* The part that is kept: `kept` elements from `from` in the input, at `to` in the output. */
typedef struct pad_axis {
  int64_t from;
  int64_t to;
  int64_t kept;
} pad_axis_t;

static cleave_status_t place_axis(int64_t before, int64_t after, int64_t dim, pad_axis_t *axis,
                                  int64_t *out_dim, cleave_message_t *message) {
  int64_t limit = INT64_MAX / 4;
  if (before < -limit || before > limit || after < -limit || after > limit || dim + before + after < 0) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "pads of %lld and %lld do not fit %lld element%s",
                       (long long)before, (long long)after, (long long)dim, KERNEL_PLURAL(dim));
  }
  axis->from = before < 0 ? -before : 0;
  axis->to = before > 0 ? before : 0;
  axis->kept = dim - axis->from - (after < 0 ? -after : 0);
  axis->kept = axis->kept < 0 ? 0 : axis->kept;
  *out_dim = dim + before + after;
  return CLEAVE_OK;
}

/* Copies what is kept; axes before `rank` as the axes say. */
static void copy_kept(const cpu_call_t *call, const pad_axis_t *axes, size_t size) {
  const cpu_tensor_t *data = call->inputs[0];
  const cpu_tensor_t *output = call->outputs[0];
  cpu_loop_t loop = {.rank = data->rank, .operand_count = 2, .bases = {output->data, data->data}};
  cpu_dense_strides(data->rank, output->dims, size, loop.strides[0]);
  cpu_dense_strides(data->rank, data->dims, size, loop.strides[1]);
  for (int32_t d = 0; d < data->rank; d++) {
    if (axes[d].kept == 0) {
      return;
    }
    loop.dims[d] = axes[d].kept;
    loop.bases[0] += axes[d].to * loop.strides[0][d];
    loop.bases[1] += axes[d].from * loop.strides[1][d];
  }
  cpu_loop_copy(call, &loop, size);
}

/* Index inside the kept part that the output has at `offset` from its start. */
static int64_t border_source(pad_mode_t mode, int64_t offset, int64_t kept) {
  if (mode == PAD_EDGE || kept == 1) {
    return offset < 0 ? 0 : kept - 1;
  }
  int64_t period = mode == PAD_WRAP ? kept : 2 * (kept - 1);
  int64_t place = offset % period;
  place = place < 0 ? place + period : place;
  return place < kept ? place : period - place;
}

/* Fills the border along one axis from the kept part; later axes are complete, earlier ones hold only what is
 * kept. */
static void extend_axis(const cpu_call_t *call, const pad_axis_t *axes, int32_t axis, pad_mode_t mode,
                        size_t size) {
  const cpu_tensor_t *output = call->outputs[0];
  int64_t strides[CLEAVE_MAX_RANK] = {0};
  cpu_dense_strides(output->rank, output->dims, size, strides);
  for (int64_t place = 0; place < output->dims[axis]; place++) {
    int64_t offset = place - axes[axis].to;
    if (offset >= 0 && offset < axes[axis].kept) {
      place += axes[axis].kept - 1;
      continue;
    }
    int64_t source = axes[axis].to + border_source(mode, offset, axes[axis].kept);
    cpu_loop_t loop = {.rank = output->rank, .operand_count = 2};
    unsigned char *base = output->data;
    for (int32_t d = 0; d < output->rank; d++) {
      loop.dims[d] = d == axis ? 1 : d < axis ? axes[d].kept : output->dims[d];
      loop.strides[0][d] = strides[d];
      loop.strides[1][d] = strides[d];
      base += d < axis ? axes[d].to * strides[d] : 0;
    }
    loop.bases[0] = base + place * strides[axis];
    loop.bases[1] = base + source * strides[axis];
    cpu_loop_copy(call, &loop, size);
  }
}

static cleave_status_t pad(const cpu_call_t *call, const pad_axis_t *axes, pad_mode_t mode, const void *value,
                           cleave_message_t *message) {
  const cpu_tensor_t *data = call->inputs[0];
  const cpu_tensor_t *output = call->outputs[0];
  size_t size = cleave_dtype_size(data->dtype);
  int64_t kept = 1;
  for (int32_t d = 0; d < data->rank; d++) {
    kept *= axes[d].kept;
  }
  if (output->count == 0) {
    return CLEAVE_OK;
  }
  if (mode != PAD_CONSTANT && kept == 0) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "there are no elements to fill the border from");
  }
  if (mode == PAD_CONSTANT && kept != output->count) {
    cpu_fill(call, output->data, value, size, output->count);
  }
  copy_kept(call, axes, size);
  for (int32_t d = data->rank - 1; mode != PAD_CONSTANT && d >= 0; d--) {
    extend_axis(call, axes, d, mode, size);
  }
  return CLEAVE_OK;
}

static cleave_status_t run_pad(const cpu_call_t *call, cleave_message_t *message) {
  static const char *const empty_text = "";
  const pad_state_t *state = call->state;
  const cpu_tensor_t *data = call->inputs[0];
  const cpu_tensor_t *pads = call->inputs[1];
  const cpu_tensor_t *value = cpu_input(call, 2);
  const cpu_tensor_t *named = cpu_input(call, 3);
  int64_t count = named == NULL ? data->rank : named->count;
  pad_axis_t axes[CLEAVE_MAX_RANK] = {0};
  int64_t dims[CLEAVE_MAX_RANK] = {0};
  if (pads->count != 2 * count || count > data->rank || (value != NULL && value->count < 1) ||
      (value != NULL && value->dtype != data->dtype)) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "%lld pad%s for %lld ax%s, or a value of another dtype",
                       (long long)pads->count, KERNEL_PLURAL(pads->count), (long long)count,
                       KERNEL_BY_COUNT(count, "is", "es"));
  }
  for (int32_t d = 0; d < data->rank; d++) {
    axes[d].kept = data->dims[d];
    dims[d] = data->dims[d];
  }
  for (int64_t k = 0; k < count; k++) {
    int32_t axis = 0;
    CPU_TRY(cpu_find_axis(named == NULL ? k : cpu_read_int(named, k), data->rank, &axis, message));
    CPU_TRY(place_axis(cpu_read_int(pads, k), cpu_read_int(pads, k + count), data->dims[axis], &axes[axis],
                       &dims[axis], message));
  }
  CPU_TRY(cpu_output_shape(call, 0, data->rank, dims, message));
  static const uint64_t zero = 0;
  const void *fallback = data->dtype == CLEAVE_DTYPE_STRING ? (const void *)&empty_text : (const void *)&zero;
  return pad(call, axes, state->mode, value == NULL ? fallback : value->data, message);
}

static cleave_status_t run_center_crop_pad(const cpu_call_t *call, cleave_message_t *message) {
  const pad_state_t *state = call->state;
  const cpu_tensor_t *data = call->inputs[0];
  const cpu_tensor_t *shape = call->inputs[1];
  int64_t count = state->axis_count == 0 ? data->rank : (int64_t)state->axis_count;
  pad_axis_t axes[CLEAVE_MAX_RANK] = {0};
  int64_t dims[CLEAVE_MAX_RANK] = {0};
  if (shape->count != count || count > data->rank) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "shape has %lld element%s for %lld ax%s",
                       (long long)shape->count, KERNEL_PLURAL(shape->count), (long long)count,
                       KERNEL_BY_COUNT(count, "is", "es"));
  }
  for (int32_t d = 0; d < data->rank; d++) {
    axes[d].kept = data->dims[d];
    dims[d] = data->dims[d];
  }
  for (int64_t k = 0; k < count; k++) {
    int32_t axis = 0;
    int64_t wanted = cpu_read_int(shape, k);
    if (!cpu_axis(state->axis_count == 0 ? k : state->axes[k], data->rank, &axis) || wanted < 0) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "an axis is outside rank %d, or its size negative",
                         (int)data->rank);
    }
    int64_t missing = wanted - data->dims[axis];
    int64_t before = missing < 0 ? -(-missing / 2) : missing / 2;
    cleave_status_t status =
        place_axis(before, missing - before, data->dims[axis], &axes[axis], &dims[axis], message);
    if (status != CLEAVE_OK) {
      return status;
    }
  }
  cleave_status_t status = cpu_output_shape(call, 0, data->rank, dims, message);
  static const uint64_t zero = 0;
  return status == CLEAVE_OK ? pad(call, axes, PAD_CONSTANT, &zero, message) : status;
}

const cpu_kernel_t cpu_kernels_pad[] = {
    CPU_KERNEL("Pad", 2, .state_size = sizeof(pad_state_t), .prepare = prepare_pad, .run = run_pad),
    CPU_KERNEL("CenterCropPad", 2, .state_size = sizeof(pad_state_t), .prepare = prepare_center_crop_pad,
               .run = run_center_crop_pad),
    {0},
};
