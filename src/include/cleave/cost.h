// SPDX-License-Identifier: Apache-2.0
/*
 * An estimate that a backend may build its `cost` on: what a kernel computes over how fast it computes, or
 * what it reads and writes over how fast it moves, whichever takes longer; and what starting it takes. The
 * rates are numbers that the backend's author measured once. They stay fixed, so that a region costs the same
 * on every machine and plans do not depend on how busy one was.
 *
 * Plain C that needs cleave/backend.h only; everything is inline.
 */
#ifndef CLEAVE_COST_H
#define CLEAVE_COST_H

#include <stdio.h>

#include "cleave/backend.h"

/* C++ compilers may be asked to warn of casts as C has them. */
#ifdef __cplusplus
#define CLEAVE_COST_CAST(type, value) static_cast<type>(value)
#else
#define CLEAVE_COST_CAST(type, value) ((type)(value))
#endif

/* Rates of one core. FLOPs are those of cleave_region_view_t.flops. */
typedef struct cleave_cost_rates {
  double region_ns;      /* once per run of a region */
  double kernel_ns;      /* to start a kernel */
  double product;        /* FLOPs per nanosecond of Conv, MatMul and their like */
  double grouped;        /* of convolutions with several groups */
  double function;       /* of functions that need a series: Exp, Erf, Tanh, ... */
  double reduction;      /* of Softmax, normalizations, reductions */
  double pointwise;      /* of everything else */
  double bandwidth;      /* bytes per nanosecond, read or written */
  double boundary_moves; /* times that the bytes of inputs and outputs are moved to convert layouts, if the
                          region has a convolution or pooling */
  bool fuses;            /* a fusion is one kernel: what stays inside of it is not moved, and its pointwise
                            operators cost nothing */
} cleave_cost_rates_t;

typedef enum cleave_cost_class {
  CLEAVE_COST_VIEW, /* no work at all */
  CLEAVE_COST_PRODUCT,
  CLEAVE_COST_WINDOW, /* a convolution: a product that prefers layouts of its own */
  CLEAVE_COST_POOL,
  CLEAVE_COST_FUNCTION,
  CLEAVE_COST_REDUCTION,
  CLEAVE_COST_POINTWISE
} cleave_cost_class_t;

static inline cleave_cost_class_t cleave_cost_class(const char *op) {
  enum { MOST = 16 };
  static const char *const OPS[CLEAVE_COST_POINTWISE][MOST] = {
      /* of the classes, in their order */
      {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "After"},
      {"MatMul", "Gemm", "Einsum", "Attention", "QLinearMatMul", "MatMulInteger", "RNN", "GRU", "LSTM"},
      {"Conv", "ConvTranspose", "QLinearConv", "ConvInteger", "DeformConv"},
      {"MaxPool", "AveragePool", "LpPool", "GlobalMaxPool", "GlobalAveragePool"},
      {"Exp", "Log", "Erf", "Tanh", "Sigmoid", "Gelu", "Elu", "Selu", "Celu", "Mish", "Softplus", "Swish",
       "Pow", "Sin", "Cos", "Tan"},
      {"Softmax", "LogSoftmax", "LayerNormalization", "GroupNormalization", "InstanceNormalization",
       "RMSNormalization", "LRN", "ReduceMean", "ReduceSum", "ReduceMax"}};
  for (int kind = 0; kind < CLEAVE_COST_POINTWISE; kind++) {
    for (int k = 0; k < MOST && OPS[kind][k] != NULL; k++) {
      if (cleave_view_text_equal(OPS[kind][k], op)) {
        return CLEAVE_COST_CAST(cleave_cost_class_t, kind);
      }
    }
  }
  return CLEAVE_COST_POINTWISE;
}

/* Bytes of a tensor; negative if its shape or dtype is not known. */
static inline double cleave_cost_bytes(const cleave_tensor_view_t *tensor) {
  double bytes = CLEAVE_COST_CAST(double, cleave_dtype_size(tensor->dtype));
  if (tensor->rank < 0 || bytes <= 0.0) {
    return -1.0;
  }
  for (int32_t d = 0; d < tensor->rank; d++) {
    if (tensor->dims[d] < 0) {
      return -1.0;
    }
    bytes *= CLEAVE_COST_CAST(double, tensor->dims[d]);
  }
  return bytes;
}

/* Nanoseconds of the arithmetic of one node. */
static inline double cleave_cost_arithmetic(const cleave_cost_rates_t *rates,
                                            const cleave_region_view_t *region, uint32_t index,
                                            bool in_fusion) {
  const cleave_node_view_t *node = &region->nodes[index];
  double flops = region->flops[index];
  switch (cleave_cost_class(node->op)) {
    case CLEAVE_COST_VIEW: return 0.0;
    case CLEAVE_COST_PRODUCT: return flops / rates->product;
    case CLEAVE_COST_WINDOW:
      return flops / (cleave_view_int(node, "group", 1) > 1 ? rates->grouped : rates->product);
    case CLEAVE_COST_FUNCTION: return flops / rates->function;
    case CLEAVE_COST_POOL:
    case CLEAVE_COST_REDUCTION: return flops / rates->reduction;
    case CLEAVE_COST_POINTWISE: break;
  }
  return in_fusion ? 0.0 : flops / rates->pointwise;
}

/* Does a node of the fusion read the value? Then the value stays in the kernel. */
static inline bool cleave_cost_is_read(const cleave_region_view_t *region, const cleave_fusion_view_t *fusion,
                                       uint32_t value) {
  for (uint32_t k = 0; k < fusion->node_count; k++) {
    const cleave_node_view_t *node = &region->nodes[fusion->nodes[k]];
    for (uint32_t i = 0; i < node->input_count; i++) {
      if (node->inputs[i] == value) {
        return true;
      }
    }
  }
  return false;
}

/* Bytes that a node moves: all of its inputs and outputs, or, inside of a fusion, those that come from
 * outside of it or go there. A view moves none. */
static inline double cleave_cost_moved(const cleave_region_view_t *region, uint32_t index, bool in_fusion) {
  const cleave_node_view_t *node = &region->nodes[index];
  double bytes = 0.0;
  if (!in_fusion && cleave_cost_class(node->op) == CLEAVE_COST_VIEW) {
    return 0.0;
  }
  for (uint32_t k = 0; k < node->input_count; k++) {
    const cleave_value_view_t *value = cleave_view_input(region, node, k);
    bool is_inner = in_fusion && value != NULL && value->producer != CLEAVE_INDEX_NONE &&
                    region->nodes[value->producer].fusion == node->fusion;
    bytes += value != NULL && !is_inner ? cleave_cost_bytes(&value->tensor) : 0.0;
  }
  for (uint32_t k = 0; k < node->output_count; k++) {
    const cleave_value_view_t *value = cleave_view_output(region, node, k);
    bool is_inner = in_fusion && value != NULL && !value->is_output &&
                    cleave_cost_is_read(region, &region->fusions[node->fusion], node->outputs[k]);
    bytes += value != NULL && !is_inner ? cleave_cost_bytes(&value->tensor) : 0.0;
  }
  return bytes;
}

/* Estimates a region. CLEAVE_ERROR_UNSUPPORTED if a shape is not known, or the view is too old to have
 * FLOPs. */
static inline cleave_status_t cleave_cost_estimate(const cleave_cost_rates_t *rates,
                                                   const cleave_region_view_t *region,
                                                   double *out_nanoseconds, cleave_message_t *message) {
  if (region->size <= CLEAVE_REGION_VIEW_SIZE_REQUIRED || region->flops == NULL) {
    (void)snprintf(message->text, sizeof message->text, "the view has no FLOPs");
    return CLEAVE_ERROR_UNSUPPORTED;
  }
  for (uint32_t k = 0; k < region->value_count; k++) {
    if (cleave_cost_bytes(&region->values[k].tensor) < 0.0) {
      (void)snprintf(message->text, sizeof message->text, "the size of value '%.120s' is not known",
                     region->values[k].name);
      return CLEAVE_ERROR_UNSUPPORTED;
    }
  }
  double total = rates->region_ns;
  bool has_windows = false;
  for (uint32_t k = 0; k < region->node_count; k++) {
    const cleave_node_view_t *node = &region->nodes[k];
    cleave_cost_class_t kind = cleave_cost_class(node->op);
    bool in_fusion = rates->fuses && node->fusion != CLEAVE_INDEX_NONE;
    bool starts = kind != CLEAVE_COST_VIEW;
    if (in_fusion) {
      starts = region->fusions[node->fusion].nodes[0] == k;
    }
    double arithmetic = cleave_cost_arithmetic(rates, region, k, in_fusion);
    double movement = cleave_cost_moved(region, k, in_fusion) / rates->bandwidth;
    has_windows = has_windows || kind == CLEAVE_COST_WINDOW || kind == CLEAVE_COST_POOL;
    total += (starts ? rates->kernel_ns : 0.0) + (arithmetic > movement ? arithmetic : movement);
  }
  for (uint32_t k = 0; has_windows && k < region->input_count + region->output_count; k++) {
    uint32_t value = k < region->input_count ? region->inputs[k] : region->outputs[k - region->input_count];
    total += cleave_cost_bytes(&region->values[value].tensor) * rates->boundary_moves / rates->bandwidth;
  }
  *out_nanoseconds = total;
  return CLEAVE_OK;
}

#undef CLEAVE_COST_CAST

#endif /* CLEAVE_COST_H */
