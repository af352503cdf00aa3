// SPDX-License-Identifier: Apache-2.0
#include "engine/engine_types.h"

/* How often a worker that finds nothing looks again before it sleeps: a few microseconds, about what it costs
 * to sleep and to be woken. */
enum { LOOKS_BEFORE_SLEEP = 200 };

static bool goes_before(const engine_task_t *a, const engine_task_t *b) {
  return a->priority != b->priority ? a->priority > b->priority : a->order < b->order;
}

/* ---- heap ---- */

/* One heap out of two; either may be NULL. */
static engine_task_t *join(engine_task_t *a, engine_task_t *b) {
  if (a == NULL || b == NULL) {
    return a != NULL ? a : b;
  }
  if (goes_before(b, a)) {
    engine_task_t *other = a;
    a = b;
    b = other;
  }
  b->next_ready = a->first_child;
  a->first_child = b;
  return a;
}

/* Removes the first: joins its children in pairs, then the pairs from the last to the first. */
static engine_task_t *without_first(engine_task_t *heap) {
  engine_task_t *pairs = NULL;
  engine_task_t *child = heap->first_child;
  while (child != NULL) {
    engine_task_t *second = child->next_ready;
    engine_task_t *rest = second != NULL ? second->next_ready : NULL;
    child->next_ready = NULL;
    if (second != NULL) {
      second->next_ready = NULL;
    }
    engine_task_t *pair = join(child, second);
    pair->next_ready = pairs;
    pairs = pair;
    child = rest;
  }
  engine_task_t *joined = NULL;
  while (pairs != NULL) {
    engine_task_t *next = pairs->next_ready;
    pairs->next_ready = NULL;
    joined = join(joined, pairs);
    pairs = next;
  }
  return joined;
}

/* ---- queues ---- */

void engine_task_ready(engine_task_t *task) {
  cleave_engine_t *engine = task->engine;
  task->state = TASK_IS_READY;
  if (task->waiter != NULL) {
    pthread_cond_signal(task->waiter);
    return;
  }
  engine_queue_t *queue = task->queue;
  if (!engine->is_serial) {
    task->order =
        ++engine->order; /* in the order in which they became ready; serial engines keep that of pushes */
  }
  task->next_ready = NULL;
  task->first_child = NULL;
  if (queue->first == NULL) {
    queue->first = task;
    queue->last = task;
  } else if (goes_before(queue->last, task)) {
    queue->last->next_ready = task;
    queue->last = task;
  } else {
    queue->heap = join(queue->heap, task);
  }
  uint32_t ready = atomic_load_explicit(&queue->ready, memory_order_relaxed);
  atomic_store_explicit(&queue->ready, ready + 1, memory_order_relaxed);
}

engine_task_t *engine_queue_pop(engine_queue_t *queue) {
  engine_task_t *task = queue->first;
  if (queue->heap != NULL && (task == NULL || goes_before(queue->heap, task))) {
    task = queue->heap;
    queue->heap = without_first(task);
  } else if (task != NULL) {
    queue->first = task->next_ready;
  } else {
    return NULL;
  }
  uint32_t ready = atomic_load_explicit(&queue->ready, memory_order_relaxed);
  atomic_store_explicit(&queue->ready, ready - 1, memory_order_relaxed);
  return task;
}

static void wake(engine_queue_t *queue) {
  uint32_t ready = atomic_load_explicit(&queue->ready, memory_order_relaxed);
  uint32_t useful = ready < queue->sleeping ? ready : queue->sleeping;
  for (; queue->woken < useful; queue->woken++) {
    pthread_cond_signal(&queue->wake);
  }
}

void engine_wake_workers(cleave_engine_t *engine) {
  for (uint32_t d = 0; d < engine->device_count; d++) {
    wake(&engine->devices[d].compute);
    wake(&engine->devices[d].copy);
  }
}

void engine_unlock(cleave_engine_t *engine) {
  engine_wake_workers(engine);
  pthread_mutex_unlock(&engine->lock);
}

static void pause_shortly(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

void engine_queue_wait(engine_queue_t *queue) {
  cleave_engine_t *engine = queue->engine;
  engine_unlock(engine);
  for (int k = 0; k < LOOKS_BEFORE_SLEEP; k++) {
    if (atomic_load_explicit(&queue->ready, memory_order_relaxed) > 0) {
      break;
    }
    pause_shortly();
  }
  pthread_mutex_lock(&engine->lock);
  if (atomic_load_explicit(&queue->ready, memory_order_relaxed) > 0 || engine->is_stopping) {
    return;
  }
  engine->counters.sleeps++;
  queue->sleeping++;
  pthread_cond_wait(&queue->wake, &engine->lock);
  queue->sleeping--;
  if (queue->woken > 0) {
    queue->woken--;
  }
}
