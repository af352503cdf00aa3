// SPDX-License-Identifier: Apache-2.0
// Answers to "why" as JSON, complete: every verdict, every refusal, every kind of near miss.

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "graph/print.h"
#include "partition/report/explain_report.h"

/* Text from outside may not be UTF-8: bytes that are not become '?'. */
static json_t *text_json(const char *text) {
  json_t *json = json_string(text);
  if (json != NULL) {
    return json;
  }
  size_t length = strlen(text);
  char *copy = cleave_copy_text(text, length);
  for (size_t k = 0; copy != NULL && k < length; k++) {
    copy[k] = (unsigned char)copy[k] < 0x80 ? copy[k] : '?';
  }
  json = copy == NULL ? NULL : json_string(copy);
  cleave_free(copy);
  return json;
}

/* Sets a member, and gives it to the object; sets `failed` on failure. */
static void set(json_t *object, const char *key, json_t *value, bool *failed) {
  if (*failed || object == NULL || value == NULL) {
    json_decref(value);
    *failed = true;
    return;
  }
  *failed = json_object_set_new(object, key, value) != 0;
}

static void append(json_t *list, json_t *value, bool *failed) {
  if (*failed || list == NULL || value == NULL) {
    json_decref(value);
    *failed = true;
    return;
  }
  *failed = json_array_append_new(list, value) != 0;
}

static json_t *number_json(uint32_t number) {
  return json_integer((json_int_t)number);
}

static json_t *node_json(const cleave_why_t *why, const cleave_graph_t *graph, cleave_node_t node,
                         bool *failed) {
  char label[256];
  json_t *json = json_object();
  set(json, "node", number_json(node.index), failed);
  set(json, "op", text_json(cleave_node_op(graph, node)->name), failed);
  set(json, "name", text_json(cleave_node_label(graph, node, label, sizeof label)), failed);
  uint32_t maker = cleave_history_maker(why->history, node);
  if (maker != CLEAVE_INDEX_NONE) {
    set(json, "made_by", text_json(why->plan->rules[maker].name), failed);
  }
  return json;
}

static json_t *nodes_json(const cleave_why_t *why, const cleave_graph_t *graph, const cleave_node_t *nodes,
                          uint32_t count, bool *failed) {
  json_t *list = json_array();
  for (uint32_t k = 0; k < count; k++) {
    append(list, node_json(why, graph, nodes[k], failed), failed);
  }
  return list;
}

static json_t *mismatch_json(const cleave_why_t *why, const cleave_graph_t *graph,
                             const cleave_mismatch_t *mismatch, bool *failed) {
  json_t *json = json_object();
  set(json, "kind", text_json(mismatch->kind), failed);
  if (mismatch->file != NULL) {
    set(json, "file", text_json(mismatch->file), failed);
  }
  set(json, "line", json_integer(mismatch->line), failed);
  set(json, "path", text_json(mismatch->path), failed);
  set(json, "subject", text_json(mismatch->subject), failed);
  set(json, "expected", text_json(mismatch->expected), failed);
  set(json, "found", text_json(mismatch->found), failed);
  if (mismatch->detail[0] != '\0') {
    set(json, "detail", text_json(mismatch->detail), failed);
  }
  if (cleave_node_exists(mismatch->node)) {
    set(json, "at", node_json(why, graph, mismatch->node, failed), failed);
  }
  if (cleave_value_exists(mismatch->value)) {
    set(json, "value", text_json(cleave_value_name(graph, mismatch->value)), failed);
  }
  if (mismatch->fix != NULL && mismatch->fix[0] != '\0') {
    set(json, "edit", text_json(mismatch->fix), failed);
  }
  return json;
}

static void add_finding(const cleave_why_t *why, json_t *json, const cleave_graph_t *graph,
                        const cleave_finding_t *finding, bool *failed) {
  set(json, "anchor", node_json(why, graph, finding->anchor, failed), failed);
  set(json, "matched", number_json(finding->matched), failed);
  set(json, "total", number_json(finding->total), failed);
  set(json, "nodes", nodes_json(why, graph, finding->nodes, finding->node_count, failed), failed);
  if (finding->mismatch_count > 0) {
    json_t *list = json_array();
    for (uint32_t k = 0; k < finding->mismatch_count; k++) {
      append(list, mismatch_json(why, graph, &finding->mismatches[k], failed), failed);
    }
    set(json, "misses", list, failed);
    set(json, "edits_verified", json_boolean(finding->is_fixed), failed);
    if (finding->refuser != NULL) {
      set(json, "edits_refused_by", text_json(finding->refuser), failed);
      set(json, "edits_refused_reason", text_json(finding->refusal), failed);
    }
  }
}

static json_t *rule_json(const cleave_plan_t *plan, uint32_t rule, bool *failed) {
  const cleave_plan_rule_t *entry = &plan->rules[rule];
  json_t *json = json_object();
  set(json, "kind", text_json(cleave_rule_kind_name(entry->kind)), failed);
  set(json, "name", text_json(entry->name), failed);
  set(json, "ruleset", text_json(entry->ruleset), failed);
  set(json, "file", text_json(entry->file), failed);
  set(json, "line", json_integer(entry->line), failed);
  return json;
}

static json_t *verdict_json(const cleave_why_t *why, const cleave_verdict_t *verdict, bool *failed) {
  const cleave_plan_t *plan = why->plan;
  json_t *json = json_object();
  set(json, "rule", rule_json(plan, verdict->rule, failed), failed);
  set(json, "fate", text_json(cleave_fate_name(verdict->fate)), failed);
  if (verdict->cause[0] != '\0') {
    set(json, "cause", text_json(verdict->cause), failed);
  }
  if (verdict->reason[0] != '\0') {
    set(json, "reason", text_json(verdict->reason), failed);
  }
  if (verdict->winner != CLEAVE_INDEX_NONE) {
    set(json, "winner", rule_json(plan, verdict->winner, failed), failed);
  }
  if (verdict->fusion != CLEAVE_INDEX_NONE) {
    const cleave_plan_fusion_t *fusion = &plan->fusions[verdict->fusion];
    set(json, "fusion", nodes_json(why, plan->graph, fusion->nodes, fusion->node_count, failed), failed);
  }
  if (verdict->region != CLEAVE_INDEX_NONE) {
    set(json, "region", text_json(plan->regions[verdict->region].name), failed);
    set(json, "backend", text_json(plan->regions[verdict->region].backend), failed);
  }
  const cleave_finding_t *found = &verdict->finding;
  if (verdict->fate == CLEAVE_FATE_MADE || verdict->fate == CLEAVE_FATE_REWRITTEN) {
    set(json, "taken", nodes_json(why, verdict->graph, found->nodes, found->node_count, failed), failed);
    set(json, "made", nodes_json(why, plan->graph, verdict->made, verdict->made_count, failed), failed);
  } else if (found->node_count > 0) {
    json_t *finding = json_object();
    add_finding(why, finding, verdict->graph, found, failed);
    set(json, "match", finding, failed);
  }
  return json;
}

static json_t *why_node_json(const cleave_why_t *why, const cleave_why_node_t *node, bool *failed) {
  json_t *json = node_json(why, node->graph, node->node, failed);
  json_t *verdicts = json_array();
  for (uint32_t k = 0; k < node->verdict_count; k++) {
    append(verdicts, verdict_json(why, &node->verdicts[k], failed), failed);
  }
  set(json, "rewritten", json_boolean(node->graph != why->plan->graph), failed);
  set(json, "rules", verdicts, failed);
  return json;
}

static json_t *refusals_json(const cleave_why_t *why, const cleave_why_refusal_t *refusals, uint32_t count,
                             bool *failed) {
  json_t *list = json_array();
  for (uint32_t k = 0; k < count; k++) {
    const cleave_why_refusal_t *refusal = &refusals[k];
    json_t *item = json_object();
    if (refusal->winner != CLEAVE_INDEX_NONE) {
      set(item, "winner", rule_json(why->plan, refusal->winner, failed), failed);
    } else {
      set(item, "cause", text_json(refusal->cause), failed);
      set(item, "reason", text_json(refusal->reason), failed);
    }
    set(item, "structure", text_json(refusal->structure), failed);
    set(item, "count", number_json(refusal->count), failed);
    if (cleave_node_exists(refusal->first)) {
      set(item, "first", node_json(why, refusal->graph, refusal->first, failed), failed);
    } else if (refusal->place != NULL) {
      set(item, "place", text_json(refusal->place), failed);
    }
    append(list, item, failed);
  }
  return list;
}

static json_t *why_rule_json(const cleave_why_t *why, const cleave_why_rule_t *rule, bool *failed) {
  const cleave_plan_rule_t *entry = &why->plan->rules[rule->rule];
  json_t *json = rule_json(why->plan, rule->rule, failed);
  json_t *mismatches = json_array();
  set(json, "anchors", number_json(rule->anchor_count), failed);
  set(json, "matches", number_json(rule->match_count), failed);
  set(json, "made", number_json(entry->matches), failed);
  set(json, "refused", number_json(entry->refused), failed);
  set(json, "lost", number_json(rule->lost_count), failed);
  set(json, "before_rewriting", number_json(rule->before_count), failed);
  set(json, "far", number_json(rule->far_count), failed);
  set(json, "given_up", number_json(rule->limit_count), failed);
  for (uint32_t k = 0; k < rule->near_miss_count; k++) {
    json_t *item = json_object();
    set(item, "count", number_json(rule->near_misses[k].count), failed);
    set(item, "optional", json_boolean(rule->near_misses[k].is_optional), failed);
    set(item, "taken", json_boolean(rule->near_misses[k].is_taken), failed);
    set(item, "rewritten", json_boolean(rule->near_misses[k].graph != rule->graph), failed);
    add_finding(why, item, rule->near_misses[k].graph, &rule->near_misses[k].finding, failed);
    append(mismatches, item, failed);
  }
  set(json, "refusals", refusals_json(why, rule->refusals, rule->refusal_count, failed), failed);
  set(json, "losses", refusals_json(why, rule->losses, rule->loss_count, failed), failed);
  set(json, "near_misses", mismatches, failed);
  return json;
}

cleave_status_t cleave_why_print_json(const cleave_why_t *why, cleave_text_t *text, cleave_error_t *error) {
  bool failed = false;
  json_t *json = json_object();
  json_t *nodes = json_array();
  json_t *rules = json_array();
  for (uint32_t k = 0; k < why->node_count; k++) {
    append(nodes, why_node_json(why, &why->nodes[k], &failed), &failed);
  }
  for (uint32_t k = 0; k < why->rule_count; k++) {
    append(rules, why_rule_json(why, &why->rules[k], &failed), &failed);
  }
  set(json, "node_count", number_json((uint32_t)why->plan->graph->live_node_count), &failed);
  set(json, "fusion_count", number_json(why->plan->fusion_count), &failed);
  set(json, "region_count", number_json(why->plan->region_count), &failed);
  set(json, "nodes", nodes, &failed);
  set(json, "nodes_left_out", number_json(why->nodes_left_out), &failed);
  set(json, "rules", rules, &failed);
  char *dump = failed ? NULL : json_dumps(json, JSON_INDENT(2));
  if (dump != NULL) {
    cleave_text_add(text, dump);
    cleave_text_add(text, "\n");
  }
  json_decref(json);
  if (dump == NULL) {
    return cleave_error_out_of_memory(error);
  }
  free(dump);
  return cleave_text_check(text, error);
}
