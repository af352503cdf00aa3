// SPDX-License-Identifier: Apache-2.0
/* Queues of ready tasks: the highest priority first, equal ones in order. With the lock held, unless said
 * otherwise. */
#ifndef CLEAVE_ENGINE_QUEUES_H
#define CLEAVE_ENGINE_QUEUES_H

#include "engine/engine_types.h"

/* The task has all its variables: into its queue, or its thread is woken. */
void engine_task_ready(engine_task_t *task);

/* The first one, taken out; NULL: there is none. */
engine_task_t *engine_queue_pop(engine_queue_t *queue);

/* Wakes sleeping workers for what is ready: before the lock is given back, if something may have become
 * ready. */
void engine_wake_workers(cleave_engine_t *engine);
/* The same, and gives the lock back. */
void engine_unlock(cleave_engine_t *engine);

/* Waits until something is ready or the engine stops. */
void engine_queue_wait(engine_queue_t *queue);

#endif /* CLEAVE_ENGINE_QUEUES_H */
