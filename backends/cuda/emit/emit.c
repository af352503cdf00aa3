// SPDX-License-Identifier: Apache-2.0
// The walk over a region, node by node and fusion by fusion.
#include "emit.h"

#include <string.h>

#include "kernels/convert.h"

static const struct {
  const char *op;
  cuda_emit_t emit;
} operators[] = {
#define CUDA_EMIT_ENTRY(op, name) {#op, cuda_emit_##name},
    CUDA_EMIT_OPERATORS(CUDA_EMIT_ENTRY)
#undef CUDA_EMIT_ENTRY
};
enum { OPERATOR_COUNT = sizeof operators / sizeof operators[0] };

static cuda_emit_t find_operator(const char *op) {
  for (size_t k = 0; k < OPERATOR_COUNT; k++) {
    if (strcmp(operators[k].op, op) == 0) {
      return operators[k].emit;
    }
  }
  return NULL;
}

/* ---- one node, one fusion ---- */

/* Operators of cleave's own are known if they are in the table: none is lowered by its name. */
static bool is_known(const cleave_node_view_t *node) {
  return node->domain == NULL || node->domain[0] == '\0' || strcmp(node->domain, "ai.onnx") == 0 ||
         (strcmp(node->domain, "cleave") == 0 && find_operator(node->op) != NULL);
}

static cleave_status_t check_node(cuda_plan_t *plan, const cleave_node_view_t *node) {
  if (!is_known(node)) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_OPERATOR, "there is no kernel for it");
  }
  for (uint32_t k = 0; k < node->input_count + node->output_count; k++) {
    uint32_t value = k < node->input_count ? node->inputs[k] : node->outputs[k - node->input_count];
    if (value == CLEAVE_INDEX_NONE) {
      continue;
    }
    if (!cpu_dtype_is_plain(cuda_tensor(plan, value)->dtype)) {
      return cuda_plan_refuse(plan, CLEAVE_REASON_DTYPE, "a dtype is neither a number nor bool");
    }
    if (plan->slots[value].bytes < 0) {
      return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "a shape is not known");
    }
  }
  return CLEAVE_OK;
}

/* Operators that read images where they lie; whatever is lowered does. */
static bool knows_layouts(const char *op) {
  static const char *const known[] = {"AveragePool", "BatchNormalization",
                                      "BitShift",    "Concat",
                                      "Conv",        "DequantizeLinear",
                                      "Div",         "LpPool",
                                      "MaxPool",     "Mod",
                                      "Pow",         "QuantizeLinear"};
  bool is_known = find_operator(op) == NULL;
  for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
    is_known = is_known || strcmp(known[k], op) == 0;
  }
  return is_known;
}

static cleave_status_t emit_node(cuda_plan_t *plan, uint32_t index) {
  const cleave_node_view_t *node = &plan->region->nodes[index];
  plan->node = index;
  CUDA_TRY(check_node(plan, node));
  CUDA_TRY(knows_layouts(node->op) ? CLEAVE_OK : cuda_layout_need_inputs(plan, node));
  cuda_emit_t emit = find_operator(node->op);
  return emit != NULL ? emit(plan, node) : cuda_emit_lowered(plan, plan->region, &index, 1, NULL);
}

static cleave_status_t emit_fusion(cuda_plan_t *plan, const uint32_t *nodes, uint32_t count) {
  for (uint32_t k = 0; k < count; k++) {
    plan->node = nodes[k];
    CUDA_TRY(check_node(plan, &plan->region->nodes[nodes[k]]));
  }
  plan->node = nodes[0];
  if (count == 1) {
    return emit_node(plan, nodes[0]);
  }
  const cleave_node_view_t *head = &plan->region->nodes[nodes[0]];
  if (!cuda_is_product(head)) {
    return cuda_emit_lowered(plan, plan->region, nodes, count, NULL);
  }
  CUDA_TRY(knows_layouts(head->op) ? CLEAVE_OK : cuda_layout_need_inputs(plan, head));
  return cuda_emit_fused_product(plan, nodes, count);
}

/* ---- all ---- */

cleave_status_t cuda_emit_region(cuda_plan_t *plan) {
  const cleave_region_view_t *region = plan->region;
  const uint32_t *units = NULL;
  uint32_t count = 0;
  CUDA_TRY(cuda_plan_order(plan, &units, &count));
  for (uint32_t k = 0; k < count; k++) {
    bool is_fused = units[k] < region->fusion_count;
    plan->fusion = is_fused ? units[k] : CLEAVE_INDEX_NONE;
    const cleave_fusion_view_t *fusion = is_fused ? &region->fusions[units[k]] : NULL;
    CUDA_TRY(is_fused ? emit_fusion(plan, fusion->nodes, fusion->node_count)
                      : emit_node(plan, units[k] - region->fusion_count));
  }
  for (uint32_t k = 0; k < region->output_count; k++) {
    CUDA_TRY(cuda_layout_need(plan, region->outputs[k]));
  }
  return cuda_plan_finish(plan);
}

/* ---- where sizes are not known ---- */

static bool is_lowered(const char *op) {
  static const char *const special[] = {
      "Clip", "Mean",  "Cast",  "CastLike",           "Where",           "Sum",
      "Gelu", "IsNaN", "IsInf", "LayerNormalization", "RMSNormalization"};
  for (size_t k = 0; k < sizeof special / sizeof special[0]; k++) {
    if (strcmp(special[k], op) == 0) {
      return true;
    }
  }
  kernel_op_t found = kernel_op_find(op);
  return found != KERNEL_OP_COUNT && kernel_op_info(found)->kind != KERNEL_KIND_SPECIAL;
}

cleave_status_t cuda_emit_guess(const cleave_region_view_t *region, cleave_message_t *message) {
  for (uint32_t n = 0; n < region->node_count; n++) {
    const cleave_node_view_t *node = &region->nodes[n];
    if (!is_known(node) || (find_operator(node->op) == NULL && !is_lowered(node->op))) {
      return cuda_fail(message, CLEAVE_ERROR_UNSUPPORTED, CLEAVE_REASON_OPERATOR,
                       "%s '%.60s': there is no kernel for it", node->op,
                       node->name == NULL ? "" : node->name);
    }
  }
  for (uint32_t v = 0; v < region->value_count; v++) {
    if (!cpu_dtype_is_plain(region->values[v].tensor.dtype)) {
      return cuda_fail(message, CLEAVE_ERROR_UNSUPPORTED, CLEAVE_REASON_DTYPE,
                       "'%.100s' has a dtype that is unknown, or neither a number nor bool",
                       region->values[v].name);
    }
  }
  return CLEAVE_OK;
}
