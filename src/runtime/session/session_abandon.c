// SPDX-License-Identifier: Apache-2.0
// A device that fails in a run, not in a program but in what moves values: copies, events, streams. Nothing
// that lies on it can be counted on. Its values get memory of the host, in the same order, `cpu` computes its
// regions, and the run is done once more, from inputs that are whole.
#include <stdio.h>
#include <string.h>

#include "runtime/build/session_internal.h"

/* Steps that have added to a user's memory would add twice. */
static bool can_repeat(const cleave_session_t *session) {
  for (uint32_t k = 0; k < session->output_count; k++) {
    if (session->outputs[k].is_direct && session->outputs[k].request == CLEAVE_REQUEST_ADD) {
      return false;
    }
  }
  return true;
}

static void show_slots(const cleave_session_t *session, const cleave_target_t *target, const uint32_t *slots,
                       cleave_tensor_view_t *views, uint32_t count) {
  for (uint32_t k = 0; k < count; k++) {
    if (views[k].memory == target->memory) {
      views[k].data = session->slots.items[slots[k]].view.data;
      views[k].memory = CLEAVE_MEMORY_HOST;
    }
  }
}

static void end_streams(cleave_session_t *session, uint32_t index) {
  cleave_target_t *target = &session->targets.items[index];
  for (size_t s = 0; s < session->steps.count; s++) {
    cleave_step_t *step = &session->steps.items[s];
    if (step->target == index) {
      cleave_device_event_destroy(target->device, step->event);
      step->event = NULL;
      step->args.stream = NULL;
    }
  }
  cleave_device_stream_destroy(target->device, target->stream);
  target->stream = NULL;
  target->is_busy = false;
}

/* Copies of constants stay where they are: `cpu` has its own. */
static void move_values(cleave_session_t *session, uint32_t index) {
  cleave_target_t *target = &session->targets.items[index];
  cleave_slot_t *slots = session->slots.items;
  for (size_t k = 0; k < session->slots.count; k++) {
    const cleave_slot_t *root = &slots[slots[k].root];
    if (slots[k].place == index && root->kind == CLEAVE_SLOT_BLOCK) {
      slots[k].view.data = target->host_blocks + session->blocks.items[root->block].offset;
      slots[k].view.memory = CLEAVE_MEMORY_HOST;
    }
  }
  for (size_t s = 0; s < session->steps.count; s++) {
    cleave_step_t *step = &session->steps.items[s];
    if (step->target == index && step->kind != CLEAVE_STEP_DYNAMIC) {
      show_slots(session, target, step->input_slots, step->inputs, step->input_count);
      show_slots(session, target, step->output_slots, step->outputs, step->output_count);
    }
  }
  target->is_abandoned = true;
}

/* What was made stays of use if it fails. */
static cleave_status_t abandon(cleave_session_t *session, uint32_t index, const char *reason,
                               cleave_error_t *error) {
  cleave_target_t *target = &session->targets.items[index];
  cleave_message_t message;
  (void)snprintf(message.text, sizeof message.text, "%.*s", (int)sizeof message.text - 1, reason);
  for (size_t s = 0; s < session->steps.count; s++) {
    cleave_step_t *step = &session->steps.items[s];
    if (step->target == index && step->kind == CLEAVE_STEP_PROGRAM && step->fallback == NULL) {
      CLEAVE_TRY(cleave_session_make_fallback(session, step, &message, error));
    }
  }
  target->host_blocks = cleave_allocate_aligned(target->statistics.values_bytes);
  CLEAVE_TRY_MEMORY(target->host_blocks, error);
  end_streams(session, index);
  move_values(session, index);
  session->fallback_count++; /* though no step may have one: no run is in lanes any more */
  return CLEAVE_OK;
}

cleave_status_t cleave_session_repeat_without(cleave_session_t *session, cleave_status_t status,
                                              cleave_steps_fn_t run_steps, cleave_error_t *error) {
  bool is_careful = session->is_careful;
  session->is_careful = true;
  while (status != CLEAVE_OK && session->broken != 0 && can_repeat(session)) {
    cleave_error_t reason = CLEAVE_ERROR_INIT;
    cleave_late_t late = {0};
    uint32_t broken = session->broken;
    session->broken = 0;
    (void)cleave_error_take(&reason, error);
    cleave_error_clear(error);
    status = abandon(session, broken, reason.message, error);
    CLEAVE_THEN(status, run_steps(session, &late, error));
    if (status != CLEAVE_OK && late.is_late) {
      status = cleave_registry_fail(error, status, late.label, &late.message);
    }
    cleave_session_drain(session);
  }
  session->is_careful = is_careful;
  return status;
}
