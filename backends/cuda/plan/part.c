// SPDX-License-Identifier: Apache-2.0
// Nodes behind a bias that no library adds, as a region of their own with an Add in front. So a kernel of
// them costs what its nodes cost, whatever the size of the plan's region.
#include <stdlib.h>
#include <string.h>

#include "plan.h"

/* Values of the small region are those of the plan's that its nodes know, in order, and behind them what the
 * bias is added to, and the bias. */
typedef struct biased {
  cuda_plan_t *plan;
  const cuda_bias_t *call;
  kernel_arena_t *arena;
  uint32_t known;   /* values of the plan's region */
  uint32_t *slots;  /* per value */
  uint32_t *inside; /* per value: inputs of its nodes that it is */
  cleave_value_view_t *values;
  cleave_node_view_t *nodes; /* the Add is the first */
  uint32_t *order;
  uint32_t *outputs;
  uint32_t output_count;
  int64_t *dims; /* of the bias */
} biased_t;

static cleave_status_t allocate(biased_t *self) {
  size_t values = 3; /* the Add's */
  size_t nodes = (size_t)self->call->count + 1;
  for (uint32_t k = 0; k < self->call->count; k++) {
    const cleave_node_view_t *node = &self->plan->region->nodes[self->call->nodes[k]];
    values += node->input_count + node->output_count;
  }
  self->slots = kernel_arena_allocate(self->arena, values, sizeof *self->slots);
  self->inside = kernel_arena_allocate(self->arena, values, sizeof *self->inside);
  self->outputs = kernel_arena_allocate(self->arena, values, sizeof *self->outputs);
  self->values = kernel_arena_allocate(self->arena, values, sizeof *self->values);
  self->nodes = kernel_arena_allocate(self->arena, nodes, sizeof *self->nodes);
  self->dims = kernel_arena_allocate(self->arena, CLEAVE_MAX_RANK, sizeof *self->dims);
  self->order = kernel_arena_allocate(self->arena, nodes, sizeof *self->order);
  bool is_whole = self->slots != NULL && self->inside != NULL && self->outputs != NULL &&
                  self->values != NULL && self->nodes != NULL && self->order != NULL && self->dims != NULL;
  return is_whole ? CLEAVE_OK : cuda_plan_no_memory(self->plan);
}

static int compare(const void *left, const void *right) {
  uint32_t a = *(const uint32_t *)left;
  uint32_t b = *(const uint32_t *)right;
  return a < b ? -1 : a > b;
}

static void find_values(biased_t *self) {
  uint32_t count = 0;
  self->slots[count++] = self->call->value;
  for (uint32_t k = 0; k < self->call->count; k++) {
    const cleave_node_view_t *node = &self->plan->region->nodes[self->call->nodes[k]];
    for (uint32_t i = 0; i < node->input_count + node->output_count; i++) {
      uint32_t value = i < node->input_count ? node->inputs[i] : node->outputs[i - node->input_count];
      if (value != CLEAVE_INDEX_NONE) {
        self->slots[count++] = value;
      }
    }
  }
  qsort(self->slots, count, sizeof *self->slots, compare);
  for (uint32_t k = 0; k < count; k++) {
    if (k == 0 || self->slots[k] != self->slots[k - 1]) {
      self->slots[self->known++] = self->slots[k];
    }
  }
  for (uint32_t v = 0; v < self->known; v++) {
    self->values[v] = self->plan->region->values[self->slots[v]];
    self->values[v].producer = CLEAVE_INDEX_NONE;
  }
}

static uint32_t number_of(const biased_t *self, uint32_t value) {
  const uint32_t *found = bsearch(&value, self->slots, self->known, sizeof value, compare);
  return found == NULL ? CLEAVE_INDEX_NONE : (uint32_t)(found - self->slots);
}

static void make_bias(biased_t *self) {
  const cleave_tensor_view_t *y = &self->plan->region->values[self->call->value].tensor;
  uint32_t raw = self->known;
  for (int32_t d = 0; d < y->rank; d++) {
    self->dims[d] = d == 1 ? y->dims[1] : 1;
  }
  self->slots[raw] = self->call->raw;
  self->slots[raw + 1] = self->call->bias;
  self->values[raw] = self->plan->region->values[self->call->value];
  self->values[raw].producer = CLEAVE_INDEX_NONE;
  self->values[raw + 1] = self->values[raw];
  self->values[raw + 1].tensor.dims = self->dims;
}

static cleave_status_t copy_node(biased_t *self, const cleave_node_view_t *node, uint32_t index) {
  uint32_t count = node->input_count + node->output_count;
  uint32_t *places = kernel_arena_allocate(self->arena, count, sizeof *places);
  if (places == NULL) {
    return cuda_plan_no_memory(self->plan);
  }
  for (uint32_t i = 0; i < count; i++) {
    bool is_input = i < node->input_count;
    places[i] = number_of(self, is_input ? node->inputs[i] : node->outputs[i - node->input_count]);
    if (places[i] != CLEAVE_INDEX_NONE && is_input) {
      self->inside[places[i]]++;
    } else if (places[i] != CLEAVE_INDEX_NONE) {
      self->values[places[i]].producer = index;
    }
  }
  self->nodes[index] = *node;
  self->nodes[index].inputs = places;
  self->nodes[index].outputs = places + node->input_count;
  return CLEAVE_OK;
}

static cleave_status_t make_add(biased_t *self) {
  uint32_t *places = kernel_arena_allocate(self->arena, 3, sizeof *places);
  if (places == NULL) {
    return cuda_plan_no_memory(self->plan);
  }
  places[0] = self->known;
  places[1] = self->known + 1;
  places[2] = number_of(self, self->call->value);
  self->values[places[2]].producer = 0;
  self->nodes[0] = (cleave_node_view_t){.size = sizeof self->nodes[0],
                                        .op = "Add",
                                        .domain = "",
                                        .name = "",
                                        .opset_version = 14,
                                        .input_count = 2,
                                        .output_count = 1,
                                        .inputs = places,
                                        .outputs = places + 2,
                                        .fusion = CLEAVE_INDEX_NONE};
  return CLEAVE_OK;
}

/* Lists the values that are made here and read elsewhere, too. */
static void find_outputs(biased_t *self) {
  for (uint32_t v = 0; v < self->known; v++) {
    bool is_made = self->values[v].producer != CLEAVE_INDEX_NONE;
    if (is_made && self->plan->readers[self->slots[v]] > self->inside[v]) {
      self->outputs[self->output_count++] = v;
    }
  }
}

cleave_status_t cuda_plan_part(cuda_plan_t *plan, const cuda_bias_t *call, kernel_arena_t *arena,
                               cuda_part_t *out_part) {
  biased_t self = {.plan = plan, .call = call, .arena = arena};
  CUDA_TRY(allocate(&self));
  find_values(&self);
  make_bias(&self);
  CUDA_TRY(make_add(&self));
  for (uint32_t k = 0; k < call->count; k++) {
    self.order[k + 1] = k + 1;
    CUDA_TRY(copy_node(&self, &plan->region->nodes[call->nodes[k]], k + 1));
  }
  find_outputs(&self);
  *out_part = (cuda_part_t){.region = {.size = CLEAVE_REGION_VIEW_SIZE_REQUIRED,
                                       .name = plan->region->name,
                                       .rule = plan->region->rule,
                                       .value_count = self.known + 2,
                                       .node_count = call->count + 1,
                                       .values = self.values,
                                       .nodes = self.nodes,
                                       .output_count = self.output_count,
                                       .outputs = self.outputs},
                            .nodes = self.order,
                            .slots = self.slots};
  return CLEAVE_OK;
}
