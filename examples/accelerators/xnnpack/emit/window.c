// SPDX-License-Identifier: Apache-2.0
/* The padding that counts is what makes the output as large as shape inference says: auto_pad and ceil_mode
 * end up as explicit padding here. */
#include "window.h"

static bool read_pair(const cleave_node_view_t *node, const char *name, int64_t pair[2]) {
  uint32_t count = 0;
  const int64_t *ints = cleave_view_ints(node, name, &count);
  pair[0] = pair[1] = 1;
  if (ints == NULL || count == 0) {
    return true;
  }
  if (count != 2 || ints[0] < 1 || ints[1] < 1 || ints[0] > INT16_MAX || ints[1] > INT16_MAX) {
    return false;
  }
  pair[0] = ints[0];
  pair[1] = ints[1];
  return true;
}

/* Padding before and behind along dimension d, whose input and output have these sizes. */
static cleave_status_t read_padding(const unit_t *unit, int d, int64_t input, int64_t output,
                                    window_t *window, cleave_message_t *reason) {
  const cleave_node_view_t *node = unit->head;
  const char *automatic = cleave_view_string(node, "auto_pad", "NOTSET");
  uint32_t count = 0;
  const int64_t *pads = cleave_view_ints(node, "pads", &count);
  int64_t extent = (int64_t)(window->kernel[d] - 1) * window->dilation[d] + 1;
  int64_t needed = (output - 1) * window->stride[d] + extent - input; /* in all */
  int64_t begin = 0;
  int64_t end = 0;
  if (cleave_view_text_equal(automatic, "SAME_UPPER") || cleave_view_text_equal(automatic, "SAME_LOWER")) {
    int64_t total = needed > 0 ? needed : 0;
    begin = cleave_view_text_equal(automatic, "SAME_UPPER") ? total / 2 : total - total / 2;
    end = total - begin;
  } else if (cleave_view_text_equal(automatic, "NOTSET") && pads != NULL && count == 4) {
    begin = pads[d];
    end = pads[d + 2];
  }
  if (begin < 0 || end < 0 || begin > INT16_MAX || end > INT16_MAX) {
    return xnnpack_refuse(reason, CLEAVE_REASON_ATTRIBUTE, "%s: XNNPACK does not pad by %lld and %lld",
                          node->op, (long long)begin, (long long)end);
  }
  if (needed - begin > end) {
    end = needed - begin;
    window->widened = true;
  }
  if (input + begin + end < extent || (input + begin + end - extent) / window->stride[d] + 1 != output ||
      end > INT16_MAX) {
    return xnnpack_refuse(reason, CLEAVE_REASON_SHAPE, "%s: %lld elements do not make %lld with this window",
                          node->op, (long long)input, (long long)output);
  }
  window->begin[d] = (uint32_t)begin;
  window->end[d] = (uint32_t)end;
  return CLEAVE_OK;
}

cleave_status_t xnnpack_window_read(const unit_t *unit, const int64_t kernel[2], window_t *out_window,
                                    cleave_message_t *reason) {
  const cleave_node_view_t *node = unit->head;
  const cleave_tensor_view_t *input = &unit->region->values[node->inputs[0]].tensor;
  const cleave_tensor_view_t *output = &unit->region->values[node->outputs[0]].tensor;
  int64_t stride[2];
  int64_t dilation[2];
  *out_window = (window_t){0};
  if (!read_pair(node, "strides", stride) || !read_pair(node, "dilations", dilation) || kernel[0] < 1 ||
      kernel[1] < 1 || kernel[0] > INT16_MAX || kernel[1] > INT16_MAX) {
    return xnnpack_refuse(reason, CLEAVE_REASON_ATTRIBUTE, "%s: kernel, strides or dilations out of range",
                          node->op);
  }
  for (int d = 0; d < 2; d++) {
    out_window->kernel[d] = (uint32_t)kernel[d];
    out_window->stride[d] = (uint32_t)stride[d];
    out_window->dilation[d] = (uint32_t)dilation[d];
    cleave_status_t status =
        read_padding(unit, d, input->dims[2 + d], output->dims[2 + d], out_window, reason);
    if (status != CLEAVE_OK) {
      return status;
    }
  }
  return CLEAVE_OK;
}
