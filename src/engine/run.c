// SPDX-License-Identifier: Apache-2.0

#include "engine/engine_types.h"
#include "system/clock.h"

/* The engine whose operation this thread runs. */
static _Thread_local const cleave_engine_t *running;

bool engine_runs_here(const cleave_engine_t *engine) {
  return running == engine;
}

/* ---- counters and trace ---- */

static uint64_t now(const cleave_engine_t *engine) {
  return engine->trace != NULL ? cleave_clock_now() : 0;
}

static cleave_status_t status_of(const engine_task_t *task) {
  return task->failure != NULL ? task->failure->error.status : CLEAVE_OK;
}

static void trace(const engine_task_t *task, const char *name, uint64_t pushed, uint64_t started,
                  bool is_skipped, cleave_status_t status) {
  cleave_engine_t *engine = task->engine;
  if (engine->trace == NULL || task->last_of != NULL) {
    return;
  }
  const cleave_engine_trace_t entry = {.name = name != NULL ? name : "",
                                       .device = task->device->name,
                                       .worker = task->worker,
                                       .priority = task->priority,
                                       .pushed = pushed,
                                       .started = started,
                                       .ended = cleave_clock_now(),
                                       .status = status,
                                       .is_skipped = is_skipped};
  engine->trace(engine->trace_self, &entry);
}

/* ---- one task ---- */

/* Takes the lock back; the task has a failure of its own. */
static void fail(engine_task_t *task, const cleave_error_t *error) {
  pthread_mutex_lock(&task->engine->lock);
  if (!engine_failure_holds(task->failure)) {
    engine_failure_release(task->failure);
    task->failure = engine_failure_create(task->engine, task->name, error);
  }
  pthread_mutex_unlock(&task->engine->lock);
}

/* The failure for which a member of a bulk is skipped. What the bulk has is its own until it ends. */
static engine_failure_t *member_inherits(const engine_bulk_t *bulk, const engine_member_t *member) {
  for (uint32_t k = member->first_variable; k < member->end_variable; k++) {
    engine_failure_t *failure = bulk->variables.items[k].variable->failure;
    if (engine_failure_holds(failure)) {
      return failure;
    }
  }
  return NULL;
}

/* With the lock held: the failure goes to what the member writes. */
static void member_fails(const engine_bulk_t *bulk, const engine_member_t *member,
                         engine_failure_t *failure) {
  for (uint32_t k = member->first_variable; k < member->end_variable; k++) {
    if (bulk->variables.items[k].is_write) {
      engine_failure_set(&bulk->variables.items[k].variable->failure, failure);
    }
  }
}

static void run_member(engine_task_t *task, const engine_member_t *member, const cleave_engine_run_t *run,
                       cleave_error_t *error) {
  cleave_engine_t *engine = task->engine;
  engine_failure_t *inherited = task->failure != NULL ? task->failure : member_inherits(task->bulk, member);
  cleave_status_t status = CLEAVE_OK;
  uint64_t started = now(engine);
  if (inherited == NULL) {
    status = member->run(member->self, run, error);
  }
  if (inherited != NULL || status != CLEAVE_OK) {
    pthread_mutex_lock(&engine->lock);
    if (inherited == NULL) {
      engine_failure_t *failure = engine_failure_create(engine, member->name, error);
      member_fails(task->bulk, member, failure);
      engine_failure_release(failure);
      engine->counters.failed++;
    } else {
      status = inherited->error.status;
      member_fails(task->bulk, member, inherited);
      engine->counters.skipped++;
    }
    pthread_mutex_unlock(&engine->lock);
    cleave_error_clear(error);
  }
  trace(task, member->name, member->pushed, started, inherited != NULL, status);
  if (member->end != NULL) {
    member->end(member->self);
  }
}

/* The task's function has returned, or was skipped: its variables go on. With the lock held. */
static void end_task(engine_task_t *task) {
  cleave_engine_t *engine = task->engine;
  engine->is_open = false;
  if (task->bulk != NULL) {
    engine->counters.ended += task->bulk->members.count;
  } else if (task->last_of == NULL) {
    engine->counters.ended++;
    engine->counters.skipped += task->is_skipped;
    engine->counters.failed += task->failure != NULL && !task->is_skipped;
  }
  if (engine->has_streams) {
    if (task->has_run) {
      engine_events_note(task);
    }
    engine_event_release(task->event);
    task->event = NULL;
    engine_events_drop(task);
  }
  if (task->bulk != NULL) {
    task->bulk->members.count = 0;
    task->bulk->variables.count = 0;
    task->bulk->next = engine->free_bulks;
    engine->free_bulks = task->bulk;
  }
  engine_task_finish(task);
  engine_task_give(task);
}

/* Calls the function that the caller of the operation gave for its end. Without the lock. */
static void call_end(engine_task_t *task) {
  if (task->operation != NULL) {
    cleave_engine_t *engine = task->engine;
    pthread_mutex_lock(&engine->lock);
    bool is_last = --task->operation->references == 0;
    pthread_mutex_unlock(&engine->lock);
    if (!is_last) {
      return;
    }
    cleave_free(task->operation);
  }
  if (task->end != NULL) {
    task->end(task->self);
  }
}

/* With the lock held: is there anything in streams that must end before the task can run at all? Then it is
 * left to the watcher. */
static bool defer(engine_task_t *task, engine_worker_t *worker, cleave_error_t *error) {
  cleave_engine_t *engine = task->engine;
  const engine_stream_t *stream = worker->stream.handle != NULL && !task->needs_host ? &worker->stream : NULL;
  if (task->is_synchronised) {
    engine_events_drop(task);
  } else if (engine_events_collect(task, stream, error) != CLEAVE_OK) {
    engine_failure_release(task->failure);
    task->failure = engine_failure_create(engine, task->name, error);
    cleave_error_clear(error);
  } else if (stream == NULL && task->events.count > 0 && !engine->is_serial) {
    task->state = TASK_WAITS;
    task->next_ready = NULL;
    *(engine->first_deferred != NULL ? &engine->last_deferred->next_ready : &engine->first_deferred) = task;
    engine->last_deferred = task;
    pthread_cond_signal(&engine->deferred);
    return true;
  }
  if (stream != NULL && task->start == NULL) {
    task->event = engine_event_take(&worker->stream);
    if (task->event == NULL && task->failure == NULL) {
      (void)cleave_error_out_of_memory(error);
      task->failure = engine_failure_create(engine, task->name, error);
      cleave_error_clear(error);
    }
  }
  return false;
}

/* Without the lock: what the task has put into its stream is an event now; in a serial engine it has ended.
 * If that fails, variables keep the events that they had. */
static cleave_status_t record_end(engine_task_t *task, cleave_error_t *error) {
  cleave_engine_t *engine = task->engine;
  cleave_status_t status = engine_event_record(task, error);
  if (status == CLEAVE_OK && engine->is_serial) {
    status = engine_event_synchronize(task->event, error);
  }
  if (status != CLEAVE_OK) {
    pthread_mutex_lock(&engine->lock);
    engine_event_release(task->event);
    pthread_mutex_unlock(&engine->lock);
    task->event = NULL;
    task->has_run = false;
  }
  return status;
}

/* Runs the functions of a task. Without the lock. False: it ends by itself, or has ended already. */
static bool execute(engine_task_t *task, engine_worker_t *worker) {
  const engine_stream_t *stream = worker->stream.handle != NULL && !task->needs_host ? &worker->stream : NULL;
  cleave_error_t *error = &worker->error;
  const cleave_engine_run_t run = {.device = (uint32_t)(task->device - task->engine->devices),
                                   .worker = worker->index,
                                   .stream = worker->stream.handle};
  cleave_status_t status = task->events.count > 0 ? engine_events_wait(task, stream, error) : CLEAVE_OK;
  if (status == CLEAVE_OK && task->start != NULL) {
    task->start(task->self, &run, (cleave_completion_t *)task);
    return false;
  }
  if (status == CLEAVE_OK && task->run != NULL) {
    status = task->run(task->self, &run, error);
  } else if (status != CLEAVE_OK && task->bulk != NULL) {
    fail(task, error); /* for all of its members */
  }
  for (size_t k = 0; task->bulk != NULL && k < task->bulk->members.count; k++) {
    run_member(task, &task->bulk->members.items[k], &run, error);
  }
  if (task->event != NULL) {
    cleave_error_t recording = CLEAVE_ERROR_INIT;
    if (record_end(task, &recording) != CLEAVE_OK && status == CLEAVE_OK) {
      status = cleave_error_take(error, &recording);
    }
  }
  if (status != CLEAVE_OK) {
    (void)cleave_error_set(error, status, "%s",
                           cleave_status_text(status)); /* unless the function said more */
    fail(task, error);
    cleave_error_clear(error);
  }
  return true;
}

/* Takes a popped task to its end, or to where another thread ends it. With the lock held, before and after.
 */
static void run_task(engine_task_t *task, engine_worker_t *worker) {
  cleave_engine_t *engine = task->engine;
  if (engine->has_streams && defer(task, worker, &worker->error)) {
    return;
  }
  task->state = TASK_RUNS;
  task->worker = worker->index;
  bool is_always = (task->flags & CLEAVE_OPERATION_ALWAYS) != 0;
  if (task->failure == NULL && !is_always && task->bulk == NULL) {
    engine_failure_set(&task->failure, engine_task_inherited(task));
    task->is_skipped = task->failure != NULL;
  }
  task->has_run = task->failure == NULL;
  if (!task->has_run) {
    engine_event_release(task->event);
    task->event = NULL;
  }
  engine_unlock(engine);
  task->started = now(engine);
  bool has_ended = (!task->has_run && task->bulk == NULL) || execute(task, worker);
  if (has_ended) {
    if (task->bulk == NULL) {
      trace(task, task->name, task->pushed, task->started, task->is_skipped, status_of(task));
    }
    call_end(task);
  }
  pthread_mutex_lock(&engine->lock);
  if (has_ended) {
    end_task(task);
  }
}

void engine_complete(engine_task_t *task, cleave_status_t status, const char *message) {
  cleave_engine_t *engine = task->engine;
  if (status != CLEAVE_OK) {
    cleave_error_t error = CLEAVE_ERROR_INIT;
    (void)cleave_error_set(&error, status, "%s", message != NULL ? message : cleave_status_text(status));
    fail(task, &error);
  }
  trace(task, task->name, task->pushed, task->started, false, status_of(task));
  call_end(task);
  pthread_mutex_lock(&engine->lock);
  end_task(task);
  if (engine->is_serial) {
    pthread_cond_broadcast(&engine->progress);
  }
  engine_unlock(engine);
}

/* ---- threads ---- */

void *engine_worker_main(void *self) {
  engine_worker_t *worker = self;
  engine_queue_t *queue = worker->queue;
  cleave_engine_t *engine = queue->engine;
  running = engine;
  pthread_mutex_lock(&engine->lock);
  for (;;) {
    engine_task_t *task = engine_queue_pop(queue);
    if (task != NULL) {
      run_task(task, worker);
    } else if (engine->is_stopping) {
      break;
    } else {
      engine_queue_wait(queue);
    }
  }
  pthread_mutex_unlock(&engine->lock);
  return NULL;
}

void *engine_watcher_main(void *self) {
  cleave_engine_t *engine = self;
  pthread_mutex_lock(&engine->lock);
  while (!engine->is_stopping) {
    engine_task_t *task = engine->first_deferred;
    if (task == NULL) {
      pthread_cond_wait(&engine->deferred, &engine->lock);
      continue;
    }
    engine->first_deferred = task->next_ready;
    engine_unlock(engine);
    cleave_error_t error = CLEAVE_ERROR_INIT;
    if (engine_events_wait(task, NULL, &error) != CLEAVE_OK) {
      fail(task, &error);
    }
    pthread_mutex_lock(&engine->lock);
    task->is_synchronised = true;
    engine_task_ready(task);
    engine_wake_workers(engine);
  }
  pthread_mutex_unlock(&engine->lock);
  return NULL;
}

void engine_drain(cleave_engine_t *engine) {
  if (engine->is_draining) {
    return;
  }
  engine->is_draining = true;
  const cleave_engine_t *outer = running;
  for (engine_task_t *task; (task = engine_queue_pop(&engine->devices[0].compute)) != NULL;) {
    engine->is_open = task->start != NULL;
    running = engine;
    run_task(task, &task->device->compute.workers[0]);
    running = outer;
    while (engine->is_open) {
      engine->waiting_threads++;
      pthread_cond_wait(&engine->progress, &engine->lock);
      engine->waiting_threads--;
    }
  }
  engine->is_draining = false;
}
