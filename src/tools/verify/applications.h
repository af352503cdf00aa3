// SPDX-License-Identifier: Apache-2.0
/*
 * The applications of rules in a plan: fusions, then regions, then rewrites and passes that changed
 * something. Which of them a rule may make again can be said one by one.
 */
#ifndef CLEAVE_TOOLS_VERIFY_APPLICATIONS_H
#define CLEAVE_TOOLS_VERIFY_APPLICATIONS_H

#include "tools/verify/bisect.h"

typedef struct cleave_application_key {
  uint64_t key; /* rule and node */
  uint32_t application;
} cleave_application_key_t;

typedef struct cleave_applications {
  const cleave_plan_t *plan;      /* borrowed */
  cleave_application_key_t *keys; /* sorted */
  size_t key_count;
  uint32_t count;
  bool *allowed; /* by application; the caller's to change */
} cleave_applications_t;

/* None is allowed. Must be deinitialised also when this fails. */
CLEAVE_STATUS cleave_applications_list(const cleave_plan_t *plan, cleave_applications_t *out_applications,
                                       cleave_error_t *error);
void cleave_applications_deinit(cleave_applications_t *applications);

/* Its kind, index and rule; all else is 0. */
cleave_bisect_culprit_t cleave_applications_describe(const cleave_applications_t *applications,
                                                     uint32_t application);

void cleave_applications_allow_all(cleave_applications_t *applications, bool yes);

/* For cleave_rule_list_t.allow; the context is the applications. */
bool cleave_applications_is_allowed(void *context, const cleave_graph_t *graph,
                                    const cleave_plan_rule_t *rule, const cleave_node_t *nodes,
                                    uint32_t node_count);

#endif /* CLEAVE_TOOLS_VERIFY_APPLICATIONS_H */
