// SPDX-License-Identifier: Apache-2.0
/* Calls itself what no rule file can write. */
#include "relu.h"

static const cleave_backend_t backend = {RELU_BACKEND("bad name/")};

const cleave_backend_t *cleave_backend_entry(uint32_t abi_major, uint32_t abi_minor,
                                             cleave_message_t *message) {
  (void)abi_major;
  (void)abi_minor;
  (void)message;
  return &backend;
}
