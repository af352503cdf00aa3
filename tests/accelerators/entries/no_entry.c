// SPDX-License-Identifier: Apache-2.0
/* A shared library that is none of cleave's. */
#include "relu.h"

int unrelated(void);
int unrelated(void) {
  return (int)sizeof(relu_program_t);
}
