// SPDX-License-Identifier: Apache-2.0
// Answers to "why" as text: short lines, the most important one first.

#include <stdlib.h>

#include "graph/print.h"
#include "partition/explain/explain_find.h"
#include "partition/report/explain_report.h"

enum { MAX_NAMED = 6 };

typedef struct printer {
  const cleave_why_t *why;
  cleave_text_t *text;
} printer_t;

static void print_node(const printer_t *printer, const cleave_graph_t *graph, cleave_node_t node) {
  size_t start = printer->text->length;
  cleave_explain_node(graph, node, printer->text);
  cleave_history_print_maker(printer->why->history, node, printer->text);
  cleave_text_show_from(printer->text, start);
}

static void print_nodes(const printer_t *printer, const cleave_graph_t *graph, const cleave_node_t *nodes,
                        uint32_t count) {
  for (uint32_t k = 0; k < count; k++) {
    if (k == MAX_NAMED && count > MAX_NAMED + 1) {
      cleave_text_show(printer->text, " and %u more", (unsigned)(count - k));
      return;
    }
    cleave_text_add(printer->text, k == 0 ? "" : ", ");
    print_node(printer, graph, nodes[k]);
  }
}

/* Prints a line, if there are any. */
static void print_list(const printer_t *printer, const char *title, const cleave_graph_t *graph,
                       const cleave_node_t *nodes, uint32_t count) {
  if (count > 0) {
    cleave_text_add(printer->text, title);
    print_nodes(printer, graph, nodes, count);
    cleave_text_add(printer->text, "\n");
  }
}

/* "fuse 'x' (rules/a.lua:12)" */
static void print_rule_name(const printer_t *printer, uint32_t rule) {
  const cleave_plan_rule_t *entry = &printer->why->plan->rules[rule];
  char place[CLEAVE_PLACE_SIZE];
  cleave_text_show(printer->text, "%s '%s' (%s)", cleave_rule_kind_name(entry->kind), entry->name,
                   cleave_rule_place(entry->file, entry->line, place));
}

/* Prints the mismatches, one block for each, with their fixes. `named` is a node that was named before. */
static void print_mismatches(const printer_t *printer, const cleave_graph_t *graph, uint32_t rule,
                             const cleave_finding_t *finding, cleave_node_t named, const char *indent) {
  cleave_text_t *text = printer->text;
  const char *file = printer->why->plan->rules[rule].file;
  for (uint32_t k = 0; k < finding->mismatch_count; k++) {
    const cleave_mismatch_t *mismatch = &finding->mismatches[k];
    cleave_text_show(text, "%s%s is %s, wanted %s", indent, mismatch->subject, mismatch->found,
                     mismatch->expected);
    cleave_text_show(text, "%s%s\n", mismatch->detail[0] == '\0' ? "" : ": ", mismatch->detail);
    if (cleave_node_exists(mismatch->node) && mismatch->node.index != named.index) {
      cleave_text_show(text, "%s  at ", indent);
      print_node(printer, graph, mismatch->node);
      cleave_text_add(text, "\n");
    } else if (!cleave_node_exists(mismatch->node) && cleave_value_exists(mismatch->value)) {
      cleave_text_show(text, "%s  at ", indent);
      size_t start = text->length;
      cleave_explain_value(graph, mismatch->value, text);
      cleave_text_show_from(text, start);
      cleave_text_add(text, "\n");
    }
    cleave_text_show(text, "%s  %s:%d%s%s\n", indent, mismatch->file != NULL ? mismatch->file : file,
                     (int)mismatch->line, mismatch->path[0] == '\0' ? "" : ": ", mismatch->path);
    if (mismatch->fix != NULL && mismatch->fix[0] != '\0') {
      cleave_text_show(text, "%s  %s: %s\n", indent, finding->refuser == NULL ? "try" : "matches with",
                       mismatch->fix);
    }
  }
  if (finding->refuser != NULL) {
    cleave_text_show(text, "%sbut that match would be refused by %s: %s\n", indent, finding->refuser,
                     finding->refusal);
  }
}

// ---- nodes ----

static void print_region(const printer_t *printer, uint32_t region) {
  const cleave_plan_region_t *entry = &printer->why->plan->regions[region];
  cleave_text_show(printer->text, "region '%s' of %u node%s on %s", entry->name, (unsigned)entry->node_count,
                   CLEAVE_PLURAL(entry->node_count), entry->backend);
}

/* The live nodes with which the rule replaced what it took. */
static void print_made(const printer_t *printer, const cleave_verdict_t *verdict) {
  for (uint32_t k = 0; k < verdict->made_count; k++) {
    cleave_text_add(printer->text, k == 0 ? "    made " : ", ");
    size_t start = printer->text->length;
    cleave_explain_node(printer->why->plan->graph, verdict->made[k], printer->text);
    cleave_text_show_from(printer->text, start);
  }
  cleave_text_add(printer->text, verdict->made_count > 0 ? "\n" : "");
}

static void print_lost(const printer_t *printer, const cleave_why_node_t *node,
                       const cleave_verdict_t *verdict) {
  cleave_text_t *text = printer->text;
  const cleave_plan_t *plan = printer->why->plan;
  const cleave_finding_t *finding = &verdict->finding;
  cleave_text_show(text, "%s", finding->node_count > 0 ? "matches, but lost to " : "taken before by ");
  print_rule_name(printer, verdict->winner);
  cleave_text_add(text, "\n");
  if (verdict->fusion != CLEAVE_INDEX_NONE) {
    cleave_text_add(text, "    which took ");
    print_nodes(printer, node->graph, plan->fusions[verdict->fusion].nodes,
                plan->fusions[verdict->fusion].node_count);
    cleave_text_add(text, "\n");
  }
  print_list(printer, "    the match: ", verdict->graph, finding->nodes, finding->node_count);
}

static void print_missed(const printer_t *printer, const cleave_why_node_t *node,
                         const cleave_verdict_t *verdict) {
  cleave_text_t *text = printer->text;
  const cleave_finding_t *finding = &verdict->finding;
  cleave_text_show(text, "no match; %u of %u node%s from ", (unsigned)finding->matched,
                   (unsigned)finding->total, CLEAVE_PLURAL(finding->total));
  print_node(printer, verdict->graph, finding->anchor);
  if (verdict->winner != CLEAVE_INDEX_NONE) {
    cleave_text_add(text, ", before it was taken by ");
    print_rule_name(printer, verdict->winner);
  }
  cleave_text_add(text, "\n");
  print_mismatches(printer, verdict->graph, verdict->rule, finding, node->node, "    ");
}

static void print_verdict(const printer_t *printer, const cleave_why_node_t *node,
                          const cleave_verdict_t *verdict) {
  cleave_text_t *text = printer->text;
  const cleave_plan_t *plan = printer->why->plan;
  const cleave_finding_t *finding = &verdict->finding;
  cleave_text_add(text, "  ");
  print_rule_name(printer, verdict->rule);
  cleave_text_add(text, ": ");
  switch (verdict->fate) {
    case CLEAVE_FATE_FUSED:
      cleave_text_add(text, "fused, ");
      print_nodes(printer, node->graph, plan->fusions[verdict->fusion].nodes,
                  plan->fusions[verdict->fusion].node_count);
      cleave_text_add(text, "\n    in ");
      print_region(printer, verdict->region);
      cleave_text_add(text, "\n");
      break;
    case CLEAVE_FATE_REGION:
      cleave_text_add(text, "in ");
      print_region(printer, verdict->region);
      cleave_text_add(text, "\n");
      break;
    case CLEAVE_FATE_STAGE:
      cleave_text_show(text, "in stage %u of %u\n", (unsigned)plan->node_stage[node->node.index],
                       (unsigned)plan->stage_count);
      break;
    case CLEAVE_FATE_MADE:
      cleave_text_add(text, "made it\n");
      print_list(printer, "    in place of ", verdict->graph, finding->nodes, finding->node_count);
      break;
    case CLEAVE_FATE_REWRITTEN:
      cleave_text_add(text, "took it\n");
      print_list(printer, "    out of ", verdict->graph, finding->nodes, finding->node_count);
      print_made(printer, verdict);
      break;
    case CLEAVE_FATE_REFUSED:
      cleave_text_show(text, "%s%s%s%s\n", finding->node_count > 0 ? "matches, but refused" : "not taken",
                       verdict->cause[0] == '\0' ? "" : " by ", verdict->cause, "");
      if (verdict->reason[0] != '\0') {
        cleave_text_show(text, "    %s\n", verdict->reason);
      }
      if (finding->node_count > 0) {
        print_list(printer, "    the match: ", verdict->graph, finding->nodes, finding->node_count);
      }
      break;
    case CLEAVE_FATE_LOST: print_lost(printer, node, verdict); break;
    case CLEAVE_FATE_MISSED: print_missed(printer, node, verdict); break;
    case CLEAVE_FATE_OUTSIDE:
      cleave_text_show(text, "none of it concerns this node%s%s", verdict->reason[0] == '\0' ? "" : ": it ",
                       verdict->reason);
      cleave_text_add(text, "\n");
      break;
  }
}

static int compare_verdicts(const void *a, const void *b) {
  const cleave_verdict_t *const *x = a;
  const cleave_verdict_t *const *y = b;
  if ((*x)->fate != (*y)->fate) {
    return (*x)->fate < (*y)->fate ? -1 : 1;
  }
  return ((*x)->rule > (*y)->rule) - ((*x)->rule < (*y)->rule);
}

/* A line: "gradient 'Exp' (a.lua:12): ..." */
static void print_gradient(const printer_t *printer, const cleave_why_gradient_t *gradient) {
  cleave_text_t *text = printer->text;
  cleave_text_show(text, "gradient '%s'", gradient->op);
  if (gradient->place == NULL) {
    cleave_text_add(text, ": there is no rule\n");
    return;
  }
  cleave_text_show(text, " (%s): %s", gradient->place,
                   gradient->carries ? "its rule for 'cleave gradient' and training" : "no gradient passes");
  if (gradient->replaced != NULL) {
    cleave_text_show(text, ", in the place of %s", gradient->replaced);
  }
  cleave_text_add(text, "\n");
}

static cleave_status_t print_why_node(const printer_t *printer, const cleave_why_node_t *node,
                                      cleave_error_t *error) {
  cleave_text_t *text = printer->text;
  const cleave_verdict_t **order = cleave_allocate((size_t)node->verdict_count + 1, sizeof *order);
  CLEAVE_TRY_MEMORY(order, error);
  print_node(printer, node->graph, node->node);
  cleave_text_show(text, ", number %u", (unsigned)node->node.index);
  if (cleave_node_output_count(node->graph, node->node) > 0) {
    cleave_text_add(text, ", ");
    size_t start = text->length;
    cleave_value_type_print(node->graph, cleave_node_output(node->graph, node->node, 0), text);
    cleave_text_show_from(text, start);
  }
  if (node->graph != printer->why->plan->graph) {
    cleave_text_add(text, ", before the model was rewritten");
    uint32_t taker = cleave_history_taker(printer->why->history, node->node);
    if (taker != CLEAVE_INDEX_NONE) {
      cleave_text_add(text, " by ");
      print_rule_name(printer, taker);
    }
  } else if (printer->why->plan->node_region[node->node.index] == CLEAVE_INDEX_NONE) {
    cleave_text_add(text, ", on cpu by itself");
  }
  cleave_text_add(text, "\n");
  for (uint32_t k = 0; k < node->verdict_count; k++) {
    order[k] = &node->verdicts[k];
  }
  if (node->verdict_count > 1) {
    qsort(order, node->verdict_count, sizeof *order, compare_verdicts);
  }
  for (uint32_t k = 0; k < node->verdict_count; k++) {
    print_verdict(printer, node, order[k]);
  }
  if (node->gradient != NULL) {
    cleave_text_add(text, "  ");
    print_gradient(printer, node->gradient);
  }
  cleave_free(order);
  return CLEAVE_OK;
}

// ---- rules ----

static void print_near_miss(const printer_t *printer, const cleave_why_rule_t *rule,
                            const cleave_near_miss_t *near_miss) {
  cleave_text_t *text = printer->text;
  const cleave_finding_t *finding = &near_miss->finding;
  cleave_node_t place = finding->mismatches[0].node;
  cleave_text_show(text, "    %u of %u node%s", (unsigned)finding->matched, (unsigned)finding->total,
                   CLEAVE_PLURAL(finding->total));
  if (near_miss->count > 1) {
    cleave_text_show(text, " x %u, first at ", (unsigned)near_miss->count);
  } else {
    cleave_text_add(text, " at ");
  }
  print_node(printer, near_miss->graph, cleave_node_exists(place) ? place : finding->anchor);
  cleave_text_add(text, near_miss->is_optional ? " (matches without it)" : "");
  bool is_past = near_miss->graph != rule->graph;
  cleave_text_add(text, near_miss->is_taken && is_past ? ", before other rules took it" : "");
  cleave_text_add(text, near_miss->is_taken && !is_past ? " (fused by other rules)\n" : "\n");
  print_mismatches(printer, near_miss->graph, rule->rule, finding, place, "      ");
}

static void print_counts(const printer_t *printer, const cleave_why_rule_t *rule) {
  cleave_text_t *text = printer->text;
  const cleave_plan_rule_t *entry = &printer->why->plan->rules[rule->rule];
  if (entry->kind == CLEAVE_RULE_REGION) {
    cleave_text_show(text, "%u region%s", (unsigned)entry->matches, CLEAVE_PLURAL(entry->matches));
  } else if (entry->kind == CLEAVE_RULE_FUSE && rule->grows) {
    cleave_text_show(text, "%u fusion%s", (unsigned)entry->matches, CLEAVE_PLURAL(entry->matches));
  } else if (entry->kind == CLEAVE_RULE_STAGE) {
    cleave_text_show(text, "%u stage%s", (unsigned)entry->matches, CLEAVE_PLURAL(entry->matches));
  } else if (entry->kind == CLEAVE_RULE_PASS) {
    cleave_text_add(text, "a function over the whole model");
  } else {
    cleave_text_show(text, "%u %s out of %u match%s", (unsigned)entry->matches,
                     entry->kind == CLEAVE_RULE_FUSE ? "fused" : "rewritten", (unsigned)rule->match_count,
                     CLEAVE_BY_COUNT(rule->match_count, "", "es"));
  }
  if (entry->refused > 0) {
    cleave_text_show(text, ", %u refused", (unsigned)entry->refused);
  }
  if (rule->lost_count > 0) {
    cleave_text_show(text, ", %u lost to other rules", (unsigned)rule->lost_count);
  }
  if (rule->before_count > 0) {
    cleave_text_show(text, ", %u more before the model was rewritten", (unsigned)rule->before_count);
  }
  uint32_t near = 0;
  for (uint32_t k = 0; k < rule->near_miss_count; k++) {
    near += rule->near_misses[k].is_taken ? 0 : rule->near_misses[k].count;
  }
  if (near > 0) {
    cleave_text_show(text, ", %u near miss%s", (unsigned)near, CLEAVE_BY_COUNT(near, "", "es"));
  }
  for (uint32_t k = 0; near == 0 && k < rule->need_count; k++) {
    cleave_text_show(text, "%s%s", k == 0 ? ", the model has no " : ", no ", rule->needs[k]);
  }
  if (rule->limit_count > 0) {
    cleave_text_show(text, ", search given up at %u place%s", (unsigned)rule->limit_count,
                     CLEAVE_PLURAL(rule->limit_count));
  }
}

static void end_left_out(const printer_t *printer) {
  const char *option = printer->why->limit_option;
  cleave_text_format(printer->text, option != NULL ? " (%s)\n" : "\n", option);
}

/* Matches that the rule did not keep, one line per group. */
static void print_refusals(const printer_t *printer, const cleave_why_refusal_t *refusals, uint32_t count,
                           const char *what) {
  cleave_text_t *text = printer->text;
  uint32_t shown = count < printer->why->limit ? count : printer->why->limit;
  for (uint32_t k = 0; k < shown; k++) {
    const cleave_why_refusal_t *refusal = &refusals[k];
    if (refusal->winner != CLEAVE_INDEX_NONE) {
      cleave_text_add(text, "  lost to ");
      print_rule_name(printer, refusal->winner);
    } else {
      cleave_text_show(text, refusal->cause[0] == '\0' ? "  left" : "  refused by %s", refusal->cause);
    }
    if (refusal->count > 1) {
      cleave_text_show(text, " x %u", (unsigned)refusal->count);
    }
    if (cleave_node_exists(refusal->first)) {
      cleave_text_add(text, refusal->count > 1 ? ", first at " : " at ");
      print_node(printer, refusal->graph, refusal->first);
    } else if (refusal->place != NULL && refusal->place[0] != '\0') {
      cleave_text_show(text, "%s'%s'", refusal->count > 1 ? ", first at " : " at ", refusal->place);
    }
    if (refusal->structure[0] != '\0') {
      cleave_text_show(text, " (%s)", refusal->structure);
    }
    cleave_text_show(text, refusal->reason[0] == '\0' ? "\n" : ": %s\n", refusal->reason);
  }
  if (shown < count) {
    cleave_text_show(text, "  and %u more kind%s of %s", (unsigned)(count - shown),
                     CLEAVE_PLURAL(count - shown), what);
    end_left_out(printer);
  }
}

static void print_rule(const printer_t *printer, const cleave_why_rule_t *rule) {
  cleave_text_t *text = printer->text;
  print_rule_name(printer, rule->rule);
  cleave_text_add(text, ": ");
  print_counts(printer, rule);
  cleave_text_add(text, "\n");
  print_refusals(printer, rule->refusals, rule->refusal_count, "refusals");
  print_refusals(printer, rule->losses, rule->loss_count, "losses");
  uint32_t shown = rule->near_miss_count < printer->why->limit ? rule->near_miss_count : printer->why->limit;
  cleave_text_add(text, shown > 0 ? "  near misses:\n" : "");
  for (uint32_t k = 0; k < shown; k++) {
    print_near_miss(printer, rule, &rule->near_misses[k]);
  }
  if (shown < rule->near_miss_count) {
    cleave_text_show(text, "    and %u more kind%s", (unsigned)(rule->near_miss_count - shown),
                     CLEAVE_PLURAL(rule->near_miss_count - shown));
    end_left_out(printer);
  }
}

// ---- the whole model ----

typedef struct ranked {
  const cleave_why_rule_t *rule;
  const cleave_near_miss_t *near_miss;
  uint32_t order;
} ranked_t;

static int compare_ranked(const void *a, const void *b) {
  const ranked_t *x = a;
  const ranked_t *y = b;
  int order = cleave_near_miss_compare(x->near_miss, y->near_miss);
  return order != 0 ? order : (x->order > y->order) - (x->order < y->order);
}

/* Places with less than half of a pattern are not listed, only counted. */
static void print_summary_title(const printer_t *printer, uint32_t count) {
  const cleave_why_t *why = printer->why;
  uint64_t far = 0;
  for (uint32_t k = 0; k < why->rule_count; k++) {
    far += why->rules[k].far_count;
  }
  if (count > 0) {
    cleave_text_add(printer->text, "near misses:\n");
  } else if (far > 0) {
    cleave_text_format(printer->text,
                       "no near misses; %llu place%s less than half of a pattern (ask about a node there)\n",
                       (unsigned long long)far, CLEAVE_BY_COUNT(far, " has", "s have"));
  } else {
    cleave_text_add(printer->text, "no near misses\n");
  }
}

static cleave_status_t print_summary(const printer_t *printer, cleave_error_t *error) {
  const cleave_why_t *why = printer->why;
  const cleave_plan_t *plan = why->plan;
  cleave_text_t *text = printer->text;
  uint32_t count = 0;
  uint32_t fused = 0;
  uint32_t in_region = 0;
  for (uint32_t k = 0; k < plan->region_count; k++) {
    in_region += plan->regions[k].node_count;
  }
  for (uint32_t k = 0; k < plan->fusion_count; k++) {
    fused += plan->fusions[k].node_count;
  }
  for (uint32_t k = 0; k < why->rule_count; k++) {
    count += why->rules[k].near_miss_count;
  }
  cleave_text_show(text, "%u node%s: %u in %u fusion%s, %u in %u region%s, %u on cpu one by one\n",
                   (unsigned)plan->graph->live_node_count, CLEAVE_PLURAL(plan->graph->live_node_count),
                   (unsigned)fused, (unsigned)plan->fusion_count, CLEAVE_PLURAL(plan->fusion_count),
                   (unsigned)in_region, (unsigned)plan->region_count, CLEAVE_PLURAL(plan->region_count),
                   (unsigned)(plan->graph->live_node_count - in_region));
  for (uint32_t k = 0; k < why->rule_count; k++) {
    cleave_text_add(text, "  ");
    print_rule_name(printer, why->rules[k].rule);
    cleave_text_add(text, ": ");
    print_counts(printer, &why->rules[k]);
    cleave_text_add(text, "\n");
  }
  ranked_t *ranked = cleave_allocate((size_t)count + 1, sizeof *ranked);
  CLEAVE_TRY_MEMORY(ranked, error);
  uint32_t next = 0;
  for (uint32_t k = 0; k < why->rule_count; k++) {
    for (uint32_t m = 0; m < why->rules[k].near_miss_count; m++, next++) {
      ranked[next] = (ranked_t){&why->rules[k], &why->rules[k].near_misses[m], next};
    }
  }
  if (count > 1) {
    qsort(ranked, count, sizeof *ranked, compare_ranked);
  }
  print_summary_title(printer, count);
  for (uint32_t k = 0; k < count && k < why->limit; k++) {
    cleave_text_add(text, "  ");
    print_rule_name(printer, ranked[k].rule->rule);
    cleave_text_add(text, "\n");
    print_near_miss(printer, ranked[k].rule, ranked[k].near_miss);
  }
  if (count > why->limit) {
    cleave_text_show(text, "  and %u more kind%s", (unsigned)(count - why->limit),
                     CLEAVE_PLURAL(count - why->limit));
    end_left_out(printer);
  }
  cleave_free(ranked);
  return CLEAVE_OK;
}

cleave_status_t cleave_why_print_text(const cleave_why_t *why, cleave_text_t *text, cleave_error_t *error) {
  printer_t printer = {why, text};
  if (why->is_summary) {
    CLEAVE_TRY(print_summary(&printer, error));
  }
  for (uint32_t k = 0; k < why->node_count; k++) {
    cleave_text_add(text, k > 0 ? "\n" : "");
    CLEAVE_TRY(print_why_node(&printer, &why->nodes[k], error));
  }
  if (why->nodes_left_out > 0) {
    cleave_text_show(text, "\nand %u more node%s", (unsigned)why->nodes_left_out,
                     CLEAVE_PLURAL(why->nodes_left_out));
    end_left_out(&printer);
  }
  for (uint32_t k = 0; k < why->rule_count && !why->is_summary; k++) {
    cleave_text_add(text, k > 0 ? "\n" : "");
    print_rule(&printer, &why->rules[k]);
  }
  for (uint32_t k = 0; k < why->gradient_count && why->node_count == 0; k++) {
    cleave_text_add(text, k + why->rule_count > 0 ? "\n" : "");
    print_gradient(&printer, &why->gradients[k]);
    cleave_text_format(text, "  %u node%s of the model\n", (unsigned)why->gradients[k].node_count,
                       CLEAVE_PLURAL(why->gradients[k].node_count));
  }
  return cleave_text_check(text, error);
}
