// SPDX-License-Identifier: Apache-2.0
#include "engine/engine_types.h"

#include <string.h>

static uint32_t class_of(uint32_t capacity) {
  uint32_t index = 0;
  while (((uint32_t)ENGINE_SMALLEST_TASK << index) < capacity) {
    index++;
  }
  return index;
}

/* One that is in no list. */
static engine_task_t *allocate(uint32_t index) {
  size_t room = (size_t)ENGINE_SMALLEST_TASK << index;
  engine_task_t *task = cleave_allocate(1, sizeof *task + room * sizeof task->accesses[0]);
  if (task != NULL) {
    task->events = (engine_events_t){0};
  }
  return task;
}

static engine_task_t *clear(cleave_engine_t *engine, engine_task_t *task, uint32_t index) {
  engine_events_t events = task->events;
  memset(task, 0, sizeof *task);
  task->engine = engine;
  task->capacity = (uint32_t)ENGINE_SMALLEST_TASK << index;
  task->events = events;
  return task;
}

engine_task_t *engine_task_create(cleave_engine_t *engine, uint32_t capacity) {
  uint32_t index = class_of(capacity);
  engine_task_t *task = index < ENGINE_TASK_CLASSES ? allocate(index) : NULL;
  return task == NULL ? NULL : clear(engine, task, index);
}

engine_task_t *engine_task_take(cleave_engine_t *engine, uint32_t capacity) {
  uint32_t index = class_of(capacity);
  engine_task_t *task = index < ENGINE_TASK_CLASSES ? engine->free_tasks[index] : NULL;
  if (task == NULL) {
    return engine_task_create(engine, capacity);
  }
  engine->free_tasks[index] = task->next;
  return clear(engine, task, index);
}

void engine_task_give(engine_task_t *task) {
  uint32_t index = class_of(task->capacity);
  task->next = task->engine->free_tasks[index];
  task->engine->free_tasks[index] = task;
}

void engine_tasks_free(cleave_engine_t *engine) {
  for (uint32_t k = 0; k < ENGINE_TASK_CLASSES; k++) {
    while (engine->free_tasks[k] != NULL) {
      engine_task_t *task = engine->free_tasks[k];
      engine->free_tasks[k] = task->next;
      cleave_array_free(&task->events);
      cleave_free(task);
    }
  }
}

void engine_task_link(engine_task_t *task) {
  cleave_engine_t *engine = task->engine;
  task->previous = engine->last_task;
  task->next = NULL;
  *(engine->last_task != NULL ? &engine->last_task->next : &engine->first_task) = task;
  engine->last_task = task;
  engine->pending++;
}

void engine_task_unlink(engine_task_t *task) {
  cleave_engine_t *engine = task->engine;
  *(task->previous != NULL ? &task->previous->next : &engine->first_task) = task->next;
  *(task->next != NULL ? &task->next->previous : &engine->last_task) = task->previous;
  if (--engine->pending == 0 && engine->waiting_threads > 0) {
    pthread_cond_broadcast(&engine->progress);
  }
}
