// SPDX-License-Identifier: Apache-2.0
/* Tasks: made and freed, known to the engine from push to end. With the lock held. */
#ifndef CLEAVE_ENGINE_TASKS_H
#define CLEAVE_ENGINE_TASKS_H

#include "engine/engine_types.h"

/* A task with room for `capacity` variables, all zero but for that; NULL: no memory. */
engine_task_t *engine_task_take(cleave_engine_t *engine, uint32_t capacity);
/* The same, never one of the free ones. */
engine_task_t *engine_task_create(cleave_engine_t *engine, uint32_t capacity);
/* Back to the free ones. */
void engine_task_give(engine_task_t *task);
/* Frees the free ones. */
void engine_tasks_free(cleave_engine_t *engine);

/* Into and out of the list of all that have not ended. */
void engine_task_link(engine_task_t *task);
void engine_task_unlink(engine_task_t *task);

#endif /* CLEAVE_ENGINE_TASKS_H */
