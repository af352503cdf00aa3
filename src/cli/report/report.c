// SPDX-License-Identifier: Apache-2.0
// Plans in a few lines. Each reason is printed once, with its first node.
#include "cli/report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers/array.h"
#include "cli/common/output.h"

enum { MAX_REASONS = 5, MAX_REFUSALS = 20, MAX_OPERATORS = 8 };

/* Nodes outside of regions, by operator. */
typedef struct left_count {
  const char *op;
  uint32_t count;
} left_count_t;

typedef struct left {
  CLEAVE_ARRAY(left_count_t) operators; /* most frequent first */
  uint32_t node_count;
} left_t;

static int compare_counts(const void *a, const void *b) {
  const left_count_t *left = a;
  const left_count_t *right = b;
  if (left->count != right->count) {
    return left->count > right->count ? -1 : 1;
  }
  return strcmp(left->op, right->op);
}

static void count_left(const cleave_plan_t *plan, left_t *left) {
  const cleave_graph_t *graph = plan->graph;
  for (uint32_t k = 0; k < cleave_graph_node_bound(graph); k++) {
    cleave_node_t node = {k};
    if (!cleave_node_is_live(graph, node) || plan->node_region[k] != CLEAVE_INDEX_NONE) {
      continue;
    }
    left->node_count++;
    const char *op = cleave_node_op(graph, node)->name;
    size_t at = 0;
    while (at < left->operators.count && strcmp(left->operators.items[at].op, op) != 0) {
      at++;
    }
    if (at == left->operators.count) {
      if (cleave_array_reserve(&left->operators, 1, NULL) != CLEAVE_OK) {
        continue;
      }
      cleave_array_push_reserved(&left->operators, ((left_count_t){.op = op}));
    }
    left->operators.items[at].count++;
  }
  cleave_array_sort(&left->operators, compare_counts);
}

/* Is this note the first one with its reason about a node that is outside of regions? */
static bool is_first_reason(const cleave_plan_t *plan, uint32_t index) {
  const cleave_plan_note_t *note = &plan->notes[index];
  if (!cleave_node_exists(note->node) || plan->node_region[note->node.index] != CLEAVE_INDEX_NONE ||
      note->reason == NULL || note->reason[0] == '\0') {
    return false;
  }
  for (uint32_t k = 0; k < index; k++) {
    const cleave_plan_note_t *other = &plan->notes[k];
    if (cleave_node_exists(other->node) && other->reason != NULL &&
        plan->node_region[other->node.index] == CLEAVE_INDEX_NONE &&
        strcmp(other->reason, note->reason) == 0) {
      return false;
    }
  }
  return true;
}

static uint32_t count_nodes(const cleave_plan_t *plan, uint32_t rule) {
  uint32_t count = 0;
  if (cleave_rule_kind_changes_graph(plan->rules[rule].kind)) {
    return plan->edits == NULL ? 0 : cleave_edits_nodes_taken(plan->edits, rule);
  }
  if (plan->rules[rule].kind == CLEAVE_RULE_STAGE) {
    return (uint32_t)plan->graph->live_node_count;
  }
  if (plan->rules[rule].kind == CLEAVE_RULE_FUSE) {
    for (uint32_t k = 0; k < plan->fusion_count; k++) {
      count += plan->fusions[k].rule == rule ? plan->fusions[k].node_count : 0;
    }
    return count;
  }
  for (uint32_t k = 0; k < plan->region_count; k++) {
    count += plan->regions[k].rule == rule ? plan->regions[k].node_count : 0;
  }
  return count;
}

static void print_stages(const cleave_plan_t *plan) {
  cleave_plan_stage_t *stages = NULL;
  if (plan->stage_count == 0 || cleave_plan_measure_stages(plan, &stages, NULL) != CLEAVE_OK) {
    return;
  }
  cleave_text_t rows = {0};
  char bytes[2][32];
  cleave_text_add(&rows, "stage\tnodes\tregions\tweights\tsends\n");
  for (uint32_t k = 0; k < plan->stage_count; k++) {
    double sent = stages[k].sent_bytes;
    cleave_text_show(&rows, "%u\t%u\t%u\t%s\t%s\n", (unsigned)k, (unsigned)stages[k].nodes,
                     (unsigned)stages[k].regions,
                     cleave_output_bytes(stages[k].weight_bytes, bytes[0], sizeof bytes[0]),
                     sent < 0.0 ? "?" : cleave_output_bytes(sent, bytes[1], sizeof bytes[1]));
  }
  cleave_output_table(&rows, "rrrrr");
  cleave_print("\n");
  cleave_free(stages);
}

/* Null if the model is not cut. */
static json_t *stages_json(const cleave_plan_t *plan) {
  cleave_plan_stage_t *stages = NULL;
  if (plan->stage_count == 0 || cleave_plan_measure_stages(plan, &stages, NULL) != CLEAVE_OK) {
    return json_null();
  }
  json_t *list = json_array();
  for (uint32_t k = 0; k < plan->stage_count; k++) {
    double sent = stages[k].sent_bytes;
    (void)json_array_append_new(
        list,
        json_pack("{s:i, s:i, s:f, s:i, s:o}", "nodes", (int)stages[k].nodes, "regions",
                  (int)stages[k].regions, "weight_bytes", stages[k].weight_bytes, "sent_values",
                  (int)stages[k].sent_values, "sent_bytes", sent < 0.0 ? json_null() : json_real(sent)));
  }
  cleave_free(stages);
  return list;
}

/* Counts the nodes of a rule and of those that are the same. */
static uint32_t count_all_nodes(const cleave_plan_t *plan, uint32_t rule) {
  uint32_t count = 0;
  for (uint32_t k = rule; k < plan->rule_count; k++) {
    count += cleave_plan_rule_is_same(plan, rule, k) ? count_nodes(plan, k) : 0;
  }
  return count;
}

static void print_rules(const cleave_plan_t *plan) {
  cleave_text_t rows = {0};
  cleave_text_add(&rows, "rule\tkind\twhere\tmade\tnodes\trefused\n");
  for (uint32_t k = 0; k < plan->rule_count; k++) {
    cleave_plan_rule_t rule;
    if (!cleave_plan_rule_total(plan, k, &rule)) {
      continue;
    }
    bool has_backend = cleave_rule_kind_has_backend(rule.kind);
    char place[CLEAVE_PLACE_SIZE];
    cleave_text_show(&rows, "%s\t%s%s%s\t%s\t%u\t%u\t%u\n", rule.name, cleave_rule_kind_name(rule.kind),
                     has_backend ? " on " : "", has_backend ? rule.backend : "",
                     cleave_rule_place(rule.file, rule.line, place), (unsigned)rule.matches,
                     (unsigned)count_all_nodes(plan, k), (unsigned)rule.refused);
  }
  cleave_output_table(&rows, "lllrrr");
}

void cleave_report_sizes(const cleave_sizes_t *sizes) {
  cleave_text_t text = {0};
  cleave_sizes_print(sizes, &text);
  if (text.length > 0) {
    cleave_print("  sizes: %s\n", cleave_text_get(&text));
  }
  cleave_text_deinit(&text);
}

/* Finds what the rule with this number in the plan did; NULL: nothing, or it changes no graph. */
static const cleave_edit_rule_t *edits_of(const cleave_plan_t *plan, uint32_t rule) {
  for (size_t k = 0; plan->edits != NULL && k < plan->edits->rules.count; k++) {
    if (plan->edits->rules.items[k].number == rule) {
      return &plan->edits->rules.items[k];
    }
  }
  return NULL;
}

void cleave_report_mistakes(const cleave_plan_t *plan) {
  bool has_any = false;
  for (size_t k = 0; plan->edits != NULL && k < plan->edits->rules.count; k++) {
    const cleave_edit_rule_t *rule = &plan->edits->rules.items[k];
    char place[CLEAVE_PLACE_SIZE];
    if (rule->mistakes > 0) {
      has_any = true;
      cleave_print("warning: %s: %s '%s' failed %u time%s, first %s\n",
                   cleave_rule_place(rule->file, rule->line, place), rule->kind, rule->name,
                   (unsigned)rule->mistakes, CLEAVE_PLURAL(rule->mistakes), rule->mistake);
    }
  }
  if (has_any) {
    cleave_print("\n");
  }
}

void cleave_report_plan(const cleave_plan_t *plan, bool has_rule_files) {
  left_t left = {0};
  count_left(plan, &left);
  if (plan->rule_count > 0) {
    print_rules(plan);
    cleave_print("\n");
    cleave_report_mistakes(plan);
  } else if (has_rule_files) {
    cleave_print(
        "no rule is in force: the rule files declare none, or their options switch all of them off\n\n");
  }
  print_stages(plan);
  cleave_print("%zu node%s: %u fusion%s, %u region%s, %u node%s on cpu one by one\n",
               plan->graph->live_node_count, CLEAVE_PLURAL(plan->graph->live_node_count),
               (unsigned)plan->fusion_count, CLEAVE_PLURAL(plan->fusion_count), (unsigned)plan->region_count,
               CLEAVE_PLURAL(plan->region_count), (unsigned)left.node_count, CLEAVE_PLURAL(left.node_count));
  if (plan->rule_count > 0 && left.node_count > 0) {
    cleave_print("  left on cpu:");
    for (size_t k = 0; k < left.operators.count && k < MAX_OPERATORS; k++) {
      cleave_print("%s %u %s", k == 0 ? "" : ",", (unsigned)left.operators.items[k].count,
                   left.operators.items[k].op);
    }
    cleave_print("%s\n", left.operators.count > MAX_OPERATORS ? ", ..." : "");
    uint32_t shown = 0;
    for (uint32_t k = 0; k < plan->note_count && shown < MAX_REASONS; k++) {
      if (is_first_reason(plan, k)) {
        char label[128];
        cleave_print("  %s: %s\n", cleave_node_label(plan->graph, plan->notes[k].node, label, sizeof label),
                     plan->notes[k].reason);
        shown++;
      }
    }
  }
  cleave_array_free(&left.operators);
}

void cleave_report_refusals(const cleave_plan_t *plan) {
  cleave_text_t text = {0};
  if (plan->edits != NULL && plan->edits->refusals.count > 0) {
    cleave_plan_print_refusals(plan->edits, MAX_REFUSALS, &text);
    cleave_print("\nmatches that rewrites left as they are:\n" CLEAVE_TRUSTED, cleave_text_get(&text));
  }
  cleave_text_deinit(&text);
}

void cleave_report_plan_json(const cleave_plan_t *plan, json_t *object) {
  left_t left = {0};
  json_t *rules = json_array();
  json_t *operators = json_object();
  json_t *reasons = json_array();
  count_left(plan, &left);
  for (uint32_t k = 0; k < plan->rule_count; k++) {
    const cleave_plan_rule_t *rule = &plan->rules[k];
    const cleave_edit_rule_t *edits = edits_of(plan, k);
    (void)json_array_append_new(
        rules,
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:s?}", "name", rule->name, "kind",
                  cleave_rule_kind_name(rule->kind), "ruleset", rule->ruleset, "backend", rule->backend,
                  "file", rule->file == NULL ? "" : rule->file, "line", (int)rule->line, "made",
                  (int)rule->matches, "nodes", (int)count_nodes(plan, k), "refused", (int)rule->refused,
                  "tries", (int)rule->tries, "mistakes", edits == NULL ? 0 : (int)edits->mistakes, "mistake",
                  edits == NULL ? NULL : edits->mistake));
  }
  for (size_t k = 0; k < left.operators.count; k++) {
    (void)json_object_set_new(operators, left.operators.items[k].op,
                              json_integer(left.operators.items[k].count));
  }
  for (uint32_t k = 0; k < plan->note_count && json_array_size(reasons) < MAX_REASONS; k++) {
    if (is_first_reason(plan, k)) {
      char label[128];
      (void)json_array_append_new(
          reasons, json_pack("{s:s, s:s}", "node",
                             cleave_node_label(plan->graph, plan->notes[k].node, label, sizeof label),
                             "reason", plan->notes[k].reason));
    }
  }
  (void)json_object_set_new(object, "fusions", json_integer(plan->fusion_count));
  (void)json_object_set_new(object, "regions", json_integer(plan->region_count));
  (void)json_object_set_new(object, "nodes", json_integer((json_int_t)plan->graph->live_node_count));
  (void)json_object_set_new(object, "nodes_on_cpu", json_integer(left.node_count));
  (void)json_object_set_new(object, "stages", stages_json(plan));
  (void)json_object_set_new(object, "rules", rules);
  (void)json_object_set_new(object, "left_on_cpu",
                            json_pack("{s:o, s:o}", "operators", operators, "reasons", reasons));
  cleave_array_free(&left.operators);
}

void cleave_report_rule_stats(const cleave_plan_t *plan) {
  cleave_text_t rows = {0};
  cleave_text_add(&rows, "rule\tkind\twhere\ttries\thits\tLua calls\tmatches\trefused\tms\n");
  for (uint32_t k = 0; k < plan->rule_count; k++) {
    cleave_plan_rule_t rule;
    if (!cleave_plan_rule_total(plan, k, &rule)) {
      continue;
    }
    char place[CLEAVE_PLACE_SIZE];
    char hits[24] = "-";
    if (rule.kind != CLEAVE_RULE_REGION) {
      (void)snprintf(hits, sizeof hits, "%llu", (unsigned long long)rule.structural_hits);
    }
    cleave_text_show(&rows, "%s\t%s\t%s\t%u\t%s\t%llu\t%u\t%u\t%.3f\n", rule.name,
                     cleave_rule_kind_name(rule.kind), cleave_rule_place(rule.file, rule.line, place),
                     (unsigned)rule.tries, hits, (unsigned long long)rule.lua_calls, (unsigned)rule.matches,
                     (unsigned)rule.refused, (double)rule.nanoseconds * 1e-6);
  }
  cleave_print("\n");
  cleave_output_table(&rows, "lllrrrrrr");
}

void cleave_report_rule_stats_json(const cleave_plan_t *plan, json_t *object) {
  json_t *rules = json_array();
  for (uint32_t k = 0; k < plan->rule_count; k++) {
    const cleave_plan_rule_t *rule = &plan->rules[k];
    (void)json_array_append_new(
        rules, json_pack("{s:s, s:s, s:s, s:i, s:i, s:I, s:I, s:i, s:i, s:f}", "name", rule->name, "kind",
                         cleave_rule_kind_name(rule->kind), "file", rule->file, "line", (int)rule->line,
                         "tries", (int)rule->tries, "hits", (json_int_t)rule->structural_hits, "lua_calls",
                         (json_int_t)rule->lua_calls, "matches", (int)rule->matches, "refused",
                         (int)rule->refused, "ms", (double)rule->nanoseconds * 1e-6));
  }
  (void)json_object_set_new(object, "rule_stats", rules);
}

/* ---- report devices ---- */

/* Devices of a session, as text and as JSON, from the same numbers. */
void cleave_report_devices(const cleave_session_t *session) {
  for (uint32_t k = 0; k < cleave_session_device_count(session); k++) {
    cleave_session_device_t device = cleave_session_device(session, k);
    char bytes[5][32];
    size_t other = device.workspace_bytes + device.dynamic_bytes;
    cleave_print("memory of %s: values %s (unshared %s), constants %s; a run copies %s there and %s back\n",
                 device.name,
                 cleave_output_bytes((double)(device.values_bytes + other), bytes[0], sizeof bytes[0]),
                 cleave_output_bytes((double)(device.unshared_bytes + other), bytes[1], sizeof bytes[1]),
                 cleave_output_bytes((double)device.constants_bytes, bytes[2], sizeof bytes[2]),
                 cleave_output_bytes((double)device.copied_to_bytes, bytes[3], sizeof bytes[3]),
                 cleave_output_bytes((double)device.copied_from_bytes, bytes[4], sizeof bytes[4]));
  }
}

json_t *cleave_report_devices_json(const cleave_session_t *session) {
  json_t *devices = json_array();
  for (uint32_t k = 0; k < cleave_session_device_count(session); k++) {
    cleave_session_device_t device = cleave_session_device(session, k);
    (void)json_array_append_new(
        devices,
        json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "name", device.name, "values",
                  (json_int_t)device.values_bytes, "unshared", (json_int_t)device.unshared_bytes, "workspace",
                  (json_int_t)device.workspace_bytes, "constants", (json_int_t)device.constants_bytes,
                  "dynamic", (json_int_t)device.dynamic_bytes, "copied_to",
                  (json_int_t)device.copied_to_bytes, "copied_from", (json_int_t)device.copied_from_bytes));
  }
  return devices;
}

/* ---- report profile ---- */

/* Lines of a profile that are printed. */
enum { PROFILE_LINES = 20 };

void cleave_report_profile(const cleave_profile_t *profile, const char *path) {
  double total = 0.0;
  for (size_t k = 0; k < profile->regions.count; k++) {
    total += profile->regions.items[k].total_ms;
  }
  for (int by_region = 1; by_region >= 0; by_region--) {
    const cleave_profile_line_t *lines = by_region != 0 ? profile->regions.items : profile->lines.items;
    size_t count = by_region != 0 ? profile->regions.count : profile->lines.count;
    cleave_print("\ntime per %s\n", by_region != 0 ? "region" : "fusion and operator");
    cleave_text_t rows = {0};
    cleave_text_show(&rows, "%s\tbackend\tsteps\tms\tshare\n",
                     by_region != 0 ? "region" : "fusion or operator");
    for (size_t k = 0; k < count && k < PROFILE_LINES; k++) {
      char bytes[32];
      bool is_copy = lines[k].bytes > 0;
      cleave_text_show(&rows, "%s%s%s\t%s\t%u\t%.3f\t%.1f %%\n", lines[k].label, is_copy ? ", " : "",
                       is_copy ? cleave_output_bytes((double)lines[k].bytes, bytes, sizeof bytes) : "",
                       lines[k].backend, (unsigned)lines[k].count, lines[k].total_ms,
                       total > 0.0 ? lines[k].total_ms / total * 100.0 : 0.0);
    }
    cleave_output_table(&rows, "llrrr");
    if (count > PROFILE_LINES) {
      cleave_print("  and %zu more\n", count - PROFILE_LINES);
    }
  }
  cleave_print("\ntrace written to %s\n", path);
}

/* ---- report recompute ---- */

void cleave_report_recompute(const cleave_recompute_report_t *report) {
  char text[5][32];
  cleave_print(
      "computed again: %u node%s, %s FLOPs; kept for backward: %s, before %s; values need %s, before %s\n",
      (unsigned)report->node_count, CLEAVE_PLURAL(report->node_count),
      cleave_output_count(report->flops_added, text[0], sizeof text[0]),
      cleave_output_bytes((double)report->kept_bytes, text[1], sizeof text[1]),
      cleave_output_bytes((double)report->kept_bytes_before, text[2], sizeof text[2]),
      cleave_output_bytes((double)report->peak_bytes, text[3], sizeof text[3]),
      cleave_output_bytes((double)report->peak_bytes_before, text[4], sizeof text[4]));
}

json_t *cleave_report_recompute_json(const cleave_recompute_report_t *report) {
  return json_pack("{s:I, s:f, s:I, s:I, s:I, s:I}", "nodes", (json_int_t)report->node_count, "flops_added",
                   report->flops_added, "kept_bytes", (json_int_t)report->kept_bytes, "kept_bytes_before",
                   (json_int_t)report->kept_bytes_before, "peak_bytes", (json_int_t)report->peak_bytes,
                   "peak_bytes_before", (json_int_t)report->peak_bytes_before);
}

/* ---- times ---- */

/* Quantiles of measured times, the same for every command. */
static int compare_times(const void *a, const void *b) {
  double left = *(const double *)a;
  double right = *(const double *)b;
  return (left > right) - (left < right);
}

void cleave_times_sort(double *times, size_t count) {
  if (count > 1) {
    qsort(times, count, sizeof *times, compare_times);
  }
}

double cleave_times_quantile(const double *sorted, size_t count, double share) {
  if (count == 0) {
    return 0.0;
  }
  double place = share * (double)(count - 1);
  size_t low = (size_t)place;
  size_t high = low + 1 < count ? low + 1 : low;
  double rest = place - (double)low;
  return sorted[low] * (1.0 - rest) + sorted[high] * rest;
}

double cleave_times_mean(const double *times, size_t count) {
  double sum = 0.0;
  for (size_t k = 0; k < count; k++) {
    sum += times[k];
  }
  return count == 0 ? 0.0 : sum / (double)count;
}

const char *cleave_times_format(double ms, char *buffer, size_t size) {
  (void)snprintf(buffer, size, ms < 1.0 ? "%.4f" : "%.2f", ms);
  return buffer;
}
