// SPDX-License-Identifier: Apache-2.0
// A request alone is read where it lies. A batch is copied together, since kernels want one tensor.
#include "runtime/serve/lane.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "runtime/session/session.h"
#include "tensor/tensor.h"

static cleave_status_t allocate_joined(cleave_lane_t *lane, cleave_error_t *error) {
  const cleave_form_t *largest = &lane->forms->items[lane->forms->count - 1];
  lane->joined = cleave_allocate_zeroed(lane->input_count, sizeof *lane->joined);
  CLEAVE_TRY_MEMORY(lane->joined, error);
  for (uint32_t k = 0; k < lane->input_count; k++) {
    cleave_port_t port = {.size = sizeof port};
    size_t bytes = 0;
    CLEAVE_TRY(cleave_model_input(largest->model, k, &port, error));
    if (!cleave_tensor_view_bytes(&port.tensor, &bytes)) {
      return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "input '%s': too large for %u request%s", port.name,
                              (unsigned)largest->requests, CLEAVE_PLURAL(largest->requests));
    }
    lane->joined[k] = cleave_allocate_aligned(bytes == 0 ? 1 : bytes);
    CLEAVE_TRY_MEMORY(lane->joined[k], error);
  }
  return CLEAVE_OK;
}

static cleave_status_t create_session(cleave_lane_t *lane, uint32_t index,
                                      const cleave_session_options_t *options, cleave_error_t *error) {
  const cleave_form_t *form = &lane->forms->items[index];
  CLEAVE_TRY(cleave_session_create(form->model, form->plan, NULL, 0, options, &lane->sessions[index], error));
  for (uint32_t k = 0; form->requests > 1 && k < lane->input_count; k++) {
    cleave_port_t port = {.size = sizeof port};
    CLEAVE_TRY(cleave_model_input(form->model, k, &port, error));
    port.tensor.data = lane->joined[k];
    CLEAVE_TRY(cleave_session_set_input(lane->sessions[index], k, &port.tensor, error));
  }
  cleave_session_touch(lane->sessions[index]);
  return CLEAVE_OK;
}

cleave_status_t cleave_lane_init(cleave_lane_t *lane, const cleave_forms_t *forms, cleave_queue_t *queue,
                                 const cleave_session_options_t *options, cleave_error_t *error) {
  const cleave_form_t *largest = &forms->items[forms->count - 1];
  *lane = (cleave_lane_t){.queue = queue,
                          .forms = forms,
                          .input_count = cleave_model_input_count(largest->model),
                          .output_count = cleave_model_output_count(largest->model)};
  lane->batch = cleave_allocate_zeroed(largest->requests, sizeof *lane->batch);
  CLEAVE_TRY_MEMORY(lane->batch, error);
  if (largest->requests > 1) {
    CLEAVE_TRY(allocate_joined(lane, error));
  }
  for (uint32_t k = 0; k < forms->count; k++) {
    CLEAVE_TRY(create_session(lane, k, options, error));
  }
  return CLEAVE_OK;
}

void cleave_lane_deinit(cleave_lane_t *lane) {
  for (uint32_t k = 0; k < CLEAVE_MAX_FORMS; k++) {
    cleave_session_destroy(lane->sessions[k]);
  }
  for (uint32_t k = 0; lane->joined != NULL && k < lane->input_count; k++) {
    cleave_free(lane->joined[k]);
  }
  cleave_free((void *)lane->joined);
  cleave_free((void *)lane->batch);
}

/* ---- running ---- */

/* Part `position` of the outputs of the form that ran goes to `waiting`. */
static cleave_status_t hand_out(const cleave_lane_t *lane, uint32_t form, uint32_t position,
                                const cleave_waiting_t *waiting, cleave_error_t *error) {
  for (uint32_t k = 0; k < lane->output_count; k++) {
    cleave_tensor_view_t view;
    size_t bytes = 0;
    if (waiting->outputs[k] == NULL) {
      continue;
    }
    CLEAVE_TRY(cleave_session_output(lane->sessions[form], k, &view, error));
    if (cleave_tensor_view_bytes(&view, &bytes) && bytes > 0) {
      bytes /= lane->forms->items[form].requests;
      memcpy((void *)(uintptr_t)waiting->outputs[k]->data, (const char *)view.data + position * bytes, bytes);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t run_alone(cleave_lane_t *lane, const cleave_waiting_t *waiting) {
  cleave_session_t *session = lane->sessions[0];
  for (uint32_t k = 0; k < lane->input_count; k++) {
    CLEAVE_TRY(cleave_session_set_input(session, k, waiting->inputs[k], waiting->error));
  }
  CLEAVE_TRY(cleave_session_run(session, waiting->error));
  return hand_out(lane, 0, 0, waiting, waiting->error);
}

static cleave_status_t run_joined(cleave_lane_t *lane, uint32_t form) {
  uint32_t requests = lane->forms->items[form].requests;
  for (uint32_t k = 0; k < lane->input_count; k++) {
    size_t bytes = 0;
    (void)cleave_tensor_view_bytes(lane->batch[0]->inputs[k], &bytes);
    for (uint32_t position = 0; bytes > 0 && position < requests; position++) {
      memcpy((char *)lane->joined[k] + position * bytes, lane->batch[position]->inputs[k]->data, bytes);
    }
  }
  CLEAVE_TRY(cleave_session_run(lane->sessions[form], NULL));
  for (uint32_t position = 0; position < requests; position++) {
    CLEAVE_TRY(hand_out(lane, form, position, lane->batch[position], NULL));
  }
  return CLEAVE_OK;
}

static void serve_batch(cleave_lane_t *lane, uint32_t form) {
  uint32_t requests = lane->forms->items[form].requests;
  if (requests > 1 && run_joined(lane, form) == CLEAVE_OK) {
    for (uint32_t k = 0; k < requests; k++) {
      lane->batch[k]->status = CLEAVE_OK;
    }
    cleave_queue_answer(lane->queue, lane->batch, requests);
    return;
  }
  if (requests > 1) {
    cleave_queue_repeat(lane->queue, requests);
  }
  for (uint32_t k = 0; k < requests; k++) {
    lane->batch[k]->status = run_alone(lane, lane->batch[k]);
    cleave_queue_answer(lane->queue, &lane->batch[k], 1);
  }
}

void *cleave_lane_serve(void *context) {
  cleave_lane_t *lane = context;
  uint32_t form = 0;
  while (cleave_queue_take(lane->queue, lane->forms, lane->batch, &form)) {
    serve_batch(lane, form);
  }
  return NULL;
}
