// SPDX-License-Identifier: Apache-2.0
// Constants. One that is read only to be packed is made in scratch memory, and not at all if some program has
// it packed already.
#include "onednn/plan/constants.h"

#include <string.h>

#include "onednn/plan/weights_memory.h"
#include "onednn/weights/panels.h"
#include "onednn/weights/stretches.h"
#include "onednn/weights/winograd.h"

static const size_t small_bytes = 4 << 20;

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

// A constant of the model: used where it lies, unless its floats have 16 bits, it is not aligned to its
// elements, or so small that the system maps much more of the file around it. One that expansion made lives
// no longer than the analysis.
cleave_status_t onednn_plan_load(onednn_plan_t *plan, uint32_t value, onednn_tensor_t *out) {
  const cleave_value_view_t *view = &plan->region->values[value];
  bool is_short = onednn_is_short(view);
  dnnl_data_type_t type = is_short ? dnnl_f32 : onednn_plan_type(plan, value);
  if (type == dnnl_data_type_undef) {
    return kernel_fail(plan->message, CLEAVE_ERROR_UNSUPPORTED,
                       "constant '%s': expected float32, float16, bfloat16 or 8-bit integers", view->name);
  }
  ONEDNN_TRY(onednn_check_size(view, plan->message));
  onednn_shape_t shape = onednn_plan_shape(plan, value);
  onednn_layout_t layout = onednn_layout_plain(&shape);
  layout = onednn_layout_typed(&layout, type);
  onednn_content_t content = onednn_content_of(view);
  bool passes = value >= plan->analysis->expansion.given_values;
  bool is_small = type == dnnl_f32 && onednn_md_bytes(&layout) < small_bytes;
  if (passes || is_short || is_small || (uintptr_t)view->tensor.data % onednn_layout_element(&layout) != 0) {
    ONEDNN_TRY(onednn_plan_lazy(plan, &layout, &content, onednn_fill_floats, view, out));
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

static void fill_bytes(const void *context, float *out) {
  const onednn_bits_t *bits = context;
  unsigned char *bytes = (unsigned char *)out;
  for (int64_t k = 0; k < bits->rows * bits->count; k++) {
    bytes[k] = (unsigned char)onednn_bits_at(bits, k);
  }
}

cleave_status_t onednn_plan_unpack(onednn_plan_t *plan, const onednn_bits_t *bits, onednn_tensor_t *out) {
  onednn_shape_t shape = {.rank = 2};
  shape.dims[bits->is_transposed ? 1 : 0] = bits->rows;
  shape.dims[bits->is_transposed ? 0 : 1] = bits->count;
  onednn_layout_t layout = onednn_layout_plain(&shape);
  layout = onednn_layout_typed(&layout, bits->least > 0 ? dnnl_s8 : dnnl_u8);
  const int64_t key[] = {bits->rows, bits->count, bits->bits, bits->least, bits->is_transposed};
  onednn_content_t content = onednn_content_of(bits->source);
  content = onednn_content_mix(&content, key, sizeof(key));
  ONEDNN_TRY(onednn_plan_lazy(plan, &layout, &content, fill_bytes, bits, out));
  plan->buffers[out->buffer].source = bits->source;
  return CLEAVE_OK;
}

const onednn_bits_t *onednn_buffer_bits(const onednn_buffer_t *buffer) {
  return buffer->fill == fill_bytes ? buffer->fill_context : NULL;
}

// Runs a reorder of constants, whose data are given, at once.
static cleave_status_t reorder_now(onednn_plan_t *plan, const onednn_layout_t *const layouts[2],
                                   void *const data[2]) {
  dnnl_primitive_desc_t description = NULL;
  dnnl_primitive_t primitive = NULL;
  dnnl_memory_t memories[2] = {NULL, NULL};
  const onednn_maker_t maker = {.engine = plan->engine, .out = &description};
  dnnl_status_t status = onednn_make_reorder(&maker, layouts[0], layouts[1]);
  if (status == dnnl_success) {
    status = dnnl_primitive_create(&primitive, description);
  }
  for (int k = 0; k < 2 && status == dnnl_success; k++) {
    status = onednn_memory_create(&memories[k], layouts[k], plan->engine, data[k]);
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

// Packs the outputs `range` of Winograd's weights, or all of any others.
static cleave_status_t pack_data(onednn_plan_t *plan, const onednn_layout_t *const layouts[2],
                                 const int64_t range[2], void *const data[2]) {
  if (range != NULL) {
    onednn_winograd_pack(plan->host, plan->threads, layouts[1], range, data[0], data[1]);
  } else if (onednn_panels_pack_from(layouts[0], layouts[1])) {
    onednn_panels_pack(plan->host, plan->threads, layouts[0], data[0], data[1]);
  } else {
    return reorder_now(plan, layouts, data);
  }
  return CLEAVE_OK;
}

// Packs a constant of the model that is read where it lies, or would be if it were aligned.
static cleave_status_t pack_stretches(onednn_plan_t *plan, const onednn_stretches_t *stretches,
                                      const onednn_tensor_t *from, const onednn_tensor_t *to) {
  const onednn_buffer_t *buffer = &plan->buffers[from->buffer];
  bool is_winograd = onednn_winograd_packs(stretches->from, stretches->to);
  for (int64_t k = 0; k < stretches->count; k++) {
    onednn_stretch_t part;
    if (!onednn_stretches_at(stretches, k, &part)) {
      return onednn_check(dnnl_unimplemented, "packing a part of a constant", plan->message);
    }
    const char *source = (const char *)buffer->source->tensor.data + from->offset + part.from_offset;
    // oneDNN takes one kind of pointer for reading and writing.
    void *data[2] = {(void *)(uintptr_t)source, (char *)plan->buffers[to->buffer].data + part.to_offset};
    if (buffer->data == NULL && !onednn_panels_pack_from(stretches->from, stretches->to)) {
      ONEDNN_TRY(onednn_plan_reserve_scratch(plan, part.from_bytes));
      memcpy(plan->scratch, source, part.from_bytes);
      data[0] = plan->scratch;
    }
    const onednn_layout_t *const layouts[2] = {&part.from, &part.to};
    ONEDNN_TRY(pack_data(plan, layouts, is_winograd ? part.range : NULL, data));
    onednn_plan_leave(plan, source, part.from_bytes);
  }
  return CLEAVE_OK;
}

static cleave_status_t pack_now(onednn_plan_t *plan, const onednn_tensor_t *from, const onednn_tensor_t *to) {
  const onednn_buffer_t *buffer = &plan->buffers[from->buffer];
  onednn_stretches_t stretches;
  if (buffer->source != NULL && (buffer->data != NULL || onednn_fill_copies(buffer)) &&
      onednn_stretches_of(&from->layout, &to->layout, &stretches)) {
    return pack_stretches(plan, &stretches, from, to);
  }
  ONEDNN_TRY(onednn_plan_materialise(plan, from->buffer, false));
  buffer = &plan->buffers[from->buffer];
  void *source = buffer->data != NULL ? buffer->data : plan->scratch;
  void *const data[2] = {(char *)source + from->offset, plan->buffers[to->buffer].data};
  const onednn_layout_t *const layouts[2] = {&from->layout, &to->layout};
  const int64_t all[2] = {0, from->layout.dims[0]};
  ONEDNN_TRY(pack_data(plan, layouts, onednn_winograd_packs(layouts[0], layouts[1]) ? all : NULL, data));
  onednn_plan_leave_source(plan, from->buffer);
  return CLEAVE_OK;
}

// Identifies what the constant is packed from and to; the same in every process.
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
