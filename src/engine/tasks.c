// SPDX-License-Identifier: Apache-2.0
#include "engine/tasks.h"

#include <string.h>

static uint32_t class_of(uint32_t capacity) {
  uint32_t index = 0;
  while (((uint32_t)ENGINE_SMALLEST_TASK << index) < capacity) {
    index++;
  }
  return index;
}

engine_task_t *engine_task_take(cleave_engine_t *engine, uint32_t capacity) {
  uint32_t index = class_of(capacity);
  if (index >= ENGINE_TASK_CLASSES) {
    return NULL;
  }
  engine_task_t *task = engine->free_tasks[index];
  engine_events_t events = {0};
  if (task != NULL) {
    engine->free_tasks[index] = task->next;
    events = task->events;
  } else {
    size_t room = (size_t)ENGINE_SMALLEST_TASK << index;
    task = cleave_allocate(1, sizeof *task + room * sizeof task->accesses[0]);
    if (task == NULL) {
      return NULL;
    }
  }
  memset(task, 0, sizeof *task);
  task->engine = engine;
  task->capacity = (uint32_t)ENGINE_SMALLEST_TASK << index;
  task->events = events;
  return task;
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
