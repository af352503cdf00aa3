// SPDX-License-Identifier: Apache-2.0
// Differences for programs: one JSON object with an entry for each node that moved.

#include "json/json_write.h"
#include "partition/plan_diff/plan_diff.h"

static json_t *place_json(const cleave_diff_place_t *place, uint32_t position) {
  if (position == CLEAVE_INDEX_NONE) {
    return json_null();
  }
  json_t *stage = place->stage == CLEAVE_INDEX_NONE ? json_null() : json_integer((json_int_t)place->stage);
  return json_pack("{s:I, s:o, s:o, s:o, s:o}", "position", (json_int_t)position, "backend",
                   cleave_json_text(place->backend), "region", cleave_json_text(place->region), "fusion",
                   cleave_json_text(place->fusion), "stage", stage);
}

static json_t *nodes_json(const cleave_plan_diff_t *diff) {
  json_t *list = json_array();
  for (uint32_t k = 0; k < diff->node_count; k++) {
    const cleave_diff_node_t *node = &diff->nodes[k];
    (void)json_array_append_new(
        list, json_pack("{s:o, s:o, s:o, s:o}", "op", cleave_json_text(node->op), "name",
                        cleave_json_text(node->name), "before", place_json(&node->place_before, node->before),
                        "after", place_json(&node->place_after, node->after)));
  }
  return list;
}

static json_t *counts_json(const cleave_plan_rule_t *rule) {
  return rule == NULL ? json_null()
                      : json_pack("{s:I, s:I, s:o}", "made", (json_int_t)rule->matches, "refused",
                                  (json_int_t)rule->refused, "backend", cleave_json_text(rule->backend));
}

static json_t *rules_json(const cleave_plan_diff_t *diff) {
  json_t *list = json_array();
  for (uint32_t k = 0; k < diff->rule_count; k++) {
    const cleave_diff_rule_t *entry = &diff->rules[k];
    const cleave_plan_rule_t *rule = entry->after != NULL ? entry->after : entry->before;
    (void)json_array_append_new(
        list, json_pack("{s:o, s:s, s:o, s:o, s:o}", "name", cleave_json_text(rule->name), "kind",
                        cleave_rule_kind_name(rule->kind), "ruleset", cleave_json_text(rule->ruleset),
                        "before", counts_json(entry->before), "after", counts_json(entry->after)));
  }
  return list;
}

static json_t *shapes_json(const cleave_plan_diff_t *diff) {
  json_t *list = json_array();
  for (uint32_t k = 0; k < diff->shape_count; k++) {
    const cleave_diff_shape_t *shape = &diff->shapes[k];
    (void)json_array_append_new(
        list, json_pack("{s:o, s:o, s:I, s:I}", "rule", cleave_json_text(shape->rule), "operators",
                        cleave_json_text(shape->shape), "before", (json_int_t)shape->before, "after",
                        (json_int_t)shape->after));
  }
  return list;
}

static json_t *region_list_json(const cleave_document_region_t *const *regions, uint32_t count) {
  json_t *list = json_array();
  for (uint32_t k = 0; k < count; k++) {
    (void)json_array_append_new(
        list, json_pack("{s:o, s:o, s:I}", "name", cleave_json_text(regions[k]->name), "backend",
                        cleave_json_text(regions[k]->backend), "nodes", (json_int_t)regions[k]->node_count));
  }
  return list;
}

static json_t *regions_json(const cleave_plan_diff_t *diff) {
  json_t *list = json_array();
  for (uint32_t k = 0; k < diff->region_count; k++) {
    const cleave_diff_region_t *region = &diff->regions[k];
    (void)json_array_append_new(
        list, json_pack("{s:s, s:s, s:o, s:o}", "kind", cleave_diff_region_kind_name(region->kind), "why",
                        region->why, "before", region_list_json(region->before, region->before_count),
                        "after", region_list_json(region->after, region->after_count)));
  }
  return list;
}

static json_t *settings_json(const cleave_plan_diff_t *diff) {
  json_t *list = json_array();
  for (uint32_t k = 0; k < diff->setting_count; k++) {
    const cleave_diff_setting_t *setting = &diff->settings[k];
    (void)json_array_append_new(
        list, json_pack("{s:o, s:o, s:o}", "name", cleave_json_text(setting->name), "before",
                        setting->before == NULL ? json_null() : cleave_json_text(setting->before), "after",
                        setting->after == NULL ? json_null() : cleave_json_text(setting->after)));
  }
  return list;
}

cleave_status_t cleave_plan_diff_print_json(const cleave_plan_diff_t *diff, cleave_text_t *text,
                                            cleave_error_t *error) {
  json_t *json = json_pack(
      "{s:b, s:{s:b, s:I, s:I, s:I, s:I}, s:o, s:o, s:o, s:o, s:I, s:o}", "same", diff->same, "graph", "same",
      diff->same_graph, "nodes_before", (json_int_t)diff->before->node_count, "nodes_after",
      (json_int_t)diff->after->node_count, "matched", (json_int_t)diff->matched_count, "matched_by_name",
      (json_int_t)diff->by_name_count, "settings", settings_json(diff), "rules", rules_json(diff), "fusions",
      shapes_json(diff), "regions", regions_json(diff), "moved", (json_int_t)diff->moved_count, "nodes",
      nodes_json(diff));
  return cleave_json_print(json, JSON_COMPACT, text, error);
}
