// SPDX-License-Identifier: Apache-2.0
// Differences for people: only what changed, one line for nodes with the same move, aligned columns.

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/show.h"
#include "partition/plan_diff/plan_diff.h"

enum { COLUMNS = 6, MAX_ROWS = 40 };

/* Rows of cells; the first is the heading. Cells are texts in an arena. */
typedef struct table {
  cleave_arena_t arena;
  CLEAVE_ARRAY(const char *) cells;
  size_t columns;
  const char *alignment; /* per column: 'l' or 'r' */
  bool failed;
} table_t;

/* Names come from outside. */
static const char *clean(table_t *table, const char *text) {
  size_t size = (size_t)cleave_show(NULL, 0, "%s", text) + 1;
  char *copy = cleave_arena_allocate(&table->arena, size, 1);
  if (copy != NULL) {
    (void)cleave_show(copy, size, "%s", text);
  }
  return copy;
}

static void add_cell(table_t *table, const char *text) {
  const char *cell = clean(table, text);
  if (cell == NULL || cleave_array_reserve(&table->cells, 1, NULL) != CLEAVE_OK) {
    table->failed = true;
    return;
  }
  cleave_array_push_reserved(&table->cells, cell);
}

static void add_number(table_t *table, uint32_t number) {
  char text[16];
  (void)snprintf(text, sizeof text, "%u", (unsigned)number);
  add_cell(table, text);
}

static void add_heading(table_t *table, const char *const *names) {
  for (size_t k = 0; k < table->columns; k++) {
    add_cell(table, names[k]);
  }
}

/* Characters of UTF-8, not bytes. */
static size_t width_of(const char *text) {
  size_t width = 0;
  for (; *text != '\0'; text++) {
    width += ((unsigned char)*text & 0xc0u) != 0x80u;
  }
  return width;
}

/* Prints a table, after a blank line if something precedes it; nothing if the table has only a heading. */
static void print_table(table_t *table, cleave_text_t *text) {
  size_t widths[COLUMNS] = {0};
  size_t rows = table->columns == 0 ? 0 : table->cells.count / table->columns;
  text->failed = text->failed || table->failed;
  for (size_t k = 0; k < rows * table->columns; k++) {
    size_t width = width_of(table->cells.items[k]);
    size_t column = k % table->columns;
    widths[column] = width > widths[column] ? width : widths[column];
  }
  if (rows > 1 && text->length > 0) {
    cleave_text_add(text, "\n");
  }
  for (size_t row = 0; row < rows && rows > 1; row++) {
    cleave_text_add(text, "  ");
    for (size_t column = 0; column < table->columns; column++) {
      const char *cell = table->cells.items[row * table->columns + column];
      size_t padding = widths[column] - width_of(cell);
      bool is_last = column + 1 == table->columns;
      if (table->alignment[column] == 'r') {
        cleave_text_show(text, "%*s%s%s", (int)padding, "", cell, is_last ? "" : "  ");
      } else {
        cleave_text_show(text, "%s%*s%s", cell, is_last ? 0 : (int)padding, "", is_last ? "" : "  ");
      }
    }
    cleave_text_add(text, "\n");
  }
  cleave_array_free(&table->cells);
  cleave_arena_deinit(&table->arena);
}

static void add_count(cleave_text_t *text, uint32_t count, const char *what) {
  cleave_text_show(text, "%u %s%s", (unsigned)count, what, count == 1 ? "" : "s");
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
  static const char *const heading[] = {"setting", "before", "after"};
  table_t table = {.columns = 3, .alignment = "lll"};
  add_heading(&table, heading);
  for (uint32_t k = 0; k < diff->setting_count; k++) {
    const cleave_diff_setting_t *setting = &diff->settings[k];
    add_cell(&table, setting->name);
    add_cell(&table, setting->before == NULL ? "(not set)" : setting->before);
    add_cell(&table, setting->after == NULL ? "(not set)" : setting->after);
  }
  print_table(&table, text);
}

/* "16", or "-" if the plan lacks the rule. */
static void add_made(table_t *table, const cleave_plan_rule_t *rule) {
  if (rule == NULL) {
    add_cell(table, "-");
  } else {
    add_number(table, rule->matches);
  }
}

static void print_rules(const cleave_plan_diff_t *diff, cleave_text_t *text) {
  static const char *const heading[] = {"rule", "kind", "made before", "after", "refused before", "after"};
  table_t table = {.columns = 6, .alignment = "llrrrr"};
  add_heading(&table, heading);
  for (uint32_t k = 0; k < diff->rule_count; k++) {
    const cleave_diff_rule_t *entry = &diff->rules[k];
    const cleave_plan_rule_t *rule = entry->after != NULL ? entry->after : entry->before;
    bool moved = entry->before != NULL && entry->after != NULL &&
                 strcmp(entry->before->backend, entry->after->backend) != 0;
    if (entry->before != NULL && entry->after != NULL && !moved &&
        entry->before->matches == entry->after->matches && entry->before->refused == entry->after->refused) {
      continue;
    }
    char kind[160];
    (void)snprintf(kind, sizeof kind, moved ? "%s on %.50s -> %.50s" : "%s on %.50s",
                   cleave_rule_kind_name(rule->kind), moved ? entry->before->backend : rule->backend,
                   moved ? entry->after->backend : "");
    add_cell(&table, rule->name);
    add_cell(&table, kind);
    add_made(&table, entry->before);
    add_made(&table, entry->after);
    add_number(&table, entry->before == NULL ? 0 : entry->before->refused);
    add_number(&table, entry->after == NULL ? 0 : entry->after->refused);
  }
  print_table(&table, text);
}

static void print_shapes(const cleave_plan_diff_t *diff, cleave_text_t *text) {
  static const char *const heading[] = {"fusions of", "operators", "before", "after"};
  table_t table = {.columns = 4, .alignment = "llrr"};
  add_heading(&table, heading);
  for (uint32_t k = 0; k < diff->shape_count && k < MAX_ROWS; k++) {
    add_cell(&table, diff->shapes[k].rule);
    add_cell(&table, diff->shapes[k].shape);
    add_number(&table, diff->shapes[k].before);
    add_number(&table, diff->shapes[k].after);
  }
  print_table(&table, text);
  if (diff->shape_count > MAX_ROWS) {
    cleave_text_show(text, "  and %u more\n", (unsigned)(diff->shape_count - MAX_ROWS));
  }
}

/* "island_0 on onednn (174 nodes), island_1 on onednn (1 node)" */
static void add_regions(table_t *table, const cleave_document_region_t *const *regions, uint32_t count) {
  cleave_text_t text = {0};
  for (uint32_t k = 0; k < count && k < 4; k++) {
    cleave_text_show(&text, "%s%s on %s (", k == 0 ? "" : ", ", regions[k]->name, regions[k]->backend);
    add_count(&text, regions[k]->node_count, "node");
    cleave_text_add(&text, ")");
  }
  if (count > 4) {
    cleave_text_show(&text, " and %u more", (unsigned)(count - 4));
  }
  table->failed = table->failed || text.failed;
  add_cell(table, count == 0 ? "-" : cleave_text_get(&text));
  cleave_text_deinit(&text);
}

static void print_regions(const cleave_plan_diff_t *diff, cleave_text_t *text) {
  static const char *const heading[] = {"region", "before", "after"};
  table_t table = {.columns = 3, .alignment = "lll"};
  add_heading(&table, heading);
  for (uint32_t k = 0; k < diff->region_count && k < MAX_ROWS; k++) {
    const cleave_diff_region_t *region = &diff->regions[k];
    char what[64];
    (void)snprintf(what, sizeof what, "%s%s%s", region->why[0] == '\0' ? "" : region->why,
                   region->why[0] == '\0' ? "" : " ", cleave_diff_region_kind_name(region->kind));
    add_cell(&table, what);
    add_regions(&table, region->before, region->before_count);
    add_regions(&table, region->after, region->after_count);
  }
  print_table(&table, text);
  if (diff->region_count > MAX_ROWS) {
    cleave_text_show(text, "  and %u more\n", (unsigned)(diff->region_count - MAX_ROWS));
  }
}

/* ---- nodes ---- */

/* "conv_bn_act in island_0 on onednn", "island_0 on onednn", "cpu". */
static void describe(const cleave_diff_place_t *place, bool exists, cleave_text_t *text) {
  text->length = 0;
  if (!exists) {
    cleave_text_add(text, "-");
    return;
  }
  if (place->fusion[0] != '\0') {
    cleave_text_show(text, "%s in ", place->fusion);
  }
  if (place->region[0] != '\0') {
    cleave_text_show(text, "%s on ", place->region);
  }
  cleave_text_add(text, place->backend);
}

static bool same_place(const cleave_diff_place_t *a, const cleave_diff_place_t *b) {
  return strcmp(a->backend, b->backend) == 0 && strcmp(a->region, b->region) == 0 &&
         strcmp(a->fusion, b->fusion) == 0;
}

/* The same operator made the same move. */
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
  static const char *const heading[] = {"nodes", "operator", "before", "after", "first"};
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
  table_t table = {.columns = 5, .alignment = "rllll"};
  cleave_text_t place = {0};
  add_heading(&table, heading);
  for (uint32_t k = 0; k < group_count; k++) {
    const cleave_diff_node_t *node = groups[k].first;
    add_number(&table, groups[k].count);
    add_cell(&table, node->op);
    describe(&node->place_before, node->before != CLEAVE_INDEX_NONE, &place);
    add_cell(&table, cleave_text_get(&place));
    describe(&node->place_after, node->after != CLEAVE_INDEX_NONE, &place);
    add_cell(&table, cleave_text_get(&place));
    place.length = 0;
    if (node->name[0] == '\0') {
      cleave_text_show(&place, "node %u",
                       (unsigned)(node->after != CLEAVE_INDEX_NONE ? node->after : node->before));
    } else {
      cleave_text_add(&place, node->name);
    }
    add_cell(&table, cleave_text_get(&place));
  }
  text->failed = text->failed || place.failed;
  cleave_text_deinit(&place);
  print_table(&table, text);
  if (rest > 0) {
    cleave_text_show(text, "  and %u more nodes\n", (unsigned)rest);
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
