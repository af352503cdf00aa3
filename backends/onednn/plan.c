// SPDX-License-Identifier: Apache-2.0
// Buffers, tensors and steps of a plan. Every step notes the buffers it touches, so that lifetimes are exact
// by construction; an in-place write forgets every copy made of the buffer or into it.
#include "plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "winograd.h"

static cleave_status_t out_of_memory(const onednn_plan_t *plan) {
  return onednn_fail(plan->message, CLEAVE_ERROR_OUT_OF_MEMORY, "region '%s': out of memory while compiling",
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

static cleave_status_t add_buffer(onednn_plan_t *plan, onednn_place_t place, uint32_t index, size_t bytes,
                                  uint32_t *out) {
  void *items = plan->buffers;
  bool fits = grow(&items, &plan->buffer_capacity, plan->buffer_count, sizeof(onednn_buffer_t));
  plan->buffers = items;
  if (!fits) {
    return out_of_memory(plan);
  }
  *out = plan->buffer_count++;
  plan->buffers[*out] = (onednn_buffer_t){.place = place,
                                          .index = index,
                                          .bytes = bytes,
                                          .first_step = CLEAVE_INDEX_NONE,
                                          .last_step = 0,
                                          .live_until = plan->kernel};
  return CLEAVE_OK;
}

onednn_shape_t onednn_plan_shape(const onednn_plan_t *plan, uint32_t value) {
  onednn_shape_t shape = onednn_shape_of(&plan->region->values[value]);
  return shape.rank == 0 ? onednn_shape_pad(&shape, 1) : shape;
}

static cleave_status_t bind_inputs(onednn_plan_t *plan) {
  for (uint32_t k = 0; k < plan->region->input_count; k++) {
    uint32_t value = plan->region->inputs[k];
    if (value >= plan->region->value_count) {
      return onednn_fail(plan->message, CLEAVE_ERROR_INVALID_ARGUMENT, "region '%s': input %u is no value",
                         plan->region->name, (unsigned)k);
    }
    const cleave_value_view_t *view = &plan->region->values[value];
    if (view->tensor.dtype != CLEAVE_DTYPE_F32) {
      continue;
    }
    ONEDNN_TRY(onednn_check_size(view, plan->message));
    onednn_binding_t *binding = &plan->bindings[value];
    onednn_shape_t shape = onednn_plan_shape(plan, value);
    binding->tensor.layout = onednn_layout_plain(&shape);
    binding->tensor.offset = 0;
    ONEDNN_TRY(add_buffer(plan, ONEDNN_INPUT, k, 0, &binding->tensor.buffer));
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
  plan->scratch_buffer = CLEAVE_INDEX_NONE;
  plan->region = analysis->region;
  plan->analysis = analysis;
  plan->arena = analysis->arena;
  plan->message = analysis->message;
  plan->stream = stream;
  plan->bindings = onednn_arena_allocate(plan->arena, plan->region->value_count, sizeof(onednn_binding_t));
  if (plan->bindings == NULL) {
    return out_of_memory(plan);
  }
  for (uint32_t v = 0; v < plan->region->value_count; v++) {
    int64_t count = cleave_view_element_count(&plan->region->values[v].tensor);
    plan->constant_bytes +=
        onednn_is_constant(&plan->region->values[v]) && count > 0 && (uint64_t)count < SIZE_MAX / 64
            ? (size_t)count * sizeof(float)
            : 0;
  }
  for (uint32_t n = 0; n < plan->region->node_count; n++) {
    const cleave_node_view_t *node = &plan->region->nodes[n];
    for (uint32_t k = 0; k < node->output_count; k++) {
      if (node->outputs[k] != CLEAVE_INDEX_NONE &&
          plan->region->values[node->outputs[k]].tensor.dtype == CLEAVE_DTYPE_F32) {
        ONEDNN_TRY(onednn_check_size(&plan->region->values[node->outputs[k]], plan->message));
      }
    }
  }
  ONEDNN_TRY(onednn_plan_wants(plan));
  ONEDNN_TRY(add_buffer(plan, ONEDNN_WORKSPACE, 0, 0, &plan->scratchpad));
  return bind_inputs(plan);
}

void onednn_plan_deinit(onednn_plan_t *plan) {
  for (uint32_t k = 0; k < plan->step_count; k++) {
    if (plan->steps[k].primitive != NULL) {
      (void)dnnl_primitive_destroy(plan->steps[k].primitive);
    }
  }
  for (uint32_t k = 0; k < plan->slab_count; k++) {
    onednn_slab_release(plan->slabs[k]);
  }
  free(plan->steps);
  free(plan->buffers);
  free(plan->slabs);
  free(plan->scratch);
  memset(plan, 0, sizeof(*plan));
}

static cleave_status_t add_constant(onednn_plan_t *plan, const onednn_layout_t *layout, onednn_tensor_t *out,
                                    float **data) {
  size_t bytes = onednn_md_bytes(layout);
  onednn_slab_t *slab = NULL;
  void *block = onednn_plan_take(plan, bytes, &slab);
  if (block == NULL) {
    return out_of_memory(plan);
  }
  out->layout = *layout;
  out->offset = 0;
  ONEDNN_TRY(add_buffer(plan, ONEDNN_CONSTANT, 0, bytes, &out->buffer));
  plan->buffers[out->buffer].data = block;
  plan->buffers[out->buffer].slab = slab;
  *data = block;
  return CLEAVE_OK;
}

cleave_status_t onednn_plan_constant(onednn_plan_t *plan, const onednn_layout_t *layout, onednn_tensor_t *out,
                                     float **data) {
  ONEDNN_TRY(add_constant(plan, layout, out, data));
  memset(*data, 0, onednn_md_bytes(layout));
  return CLEAVE_OK;
}

cleave_status_t onednn_plan_lazy(onednn_plan_t *plan, const onednn_layout_t *layout,
                                 const onednn_content_t *content, onednn_fill_fn_t fill, const void *context,
                                 onednn_tensor_t *out) {
  out->layout = *layout;
  out->offset = 0;
  ONEDNN_TRY(add_buffer(plan, ONEDNN_CONSTANT, 0, onednn_md_bytes(layout), &out->buffer));
  plan->buffers[out->buffer].content = *content;
  plan->buffers[out->buffer].fill = fill;
  plan->buffers[out->buffer].fill_context = context;
  return CLEAVE_OK;
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
    return out_of_memory(plan);
  }
  plan->slabs[plan->slab_count++] = slab;
  return CLEAVE_OK;
}

static void fill_floats(const void *context, float *out) {
  const cleave_value_view_t *view = context;
  onednn_floats(view, out, (size_t)cleave_view_element_count(&view->tensor));
}

// A constant of the model: used where it lies, unless it is not aligned to its elements. One that expansion
// made lives no longer than the analysis.
static cleave_status_t load_constant(onednn_plan_t *plan, uint32_t value, onednn_tensor_t *out) {
  const cleave_value_view_t *view = &plan->region->values[value];
  if (view->tensor.dtype != CLEAVE_DTYPE_F32) {
    return onednn_fail(plan->message, CLEAVE_ERROR_UNSUPPORTED, "constant '%s' is not float32", view->name);
  }
  ONEDNN_TRY(onednn_check_size(view, plan->message));
  onednn_shape_t shape = onednn_plan_shape(plan, value);
  onednn_layout_t layout = onednn_layout_plain(&shape);
  onednn_content_t content = onednn_content_of(view);
  bool passes = value >= plan->analysis->expansion.given_values;
  if (passes || (uintptr_t)view->tensor.data % sizeof(float) != 0) {
    ONEDNN_TRY(onednn_plan_lazy(plan, &layout, &content, fill_floats, view, out));
    plan->buffers[out->buffer].source = passes ? NULL : view;
    return CLEAVE_OK;
  }
  out->layout = layout;
  out->offset = 0;
  ONEDNN_TRY(add_buffer(plan, ONEDNN_CONSTANT, 0, onednn_md_bytes(&layout), &out->buffer));
  // oneDNN takes one kind of pointer for reading and writing; no step writes to a constant.
  plan->buffers[out->buffer].data = (void *)(uintptr_t)view->tensor.data;
  plan->buffers[out->buffer].source = view;
  plan->buffers[out->buffer].content = content;
  return CLEAVE_OK;
}

cleave_status_t onednn_plan_fetch(onednn_plan_t *plan, uint32_t value, onednn_tensor_t *out) {
  onednn_binding_t *binding = &plan->bindings[value];
  if (!binding->bound && onednn_is_constant(&plan->region->values[value])) {
    ONEDNN_TRY(load_constant(plan, value, &binding->tensor));
    binding->bound = true;
  }
  if (!binding->bound) {
    return onednn_fail(plan->message, CLEAVE_ERROR_INTERNAL, "value '%s' is used before it is made",
                       plan->region->values[value].name);
  }
  *out = binding->tensor;
  return CLEAVE_OK;
}

bool onednn_plan_is_constant(const onednn_plan_t *plan, const onednn_tensor_t *tensor) {
  return plan->buffers[tensor->buffer].place == ONEDNN_CONSTANT;
}

static bool same_tensor(const onednn_tensor_t *a, const onednn_tensor_t *b) {
  return a->buffer == b->buffer && a->offset == b->offset && onednn_layout_equal(&a->layout, &b->layout);
}

static cleave_status_t reorder_description(onednn_plan_t *plan, const onednn_layout_t *from,
                                           const onednn_layout_t *to, dnnl_primitive_desc_t *out) {
  dnnl_primitive_attr_t attributes = NULL;
  ONEDNN_TRY(onednn_check(dnnl_primitive_attr_create(&attributes), "reorder", plan->message));
  dnnl_status_t status = dnnl_primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user);
  if (status == dnnl_success) {
    const onednn_maker_t maker = {.engine = plan->engine, .attributes = attributes, .out = out};
    status = onednn_make_reorder(&maker, from, to);
  }
  (void)dnnl_primitive_attr_destroy(attributes);
  return onednn_check(status, "reorder", plan->message);
}

// Runs a reorder of constants, whose data are given, at once.
static cleave_status_t reorder_now(onednn_plan_t *plan, const onednn_tensor_t *from, void *const data[2],
                                   const onednn_tensor_t *to) {
  dnnl_primitive_desc_t description = NULL;
  dnnl_primitive_t primitive = NULL;
  dnnl_memory_t memories[2] = {NULL, NULL};
  const onednn_tensor_t *tensors[2] = {from, to};
  const onednn_maker_t maker = {.engine = plan->engine, .out = &description};
  dnnl_status_t status = onednn_make_reorder(&maker, &from->layout, &to->layout);
  if (status == dnnl_success) {
    status = dnnl_primitive_create(&primitive, description);
  }
  for (int k = 0; k < 2 && status == dnnl_success; k++) {
    status = onednn_memory_create(&memories[k], &tensors[k]->layout, plan->engine, data[k]);
  }
  if (status == dnnl_success) {
    dnnl_exec_arg_t arguments[2] = {{DNNL_ARG_FROM, memories[0]}, {DNNL_ARG_TO, memories[1]}};
    status = dnnl_primitive_execute(primitive, plan->stream, 2, arguments);
  }
  if (status == dnnl_success) {
    status = dnnl_stream_wait(plan->stream);
  }
  for (int k = 0; k < 2; k++) {
    if (memories[k] != NULL) {
      (void)dnnl_memory_destroy(memories[k]);
    }
  }
  if (primitive != NULL) {
    (void)dnnl_primitive_destroy(primitive);
  }
  if (description != NULL) {
    (void)dnnl_primitive_desc_destroy(description);
  }
  return onednn_check(status, "packing a constant", plan->message);
}

static cleave_status_t pack_now(onednn_plan_t *plan, const onednn_tensor_t *from, const onednn_tensor_t *to) {
  ONEDNN_TRY(onednn_plan_materialise(plan, from->buffer, false));
  const onednn_buffer_t *buffer = &plan->buffers[from->buffer];
  void *source = buffer->data != NULL ? buffer->data : plan->scratch;
  void *const data[2] = {(char *)source + from->offset, plan->buffers[to->buffer].data};
  if (onednn_winograd_packs(&from->layout, &to->layout)) {
    onednn_winograd_pack(plan->host, plan->threads, &to->layout, data[0], data[1]);
  } else {
    ONEDNN_TRY(reorder_now(plan, from, data, to));
  }
  onednn_plan_leave_source(plan, from->buffer);
  return CLEAVE_OK;
}

cleave_status_t onednn_plan_copy(onednn_plan_t *plan, const onednn_tensor_t *from,
                                 const onednn_tensor_t *to) {
  if (onednn_layout_equal(&from->layout, &to->layout) && !onednn_copies_well(&from->layout)) {
    return onednn_emit_copy_loop(plan, from, to);
  }
  dnnl_primitive_desc_t description = NULL;
  onednn_argument_t arguments[2] = {{DNNL_ARG_FROM, *from}, {DNNL_ARG_TO, *to}};
  ONEDNN_TRY(reorder_description(plan, &from->layout, &to->layout, &description));
  return onednn_plan_step(plan, description, arguments, 2, CLEAVE_INDEX_NONE, "reorder");
}

// A constant in another layout: as some program has it already, or packed now.
static cleave_status_t pack(onednn_plan_t *plan, const onednn_tensor_t *from, onednn_tensor_t *to) {
  onednn_content_t content = onednn_content_layout(&plan->buffers[from->buffer].content, &from->layout);
  onednn_slab_t *slab = NULL;
  content = onednn_content_mix(&content, &from->offset, sizeof(from->offset));
  content = onednn_content_layout(&content, &to->layout);
  void *data = onednn_store_find(plan->store, &content, &slab);
  if (data == NULL) {
    float *fresh = NULL;
    ONEDNN_TRY(add_constant(plan, &to->layout, to, &fresh));  // a reorder writes all of it, padding too
    plan->buffers[to->buffer].content = content;
    return pack_now(plan, from, to);
  }
  ONEDNN_TRY(onednn_plan_adopt(plan, slab));
  to->offset = 0;
  ONEDNN_TRY(add_buffer(plan, ONEDNN_CONSTANT, 0, onednn_md_bytes(&to->layout), &to->buffer));
  plan->buffers[to->buffer].data = data;
  plan->buffers[to->buffer].slab = slab;
  plan->buffers[to->buffer].content = content;
  return CLEAVE_OK;
}

cleave_status_t onednn_plan_convert(onednn_plan_t *plan, const onednn_tensor_t *tensor,
                                    const onednn_layout_t *layout, onednn_tensor_t *out) {
  if (onednn_layout_equal(&tensor->layout, layout)) {
    onednn_tensor_t same = *tensor;
    same.layout = *layout;
    *out = same;
    return CLEAVE_OK;
  }
  for (const onednn_variant_t *v = plan->variants; v != NULL; v = v->next) {
    if (same_tensor(&v->from, tensor) && onednn_layout_equal(&v->to.layout, layout)) {
      onednn_tensor_t same = v->to;
      same.layout = *layout;
      *out = same;
      return CLEAVE_OK;
    }
  }
  onednn_variant_t *variant = onednn_arena_allocate(plan->arena, 1, sizeof(*variant));
  if (variant == NULL) {
    return out_of_memory(plan);
  }
  variant->from = *tensor;
  variant->to.layout = *layout;
  if (onednn_plan_is_constant(plan, tensor)) {
    ONEDNN_TRY(pack(plan, tensor, &variant->to));
  } else {
    uint32_t live_until = plan->buffers[tensor->buffer].live_until;
    ONEDNN_TRY(add_buffer(plan, ONEDNN_WORKSPACE, 0, onednn_md_bytes(layout), &variant->to.buffer));
    plan->buffers[variant->to.buffer].live_until = live_until;
    ONEDNN_TRY(onednn_plan_copy(plan, tensor, &variant->to));
  }
  variant->next = plan->variants;
  plan->variants = variant;
  *out = variant->to;
  return CLEAVE_OK;
}

cleave_status_t onednn_plan_plain(onednn_plan_t *plan, const onednn_tensor_t *tensor, onednn_tensor_t *out) {
  onednn_shape_t shape = onednn_layout_shape(&tensor->layout);
  onednn_layout_t plain = onednn_layout_plain(&shape);
  return onednn_plan_convert(plan, tensor, &plain, out);
}

cleave_status_t onednn_plan_reshape(onednn_plan_t *plan, const onednn_tensor_t *tensor,
                                    const onednn_shape_t *shape, onednn_tensor_t *out) {
  onednn_tensor_t view = *tensor;
  onednn_shape_t own = onednn_layout_shape(&tensor->layout);
  if (onednn_shape_count(&own) != onednn_shape_count(shape)) {
    return onednn_fail(plan->message, CLEAVE_ERROR_SHAPE, "region '%s': a view of %lld elements as %lld",
                       plan->region->name, (long long)onednn_shape_count(&own),
                       (long long)onednn_shape_count(shape));
  }
  if (onednn_shape_equal(&own, shape)) {
    *out = view;
    return CLEAVE_OK;
  }
  if (!onednn_layout_reshape(&tensor->layout, shape, &view.layout)) {
    onednn_tensor_t plain;
    ONEDNN_TRY(onednn_plan_plain(plan, tensor, &plain));
    view = plain;
    view.layout = onednn_layout_plain(shape);
  }
  *out = view;
  return CLEAVE_OK;
}

onednn_layout_t onednn_plan_wanted(const onednn_plan_t *plan, uint32_t value) {
  onednn_shape_t shape = onednn_plan_shape(plan, value);
  const onednn_binding_t *binding = &plan->bindings[value];
  return binding->want == ONEDNN_WANT_ORDER ? onednn_layout_ordered(&shape, binding->order)
                                            : onednn_layout_plain(&shape);
}

cleave_status_t onednn_plan_make(onednn_plan_t *plan, uint32_t value, const onednn_layout_t *layout,
                                 onednn_tensor_t *out) {
  onednn_place_t place = ONEDNN_WORKSPACE;
  uint32_t index = 0;
  bool made = false;
  if (value != CLEAVE_INDEX_NONE) {
    ONEDNN_TRY(onednn_slots_make(plan, value, layout, out, &made));
  }
  if (made) {
    return CLEAVE_OK;
  }
  if (value != CLEAVE_INDEX_NONE && plan->bindings[value].home != CLEAVE_INDEX_NONE) {
    onednn_layout_t wanted = onednn_plan_wanted(plan, value);
    onednn_shape_t shape = onednn_layout_shape(&wanted);
    onednn_layout_t viewed;
    if (onednn_layout_is_dense(layout) && onednn_layout_reshape(layout, &shape, &viewed) &&
        onednn_layout_equal(&viewed, &wanted)) {
      place = ONEDNN_OUTPUT;
      index = plan->bindings[value].home;
    }
  }
  out->layout = *layout;
  out->offset = 0;
  return add_buffer(plan, place, index, onednn_md_bytes(layout), &out->buffer);
}

bool onednn_plan_is_free(const onednn_plan_t *plan, const onednn_tensor_t *tensor) {
  const onednn_buffer_t *buffer = &plan->buffers[tensor->buffer];
  return buffer->place == ONEDNN_WORKSPACE && buffer->live_until <= plan->kernel;
}

void onednn_plan_overwrite(onednn_plan_t *plan, const onednn_tensor_t *tensor) {
  onednn_variant_t **link = &plan->variants;
  while (*link != NULL) {
    if ((*link)->from.buffer == tensor->buffer || (*link)->to.buffer == tensor->buffer) {
      *link = (*link)->next;
    } else {
      link = &(*link)->next;
    }
  }
}

cleave_status_t onednn_plan_bind(onednn_plan_t *plan, uint32_t value, const onednn_tensor_t *tensor) {
  onednn_binding_t *binding = &plan->bindings[value];
  onednn_shape_t shape = onednn_plan_shape(plan, value);
  ONEDNN_TRY(onednn_plan_reshape(plan, tensor, &shape, &binding->tensor));
  binding->bound = true;
  onednn_buffer_t *buffer = &plan->buffers[binding->tensor.buffer];
  if (buffer->live_until < binding->last_use) {
    buffer->live_until = binding->last_use;
  }
  if (binding->output == CLEAVE_INDEX_NONE ||
      (buffer->place == ONEDNN_OUTPUT && buffer->index == binding->output && binding->tensor.offset == 0 &&
       onednn_layout_is_plain(&binding->tensor.layout))) {
    return CLEAVE_OK;
  }
  onednn_tensor_t target = {.layout = onednn_layout_plain(&shape), .offset = 0};
  ONEDNN_TRY(add_buffer(plan, ONEDNN_OUTPUT, binding->output, 0, &target.buffer));
  return onednn_plan_copy(plan, &binding->tensor, &target);
}

// "conv+relu nChw16c jit:avx512_core": what ran, where its result lies, and how.
static char *make_label(const onednn_plan_t *plan, const_dnnl_primitive_desc_t description,
                        const char *what) {
  const char *implementation = "";
  char layout[64] = "";
  char text[192];
  onednn_layout_t result;
  if (dnnl_primitive_desc_query(description, dnnl_query_impl_info_str, 0, &implementation) != dnnl_success) {
    implementation = "";
  }
  if (onednn_query_layout(description, dnnl_query_dst_md, &result)) {
    onednn_layout_text(&result, layout, sizeof(layout));
  }
  (void)snprintf(text, sizeof(text), "%s %s %s", what, layout, implementation);
  return onednn_arena_text(plan->arena, text);
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
  onednn_argument_t *copy = onednn_arena_allocate(plan->arena, (size_t)count + 1, sizeof(onednn_argument_t));
  if (!fits || copy == NULL || step->label == NULL) {
    return out_of_memory(plan);
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
  added->fusion =
      step->node != CLEAVE_INDEX_NONE ? plan->region->nodes[step->node].fusion : CLEAVE_INDEX_NONE;
  return CLEAVE_OK;
}

cleave_status_t onednn_plan_step(onednn_plan_t *plan, dnnl_primitive_desc_t description,
                                 const onednn_argument_t *arguments, uint32_t count, uint32_t node,
                                 const char *what) {
  onednn_layout_t scratch;
  bool needs_scratch = onednn_query_layout(description, dnnl_query_scratchpad_md, &scratch);
  onednn_step_t step = {.node = node, .argument_count = count, .label = make_label(plan, description, what)};
  cleave_status_t status =
      onednn_check(dnnl_primitive_create(&step.primitive, description), what, plan->message);
  if (status == CLEAVE_OK) {
    status = append_step(plan, &step, arguments, needs_scratch ? &scratch : NULL);
    if (status != CLEAVE_OK) {
      (void)dnnl_primitive_destroy(step.primitive);
    }
  }
  (void)dnnl_primitive_desc_destroy(description);
  return status;
}

cleave_status_t onednn_plan_loop(onednn_plan_t *plan, const onednn_loop_t *loop,
                                 const onednn_argument_t *arguments, uint32_t count, uint32_t node,
                                 const char *label) {
  onednn_loop_t *copy = onednn_arena_allocate(plan->arena, 1, sizeof(*copy));
  if (copy == NULL) {
    return out_of_memory(plan);
  }
  *copy = *loop;
  onednn_step_t step = {
      .loop = copy, .node = node, .argument_count = count, .label = onednn_arena_text(plan->arena, label)};
  return append_step(plan, &step, arguments, NULL);
}

void onednn_plan_scratch(onednn_plan_t *plan, size_t bytes, onednn_tensor_t *out) {
  onednn_shape_t shape = {.rank = 1, .dims = {(int64_t)(bytes / sizeof(float))}};
  onednn_buffer_t *shared = &plan->buffers[plan->scratchpad];
  shared->bytes = shared->bytes < bytes ? bytes : shared->bytes;
  *out = (onednn_tensor_t){.layout = onednn_layout_plain(&shape), .buffer = plan->scratchpad};
}
