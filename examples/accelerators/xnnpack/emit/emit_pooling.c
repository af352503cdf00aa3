// SPDX-License-Identifier: Apache-2.0
/* MaxPool, AveragePool, GlobalAveragePool, and ReduceMean over an image. XNNPACK leaves padding out of both
 * maxima and averages; an average that counts its padding gets zeros around its input. */
#include "operators.h"
#include "window.h"

static bool is_average(const unit_t *unit) {
  return cleave_view_text_equal(unit->head->op, "AveragePool");
}

static cleave_status_t read_window(const unit_t *unit, window_t *window, cleave_message_t *reason) {
  uint32_t count = 0;
  const int64_t *kernel = cleave_view_ints(unit->head, "kernel_shape", &count);
  if (unit->region->values[unit->input].tensor.rank != 4 || count != 2) {
    return xnnpack_refuse(reason, CLEAVE_REASON_SHAPE, "%s: XNNPACK pools over height and width only",
                          unit->head->op);
  }
  return xnnpack_window_read(unit, kernel, window, reason);
}

static bool counts_padding(const unit_t *unit, const window_t *window) {
  return is_average(unit) && cleave_view_int(unit->head, "count_include_pad", 0) != 0 &&
         (window->begin[0] + window->begin[1] + window->end[0] + window->end[1]) != 0;
}

cleave_status_t xnnpack_check_pooling(const unit_t *unit, cleave_message_t *reason) {
  const char *op = unit->head->op;
  window_t window;
  cleave_status_t status = read_window(unit, &window, reason);
  if (status != CLEAVE_OK) {
    return status;
  }
  if (window.kernel[0] * window.kernel[1] == 1) {
    return xnnpack_refuse(reason, CLEAVE_REASON_ATTRIBUTE, "%s: XNNPACK has no windows of one element", op);
  }
  if (is_average(unit) && window.dilation[0] * window.dilation[1] != 1) {
    return xnnpack_refuse(reason, CLEAVE_REASON_ATTRIBUTE, "%s: XNNPACK averages without dilation only", op);
  }
  if (window.widened && counts_padding(unit, &window)) {
    return xnnpack_refuse(reason, CLEAVE_REASON_ATTRIBUTE, "%s: ceil_mode with counted padding", op);
  }
  for (int d = 0; d < 2; d++) {
    uint32_t extent = (window.kernel[d] - 1) * window.dilation[d] + 1;
    if (window.begin[d] >= extent || window.end[d] >= extent) {
      return xnnpack_refuse(reason, CLEAVE_REASON_ATTRIBUTE, "%s: a window lies in the padding alone", op);
    }
  }
  return CLEAVE_OK;
}

/* Zeros around `input`, whose padding the window then no longer needs. */
static cleave_status_t pad(const unit_t *unit, builder_t *builder, window_t *window, uint32_t *input) {
  size_t before[4] = {0, window->begin[0], window->begin[1], 0};
  size_t behind[4] = {0, window->end[0], window->end[1], 0};
  size_t dims[XNNPACK_MAX_RANK];
  uint32_t padded;
  (void)xnnpack_dims(&unit->region->values[unit->input].tensor, FORM_LAST, dims);
  for (int d = 0; d < 4; d++) {
    dims[d] += before[d] + behind[d];
  }
  cleave_status_t status = xnnpack_builder_temporary(builder, 4, dims, &padded);
  if (status == CLEAVE_OK) {
    status = xnnpack_builder_check(
        builder, xnn_define_static_constant_pad(builder->subgraph, before, behind, 0.0f, *input, padded, 0),
        "padding");
  }
  for (int d = 0; d < 2; d++) {
    window->begin[d] = window->end[d] = 0;
  }
  *input = padded;
  return status;
}

cleave_status_t xnnpack_emit_pooling(const unit_t *unit, builder_t *builder) {
  window_t window;
  uint32_t input;
  uint32_t output;
  cleave_status_t status = read_window(unit, &window, builder->message);
  if (status == CLEAVE_OK) {
    status = xnnpack_builder_use(builder, unit->input, FORM_LAST, &input);
  }
  if (status == CLEAVE_OK && counts_padding(unit, &window)) {
    status = pad(unit, builder, &window, &input);
  }
  if (status == CLEAVE_OK) {
    status = xnnpack_builder_output(builder, FORM_LAST, &output);
  }
  if (status != CLEAVE_OK) {
    return status;
  }
  if (is_average(unit)) {
    return xnnpack_builder_check(
        builder,
        xnn_define_average_pooling_2d(builder->subgraph, window.begin[0], window.end[1], window.end[0],
                                      window.begin[1], window.kernel[0], window.kernel[1], window.stride[0],
                                      window.stride[1], unit->minimum, unit->maximum, input, output, 0),
        "average pooling");
  }
  return xnnpack_builder_check(
      builder,
      xnn_define_max_pooling_2d(builder->subgraph, window.begin[0], window.end[1], window.end[0],
                                window.begin[1], window.kernel[0], window.kernel[1], window.stride[0],
                                window.stride[1], window.dilation[0], window.dilation[1], unit->minimum,
                                unit->maximum, input, output, 0),
      "max pooling");
}

cleave_status_t xnnpack_check_global_pooling(const unit_t *unit, cleave_message_t *reason) {
  if (unit->region->values[unit->input].tensor.rank != 4) {
    return xnnpack_refuse(reason, CLEAVE_REASON_SHAPE, "%s: XNNPACK averages over height and width only",
                          unit->head->op);
  }
  return CLEAVE_OK;
}

cleave_status_t xnnpack_emit_global_pooling(const unit_t *unit, builder_t *builder) {
  uint32_t input;
  uint32_t output;
  cleave_status_t status = xnnpack_builder_use(builder, unit->input, FORM_LAST, &input);
  if (status == CLEAVE_OK) {
    status = xnnpack_builder_output(builder, FORM_LAST, &output);
  }
  if (status != CLEAVE_OK) {
    return status;
  }
  return xnnpack_builder_check(
      builder,
      xnn_define_global_average_pooling_2d(builder->subgraph, unit->minimum, unit->maximum, input, output, 0),
      "global average pooling");
}

/* ---- ReduceMean over height and width, which is GlobalAveragePool ---- */

cleave_status_t xnnpack_check_mean(const unit_t *unit, cleave_message_t *reason) {
  int64_t axes[2] = {0, 0};
  int32_t count = xnnpack_read_integers(unit, "axes", 1, 2, axes);
  int64_t first = axes[0] < 0 ? axes[0] + 4 : axes[0];
  int64_t second = axes[1] < 0 ? axes[1] + 4 : axes[1];
  if (unit->region->values[unit->input].tensor.rank != 4 || count != 2 || first + second != 5 ||
      first * second != 6) {
    return xnnpack_refuse(reason, CLEAVE_REASON_ATTRIBUTE, "%s: XNNPACK averages over height and width only",
                          unit->head->op);
  }
  return CLEAVE_OK;
}

cleave_status_t xnnpack_emit_mean(const unit_t *unit, builder_t *builder) {
  const cleave_tensor_view_t *from = &unit->region->values[unit->input].tensor;
  const cleave_tensor_view_t *to = &unit->region->values[unit->output].tensor;
  size_t pooled_dims[4] = {(size_t)from->dims[0], 1, 1, (size_t)from->dims[1]};
  size_t dims[XNNPACK_MAX_RANK];
  size_t rank = xnnpack_dims(to, FORM_LAST, dims);
  uint32_t input;
  uint32_t output;
  uint32_t pooled;
  cleave_status_t status = xnnpack_builder_use(builder, unit->input, FORM_LAST, &input);
  if (status == CLEAVE_OK) {
    status = xnnpack_builder_output(builder, FORM_LAST, &output);
  }
  pooled = output;
  if (status == CLEAVE_OK && to->rank != 4) {
    status = xnnpack_builder_temporary(builder, 4, pooled_dims, &pooled);
  }
  if (status == CLEAVE_OK) {
    status = xnnpack_builder_check(builder,
                                   xnn_define_global_average_pooling_2d(builder->subgraph, unit->minimum,
                                                                        unit->maximum, input, pooled, 0),
                                   "global average pooling");
  }
  if (status == CLEAVE_OK && pooled != output) {
    status = xnnpack_builder_check(
        builder, xnn_define_static_reshape(builder->subgraph, rank, dims, pooled, output, 0), "reshape");
  }
  return status;
}
