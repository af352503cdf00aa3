// SPDX-License-Identifier: Apache-2.0
// Running a session: walks the steps and passes each the arguments that were made when the session was, with
// no allocation and no lookup. Steps of a device with a stream are put on it; the host waits if it reads
// what they wrote, and at the end. What fails on a stream comes out late and without a name: then the run is
// done once more, waiting for every step, to find the region that it was.
#include <stdio.h>
#include <string.h>

#include "backend/registry/context.h"
#include "base/sized.h"
#include "runtime/build/session_internal.h"
#include "system/clock.h"

/* ---- inputs ---- */

static bool same_shape(const cleave_tensor_view_t *a, const cleave_tensor_view_t *b) {
  return a->rank == b->rank &&
         (a->rank <= 0 || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0);
}

static cleave_status_t fail_input_type(const cleave_session_t *session, uint32_t index,
                                       const cleave_tensor_view_t *expected,
                                       const cleave_tensor_view_t *found, cleave_error_t *error) {
  cleave_text_t text = {0};
  cleave_type_print(NULL, expected->dtype, expected->rank, expected->dims, &text);
  cleave_text_add(&text, ", found ");
  cleave_type_print(NULL, found->dtype, found->rank, found->dims, &text);
  cleave_status_t status =
      cleave_error_set(error, CLEAVE_ERROR_SHAPE, "input '%s' (number %u): expected %s",
                       cleave_value_name(session->graph, session->graph->inputs.items[index]),
                       (unsigned)index, cleave_text_get(&text));
  cleave_text_deinit(&text);
  return status;
}

cleave_status_t cleave_session_set_input(cleave_session_t *session, uint32_t index,
                                         const cleave_tensor_view_t *tensor, cleave_error_t *error) {
  if (index >= session->input_count) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "input %u: the model has %u input%s",
                            (unsigned)index, (unsigned)session->input_count,
                            CLEAVE_PLURAL(session->input_count));
  }
  uint32_t slot_index = session->input_slots[index];
  cleave_slot_t *slot = &session->slots.items[slot_index];
  CLEAVE_TRY(cleave_list_check("dims", tensor->dims, tensor->rank > 0 ? (size_t)tensor->rank : 0, error));
  if (tensor->dtype != slot->view.dtype || !same_shape(tensor, &slot->view)) {
    return fail_input_type(session, index, &slot->view, tensor, error);
  }
  if (tensor->storage != CLEAVE_STORAGE_DENSE || tensor->memory != CLEAVE_MEMORY_HOST) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "input %u: expected a dense tensor in host memory", (unsigned)index);
  }
  if (tensor->data == NULL && slot->bytes > 0) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "input %u has no data", (unsigned)index);
  }
  cleave_state_t *state = cleave_session_find_state(session, index);
  if (state != NULL) {
    cleave_session_set_state(session, state, tensor->data);
    return CLEAVE_OK;
  }
  slot->view.data = tensor->data != NULL ? tensor->data : (const void *)session->memory;
  slot->is_set = true;
  cleave_session_patch(session, slot_index);
  return CLEAVE_OK;
}

static cleave_status_t check_inputs(const cleave_session_t *session, cleave_error_t *error) {
  for (uint32_t k = 0; k < session->input_count; k++) {
    if (!session->slots.items[session->input_slots[k]].is_set) {
      return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "input '%s' (number %u) is not set",
                              cleave_value_name(session->graph, session->graph->inputs.items[k]),
                              (unsigned)k);
    }
  }
  return CLEAVE_OK;
}

/* ---- steps ---- */

/* Copies what the backend says about its steps: the same program may run again for another step. */
static cleave_status_t keep_parts(cleave_step_t *step, const cleave_program_t *program,
                                  cleave_error_t *error) {
  const cleave_backend_t *backend = program->handle->backend;
  const cleave_step_time_t *parts = NULL;
  bool has_parts = backend->profile != NULL && !program->is_executor;
  uint32_t count = has_parts ? backend->profile(program->program, &parts) : 0;
  step->part_count = 0;
  if (count > 0 && parts == NULL) {
    return cleave_error_set(error, CLEAVE_ERROR_BACKEND,
                            "backend '%s': profile: expected a list of %u times, found NULL", backend->name,
                            (unsigned)count);
  }
  if (count > step->part_capacity) {
    cleave_step_time_t *grown = cleave_reallocate(step->parts, count, sizeof *grown);
    CLEAVE_TRY_MEMORY(grown, error);
    step->parts = grown;
    step->part_capacity = count;
  }
  if (count > 0) {
    memcpy(step->parts, parts, count * sizeof *parts);
  }
  step->part_count = count;
  return CLEAVE_OK;
}

/* The host waits for a whole stream. */
static cleave_status_t wait_stream(cleave_target_t *target, cleave_late_t *late) {
  late->message.text[0] = '\0';
  cleave_status_t status = cleave_device_stream_wait(target->device, target->stream, &late->message);
  target->is_busy = false;
  if (status != CLEAVE_OK) {
    late->is_late = true;
    late->status = status;
    late->label = target->label;
  }
  return status;
}

static cleave_status_t run_waits(cleave_session_t *session, const cleave_step_t *step, cleave_late_t *late,
                                 cleave_error_t *error) {
  for (uint32_t k = 0; k < step->wait_count; k++) {
    const cleave_wait_t *wait = &step->waits[k];
    cleave_target_t *source = &session->targets.items[wait->source];
    if (source->is_abandoned) {
      continue;
    }
    if (wait->event == NULL) {
      CLEAVE_TRY(wait_stream(source, late));
      continue;
    }
    cleave_target_t *waiter =
        wait->waiter == CLEAVE_INDEX_NONE ? NULL : &session->targets.items[wait->waiter];
    late->message.text[0] = '\0';
    cleave_status_t status =
        cleave_device_event_wait(waiter == NULL ? source->device : waiter->device, wait->event,
                                 waiter == NULL ? NULL : waiter->stream, &late->message);
    if (status != CLEAVE_OK) {
      session->broken = wait->source;
      if (session->is_careful) {
        return cleave_registry_fail(error, status, source->label, &late->message);
      }
      late->is_late = true;
      late->status = status;
      late->label = source->label;
      return status;
    }
  }
  return CLEAVE_OK;
}

/* Completes a step that was put on a stream. It waits for a program that other sessions may run. */
static cleave_status_t finish_put(cleave_session_t *session, cleave_step_t *step, cleave_message_t *message) {
  cleave_target_t *target = &session->targets.items[step->target];
  bool is_shared = step->program != NULL && step->program->cache != NULL;
  cleave_status_t status = CLEAVE_OK;
  target->is_busy = true;
  message->text[0] = '\0';
  if (step->event != NULL) {
    status = cleave_device_event_record(target->device, step->event, target->stream, message);
    session->broken = status == CLEAVE_OK ? session->broken : step->target;
  }
  if (status == CLEAVE_OK && (session->is_careful || is_shared)) {
    status = cleave_device_stream_wait(target->device, target->stream, message);
    target->is_busy = false;
  }
  return status;
}

/* `cpu` runs the step, now and from now on. What is on streams comes first: if a step may have failed on
 * one unseen, the run is done once more, waiting for every step. */
static cleave_status_t fall_back(cleave_session_t *session, cleave_step_t *step, cleave_status_t reason,
                                 const cleave_message_t *message, cleave_late_t *late,
                                 cleave_error_t *error) {
  cleave_target_t *target = &session->targets.items[step->target];
  if (step->fallback == NULL && target->stream != NULL && !session->is_careful) {
    late->is_late = true;
    late->status = reason;
    late->label = target->label;
    (void)snprintf(late->message.text, sizeof late->message.text, "%s", message->text);
    return reason;
  }
  if (step->fallback != NULL && target->stream != NULL) {
    CLEAVE_TRY(wait_stream(target, late));
  }
  CLEAVE_TRY(cleave_session_run_fallback(session, step, message, error));
  if (step->event == NULL) {
    return CLEAVE_OK;
  }
  cleave_message_t why = {.text = ""};
  cleave_status_t status = cleave_device_event_record(target->device, step->event, target->stream, &why);
  if (status == CLEAVE_OK) {
    return CLEAVE_OK;
  }
  session->broken = step->target;
  return cleave_session_fail_step(session, step, status, &why, error);
}

static cleave_status_t run_program(cleave_session_t *session, cleave_step_t *step, cleave_late_t *late,
                                   cleave_error_t *error) {
  cleave_program_t *program = step->program;
  cleave_message_t message;
  message.text[0] = '\0';
  if (step->fallback != NULL) {
    return fall_back(session, step, CLEAVE_OK, &message, late, error);
  }
  cleave_program_lock(program);
  cleave_status_t status = cleave_program_run(program, &step->args, &message);
  if (status == CLEAVE_OK && step->args.stream != NULL) {
    status = finish_put(session, step, &message);
  }
  if (status == CLEAVE_OK && session->profile) {
    status = keep_parts(step, program, error);
    cleave_program_unlock(program);
    return status;
  }
  cleave_program_unlock(program);
  if (status == CLEAVE_OK) {
    return CLEAVE_OK;
  }
  message.text[sizeof message.text - 1] = '\0';
  return cleave_session_falls_back(session, step->target) && session->broken != step->target
             ? fall_back(session, step, status, &message, late, error)
             : cleave_session_fail_step(session, step, status, &message, error);
}

static cleave_status_t run_copy(cleave_session_t *session, cleave_step_t *step, cleave_late_t *late,
                                cleave_error_t *error) {
  CLEAVE_TRY_OR(cleave_session_copy(session, step, step->args.stream, error), session->broken = step->target);
  if (step->args.stream == NULL) {
    return CLEAVE_OK;
  }
  cleave_status_t status = finish_put(session, step, &late->message);
  if (status == CLEAVE_OK) {
    return CLEAVE_OK;
  }
  session->broken = step->target;
  return cleave_session_fail_step(session, step, status, &late->message, error);
}

static cleave_status_t run_step(cleave_session_t *session, cleave_step_t *step, cleave_late_t *late,
                                cleave_error_t *error) {
  if (step->wait_count > 0) {
    CLEAVE_TRY(run_waits(session, step, late, error));
  }
  switch (step->kind) {
    case CLEAVE_STEP_PROGRAM: return run_program(session, step, late, error);
    case CLEAVE_STEP_COPY: return run_copy(session, step, late, error);
    case CLEAVE_STEP_DYNAMIC: break;
  }
  return cleave_session_run_dynamic(session, step, error);
}

static cleave_status_t run_steps(cleave_session_t *session, cleave_late_t *late, cleave_error_t *error) {
  for (size_t s = 0; s < session->steps.count; s++) {
    cleave_step_t *step = &session->steps.items[s];
    if (step->is_left_out) {
      continue;
    }
    if (!session->profile) {
      CLEAVE_TRY(run_step(session, step, late, error));
      continue;
    }
    step->start_ns = cleave_clock_now();
    CLEAVE_TRY(run_step(session, step, late, error));
    step->end_ns = cleave_clock_now();
  }
  for (size_t k = 0; session->has_streams && k < session->targets.count; k++) {
    if (session->targets.items[k].is_busy) {
      CLEAVE_TRY(wait_stream(&session->targets.items[k], late));
    }
  }
  return CLEAVE_OK;
}

/* The run that was repeated was a whole one. */
static cleave_status_t accept_repeated(cleave_session_t *session, const cleave_late_t *found,
                                       cleave_error_t *error) {
  char note[512];
  bool was_in_lanes = session->lanes != NULL && session->fallback_count == 0;
  (void)snprintf(note, sizeof note, "%.80s: failed in run %llu, but not when it was repeated%s: %.256s",
                 found->label, (unsigned long long)session->run_number,
                 was_in_lanes ? "; steps run one after the other from now on" : "", found->message.text);
  cleave_log(cleave_context_log(session->graph->context), CLEAVE_LOG_WARNING, "%s", note);
  if (!was_in_lanes) {
    return CLEAVE_OK;
  }
  session->fallback_count++;
  return cleave_session_add_note(session, note, error);
}

/* A stream failed: which step was it? */
static cleave_status_t run_carefully(cleave_session_t *session, const cleave_late_t *found,
                                     cleave_error_t *error) {
  cleave_late_t late = {0};
  CLEAVE_TRY(cleave_session_renew_streams(session, error));
  bool is_careful = session->is_careful;
  session->is_careful = true;
  uint32_t before = session->fallback_count;
  cleave_status_t status = run_steps(session, &late, error);
  session->is_careful = is_careful;
  if (status == CLEAVE_OK && session->fallback_count > before) {
    return CLEAVE_OK;
  }
  if (status == CLEAVE_OK && session->fallback) {
    return accept_repeated(session, found, error);
  }
  if (status == CLEAVE_OK || late.is_late) {
    char place[192];
    (void)snprintf(place, sizeof place, "%.80s: a step failed on its stream, but not when it was repeated",
                   found->label);
    return cleave_registry_fail(error, found->status, place, &found->message);
  }
  return status;
}

static cleave_status_t repeat_steps(cleave_session_t *session) {
  cleave_late_t late = {0};
  return run_steps(session, &late, NULL);
}

/* All steps; once more if that is what it takes to find the one that failed. */
static cleave_status_t run_all(cleave_session_t *session, cleave_error_t *error) {
  cleave_late_t late;
  late.is_late = false;
  cleave_session_enter(session);
  uint64_t start = cleave_session_choose_threads(session);
  bool in_lanes = session->lanes != NULL && session->fallback_count == 0;
  cleave_status_t status =
      in_lanes ? cleave_session_run_lanes(session, &late, error) : run_steps(session, &late, error);
  if (start != 0 && status == CLEAVE_OK) {
    cleave_session_judge_threads(session, start, repeat_steps);
  }
  cleave_session_leave(session);
  if (status != CLEAVE_OK && (session->has_streams || late.is_late)) {
    cleave_session_stop_lanes(session);
    cleave_session_drain(session);
    if (late.is_late) {
      late.message.text[sizeof late.message.text - 1] = '\0';
      status = run_carefully(session, &late, error);
      cleave_session_drain(session);
    }
    session->has_failed_streams = true;
  }
  return status;
}

/* With `cpu` in the place of what fails. */
static cleave_status_t run_falling_back(cleave_session_t *session, cleave_error_t *error) {
  cleave_error_t reason = CLEAVE_ERROR_INIT;
  cleave_status_t status = run_all(session, &reason);
  status = cleave_session_repeat_without(session, status, run_steps, &reason);
  return status == CLEAVE_OK ? CLEAVE_OK : cleave_error_take(error, &reason);
}

cleave_status_t cleave_session_run(cleave_session_t *session, cleave_error_t *error) {
  if (session->run_number == 0) {
    CLEAVE_TRY(check_inputs(session, error));
  }
  if (session->has_failed_streams) {
    CLEAVE_TRY(cleave_session_renew_streams(session, error));
  }
  CLEAVE_TRY(cleave_session_advance(session, error));
  session->has_run = false;
  session->broken = 0;
  session->run_number++;
  CLEAVE_TRY(session->fallback ? run_falling_back(session, error) : run_all(session, error));
  if (session->has_output_work) {
    CLEAVE_TRY(cleave_session_finish_outputs(session, error));
  }
  session->has_run = true;
  return CLEAVE_OK;
}
