// SPDX-License-Identifier: Apache-2.0
/* Built for a later minor version: the struct is longer than cleave knows. */
#include "relu.h"

static struct {
  cleave_backend_t backend;
  void *younger[16];
} storage = {.backend = {RELU_BACKEND("newer_minor")}};

const cleave_backend_t *cleave_backend_entry(uint32_t abi_major, uint32_t abi_minor,
                                             cleave_message_t *message) {
  (void)abi_major;
  (void)message;
  storage.backend.size = sizeof storage;
  storage.backend.abi_minor = abi_minor + 3;
  memset(storage.younger, 0xa5, sizeof storage.younger);
  return &storage.backend;
}
