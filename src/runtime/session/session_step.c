// SPDX-License-Identifier: Apache-2.0
// What all ways to run steps have in common: copies, and who is named when a step fails.
#include <stdio.h>
#include <string.h>

#include "runtime/build/session_internal.h"

cleave_status_t cleave_session_fail_step(const cleave_session_t *session, const cleave_step_t *step,
                                         cleave_status_t status, cleave_message_t *message,
                                         cleave_error_t *error) {
  const cleave_target_t *target = &session->targets.items[step->target];
  char place[288];
  message->text[sizeof message->text - 1] = '\0';
  if (cleave_node_exists(step->node)) {
    return cleave_session_fail_node(session->graph, step->node, target->label, status, message, error);
  }
  if (step->kind == CLEAVE_STEP_COPY) {
    (void)snprintf(place, sizeof place, "value '%.128s': %.128s", step->name, step->op);
  } else {
    (void)snprintf(place, sizeof place, "region '%.128s' on %.80s", step->name, target->label);
  }
  return cleave_registry_fail(error, status, place, message);
}

cleave_status_t cleave_session_copy(const cleave_session_t *session, const cleave_step_t *step, void *stream,
                                    cleave_error_t *error) {
  const cleave_target_t *target = &session->targets.items[step->target];
  cleave_error_t reason;
  if (target->is_abandoned && step->copied_bytes > 0) {
    memcpy((void *)(uintptr_t)step->outputs[0].data, step->inputs[0].data, step->copied_bytes);
  }
  if (target->is_abandoned) {
    return CLEAVE_OK;
  }
  cleave_error_clear(&reason);
  cleave_status_t status = cleave_device_copy(target->device, step->to_device, &step->outputs[0],
                                              &step->inputs[0], step->copied_bytes, stream, &reason);
  return status == CLEAVE_OK ? CLEAVE_OK
                             : cleave_error_set(error, status, "value '%s': %s", step->name, reason.message);
}
