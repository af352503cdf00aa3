// SPDX-License-Identifier: Apache-2.0
// Runs of a session whose steps have lanes (runtime/build/session_lanes.c): pushed to the engine as segments.
#include <stdio.h>

#include "runtime/build/session_internal.h"

static cleave_status_t run_program(cleave_session_t *session, cleave_step_t *step, void *stream,
                                   cleave_error_t *error) {
  const cleave_target_t *target = &session->targets.items[step->target];
  cleave_program_t *program = step->program;
  cleave_message_t message;
  message.text[0] = '\0';
  step->args.stream = stream;
  cleave_program_lock(program);
  cleave_status_t status = cleave_program_run(program, &step->args, &message);
  if (status == CLEAVE_OK && stream != NULL && program->cache != NULL) { /* others may run it next */
    status = cleave_device_stream_wait(target->device, stream, &message);
  }
  cleave_program_unlock(program);
  return status == CLEAVE_OK ? CLEAVE_OK : cleave_session_fail_step(session, step, status, &message, error);
}

static cleave_status_t run_step(void *self, uint32_t index, void *stream, cleave_error_t *error) {
  cleave_session_t *session = self;
  cleave_step_t *step = &session->steps.items[index];
  if (step->is_left_out) {
    return CLEAVE_OK;
  }
  switch (step->kind) {
    case CLEAVE_STEP_PROGRAM: return run_program(session, step, stream, error);
    case CLEAVE_STEP_COPY: return cleave_session_copy(session, step, stream, error);
    case CLEAVE_STEP_DYNAMIC: break;
  }
  return cleave_session_run_dynamic(session, step, error);
}

cleave_status_t cleave_session_start_lanes(cleave_session_t *session, cleave_error_t *error) {
  cleave_session_lanes_t *lanes = session->lanes;
  if (lanes == NULL || lanes->flow != NULL) {
    return CLEAVE_OK;
  }
  const cleave_flow_request_t request = {.lanes = &lanes->order,
                                         .places = lanes->places,
                                         .devices = lanes->devices,
                                         .device_count = lanes->device_count,
                                         .run = run_step,
                                         .self = session};
  return cleave_flow_create(&request, &lanes->flow, error);
}

cleave_status_t cleave_session_run_lanes(cleave_session_t *session, cleave_late_t *late,
                                         cleave_error_t *error) {
  cleave_session_lanes_t *lanes = session->lanes;
  uint32_t failed = CLEAVE_INDEX_NONE;
  CLEAVE_TRY(cleave_session_start_lanes(session, error));
  cleave_error_t reason;
  reason.status = CLEAVE_OK;
  cleave_status_t status = cleave_flow_run(lanes->flow, &failed, &reason);
  for (uint32_t device = 1; device < lanes->device_count && !late->is_late; device++) {
    cleave_status_t finished = cleave_lane_device_finish(&lanes->streams[device], &late->message);
    if (finished != CLEAVE_OK) {
      late->is_late = true;
      late->label = lanes->devices[device].name;
      late->status = finished;
      status = finished;
    }
  }
  if (status == CLEAVE_OK || late->is_late) {
    return status;
  }
  /* A step that fails has a target; what fails between steps is a stream or an event. */
  const cleave_target_t *target =
      failed == CLEAVE_INDEX_NONE ? NULL : &session->targets.items[session->steps.items[failed].target];
  if (target == NULL ? session->fallback
                     : cleave_session_falls_back(session, session->steps.items[failed].target)) {
    *late = (cleave_late_t){
        .is_late = true, .status = status, .label = target == NULL ? "a device" : target->label};
    (void)snprintf(late->message.text, sizeof late->message.text, "%.*s", (int)sizeof late->message.text - 1,
                   reason.message);
    return status;
  }
  return cleave_error_take(error, &reason);
}

void cleave_session_stop_lanes(cleave_session_t *session) {
  if (session->lanes != NULL) {
    cleave_flow_destroy(session->lanes->flow);
    session->lanes->flow = NULL;
  }
}
