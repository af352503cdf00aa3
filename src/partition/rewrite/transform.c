// SPDX-License-Identifier: Apache-2.0
// Runs the graph rules in order, on a copy of the graph. Consecutive rewrites are a group; a pass is alone.
#include "partition/rewrite/transform.h"

#include <stdlib.h>
#include <string.h>

#include "graph/clone.h"
#include "graph/compare/structural_hash.h"
#include "graph/print.h"
#include "graph/verify.h"
#include "partition/rewrite/rewrite_state.h"
#include "system/clock.h"

void cleave_transformation_deinit(cleave_transformation_t *transformation) {
  cleave_graph_destroy(transformation->graph);
  cleave_edits_destroy(transformation->edits);
  *transformation = (cleave_transformation_t){NULL, NULL};
}

/* The rule that set an output of the graph last, or NONE. */
static uint32_t rule_of_output(const cleave_edits_t *edits, uint32_t output) {
  uint32_t rule = CLEAVE_INDEX_NONE;
  for (size_t g = 0; g < edits->groups.count; g++) {
    const cleave_edit_group_t *group = &edits->groups.items[g];
    for (uint32_t k = 0; group->rule != CLEAVE_INDEX_NONE && k < group->edit_count; k++) {
      const cleave_edit_t *edit = &edits->items.items[group->first_edit + k];
      if (edit->kind == CLEAVE_EDIT_SET_OUTPUT && edit->index == output) {
        rule = edits->rules.items[group->rule].number;
      }
    }
  }
  return rule;
}

/* Callers expect the types of the model's outputs: if a rule sets an output of another type, the plan notes
 * it. */
static cleave_status_t note_outputs(const cleave_edits_t *edits, const cleave_graph_t *source,
                                    cleave_plan_t *plan, cleave_error_t *error) {
  const cleave_graph_t *graph = plan->graph;
  cleave_text_t text = {0};
  cleave_status_t status = CLEAVE_OK;
  cleave_plan_note_t *notes =
      cleave_arena_allocate(&plan->arena, plan->note_count + graph->outputs.count, sizeof *notes);
  uint32_t count = plan->note_count;
  CLEAVE_TRY_MEMORY(notes, error);
  if (count > 0) {
    memcpy(notes, plan->notes, count * sizeof *notes);
  }
  for (uint32_t k = 0; k < graph->outputs.count && k < source->outputs.count; k++) {
    cleave_value_t value = cleave_graph_output(graph, k);
    uint32_t rule = rule_of_output(edits, k);
    if (rule >= plan->rule_count) {
      continue;
    }
    text.length = 0;
    cleave_text_format(&text, "output '%s' is ", cleave_graph_output_name(graph, k));
    size_t now = text.length;
    cleave_value_type_print(graph, value, &text);
    size_t middle = text.length;
    cleave_text_add(&text, " now, it was ");
    size_t before = text.length;
    cleave_value_type_print(source, cleave_graph_output(source, k), &text);
    CLEAVE_TRY_CLEANUP(cleave_text_check(&text, error));
    const char *reason = cleave_text_get(&text);
    cleave_node_t producer = cleave_value_producer(graph, value);
    if (!cleave_node_exists(producer) ||
        (middle - now == text.length - before && memcmp(reason + now, reason + before, middle - now) == 0)) {
      continue;
    }
    notes[count] = (cleave_plan_note_t){.kind = CLEAVE_PLAN_NOTE_OUTPUT,
                                        .node = producer,
                                        .rule = rule,
                                        .reason = cleave_arena_copy_text(&plan->arena, reason, text.length)};
    if (notes[count++].reason == NULL) {
      CLEAVE_TRY_CLEANUP(cleave_error_out_of_memory(error));
    }
  }
  plan->notes = notes;
  plan->note_count = count;
cleanup:
  cleave_text_deinit(&text);
  return status;
}

cleave_status_t cleave_transformation_move(cleave_transformation_t *transformation,
                                           const cleave_graph_t *source, cleave_plan_t *plan,
                                           cleave_error_t *error) {
  const cleave_edits_t *edits = transformation->edits;
  if (edits != NULL && transformation->graph != NULL) {
    CLEAVE_TRY(note_outputs(edits, source, plan, error));
  }
  for (size_t k = 0; edits != NULL && k < edits->rules.count; k++) {
    const cleave_edit_rule_t *rule = &edits->rules.items[k];
    if (rule->number < plan->rule_count) {
      plan->rules[rule->number].tries = rule->tries;
      plan->rules[rule->number].matches = rule->matches;
      plan->rules[rule->number].refused = rule->refused;
      plan->rules[rule->number].structural_hits = rule->structural_hits;
      plan->rules[rule->number].lua_calls = rule->lua_calls;
      plan->rules[rule->number].nanoseconds = rule->nanoseconds;
    }
  }
  plan->source = source;
  plan->rewritten = transformation->graph;
  plan->edits = transformation->edits;
  *transformation = (cleave_transformation_t){NULL, NULL};
  return CLEAVE_OK;
}

// ---- running the rules ----

typedef struct listing {
  cleave_rule_run_t *runs;
  uint32_t count;
} listing_t;

static int compare_turns(const void *a, const void *b) {
  const cleave_rule_run_t *x = a;
  const cleave_rule_run_t *y = b;
  if (x->rule->priority != y->rule->priority) {
    return x->rule->priority > y->rule->priority ? -1 : 1;
  }
  return (x->number > y->number) - (x->number < y->number);
}

static cleave_status_t check_rule(const cleave_rule_run_t *run, cleave_error_t *error) {
  const cleave_rule_t *rule = run->rule;
  const char *missing = NULL;
  if (rule->kind == CLEAVE_RULE_REWRITE) {
    missing = rule->pattern == NULL ? "a pattern" : rule->replace == NULL ? "a function 'replace'" : NULL;
  } else {
    missing = rule->run == NULL ? "a function 'run'" : NULL;
  }
  return missing == NULL
             ? CLEAVE_OK
             : cleave_error_set_at(error, CLEAVE_ERROR_RULE, run->file, rule->line, "%s '%s': needs %s",
                                   cleave_rule_kind_name(rule->kind), rule->name, missing);
}

static cleave_status_t list_turns(const cleave_ruleset_t *const *rulesets, uint32_t ruleset_count,
                                  listing_t *listing, cleave_error_t *error) {
  size_t most = 0;
  uint32_t number = 0;
  for (uint32_t s = 0; s < ruleset_count; s++) {
    most += rulesets[s]->rule_count;
  }
  listing->runs = cleave_allocate_zeroed(most + 1, sizeof *listing->runs);
  CLEAVE_TRY_MEMORY(listing->runs, error);
  for (uint32_t s = 0; s < ruleset_count; s++) {
    uint32_t first = listing->count;
    for (uint32_t r = 0; r < rulesets[s]->rule_count; r++, number++) {
      const cleave_rule_t *rule = &rulesets[s]->rules[r];
      if (cleave_rule_kind_changes_graph(rule->kind)) {
        const char *file = rule->file != NULL ? rule->file : rulesets[s]->file;
        file = file == NULL ? "" : file;
        listing->runs[listing->count++] = (cleave_rule_run_t){.rule = rule,
                                                              .file = file,
                                                              .number = number,
                                                              .description = {.ruleset = rulesets[s]->name,
                                                                              .backend = rulesets[s]->backend,
                                                                              .name = rule->name,
                                                                              .file = file,
                                                                              .line = rule->line,
                                                                              .kind = rule->kind}};
      }
    }
    qsort(listing->runs + first, listing->count - first, sizeof *listing->runs, compare_turns);
  }
  for (uint32_t k = 0; k < listing->count; k++) {
    CLEAVE_TRY(check_rule(&listing->runs[k], error));
  }
  return CLEAVE_OK;
}

static cleave_status_t list_rules(const listing_t *listing, cleave_edits_t *edits, cleave_error_t *error) {
  for (uint32_t k = 0; k < listing->count; k++) {
    const cleave_rule_run_t *run = &listing->runs[k];
    cleave_edit_rule_t rule = {.kind = cleave_rule_kind_name(run->rule->kind),
                               .name = run->rule->name,
                               .file = run->file,
                               .line = run->rule->line,
                               .number = run->number};
    CLEAVE_TRY(cleave_edits_add_rule(edits, &rule, &listing->runs[k].log_rule, error));
  }
  return CLEAVE_OK;
}

// ---- passes ----

static cleave_status_t run_pass(cleave_editor_t *editor, const cleave_transform_options_t *options,
                                cleave_rule_run_t *run, cleave_error_t *error) {
  cleave_edit_rule_t *entry = &editor->log->rules.items[run->log_rule];
  cleave_error_t cause = CLEAVE_ERROR_INIT;
  uint64_t start = cleave_clock_now();
  uint64_t calls = run->rule->calls != NULL ? *run->rule->calls : 0;
  entry->tries++;
  if (options != NULL && options->allow != NULL &&
      !options->allow(options->allow_context, editor->graph, &run->description, NULL, 0)) {
    entry->refused++;
    return cleave_edits_refuse(editor->log, run->log_rule, "", "left out", error);
  }
  CLEAVE_TRY(cleave_edits_begin(editor->log, run->log_rule, "", error));
  size_t before = editor->log->items.count;
  editor->reads.count = 0;
  editor->rule = run->rule->name;
  editor->first_node = cleave_graph_node_bound(editor->graph);
  editor->changed.count = 0;
  editor->removed.count = 0;
  editor->refusal.text[0] = '\0';
  CLEAVE_TRY(run->rule->run(run->rule->context, editor, error));
  if (editor->refusal.text[0] != '\0') {
    entry->refused++;
    cleave_edits_end(editor->log);
    return cleave_edits_refuse(editor->log, run->log_rule, "", editor->refusal.text, error);
  }
  entry->matches += editor->log->items.count > before;
  if (editor->log->items.count > before) {
    CLEAVE_TRY(cleave_editor_log_reads(editor, error));
  }
  cleave_edits_end(editor->log);
  CLEAVE_TRY(cleave_edits_begin(editor->log, CLEAVE_INDEX_NONE, "", error));
  cleave_status_t status = cleave_editor_fold(editor, &cause);
  if (status != CLEAVE_OK) {
    return cleave_rewrite_fail(run, status, &cause, error);
  }
  cleave_edits_end(editor->log);
  entry->lua_calls += run->rule->calls != NULL ? *run->rule->calls - calls : 0;
  entry->nanoseconds += cleave_clock_now() - start;
  return CLEAVE_OK;
}

static cleave_status_t run_groups(cleave_editor_t *editor, const cleave_transform_options_t *options,
                                  const listing_t *listing, cleave_error_t *error) {
  for (uint32_t k = 0; k < listing->count;) {
    uint32_t end = k;
    while (end < listing->count && listing->runs[end].rule->kind == CLEAVE_RULE_REWRITE) {
      end++;
    }
    if (end > k) {
      CLEAVE_TRY(cleave_rewrite_group(editor, options, &listing->runs[k], end - k, error));
      k = end;
    } else {
      CLEAVE_TRY(run_pass(editor, options, &listing->runs[k++], error));
    }
  }
  return CLEAVE_OK;
}

static void set_fold(cleave_editor_t *editor, const cleave_transform_options_t *options) {
  if (options != NULL) {
    editor->fold = options->fold;
    editor->fold_context = options->fold_context;
  }
}

cleave_status_t cleave_transform(const cleave_graph_t *graph, const cleave_ruleset_t *const *rulesets,
                                 uint32_t ruleset_count, const cleave_transform_options_t *options,
                                 cleave_transformation_t *out_transformation, cleave_error_t *error) {
  listing_t listing = {NULL, 0};
  cleave_transformation_t result = {NULL, NULL};
  cleave_editor_t editor;
  *out_transformation = result;
  cleave_editor_init(&editor, NULL, NULL);
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY_CLEANUP(list_turns(rulesets, ruleset_count, &listing, error));
  if (listing.count == 0) {
    goto cleanup;
  }
  CLEAVE_TRY_CLEANUP(cleave_edits_create(&result.edits, error));
  CLEAVE_TRY_CLEANUP(list_rules(&listing, result.edits, error));
  CLEAVE_TRY_CLEANUP(cleave_graph_copy(graph, &result.graph, error));
  CLEAVE_TRY_CLEANUP(cleave_graph_hash(graph, &result.edits->source_hash, error));
  result.edits->source_nodes = cleave_graph_node_bound(graph);
  result.edits->source_values = cleave_graph_value_bound(graph);
  editor.graph = result.graph;
  editor.log = result.edits;
  cleave_editor_note_reads(&editor);
  set_fold(&editor, options);
  CLEAVE_TRY_CLEANUP(run_groups(&editor, options, &listing, error));
  CLEAVE_TRY_CLEANUP(cleave_graph_hash(result.graph, &result.edits->result_hash, error));
  if (result.edits->items.count == 0) {
    cleave_graph_destroy(result.graph);
    result.graph = NULL;
    editor.graph = NULL;
  }
  *out_transformation = result;
  result = (cleave_transformation_t){NULL, NULL};
cleanup:
  cleave_editor_deinit(&editor);
  cleave_free(listing.runs);
  cleave_transformation_deinit(&result);
  return status;
}

cleave_status_t cleave_transform_replay(const cleave_graph_t *graph, const cleave_edits_t *edits,
                                        const cleave_transform_options_t *options, cleave_graph_t **out_graph,
                                        cleave_error_t *error) {
  cleave_graph_t *copy = NULL;
  cleave_editor_t editor;
  uint64_t hash = 0;
  *out_graph = NULL;
  cleave_editor_init(&editor, NULL, NULL);
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY_CLEANUP(cleave_graph_hash(graph, &hash, error));
  if (hash != edits->source_hash || cleave_graph_node_bound(graph) != edits->source_nodes ||
      cleave_graph_value_bound(graph) != edits->source_values) {
    CLEAVE_TRY_CLEANUP(cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                                        "the changes were made to another graph than this one"));
  }
  CLEAVE_TRY_CLEANUP(cleave_graph_copy(graph, &copy, error));
  editor.graph = copy;
  set_fold(&editor, options);
  CLEAVE_TRY_CLEANUP(cleave_editor_replay(&editor, edits, error));
  CLEAVE_TRY_CLEANUP(cleave_graph_verify(copy, error));
  CLEAVE_TRY_CLEANUP(cleave_graph_hash(copy, &hash, error));
  if (hash != edits->result_hash) {
    CLEAVE_TRY_CLEANUP(cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                                        "the changes give another graph than they should"));
  }
  *out_graph = copy;
  copy = NULL;
cleanup:
  cleave_editor_deinit(&editor);
  cleave_graph_destroy(copy);
  return status;
}
