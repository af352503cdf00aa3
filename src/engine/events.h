// SPDX-License-Identifier: Apache-2.0
/* Streams of devices, and the events by which variables know what in them still uses them. With the lock
 * held, unless said otherwise. */
#ifndef CLEAVE_ENGINE_EVENTS_H
#define CLEAVE_ENGINE_EVENTS_H

#include "engine/engine_types.h"

/* An event of the stream that nobody refers to, with one reference; NULL: no memory. */
engine_event_t *engine_event_take(engine_stream_t *stream);
void engine_event_release(engine_event_t *event);

/* Room in task->events, and free events in the streams that may run the task: as many as it can hold at once,
 * that of its last run and that of the next. False: no memory. */
bool engine_events_reserve(engine_task_t *task);

/* Appends to task->events, with a reference each, what its worker's `stream` (NULL: the host) must wait for.
 */
CLEAVE_MUST_USE cleave_status_t engine_events_collect(engine_task_t *task, const engine_stream_t *stream,
                                                      cleave_error_t *error);
void engine_events_drop(engine_task_t *task);

/* Without the lock: the stream waits for the task's events, or this thread does if `stream` is NULL. */
CLEAVE_MUST_USE cleave_status_t engine_events_wait(const engine_task_t *task, const engine_stream_t *stream,
                                                   cleave_error_t *error);
CLEAVE_MUST_USE cleave_status_t engine_event_synchronize(const engine_event_t *event, cleave_error_t *error);
/* Without the lock: task->event is the stream's end now. */
CLEAVE_MUST_USE cleave_status_t engine_event_record(const engine_task_t *task, cleave_error_t *error);

/* The task, which was not skipped, has ended: its variables know task->event (NULL: all was done by then). */
void engine_events_note(engine_task_t *task);

/* The variable goes, or what it knows of streams is over. */
void engine_events_forget(cleave_variable_t *variable);

/* Creates or destroys the worker's stream, all events with it. */
CLEAVE_MUST_USE cleave_status_t engine_stream_start(engine_worker_t *worker, cleave_error_t *error);
void engine_stream_end(engine_worker_t *worker);

#endif /* CLEAVE_ENGINE_EVENTS_H */
