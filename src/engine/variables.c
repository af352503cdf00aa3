// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "engine/engine_types.h"

cleave_status_t cleave_variable_create(cleave_engine_t *engine, const char *name,
                                       cleave_variable_t **out_variable, cleave_error_t *error) {
  char *copy = name != NULL ? cleave_copy_text(name, strlen(name)) : NULL;
  engine_events_t read = {0}; /* with room, so that operations need no memory for it */
  if ((name != NULL && copy == NULL) ||
      (engine->stream_count > 0 && cleave_array_reserve(&read, engine->stream_count, NULL) != CLEAVE_OK)) {
    cleave_free(copy);
    return cleave_error_out_of_memory(error);
  }
  pthread_mutex_lock(&engine->lock);
  cleave_variable_t *variable = engine->free_variables;
  if (variable != NULL) {
    engine->free_variables = variable->next;
  } else {
    variable = cleave_allocate(1, sizeof *variable);
  }
  /* Memory for its end is there before there is something to end. */
  engine_task_t *end = variable != NULL ? engine_task_take(engine, 1) : NULL;
  engine->counters.variables += end != NULL;
  pthread_mutex_unlock(&engine->lock);
  if (end == NULL) {
    cleave_free(copy);
    cleave_array_free(&read);
    cleave_free(variable);
    return cleave_error_out_of_memory(error);
  }
  memset(variable, 0, sizeof *variable);
  variable->engine = engine;
  variable->name = copy;
  variable->read = read;
  variable->end = end;
  *out_variable = variable;
  return CLEAVE_OK;
}

/* With the lock held: does nobody have it or wait for it, and no stream use it? */
static bool is_idle(const cleave_variable_t *variable) {
  return !variable->is_writing && variable->active_reads == 0 && variable->first == NULL &&
         variable->written == NULL && variable->read.count == 0;
}

void cleave_variable_release(cleave_variable_t *variable, void (*end)(void *self), void *self) {
  if (variable == NULL) {
    return;
  }
  cleave_engine_t *engine = variable->engine;
  engine_bulk_flush(engine_bulk_here(engine));
  pthread_mutex_lock(&engine->lock);
  engine_task_t *task = variable->end;
  if (is_idle(variable)) {
    engine_task_give(task);
    engine_variable_free(variable);
    engine_unlock(engine);
    if (end != NULL) {
      end(self);
    }
    return;
  }
  task->name = variable->name;
  task->end = end;
  task->self = self;
  task->needs_host = true;
  task->last_of = variable;
  engine_task_place(task, 0, CLEAVE_OPERATION_ALWAYS, INT32_MAX); /* what it frees may be wanted soon */
  engine_task_begin(task);
  engine_access_add(task, variable, true);
  engine_task_submit(task);
  engine_push_end(engine);
}

uint64_t cleave_variable_version(cleave_variable_t *variable) {
  pthread_mutex_lock(&variable->engine->lock);
  uint64_t version = variable->version;
  pthread_mutex_unlock(&variable->engine->lock);
  return version;
}

/* With the lock held: the calling thread has the variable for reading. */
static void take_for_reading(engine_task_t *task, cleave_variable_t *variable) {
  cleave_engine_t *engine = variable->engine;
  pthread_cond_t has_all = PTHREAD_COND_INITIALIZER;
  task->name = "wait";
  task->waiter = &has_all;
  engine_task_begin(task);
  engine_access_add(task, variable, false);
  engine_task_submit(task);
  while (task->state != TASK_IS_READY) {
    pthread_cond_wait(&has_all, &engine->lock);
  }
  pthread_cond_destroy(&has_all);
}

/* With the lock held, which is given back for a while: the last write has ended in its stream, too. */
static cleave_status_t wait_for_stream(const cleave_variable_t *variable, cleave_error_t *error) {
  engine_event_t *event = variable->written;
  if (event == NULL) {
    return CLEAVE_OK;
  }
  event->references++;
  engine_unlock(variable->engine);
  cleave_status_t status = engine_event_synchronize(event, error);
  pthread_mutex_lock(&variable->engine->lock);
  engine_event_release(event);
  return status;
}

cleave_status_t cleave_variable_wait(cleave_variable_t *variable, cleave_error_t *error) {
  cleave_engine_t *engine = variable->engine;
  if (engine_runs_here(engine)) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "engine: an operation waits for variable '%s': it must read it instead",
                            variable->name != NULL ? variable->name : "");
  }
  engine_bulk_flush(engine_bulk_here(engine));
  pthread_mutex_lock(&engine->lock);
  engine_task_t *task = engine_task_take(engine, 1);
  if (task == NULL) {
    pthread_mutex_unlock(&engine->lock);
    return cleave_error_out_of_memory(error);
  }
  take_for_reading(task, variable);
  cleave_status_t status = wait_for_stream(variable, error);
  CLEAVE_THEN(status, engine_failure_report(variable->failure, error));
  engine_task_finish(task);
  engine_task_give(task);
  engine_unlock(engine);
  return status;
}
