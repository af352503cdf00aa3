// SPDX-License-Identifier: Apache-2.0
// Tensors of a plan. An in-place write forgets every copy made of the buffer or into it.
#include "onednn/plan/tensors.h"

#include "onednn/plan/constants.h"
#include "onednn/plan/loop_step.h"
#include "onednn/plan/slots.h"

cleave_status_t onednn_plan_stored(onednn_plan_t *plan, uint32_t value, onednn_tensor_t *out) {
  onednn_binding_t *binding = &plan->bindings[value];
  if (!binding->bound && onednn_is_constant(&plan->region->values[value])) {
    ONEDNN_TRY(onednn_plan_load(plan, value, &binding->tensor));
    binding->bound = true;
  }
  if (!binding->bound) {
    return kernel_fail(plan->message, CLEAVE_ERROR_INTERNAL, "value '%s' is used before it is made",
                       plan->region->values[value].name);
  }
  *out = binding->tensor;
  return CLEAVE_OK;
}

cleave_status_t onednn_plan_fetch(onednn_plan_t *plan, uint32_t value, onednn_tensor_t *out) {
  onednn_tensor_t stored;
  ONEDNN_TRY(onednn_plan_stored(plan, value, &stored));
  return onednn_plan_typed(plan, &stored, dnnl_f32, out);
}

cleave_status_t onednn_plan_typed(onednn_plan_t *plan, const onednn_tensor_t *tensor, dnnl_data_type_t type,
                                  onednn_tensor_t *out) {
  onednn_layout_t layout = onednn_layout_typed(&tensor->layout, type);
  return onednn_plan_convert(plan, tensor, &layout, out);
}

static bool same_tensor(const onednn_tensor_t *a, const onednn_tensor_t *b) {
  return a->buffer == b->buffer && a->offset == b->offset && a->quantization == b->quantization &&
         onednn_layout_equal(&a->layout, &b->layout);
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

// Copies by a loop of our own, between tensors of one strided layout.
static cleave_status_t copy_by_loop(onednn_plan_t *plan, const onednn_tensor_t *from,
                                    const onednn_tensor_t *to) {
  onednn_shape_t shape = onednn_layout_shape(&from->layout);
  onednn_loop_t loop = {.run = onednn_loop_copy, .rank = shape.rank};
  onednn_loop_set_dims(loop.dims, &shape);
  for (int32_t d = 0; d < shape.rank; d++) {
    loop.strides[0][d] = from->layout.format_desc.blocking.strides[d];
  }
  return onednn_loop_step(plan, &loop, (const onednn_tensor_t *[]){from, to}, 2, CLEAVE_INDEX_NONE,
                          "copy loop");
}

// Are integers of the tensor to become the numbers that they stand for?
static bool dequantizes(const onednn_tensor_t *from, const onednn_layout_t *to) {
  return from->quantization != NULL && to->data_type != from->layout.data_type;
}

static cleave_status_t dequantize(onednn_plan_t *plan, const onednn_tensor_t *tensor, onednn_tensor_t *out);

cleave_status_t onednn_plan_copy(onednn_plan_t *plan, const onednn_tensor_t *from,
                                 const onednn_tensor_t *to) {
  if (dequantizes(from, &to->layout)) {
    onednn_tensor_t numbers;
    ONEDNN_TRY(dequantize(plan, from, &numbers));
    return onednn_plan_copy(plan, &numbers, to);
  }
  if (onednn_layout_equal(&from->layout, &to->layout) && !onednn_copies_well(&from->layout)) {
    return copy_by_loop(plan, from, to);
  }
  dnnl_primitive_desc_t description = NULL;
  onednn_argument_t arguments[2] = {{DNNL_ARG_FROM, *from}, {DNNL_ARG_TO, *to}};
  ONEDNN_TRY(reorder_description(plan, &from->layout, &to->layout, &description));
  return onednn_plan_step(plan, description, arguments, 2, CLEAVE_INDEX_NONE, "reorder");
}

// The copy of a tensor in another layout, or NULL if there is none yet.
static const onednn_variant_t *find_variant(const onednn_plan_t *plan, const onednn_tensor_t *tensor,
                                            const onednn_layout_t *layout) {
  const onednn_variant_t *variant = plan->buffers[tensor->buffer].variants;
  while (variant != NULL &&
         !(same_tensor(&variant->from, tensor) && onednn_layout_equal(&variant->to.layout, layout))) {
    variant = variant->next;
  }
  return variant;
}

static void add_variant(onednn_plan_t *plan, onednn_variant_t *variant) {
  onednn_buffer_t *from = &plan->buffers[variant->from.buffer];
  variant->next = from->variants;
  from->variants = variant;
  plan->buffers[variant->to.buffer].copy_of = variant->from.buffer;
}

cleave_status_t onednn_plan_convert(onednn_plan_t *plan, const onednn_tensor_t *tensor,
                                    const onednn_layout_t *layout, onednn_tensor_t *out) {
  if (onednn_layout_equal(&tensor->layout, layout)) {
    onednn_tensor_t same = *tensor;
    same.layout = *layout;
    *out = same;
    return CLEAVE_OK;
  }
  const onednn_variant_t *known = find_variant(plan, tensor, layout);
  if (known != NULL) {
    onednn_tensor_t same = known->to;
    same.layout = *layout;
    *out = same;
    return CLEAVE_OK;
  }
  if (dequantizes(tensor, layout)) {
    onednn_tensor_t numbers;
    ONEDNN_TRY(dequantize(plan, tensor, &numbers));
    return onednn_plan_convert(plan, &numbers, layout, out);
  }
  onednn_variant_t *variant = kernel_arena_allocate(plan->arena, 1, sizeof(*variant));
  if (variant == NULL) {
    return onednn_plan_out_of_memory(plan);
  }
  variant->from = *tensor;
  variant->to.layout = *layout;
  if (onednn_plan_is_constant(plan, tensor)) {
    ONEDNN_TRY(onednn_plan_pack(plan, tensor, &variant->to));
  } else {
    uint32_t live_until = plan->buffers[tensor->buffer].live_until;
    ONEDNN_TRY(
        onednn_plan_add_buffer(plan, ONEDNN_WORKSPACE, 0, onednn_md_bytes(layout), &variant->to.buffer));
    plan->buffers[variant->to.buffer].live_until = live_until;
    ONEDNN_TRY(onednn_plan_copy(plan, tensor, &variant->to));
  }
  variant->to.quantization = tensor->quantization;
  add_variant(plan, variant);
  *out = variant->to;
  return CLEAVE_OK;
}

// ---- numbers that are stored as 8-bit integers ----

typedef struct numbers {
  const unsigned char *data;
  const onednn_bits_t *bits; /* in place of data; or NULL */
  dnnl_data_type_t type;
  const onednn_quantization_t *quantization;
  onednn_shape_t shape;
} numbers_t;

static void fill_numbers(const void *context, float *out) {
  const numbers_t *numbers = context;
  const onednn_quantization_t *q = numbers->quantization;
  int64_t count = onednn_shape_count(&numbers->shape);
  for (int64_t k = 0; k < count; k++) {
    int64_t at = onednn_quantization_index(q, &numbers->shape, k);
    int32_t zero = q->zeros != NULL ? q->zeros[at] : q->zero_point;
    int32_t integer = numbers->bits != NULL      ? onednn_bits_at(numbers->bits, k)
                      : numbers->type == dnnl_s8 ? (int32_t)(signed char)numbers->data[k]
                                                 : (int32_t)numbers->data[k];
    out[k] = (float)(integer - zero) * (q->scales != NULL ? q->scales[at] : q->scale);
  }
}

// A constant, as the model has it; made when it is packed.
static cleave_status_t dequantize_constant(onednn_plan_t *plan, const onednn_tensor_t *tensor,
                                           onednn_tensor_t *out) {
  const onednn_buffer_t *buffer = &plan->buffers[tensor->buffer];
  const onednn_quantization_t *q = tensor->quantization;
  onednn_shape_t shape = onednn_layout_shape(&tensor->layout);
  onednn_layout_t plain = onednn_layout_plain(&shape);
  numbers_t *numbers = kernel_arena_allocate(plan->arena, 1, sizeof(*numbers));
  if (numbers == NULL) {
    return onednn_plan_out_of_memory(plan);
  }
  *numbers = (numbers_t){.data = buffer->data,
                         .bits = onednn_buffer_bits(buffer),
                         .type = tensor->layout.data_type,
                         .quantization = q,
                         .shape = shape};
  onednn_content_t content = buffer->content;
  const cleave_value_view_t *source = buffer->source;
  content = onednn_content_mix(&content, &q->scale, sizeof(q->scale));
  content = onednn_content_mix(&content, &q->zero_point, sizeof(q->zero_point));
  content = onednn_content_mix(&content, &q->block, sizeof(q->block));
  if (q->scales != NULL) {
    content = onednn_content_mix(&content, q->scales, (size_t)q->count * sizeof(float));
  }
  if (q->zeros != NULL) {
    content = onednn_content_mix(&content, q->zeros, (size_t)q->count * sizeof(int32_t));
  }
  ONEDNN_TRY(onednn_plan_lazy(plan, &plain, &content, fill_numbers, numbers, out));
  plan->buffers[out->buffer].source = source;
  return CLEAVE_OK;
}

// Float32, in the same layout unless that has gaps or padding; once for all who ask.
static cleave_status_t dequantize(onednn_plan_t *plan, const onednn_tensor_t *tensor, onednn_tensor_t *out) {
  const onednn_buffer_t *buffer = &plan->buffers[tensor->buffer];
  bool constant = buffer->place == ONEDNN_CONSTANT &&
                  (buffer->data != NULL || onednn_buffer_bits(buffer) != NULL) && tensor->offset == 0 &&
                  onednn_layout_is_plain(&tensor->layout);
  if (!constant && tensor->quantization->scales != NULL) {
    return kernel_fail(plan->message, CLEAVE_ERROR_UNSUPPORTED,
                       "region '%s': a constant with a scale per index of an axis is moved before it is used",
                       plan->region->name);
  }
  onednn_tensor_t dense = *tensor;
  if (!onednn_layout_is_dense(&dense.layout)) {
    ONEDNN_TRY(onednn_plan_plain(plan, tensor, &dense));
  }
  onednn_layout_t layout = onednn_layout_typed(&dense.layout, dnnl_f32);
  const onednn_variant_t *known = find_variant(plan, &dense, &layout);
  if (known != NULL) {
    *out = known->to;
    return CLEAVE_OK;
  }
  onednn_variant_t *variant = kernel_arena_allocate(plan->arena, 1, sizeof(*variant));
  if (variant == NULL) {
    return onednn_plan_out_of_memory(plan);
  }
  variant->from = dense;
  variant->to.layout = layout;
  if (constant) {
    ONEDNN_TRY(dequantize_constant(plan, &dense, &variant->to));
  } else {
    uint32_t live_until = plan->buffers[dense.buffer].live_until;
    ONEDNN_TRY(
        onednn_plan_add_buffer(plan, ONEDNN_WORKSPACE, 0, onednn_md_bytes(&layout), &variant->to.buffer));
    plan->buffers[variant->to.buffer].live_until = live_until;
    const onednn_quantization_t *q = dense.quantization;
    const onednn_bytes_loop_t bytes = {.operands = {onednn_bytes_of(&dense, q->scale, (float)q->zero_point)}};
    ONEDNN_TRY(onednn_bytes_step(plan, onednn_loop_dequantize, &bytes,
                                 (const onednn_tensor_t *[]){&dense, &variant->to}, 2, CLEAVE_INDEX_NONE,
                                 "dequantize loop"));
  }
  add_variant(plan, variant);
  *out = variant->to;
  return CLEAVE_OK;
}

cleave_status_t onednn_plan_operands(onednn_plan_t *plan, const_dnnl_primitive_desc_t description,
                                     const onednn_tensor_t *const operands[3], onednn_argument_t *out,
                                     uint32_t *out_count) {
  static const dnnl_query_t queries[] = {dnnl_query_src_md, dnnl_query_weights_md};
  static const int names[] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS};
  for (uint32_t k = 0; k < 2; k++) {
    onednn_layout_t layout;
    if (!onednn_query_layout(description, queries[k], &layout)) {
      return onednn_check(dnnl_runtime_error, "the layouts of a primitive", plan->message);
    }
    out[k].name = names[k];
    ONEDNN_TRY(onednn_plan_convert(plan, operands[k], &layout, &out[k].tensor));
  }
  *out_count = 2;
  if (operands[2] != NULL) {
    out[(*out_count)++] = (onednn_argument_t){.name = DNNL_ARG_BIAS, .tensor = *operands[2]};
  }
  return CLEAVE_OK;
}

cleave_status_t onednn_plan_plain(onednn_plan_t *plan, const onednn_tensor_t *tensor, onednn_tensor_t *out) {
  onednn_shape_t shape = onednn_layout_shape(&tensor->layout);
  onednn_layout_t plain = onednn_layout_plain(&shape);
  plain = onednn_layout_typed(&plain, tensor->layout.data_type);
  return onednn_plan_convert(plan, tensor, &plain, out);
}

cleave_status_t onednn_plan_reshape(onednn_plan_t *plan, const onednn_tensor_t *tensor,
                                    const onednn_shape_t *shape, onednn_tensor_t *out) {
  onednn_tensor_t view = *tensor;
  onednn_shape_t own = onednn_layout_shape(&tensor->layout);
  if (onednn_shape_count(&own) != onednn_shape_count(shape)) {
    return kernel_fail(plan->message, CLEAVE_ERROR_SHAPE, "region '%s': a view of %lld element%s as %lld",
                       plan->region->name, (long long)onednn_shape_count(&own),
                       KERNEL_PLURAL(onednn_shape_count(&own)), (long long)onednn_shape_count(shape));
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
    view.layout = onednn_layout_typed(&view.layout, tensor->layout.data_type);
  }
  *out = view;
  return CLEAVE_OK;
}

onednn_layout_t onednn_plan_wanted(const onednn_plan_t *plan, uint32_t value) {
  onednn_shape_t shape = onednn_plan_shape(plan, value);
  const onednn_binding_t *binding = &plan->bindings[value];
  onednn_layout_t layout = binding->preferred == ONEDNN_PREFER_ORDER
                               ? onednn_layout_ordered(&shape, binding->order)
                               : onednn_layout_plain(&shape);
  return onednn_layout_typed(&layout, onednn_plan_type(plan, value));
}

// A result in its slot of a Concat. `*made` is false, and nothing done, if the value has no slot that fits
// the layout. The result of the Concat, whose memory is made here, may have a slot in another one.
static cleave_status_t make_in_slot(onednn_plan_t *plan, uint32_t value, const onednn_layout_t *layout,
                                    onednn_tensor_t *out, bool *made) {
  onednn_binding_t *binding = &plan->bindings[value];
  onednn_shape_t own = onednn_layout_shape(layout);
  onednn_shape_t shape = onednn_plan_shape(plan, value);
  onednn_layout_t viewed = *layout;
  size_t step = 0;
  *made = false;
  if (binding->slot_of == CLEAVE_INDEX_NONE ||
      (!onednn_shape_equal(&own, &shape) && !onednn_layout_reshape(layout, &shape, &viewed)) ||
      !onednn_slot_divides(&viewed, binding->slot_axis, binding->slot_start, &step)) {
    return CLEAVE_OK;
  }
  onednn_binding_t *whole = &plan->bindings[binding->slot_of];
  onednn_shape_t all = onednn_plan_shape(plan, binding->slot_of);
  int64_t block = onednn_slot_block(&viewed);
  onednn_layout_t wanted = onednn_slot_layout(block, &all, layout->data_type);
  if (whole->slot_buffer == CLEAVE_INDEX_NONE) {
    onednn_tensor_t target;
    if (block > 1 && all.dims[1] % block != 0) {
      return CLEAVE_OK;
    }
    ONEDNN_TRY(onednn_plan_make(plan, binding->slot_of, &wanted, &target));
    whole->slot_buffer = target.buffer;
    whole->slot_offset = target.offset;
    whole->slot_layout = wanted;
    plan->buffers[target.buffer].live_until = whole->last_use;
  }
  if (!onednn_layout_equal(&whole->slot_layout, &wanted)) {
    return CLEAVE_OK;
  }
  out->layout = *layout;
  out->quantization = NULL;
  out->buffer = whole->slot_buffer;
  out->offset = whole->slot_offset + (size_t)binding->slot_start * step;
  *made = true;
  return CLEAVE_OK;
}

bool onednn_plan_has_place(const onednn_plan_t *plan, uint32_t value) {
  return value != CLEAVE_INDEX_NONE && (plan->bindings[value].home != CLEAVE_INDEX_NONE ||
                                        plan->bindings[value].slot_of != CLEAVE_INDEX_NONE);
}

cleave_status_t onednn_plan_make(onednn_plan_t *plan, uint32_t value, const onednn_layout_t *layout,
                                 onednn_tensor_t *out) {
  onednn_place_t place = ONEDNN_WORKSPACE;
  uint32_t index = 0;
  bool made = false;
  if (value != CLEAVE_INDEX_NONE) {
    ONEDNN_TRY(make_in_slot(plan, value, layout, out, &made));
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
  out->quantization = NULL;
  return onednn_plan_add_buffer(plan, place, index, onednn_md_bytes(layout), &out->buffer);
}

bool onednn_plan_is_free(const onednn_plan_t *plan, const onednn_tensor_t *tensor) {
  const onednn_buffer_t *buffer = &plan->buffers[tensor->buffer];
  return buffer->place == ONEDNN_WORKSPACE && buffer->live_until <= plan->kernel;
}

void onednn_plan_overwrite(onednn_plan_t *plan, const onednn_tensor_t *tensor) {
  onednn_buffer_t *buffer = &plan->buffers[tensor->buffer];
  buffer->variants = NULL;
  if (buffer->copy_of == CLEAVE_INDEX_NONE) {
    return;
  }
  onednn_variant_t **link = &plan->buffers[buffer->copy_of].variants;
  while (*link != NULL && (*link)->to.buffer != tensor->buffer) {
    link = &(*link)->next;
  }
  if (*link != NULL) {
    *link = (*link)->next;
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
  onednn_tensor_t target = {.layout = onednn_layout_plain(&shape)};
  target.layout = onednn_layout_typed(&target.layout, onednn_plan_type(plan, value));
  ONEDNN_TRY(onednn_plan_add_buffer(plan, ONEDNN_OUTPUT, binding->output, 0, &target.buffer));
  return onednn_plan_copy(plan, &binding->tensor, &target);
}
