// SPDX-License-Identifier: Apache-2.0
/* Wants more workspace than there is, and lists pairs that are not there. */
#include "hostile.h"

static const cleave_program_info_t *hostile(const void *program) {
  static cleave_program_info_t info;
  (void)program;
  info = (cleave_program_info_t){.size = sizeof info,
                                 .workspace_bytes = SIZE_MAX / 8,
                                 .persistent_bytes = SIZE_MAX,
                                 .inplace_count = UINT32_MAX};
  return &info;
}

static cleave_backend_t backend = {RELU_BACKEND("huge_info")};

HOSTILE_ENTRY(info)
