// SPDX-License-Identifier: Apache-2.0
// Precision of kernels and values. Kernels are visited from the last to the first, so that all readers of a
// value have spoken before the kernel that makes it.
#include "onednn/analysis/precision.h"

#include "onednn/library/types.h"

// What the readers of a value demand.
typedef struct demand {
  bool low;     // some product reads it
  bool output;  // it leaves the region, perhaps through views
} demand_t;

static const char *text_of(const cleave_attribute_view_t *attribute) {
  return attribute != NULL && attribute->kind == CLEAVE_ATTRIBUTE_STRING ? attribute->s : NULL;
}

cleave_status_t onednn_precision_of(const cleave_region_view_t *region, dnnl_data_type_t *out,
                                    cleave_message_t *message) {
  const cleave_attribute_view_t *attribute = cleave_view_region_attribute(region, "precision");
  const char *name = text_of(attribute);
  *out = dnnl_f32;
  if (attribute != NULL) {
    *out = name != NULL ? onednn_type_named(name) : dnnl_data_type_undef;
  }
  return *out != dnnl_data_type_undef
             ? CLEAVE_OK
             : kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED,
                           "precision: expected float32, bfloat16, float16 or int8, found '%.40s'",
                           name != NULL ? name : "no text");
}

// Clears the kernels of nodes and fusions that stay float32.
static cleave_status_t keep(const onednn_analysis_t *analysis, const cleave_region_view_t *region,
                            bool *kernels) {
  const cleave_attribute_view_t *kept = cleave_view_region_attribute(region, "float32");
  bool *nodes = kernel_arena_allocate(analysis->arena, region->node_count, sizeof(bool));
  if (nodes == NULL) {
    return kernel_fail(analysis->message, CLEAVE_ERROR_OUT_OF_MEMORY, "out of memory while compiling");
  }
  for (uint32_t k = 0; kept != NULL && kept->kind == CLEAVE_ATTRIBUTE_STRINGS && k < kept->count; k++) {
    for (uint32_t n = 0; n < region->node_count; n++) {
      nodes[n] = nodes[n] || cleave_view_text_equal(region->nodes[n].op, kept->strings[k]) ||
                 cleave_view_text_equal(region->nodes[n].name, kept->strings[k]);
    }
  }
  for (uint32_t f = 0; f < region->fusion_count; f++) {
    const char *own = text_of(cleave_view_fusion_attribute(region, f, "precision"));
    for (uint32_t k = 0;
         own != NULL && cleave_view_text_equal(own, "float32") && k < region->fusions[f].node_count; k++) {
      nodes[region->fusions[f].nodes[k]] = true;
    }
  }
  const uint32_t *origins = analysis->expansion.node_of;
  for (uint32_t n = 0; n < analysis->region->node_count; n++) {
    uint32_t given = origins != NULL ? origins[n] : n;
    if (given < region->node_count && nodes[given]) {
      kernels[analysis->kernel_of[analysis->unit_of[n]]] = false;
    }
  }
  return CLEAVE_OK;
}

static bool multiplies(const onednn_kernel_t *kernel) {
  return kernel->kind == ONEDNN_CONVOLUTION || kernel->kind == ONEDNN_DECONVOLUTION ||
         kernel->kind == ONEDNN_PRODUCT;
}

static bool is_view(const onednn_kernel_t *kernel) {
  return kernel->kind == ONEDNN_RESHAPE || kernel->kind == ONEDNN_TRANSPOSE || kernel->kind == ONEDNN_SLICE ||
         kernel->kind == ONEDNN_GATHER || kernel->kind == ONEDNN_SPLIT;
}

// The wishes of all results of a kernel together.
static demand_t of_results(const onednn_analysis_t *analysis, const onednn_kernel_t *kernel,
                           const demand_t *demands) {
  demand_t all = demands[kernel->output];
  const cleave_node_view_t *node = &analysis->region->nodes[kernel->node];
  for (uint32_t k = 0; kernel->kind == ONEDNN_SPLIT && k < node->output_count; k++) {
    if (node->outputs[k] != CLEAVE_INDEX_NONE) {
      all.low = all.low || demands[node->outputs[k]].low;
      all.output = all.output || demands[node->outputs[k]].output;
    }
  }
  return all;
}

// Adds the demands of one kernel to the values that it reads.
static void ask(const onednn_analysis_t *analysis, const onednn_kernel_t *kernel, bool low,
                demand_t *demands) {
  const cleave_region_view_t *region = analysis->region;
  const cleave_node_view_t *node = &region->nodes[kernel->node];
  demand_t results = of_results(analysis, kernel, demands);
  if (multiplies(kernel)) {
    demands[kernel->source].low |= low;
    if (kernel->kind == ONEDNN_PRODUCT && !onednn_is_constant(&region->values[kernel->weights])) {
      demands[kernel->weights].low |= low;
    }
  } else if (onednn_node_is(node, "ConvGradWeight")) {
    demands[node->inputs[0]].low |= low;
    demands[node->inputs[1]].low |= low;
  } else if (is_view(kernel)) {
    demands[kernel->source].low |= results.low && !results.output;
    demands[kernel->source].output |= results.output;
  } else if (kernel->kind == ONEDNN_POOLING) {
    demands[kernel->source].low |= low && results.low;
  } else if (kernel->kind == ONEDNN_CONCAT) {
    for (uint32_t k = 0; k < node->input_count; k++) {
      if (node->inputs[k] != CLEAVE_INDEX_NONE) {
        demands[node->inputs[k]].low |= results.low && !results.output;
      }
    }
  }
}

cleave_status_t onednn_precision_choose(const onednn_analysis_t *analysis, const cleave_region_view_t *region,
                                        onednn_precision_t *out) {
  *out = (onednn_precision_t){.type = dnnl_f32};
  dnnl_data_type_t type = dnnl_f32;
  ONEDNN_TRY(onednn_precision_of(region, &type, analysis->message));
  if (type == dnnl_f32 || onednn_type_missing(type) != NULL) {
    return CLEAVE_OK;
  }
  uint32_t value_count = analysis->region->value_count;
  bool *kernels = kernel_arena_allocate(analysis->arena, analysis->kernel_count, sizeof(bool));
  bool *values = kernel_arena_allocate(analysis->arena, value_count, sizeof(bool));
  demand_t *demands = kernel_arena_allocate(analysis->arena, value_count, sizeof(demand_t));
  if (kernels == NULL || values == NULL || demands == NULL) {
    return kernel_fail(analysis->message, CLEAVE_ERROR_OUT_OF_MEMORY, "out of memory while compiling");
  }
  for (uint32_t k = 0; k < analysis->kernel_count; k++) {
    kernels[k] = true;
  }
  ONEDNN_TRY(keep(analysis, region, kernels));
  for (uint32_t k = 0; k < analysis->region->output_count; k++) {
    demands[analysis->region->outputs[k]].output = true;
  }
  for (uint32_t k = analysis->kernel_count; k-- > 0;) {
    ask(analysis, &analysis->kernels[k], kernels[k], demands);
  }
  for (uint32_t v = 0; v < value_count; v++) {
    values[v] = demands[v].low && !demands[v].output;
  }
  *out = (onednn_precision_t){.type = type, .kernels = kernels, .values = values};
  return CLEAVE_OK;
}
