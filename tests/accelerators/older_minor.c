/* SPDX-License-Identifier: Apache-2.0 */
/* Built when the interface was at 1.0: the struct ends before the fields of 1.1, and garbage follows. */
#include "relu.h"

static struct { cleave_backend_t backend; } storage = {{RELU_BACKEND("older_minor")}};

const cleave_backend_t *cleave_backend_entry(uint32_t abi_major, uint32_t abi_minor,
                                             cleave_message_t *message) {
  (void)abi_major;
  (void)abi_minor;
  (void)message;
  storage.backend.size = CLEAVE_BACKEND_SIZE_1_0;
  storage.backend.abi_minor = 0;
  memset((char *)&storage.backend + CLEAVE_BACKEND_SIZE_1_0, 0xa5,
         sizeof storage.backend - CLEAVE_BACKEND_SIZE_1_0);
  return &storage.backend;
}
