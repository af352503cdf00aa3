// SPDX-License-Identifier: Apache-2.0
// One lock. A thread that takes requests waits for the oldest one's deadline; if several do, the first to
// wake takes what is there, and the others look again.
#include "runtime/serve/lane.h"

#include "base/status.h"
#include "system/clock.h"

cleave_status_t cleave_queue_init(cleave_queue_t *queue, uint64_t window_ns, cleave_error_t *error) {
  *queue = (cleave_queue_t){.window_ns = window_ns};
  pthread_condattr_t attributes;
  if (pthread_condattr_init(&attributes) != 0) {
    return cleave_error_out_of_memory(error);
  }
  (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  bool is_made = pthread_cond_init(&queue->arrivals, &attributes) == 0;
  (void)pthread_condattr_destroy(&attributes);
  if (is_made && pthread_mutex_init(&queue->lock, NULL) != 0) {
    (void)pthread_cond_destroy(&queue->arrivals);
    is_made = false;
  }
  return is_made ? CLEAVE_OK : cleave_error_out_of_memory(error);
}

void cleave_queue_deinit(cleave_queue_t *queue) {
  (void)pthread_mutex_destroy(&queue->lock);
  (void)pthread_cond_destroy(&queue->arrivals);
}

cleave_status_t cleave_queue_ask(cleave_queue_t *queue, cleave_waiting_t *waiting) {
  waiting->next = NULL;
  waiting->is_answered = false;
  waiting->deadline = queue->window_ns == 0 ? 0 : cleave_clock_now() + queue->window_ns;
  if (pthread_cond_init(&waiting->answered, NULL) != 0) {
    return cleave_error_out_of_memory(waiting->error);
  }
  (void)pthread_mutex_lock(&queue->lock);
  if (queue->last == NULL) {
    queue->first = waiting;
  } else {
    queue->last->next = waiting;
  }
  queue->last = waiting;
  queue->count++;
  (void)pthread_cond_signal(&queue->arrivals);
  while (!waiting->is_answered) {
    (void)pthread_cond_wait(&waiting->answered, &queue->lock);
  }
  (void)pthread_mutex_unlock(&queue->lock);
  (void)pthread_cond_destroy(&waiting->answered);
  return waiting->status;
}

/* With the lock: waits until a batch may begin; false in the end. */
static bool wait_for_batch(cleave_queue_t *queue, uint32_t limit) {
  for (;;) {
    if (queue->count == 0) {
      if (queue->is_ending) {
        return false;
      }
      (void)pthread_cond_wait(&queue->arrivals, &queue->lock);
    } else if (queue->count >= limit || queue->is_ending || queue->first->deadline <= cleave_clock_now()) {
      return true;
    } else {
      uint64_t deadline = queue->first->deadline;
      struct timespec until = {.tv_sec = (time_t)(deadline / UINT64_C(1000000000)),
                               .tv_nsec = (long)(deadline % UINT64_C(1000000000))};
      (void)pthread_cond_timedwait(&queue->arrivals, &queue->lock, &until);
    }
  }
}

bool cleave_queue_take(cleave_queue_t *queue, const cleave_forms_t *forms, cleave_waiting_t **batch,
                       uint32_t *out_form) {
  (void)pthread_mutex_lock(&queue->lock);
  bool is_there = wait_for_batch(queue, forms->items[forms->count - 1].requests);
  if (is_there) {
    *out_form = cleave_forms_choose(forms, queue->count);
    uint32_t requests = forms->items[*out_form].requests;
    for (uint32_t k = 0; k < requests; k++) {
      batch[k] = queue->first;
      queue->first = queue->first->next;
    }
    queue->last = queue->first == NULL ? NULL : queue->last;
    queue->count -= requests;
    queue->runs++;
    if (queue->count > 0) {
      (void)pthread_cond_signal(&queue->arrivals);
    }
  }
  (void)pthread_mutex_unlock(&queue->lock);
  return is_there;
}

void cleave_queue_answer(cleave_queue_t *queue, cleave_waiting_t *const *batch, uint32_t count) {
  (void)pthread_mutex_lock(&queue->lock);
  queue->answered += count;
  for (uint32_t k = 0; k < count; k++) {
    batch[k]->is_answered = true;
    (void)pthread_cond_signal(&batch[k]->answered);
  }
  (void)pthread_mutex_unlock(&queue->lock);
}

void cleave_queue_repeat(cleave_queue_t *queue, uint32_t count) {
  (void)pthread_mutex_lock(&queue->lock);
  queue->repeated += count;
  queue->runs += count;
  (void)pthread_mutex_unlock(&queue->lock);
}

void cleave_queue_end(cleave_queue_t *queue) {
  (void)pthread_mutex_lock(&queue->lock);
  queue->is_ending = true;
  (void)pthread_cond_broadcast(&queue->arrivals);
  (void)pthread_mutex_unlock(&queue->lock);
}
