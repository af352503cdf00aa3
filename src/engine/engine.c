// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/sized.h"
#include "engine/engine_types.h"
#include "system/threads.h"

/* ---- devices ---- */

static cleave_status_t start_queue(engine_queue_t *queue, engine_device_t *device, uint32_t workers,
                                   cleave_error_t *error) {
  queue->device = device;
  queue->workers = cleave_allocate_zeroed(workers, sizeof *queue->workers);
  CLEAVE_TRY_MEMORY(queue->workers, error);
  queue->worker_count = workers;
  for (uint32_t k = 0; k < workers; k++) {
    queue->workers[k].queue = queue;
    queue->workers[k].index = k;
    CLEAVE_TRY(engine_stream_start(&queue->workers[k], error));
  }
  return CLEAVE_OK;
}

static cleave_status_t start_device(cleave_engine_t *engine, engine_device_t *device,
                                    const cleave_engine_device_t *info, cleave_error_t *error) {
  const char *name = info->name != NULL ? info->name : "";
  device->name = cleave_copy_text(name, strlen(name));
  CLEAVE_TRY_MEMORY(device->name, error);
  device->self = info->self;
  if (info->streams != NULL) {
    device->has_streams = true;
    engine->has_streams = true;
    CLEAVE_TRY(CLEAVE_SIZED_IN(cleave_stream_functions_t, info->streams, &device->functions, error));
  }
  uint32_t workers = info->workers;
  if (workers == 0) {
    workers = device->has_streams ? 1 : (uint32_t)cleave_threads_available();
  }
  uint32_t copy_workers = info->copy_workers;
  if (engine->is_serial) {
    workers = 1;
    copy_workers = 0;
  }
  CLEAVE_TRY(start_queue(&device->compute, device, workers, error));
  return start_queue(&device->copy, device, copy_workers, error);
}

static cleave_status_t start_thread(pthread_t *thread, bool *is_started, void *(*body)(void *), void *self,
                                    cleave_error_t *error) {
  int code = pthread_create(thread, NULL, body, self);
  if (code != 0) {
    return cleave_error_set(error, CLEAVE_ERROR_BACKEND, "engine: a thread cannot be started: %s",
                            strerror(code));
  }
  *is_started = true;
  return CLEAVE_OK;
}

static cleave_status_t start_workers(engine_queue_t *queue, cleave_error_t *error) {
  for (uint32_t k = 0; k < queue->worker_count; k++) {
    engine_worker_t *worker = &queue->workers[k];
    CLEAVE_TRY(start_thread(&worker->thread, &worker->has_thread, engine_worker_main, worker, error));
  }
  return CLEAVE_OK;
}

static void stop_workers(engine_queue_t *queue) {
  for (uint32_t k = 0; k < queue->worker_count; k++) {
    if (queue->workers[k].has_thread) {
      pthread_join(queue->workers[k].thread, NULL);
    }
  }
}

/* Every event is back in the list of its stream then: no variable lives. In a forked process conditions have
 * waiters that will never leave, and streams are not its own. */
static void end_queue(engine_queue_t *queue, bool is_forked) {
  for (uint32_t k = 0; k < queue->worker_count && !is_forked; k++) {
    engine_stream_end(&queue->workers[k]);
  }
  cleave_free(queue->workers);
  if (!is_forked) {
    pthread_cond_destroy(&queue->wake);
  }
}

/* ---- engines ---- */

static cleave_status_t start_engine(cleave_engine_t *engine, const cleave_engine_options_t *options,
                                    cleave_error_t *error) {
  static const cleave_engine_device_t host = {.size = sizeof host, .name = "host"};
  const cleave_engine_device_t *devices = options->devices != NULL ? options->devices : &host;
  engine->device_count = options->devices != NULL ? options->device_count : 1;
  engine->devices = cleave_allocate_zeroed(engine->device_count, sizeof *engine->devices);
  if (engine->devices == NULL) {
    engine->device_count = 0;
    return cleave_error_out_of_memory(error);
  }
  for (uint32_t d = 0; d < engine->device_count; d++) {
    engine_queue_t *queues[] = {&engine->devices[d].compute, &engine->devices[d].copy};
    for (int k = 0; k < 2; k++) {
      queues[k]->engine = engine;
      pthread_cond_init(&queues[k]->wake, NULL);
    }
  }
  for (uint32_t d = 0; d < engine->device_count; d++) {
    CLEAVE_TRY(start_device(engine, &engine->devices[d], &devices[d], error));
  }
  for (uint32_t d = 0; d < engine->device_count && !engine->is_serial; d++) {
    CLEAVE_TRY(start_workers(&engine->devices[d].compute, error));
    CLEAVE_TRY(start_workers(&engine->devices[d].copy, error));
  }
  if (engine->has_streams && !engine->is_serial) {
    return start_thread(&engine->watcher, &engine->has_watcher, engine_watcher_main, engine, error);
  }
  return CLEAVE_OK;
}

static void stop_threads(cleave_engine_t *engine) {
  pthread_mutex_lock(&engine->lock);
  engine->is_stopping = true;
  for (uint32_t d = 0; d < engine->device_count; d++) {
    pthread_cond_broadcast(&engine->devices[d].compute.wake);
    pthread_cond_broadcast(&engine->devices[d].copy.wake);
  }
  pthread_cond_broadcast(&engine->deferred);
  pthread_mutex_unlock(&engine->lock);
  for (uint32_t d = 0; d < engine->device_count; d++) {
    stop_workers(&engine->devices[d].compute);
    stop_workers(&engine->devices[d].copy);
  }
  if (engine->has_watcher) {
    pthread_join(engine->watcher, NULL);
  }
}

static void free_engine(cleave_engine_t *engine) {
  bool is_forked = engine->fork_count != engine_fork_count();
  for (uint32_t d = 0; d < engine->device_count; d++) {
    end_queue(&engine->devices[d].compute, is_forked);
    end_queue(&engine->devices[d].copy, is_forked);
    cleave_free(engine->devices[d].name);
  }
  cleave_free(engine->devices);
  while (engine->free_variables != NULL) {
    cleave_variable_t *variable = engine->free_variables;
    engine->free_variables = variable->next;
    cleave_free(variable);
  }
  engine_bulks_end(engine);
  engine_failures_end(engine);
  engine_tasks_free(engine);
  if (!is_forked) {
    pthread_cond_destroy(&engine->progress);
    pthread_cond_destroy(&engine->deferred);
    pthread_mutex_destroy(&engine->lock);
  }
  cleave_free(engine);
}

static void create_lock(cleave_engine_t *engine) {
  pthread_mutexattr_t kind;
  pthread_mutexattr_init(&kind);
#ifdef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
  pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ADAPTIVE_NP); /* held for well under a microsecond */
#endif
  pthread_mutex_init(&engine->lock, &kind);
  pthread_mutexattr_destroy(&kind);
  pthread_cond_init(&engine->progress, NULL);
  pthread_cond_init(&engine->deferred, NULL);
}

cleave_status_t cleave_engine_create(const cleave_engine_options_t *options, cleave_engine_t **out_engine,
                                     cleave_error_t *error) {
  cleave_engine_options_t known = {.size = sizeof known};
  CLEAVE_TRY(CLEAVE_SIZED_IN(cleave_engine_options_t, options, &known, error));
  if (known.devices != NULL && known.device_count == 0) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "engine: expected at least one device, found 0");
  }
  cleave_engine_t *engine = cleave_allocate_zeroed(1, sizeof *engine);
  CLEAVE_TRY_MEMORY(engine, error);
  cleave_status_t status = engine_failures_start(engine, error);
  CLEAVE_THEN(status, engine_bulks_start(engine, error));
  if (status != CLEAVE_OK) {
    cleave_free(engine->spare_failure);
    cleave_free(engine);
    return status;
  }
  engine->is_serial = known.is_serial;
  engine->trace = known.trace;
  engine->trace_self = known.trace_self;
  engine->fork_count = engine_fork_count();
  create_lock(engine);
  status = start_engine(engine, &known, error);
  if (status != CLEAVE_OK) {
    stop_threads(engine);
    free_engine(engine);
    return status;
  }
  *out_engine = engine;
  return CLEAVE_OK;
}

/* Without the lock: everything in streams has ended. */
static cleave_status_t synchronize_streams(cleave_engine_t *engine, cleave_error_t *error) {
  cleave_status_t status = CLEAVE_OK;
  for (uint32_t d = 0; d < engine->device_count; d++) {
    engine_queue_t *queues[] = {&engine->devices[d].compute, &engine->devices[d].copy};
    for (int q = 0; q < 2; q++) {
      for (uint32_t k = 0; k < queues[q]->worker_count; k++) {
        pthread_mutex_lock(&engine->lock);
        engine_event_t *event = queues[q]->workers[k].stream.last;
        if (event != NULL) {
          event->references++;
        }
        pthread_mutex_unlock(&engine->lock);
        if (event != NULL) {
          cleave_status_t ended = engine_event_synchronize(event, error);
          status = status != CLEAVE_OK ? status : ended;
          pthread_mutex_lock(&engine->lock);
          engine_event_release(event);
          pthread_mutex_unlock(&engine->lock);
        }
      }
    }
  }
  return status;
}

/* With the lock held: until all that was pushed has ended. */
static void wait_for_tasks(cleave_engine_t *engine) {
  engine->waiting_threads++;
  while (engine->pending > 0) {
    pthread_cond_wait(&engine->progress, &engine->lock);
  }
  engine->waiting_threads--;
}

cleave_status_t cleave_engine_wait(cleave_engine_t *engine, cleave_error_t *error) {
  if (engine_runs_here(engine)) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "engine: an operation waits for all operations, itself included");
  }
  engine_bulk_flush(engine_bulk_here(engine));
  pthread_mutex_lock(&engine->lock);
  wait_for_tasks(engine);
  pthread_mutex_unlock(&engine->lock);
  cleave_status_t streams = synchronize_streams(engine, error);
  pthread_mutex_lock(&engine->lock);
  cleave_status_t status = engine_failures_report(engine, error);
  pthread_mutex_unlock(&engine->lock);
  return streams != CLEAVE_OK ? streams : status;
}

void cleave_engine_destroy(cleave_engine_t *engine) {
  if (engine == NULL) {
    return;
  }
  if (engine->fork_count == engine_fork_count()) {
    engine_bulk_flush(engine_bulk_here(engine));
    pthread_mutex_lock(&engine->lock);
    wait_for_tasks(engine);
    pthread_mutex_unlock(&engine->lock);
    (void)synchronize_streams(engine, NULL);
    stop_threads(engine);
  }
  free_engine(engine);
}

void cleave_engine_count(cleave_engine_t *engine, cleave_engine_counters_t *out_counters) {
  pthread_mutex_lock(&engine->lock);
  cleave_engine_counters_t counters = engine->counters;
  counters.ready = 0;
  for (uint32_t d = 0; d < engine->device_count; d++) {
    counters.ready +=
        atomic_load(&engine->devices[d].compute.ready) + atomic_load(&engine->devices[d].copy.ready);
  }
  pthread_mutex_unlock(&engine->lock);
  CLEAVE_SIZED_OUT(cleave_engine_counters_t, &counters, out_counters);
}

cleave_status_t cleave_engine_push(cleave_engine_t *engine, const cleave_operation_info_t *given,
                                   cleave_error_t *error) {
  cleave_operation_info_t info = {.size = sizeof info};
  CLEAVE_TRY(CLEAVE_SIZED_IN(cleave_operation_info_t, given, &info, error));
  CLEAVE_TRY(engine_operation_check(engine, &info, error));
  engine_bulk_t *bulk = engine_bulk_here(engine);
  if (bulk != NULL) {
    if (engine_bulk_takes(bulk, &info)) {
      return engine_bulk_add(bulk, &info, error);
    }
    engine_bulk_flush(bulk);
  }
  return engine_operation_push(engine, &info, NULL, error);
}

cleave_status_t cleave_operation_push(cleave_operation_t *operation, cleave_error_t *error) {
  cleave_engine_t *engine = operation->engine;
  CLEAVE_TRY(engine_operation_check(engine, &operation->info, error));
  engine_bulk_flush(engine_bulk_here(engine));
  return engine_operation_push(engine, &operation->info, operation, error);
}
