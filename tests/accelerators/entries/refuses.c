// SPDX-License-Identifier: Apache-2.0
/* Returns no backend at all, and says why. */
#include "relu.h"

const cleave_backend_t *cleave_backend_entry(uint32_t abi_major, uint32_t abi_minor,
                                             cleave_message_t *message) {
  (void)abi_minor;
  (void)snprintf(message->text, sizeof message->text, "the licence for interface %u has ended",
                 (unsigned)abi_major);
  return NULL;
}
