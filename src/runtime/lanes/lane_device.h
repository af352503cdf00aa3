// SPDX-License-Identifier: Apache-2.0
/* Devices of backends, with streams and events, as the engine wants them. */
#ifndef CLEAVE_RUNTIME_LANES_LANE_DEVICE_H
#define CLEAVE_RUNTIME_LANES_LANE_DEVICE_H

#include "backend/program/device.h"
#include "cleave/engine.h"

/* One to compute on, and two for copies. */
enum { CLEAVE_LANE_STREAMS = 3 };

/* `self` of the functions below. */
typedef struct cleave_lane_device {
  cleave_device_t *device;
  void *streams[CLEAVE_LANE_STREAMS]; /* that the engine has made */
  uint32_t stream_count;
} cleave_lane_device_t;

extern const cleave_stream_functions_t cleave_lane_streams;

/* Waits for all that is on the streams. A failure is what came out of one of them, with the library's
 * message: backends tell it here, and need not tell whoever waits for an event. */
CLEAVE_STATUS cleave_lane_device_finish(const cleave_lane_device_t *self, cleave_message_t *message);

#endif /* CLEAVE_RUNTIME_LANES_LANE_DEVICE_H */
