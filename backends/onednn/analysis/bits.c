// SPDX-License-Identifier: Apache-2.0
// Reading packed integers, one at a time.
#include "onednn/analysis/bits.h"

static cleave_status_t refuse(const cleave_node_view_t *node, const char *why, cleave_message_t *message) {
  return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "UnpackBits '%s': %s", onednn_node_name(node), why);
}

cleave_status_t onednn_bits_read(const cleave_region_view_t *region, const cleave_node_view_t *node,
                                 onednn_bits_t *out, cleave_message_t *message) {
  const cleave_value_view_t *packed = cleave_view_input(region, node, 0);
  onednn_shape_t shape = onednn_shape_of(cleave_view_output(region, node, 0));
  int64_t bits = cleave_view_int(node, "bits", 0);
  *out = (onednn_bits_t){.source = packed,
                         .count = cleave_view_int(node, "count", 0),
                         .bits = (int32_t)bits,
                         .is_transposed = cleave_view_int(node, "transposed", 0) != 0};
  if (packed == NULL || !onednn_is_constant(packed) || packed->tensor.dtype != CLEAVE_DTYPE_U8) {
    return refuse(node, "its bytes are not constant", message);
  }
  if (packed->tensor.rank < 2 || shape.rank != 2 || !onednn_shape_known(&shape) ||
      cleave_view_int(node, "axis", 1) != 1) {
    return refuse(node, "its result is no matrix", message);
  }
  out->rows = shape.dims[out->is_transposed ? 1 : 0];
  int64_t all = cleave_view_element_count(&packed->tensor);
  out->bytes = out->rows > 0 ? all / out->rows : 0;
  if ((bits != 2 && bits != 4 && bits != 8) || out->count < 1 || out->rows < 1 ||
      packed->tensor.dims[0] != out->rows || shape.dims[out->is_transposed ? 0 : 1] != out->count ||
      (out->count - 1) / (8 / bits) >= out->bytes) {
    return refuse(node, "its bytes do not fit its numbers", message);
  }
  out->least = cleave_view_int(node, "signed", 0) != 0 ? 1 << (bits - 1) : 0;
  return CLEAVE_OK;
}

int32_t onednn_bits_at(const onednn_bits_t *bits, int64_t index) {
  int64_t row = bits->is_transposed ? index % bits->rows : index / bits->count;
  int64_t bit = (bits->is_transposed ? index / bits->rows : index % bits->count) * bits->bits;
  const unsigned char *bytes = bits->source->tensor.data;
  return (bytes[row * bits->bytes + bit / 8] >> bit % 8 & ((1 << bits->bits) - 1)) - bits->least;
}
