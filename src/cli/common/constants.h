// SPDX-License-Identifier: Apache-2.0
/* Constants of a model from files: --set-constant NAME=FILE. */
#ifndef CLEAVE_CLI_COMMON_CONSTANTS_H
#define CLEAVE_CLI_COMMON_CONSTANTS_H

#include "cleave/cleave.h"
#include "cli/common/arguments.h"

/* The model with tensors from files (.npy or .pb) in the place of its constants; takes the place of *model,
 * which is released. Names go up to the first '='. */
CLEAVE_MUST_USE cleave_status_t cleave_constants_set(const cleave_text_list_t *list, cleave_model_t **model,
                                                     cleave_error_t *error);

#endif /* CLEAVE_CLI_COMMON_CONSTANTS_H */
