// SPDX-License-Identifier: Apache-2.0
/*
 * Streams and events. A stream is a thread with a queue of fixed length; what is put on it happens in order
 * and later. The first failure stays with the stream: what follows is left out, until `wait` has told it.
 * Events carry failures from one stream to another.
 */
#ifndef MIRROR_STREAM_H
#define MIRROR_STREAM_H

#include "program.h"

typedef struct mirror_stream mirror_stream_t;
typedef struct mirror_event mirror_event_t;

CLEAVE_MUST_USE cleave_status_t mirror_stream_create(mirror_t *mirror, uint32_t device,
                                                     mirror_stream_t **out_stream, cleave_message_t *message);
/* Finishes what is on it first. */
void mirror_stream_destroy(mirror_stream_t *stream);
uint32_t mirror_stream_device(const mirror_stream_t *stream);

/* The arguments are copied, except for the memory that they point to. */
CLEAVE_MUST_USE cleave_status_t mirror_stream_run(mirror_stream_t *stream, mirror_program_t *program,
                                                  const cleave_run_args_t *args, cleave_message_t *message);
/* The same, and waits; the arguments themselves are used, by the stream's thread. */
CLEAVE_MUST_USE cleave_status_t mirror_stream_run_and_wait(mirror_stream_t *stream, mirror_program_t *program,
                                                           const cleave_run_args_t *args,
                                                           cleave_message_t *message);
/* Copies bytes to or from the device. */
CLEAVE_MUST_USE cleave_status_t mirror_stream_copy(mirror_stream_t *stream, void *to, const void *from,
                                                   size_t bytes, cleave_message_t *message);
CLEAVE_MUST_USE cleave_status_t mirror_stream_wait(mirror_stream_t *stream, cleave_message_t *message);

CLEAVE_MUST_USE cleave_status_t mirror_event_create(mirror_event_t **out_event, cleave_message_t *message);
void mirror_event_destroy(mirror_event_t *event);
CLEAVE_MUST_USE cleave_status_t mirror_event_record(mirror_event_t *event, mirror_stream_t *stream,
                                                    cleave_message_t *message);
/* `stream` NULL: the caller waits. An event that was never recorded is reached. */
CLEAVE_MUST_USE cleave_status_t mirror_event_wait(mirror_event_t *event, mirror_stream_t *stream,
                                                  cleave_message_t *message);

#endif /* MIRROR_STREAM_H */
