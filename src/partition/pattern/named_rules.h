// SPDX-License-Identifier: Apache-2.0
/*
 * Rules whose code is in loaded libraries, by name, for use in rule files. A partitioner of a library is a
 * region rule, a pass is a pass. The registry of libraries adds and removes them, each for the context in
 * which its library is loaded. All functions may be called on any thread.
 *
 * A bound rule keeps only the name and looks it up each time that it runs: a library may be unloaded and
 * loaded again while a rule file stays loaded.
 */
#ifndef CLEAVE_PARTITION_PATTERN_NAMED_RULES_H
#define CLEAVE_PARTITION_PATTERN_NAMED_RULES_H

#include "partition/pattern/ruleset.h"

typedef struct cleave_named_rule {
  cleave_context_t *context; /* as the context of a graph */
  cleave_rule_kind_t kind;   /* REGION or PASS */
  const char *name;          /* unique in its library */
  const char *library;
  const char *backend;    /* that the library wants to run its regions */
  const void *owner;      /* the one who added it */
  const void *definition; /* of the owner's */
  /* Fills in the callbacks of `rule`, whose context is a cleave_named_rule_use_t, and its mode. */
  void (*bind)(const struct cleave_named_rule *named, cleave_rule_t *rule);
} cleave_named_rule_t;

/* The context of a rule that was bound. */
typedef struct cleave_named_rule_use {
  cleave_context_t *context;
  const char *name; /* as cleave_named_rule_find takes it */
  const char *file; /* place where it was bound, for messages; "" if there is none */
  int32_t line;
  const cleave_key_value_t *options;
  uint32_t option_count;
  void *work; /* of the callbacks, between `begin` and `end` */
} cleave_named_rule_use_t;

/* The strings must stay valid until the rules are removed. */
CLEAVE_STATUS cleave_named_rules_add(const cleave_named_rule_t *named, cleave_error_t *error);
void cleave_named_rules_remove(const void *owner);

/* Finds the rule of that kind called `name`, or "library/name", in a context. CLEAVE_ERROR_RULE if there is
 * none (the message suggests the nearest name) or if several libraries have one (the message lists them). */
CLEAVE_STATUS cleave_named_rule_find(cleave_context_t *context, cleave_rule_kind_t kind, const char *name,
                                     cleave_named_rule_t *out_named, cleave_error_t *error);

/* The rule at an index, over all contexts, in the order in which they were added; false after the last one.
 */
bool cleave_named_rule_at(uint32_t index, cleave_named_rule_t *out_named);

#endif /* CLEAVE_PARTITION_PATTERN_NAMED_RULES_H */
