// SPDX-License-Identifier: Apache-2.0
/* Built for another major version of the interface. */
#include "relu.h"

static cleave_backend_t backend = {RELU_BACKEND("other_major")};

const cleave_backend_t *cleave_backend_entry(uint32_t abi_major, uint32_t abi_minor,
                                             cleave_message_t *message) {
  (void)abi_minor;
  (void)message;
  backend.abi_major = abi_major + 1;
  return &backend;
}
