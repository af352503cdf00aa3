// SPDX-License-Identifier: Apache-2.0
/* A function that every backend has is missing. */
#include "relu.h"

static cleave_backend_t backend = {RELU_BACKEND("half")};

const cleave_backend_t *cleave_backend_entry(uint32_t abi_major, uint32_t abi_minor,
                                             cleave_message_t *message) {
  (void)abi_major;
  (void)abi_minor;
  (void)message;
  backend.compile = NULL;
  return &backend;
}
