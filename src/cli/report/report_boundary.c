// SPDX-License-Identifier: Apache-2.0
// The boundary report for people and for programs. Edges with the same reason are printed once, with their
// number, the bytes that cross, and the first of them.
#include "cli/report/report_boundary.h"

#include <string.h>

#include "base/array.h"
#include "cli/common/output.h"
#include "json/json_write.h"

enum { MAX_TOTALS = 24 };

/* Groups of all regions that have the same reason and operator. */
typedef struct total {
  const cleave_boundary_group_t *first;
  uint32_t region_count;
  uint32_t last_region;
  uint32_t edge_count;
  uint32_t unknown_count;
  double bytes;
} total_t;

typedef CLEAVE_ARRAY(total_t) totals_t;

static const char *op_name(const cleave_op_t *op) {
  return op == NULL ? "-" : op->name;
}

static const char *show_bytes(double bytes, uint32_t value_count, uint32_t unknown_count, char *buffer,
                              size_t size) {
  char known[32];
  if (unknown_count == 0) {
    return cleave_output_bytes(bytes, buffer, size);
  }
  if (unknown_count == value_count) {
    (void)snprintf(buffer, size, "unknown");
  } else {
    (void)snprintf(buffer, size, "%s + %u unknown", cleave_output_bytes(bytes, known, sizeof known),
                   (unsigned)unknown_count);
  }
  return buffer;
}

/* ---- all regions together ---- */

static int compare_totals(const void *a, const void *b) {
  const total_t *x = a;
  const total_t *y = b;
  if (x->edge_count != y->edge_count) {
    return x->edge_count > y->edge_count ? -1 : 1;
  }
  return (x->first->example > y->first->example) - (x->first->example < y->first->example);
}

static bool same_total(const cleave_boundary_group_t *a, const cleave_boundary_group_t *b) {
  return a->is_input == b->is_input && a->cause == b->cause && a->op == b->op &&
         strcmp(a->reason, b->reason) == 0;
}

static void add_totals(const cleave_boundary_report_t *report, totals_t *totals) {
  for (size_t g = 0; g < report->groups.count; g++) {
    const cleave_boundary_group_t *group = &report->groups.items[g];
    size_t k = 0;
    if (group->cause == CLEAVE_STOP_MODEL) {
      continue;
    }
    while (k < totals->count && !same_total(totals->items[k].first, group)) {
      k++;
    }
    if (k == totals->count) {
      if (cleave_array_reserve(totals, 1, NULL) != CLEAVE_OK) {
        return;
      }
      cleave_array_push_reserved(totals, ((total_t){.first = group, .last_region = CLEAVE_INDEX_NONE}));
    }
    total_t *total = &totals->items[k];
    total->region_count += total->last_region != group->region;
    total->last_region = group->region;
    total->edge_count += group->edge_count;
    total->unknown_count += group->unknown_count;
    total->bytes += group->bytes;
  }
  cleave_array_sort(totals, compare_totals);
}

static void print_totals(const cleave_boundary_report_t *report) {
  totals_t totals = {0};
  add_totals(report, &totals);
  if (totals.count == 0) {
    cleave_print("  nothing stopped growth but the ends of the model\n");
    return;
  }
  cleave_text_t rows = {0};
  cleave_text_add(&rows, "side\tstopped by\toperator\tedges\tregions\tbytes\treason\n");
  for (size_t k = 0; k < totals.count && k < MAX_TOTALS; k++) {
    const total_t *total = &totals.items[k];
    char bytes[64];
    cleave_text_show(&rows, "%s\t%s\t%s\t%u\t%u\t%s\t%s\n", total->first->is_input ? "in" : "out",
                     cleave_stop_cause_name(total->first->cause), op_name(total->first->op),
                     (unsigned)total->edge_count, (unsigned)total->region_count,
                     show_bytes(total->bytes, total->bytes > 0.0 ? UINT32_MAX : total->unknown_count,
                                total->unknown_count, bytes, sizeof bytes),
                     total->first->reason);
  }
  cleave_output_table(&rows, "lllrrrl");
  if (totals.count > MAX_TOTALS) {
    cleave_print("  and %zu more\n", totals.count - MAX_TOTALS);
  }
  cleave_array_free(&totals);
}

/* ---- region by region ---- */

static void print_region(const cleave_boundary_report_t *report, uint32_t index, size_t first, size_t end) {
  const cleave_plan_t *plan = report->plan;
  const cleave_plan_region_t *region = &plan->regions[index];
  const cleave_plan_rule_t *rule = &plan->rules[region->rule];
  char place[CLEAVE_PLACE_SIZE];
  cleave_print("\n%s on %s: %u node%s, by %s '%s'", region->name, region->backend,
               (unsigned)region->node_count, region->node_count == 1 ? "" : "s",
               cleave_rule_kind_name(rule->kind), rule->name);
  cleave_print(" (%s)\n", cleave_rule_place(rule->file, rule->line, place));
  cleave_text_t rows = {0};
  cleave_text_add(&rows, "side\tstopped by\toperator\tedges\tbytes\tfirst at\treason\n");
  for (size_t g = first; g < end; g++) {
    const cleave_boundary_group_t *group = &report->groups.items[g];
    const cleave_boundary_edge_t *edge = &report->edges.items[group->example];
    cleave_node_t shown = cleave_node_exists(edge->outside) ? edge->outside : edge->inside;
    char bytes[64];
    char label[96] = "-";
    if (cleave_node_exists(shown)) {
      (void)cleave_node_label(plan->graph, shown, label, sizeof label);
    }
    cleave_text_show(&rows, "%s\t%s\t%s\t%u\t%s\t%s\t%s\n", group->is_input ? "in" : "out",
                     cleave_stop_cause_name(group->cause), op_name(group->op), (unsigned)group->edge_count,
                     show_bytes(group->bytes, group->value_count, group->unknown_count, bytes, sizeof bytes),
                     label, group->reason);
  }
  cleave_output_table(&rows, "lllrrll");
}

static void print_what_ifs(const cleave_boundary_report_t *report) {
  if (report->what_ifs.count == 0) {
    return;
  }
  cleave_print("\nwhat if the rules and the backend took one operator more?\n");
  cleave_text_t rows = {0};
  cleave_text_add(&rows, "operator\tnodes outside\tregions merged\tregions then\tbytes less\n");
  for (size_t k = 0; k < report->what_ifs.count; k++) {
    const cleave_what_if_t *what_if = &report->what_ifs.items[k];
    char bytes[32];
    double less = what_if->bytes_less;
    cleave_text_show(&rows, "%s\t%u\t%u\t%u\t%s%s\n", what_if->op->name, (unsigned)what_if->node_count,
                     (unsigned)what_if->merged_count, (unsigned)what_if->region_count, less < 0.0 ? "-" : "",
                     cleave_output_bytes(less < 0.0 ? -less : less, bytes, sizeof bytes));
  }
  cleave_output_table(&rows, "lrrrr");
}

void cleave_report_boundaries(const cleave_boundary_report_t *report) {
  char bytes[64];
  cleave_print("\nboundaries: %u regions, %s cross between parts of the plan",
               (unsigned)report->plan->region_count, cleave_output_bytes(report->bytes, bytes, sizeof bytes));
  if (report->unknown_count > 0) {
    cleave_print(", and %u values of unknown size", (unsigned)report->unknown_count);
  }
  cleave_print("\n");
  if (report->groups.count > 0) {
    print_totals(report);
  }
  for (size_t g = 0; g < report->groups.count;) {
    size_t end = g;
    while (end < report->groups.count && report->groups.items[end].region == report->groups.items[g].region) {
      end++;
    }
    print_region(report, report->groups.items[g].region, g, end);
    g = end;
  }
  print_what_ifs(report);
}

/* ---- JSON ---- */

static json_t *group_json(const cleave_boundary_report_t *report, const cleave_boundary_group_t *group) {
  const cleave_graph_t *graph = report->plan->graph;
  const cleave_boundary_edge_t *edge = &report->edges.items[group->example];
  char label[128];
  json_t *json =
      json_pack("{s:s, s:s, s:o, s:i, s:i, s:f, s:i}", "side", group->is_input ? "in" : "out", "cause",
                cleave_stop_cause_name(group->cause), "reason", cleave_json_text(group->reason), "edges",
                (int)group->edge_count, "values", (int)group->value_count, "bytes", group->bytes, "unknown",
                (int)group->unknown_count);
  (void)json_object_set_new(json, "value", cleave_json_text(cleave_value_name(graph, edge->value)));
  if (cleave_node_exists(edge->inside)) {
    (void)json_object_set_new(json, "inside",
                              cleave_json_text(cleave_node_label(graph, edge->inside, label, sizeof label)));
  }
  if (group->op != NULL) {
    (void)json_object_set_new(json, "operator", cleave_json_text(group->op->name));
    (void)json_object_set_new(json, "outside",
                              cleave_json_text(cleave_node_label(graph, edge->outside, label, sizeof label)));
  }
  if (edge->other != CLEAVE_INDEX_NONE) {
    (void)json_object_set_new(json, "other_region",
                              cleave_json_text(report->plan->regions[edge->other].name));
  }
  return json;
}

void cleave_report_boundaries_json(const cleave_boundary_report_t *report, json_t *object) {
  const cleave_plan_t *plan = report->plan;
  json_t *regions = json_array();
  json_t *what_ifs = json_array();
  size_t g = 0;
  for (uint32_t r = 0; r < plan->region_count; r++) {
    const cleave_plan_region_t *region = &plan->regions[r];
    const cleave_plan_rule_t *rule = &plan->rules[region->rule];
    json_t *groups = json_array();
    for (; g < report->groups.count && report->groups.items[g].region == r; g++) {
      (void)json_array_append_new(groups, group_json(report, &report->groups.items[g]));
    }
    (void)json_array_append_new(
        regions, json_pack("{s:o, s:s, s:s, s:s, s:i, s:i, s:o}", "name", cleave_json_text(region->name),
                           "backend", region->backend, "rule", rule->name, "file", rule->file, "line",
                           (int)rule->line, "nodes", (int)region->node_count, "edges", groups));
  }
  for (size_t k = 0; k < report->what_ifs.count; k++) {
    const cleave_what_if_t *what_if = &report->what_ifs.items[k];
    (void)json_array_append_new(
        what_ifs, json_pack("{s:o, s:s, s:i, s:i, s:i, s:f}", "operator", cleave_json_text(what_if->op->name),
                            "domain", what_if->op->domain, "nodes_outside", (int)what_if->node_count,
                            "regions_merged", (int)what_if->merged_count, "regions",
                            (int)what_if->region_count, "bytes_less", what_if->bytes_less));
  }
  (void)json_object_set_new(object, "boundaries",
                            json_pack("{s:f, s:i, s:o}", "bytes", report->bytes, "unknown",
                                      (int)report->unknown_count, "regions", regions));
  (void)json_object_set_new(object, "what_if", what_ifs);
}
