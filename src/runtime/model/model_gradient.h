// SPDX-License-Identifier: Apache-2.0
/* Models with gradients, by rule files that are loaded already. */
#ifndef CLEAVE_RUNTIME_MODEL_MODEL_GRADIENT_H
#define CLEAVE_RUNTIME_MODEL_MODEL_GRADIENT_H

#include "runtime/model/rule_list.h"

/* cleave_model_gradient by the rules that come with cleave, and those of `list` (may be NULL) in their place.
 */
CLEAVE_MUST_USE cleave_status_t cleave_model_gradient_by(cleave_model_t *model, const char *loss,
                                                         const char *const *wrt, size_t wrt_count,
                                                         const cleave_rule_list_t *list,
                                                         cleave_model_t **out_model, cleave_error_t *error);

#endif /* CLEAVE_RUNTIME_MODEL_MODEL_GRADIENT_H */
