// SPDX-License-Identifier: Apache-2.0
// Channels last. cuDNN's convolutions on tensor cores want images as [N, H, W, C], so that forward
// convolutions read and write them so, and pointwise programs between them run over the same order. Whoever
// needs [N, C, H, W] says so, and gets a copy.
#include <string.h>

#include "emit.h"
#include "kernels/execute/space.h"

static const int32_t to_last[4] = {0, 2, 3, 1};

bool cuda_layout_wants_last(const cuda_plan_t *plan, cleave_dtype_t dtype) {
  bool is_short = dtype == CLEAVE_DTYPE_F16 || dtype == CLEAVE_DTYPE_BF16;
  bool is_fast = is_short || (dtype == CLEAVE_DTYPE_F32 && plan->options.tf32);
  return plan->options.channels == CUDA_CHANNELS_LAST
             ? dtype != CLEAVE_DTYPE_F64
             : plan->options.channels == CUDA_CHANNELS_AUTO && is_fast;
}

static cleave_status_t note_last(cuda_plan_t *plan, uint32_t slot, cleave_dtype_t dtype, const int64_t *dims,
                                 uint32_t last) {
  cuda_images_t *own = cuda_plan_allocate(plan, 1, sizeof *own);
  if (own == NULL) {
    return cuda_plan_no_memory(plan);
  }
  *own = (cuda_images_t){.slot = last, .dtype = dtype};
  memcpy(own->dims, dims, sizeof own->dims);
  plan->slots[slot].images = own;
  return CLEAVE_OK;
}

/* Between both orders. */
static cleave_status_t emit_turn(cuda_plan_t *plan, const cuda_images_t *last, uint32_t slot, bool is_back) {
  int64_t channels = last->dims[1];
  int64_t places = last->dims[2] * last->dims[3];
  const cuda_pointer_t from = {is_back ? last->slot : slot, 0};
  const cuda_pointer_t to = {is_back ? slot : last->slot, 0};
  int64_t rows = is_back ? channels : places;
  int64_t columns = is_back ? places : channels;
  const cuda_move_t move = {.label = is_back ? "channels first" : "channels last",
                            .dtype = last->dtype,
                            .rank = 3,
                            .dims = {last->dims[0], rows, columns},
                            .from_strides = {channels * places, 1, rows},
                            .to_strides = {channels * places, columns, 1},
                            .from = from,
                            .to = to};
  return cuda_emit_move(plan, &move);
}

/* A constant is turned here. */
static cleave_status_t turn_constant(cuda_plan_t *plan, const char *data, cleave_dtype_t dtype,
                                     const int64_t *dims, uint32_t *out_slot) {
  size_t size = cleave_dtype_size(dtype);
  size_t channels = (size_t)dims[1];
  size_t places = (size_t)(dims[2] * dims[3]);
  size_t count = (size_t)dims[0] * channels * places;
  char *turned = plan->options.is_dry ? NULL : cuda_plan_allocate(plan, count, size);
  if (turned == NULL && !plan->options.is_dry) {
    return cuda_plan_no_memory(plan);
  }
  for (size_t k = 0; turned != NULL && k < count; k++) {
    size_t image = k / (channels * places);
    size_t from = (image * channels + k % channels) * places + k / channels % places;
    memcpy(turned + k * size, data + from * size, size);
  }
  return cuda_plan_constant(plan, turned, (int64_t)(count * size), out_slot);
}

cleave_status_t cuda_layout_read_last(cuda_plan_t *plan, uint32_t slot, cleave_dtype_t dtype,
                                      const int64_t *dims, uint32_t *out_slot) {
  const cuda_images_t *last = plan->slots[slot].images;
  uint32_t made = 0;
  if (last != NULL || dims[1] == 1 || dims[2] * dims[3] == 1) { /* or both orders are the same */
    *out_slot = last != NULL ? last->slot : slot;
    return CLEAVE_OK;
  }
  const void *data = cuda_plan_data(plan, slot);
  int64_t bytes = cuda_product_of(dims, 4) * (int64_t)cleave_dtype_size(dtype);
  CUDA_TRY(data != NULL ? turn_constant(plan, data, dtype, dims, &made)
                        : cuda_plan_scratch(plan, bytes, &made));
  CUDA_TRY(note_last(plan, slot, dtype, dims, made));
  *out_slot = made;
  return data != NULL ? CLEAVE_OK : emit_turn(plan, plan->slots[slot].images, slot, false);
}

cleave_status_t cuda_layout_write_last(cuda_plan_t *plan, uint32_t slot, cleave_dtype_t dtype,
                                       const int64_t *dims, uint32_t *out_slot) {
  if (dims[1] == 1 || dims[2] * dims[3] == 1) {
    *out_slot = slot;
    return CLEAVE_OK;
  }
  int64_t bytes = cuda_product_of(dims, 4) * (int64_t)cleave_dtype_size(dtype);
  CUDA_TRY(cuda_plan_scratch(plan, bytes, out_slot));
  CUDA_TRY(note_last(plan, slot, dtype, dims, *out_slot));
  plan->slots[slot].is_lacking = true;
  return CLEAVE_OK;
}

cleave_status_t cuda_layout_need(cuda_plan_t *plan, uint32_t slot) {
  if (!cuda_layout_is_lacking(plan, slot)) {
    return CLEAVE_OK;
  }
  plan->slots[slot].is_lacking = false;
  return emit_turn(plan, plan->slots[slot].images, slot, true);
}

cleave_status_t cuda_layout_need_inputs(cuda_plan_t *plan, const cleave_node_view_t *node) {
  for (uint32_t k = 0; k < node->input_count; k++) {
    if (node->inputs[k] != CLEAVE_INDEX_NONE) {
      CUDA_TRY(cuda_layout_need(plan, node->inputs[k]));
    }
  }
  return CLEAVE_OK;
}

/* ---- programs ---- */

/* Is the tensor of an input all of the images of its slot, one axis of the space for each of theirs? */
static bool is_images(const cuda_plan_t *plan, const cuda_program_call_t *call, uint32_t input) {
  const kernel_tensor_t *tensor = &call->inputs[input];
  const cuda_images_t *last = plan->slots[call->input_pointers[input].slot].images;
  int64_t strides[CLEAVE_MAX_RANK];
  bool is = last != NULL && tensor->rank == 4 && call->input_pointers[input].offset == 0;
  if (is) {
    cuda_dense_strides(4, tensor->dims, strides);
  }
  for (int32_t d = 0; is && d < 4; d++) {
    is = call->program->inputs[input].axes[d] == d && tensor->dims[d] == last->dims[d] &&
         (tensor->strides == NULL || tensor->strides[d] == strides[d]);
  }
  return is;
}

/* Can the program run over channels last, and does one of its inputs lie so? */
static bool runs_last(const cuda_plan_t *plan, const cuda_program_call_t *call) {
  const kernel_program_t *program = call->program;
  bool can = program->rank == 4 && program->reduced == 0;
  bool wants = false;
  for (uint32_t k = 0; can && k < program->input_count; k++) {
    can = program->inputs[k].along < 0;
    wants = wants || (cuda_layout_is_lacking(plan, call->input_pointers[k].slot) && is_images(plan, call, k));
  }
  return can && wants;
}

/* Sizes and strides in the order of the axes that the relaid program has. */
static cleave_status_t turn_input(cuda_plan_t *plan, cuda_program_call_t *call, uint32_t input) {
  kernel_tensor_t *tensor = &call->inputs[input];
  int64_t dense[CLEAVE_MAX_RANK];
  int64_t *turned = cuda_plan_allocate(plan, 2 * CLEAVE_MAX_RANK, sizeof *turned);
  int32_t rank = 0;
  if (turned == NULL) {
    return cuda_plan_no_memory(plan);
  }
  cuda_dense_strides(tensor->rank, tensor->dims, dense);
  const int64_t *strides = tensor->strides != NULL ? tensor->strides : dense;
  for (int32_t k = 0; k < 4; k++) {
    int32_t axis = call->program->inputs[input].axes[to_last[k]];
    if (axis >= 0) {
      turned[rank] = tensor->dims[axis];
      turned[CLEAVE_MAX_RANK + rank++] = strides[axis];
    }
  }
  tensor->dims = turned;
  tensor->strides = turned + CLEAVE_MAX_RANK;
  return CLEAVE_OK;
}

/* Images are read where they lie with channels last, whatever else as it is. */
static cleave_status_t turn_program(cuda_plan_t *plan, cuda_program_call_t *call) {
  kernel_program_t *program = call->program;
  int64_t dims[CLEAVE_MAX_RANK];
  CUDA_TRY(kernel_program_space(program, call->inputs, dims, plan->message));
  for (uint32_t k = 0; k < program->input_count; k++) {
    cuda_pointer_t *from = &call->input_pointers[k];
    bool is_last = is_images(plan, call, k);
    CUDA_TRY(is_last ? CLEAVE_OK : cuda_layout_need(plan, from->slot));
    CUDA_TRY(turn_input(plan, call, k));
    if (is_last) {
      from->slot = plan->slots[from->slot].images->slot;
      call->inputs[k].strides = NULL;
    }
  }
  for (uint32_t k = 0; k < program->output_count; k++) {
    uint32_t *slot = &call->output_pointers[k].slot;
    CUDA_TRY(cuda_layout_write_last(plan, *slot, program->outputs[k].dtype, dims, slot));
  }
  return kernel_program_relay(program, 4, to_last, plan->message);
}

cleave_status_t cuda_emit_program(cuda_plan_t *plan, cuda_program_call_t *call) {
  if (runs_last(plan, call)) {
    CUDA_TRY(turn_program(plan, call));
    return cuda_plan_program(plan, call);
  }
  for (uint32_t k = 0; k < call->program->input_count; k++) {
    CUDA_TRY(cuda_layout_need(plan, call->input_pointers[k].slot));
  }
  return cuda_plan_program(plan, call);
}
