// SPDX-License-Identifier: Apache-2.0
/* The struct ends with the required fields, and garbage follows. */
#include "relu.h"

static struct { cleave_backend_t backend; } storage = {{RELU_BACKEND("required_only")}};

const cleave_backend_t *cleave_backend_entry(uint32_t abi_major, uint32_t abi_minor,
                                             cleave_message_t *message) {
  (void)abi_major;
  (void)abi_minor;
  (void)message;
  storage.backend.size = CLEAVE_BACKEND_SIZE_REQUIRED;
  memset((char *)&storage.backend + CLEAVE_BACKEND_SIZE_REQUIRED, 0xa5,
         sizeof storage.backend - CLEAVE_BACKEND_SIZE_REQUIRED);
  return &storage.backend;
}
