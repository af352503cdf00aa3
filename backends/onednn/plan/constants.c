// SPDX-License-Identifier: Apache-2.0
// Constants. One that is read only to be packed is made in scratch memory, and not at all if some program has
// it packed already.
#include "onednn/plan/constants.h"

#include <string.h>

#include "onednn/plan/weights_memory.h"
#include "onednn/weights/panels.h"
#include "onednn/weights/winograd.h"

static cleave_status_t add_constant(onednn_plan_t *plan, const onednn_layout_t *layout,
                                    onednn_tensor_t *out) {
  out->layout = *layout;
  out->offset = 0;
  out->quantization = NULL;
  return onednn_plan_add_buffer(plan, ONEDNN_CONSTANT, 0, onednn_md_bytes(layout), &out->buffer);
}

// Memory for the content, of any kind.
static cleave_status_t take_memory(onednn_plan_t *plan, onednn_buffer_t *buffer) {
  buffer->data = onednn_plan_take(plan, buffer->bytes, &buffer->slab);
  return buffer->data == NULL ? onednn_plan_out_of_memory(plan) : CLEAVE_OK;
}

cleave_status_t onednn_plan_constant(onednn_plan_t *plan, const onednn_layout_t *layout, onednn_tensor_t *out,
                                     float **data) {
  ONEDNN_TRY(add_constant(plan, layout, out));
  onednn_buffer_t *buffer = &plan->buffers[out->buffer];
  ONEDNN_TRY(take_memory(plan, buffer));
  *data = buffer->data;
  memset(*data, 0, buffer->bytes);
  return CLEAVE_OK;
}

cleave_status_t onednn_plan_lazy(onednn_plan_t *plan, const onednn_layout_t *layout,
                                 const onednn_content_t *content, onednn_fill_fn_t fill, const void *context,
                                 onednn_tensor_t *out) {
  ONEDNN_TRY(add_constant(plan, layout, out));
  plan->buffers[out->buffer].content = *content;
  plan->buffers[out->buffer].fill = fill;
  plan->buffers[out->buffer].fill_context = context;
  return CLEAVE_OK;
}

static void fill_floats(const void *context, float *out) {
  const cleave_value_view_t *view = context;
  onednn_floats(view, out, (size_t)cleave_view_element_count(&view->tensor));
}

// A constant of the model: used where it lies, unless it is not aligned to its elements. One that expansion
// made lives no longer than the analysis.
cleave_status_t onednn_plan_load(onednn_plan_t *plan, uint32_t value, onednn_tensor_t *out) {
  const cleave_value_view_t *view = &plan->region->values[value];
  dnnl_data_type_t type = onednn_plan_type(plan, value);
  if (type == dnnl_data_type_undef) {
    return kernel_fail(plan->message, CLEAVE_ERROR_UNSUPPORTED,
                       "constant '%s': expected float32 or 8-bit integers", view->name);
  }
  ONEDNN_TRY(onednn_check_size(view, plan->message));
  onednn_shape_t shape = onednn_plan_shape(plan, value);
  onednn_layout_t layout = onednn_layout_plain(&shape);
  layout = onednn_layout_typed(&layout, type);
  onednn_content_t content = onednn_content_of(view);
  bool passes = value >= plan->analysis->expansion.given_values;
  if (passes || (uintptr_t)view->tensor.data % onednn_layout_element(&layout) != 0) {
    ONEDNN_TRY(onednn_plan_lazy(plan, &layout, &content, fill_floats, view, out));
    plan->buffers[out->buffer].source = passes ? NULL : view;
    return CLEAVE_OK;
  }
  ONEDNN_TRY(add_constant(plan, &layout, out));
  // oneDNN takes one kind of pointer for reading and writing; no step writes to a constant.
  plan->buffers[out->buffer].data = (void *)(uintptr_t)view->tensor.data;
  plan->buffers[out->buffer].source = view;
  plan->buffers[out->buffer].content = content;
  return CLEAVE_OK;
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
  } else if (onednn_panels_pack_from(&from->layout, &to->layout)) {
    onednn_panels_pack(plan->host, plan->threads, &from->layout, data[0], data[1]);
  } else {
    ONEDNN_TRY(reorder_now(plan, from, data, to));
  }
  onednn_plan_leave_source(plan, from->buffer);
  return CLEAVE_OK;
}

// What the constant is packed from and to, the same in every process.
static uint64_t packing_identity(const onednn_tensor_t *from, const onednn_layout_t *to) {
  onednn_content_t identity = {{1, 1}};
  identity = onednn_content_layout(&identity, &from->layout);
  identity = onednn_content_mix(&identity, &from->offset, sizeof(from->offset));
  identity = onednn_content_layout(&identity, to);
  return identity.key[0];
}

cleave_status_t onednn_plan_pack(onednn_plan_t *plan, const onednn_tensor_t *from, onednn_tensor_t *to) {
  onednn_content_t content = onednn_content_layout(&plan->buffers[from->buffer].content, &from->layout);
  content = onednn_content_mix(&content, &from->offset, sizeof(from->offset));
  content = onednn_content_layout(&content, &to->layout);
  const onednn_layout_t layout = to->layout;
  ONEDNN_TRY(add_constant(plan, &layout, to));
  plan->buffers[to->buffer].content = content;
  ONEDNN_TRY(onednn_plan_note_packing(plan, to->buffer, packing_identity(from, &layout)));
  onednn_buffer_t *buffer = &plan->buffers[to->buffer];
  if (buffer->data != NULL) {
    return CLEAVE_OK;
  }
  buffer->data = onednn_store_find(plan->store, &content, &buffer->slab);
  if (buffer->data != NULL) {
    return onednn_plan_adopt(plan, buffer->slab);
  }
  ONEDNN_TRY(take_memory(plan, buffer));  // a reorder writes all of it, padding too
  return pack_now(plan, from, to);
}
