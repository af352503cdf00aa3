// SPDX-License-Identifier: Apache-2.0
// Answers to "why" as JSON, complete: every verdict, every refusal, every kind of near miss.

#include "graph/print.h"
#include "json/json_write.h"
#include "partition/report/explain_report.h"

static json_t *node_json(const cleave_why_t *why, const cleave_graph_t *graph, cleave_node_t node) {
  char label[256];
  json_t *json = json_object();
  cleave_json_set(&json, "node", cleave_json_number(node.index));
  cleave_json_set(&json, "op", cleave_json_text(cleave_node_op(graph, node)->name));
  cleave_json_set(&json, "name", cleave_json_text(cleave_node_label(graph, node, label, sizeof label)));
  uint32_t maker = cleave_history_maker(why->history, node);
  if (maker != CLEAVE_INDEX_NONE) {
    cleave_json_set(&json, "made_by", cleave_json_text(why->plan->rules[maker].name));
  }
  return json;
}

static json_t *nodes_json(const cleave_why_t *why, const cleave_graph_t *graph, const cleave_node_t *nodes,
                          uint32_t count) {
  json_t *list = json_array();
  for (uint32_t k = 0; k < count; k++) {
    cleave_json_append(&list, node_json(why, graph, nodes[k]));
  }
  return list;
}

static json_t *mismatch_json(const cleave_why_t *why, const cleave_graph_t *graph,
                             const cleave_mismatch_t *mismatch) {
  json_t *json = json_object();
  cleave_json_set(&json, "kind", cleave_json_text(mismatch->kind));
  if (mismatch->file != NULL) {
    cleave_json_set(&json, "file", cleave_json_text(mismatch->file));
  }
  cleave_json_set(&json, "line", json_integer(mismatch->line));
  cleave_json_set(&json, "path", cleave_json_text(mismatch->path));
  cleave_json_set(&json, "subject", cleave_json_text(mismatch->subject));
  cleave_json_set(&json, "expected", cleave_json_text(mismatch->expected));
  cleave_json_set(&json, "found", cleave_json_text(mismatch->found));
  if (mismatch->detail[0] != '\0') {
    cleave_json_set(&json, "detail", cleave_json_text(mismatch->detail));
  }
  if (cleave_node_exists(mismatch->node)) {
    cleave_json_set(&json, "at", node_json(why, graph, mismatch->node));
  }
  if (cleave_value_exists(mismatch->value)) {
    cleave_json_set(&json, "value", cleave_json_text(cleave_value_name(graph, mismatch->value)));
  }
  if (mismatch->fix != NULL && mismatch->fix[0] != '\0') {
    cleave_json_set(&json, "edit", cleave_json_text(mismatch->fix));
  }
  return json;
}

static void add_finding(const cleave_why_t *why, json_t **json, const cleave_graph_t *graph,
                        const cleave_finding_t *finding) {
  cleave_json_set(json, "anchor", node_json(why, graph, finding->anchor));
  cleave_json_set(json, "matched", cleave_json_number(finding->matched));
  cleave_json_set(json, "total", cleave_json_number(finding->total));
  cleave_json_set(json, "nodes", nodes_json(why, graph, finding->nodes, finding->node_count));
  if (finding->mismatch_count > 0) {
    json_t *list = json_array();
    for (uint32_t k = 0; k < finding->mismatch_count; k++) {
      cleave_json_append(&list, mismatch_json(why, graph, &finding->mismatches[k]));
    }
    cleave_json_set(json, "misses", list);
    cleave_json_set(json, "edits_verified", json_boolean(finding->is_fixed));
    if (finding->refuser != NULL) {
      cleave_json_set(json, "edits_refused_by", cleave_json_text(finding->refuser));
      cleave_json_set(json, "edits_refused_reason", cleave_json_text(finding->refusal));
    }
  }
}

static json_t *rule_json(const cleave_plan_t *plan, uint32_t rule) {
  const cleave_plan_rule_t *entry = &plan->rules[rule];
  json_t *json = json_object();
  cleave_json_set(&json, "kind", cleave_json_text(cleave_rule_kind_name(entry->kind)));
  cleave_json_set(&json, "name", cleave_json_text(entry->name));
  cleave_json_set(&json, "ruleset", cleave_json_text(entry->ruleset));
  cleave_json_set(&json, "file", cleave_json_text(entry->file));
  cleave_json_set(&json, "line", json_integer(entry->line));
  return json;
}

static json_t *verdict_json(const cleave_why_t *why, const cleave_verdict_t *verdict) {
  const cleave_plan_t *plan = why->plan;
  json_t *json = json_object();
  cleave_json_set(&json, "rule", rule_json(plan, verdict->rule));
  cleave_json_set(&json, "fate", cleave_json_text(cleave_fate_name(verdict->fate)));
  if (verdict->cause[0] != '\0') {
    cleave_json_set(&json, "cause", cleave_json_text(verdict->cause));
  }
  if (verdict->reason[0] != '\0') {
    cleave_json_set(&json, "reason", cleave_json_text(verdict->reason));
  }
  if (verdict->winner != CLEAVE_INDEX_NONE) {
    cleave_json_set(&json, "winner", rule_json(plan, verdict->winner));
  }
  if (verdict->fusion != CLEAVE_INDEX_NONE) {
    const cleave_plan_fusion_t *fusion = &plan->fusions[verdict->fusion];
    cleave_json_set(&json, "fusion", nodes_json(why, plan->graph, fusion->nodes, fusion->node_count));
  }
  if (verdict->region != CLEAVE_INDEX_NONE) {
    cleave_json_set(&json, "region", cleave_json_text(plan->regions[verdict->region].name));
    cleave_json_set(&json, "backend", cleave_json_text(plan->regions[verdict->region].backend));
  }
  const cleave_finding_t *found = &verdict->finding;
  if (verdict->fate == CLEAVE_FATE_MADE || verdict->fate == CLEAVE_FATE_REWRITTEN) {
    cleave_json_set(&json, "taken", nodes_json(why, verdict->graph, found->nodes, found->node_count));
    cleave_json_set(&json, "made", nodes_json(why, plan->graph, verdict->made, verdict->made_count));
  } else if (found->node_count > 0) {
    json_t *finding = json_object();
    add_finding(why, &finding, verdict->graph, found);
    cleave_json_set(&json, "match", finding);
  }
  return json;
}

static json_t *gradient_json(const cleave_why_gradient_t *gradient) {
  json_t *json = json_object();
  cleave_json_set(&json, "op", cleave_json_text(gradient->op));
  cleave_json_set(&json, "place", gradient->place == NULL ? json_null() : cleave_json_text(gradient->place));
  cleave_json_set(&json, "replaced",
                  gradient->replaced == NULL ? json_null() : cleave_json_text(gradient->replaced));
  cleave_json_set(&json, "carries", json_boolean(gradient->carries));
  cleave_json_set(&json, "node_count", cleave_json_number(gradient->node_count));
  return json;
}

static json_t *why_node_json(const cleave_why_t *why, const cleave_why_node_t *node) {
  json_t *json = node_json(why, node->graph, node->node);
  json_t *verdicts = json_array();
  for (uint32_t k = 0; k < node->verdict_count; k++) {
    cleave_json_append(&verdicts, verdict_json(why, &node->verdicts[k]));
  }
  cleave_json_set(&json, "rewritten", json_boolean(node->graph != why->plan->graph));
  cleave_json_set(&json, "rules", verdicts);
  if (node->gradient != NULL) {
    cleave_json_set(&json, "gradient", gradient_json(node->gradient));
  }
  return json;
}

static json_t *refusals_json(const cleave_why_t *why, const cleave_why_refusal_t *refusals, uint32_t count) {
  json_t *list = json_array();
  for (uint32_t k = 0; k < count; k++) {
    const cleave_why_refusal_t *refusal = &refusals[k];
    json_t *item = json_object();
    if (refusal->winner != CLEAVE_INDEX_NONE) {
      cleave_json_set(&item, "winner", rule_json(why->plan, refusal->winner));
    } else {
      cleave_json_set(&item, "cause", cleave_json_text(refusal->cause));
      cleave_json_set(&item, "reason", cleave_json_text(refusal->reason));
    }
    cleave_json_set(&item, "structure", cleave_json_text(refusal->structure));
    cleave_json_set(&item, "count", cleave_json_number(refusal->count));
    if (cleave_node_exists(refusal->first)) {
      cleave_json_set(&item, "first", node_json(why, refusal->graph, refusal->first));
    } else if (refusal->place != NULL) {
      cleave_json_set(&item, "place", cleave_json_text(refusal->place));
    }
    cleave_json_append(&list, item);
  }
  return list;
}

static json_t *why_rule_json(const cleave_why_t *why, const cleave_why_rule_t *rule) {
  const cleave_plan_rule_t *entry = &why->plan->rules[rule->rule];
  json_t *json = rule_json(why->plan, rule->rule);
  json_t *mismatches = json_array();
  json_t *needs = json_array();
  cleave_json_set(&json, "anchors", cleave_json_number(rule->anchor_count));
  cleave_json_set(&json, "matches", cleave_json_number(rule->match_count));
  cleave_json_set(&json, "made", cleave_json_number(entry->matches));
  cleave_json_set(&json, "refused", cleave_json_number(entry->refused));
  cleave_json_set(&json, "lost", cleave_json_number(rule->lost_count));
  cleave_json_set(&json, "before_rewriting", cleave_json_number(rule->before_count));
  cleave_json_set(&json, "far", cleave_json_number(rule->far_count));
  cleave_json_set(&json, "given_up", cleave_json_number(rule->limit_count));
  for (uint32_t k = 0; k < rule->near_miss_count; k++) {
    json_t *item = json_object();
    cleave_json_set(&item, "count", cleave_json_number(rule->near_misses[k].count));
    cleave_json_set(&item, "optional", json_boolean(rule->near_misses[k].is_optional));
    cleave_json_set(&item, "taken", json_boolean(rule->near_misses[k].is_taken));
    cleave_json_set(&item, "rewritten", json_boolean(rule->near_misses[k].graph != rule->graph));
    add_finding(why, &item, rule->near_misses[k].graph, &rule->near_misses[k].finding);
    cleave_json_append(&mismatches, item);
  }
  for (uint32_t k = 0; k < rule->need_count; k++) {
    cleave_json_append(&needs, cleave_json_text(rule->needs[k]));
  }
  cleave_json_set(&json, "needs", needs);
  cleave_json_set(&json, "refusals", refusals_json(why, rule->refusals, rule->refusal_count));
  cleave_json_set(&json, "losses", refusals_json(why, rule->losses, rule->loss_count));
  cleave_json_set(&json, "near_misses", mismatches);
  return json;
}

cleave_status_t cleave_why_print_json(const cleave_why_t *why, cleave_text_t *text, cleave_error_t *error) {
  json_t *json = json_object();
  json_t *nodes = json_array();
  json_t *rules = json_array();
  json_t *gradients = json_array();
  for (uint32_t k = 0; k < why->gradient_count; k++) {
    cleave_json_append(&gradients, gradient_json(&why->gradients[k]));
  }
  for (uint32_t k = 0; k < why->node_count; k++) {
    cleave_json_append(&nodes, why_node_json(why, &why->nodes[k]));
  }
  for (uint32_t k = 0; k < why->rule_count; k++) {
    cleave_json_append(&rules, why_rule_json(why, &why->rules[k]));
  }
  cleave_json_set(&json, "node_count", cleave_json_number((uint32_t)why->plan->graph->live_node_count));
  cleave_json_set(&json, "fusion_count", cleave_json_number(why->plan->fusion_count));
  cleave_json_set(&json, "region_count", cleave_json_number(why->plan->region_count));
  cleave_json_set(&json, "nodes", nodes);
  cleave_json_set(&json, "nodes_left_out", cleave_json_number(why->nodes_left_out));
  cleave_json_set(&json, "rules", rules);
  cleave_json_set(&json, "gradients", gradients);
  CLEAVE_TRY(cleave_json_print(json, JSON_INDENT(2), text, error));
  cleave_text_add(text, "\n");
  return cleave_text_check(text, error);
}
