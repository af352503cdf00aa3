// SPDX-License-Identifier: Apache-2.0
// The functions of cleave/server.h.
#include "runtime/serve/server.h"

#include <string.h>

#include "base/memory.h"
#include "base/sized.h"
#include "base/status.h"
#include "runtime/serve/lane.h"
#include "system/threads.h"
#include "tensor/dtype.h"

enum { MAX_LANES = 1024 };

struct cleave_server {
  cleave_forms_t forms;
  cleave_queue_t queue;
  bool has_queue;
  cleave_lane_t *lanes;
  uint32_t lane_count;
  uint32_t started; /* lanes with a thread */
};

/* ---- creation ---- */

static cleave_status_t read_session(const cleave_session_options_t *given, uint32_t lane_count,
                                    cleave_session_options_t *out_session, cleave_error_t *error) {
  *out_session = (cleave_session_options_t){.size = sizeof *out_session};
  CLEAVE_TRY(CLEAVE_SIZED_IN(cleave_session_options_t, given, out_session, error));
  out_session->programs = NULL;
  if (out_session->threads == 0) {
    int32_t share = cleave_threads_available() / (int32_t)lane_count;
    out_session->threads = share < 1 ? 1 : share;
  }
  return CLEAVE_OK;
}

static cleave_status_t check_options(const cleave_server_options_t *options, cleave_error_t *error) {
  if (options->sessions < 0 || options->sessions > MAX_LANES) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "%d session%s, expected 1 to %d",
                            (int)options->sessions, CLEAVE_PLURAL(options->sessions), MAX_LANES);
  }
  if (options->batch_limit < 0 || options->batch_limit > CLEAVE_MAX_BATCH) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "batches of %d request%s, expected 1 to %d",
                            (int)options->batch_limit, CLEAVE_PLURAL(options->batch_limit), CLEAVE_MAX_BATCH);
  }
  return CLEAVE_OK;
}

static cleave_status_t start(cleave_server_t *server, cleave_error_t *error) {
  while (server->started < server->lane_count) {
    cleave_lane_t *lane = &server->lanes[server->started];
    if (pthread_create(&lane->thread, NULL, cleave_lane_serve, lane) != 0) {
      return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "the system starts %u thread%s of %u",
                              (unsigned)server->started, CLEAVE_PLURAL(server->started),
                              (unsigned)server->lane_count);
    }
    server->started++;
  }
  return CLEAVE_OK;
}

static cleave_status_t create(cleave_server_t *server, const cleave_form_source_t *source,
                              const cleave_server_options_t *given, cleave_error_t *error) {
  cleave_server_options_t options = {.size = sizeof options};
  cleave_session_options_t session;
  CLEAVE_TRY(CLEAVE_SIZED_IN(cleave_server_options_t, given, &options, error));
  CLEAVE_TRY(check_options(&options, error));
  uint32_t lane_count = options.sessions == 0 ? 1 : (uint32_t)options.sessions;
  CLEAVE_TRY(read_session(options.session, lane_count, &session, error));
  CLEAVE_TRY(cleave_forms_init(&server->forms, source,
                               options.batch_limit == 0 ? 1 : (uint32_t)options.batch_limit, error));
  CLEAVE_TRY(cleave_queue_init(&server->queue, (uint64_t)options.batch_window_us * 1000, error));
  server->has_queue = true;
  server->lanes = cleave_allocate_zeroed(lane_count, sizeof *server->lanes);
  CLEAVE_TRY_MEMORY(server->lanes, error);
  while (server->lane_count < lane_count) {
    cleave_lane_t *lane = &server->lanes[server->lane_count++];
    CLEAVE_TRY(cleave_lane_init(lane, &server->forms, &server->queue, &session, error));
  }
  return start(server, error);
}

cleave_status_t cleave_server_create_from(const cleave_form_source_t *source,
                                          const cleave_server_options_t *options,
                                          cleave_server_t **out_server, cleave_error_t *error) {
  cleave_server_t *server = cleave_allocate_zeroed(1, sizeof *server);
  *out_server = NULL;
  CLEAVE_TRY_MEMORY(server, error);
  CLEAVE_TRY_OR(create(server, source, options, error), cleave_server_destroy(server));
  *out_server = server;
  return CLEAVE_OK;
}

cleave_status_t cleave_server_create(cleave_model_t *model, const cleave_partition_request_t *request,
                                     const cleave_tensor_view_t *const *inputs, size_t input_count,
                                     const cleave_server_options_t *options, cleave_server_t **out_server,
                                     cleave_error_t *error) {
  cleave_form_source_t source = {
      .model = model, .request = request, .inputs = inputs, .input_count = input_count};
  return cleave_server_create_from(&source, options, out_server, error);
}

void cleave_server_destroy(cleave_server_t *server) {
  if (server == NULL) {
    return;
  }
  if (server->has_queue) {
    cleave_queue_end(&server->queue);
  }
  for (uint32_t k = 0; k < server->started; k++) {
    (void)pthread_join(server->lanes[k].thread, NULL);
  }
  for (uint32_t k = 0; k < server->lane_count; k++) {
    cleave_lane_deinit(&server->lanes[k]);
  }
  cleave_free(server->lanes);
  if (server->has_queue) {
    cleave_queue_deinit(&server->queue);
  }
  cleave_forms_deinit(&server->forms);
  cleave_free(server);
}

/* ---- requests ---- */

cleave_status_t cleave_server_input(const cleave_server_t *server, uint32_t index, cleave_port_t *out_port,
                                    cleave_error_t *error) {
  return cleave_model_input(server->forms.items[0].model, index, out_port, error);
}

cleave_status_t cleave_server_output(const cleave_server_t *server, uint32_t index, cleave_port_t *out_port,
                                     cleave_error_t *error) {
  return cleave_model_output(server->forms.items[0].model, index, out_port, error);
}

static cleave_status_t check_tensor(const cleave_port_t *port, const char *kind,
                                    const cleave_tensor_view_t *given, cleave_error_t *error) {
  const cleave_tensor_view_t *type = &port->tensor;
  bool is_same = given->dtype == type->dtype && given->rank == type->rank;
  int64_t elements = 1;
  for (int32_t d = 0; is_same && d < type->rank; d++) {
    is_same = given->dims[d] == type->dims[d];
    elements *= type->dims[d];
  }
  if (!is_same) {
    return cleave_error_set(error, CLEAVE_ERROR_SHAPE,
                            "%s '%s': expected %s of the shape that the server was made for, found %s%s",
                            kind, port->name, cleave_dtype_name(type->dtype), cleave_dtype_name(given->dtype),
                            given->dtype == type->dtype ? " of another shape" : "");
  }
  if (given->storage != CLEAVE_STORAGE_DENSE || given->memory != CLEAVE_MEMORY_HOST ||
      (given->data == NULL && elements > 0)) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "%s '%s': expected a dense tensor with data in host memory", kind, port->name);
  }
  return CLEAVE_OK;
}

static cleave_status_t check_tensors(const cleave_server_t *server, const cleave_waiting_t *waiting,
                                     cleave_error_t *error) {
  const cleave_model_t *model = server->forms.items[0].model;
  cleave_port_t port = {.size = sizeof port};
  for (uint32_t k = 0; k < cleave_model_input_count(model); k++) {
    CLEAVE_TRY(cleave_model_input(model, k, &port, error));
    if (waiting->inputs[k] == NULL) {
      return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "input '%s' is not given", port.name);
    }
    CLEAVE_TRY(check_tensor(&port, "input", waiting->inputs[k], error));
  }
  for (uint32_t k = 0; k < cleave_model_output_count(model); k++) {
    CLEAVE_TRY(cleave_model_output(model, k, &port, error));
    if (waiting->outputs[k] != NULL) {
      CLEAVE_TRY(check_tensor(&port, "output", waiting->outputs[k], error));
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_server_run(cleave_server_t *server, const cleave_tensor_view_t *const *inputs,
                                  size_t input_count, const cleave_tensor_view_t *const *outputs,
                                  size_t output_count, cleave_error_t *error) {
  const cleave_model_t *model = server->forms.items[0].model;
  cleave_waiting_t waiting = {.inputs = inputs, .outputs = outputs, .error = error};
  if (input_count != cleave_model_input_count(model) || output_count != cleave_model_output_count(model)) {
    return cleave_error_set(
        error, CLEAVE_ERROR_INVALID_ARGUMENT, "%zu input%s and %zu output%s, expected %u and %u", input_count,
        CLEAVE_PLURAL(input_count), output_count, CLEAVE_PLURAL(output_count),
        (unsigned)cleave_model_input_count(model), (unsigned)cleave_model_output_count(model));
  }
  CLEAVE_TRY(cleave_list_check("inputs", inputs, input_count, error));
  CLEAVE_TRY(cleave_list_check("outputs", outputs, output_count, error));
  CLEAVE_TRY(check_tensors(server, &waiting, error));
  return cleave_queue_ask(&server->queue, &waiting);
}

void cleave_server_counts(cleave_server_t *server, cleave_server_counts_t *out_counts) {
  cleave_server_counts_t counts = {0};
  (void)pthread_mutex_lock(&server->queue.lock);
  counts.requests = server->queue.answered;
  counts.runs = server->queue.runs;
  counts.repeated = server->queue.repeated;
  (void)pthread_mutex_unlock(&server->queue.lock);
  CLEAVE_SIZED_OUT(cleave_server_counts_t, &counts, out_counts);
}
