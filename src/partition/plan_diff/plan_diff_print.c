// SPDX-License-Identifier: Apache-2.0
// Differences for people: only what changed, one line for nodes with the same move, aligned columns.

#include <string.h>

#include "base/containers/array.h"
#include "base/show.h"
#include "partition/plan_diff/plan_diff.h"

enum { MAX_ROWS = 40 };

/* Prints a table, after a blank line if something precedes it, and deinitialises its rows. */
static void print_table(cleave_text_t *rows, const char *alignment, cleave_text_t *text) {
  cleave_text_t table = {0};
  cleave_text_align(&table, cleave_text_get(rows), alignment, "", "");
  text->failed = text->failed || rows->failed || table.failed;
  cleave_text_add(text, table.length > 0 && text->length > 0 ? "\n" : "");
  cleave_text_add(text, cleave_text_get(&table));
  cleave_text_deinit(&table);
  cleave_text_deinit(rows);
}

static void add_count(cleave_text_t *text, uint32_t count, const char *what) {
  cleave_text_show(text, "%u %s%s", (unsigned)count, what, CLEAVE_PLURAL(count));
}

static void print_graphs(const cleave_plan_diff_t *diff, cleave_text_t *text) {
  if (diff->same_graph) {
    return;
  }
  cleave_text_add(text, "the plans are of different graphs: ");
  add_count(text, diff->before->node_count, "node");
  cleave_text_show(text, " before, %u after; %u matched, %u of them by operator and name\n",
                   (unsigned)diff->after->node_count, (unsigned)diff->matched_count,
                   (unsigned)diff->by_name_count);
}

static void print_settings(const cleave_plan_diff_t *diff, cleave_text_t *text) {
  cleave_text_t rows = {0};
  cleave_text_add(&rows, "setting\tbefore\tafter\n");
  for (uint32_t k = 0; k < diff->setting_count; k++) {
    const cleave_diff_setting_t *setting = &diff->settings[k];
    cleave_text_show(&rows, "%s\t%s\t%s\n", setting->name,
                     setting->before == NULL ? "(not set)" : setting->before,
                     setting->after == NULL ? "(not set)" : setting->after);
  }
  print_table(&rows, "lll", text);
}

/* "16", or "-" if the plan lacks the rule. */
static void add_made(cleave_text_t *rows, const cleave_plan_rule_t *rule) {
  if (rule == NULL) {
    cleave_text_add(rows, "\t-");
  } else {
    cleave_text_show(rows, "\t%u", (unsigned)rule->matches);
  }
}

static void print_rules(const cleave_plan_diff_t *diff, cleave_text_t *text) {
  cleave_text_t rows = {0};
  cleave_text_add(&rows, "rule\tkind\tmade before\tafter\trefused before\tafter\n");
  for (uint32_t k = 0; k < diff->rule_count; k++) {
    const cleave_diff_rule_t *entry = &diff->rules[k];
    const cleave_plan_rule_t *rule = entry->after != NULL ? entry->after : entry->before;
    bool moved = entry->before != NULL && entry->after != NULL &&
                 strcmp(entry->before->backend, entry->after->backend) != 0;
    if (entry->before != NULL && entry->after != NULL && !moved &&
        entry->before->matches == entry->after->matches && entry->before->refused == entry->after->refused) {
      continue;
    }
    cleave_text_show(&rows, "%s\t%s on %.50s%s%.50s", rule->name, cleave_rule_kind_name(rule->kind),
                     moved ? entry->before->backend : rule->backend, moved ? " -> " : "",
                     moved ? entry->after->backend : "");
    add_made(&rows, entry->before);
    add_made(&rows, entry->after);
    cleave_text_show(&rows, "\t%u\t%u\n", (unsigned)(entry->before == NULL ? 0 : entry->before->refused),
                     (unsigned)(entry->after == NULL ? 0 : entry->after->refused));
  }
  print_table(&rows, "llrrrr", text);
}

static void print_shapes(const cleave_plan_diff_t *diff, cleave_text_t *text) {
  cleave_text_t rows = {0};
  cleave_text_add(&rows, "fusions of\toperators\tbefore\tafter\n");
  for (uint32_t k = 0; k < diff->shape_count && k < MAX_ROWS; k++) {
    cleave_text_show(&rows, "%s\t%s\t%u\t%u\n", diff->shapes[k].rule, diff->shapes[k].shape,
                     (unsigned)diff->shapes[k].before, (unsigned)diff->shapes[k].after);
  }
  print_table(&rows, "llrr", text);
  if (diff->shape_count > MAX_ROWS) {
    cleave_text_show(text, "  and %u more\n", (unsigned)(diff->shape_count - MAX_ROWS));
  }
}

/* "island_0 on onednn (174 nodes), island_1 on onednn (1 node)" */
static void add_regions(cleave_text_t *rows, const cleave_document_region_t *const *regions, uint32_t count) {
  for (uint32_t k = 0; k < count && k < 4; k++) {
    cleave_text_show(rows, "%s%s on %s (", k == 0 ? "" : ", ", regions[k]->name, regions[k]->backend);
    add_count(rows, regions[k]->node_count, "node");
    cleave_text_add(rows, ")");
  }
  if (count > 4) {
    cleave_text_show(rows, " and %u more", (unsigned)(count - 4));
  }
  cleave_text_add(rows, count == 0 ? "-" : "");
}

static void print_regions(const cleave_plan_diff_t *diff, cleave_text_t *text) {
  cleave_text_t rows = {0};
  cleave_text_add(&rows, "region\tbefore\tafter\n");
  for (uint32_t k = 0; k < diff->region_count && k < MAX_ROWS; k++) {
    const cleave_diff_region_t *region = &diff->regions[k];
    cleave_text_show(&rows, "%s%s%s\t", region->why, region->why[0] == '\0' ? "" : " ",
                     cleave_diff_region_kind_name(region->kind));
    add_regions(&rows, region->before, region->before_count);
    cleave_text_add(&rows, "\t");
    add_regions(&rows, region->after, region->after_count);
    cleave_text_add(&rows, "\n");
  }
  print_table(&rows, "lll", text);
  if (diff->region_count > MAX_ROWS) {
    cleave_text_show(text, "  and %u more\n", (unsigned)(diff->region_count - MAX_ROWS));
  }
}

/* ---- nodes ---- */

/* "conv_bn_act in island_0 on onednn", "island_0 on onednn", "cpu", "cpu in stage 1". */
static void describe(const cleave_diff_place_t *place, bool exists, cleave_text_t *rows) {
  if (exists && place->fusion[0] != '\0') {
    cleave_text_show(rows, "%s in ", place->fusion);
  }
  if (exists && place->region[0] != '\0') {
    cleave_text_show(rows, "%s on ", place->region);
  }
  cleave_text_show(rows, "%s", exists ? place->backend : "-");
  if (place->stage != CLEAVE_INDEX_NONE) {
    cleave_text_show(rows, " in stage %u", (unsigned)place->stage);
  }
  cleave_text_add(rows, "\t");
}

static bool same_place(const cleave_diff_place_t *a, const cleave_diff_place_t *b) {
  return strcmp(a->backend, b->backend) == 0 && strcmp(a->region, b->region) == 0 &&
         strcmp(a->fusion, b->fusion) == 0 && a->stage == b->stage;
}

/* Did two nodes of the same operator make the same move? */
static bool same_move(const cleave_diff_node_t *a, const cleave_diff_node_t *b) {
  return strcmp(a->op, b->op) == 0 && (a->before == CLEAVE_INDEX_NONE) == (b->before == CLEAVE_INDEX_NONE) &&
         (a->after == CLEAVE_INDEX_NONE) == (b->after == CLEAVE_INDEX_NONE) &&
         same_place(&a->place_before, &b->place_before) && same_place(&a->place_after, &b->place_after);
}

typedef struct group {
  const cleave_diff_node_t *first;
  uint32_t count;
} group_t;

/* Groups are in the order of their first nodes. Those after MAX_ROWS groups are only counted. */
static void print_nodes(const cleave_plan_diff_t *diff, cleave_text_t *text) {
  group_t groups[MAX_ROWS];
  uint32_t group_count = 0;
  uint32_t rest = 0;
  for (uint32_t k = 0; k < diff->node_count; k++) {
    uint32_t at = 0;
    while (at < group_count && !same_move(groups[at].first, &diff->nodes[k])) {
      at++;
    }
    if (at == group_count && group_count < MAX_ROWS) {
      groups[group_count++] = (group_t){&diff->nodes[k], 1};
    } else if (at < group_count) {
      groups[at].count++;
    } else {
      rest++;
    }
  }
  cleave_text_t rows = {0};
  cleave_text_add(&rows, "nodes\toperator\tbefore\tafter\tfirst\n");
  for (uint32_t k = 0; k < group_count; k++) {
    const cleave_diff_node_t *node = groups[k].first;
    cleave_text_show(&rows, "%u\t%s\t", (unsigned)groups[k].count, node->op);
    describe(&node->place_before, node->before != CLEAVE_INDEX_NONE, &rows);
    describe(&node->place_after, node->after != CLEAVE_INDEX_NONE, &rows);
    if (node->name[0] == '\0') {
      cleave_text_show(&rows, "node %u\n",
                       (unsigned)(node->after != CLEAVE_INDEX_NONE ? node->after : node->before));
    } else {
      cleave_text_show(&rows, "%s\n", node->name);
    }
  }
  print_table(&rows, "rllll", text);
  if (rest > 0) {
    cleave_text_show(text, "  and %u more node%s\n", (unsigned)rest, CLEAVE_PLURAL(rest));
  }
}

cleave_status_t cleave_plan_diff_print_text(const cleave_plan_diff_t *diff, cleave_text_t *text,
                                            cleave_error_t *error) {
  cleave_text_t lines = {0};
  uint32_t fusion_count = 0;
  for (uint32_t r = 0; r < diff->after->region_count; r++) {
    fusion_count += diff->after->regions[r].fusion_count;
  }
  if (diff->same) {
    cleave_text_add(&lines, "the plans are the same: ");
    add_count(&lines, diff->after->region_count, "region");
    cleave_text_add(&lines, ", ");
    add_count(&lines, fusion_count, "fusion");
    cleave_text_add(&lines, "\n");
  }
  print_graphs(diff, &lines);
  print_settings(diff, &lines);
  print_rules(diff, &lines);
  print_shapes(diff, &lines);
  print_regions(diff, &lines);
  print_nodes(diff, &lines);
  text->failed = text->failed || lines.failed;
  cleave_text_add(text, cleave_text_get(&lines));
  cleave_text_deinit(&lines);
  return cleave_text_check(text, error);
}
