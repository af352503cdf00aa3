// SPDX-License-Identifier: Apache-2.0
// Buffers and steps of a plan. Every step notes the buffers it touches, so that lifetimes are exact by
// construction.
#include "onednn/plan/plan.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onednn/library/types.h"

cleave_status_t onednn_plan_out_of_memory(const onednn_plan_t *plan) {
  return kernel_fail(plan->message, CLEAVE_ERROR_OUT_OF_MEMORY, "region '%s': out of memory while compiling",
                     plan->region->name);
}

static bool grow(void **items, uint32_t *capacity, uint32_t count, size_t size) {
  if (count < *capacity) {
    return true;
  }
  uint32_t wanted = *capacity == 0 ? 64 : *capacity * 2;
  size_t bytes = 0;
  if (!onednn_multiply(wanted, size, &bytes)) {
    return false;
  }
  void *larger = realloc(*items, bytes);
  if (larger == NULL) {
    return false;
  }
  *items = larger;
  *capacity = wanted;
  return true;
}

cleave_status_t onednn_plan_add_buffer(onednn_plan_t *plan, onednn_place_t place, uint32_t index,
                                       size_t bytes, uint32_t *out) {
  void *items = plan->buffers;
  bool fits = grow(&items, &plan->buffer_capacity, plan->buffer_count, sizeof(onednn_buffer_t));
  plan->buffers = items;
  if (!fits) {
    return onednn_plan_out_of_memory(plan);
  }
  *out = plan->buffer_count++;
  plan->buffers[*out] = (onednn_buffer_t){.place = place,
                                          .index = index,
                                          .bytes = bytes,
                                          .first_step = CLEAVE_INDEX_NONE,
                                          .last_step = 0,
                                          .live_until = plan->kernel,
                                          .copy_of = CLEAVE_INDEX_NONE};
  return CLEAVE_OK;
}

cleave_status_t onednn_plan_note_packing(onednn_plan_t *plan, uint32_t buffer, uint64_t identity) {
  void *items = plan->packings;
  bool fits = grow(&items, &plan->packing_capacity, plan->packing_count, sizeof(onednn_packing_t));
  plan->packings = items;
  if (!fits) {
    return onednn_plan_out_of_memory(plan);
  }
  const void *ready =
      onednn_image_find(plan->image, plan->packing_count, identity, plan->buffers[buffer].bytes);
  plan->packings[plan->packing_count++] = (onednn_packing_t){.identity = identity, .buffer = buffer};
  if (ready != NULL) {
    // oneDNN takes one kind of pointer for reading and writing; no step writes to a constant.
    plan->buffers[buffer].data = (void *)(uintptr_t)ready;
    plan->buffers[buffer].is_kept = true;
  }
  return CLEAVE_OK;
}

onednn_shape_t onednn_plan_shape(const onednn_plan_t *plan, uint32_t value) {
  onednn_shape_t shape = onednn_shape_of(&plan->region->values[value]);
  return shape.rank == 0 ? onednn_shape_pad(&shape, 1) : shape;
}

dnnl_data_type_t onednn_plan_computes(const onednn_plan_t *plan) {
  return onednn_precision_is_low(&plan->precision) && plan->precision.kernels[plan->kernel]
             ? plan->precision.type
             : dnnl_f32;
}

dnnl_data_type_t onednn_plan_type(const onednn_plan_t *plan, uint32_t value) {
  return value != CLEAVE_INDEX_NONE ? onednn_type_of(plan->region->values[value].tensor.dtype) : dnnl_f32;
}

dnnl_data_type_t onednn_plan_stores(const onednn_plan_t *plan, uint32_t value) {
  dnnl_data_type_t own = onednn_plan_type(plan, value);
  if (onednn_type_is_byte(own)) {
    return own;
  }
  return onednn_precision_is_low(&plan->precision) && value != CLEAVE_INDEX_NONE &&
                 plan->precision.values[value]
             ? plan->precision.type
             : dnnl_f32;
}

onednn_form_t onednn_plan_form(const onednn_plan_t *plan) {
  return plan->forms != NULL ? plan->forms[plan->kernel] : (onednn_form_t){.layout = ONEDNN_FORM_DEFAULT};
}

// `is_narrow`: few channels, row-major, which would fill no block: oneDNN's choice.
static onednn_layout_t layout_in(const onednn_form_t *form, const onednn_shape_t *shape, bool is_narrow) {
  switch ((onednn_form_layout_t)form->layout) {
    case ONEDNN_FORM_CHANNELS_LAST: return onednn_layout_channels_last(shape);
    case ONEDNN_FORM_PLAIN: return onednn_layout_plain(shape);
    case ONEDNN_FORM_BLOCKS_8:
      return is_narrow ? onednn_layout_any(shape) : onednn_layout_blocked_by_8(shape);
    case ONEDNN_FORM_BLOCKS_16:
    case ONEDNN_FORM_WINOGRAD: return is_narrow ? onednn_layout_any(shape) : onednn_layout_blocked(shape);
    case ONEDNN_FORM_ANY:
    case ONEDNN_FORM_DEFAULT:
    case ONEDNN_FORM_LAYOUTS: break;
  }
  return onednn_layout_any(shape);
}

bool onednn_form_layouts(const onednn_form_t *form, const onednn_layout_t *data, const onednn_shape_t *shape,
                         onednn_layout_t *out_source, onednn_layout_t *out_result) {
  onednn_shape_t own = onednn_layout_shape(data);
  if (form->layout == ONEDNN_FORM_DEFAULT || own.rank < 3 || own.rank > 5) {
    return false;
  }
  *out_source = layout_in(form, &own, own.dims[1] < 16 && onednn_layout_is_plain(data));
  *out_result = layout_in(form, shape, false);
  return true;
}

static cleave_status_t bind_inputs(onednn_plan_t *plan) {
  for (uint32_t k = 0; k < plan->region->input_count; k++) {
    uint32_t value = plan->region->inputs[k];
    if (value >= plan->region->value_count) {
      return kernel_fail(plan->message, CLEAVE_ERROR_INVALID_ARGUMENT, "region '%s': input %u is not a value",
                         plan->region->name, (unsigned)k);
    }
    const cleave_value_view_t *view = &plan->region->values[value];
    dnnl_data_type_t type = onednn_plan_type(plan, value);
    if (type == dnnl_data_type_undef) {
      continue;
    }
    ONEDNN_TRY(onednn_check_size(view, plan->message));
    onednn_binding_t *binding = &plan->bindings[value];
    onednn_shape_t shape = onednn_plan_shape(plan, value);
    binding->tensor.layout = onednn_layout_plain(&shape);
    binding->tensor.layout = onednn_layout_typed(&binding->tensor.layout, type);
    binding->tensor.offset = 0;
    ONEDNN_TRY(onednn_plan_add_buffer(plan, ONEDNN_INPUT, k, 0, &binding->tensor.buffer));
    binding->bound = true;
  }
  return CLEAVE_OK;
}

cleave_status_t onednn_plan_init(onednn_plan_t *plan, const onednn_analysis_t *analysis,
                                 const onednn_base_t *base, dnnl_stream_t stream, int32_t threads,
                                 onednn_care_t care) {
  memset(plan, 0, sizeof(*plan));
  plan->care = care;
  plan->host = base->host;
  plan->threads = threads;
  plan->engine = base->engine;
  plan->store = base->store;
  plan->texts = base->texts;
  plan->image = base->image;
  // Without an image, packing constants needs all threads, and takes much longer than making primitives.
  onednn_making_start(&plan->making, base->image != NULL && threads > 1 ? (uint32_t)threads - 1 : 0);
  plan->scratch_buffer = CLEAVE_INDEX_NONE;
  plan->region = analysis->region;
  plan->analysis = analysis;
  plan->arena = analysis->arena;
  plan->message = analysis->message;
  plan->stream = stream;
  plan->bindings = kernel_arena_allocate(plan->arena, plan->region->value_count, sizeof(onednn_binding_t));
  plan->formed = kernel_arena_allocate(plan->arena, analysis->kernel_count, sizeof(bool));
  if (plan->bindings == NULL || plan->formed == NULL) {
    return onednn_plan_out_of_memory(plan);
  }
  // The exact form of a program is not tuned.
  if (base->tuning != NULL && base->tuning->kernel_count == analysis->kernel_count &&
      care != ONEDNN_CARE_EXACT) {
    plan->forms = base->tuning->forms;
  }
  for (uint32_t v = 0; v < plan->region->value_count; v++) {
    int64_t count = cleave_view_element_count(&plan->region->values[v].tensor);
    plan->constant_bytes +=
        onednn_is_constant(&plan->region->values[v]) && count > 0 && (uint64_t)count < SIZE_MAX / 64
            ? (size_t)count * (onednn_type_is_byte(onednn_plan_type(plan, v)) ? 1 : sizeof(float))
            : 0;
  }
  for (uint32_t n = 0; n < plan->region->node_count; n++) {
    const cleave_node_view_t *node = &plan->region->nodes[n];
    for (uint32_t k = 0; k < node->output_count; k++) {
      if (node->outputs[k] != CLEAVE_INDEX_NONE &&
          onednn_plan_type(plan, node->outputs[k]) != dnnl_data_type_undef) {
        ONEDNN_TRY(onednn_check_size(&plan->region->values[node->outputs[k]], plan->message));
      }
    }
  }
  ONEDNN_TRY(onednn_plan_add_buffer(plan, ONEDNN_WORKSPACE, 0, 0, &plan->scratchpad));
  return bind_inputs(plan);
}

void onednn_plan_deinit(onednn_plan_t *plan) {
  onednn_making_stop(&plan->making);
  for (uint32_t k = 0; k < plan->step_count; k++) {
    onednn_loop_release(plan->steps[k].loop);
  }
  for (uint32_t k = 0; k < plan->slab_count; k++) {
    onednn_slab_release(plan->slabs[k]);
  }
  free(plan->steps);
  free(plan->buffers);
  free(plan->packings);
  free(plan->slabs);
  free(plan->scratch);
  memset(plan, 0, sizeof(*plan));
}

cleave_status_t onednn_plan_adopt(onednn_plan_t *plan, onednn_slab_t *slab) {
  for (uint32_t k = 0; k < plan->slab_count; k++) {
    if (plan->slabs[k] == slab) {
      onednn_slab_release(slab);
      return CLEAVE_OK;
    }
  }
  void *items = plan->slabs;
  bool fits = grow(&items, &plan->slab_capacity, plan->slab_count, sizeof(onednn_slab_t *));
  plan->slabs = items;
  if (!fits) {
    onednn_slab_release(slab);
    return onednn_plan_out_of_memory(plan);
  }
  plan->slabs[plan->slab_count++] = slab;
  return CLEAVE_OK;
}

bool onednn_plan_is_constant(const onednn_plan_t *plan, const onednn_tensor_t *tensor) {
  return plan->buffers[tensor->buffer].place == ONEDNN_CONSTANT;
}

// "conv+relu nChw16c jit:avx512_core": what ran, where its result lies, and how.
static char *make_label(const onednn_plan_t *plan, const_dnnl_primitive_desc_t description,
                        const char *what) {
  char layout[64] = "";
  char text[192];
  onednn_layout_t result;
  if (onednn_query_layout(description, dnnl_query_dst_md, &result)) {
    onednn_layout_text(&result, layout, sizeof(layout));
  }
  (void)snprintf(text, sizeof(text), "%s %s %s", what, layout, onednn_implementation(description));
  return kernel_arena_text(plan->arena, text);
}

static void touch(onednn_plan_t *plan, uint32_t buffer, uint32_t step) {
  onednn_buffer_t *b = &plan->buffers[buffer];
  b->first_step = b->first_step == CLEAVE_INDEX_NONE ? step : b->first_step;
  b->last_step = step;
}

// Appends the step with its arguments, scratch memory behind them if it needs any.
static cleave_status_t append_step(onednn_plan_t *plan, const onednn_step_t *step,
                                   const onednn_argument_t *arguments, const onednn_layout_t *scratch) {
  size_t scratch_bytes = scratch != NULL ? onednn_md_bytes(scratch) : 0;
  void *items = plan->steps;
  bool fits = grow(&items, &plan->step_capacity, plan->step_count, sizeof(onednn_step_t));
  uint32_t count = step->argument_count;
  plan->steps = items;
  onednn_argument_t *copy = kernel_arena_allocate(plan->arena, (size_t)count + 1, sizeof(onednn_argument_t));
  if (!fits || copy == NULL || step->label == NULL) {
    return onednn_plan_out_of_memory(plan);
  }
  memcpy(copy, arguments, count * sizeof(onednn_argument_t));
  if (scratch_bytes > 0) {
    copy[count].name = DNNL_ARG_SCRATCHPAD;
    copy[count++].tensor = (onednn_tensor_t){.layout = *scratch, .buffer = plan->scratchpad, .offset = 0};
    onednn_buffer_t *shared = &plan->buffers[plan->scratchpad];
    shared->bytes = shared->bytes < scratch_bytes ? scratch_bytes : shared->bytes;
  }
  for (uint32_t k = 0; k < count; k++) {
    touch(plan, copy[k].tensor.buffer, plan->step_count);
  }
  onednn_step_t *added = &plan->steps[plan->step_count++];
  *added = *step;
  added->arguments = copy;
  added->argument_count = count;
  added->kernel = plan->kernel;
  added->serial = onednn_plan_form(plan).serial != 0;
  added->fusion =
      step->node != CLEAVE_INDEX_NONE ? plan->region->nodes[step->node].fusion : CLEAVE_INDEX_NONE;
  return CLEAVE_OK;
}

cleave_status_t onednn_plan_step(onednn_plan_t *plan, dnnl_primitive_desc_t description,
                                 const onednn_argument_t *arguments, uint32_t count, uint32_t node,
                                 const char *what) {
  onednn_layout_t scratch;
  bool needs_scratch = onednn_query_layout(description, dnnl_query_scratchpad_md, &scratch);
  bool has_scratch = needs_scratch && onednn_md_bytes(&scratch) > 0;
  onednn_step_t step = {.node = node,
                        .argument_count = count,
                        .untidy = has_scratch && onednn_reads_scratch(description),
                        .label = make_label(plan, description, what)};
  if (!onednn_making_add(&plan->making, description, omp_get_max_threads(), step.label, &step.made)) {
    return onednn_plan_out_of_memory(plan);
  }
  return append_step(plan, &step, arguments, has_scratch ? &scratch : NULL);
}

cleave_status_t onednn_plan_loop(onednn_plan_t *plan, const onednn_loop_t *loop,
                                 const onednn_argument_t *arguments, uint32_t count, uint32_t node,
                                 const char *label) {
  onednn_loop_t *copy = kernel_arena_allocate(plan->arena, 1, sizeof(*copy));
  if (copy == NULL) {
    return onednn_plan_out_of_memory(plan);
  }
  *copy = *loop;
  onednn_step_t step = {.made = CLEAVE_INDEX_NONE,
                        .loop = copy,
                        .node = node,
                        .argument_count = count,
                        .label = kernel_arena_text(plan->arena, label)};
  return append_step(plan, &step, arguments, NULL);
}

void onednn_plan_scratch(onednn_plan_t *plan, size_t bytes, onednn_tensor_t *out) {
  onednn_shape_t shape = {.rank = 1, .dims = {(int64_t)(bytes / sizeof(float))}};
  onednn_buffer_t *shared = &plan->buffers[plan->scratchpad];
  shared->bytes = shared->bytes < bytes ? bytes : shared->bytes;
  *out = (onednn_tensor_t){.layout = onednn_layout_plain(&shape), .buffer = plan->scratchpad};
}
