// SPDX-License-Identifier: Apache-2.0
/* Refuses to start, and says why. */
#include "relu.h"

static cleave_status_t initialise(const cleave_host_t *host, void **out_state, cleave_message_t *message) {
  (void)host;
  (void)out_state;
  (void)snprintf(message->text, sizeof message->text, "no device in slot 3");
  message->code = CLEAVE_REASON_DEVICE;
  return CLEAVE_ERROR_UNSUPPORTED;
}

static cleave_backend_t backend = {RELU_BACKEND("no_device")};

RELU_ENTRY(backend.initialise = initialise)
