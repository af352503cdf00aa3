// SPDX-License-Identifier: Apache-2.0
// What fails on a stream comes out when somebody waits for an event behind it: the first such message is
// kept, without the words that the engine adds on its way.
#include "runtime/lanes/lane_device.h"

static cleave_status_t create_stream(void *self, void **out_stream, cleave_error_t *error) {
  cleave_lane_device_t *lane = self;
  CLEAVE_TRY(cleave_device_stream_create(lane->device, out_stream, error));
  lane->streams[lane->stream_count++] = *out_stream;
  return CLEAVE_OK;
}

static void destroy_stream(void *self, void *stream) {
  cleave_lane_device_t *lane = self;
  cleave_device_stream_destroy(lane->device, stream);
  lane->stream_count = 0; /* all of them go at once */
}

static cleave_status_t tell(const cleave_lane_device_t *lane, cleave_status_t status,
                            cleave_message_t *message, cleave_error_t *error) {
  return status == CLEAVE_OK ? CLEAVE_OK : cleave_registry_fail(error, status, lane->device->label, message);
}

static cleave_status_t record_event(void *self, void *stream, void **event, cleave_error_t *error) {
  const cleave_lane_device_t *lane = self;
  if (*event == NULL) {
    CLEAVE_TRY(cleave_device_event_create(lane->device, event, error));
  }
  cleave_message_t message = {.text = ""};
  return tell(lane, cleave_device_event_record(lane->device, *event, stream, &message), &message, error);
}

static cleave_status_t wait_in_stream(void *self, void *stream, void *event, cleave_error_t *error) {
  const cleave_lane_device_t *lane = self;
  cleave_message_t message = {.text = ""};
  return tell(lane, cleave_device_event_wait(lane->device, event, stream, &message), &message, error);
}

static cleave_status_t synchronize(void *self, void *event, cleave_error_t *error) {
  const cleave_lane_device_t *lane = self;
  cleave_message_t message = {.text = ""};
  return tell(lane, cleave_device_event_wait(lane->device, event, NULL, &message), &message, error);
}

static void destroy_event(void *self, void *event) {
  const cleave_lane_device_t *lane = self;
  cleave_device_event_destroy(lane->device, event);
}

const cleave_stream_functions_t cleave_lane_streams = {.size = sizeof cleave_lane_streams,
                                                       .create = create_stream,
                                                       .destroy = destroy_stream,
                                                       .record = record_event,
                                                       .wait = wait_in_stream,
                                                       .synchronize = synchronize,
                                                       .destroy_event = destroy_event};

cleave_status_t cleave_lane_device_finish(const cleave_lane_device_t *self, cleave_message_t *message) {
  cleave_status_t status = CLEAVE_OK;
  for (uint32_t k = 0; k < self->stream_count && status == CLEAVE_OK; k++) {
    message->text[0] = '\0';
    status = cleave_device_stream_wait(self->device, self->streams[k], message);
    message->text[sizeof message->text - 1] = '\0';
  }
  return status;
}
