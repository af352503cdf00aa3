// SPDX-License-Identifier: Apache-2.0
// Outputs in the user's memory. If the block of an output can lie there, the views of the steps that write
// and read it show that memory, and nothing is copied; otherwise the session copies or adds when the steps
// are done. It decides again whenever the user sets an output.
#include <string.h>

#include "cleave/half.h"
#include "runtime/build/session_internal.h"

enum { ALIGNMENT = 64 };

/* ---- where outputs are written ---- */

/* The block that the output lies in, or NULL: an input handed through, a constant, a shape known late. */
static cleave_block_t *find_block(cleave_session_t *session, const cleave_output_t *output) {
  const cleave_slot_t *root = &session->slots.items[session->slots.items[output->slot].root];
  cleave_block_t *block = root->kind == CLEAVE_SLOT_BLOCK ? &session->blocks.items[root->block] : NULL;
  return block != NULL && block->place == CLEAVE_PLACE_HOST && block->is_output ? block : NULL;
}

/* The step that computes the output adds to its memory by itself: its backend can, and nothing else reads or
 * writes there. */
static bool can_add(const cleave_session_t *session, const cleave_output_t *output,
                    const cleave_block_t *block) {
  const cleave_slot_t *slot = &session->slots.items[output->slot];
  if (slot->kind != CLEAVE_SLOT_BLOCK || block->slots != 1 || slot->last != slot->writer ||
      slot->writer == CLEAVE_INDEX_NONE) {
    return false;
  }
  uint32_t users = 0;
  for (uint32_t k = 0; k < session->output_count; k++) {
    users += session->slots.items[session->outputs[k].slot].root == slot->root ? 1 : 0;
  }
  const cleave_step_t *step = &session->steps.items[slot->writer];
  return users == 1 && step->kind == CLEAVE_STEP_PROGRAM && step->program->handle->backend->adds;
}

static bool is_taken(const cleave_session_t *session, uint32_t index, const cleave_block_t *block) {
  for (uint32_t k = 0; k < index; k++) {
    const cleave_output_t *other = &session->outputs[k];
    const cleave_slot_t *root = &session->slots.items[session->slots.items[other->slot].root];
    if (other->is_direct && root->kind == CLEAVE_SLOT_BLOCK && &session->blocks.items[root->block] == block) {
      return true;
    }
  }
  return false;
}

/* Sets what a step does with one of its outputs; without requests it does WRITE. */
static cleave_status_t set_request(cleave_session_t *session, cleave_step_t *step, uint32_t output,
                                   cleave_request_t request, cleave_error_t *error) {
  if (step->requests == NULL && request != CLEAVE_REQUEST_WRITE) {
    step->requests = cleave_arena_allocate(&session->arena, step->output_count, sizeof *step->requests);
    CLEAVE_TRY_MEMORY(step->requests, error);
    step->args.requests = step->requests;
  }
  if (step->requests != NULL) {
    step->requests[output] = request;
  }
  return CLEAVE_OK;
}

static cleave_status_t set_output_request(cleave_session_t *session, const cleave_output_t *output,
                                          cleave_error_t *error) {
  const cleave_slot_t *slot = &session->slots.items[output->slot];
  if (slot->kind != CLEAVE_SLOT_BLOCK || slot->writer == CLEAVE_INDEX_NONE) {
    return CLEAVE_OK;
  }
  cleave_step_t *step = &session->steps.items[slot->writer];
  cleave_request_t request = output->is_direct ? output->request : CLEAVE_REQUEST_WRITE;
  for (uint32_t k = 0; k < step->output_count; k++) {
    if (step->output_slots[k] == output->slot) {
      CLEAVE_TRY(set_request(session, step, k, request, error));
    }
  }
  return CLEAVE_OK;
}

static bool is_aligned(const cleave_tensor_view_t *tensor) {
  return (uintptr_t)tensor->data % ALIGNMENT == 0;
}

/* Other memory for an output, with nothing else changed: what is decided about it and others stays, so this
 * costs as little as an input that is set. */
static void move_output(cleave_session_t *session, const cleave_output_t *output) {
  const cleave_block_t *block = output->is_direct ? find_block(session, output) : NULL;
  if (block != NULL) {
    cleave_session_patch_block(session, (uint32_t)(block - session->blocks.items),
                               (void *)(uintptr_t)output->view.data);
  }
}

static cleave_status_t place_output(cleave_session_t *session, uint32_t index, cleave_error_t *error) {
  cleave_output_t *output = &session->outputs[index];
  cleave_block_t *block = find_block(session, output);
  bool adds = output->request == CLEAVE_REQUEST_ADD;
  output->is_direct = false;
  if (block == NULL) {
    return CLEAVE_OK;
  }
  output->is_direct = output->has_memory && is_aligned(&output->view) &&
                      output->request != CLEAVE_REQUEST_NONE && !is_taken(session, index, block) &&
                      (!adds || can_add(session, output, block));
  if (output->is_direct) {
    cleave_session_patch_block(session, (uint32_t)(block - session->blocks.items),
                               (void *)(uintptr_t)output->view.data);
  } else if (!is_taken(session, index, block)) {
    cleave_session_patch_block(session, (uint32_t)(block - session->blocks.items), NULL);
  }
  return set_output_request(session, output, error);
}

/* ---- what is not requested ---- */

/* Outputs of a step that runs for others of its outputs. */
static cleave_status_t leave_out_outputs(cleave_session_t *session, cleave_step_t *step,
                                         const bool *is_wanted, cleave_error_t *error) {
  for (uint32_t k = 0; k < step->output_count; k++) {
    bool was_left_out = step->requests != NULL && step->requests[k] == CLEAVE_REQUEST_NONE;
    if (!is_wanted[session->slots.items[step->output_slots[k]].root]) {
      CLEAVE_TRY(set_request(session, step, k, CLEAVE_REQUEST_NONE, error));
    } else if (was_left_out) {
      CLEAVE_TRY(set_request(session, step, k, CLEAVE_REQUEST_WRITE, error));
    }
  }
  return CLEAVE_OK;
}

/* Goes backwards from the outputs that are wanted. A step that waits for a stream is never left out: what was
 * copied before it counts on that. */
static cleave_status_t leave_out(cleave_session_t *session, bool *is_wanted, cleave_error_t *error) {
  const cleave_slot_t *slots = session->slots.items;
  for (uint32_t k = 0; k < session->output_count; k++) {
    const cleave_output_t *output = &session->outputs[k];
    uint32_t root = slots[output->slot].root;
    is_wanted[root] = is_wanted[root] || output->request != CLEAVE_REQUEST_NONE;
  }
  for (size_t s = session->steps.count; s > 0; s--) {
    cleave_step_t *step = &session->steps.items[s - 1];
    bool is_live = step->wait_count > 0;
    for (uint32_t k = 0; k < step->output_count; k++) {
      is_live = is_live || is_wanted[slots[step->output_slots[k]].root];
    }
    step->is_left_out = !is_live;
    if (is_live && step->kind == CLEAVE_STEP_PROGRAM && step->program->handle->backend->adds) {
      CLEAVE_TRY(leave_out_outputs(session, step, is_wanted, error));
    }
    for (uint32_t k = 0; is_live && k < step->input_count; k++) {
      is_wanted[slots[step->input_slots[k]].root] = true;
    }
    for (uint32_t k = 0; is_live && step->port_slots != NULL && k < step->port_count; k++) {
      if (step->port_slots[k] != CLEAVE_INDEX_NONE) {
        is_wanted[slots[step->port_slots[k]].root] = true;
      }
    }
  }
  return CLEAVE_OK;
}

/* Decides where outputs are written. */
static cleave_status_t place_outputs(cleave_session_t *session, cleave_error_t *error) {
  session->has_output_work = false;
  for (uint32_t k = 0; k < session->output_count; k++) {
    CLEAVE_TRY(place_output(session, k, error));
    const cleave_output_t *output = &session->outputs[k];
    bool is_work = output->has_memory && !output->is_direct && output->request != CLEAVE_REQUEST_NONE;
    session->has_output_work = session->has_output_work || is_work;
  }
  return CLEAVE_OK;
}

/* Decides where outputs are written, and which steps run for them. */
static cleave_status_t refresh(cleave_session_t *session, cleave_error_t *error) {
  CLEAVE_TRY(place_outputs(session, error));
  bool *is_wanted = cleave_allocate_zeroed(session->slots.count, sizeof *is_wanted);
  CLEAVE_TRY_MEMORY(is_wanted, error);
  cleave_status_t status = leave_out(session, is_wanted, error);
  cleave_free(is_wanted);
  return status;
}

/* ---- what the user says ---- */

static bool fits(const cleave_tensor_view_t *tensor, const cleave_slot_t *slot) {
  if (slot->view.dtype != CLEAVE_DTYPE_UNKNOWN && tensor->dtype != slot->view.dtype) {
    return false;
  }
  if (slot->kind == CLEAVE_SLOT_OWNED) {
    return cleave_view_element_count(tensor) >= 0 && tensor->rank <= CLEAVE_MAX_RANK;
  }
  return tensor->rank == slot->view.rank &&
         (tensor->rank == 0 ||
          memcmp(tensor->dims, slot->dims, (size_t)tensor->rank * sizeof *tensor->dims) == 0);
}

static cleave_status_t fail_type(const cleave_session_t *session, uint32_t index,
                                 const cleave_tensor_view_t *expected, const cleave_tensor_view_t *found,
                                 cleave_error_t *error) {
  cleave_text_t text = {0};
  cleave_type_print(NULL, expected->dtype, expected->rank, expected->dims, &text);
  cleave_text_add(&text, ", the memory that is given is for ");
  cleave_type_print(NULL, found->dtype, found->rank, found->dims, &text);
  cleave_status_t status =
      cleave_error_set(error, CLEAVE_ERROR_SHAPE, "output %u is %s", (unsigned)index, cleave_text_get(&text));
  cleave_text_deinit(&text);
  (void)session;
  return status;
}

/* Sets an output; the arguments have been checked. */
static cleave_status_t set_output(cleave_session_t *session, uint32_t index,
                                  const cleave_tensor_view_t *tensor, cleave_request_t request,
                                  cleave_error_t *error) {
  cleave_output_t *output = &session->outputs[index];
  bool is_same_request = output->request == request;
  bool has_memory = tensor != NULL && tensor->data != NULL && request != CLEAVE_REQUEST_NONE;
  bool only_moves =
      is_same_request && has_memory && output->has_memory && is_aligned(&output->view) == is_aligned(tensor);
  output->request = request;
  output->has_memory = has_memory;
  if (output->has_memory) {
    output->view = *tensor;
    output->view.dims = output->dims;
    memcpy(output->dims, tensor->dims, (size_t)tensor->rank * sizeof *tensor->dims);
  }
  if (only_moves) {
    move_output(session, output);
    return CLEAVE_OK;
  }
  return is_same_request ? place_outputs(session, error) : refresh(session, error);
}

cleave_status_t cleave_session_set_output(cleave_session_t *session, uint32_t index,
                                          const cleave_tensor_view_t *tensor, cleave_request_t request,
                                          cleave_error_t *error) {
  if (index >= session->output_count) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "output %u: the model has %u output%s",
                            (unsigned)index, (unsigned)session->output_count,
                            CLEAVE_PLURAL(session->output_count));
  }
  const cleave_slot_t *slot = &session->slots.items[session->outputs[index].slot];
  bool adds = request == CLEAVE_REQUEST_ADD;
  if (!adds && request != CLEAVE_REQUEST_WRITE && request != CLEAVE_REQUEST_NONE) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "output %u: request %d is unknown",
                            (unsigned)index, (int)request);
  }
  if (tensor != NULL && !fits(tensor, slot)) {
    return fail_type(session, index, &slot->view, tensor, error);
  }
  if (tensor != NULL && (tensor->storage != CLEAVE_STORAGE_DENSE || tensor->memory != CLEAVE_MEMORY_HOST)) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "output %u: expected a dense tensor in host memory", (unsigned)index);
  }
  if ((adds && tensor == NULL) || (tensor != NULL && tensor->data == NULL && slot->bytes > 0)) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "output %u: no memory is given%s",
                            (unsigned)index, adds ? " to add to" : "");
  }
  if (adds && (tensor->dtype == CLEAVE_DTYPE_STRING || tensor->dtype == CLEAVE_DTYPE_BOOL)) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "output %u: values of %s are not added",
                            (unsigned)index, cleave_dtype_name(tensor->dtype));
  }
  for (size_t k = 0; k < session->states.count; k++) {
    if (session->states.items[k].output == index) {
      return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                              "output %u feeds an input, so its memory cannot be changed", (unsigned)index);
    }
  }
  session->outputs[index].set_at = session->run_number;
  return set_output(session, index, tensor, request, error);
}
cleave_status_t cleave_session_write_output(cleave_session_t *session, uint32_t index,
                                            const cleave_tensor_view_t *tensor, cleave_error_t *error) {
  return set_output(session, index, tensor, CLEAVE_REQUEST_WRITE, error);
}

/* ---- behind the steps ---- */

#define ADD_ELEMENTS(type)                   \
  do {                                       \
    type *sums = to;                         \
    const type *values = from;               \
    for (size_t k = 0; k < count; k++) {     \
      sums[k] = (type)(sums[k] + values[k]); \
    }                                        \
  } while (0)

static void add_halves(uint16_t *sums, const uint16_t *values, size_t count, bool is_brain) {
  for (size_t k = 0; k < count; k++) {
    float a = is_brain ? cleave_bfloat_to_float(sums[k]) : cleave_half_to_float(sums[k]);
    float b = is_brain ? cleave_bfloat_to_float(values[k]) : cleave_half_to_float(values[k]);
    sums[k] = is_brain ? cleave_float_to_bfloat(a + b) : cleave_float_to_half(a + b);
  }
}

/* Both aligned for their type. Integers wrap around. */
static void add_aligned(cleave_dtype_t dtype, void *to, const void *from, size_t count) {
  switch (dtype) {
    case CLEAVE_DTYPE_F32: ADD_ELEMENTS(float); break;
    case CLEAVE_DTYPE_F64: ADD_ELEMENTS(double); break;
    case CLEAVE_DTYPE_F16: add_halves(to, from, count, false); break;
    case CLEAVE_DTYPE_BF16: add_halves(to, from, count, true); break;
    case CLEAVE_DTYPE_U8:
    case CLEAVE_DTYPE_I8: ADD_ELEMENTS(uint8_t); break;
    case CLEAVE_DTYPE_U16:
    case CLEAVE_DTYPE_I16: ADD_ELEMENTS(uint16_t); break;
    case CLEAVE_DTYPE_U32:
    case CLEAVE_DTYPE_I32: ADD_ELEMENTS(uint32_t); break;
    case CLEAVE_DTYPE_U64:
    case CLEAVE_DTYPE_I64: ADD_ELEMENTS(uint64_t); break;
    case CLEAVE_DTYPE_STRING:
    case CLEAVE_DTYPE_BOOL:
    case CLEAVE_DTYPE_UNKNOWN: break;
  }
}

/* The user's memory may have any alignment: through small aligned pieces. */
void cleave_session_add_values(cleave_dtype_t dtype, void *to, const void *from, size_t bytes) {
  _Alignas(ALIGNMENT) unsigned char sums[4096];
  _Alignas(ALIGNMENT) unsigned char values[4096];
  size_t size = cleave_dtype_size(dtype);
  if ((uintptr_t)to % ALIGNMENT == 0 && (uintptr_t)from % ALIGNMENT == 0) {
    add_aligned(dtype, to, from, bytes / size);
    return;
  }
  for (size_t at = 0; at < bytes; at += sizeof sums) {
    size_t part = bytes - at < sizeof sums ? bytes - at : sizeof sums;
    memcpy(sums, (unsigned char *)to + at, part);
    memcpy(values, (const unsigned char *)from + at, part);
    add_aligned(dtype, sums, values, part / size);
    memcpy((unsigned char *)to + at, sums, part);
  }
}

cleave_status_t cleave_session_finish_outputs(cleave_session_t *session, cleave_error_t *error) {
  for (uint32_t k = 0; k < session->output_count; k++) {
    const cleave_output_t *output = &session->outputs[k];
    if (!output->has_memory || output->is_direct) {
      continue;
    }
    const cleave_tensor_view_t *found = &session->slots.items[output->slot].view;
    bool same = found->dtype == output->view.dtype && found->rank == output->view.rank &&
                (found->rank == 0 ||
                 memcmp(found->dims, output->dims, (size_t)found->rank * sizeof *found->dims) == 0);
    if (!same) {
      return fail_type(session, k, found, &output->view, error);
    }
    size_t bytes = session->slots.items[output->slot].bytes;
    void *to = (void *)(uintptr_t)output->view.data;
    if (output->request == CLEAVE_REQUEST_ADD) {
      cleave_session_add_values(found->dtype, to, found->data, bytes);
    } else if (bytes > 0) {
      memcpy(to, found->data, bytes);
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_session_output(const cleave_session_t *session, uint32_t index,
                                      cleave_tensor_view_t *out_tensor, cleave_error_t *error) {
  if (index >= session->output_count) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "output %u: the model has %u output%s",
                            (unsigned)index, (unsigned)session->output_count,
                            CLEAVE_PLURAL(session->output_count));
  }
  if (!session->has_run) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "output %u: no run has succeeded yet",
                            (unsigned)index);
  }
  const cleave_output_t *output = &session->outputs[index];
  if (output->request == CLEAVE_REQUEST_NONE) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "output %u: its request is 'none'",
                            (unsigned)index);
  }
  if (output->set_at == session->run_number) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "output %u: no run has written it since its memory was set", (unsigned)index);
  }
  *out_tensor = session->slots.items[output->slot].view;
  if (output->has_memory) {
    out_tensor->data = output->view.data;
  }
  return CLEAVE_OK;
}
