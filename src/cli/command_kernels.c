// SPDX-License-Identifier: Apache-2.0
// cleave kernels: the text of the kernels that backends generate for a model (report/kernels.c).
#include "cli/common/command.h"
#include "cli/report/kernels.h"

const cleave_command_t cleave_command_kernels = {.name = "kernels",
                                                 .summary = "print the kernels that backends generate",
                                                 .order = 37,
                                                 .run = cleave_kernels_run};
