// SPDX-License-Identifier: Apache-2.0

#include <string.h>

#include "base/sized.h"
#include "engine/engine_types.h"
#include "system/clock.h"

static _Atomic uint64_t forks;

static void count_fork(void) {
  atomic_fetch_add(&forks, 1);
}

static void watch_forks(void) {
  (void)pthread_atfork(NULL, NULL, count_fork);
}

uint64_t engine_fork_count(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, watch_forks);
  return atomic_load_explicit(&forks, memory_order_relaxed);
}

static const char *name_of(const cleave_operation_info_t *info) {
  return info->name != NULL ? info->name : "";
}

static cleave_status_t check_variables(const cleave_engine_t *engine, const cleave_operation_info_t *info,
                                       cleave_variable_t *const *variables, uint32_t count, const char *use,
                                       cleave_error_t *error) {
  if (count > 0 && variables == NULL) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "operation '%s': expected an array of %u variable%s to %s, found NULL",
                            name_of(info), count, CLEAVE_PLURAL(count), use);
  }
  for (uint32_t k = 0; k < count; k++) {
    if (variables[k] == NULL || variables[k]->engine != engine) {
      return cleave_error_set(
          error, CLEAVE_ERROR_INVALID_ARGUMENT,
          "operation '%s': variable %u to %s: expected a variable of this engine, found %s", name_of(info), k,
          use, variables[k] == NULL ? "NULL" : "one of another");
    }
  }
  return CLEAVE_OK;
}

cleave_status_t engine_operation_check(const cleave_engine_t *engine, const cleave_operation_info_t *info,
                                       cleave_error_t *error) {
  if ((info->run == NULL) == (info->start == NULL)) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "operation '%s': expected either `run` or `start`, found %s", name_of(info),
                            info->run == NULL ? "neither" : "both");
  }
  if (info->device >= engine->device_count) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "operation '%s': expected one of %u device%s, found number %u", name_of(info),
                            engine->device_count, CLEAVE_PLURAL(engine->device_count), info->device);
  }
  if (engine->fork_count != engine_fork_count()) {
    return cleave_error_set(
        error, CLEAVE_ERROR_INVALID_ARGUMENT,
        "operation '%s': the engine belongs to the process that this one was forked from; "
        "create another after the fork",
        name_of(info));
  }
  CLEAVE_TRY(check_variables(engine, info, info->reads, info->read_count, "read", error));
  return check_variables(engine, info, info->writes, info->write_count, "write", error);
}

void engine_task_place(engine_task_t *task, uint32_t device, uint32_t flags, int32_t priority) {
  cleave_engine_t *engine = task->engine;
  task->device = &engine->devices[device];
  task->flags = flags;
  if (engine->is_serial) { /* one queue, in order of pushes */
    task->queue = &engine->devices[0].compute;
    return;
  }
  task->priority = priority;
  bool is_copy = (flags & CLEAVE_OPERATION_COPY) != 0 && task->device->copy.worker_count > 0;
  task->queue = is_copy ? &task->device->copy : &task->device->compute;
}

void engine_push_end(cleave_engine_t *engine) {
  if (engine->is_serial) {
    engine_drain(engine);
  }
  engine_unlock(engine);
}

cleave_status_t engine_operation_push(cleave_engine_t *engine, const cleave_operation_info_t *info,
                                      cleave_operation_t *operation, cleave_error_t *error) {
  uint64_t pushed = engine->trace != NULL ? cleave_clock_now() : 0;
  pthread_mutex_lock(&engine->lock);
  engine_task_t *task = engine_task_take(engine, info->read_count + info->write_count);
  if (task == NULL) {
    pthread_mutex_unlock(&engine->lock);
    return cleave_error_out_of_memory(error);
  }
  task->name = info->name;
  task->run = info->run;
  task->start = info->start;
  task->end = info->end;
  task->self = info->self;
  task->pushed = pushed;
  task->operation = operation;
  if (operation != NULL) {
    operation->references++;
  }
  engine_task_place(task, info->device, info->flags, info->priority);
  engine_task_begin(task);
  for (uint32_t k = 0; k < info->write_count; k++) {
    engine_access_add(task, info->writes[k], true);
  }
  for (uint32_t k = 0; k < info->read_count; k++) {
    engine_access_add(task, info->reads[k], false);
  }
  engine->counters.pushed++;
  engine_task_submit(task);
  engine_push_end(engine);
  return CLEAVE_OK;
}

/* A task, and events, in the lists of free ones: if every operation that was created is pushed once before
 * any of them is pushed again, pushes allocate nothing. */
static bool reserve(cleave_engine_t *engine, const cleave_operation_info_t *info) {
  pthread_mutex_lock(&engine->lock);
  engine_task_t *task = engine_task_create(engine, info->read_count + info->write_count);
  bool is_there = task != NULL;
  if (is_there) {
    engine_task_place(task, info->device, info->flags, info->priority);
    is_there = engine_events_reserve(task);
    engine_task_give(task);
  }
  pthread_mutex_unlock(&engine->lock);
  return is_there;
}

cleave_status_t cleave_operation_create(cleave_engine_t *engine, const cleave_operation_info_t *given,
                                        cleave_operation_t **out_operation, cleave_error_t *error) {
  cleave_operation_info_t own = {.size = sizeof own};
  const cleave_operation_info_t *info = &own;
  CLEAVE_TRY(CLEAVE_SIZED_IN(cleave_operation_info_t, given, &own, error));
  CLEAVE_TRY(engine_operation_check(engine, info, error));
  size_t count = (size_t)info->read_count + info->write_count;
  cleave_operation_t *operation = cleave_allocate(1, sizeof *operation + count * sizeof(cleave_variable_t *));
  CLEAVE_TRY_MEMORY(operation, error);
  cleave_variable_t **variables = (cleave_variable_t **)(operation + 1);
  *operation = (cleave_operation_t){.engine = engine, .references = 1, .info = *info};
  if (info->read_count > 0) {
    memcpy(variables, info->reads, info->read_count * sizeof(cleave_variable_t *));
  }
  if (info->write_count > 0) {
    memcpy(variables + info->read_count, info->writes, info->write_count * sizeof(cleave_variable_t *));
  }
  if (!reserve(engine, info)) {
    cleave_free(operation);
    return cleave_error_out_of_memory(error);
  }
  operation->info.reads = variables;
  operation->info.writes = variables + info->read_count;
  *out_operation = operation;
  return CLEAVE_OK;
}

void cleave_operation_release(cleave_operation_t *operation) {
  if (operation == NULL) {
    return;
  }
  pthread_mutex_lock(&operation->engine->lock);
  bool is_last = --operation->references == 0;
  pthread_mutex_unlock(&operation->engine->lock);
  if (is_last) {
    if (operation->info.end != NULL) {
      operation->info.end(operation->info.self);
    }
    cleave_free(operation);
  }
}

void cleave_operation_complete(cleave_completion_t *completion, cleave_status_t status, const char *message) {
  engine_complete((engine_task_t *)completion, status, message);
}
