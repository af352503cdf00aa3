// SPDX-License-Identifier: Apache-2.0
#include "engine/engine_types.h"

static engine_event_t *create_event(engine_stream_t *stream) {
  engine_event_t *event = cleave_allocate_zeroed(1, sizeof *event);
  if (event != NULL) {
    event->stream = stream;
  }
  return event;
}

engine_event_t *engine_event_take(engine_stream_t *stream) {
  engine_event_t *event = stream->free_events;
  if (event != NULL) {
    stream->free_events = event->next;
  } else {
    event = create_event(stream);
  }
  if (event != NULL) {
    event->references = 1;
  }
  return event;
}

bool engine_events_reserve(engine_task_t *task) {
  if (task->engine->has_streams && cleave_array_reserve(&task->events, task->capacity, NULL) != CLEAVE_OK) {
    return false;
  }
  for (uint32_t k = 0; task->device->has_streams && k < task->queue->worker_count * 2; k++) {
    engine_stream_t *stream = &task->queue->workers[k / 2].stream;
    engine_event_t *event = create_event(stream);
    if (event == NULL) {
      return false;
    }
    event->next = stream->free_events;
    stream->free_events = event;
  }
  return true;
}

void engine_event_release(engine_event_t *event) {
  if (event != NULL && --event->references == 0) {
    event->next = event->stream->free_events;
    event->stream->free_events = event;
  }
}

static cleave_status_t collect(engine_task_t *task, engine_event_t *event, const engine_stream_t *stream,
                               cleave_error_t *error) {
  if (event == NULL || event->stream == stream) {
    return CLEAVE_OK;
  }
  for (size_t k = 0; k < task->events.count; k++) {
    if (task->events.items[k] == event) {
      return CLEAVE_OK;
    }
  }
  CLEAVE_ARRAY_PUSH(&task->events, event, error);
  event->references++;
  return CLEAVE_OK;
}

cleave_status_t engine_events_collect(engine_task_t *task, const engine_stream_t *stream,
                                      cleave_error_t *error) {
  for (uint32_t k = 0; k < task->access_count; k++) {
    const cleave_variable_t *variable = task->accesses[k].variable;
    CLEAVE_TRY(collect(task, variable->written, stream, error));
    for (size_t r = 0; task->accesses[k].is_write && r < variable->read.count; r++) {
      CLEAVE_TRY(collect(task, variable->read.items[r], stream, error));
    }
  }
  return CLEAVE_OK;
}

void engine_events_drop(engine_task_t *task) {
  while (task->events.count > 0) {
    engine_event_release(task->events.items[--task->events.count]);
  }
}

cleave_status_t engine_event_synchronize(const engine_event_t *event, cleave_error_t *error) {
  const engine_device_t *device = event->stream->device;
  return device->functions.synchronize(device->self, event->handle, error);
}

cleave_status_t engine_events_wait(const engine_task_t *task, const engine_stream_t *stream,
                                   cleave_error_t *error) {
  for (size_t k = 0; k < task->events.count; k++) {
    const engine_event_t *event = task->events.items[k];
    /* Streams of one device wait for each other; those of different devices know nothing of each other's
     * events. */
    if (stream != NULL && stream->device == event->stream->device) {
      CLEAVE_TRY(stream->device->functions.wait(stream->device->self, stream->handle, event->handle, error));
    } else {
      CLEAVE_TRY(engine_event_synchronize(event, error));
    }
  }
  return CLEAVE_OK;
}

cleave_status_t engine_event_record(const engine_task_t *task, cleave_error_t *error) {
  const engine_stream_t *stream = task->event->stream;
  return stream->device->functions.record(stream->device->self, stream->handle, &task->event->handle, error);
}

static void note_read(cleave_variable_t *variable, engine_event_t *event) {
  for (size_t k = 0; k < variable->read.count; k++) {
    if (variable->read.items[k]->stream == event->stream) {
      engine_event_release(variable->read.items[k]);
      variable->read.items[k] = event;
      event->references++;
      return;
    }
  }
  if (cleave_array_reserve(&variable->read, 1, NULL) == CLEAVE_OK) {
    cleave_array_push_reserved(&variable->read, event);
    event->references++;
  } else {
    /* It has ended then, and there is nothing to remember; its error comes again from whoever waits next. */
    cleave_error_t ignored = CLEAVE_ERROR_INIT;
    cleave_status_t status = engine_event_synchronize(event, &ignored);
    (void)status;
  }
}

void engine_events_forget(cleave_variable_t *variable) {
  engine_event_release(variable->written);
  variable->written = NULL;
  while (variable->read.count > 0) {
    engine_event_release(variable->read.items[--variable->read.count]);
  }
}

void engine_events_note(engine_task_t *task) {
  for (uint32_t k = 0; k < task->access_count; k++) {
    cleave_variable_t *variable = task->accesses[k].variable;
    if (task->accesses[k].is_write) {
      engine_events_forget(variable);
      variable->written = task->event;
      if (task->event != NULL) {
        task->event->references++;
      }
    } else if (task->event != NULL) {
      note_read(variable, task->event);
    }
  }
  if (task->event != NULL) {
    engine_stream_t *stream = task->event->stream;
    engine_event_release(stream->last);
    stream->last = task->event; /* with the task's reference */
    task->event = NULL;
  }
}

cleave_status_t engine_stream_start(engine_worker_t *worker, cleave_error_t *error) {
  engine_device_t *device = worker->queue->device;
  if (!device->has_streams) {
    return CLEAVE_OK;
  }
  worker->stream.device = device;
  worker->queue->engine->stream_count++;
  return device->functions.create(device->self, &worker->stream.handle, error);
}

void engine_stream_end(engine_worker_t *worker) {
  engine_stream_t *stream = &worker->stream;
  engine_event_release(stream->last);
  while (stream->free_events != NULL) {
    engine_event_t *event = stream->free_events;
    stream->free_events = event->next;
    if (event->handle != NULL) {
      stream->device->functions.destroy_event(stream->device->self, event->handle);
    }
    cleave_free(event);
  }
  if (stream->handle != NULL) {
    stream->device->functions.destroy(stream->device->self, stream->handle);
  }
}
