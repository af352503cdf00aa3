// SPDX-License-Identifier: Apache-2.0
// Names of the kinds of rules, for plans, reports and messages.
#include "partition/pattern/rule_kind.h"

const char *cleave_rule_kind_name(cleave_rule_kind_t kind) {
  switch (kind) {
    case CLEAVE_RULE_FUSE: return "fuse";
    case CLEAVE_RULE_REGION: return "region";
    case CLEAVE_RULE_REWRITE: return "rewrite";
    case CLEAVE_RULE_PASS: return "pass";
    case CLEAVE_RULE_STAGE: return "stage";
  }
  return "rule";
}
