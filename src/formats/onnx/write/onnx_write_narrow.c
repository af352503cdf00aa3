// SPDX-License-Identifier: Apache-2.0
/* Integers with scales of blocks that fit into four bits, as int4 and uint4: two in a byte, the first in its
 * low half. */
#include <string.h>

#include "formats/onnx/write/onnx_write.h"
#include "ops/ops.h"

enum { OLDEST = 21 /* operator set */, ONNX_UINT4 = 21, ONNX_INT4 = 22 };

/* A constant that one node reads, with elements from -8 to 7, or 0 to 15. */
static bool fits(const cleave_graph_t *graph, cleave_value_t value) {
  const cleave_value_record_t *record = cleave_graph_value(graph, value);
  const cleave_tensor_t *tensor = record->tensor;
  if (tensor == NULL || record->use_count != 1 ||
      (tensor->dtype != CLEAVE_DTYPE_I8 && tensor->dtype != CLEAVE_DTYPE_U8)) {
    return false;
  }
  const unsigned char *data = tensor->data;
  unsigned char shift = tensor->dtype == CLEAVE_DTYPE_I8 ? 8 : 0;
  for (int64_t k = 0; k < tensor->count; k++) {
    if ((unsigned char)(data[k] + shift) > 15) {
      return false;
    }
  }
  return true;
}

bool cleave_onnx_has_four_bits(const cleave_onnx_writer_t *writer, cleave_value_t value) {
  const cleave_graph_t *graph = writer->graph;
  cleave_use_t use = cleave_value_first_use(graph, value);
  cleave_node_t node = cleave_use_exists(use) ? cleave_use_node(graph, use) : CLEAVE_NODE_NONE;
  if (writer->opset_version < OLDEST || !cleave_node_exists(node) ||
      cleave_node_op(graph, node)->id != CLEAVE_OP_DequantizeLinear ||
      cleave_use_input_index(graph, use) == 1 || writer->groups.owner[node.index] != CLEAVE_INDEX_NONE) {
    return false;
  }
  const cleave_attribute_t *block = cleave_node_attribute(graph, node, "block_size");
  cleave_value_t zero = cleave_node_input(graph, node, 2);
  return block != NULL && block->kind == CLEAVE_ATTRIBUTE_INT && block->i > 0 &&
         fits(graph, cleave_node_input(graph, node, 0)) && (!cleave_value_exists(zero) || fits(graph, zero));
}

cleave_status_t cleave_onnx_make_four_bits(const cleave_tensor_t *tensor, cleave_tensor_t **out_tensor,
                                           cleave_error_t *error) {
  const int64_t bytes = (tensor->count + 1) / 2;
  CLEAVE_TRY(cleave_tensor_create(CLEAVE_DTYPE_U8, 1, &bytes, out_tensor, error));
  const unsigned char *from = tensor->data;
  unsigned char *to = (*out_tensor)->data;
  for (int64_t k = 0; k < tensor->count; k++) {
    to[k / 2] = (unsigned char)(to[k / 2] | (from[k] & 0xF) << (k % 2 * 4));
  }
  (*out_tensor)->dtype = (cleave_dtype_t)(tensor->dtype == CLEAVE_DTYPE_I8 ? ONNX_INT4 : ONNX_UINT4);
  (*out_tensor)->rank = tensor->rank;
  memcpy((*out_tensor)->dims, tensor->dims, sizeof tensor->dims);
  return CLEAVE_OK;
}
