// SPDX-License-Identifier: Apache-2.0
// Tries edits: all edits of a finding are made on one copy of the pattern, which is matched; then the judges
// of the rule's own matches (`where`, the backend) are asked about the match. Edits are shown only if the
// edited pattern matches, together with who would refuse the match.

#include <stdio.h>
#include <string.h>

#include "partition/explain/explain_find.h"

enum { STEPS_PER_FIX = 100000, MAX_REFUSALS = 8 };

/* The nodes that an edited pattern has to match, and the result. */
typedef struct attempt {
  cleave_explainer_t *x;
  const cleave_node_t *nodes; /* at fault, which the edits allow: all must be in the match */
  uint32_t node_count;
  bool matches;
  uint32_t refusals;
  const char *refuser; /* of the first match that was refused */
  cleave_reason_t reason;
  cleave_status_t status;
  cleave_error_t *error;
} attempt_t;

/* A fusion of these nodes, or their substitute, must not close a cycle. */
static cleave_status_t check_cycle(attempt_t *attempt, const cleave_match_t *match, const char **out_refuser,
                                   cleave_reason_t *reason, cleave_error_t *error) {
  cleave_contraction_t *contraction = attempt->x->contraction;
  cleave_contraction_result_t result;
  uint32_t *positions = cleave_arena_allocate(&attempt->x->trial_arena, match->node_count, sizeof *positions);
  CLEAVE_TRY_MEMORY(positions, error);
  for (uint32_t k = 0; k < match->node_count; k++) {
    positions[k] = contraction->positions[match->nodes[k].index];
  }
  CLEAVE_TRY(
      cleave_contraction_check(contraction, positions, match->node_count, STEPS_PER_FIX, &result, error));
  if (result.outcome == CLEAVE_CONTRACTION_CYCLE) {
    char label[128];
    *out_refuser = "cycle";
    (void)snprintf(
        reason->text, sizeof reason->text, "would close a cycle through '%s'",
        cleave_node_label(attempt->x->graph, contraction->nodes[result.outside], label, sizeof label));
  }
  return CLEAVE_OK;
}

/* Who refuses the match? */
static cleave_status_t judge(attempt_t *attempt, const cleave_match_t *match, const char **out_refuser,
                             cleave_reason_t *reason, cleave_error_t *error) {
  cleave_explainer_t *x = attempt->x;
  size_t inputs = 0;
  *out_refuser = NULL;
  reason->text[0] = '\0';
  if (x->judge == NULL) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(check_cycle(attempt, match, out_refuser, reason, error));
  if (*out_refuser != NULL) {
    return CLEAVE_OK;
  }
  for (uint32_t k = 0; k < match->node_count; k++) {
    inputs += cleave_node_input_count(x->graph, match->nodes[k]);
  }
  if (inputs > x->inputs_left) {
    *out_refuser = "limit";
    (void)snprintf(reason->text, sizeof reason->text,
                   "too many edits were tried before to ask about this one");
    return CLEAVE_OK;
  }
  x->inputs_left -= inputs;
  return x->judge(x->judge_context, x->graph, match, out_refuser, reason, error);
}

/* For cleave_match_request_t.accept: after a refused match the next one is tried, as when the rule itself
 * runs. */
static bool accept(void *context, const cleave_match_t *match, uint64_t hash) {
  attempt_t *attempt = context;
  const char *refuser = NULL;
  cleave_reason_t reason;
  for (uint32_t k = 0; k < attempt->node_count; k++) {
    cleave_node_t node = attempt->nodes[k];
    if (!cleave_explainer_has_node(&node, match, hash)) {
      return false;
    }
  }
  attempt->matches = true;
  attempt->status = judge(attempt, match, &refuser, &reason, attempt->error);
  if (attempt->status == CLEAVE_OK && refuser == NULL) {
    attempt->refuser = NULL;
    return true;
  }
  if (attempt->refusals++ == 0) {
    attempt->refuser = refuser;
    attempt->reason = reason;
  }
  return attempt->status != CLEAVE_OK || attempt->refusals == MAX_REFUSALS;
}

static cleave_status_t try_edited(const finder_t *finder, uint32_t anchor, attempt_t *attempt,
                                  cleave_finding_t *finding, cleave_error_t *error) {
  cleave_explainer_t *x = finder->x;
  cleave_match_answer_t answer;
  cleave_match_request_t request = {
      .anchor = anchor, .step_limit = STEPS_PER_FIX, .accept = accept, .context = attempt};
  CLEAVE_TRY(cleave_explainer_finish_parts(x, false, error));
  if (cleave_pattern_check(&x->trial_pattern, "", "", NULL) != CLEAVE_OK) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_matcher_set_pattern(x->matcher, &x->trial_pattern, error));
  CLEAVE_TRY(cleave_matcher_match(x->matcher, &request, &answer, error));
  x->steps_left -= answer.steps < x->steps_left ? answer.steps : x->steps_left;
  CLEAVE_TRY(attempt->status);
  finding->is_fixed = attempt->matches;
  finding->refuser = attempt->refuser;
  if (attempt->refuser != NULL) {
    const char *text = attempt->reason.text;
    finding->refusal = cleave_arena_copy_text(finder->arena, text, strlen(text));
    return finding->refusal == NULL ? cleave_error_out_of_memory(error) : CLEAVE_OK;
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_explain_fix(const finder_t *finder, uint32_t anchor, const fault_t *faults,
                                   cleave_finding_t *finding, cleave_mismatch_t *mismatches,
                                   cleave_error_t *error) {
  cleave_explainer_t *x = finder->x;
  cleave_text_t text = {0};
  bool possible = true;
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY(cleave_explainer_copy_parts(x, error));
  cleave_node_t *nodes =
      cleave_arena_allocate(&x->trial_arena, (size_t)finding->mismatch_count + 1, sizeof *nodes);
  CLEAVE_TRY_MEMORY(nodes, error);
  attempt_t attempt = {.x = x, .nodes = nodes, .error = error};
  for (uint32_t k = 0; k < finding->mismatch_count && possible; k++) {
    text.length = 0;
    cleave_text_add(&text, "");
    possible = cleave_explain_fix_one(finder, &faults[k], &text);
    CLEAVE_TRY_CLEANUP(cleave_text_check(&text, error));
    mismatches[k].fix = cleave_arena_copy_text(finder->arena, cleave_text_get(&text), text.length);
    CLEAVE_TRY_MEMORY_CLEANUP(mismatches[k].fix, error);
    if (cleave_finder_has(finder, faults[k].node)) {
      nodes[attempt.node_count++] = faults[k].node;
    }
  }
  if (possible) {
    cleave_explain_fix_end(x);
    CLEAVE_TRY_CLEANUP(try_edited(finder, anchor, &attempt, finding, error));
  }
  for (uint32_t k = 0; k < finding->mismatch_count && !finding->is_fixed; k++) {
    mismatches[k].fix = NULL;
  }
cleanup:
  cleave_text_deinit(&text);
  return status;
}
