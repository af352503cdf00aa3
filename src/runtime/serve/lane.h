// SPDX-License-Identifier: Apache-2.0
/* A lane: sessions for all forms of a model, of which one runs at a time, and what joins and splits requests.
 */
#ifndef CLEAVE_RUNTIME_SERVE_LANE_H
#define CLEAVE_RUNTIME_SERVE_LANE_H

#include <pthread.h>

#include "runtime/serve/forms.h"

/* queue.c: Requests that wait, in the order in which they came, and how they become batches. Thread-safe. */

/* One request; on the stack of its caller, who waits until it is answered. */
typedef struct cleave_waiting {
  const cleave_tensor_view_t *const *inputs;
  const cleave_tensor_view_t *const *outputs;
  cleave_error_t *error; /* of the caller; may be NULL */
  cleave_status_t status;
  uint64_t deadline; /* of the monotonic clock: it waits no longer for others */
  struct cleave_waiting *next;
  pthread_cond_t answered;
  bool is_answered;
} cleave_waiting_t;

typedef struct cleave_queue {
  pthread_mutex_t lock;    /* guards all */
  pthread_cond_t arrivals; /* a request came, or some are left for another thread, or the end */
  cleave_waiting_t *first;
  cleave_waiting_t *last;
  uint64_t count;
  uint64_t window_ns;
  uint64_t answered; /* requests */
  uint64_t runs;     /* of sessions */
  uint64_t repeated; /* requests that run again, alone */
  bool is_ending;
} cleave_queue_t;

CLEAVE_STATUS cleave_queue_init(cleave_queue_t *queue, uint64_t window_ns, cleave_error_t *error);
void cleave_queue_deinit(cleave_queue_t *queue);

/* Puts a request behind the others and waits for its answer. */
cleave_status_t cleave_queue_ask(cleave_queue_t *queue, cleave_waiting_t *waiting);

/* The next requests to run as one, oldest first, into `batch`, which has room for the largest form: at once
 * if they fill that form, otherwise when the oldest has waited for as long as it may. *out_form is the index
 * of the form that they fill. False: there are none, and there will be none. */
bool cleave_queue_take(cleave_queue_t *queue, const cleave_forms_t *forms, cleave_waiting_t **batch,
                       uint32_t *out_form);

/* Their `status` is set. They must not be touched any more. */
void cleave_queue_answer(cleave_queue_t *queue, cleave_waiting_t *const *batch, uint32_t count);

/* Counts requests that run one by one, since they failed together. */
void cleave_queue_repeat(cleave_queue_t *queue, uint32_t count);

/* From now on nobody waits for others, and cleave_queue_take is false when the queue is empty. */
void cleave_queue_end(cleave_queue_t *queue);

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
CLEAVE_STATUS cleave_lane_init(cleave_lane_t *lane, const cleave_forms_t *forms, cleave_queue_t *queue,
                               const cleave_session_options_t *options, cleave_error_t *error);
void cleave_lane_deinit(cleave_lane_t *lane);

/* Takes, runs and answers requests until the queue ends. A thread's function; `context` is the lane. */
void *cleave_lane_serve(void *context);

#endif /* CLEAVE_RUNTIME_SERVE_LANE_H */
