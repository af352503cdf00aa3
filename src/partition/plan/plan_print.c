// SPDX-License-Identifier: Apache-2.0
// Prints a plan for people: what the rules did, what each region contains, which nodes are in no region and
// why.

#include <inttypes.h>

#include "partition/plan/plan.h"

enum { MAX_REFUSALS = 256 }; /* reasons of rewrites that are printed */

static void add_name(cleave_text_t *text, const char *name) {
  cleave_text_show(text, "%s", name);
}

static void add_node(const cleave_plan_t *plan, cleave_node_t node, cleave_text_t *text) {
  const char *name = cleave_node_name(plan->graph, node);
  add_name(text, cleave_node_op(plan->graph, node)->name);
  if (name[0] != '\0') {
    cleave_text_add(text, " '");
    add_name(text, name);
    cleave_text_add(text, "'");
  } else {
    cleave_text_show(text, "#%u", node.index);
  }
}

static void add_rule(const cleave_plan_rule_t *rule, cleave_text_t *text) {
  char place[CLEAVE_PLACE_SIZE];
  cleave_text_show(text, "%s '", cleave_rule_kind_name(rule->kind));
  add_name(text, rule->name);
  cleave_text_add(text, "' (");
  add_name(text, cleave_rule_place(rule->file, rule->line, place));
  cleave_text_add(text, ")");
}

static void add_values(const cleave_plan_t *plan, const char *title, const cleave_value_t *values,
                       uint32_t count, cleave_text_t *text) {
  cleave_text_show(text, "    %s", title);
  for (uint32_t k = 0; k < count; k++) {
    const char *name = cleave_value_name(plan->graph, values[k]);
    cleave_text_add(text, k == 0 ? " " : ", ");
    if (name[0] == '\0') {
      cleave_text_show(text, "%%%u", values[k].index);
    } else {
      cleave_text_add(text, "%");
      add_name(text, name);
    }
  }
  cleave_text_add(text, count == 0 ? " none\n" : "\n");
}

static void add_quoted(cleave_text_t *text, const char *content) {
  cleave_text_add(text, "'");
  add_name(text, content);
  cleave_text_add(text, "'");
}

/* " {key = 'text', other = [1, 2]}" */
static void add_attributes(const cleave_attribute_t *attributes, uint32_t count, cleave_text_t *text) {
  for (uint32_t k = 0; k < count; k++) {
    const cleave_attribute_t *attribute = &attributes[k];
    cleave_text_add(text, k == 0 ? " {" : ", ");
    add_name(text, attribute->name);
    cleave_text_add(text, " = ");
    bool is_list = cleave_attribute_is_list(attribute);
    cleave_text_add(text, is_list ? "[" : "");
    for (uint32_t n = 0; n < cleave_attribute_item_count(attribute); n++) {
      cleave_attribute_t item = cleave_attribute_item(attribute, n);
      cleave_text_add(text, n == 0 ? "" : ", ");
      switch (item.kind) {
        case CLEAVE_ATTRIBUTE_INT: cleave_text_show(text, "%" PRId64, item.i); break;
        case CLEAVE_ATTRIBUTE_FLOAT: cleave_text_show(text, is_list ? "%.9g" : "%.17g", item.f); break;
        default: add_quoted(text, item.s); break;
      }
    }
    cleave_text_add(text, is_list ? "]" : "");
  }
  cleave_text_add(text, count > 0 ? "}" : "");
}

static void add_fusion(const cleave_plan_t *plan, const cleave_plan_fusion_t *fusion, cleave_text_t *text) {
  cleave_text_add(text, "    [");
  add_name(text, plan->rules[fusion->rule].name);
  cleave_text_add(text, "]");
  for (uint32_t k = 0; k < fusion->node_count; k++) {
    cleave_text_add(text, k == 0 ? " " : " + ");
    if (fusion->labels[k][0] != '\0') {
      add_name(text, fusion->labels[k]);
      cleave_text_add(text, "=");
    }
    add_node(plan, fusion->nodes[k], text);
  }
  add_attributes(fusion->attributes, fusion->attribute_count, text);
  cleave_text_add(text, "\n");
}

/* " (stage 1)" */
static void add_stage(const cleave_plan_t *plan, cleave_node_t node, cleave_text_t *text) {
  if (plan->node_stage != NULL) {
    cleave_text_show(text, " (stage %u)", (unsigned)plan->node_stage[node.index]);
  }
}

static void add_region(const cleave_plan_t *plan, const cleave_plan_region_t *region, cleave_text_t *text) {
  cleave_text_add(text, "  ");
  add_name(text, region->name);
  cleave_text_show(text, " on %s: %u node%s, %u fusion%s, by ", region->backend, region->node_count,
                   CLEAVE_PLURAL(region->node_count), region->fusion_count,
                   CLEAVE_PLURAL(region->fusion_count));
  add_rule(&plan->rules[region->rule], text);
  add_stage(plan, region->nodes[0], text);
  cleave_text_add(text, "\n");
  if (region->attribute_count > 0) {
    cleave_text_add(text, "    attributes");
    add_attributes(region->attributes, region->attribute_count, text);
    cleave_text_add(text, "\n");
  }
  add_values(plan, "in ", region->inputs, region->input_count, text);
  add_values(plan, "out", region->outputs, region->output_count, text);
  for (uint32_t k = 0; k < region->node_count; k++) {
    uint32_t fusion = plan->node_fusion[region->nodes[k].index];
    if (fusion == CLEAVE_INDEX_NONE) {
      cleave_text_add(text, "    ");
      add_node(plan, region->nodes[k], text);
      cleave_text_add(text, "\n");
    } else if (plan->fusions[fusion].nodes[0].index == region->nodes[k].index) {
      add_fusion(plan, &plan->fusions[fusion], text);
    }
  }
}

void cleave_plan_print_refusals(const cleave_edits_t *edits, uint32_t most, cleave_text_t *text) {
  cleave_edit_refusals_t groups[MAX_REFUSALS];
  uint32_t more = 0;
  uint32_t count = 0;
  if (cleave_edits_group_refusals(edits, groups, MAX_REFUSALS, &count, &more, NULL) != CLEAVE_OK) {
    text->failed = true;
  }
  for (uint32_t k = 0; k < count; k++) {
    const cleave_edit_rule_t *rule = &edits->rules.items[groups[k].rule];
    char place[CLEAVE_PLACE_SIZE];
    if (k >= most) {
      more += groups[k].count;
      continue;
    }
    cleave_text_add(text, "  left");
    if (groups[k].place[0] != '\0') {
      cleave_text_add(text, " at ");
      add_quoted(text, groups[k].place);
    }
    if (groups[k].count > 1) {
      cleave_text_show(text, " and %u more", groups[k].count - 1);
    }
    cleave_text_add(text, ": ");
    add_name(text, groups[k].reason);
    cleave_text_show(text, ", %s '", rule->kind);
    add_name(text, rule->name);
    cleave_text_add(text, "' (");
    add_name(text, cleave_rule_place(rule->file, rule->line, place));
    cleave_text_add(text, ")\n");
  }
  if (more > 0) {
    cleave_text_show(text, "  and %u more for other reasons\n", more);
  }
}

static cleave_status_t add_stages(const cleave_plan_t *plan, cleave_text_t *text, cleave_error_t *error) {
  cleave_plan_stage_t *stages = NULL;
  if (plan->stage_count == 0) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_plan_measure_stages(plan, &stages, error));
  cleave_text_add(text, "stages:\n");
  for (uint32_t k = 0; k < plan->stage_count; k++) {
    const cleave_plan_stage_t *stage = &stages[k];
    cleave_text_show(text, "  stage %u: %u node%s, %u region%s, %.0f bytes of weights", (unsigned)k,
                     (unsigned)stage->nodes, CLEAVE_PLURAL(stage->nodes), (unsigned)stage->regions,
                     CLEAVE_PLURAL(stage->regions), stage->weight_bytes);
    if (k + 1 < plan->stage_count) {
      cleave_text_show(text,
                       stage->sent_bytes < 0.0 ? ", sends %u value%s" : ", sends %u value%s of %.0f bytes",
                       (unsigned)stage->sent_values, CLEAVE_PLURAL(stage->sent_values), stage->sent_bytes);
    }
    cleave_text_add(text, "\n");
  }
  cleave_free(stages);
  return CLEAVE_OK;
}

/* "  fuse 'x' (a.lua:3) of 'rules' for cpu: 2 fusions from 5 anchors, 1 refused"; rules that are the same
 * have one line, with the rulesets of all. */
static void add_rule_line(const cleave_plan_t *plan, uint32_t number, cleave_text_t *text) {
  cleave_plan_rule_t rule;
  if (!cleave_plan_rule_total(plan, number, &rule)) {
    return;
  }
  cleave_text_add(text, "  ");
  add_rule(&rule, text);
  cleave_text_show(text, " of '%s'", rule.ruleset);
  for (uint32_t k = number + 1; k < plan->rule_count; k++) {
    if (cleave_plan_rule_is_same(plan, number, k)) {
      cleave_text_show(text, ", '%s'", plan->rules[k].ruleset);
    }
  }
  if (cleave_rule_kind_changes_graph(rule.kind)) {
    cleave_text_show(text, ": %u change%s from %u %s%s, %u refused\n", rule.matches,
                     CLEAVE_PLURAL(rule.matches), rule.tries,
                     rule.kind == CLEAVE_RULE_REWRITE ? "anchor" : "run", CLEAVE_PLURAL(rule.tries),
                     rule.refused);
    return;
  }
  if (rule.kind == CLEAVE_RULE_STAGE) {
    cleave_text_show(text, ": %u stage%s\n", rule.matches, CLEAVE_PLURAL(rule.matches));
    return;
  }
  bool is_fuse = rule.kind == CLEAVE_RULE_FUSE;
  cleave_text_show(text, " for %s: %u %s%s from %u %s%s, %u refused\n", rule.backend, rule.matches,
                   is_fuse ? "fusion" : "region", CLEAVE_PLURAL(rule.matches), rule.tries,
                   is_fuse ? "anchor" : "seed", CLEAVE_PLURAL(rule.tries), rule.refused);
}

cleave_status_t cleave_plan_print_text(const cleave_plan_t *plan, cleave_text_t *text,
                                       cleave_error_t *error) {
  uint32_t left = 0;
  for (uint32_t s = 0; s < plan->step_count; s++) {
    left += plan->steps[s].region == CLEAVE_INDEX_NONE;
  }
  cleave_text_add(text, "plan of '");
  add_name(text, cleave_strings_text(&plan->graph->strings, plan->graph->name));
  cleave_text_show(text, "' (%zu node%s, hash %016" PRIx64 "): %u region%s, %u fusion%s, %u node%s on cpu\n",
                   plan->graph->live_node_count, CLEAVE_PLURAL(plan->graph->live_node_count),
                   plan->graph_hash, plan->region_count, CLEAVE_PLURAL(plan->region_count),
                   plan->fusion_count, CLEAVE_PLURAL(plan->fusion_count), left, CLEAVE_PLURAL(left));
  if (plan->rule_count > 0) {
    cleave_text_add(text, "rules:\n");
  }
  for (uint32_t k = 0; k < plan->rule_count; k++) {
    add_rule_line(plan, k, text);
  }
  CLEAVE_TRY(add_stages(plan, text, error));
  if (plan->region_count > 0) {
    cleave_text_add(text, "regions, in order of execution:\n");
  }
  for (uint32_t r = 0; r < plan->region_count; r++) {
    add_region(plan, &plan->regions[r], text);
  }
  if (left > 0) {
    cleave_text_add(text, "left to cpu:\n");
  }
  for (uint32_t s = 0; s < plan->step_count; s++) {
    if (plan->steps[s].region == CLEAVE_INDEX_NONE) {
      cleave_text_add(text, "  ");
      add_node(plan, plan->steps[s].node, text);
      add_stage(plan, plan->steps[s].node, text);
      cleave_text_add(text, "\n");
    }
  }
  bool has_refusals = plan->edits != NULL && plan->edits->refusals.count > 0;
  if (plan->note_count > 0 || has_refusals) {
    cleave_text_add(text, "notes:\n");
  }
  if (has_refusals) {
    cleave_plan_print_refusals(plan->edits, MAX_REFUSALS, text);
  }
  for (uint32_t k = 0; k < plan->note_count; k++) {
    const cleave_plan_note_t *note = &plan->notes[k];
    cleave_text_show(text, "  %s at ", cleave_plan_note_name(note->kind));
    add_node(plan, note->node, text);
    cleave_text_add(text, ": ");
    add_name(text, note->reason);
    cleave_text_add(text, ", ");
    add_rule(&plan->rules[note->rule], text);
    cleave_text_add(text, "\n");
  }
  return cleave_text_check(text, error);
}
