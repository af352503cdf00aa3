// SPDX-License-Identifier: Apache-2.0
/* The gradient rules that are in force: those that come with cleave, and those of rule files, which take
 * their place if both have one for an operator. */
#ifndef CLEAVE_RUNTIME_MODEL_GRADIENT_RULES_H
#define CLEAVE_RUNTIME_MODEL_GRADIENT_RULES_H

#include "partition/gradient/flow.h"
#include "runtime/model/rule_list.h"

typedef struct cleave_gradient_set {
  cleave_rules_t *shipped; /* owned */
  CLEAVE_ARRAY(const cleave_gradient_rule_t *) items;
  cleave_gradient_rules_t rules; /* for requests: those items */
} cleave_gradient_set_t;

/* `list` may be NULL; it outlives the set, which must be deinitialised also when this fails. */
CLEAVE_STATUS cleave_gradient_set_load(cleave_gradient_set_t *set, cleave_context_t *context,
                                       const cleave_rule_list_t *list, cleave_error_t *error);
void cleave_gradient_set_deinit(cleave_gradient_set_t *set);

#endif /* CLEAVE_RUNTIME_MODEL_GRADIENT_RULES_H */
