// SPDX-License-Identifier: Apache-2.0

#include <string.h>

#include "engine/engine_types.h"
#include "system/clock.h"

engine_bulk_t *engine_bulk_here(const cleave_engine_t *engine) {
  return pthread_getspecific(engine->thread_bulk);
}

bool engine_bulk_takes(const engine_bulk_t *bulk, const cleave_operation_info_t *info) {
  return bulk->limit > 1 && info->run != NULL && info->flags == 0 && info->priority == 0 &&
         !engine_runs_here(bulk->engine);
}

/* The bulk that a flush hands over. */
static cleave_status_t take_spare(engine_bulk_t *bulk, cleave_error_t *error) {
  cleave_engine_t *engine = bulk->engine;
  pthread_mutex_lock(&engine->lock);
  bulk->spare = engine->free_bulks;
  engine->free_bulks = bulk->spare != NULL ? bulk->spare->next : NULL;
  pthread_mutex_unlock(&engine->lock);
  if (bulk->spare == NULL) {
    bulk->spare = cleave_allocate_zeroed(1, sizeof *bulk->spare);
    CLEAVE_TRY_MEMORY(bulk->spare, error);
    bulk->spare->engine = engine;
  }
  bulk->spare->next = NULL;
  return CLEAVE_OK;
}

/* Room for a member with `count` variables more, in the bulk and in its task. */
static cleave_status_t reserve(engine_bulk_t *bulk, size_t count, cleave_error_t *error) {
  CLEAVE_TRY(cleave_array_reserve(&bulk->members, 1, error));
  CLEAVE_TRY(cleave_array_reserve(&bulk->variables, count, error));
  size_t wanted = bulk->variables.count + count;
  if (bulk->spare == NULL) {
    CLEAVE_TRY(take_spare(bulk, error));
  }
  if (bulk->task != NULL && bulk->task->capacity >= wanted) {
    return CLEAVE_OK;
  }
  cleave_engine_t *engine = bulk->engine;
  pthread_mutex_lock(&engine->lock);
  engine_task_t *task = engine_task_take(engine, wanted < UINT32_MAX ? (uint32_t)wanted : UINT32_MAX);
  if (task != NULL && bulk->task != NULL) {
    engine_task_give(bulk->task);
  }
  pthread_mutex_unlock(&engine->lock);
  CLEAVE_TRY_MEMORY(task, error);
  bulk->task = task;
  return CLEAVE_OK;
}

static void add_variables(engine_bulk_t *bulk, cleave_variable_t *const *variables, uint32_t count,
                          bool is_write) {
  for (uint32_t k = 0; k < count; k++) {
    const engine_bulk_variable_t item = {.variable = variables[k], .is_write = is_write};
    cleave_array_push_reserved(&bulk->variables, item);
  }
}

cleave_status_t engine_bulk_add(engine_bulk_t *bulk, const cleave_operation_info_t *info,
                                cleave_error_t *error) {
  if (bulk->members.count > 0 && bulk->device != info->device) {
    engine_bulk_flush(bulk);
  }
  CLEAVE_TRY(reserve(bulk, (size_t)info->read_count + info->write_count, error));
  bulk->device = info->device;
  engine_member_t member = {.name = info->name, .run = info->run, .end = info->end, .self = info->self};
  member.pushed = bulk->engine->trace != NULL ? cleave_clock_now() : 0;
  member.first_variable = (uint32_t)bulk->variables.count;
  add_variables(bulk, info->writes, info->write_count, true);
  add_variables(bulk, info->reads, info->read_count, false);
  member.end_variable = (uint32_t)bulk->variables.count;
  cleave_array_push_reserved(&bulk->members, member);
  if (bulk->members.count >= bulk->limit) {
    engine_bulk_flush(bulk);
  }
  return CLEAVE_OK;
}

/* Gives the task a bulk of its own; the thread's goes on with the empty arrays of the spare one. */
static engine_bulk_t *hand_over(engine_bulk_t *bulk) {
  engine_bulk_t *other = bulk->spare;
  engine_bulk_t mine = *bulk;
  bulk->members = other->members;
  bulk->variables = other->variables;
  bulk->task = NULL;
  bulk->spare = NULL;
  other->members = mine.members;
  other->variables = mine.variables;
  return other;
}

void engine_bulk_flush(engine_bulk_t *bulk) {
  if (bulk == NULL || bulk->members.count == 0) {
    return;
  }
  cleave_engine_t *engine = bulk->engine;
  engine_task_t *task = bulk->task;
  pthread_mutex_lock(&engine->lock);
  task->bulk = hand_over(bulk);
  task->name = "bulk";
  engine_task_place(task, bulk->device, 0, 0);
  engine_task_begin(task);
  for (int is_read = 0; is_read < 2; is_read++) { /* writes first */
    for (size_t k = 0; k < task->bulk->variables.count; k++) {
      const engine_bulk_variable_t *item = &task->bulk->variables.items[k];
      if (item->is_write == (is_read == 0)) {
        engine_access_add(task, item->variable, item->is_write);
      }
    }
  }
  engine->counters.pushed += task->bulk->members.count;
  engine->counters.bulks += task->bulk->members.count > 1;
  engine_task_submit(task);
  engine_push_end(engine);
}

/* A thread ends. */
static void end_thread(void *self) {
  engine_bulk_t *bulk = self;
  cleave_engine_t *engine = bulk->engine;
  engine_bulk_flush(bulk);
  pthread_mutex_lock(&engine->lock);
  for (engine_bulk_t **at = &engine->thread_bulks; *at != NULL; at = &(*at)->next) {
    if (*at == bulk) {
      *at = bulk->next;
      break;
    }
  }
  bulk->next = engine->free_bulks;
  engine->free_bulks = bulk;
  pthread_mutex_unlock(&engine->lock);
}

uint32_t cleave_engine_set_bulk(cleave_engine_t *engine, uint32_t count) {
  engine_bulk_t *bulk = engine_bulk_here(engine);
  if (bulk == NULL) {
    if (count <= 1) {
      return 0;
    }
    bulk = cleave_allocate_zeroed(1, sizeof *bulk);
    if (bulk == NULL || pthread_setspecific(engine->thread_bulk, bulk) != 0) {
      cleave_free(bulk); /* each by itself, then */
      return 0;
    }
    bulk->engine = engine;
    pthread_mutex_lock(&engine->lock);
    bulk->next = engine->thread_bulks;
    engine->thread_bulks = bulk;
    pthread_mutex_unlock(&engine->lock);
  }
  uint32_t before = bulk->limit;
  bulk->limit = count;
  if (bulk->members.count >= count) {
    engine_bulk_flush(bulk);
  }
  return before;
}

void cleave_engine_flush(cleave_engine_t *engine) {
  engine_bulk_flush(engine_bulk_here(engine));
}

cleave_status_t engine_bulks_start(cleave_engine_t *engine, cleave_error_t *error) {
  int code = pthread_key_create(&engine->thread_bulk, end_thread);
  return code == 0 ? CLEAVE_OK
                   : cleave_error_set(error, CLEAVE_ERROR_BACKEND, "engine: no key for its threads: %s",
                                      strerror(code));
}

static void free_bulks(engine_bulk_t *bulk) {
  while (bulk != NULL) {
    engine_bulk_t *next = bulk->next;
    if (bulk->task != NULL) {
      engine_task_give(bulk->task);
    }
    free_bulks(bulk->spare);
    cleave_array_free(&bulk->members);
    cleave_array_free(&bulk->variables);
    cleave_free(bulk);
    bulk = next;
  }
}

void engine_bulks_end(cleave_engine_t *engine) {
  (void)pthread_key_delete(engine->thread_bulk);
  free_bulks(engine->free_bulks);
  free_bulks(engine->thread_bulks);
}
