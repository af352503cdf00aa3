// SPDX-License-Identifier: Apache-2.0
// State: an output that is an input of the next run. If the step that computes the output may write over the
// input, and is the last to read it, both lie in one buffer; a step before it, or the rest of this one, then
// never sees what is written. Elsewhere there are two buffers, which change places before the next run, so
// that an output can be read until then.
#include <string.h>

#include "runtime/build/session_internal.h"

/* The step that computes the output may write over the input, in place, and nothing reads the input later. */
static bool may_share(const cleave_session_t *session, const cleave_slot_t *from, uint32_t to_slot) {
  const cleave_slot_t *to = &session->slots.items[to_slot];
  if (to->kind != CLEAVE_SLOT_BLOCK || to->writer == CLEAVE_INDEX_NONE || from->last != to->writer ||
      session->has_streams || session->lanes != NULL || session->fallback ||
      session->blocks.items[to->block].slots != 1 || to->place != CLEAVE_PLACE_HOST) {
    return false;
  }
  const cleave_step_t *step = &session->steps.items[to->writer];
  if (step->kind != CLEAVE_STEP_PROGRAM) {
    return false;
  }
  uint32_t readers = 0;
  uint32_t place = 0;
  for (uint32_t k = 0; k < step->input_count; k++) {
    if (&session->slots.items[session->slots.items[step->input_slots[k]].root] == from) {
      readers++;
      place = k;
    }
  }
  const cleave_program_info_t *info = step->program->info;
  for (uint32_t k = 0; readers == 1 && k < info->inplace_count; k++) {
    uint32_t output = info->inplace[k].output;
    if (info->inplace[k].input == place && output < step->output_count &&
        step->output_slots[output] == to_slot) {
      return true;
    }
  }
  return false;
}

static bool is_output_itself(const cleave_session_t *session, uint32_t input_slot) {
  for (uint32_t k = 0; k < session->output_count; k++) {
    if (session->slots.items[session->outputs[k].slot].root == input_slot) {
      return true;
    }
  }
  return false;
}

static cleave_status_t check(const cleave_session_t *session, uint32_t output, uint32_t input,
                             cleave_error_t *error) {
  if (input >= session->input_count || output >= session->output_count) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "output %u cannot feed input %u: the model has %u output%s and %u input%s",
                            (unsigned)output, (unsigned)input, (unsigned)session->output_count,
                            CLEAVE_PLURAL(session->output_count), (unsigned)session->input_count,
                            CLEAVE_PLURAL(session->input_count));
  }
  for (size_t k = 0; k < session->states.count; k++) {
    if (session->states.items[k].input == input || session->states.items[k].output == output) {
      return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                              "output %u cannot feed input %u: one of them is fed already", (unsigned)output,
                              (unsigned)input);
    }
  }
  const cleave_output_t *to = &session->outputs[output];
  if (to->has_memory || to->request != CLEAVE_REQUEST_WRITE) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "output %u cannot feed input %u: it has memory of the user, or another request",
                            (unsigned)output, (unsigned)input);
  }
  const cleave_slot_t *from = &session->slots.items[session->input_slots[input]];
  const cleave_slot_t *slot = &session->slots.items[to->slot];
  bool same = slot->kind != CLEAVE_SLOT_OWNED && slot->view.dtype == from->view.dtype &&
              slot->view.dtype != CLEAVE_DTYPE_STRING && slot->view.rank == from->view.rank &&
              memcmp(slot->dims, from->dims, (size_t)from->view.rank * sizeof *from->dims) == 0;
  if (same) {
    return CLEAVE_OK;
  }
  cleave_text_t text = {0};
  cleave_type_print(NULL, slot->view.dtype, slot->view.rank, slot->dims, &text);
  cleave_text_add(&text, ", the input ");
  cleave_type_print(NULL, from->view.dtype, from->view.rank, from->dims, &text);
  cleave_status_t status =
      cleave_error_set(error, CLEAVE_ERROR_SHAPE, "output %u cannot feed input %u: it is %s",
                       (unsigned)output, (unsigned)input, cleave_text_get(&text));
  cleave_text_deinit(&text);
  return status;
}

/* Input and output show the buffers of the state. */
static cleave_status_t show(cleave_session_t *session, const cleave_state_t *state, cleave_error_t *error) {
  uint32_t input_slot = session->input_slots[state->input];
  cleave_slot_t *slot = &session->slots.items[input_slot];
  cleave_tensor_view_t view = session->slots.items[session->outputs[state->output].slot].view;
  slot->view.data = state->memory[state->current];
  slot->is_set = true;
  cleave_session_patch(session, input_slot);
  view.data = state->memory[state->is_shared ? state->current : 1 - state->current];
  return cleave_session_write_output(session, state->output, &view, error);
}

cleave_status_t cleave_session_feed(cleave_session_t *session, uint32_t output, uint32_t input,
                                    cleave_error_t *error) {
  CLEAVE_TRY(check(session, output, input, error));
  CLEAVE_TRY(cleave_array_reserve(&session->states, 1, error));
  const cleave_slot_t *from = &session->slots.items[session->input_slots[input]];
  uint32_t to_slot = session->outputs[output].slot;
  cleave_state_t state = {.input = input, .output = output, .is_given = true};
  state.is_shared =
      may_share(session, from, to_slot) && !is_output_itself(session, session->input_slots[input]);
  state.memory[0] = cleave_allocate_aligned(from->bytes);
  state.memory[1] = state.is_shared ? NULL : cleave_allocate_aligned(from->bytes);
  if (state.memory[0] == NULL || (!state.is_shared && state.memory[1] == NULL)) {
    cleave_free(state.memory[0]);
    cleave_free(state.memory[1]);
    return cleave_error_out_of_memory(error);
  }
  if (from->is_set && from->bytes > 0) {
    memcpy(state.memory[0], from->view.data, from->bytes);
  } else {
    memset(state.memory[0], 0, from->bytes);
  }
  if (!state.is_shared) {
    memset(state.memory[1], 0, from->bytes);
  }
  session->has_shared_state = session->has_shared_state || state.is_shared;
  cleave_array_push_reserved(&session->states, state);
  return show(session, &session->states.items[session->states.count - 1], error);
}

cleave_state_t *cleave_session_find_state(cleave_session_t *session, uint32_t input) {
  for (size_t k = 0; k < session->states.count; k++) {
    if (session->states.items[k].input == input) {
      return &session->states.items[k];
    }
  }
  return NULL;
}

/* The output of the last run stays where it is. */
void cleave_session_set_state(cleave_session_t *session, cleave_state_t *state, const void *data) {
  size_t bytes = session->slots.items[session->input_slots[state->input]].bytes;
  if (bytes > 0) {
    memmove(state->memory[state->current], data, bytes);
  }
  state->is_given = true;
}

cleave_status_t cleave_session_advance(cleave_session_t *session, cleave_error_t *error) {
  for (size_t k = 0; k < session->states.count; k++) {
    cleave_state_t *state = &session->states.items[k];
    if (!state->is_given && !state->is_shared) {
      state->current = 1 - state->current;
      CLEAVE_TRY(show(session, state, error));
    }
    state->is_given = false;
  }
  return CLEAVE_OK;
}

void cleave_session_free_states(cleave_session_t *session) {
  for (size_t k = 0; k < session->states.count; k++) {
    cleave_free(session->states.items[k].memory[0]);
    cleave_free(session->states.items[k].memory[1]);
  }
  cleave_array_free(&session->states);
}
