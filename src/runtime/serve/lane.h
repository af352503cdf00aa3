// SPDX-License-Identifier: Apache-2.0
/* A lane: sessions for all forms of a model, of which one runs at a time, and what joins and splits requests.
 */
#ifndef CLEAVE_RUNTIME_SERVE_LANE_H
#define CLEAVE_RUNTIME_SERVE_LANE_H

#include "runtime/serve/queue.h"

typedef struct cleave_lane {
  cleave_queue_t *queue;
  const cleave_forms_t *forms;
  cleave_session_t *sessions[CLEAVE_MAX_FORMS];
  void **joined; /* per input, memory for the largest form; NULL without batches */
  cleave_waiting_t **batch;
  uint32_t input_count;
  uint32_t output_count;
  pthread_t thread;
} cleave_lane_t;

/* Compiles. `forms` and `queue` must outlive the lane. Also if it fails, it must be deinitialised. */
CLEAVE_MUST_USE cleave_status_t cleave_lane_init(cleave_lane_t *lane, const cleave_forms_t *forms,
                                                 cleave_queue_t *queue,
                                                 const cleave_session_options_t *options,
                                                 cleave_error_t *error);
void cleave_lane_deinit(cleave_lane_t *lane);

/* Takes, runs and answers requests until the queue ends. A thread's function; `context` is the lane. */
void *cleave_lane_serve(void *context);

#endif /* CLEAVE_RUNTIME_SERVE_LANE_H */
