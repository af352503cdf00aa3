// SPDX-License-Identifier: Apache-2.0
// Slots, views, constants and steps of a plan.
#include "plan.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *cuda_plan_allocate(cuda_plan_t *plan, size_t count, size_t size) {
  return kernel_arena_allocate(&plan->arena, count, size);
}

void cuda_plan_deinit(cuda_plan_t *plan) {
  for (uint32_t k = 0; k < plan->step_count; k++) {
    free(plan->steps[k].text);
  }
  kernel_arena_free(&plan->arena);
  free(plan->slots);
  free(plan->steps);
  plan->slots = NULL;
  plan->steps = NULL;
  plan->slot_count = 0;
  plan->step_count = 0;
}

cleave_status_t cuda_plan_no_memory(cuda_plan_t *plan) {
  return cuda_fail(plan->message, CLEAVE_ERROR_OUT_OF_MEMORY, CLEAVE_REASON_NONE, "no memory for a plan");
}

cleave_status_t cuda_plan_refuse(cuda_plan_t *plan, cleave_reason_code_t code, const char *format, ...) {
  char what[160];
  va_list list;
  va_start(list, format);
  (void)vsnprintf(what, sizeof what, format, list);
  va_end(list);
  const cleave_node_view_t *node = &plan->region->nodes[plan->node];
  return cuda_fail(plan->message, CLEAVE_ERROR_UNSUPPORTED, code, "%s '%.60s': %s", node->op,
                   node->name == NULL ? "" : node->name, what);
}

/* ---- slots ---- */

static int64_t tensor_bytes(const cleave_tensor_view_t *tensor) {
  int64_t count = cleave_view_element_count(tensor);
  int64_t size = (int64_t)cleave_dtype_size(tensor->dtype);
  return count < 0 || (size > 0 && count > INT64_MAX / 2 / size) ? -1 : count * size;
}

static cleave_status_t new_slot(cuda_plan_t *plan, cuda_slot_t slot, uint32_t *out_slot) {
  if (plan->slot_count == plan->slot_room) {
    uint32_t room = plan->slot_room * 2 + 16;
    cuda_slot_t *slots = realloc(plan->slots, room * sizeof *slots);
    if (slots == NULL) {
      return cuda_plan_no_memory(plan);
    }
    plan->slots = slots;
    plan->slot_room = room;
  }
  slot.first = UINT32_MAX;
  plan->slots[plan->slot_count] = slot;
  *out_slot = plan->slot_count++;
  return CLEAVE_OK;
}

static cleave_status_t count_readers(cuda_plan_t *plan) {
  const cleave_region_view_t *region = plan->region;
  plan->readers = cuda_plan_allocate(plan, region->value_count, sizeof *plan->readers);
  if (plan->readers == NULL) {
    return cuda_plan_no_memory(plan);
  }
  for (uint32_t n = 0; n < region->node_count; n++) {
    const cleave_node_view_t *node = &region->nodes[n];
    for (uint32_t i = 0; i < node->input_count; i++) {
      if (node->inputs[i] != CLEAVE_INDEX_NONE) {
        plan->readers[node->inputs[i]]++;
      }
    }
  }
  for (uint32_t k = 0; k < region->output_count; k++) {
    plan->readers[region->outputs[k]]++;
  }
  return CLEAVE_OK;
}

cleave_status_t cuda_plan_init(cuda_plan_t *plan, const cleave_region_view_t *region,
                               cuda_plan_options_t options, cleave_message_t *message) {
  *plan = (cuda_plan_t){.region = region, .options = options, .message = message};
  for (uint32_t v = 0; v < region->value_count; v++) {
    const cleave_tensor_view_t *tensor = &region->values[v].tensor;
    cuda_slot_t slot = {.kind = tensor->data != NULL ? CUDA_SLOT_CONSTANT : CUDA_SLOT_NONE,
                        .bytes = tensor_bytes(tensor),
                        .data = tensor->data};
    uint32_t index = 0;
    if (tensor->data != NULL && tensor->storage != CLEAVE_STORAGE_DENSE) {
      return cuda_fail(message, CLEAVE_ERROR_UNSUPPORTED, CLEAVE_REASON_CONSTANT, "a constant is sparse");
    }
    CUDA_TRY(new_slot(plan, slot, &index));
  }
  for (uint32_t k = 0; k < region->input_count; k++) {
    plan->slots[region->inputs[k]].kind = CUDA_SLOT_INPUT;
    plan->slots[region->inputs[k]].index = k;
  }
  for (uint32_t k = 0; k < region->output_count; k++) {
    cuda_slot_t *slot = &plan->slots[region->outputs[k]];
    if (slot->kind == CUDA_SLOT_NONE) {
      slot->kind = CUDA_SLOT_OUTPUT;
      slot->index = k;
    }
  }
  return count_readers(plan);
}

cleave_status_t cuda_plan_scratch(cuda_plan_t *plan, int64_t bytes, uint32_t *out_slot) {
  return new_slot(plan, (cuda_slot_t){.kind = CUDA_SLOT_MEMORY, .bytes = bytes}, out_slot);
}

cleave_status_t cuda_plan_constant(cuda_plan_t *plan, const void *data, int64_t bytes, uint32_t *out_slot) {
  return new_slot(plan, (cuda_slot_t){.kind = CUDA_SLOT_CONSTANT, .bytes = bytes, .data = data}, out_slot);
}

uint32_t cuda_plan_root(const cuda_plan_t *plan, uint32_t slot) {
  while (plan->slots[slot].kind == CUDA_SLOT_VIEW) {
    slot = plan->slots[slot].index;
  }
  return slot;
}

const void *cuda_plan_data(const cuda_plan_t *plan, uint32_t slot) {
  const cuda_slot_t *root = &plan->slots[cuda_plan_root(plan, slot)];
  return root->data;
}

cleave_status_t cuda_plan_view(cuda_plan_t *plan, uint32_t value, uint32_t of) {
  cuda_slot_t *slot = &plan->slots[value];
  if (slot->kind == CUDA_SLOT_OUTPUT) {
    return cuda_plan_copy(plan, (cuda_pointer_t){of, 0}, (cuda_pointer_t){value, 0}, slot->bytes);
  }
  slot->kind = CUDA_SLOT_VIEW;
  slot->index = cuda_plan_root(plan, of); /* no chains, which every step would walk along */
  return CLEAVE_OK;
}

/* ---- steps ---- */

cleave_status_t cuda_plan_step(cuda_plan_t *plan, cuda_step_kind_t kind, const char *label,
                               const cuda_pointer_t *pointers, uint32_t count, cuda_step_t **out_step) {
  if (plan->step_count == plan->step_room) {
    uint32_t room = plan->step_room * 2 + 16;
    cuda_step_t *steps = realloc(plan->steps, room * sizeof *steps);
    if (steps == NULL) {
      return cuda_plan_no_memory(plan);
    }
    plan->steps = steps;
    plan->step_room = room;
  }
  cuda_step_t *step = &plan->steps[plan->step_count];
  *step = (cuda_step_t){.kind = kind, .node = plan->node, .fusion = plan->fusion, .pointer_count = count};
  (void)snprintf(step->label, sizeof step->label, "%s", label);
  step->pointers = cuda_plan_allocate(plan, count, sizeof *step->pointers);
  if (step->pointers == NULL) {
    return cuda_plan_no_memory(plan);
  }
  for (uint32_t k = 0; k < count; k++) {
    step->pointers[k] = pointers[k];
    if (pointers[k].slot == CUDA_NO_SLOT) {
      continue;
    }
    if (plan->slots[pointers[k].slot].is_lacking) { /* better than wrong numbers */
      return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "an operand has channels last");
    }
    cuda_slot_t *slot = &plan->slots[cuda_plan_root(plan, pointers[k].slot)];
    slot->kind = slot->kind == CUDA_SLOT_NONE ? CUDA_SLOT_MEMORY : slot->kind;
    slot->is_used = true;
    slot->first = slot->first < plan->step_count ? slot->first : plan->step_count;
    slot->last = plan->step_count;
  }
  plan->step_count++;
  *out_step = step;
  return CLEAVE_OK;
}

cleave_status_t cuda_plan_copy(cuda_plan_t *plan, cuda_pointer_t from, cuda_pointer_t to, int64_t bytes) {
  const cuda_pointer_t pointers[2] = {from, to};
  cuda_step_t *step = NULL;
  if (bytes == 0) {
    return CLEAVE_OK;
  }
  CUDA_TRY(cuda_plan_step(plan, CUDA_STEP_COPY, "copy", pointers, 2, &step));
  step->bytes = bytes;
  return CLEAVE_OK;
}
