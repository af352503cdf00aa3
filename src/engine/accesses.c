// SPDX-License-Identifier: Apache-2.0

#include "engine/engine_types.h"

void engine_task_begin(engine_task_t *task) {
  task->order = ++task->engine->order;
  task->missing = 1;
  task->state = TASK_WAITS;
  engine_task_link(task);
}

void engine_access_add(engine_task_t *task, cleave_variable_t *variable, bool is_write) {
  if (variable->mark == task->order) {
    return;
  }
  variable->mark = task->order;
  engine_access_t *access = &task->accesses[task->access_count++];
  *access = (engine_access_t){.variable = variable, .task = task, .is_write = is_write};
  if (variable->first == NULL && !variable->is_writing && (!is_write || variable->active_reads == 0)) {
    variable->is_writing = is_write;
    variable->active_reads += !is_write;
    return;
  }
  task->missing++;
  *(variable->first != NULL ? &variable->last->next : &variable->first) = access;
  variable->last = access;
}

/* The task has one more of what it needs. */
static void give(engine_task_t *task) {
  if (--task->missing == 0) {
    engine_task_ready(task);
  }
}

void engine_task_submit(engine_task_t *task) {
  give(task);
}

engine_failure_t *engine_task_inherited(const engine_task_t *task) {
  for (uint32_t k = 0; k < task->access_count; k++) {
    engine_failure_t *failure = task->accesses[k].variable->failure;
    if (engine_failure_holds(failure)) {
      return failure;
    }
  }
  return NULL;
}

/* Gives the variable to a write at the front of its queue, or to all reads there. */
static void grant(cleave_variable_t *variable) {
  while (variable->first != NULL && !variable->is_writing) {
    engine_access_t *access = variable->first;
    if (access->is_write && variable->active_reads > 0) {
      return;
    }
    variable->first = access->next;
    variable->is_writing = access->is_write;
    variable->active_reads += !access->is_write;
    give(access->task);
  }
}

void engine_variable_free(cleave_variable_t *variable) {
  engine_events_forget(variable);
  cleave_array_free(&variable->read);
  engine_failure_release(variable->failure);
  cleave_engine_t *engine = variable->engine;
  engine->counters.variables--;
  cleave_free(variable->name);
  variable->next = engine->free_variables;
  engine->free_variables = variable;
}

void engine_task_finish(engine_task_t *task) {
  for (uint32_t k = 0; k < task->access_count; k++) {
    cleave_variable_t *variable = task->accesses[k].variable;
    if (task->accesses[k].is_write) {
      variable->version++;
      variable->is_writing = false;
      if (task->bulk == NULL || task->failure != NULL) { /* members of bulks do it themselves */
        engine_failure_set(&variable->failure, task->failure);
      }
    } else {
      variable->active_reads--;
    }
    grant(variable);
  }
  if (task->last_of != NULL) {
    engine_variable_free(task->last_of);
  }
  engine_failure_set(&task->failure, NULL);
  engine_task_unlink(task);
}
