// SPDX-License-Identifier: Apache-2.0
// Slabs of a plan.
#include "onednn/plan/weights_memory.h"

#include <stdlib.h>
#include <string.h>

/* With an image, constants that are made are no larger. */
static const size_t rest_bytes = 256 << 10;

void *onednn_plan_take(onednn_plan_t *plan, size_t bytes, onednn_slab_t **out_slab) {
  void *memory = plan->own == NULL ? NULL : onednn_slab_take(plan->own, bytes);
  if (memory == NULL) {
    if (plan->own != NULL) {
      onednn_slab_trim(plan->own);
    }
    // With an image, what is left to be made is small, and a large page would cost more than all of it.
    bool is_rest = plan->image != NULL && bytes <= rest_bytes;
    size_t expected = plan->constant_bytes > bytes && !is_rest ? plan->constant_bytes : bytes;
    plan->own = onednn_slab_create(plan->store, expected, bytes);
    if (plan->own == NULL || onednn_plan_adopt(plan, plan->own) != CLEAVE_OK) {
      plan->own = NULL;
      return NULL;
    }
    memory = onednn_slab_take(plan->own, bytes);
  }
  *out_slab = plan->own;
  return memory;
}

cleave_status_t onednn_plan_reserve_scratch(onednn_plan_t *plan, size_t bytes) {
  plan->scratch_buffer = CLEAVE_INDEX_NONE;
  if (bytes <= plan->scratch_bytes) {
    return CLEAVE_OK;
  }
  free(plan->scratch);
  plan->scratch_bytes = onednn_round_up(bytes);
  plan->scratch = aligned_alloc(64, plan->scratch_bytes);
  if (plan->scratch == NULL) {
    plan->scratch_bytes = 0;
    return onednn_plan_out_of_memory(plan);
  }
  return CLEAVE_OK;
}

void onednn_plan_leave(onednn_plan_t *plan, const void *data, size_t bytes) {
  // With an image there are only small ones, and each call stops all threads of the process.
  if (plan->image != NULL && bytes <= rest_bytes) {
    uintptr_t begin = (uintptr_t)data;
    plan->left_begin = plan->left_end == 0 || begin < plan->left_begin ? begin : plan->left_begin;
    plan->left_end = begin + bytes > plan->left_end ? begin + bytes : plan->left_end;
  } else if (plan->host->constant_packed != NULL) {
    plan->host->constant_packed(data, bytes);
  }
}

// Leaves the constants that wait, and what lies between them, of which nothing has been read but what is used
// where it lies.
static void leave_waiting(onednn_plan_t *plan) {
  if (plan->left_end != 0 && plan->host->constant_packed != NULL) {
    plan->host->constant_packed((const void *)plan->left_begin, plan->left_end - plan->left_begin);
  }
  plan->left_begin = 0;
  plan->left_end = 0;
}

static size_t bytes_of(const cleave_value_view_t *constant) {
  return (size_t)cleave_view_element_count(&constant->tensor) * cleave_dtype_size(constant->tensor.dtype);
}

void onednn_plan_leave_source(onednn_plan_t *plan, uint32_t index) {
  const cleave_value_view_t *source = plan->buffers[index].source;
  if (source != NULL) {
    onednn_plan_leave(plan, source->tensor.data, bytes_of(source));
  }
}

void onednn_fill_floats(const void *context, float *out) {
  const cleave_value_view_t *view = context;
  onednn_floats(view, out, (size_t)cleave_view_element_count(&view->tensor));
}

bool onednn_fill_copies(const onednn_buffer_t *buffer) {
  return buffer->source != NULL && buffer->fill == onednn_fill_floats &&
         buffer->source->tensor.dtype == CLEAVE_DTYPE_F32;
}

// Copies of the model's constants are made part by part, too.
static void fill(onednn_plan_t *plan, const onednn_buffer_t *buffer, float *out) {
  enum { PART = 4 << 20 };
  if (!onednn_fill_copies(buffer)) {
    buffer->fill(buffer->fill_context, out);
    return;
  }
  const char *source = buffer->source->tensor.data;
  size_t all = bytes_of(buffer->source);
  for (size_t at = 0; at < all; at += PART) {
    size_t bytes = all - at < PART ? all - at : PART;
    memcpy((char *)out + at, source + at, bytes);
    onednn_plan_leave(plan, source + at, bytes);
  }
}

cleave_status_t onednn_plan_materialise(onednn_plan_t *plan, uint32_t index, bool keeps) {
  onednn_buffer_t *buffer = &plan->buffers[index];
  if (buffer->data != NULL || buffer->fill == NULL || (!keeps && plan->scratch_buffer == index)) {
    return CLEAVE_OK;
  }
  if (!keeps) {
    ONEDNN_TRY(onednn_plan_reserve_scratch(plan, buffer->bytes));
    fill(plan, buffer, plan->scratch);
    onednn_plan_leave_source(plan, index);
    plan->scratch_buffer = index;
    return CLEAVE_OK;
  }
  // No layout says what is filled in: the number of the buffer does.
  ONEDNN_TRY(onednn_plan_note_packing(plan, index, UINT64_C(0x66696c6c) << 32 | index));
  buffer = &plan->buffers[index];
  if (buffer->data != NULL) {
    return CLEAVE_OK;
  }
  buffer->data = onednn_store_find(plan->store, &buffer->content, &buffer->slab);
  if (buffer->data != NULL) {
    return onednn_plan_adopt(plan, buffer->slab);
  }
  buffer->data = onednn_plan_take(plan, buffer->bytes, &buffer->slab);
  if (buffer->data == NULL) {
    return onednn_plan_out_of_memory(plan);
  }
  fill(plan, buffer, buffer->data);
  onednn_plan_leave_source(plan, index);
  return CLEAVE_OK;
}

static bool is_read(const onednn_buffer_t *buffer) {
  return buffer->place == ONEDNN_CONSTANT && buffer->first_step != CLEAVE_INDEX_NONE;
}

// Bytes that steps read in a slab. Several buffers may lie in the same place: more does no harm.
static size_t bytes_read(const onednn_plan_t *plan, const onednn_slab_t *slab) {
  size_t bytes = 0;
  for (uint32_t b = 0; b < plan->buffer_count; b++) {
    const onednn_buffer_t *buffer = &plan->buffers[b];
    bytes += is_read(buffer) && buffer->slab == slab ? onednn_round_up(buffer->bytes) : 0;
  }
  return bytes;
}

// Copies what steps read in `slab` to the one at hand, and lets it go.
static cleave_status_t leave_slab(onednn_plan_t *plan, uint32_t index) {
  onednn_slab_t *slab = plan->slabs[index];
  for (uint32_t b = 0; b < plan->buffer_count; b++) {
    onednn_buffer_t *buffer = &plan->buffers[b];
    if (!is_read(buffer) || buffer->slab != slab) {
      continue;
    }
    onednn_slab_t *home = NULL;
    void *copy = onednn_plan_take(plan, buffer->bytes, &home);
    if (copy == NULL) {
      return onednn_plan_out_of_memory(plan);
    }
    memcpy(copy, buffer->data, buffer->bytes);
    buffer->data = copy;
    buffer->slab = home;
  }
  for (uint32_t k = index; k + 1 < plan->slab_count; k++) {
    plan->slabs[k] = plan->slabs[k + 1];
  }
  plan->slab_count--;
  onednn_slab_release(slab);
  return CLEAVE_OK;
}

// Constants that no buffer stands for were read for scales and the like, and the system mapped much of the
// file around them.
static cleave_status_t leave_rest(onednn_plan_t *plan) {
  const cleave_value_view_t *values = plan->region->values;
  uint32_t count = plan->analysis->expansion.given_values;
  bool *has_buffer = kernel_arena_allocate(plan->arena, count, sizeof(*has_buffer));
  if (has_buffer == NULL) {
    return onednn_plan_out_of_memory(plan);
  }
  for (uint32_t b = 0; b < plan->buffer_count; b++) {
    if (plan->buffers[b].source != NULL) {
      has_buffer[plan->buffers[b].source - values] = true;
    }
  }
  for (uint32_t v = 0; v < count; v++) {
    if (onednn_is_constant(&values[v]) && !has_buffer[v]) {
      onednn_plan_leave(plan, values[v].tensor.data, bytes_of(&values[v]));
    }
  }
  return CLEAVE_OK;
}

cleave_status_t onednn_plan_gather(onednn_plan_t *plan) {
  ONEDNN_TRY(leave_rest(plan));
  for (uint32_t b = 0; b < plan->buffer_count; b++) {
    if (is_read(&plan->buffers[b])) {
      ONEDNN_TRY(onednn_plan_materialise(plan, b, true));
    }
  }
  uint32_t borrowed = plan->slab_count;
  for (uint32_t k = 0; k < borrowed;) {
    onednn_slab_t *slab = plan->slabs[k];
    if (slab != plan->own && bytes_read(plan, slab) < onednn_slab_used(slab) / 2) {
      ONEDNN_TRY(leave_slab(plan, k));
      borrowed--;
    } else {
      k++;
    }
  }
  plan->persistent_bytes = 0;
  for (uint32_t b = 0; b < plan->buffer_count; b++) {
    const onednn_buffer_t *buffer = &plan->buffers[b];
    plan->persistent_bytes += is_read(buffer) && buffer->is_kept ? onednn_round_up(buffer->bytes) : 0;
  }
  for (uint32_t k = 0; k < plan->slab_count; k++) {
    plan->persistent_bytes += bytes_read(plan, plan->slabs[k]);
  }
  for (uint32_t b = 0; b < plan->buffer_count; b++) {
    const onednn_buffer_t *buffer = &plan->buffers[b];
    if (is_read(buffer) && buffer->slab != NULL && buffer->slab == plan->own) {
      onednn_slab_publish(buffer->slab, &buffer->content, buffer->data);
    }
  }
  if (plan->own != NULL) {
    onednn_slab_trim(plan->own);
  }
  leave_waiting(plan);
  free(plan->scratch);
  plan->scratch = NULL;
  plan->scratch_bytes = 0;
  return CLEAVE_OK;
}
