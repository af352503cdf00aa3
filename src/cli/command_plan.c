// SPDX-License-Identifier: Apache-2.0
// cleave plan: what saved plans say, and how two of them differ. No model is loaded.
#include <inttypes.h>
#include <string.h>

#include "cli/common/arguments.h"
#include "cli/common/command.h"
#include "cli/common/output.h"
#include "graph/print.h"
#include "partition/plan/plan_read.h"
#include "partition/plan_diff/plan_diff.h"
#include "runtime/plans/plan_load.h"

enum { MAX_REFUSALS = 20, MAX_NOTES = 100 };

static cleave_status_t load(const char *path, cleave_plan_document_t **out_document, cleave_error_t *error) {
  return cleave_plan_document_open(path, NULL, true, out_document, error);
}

/* ---- diff ---- */

static cleave_status_t print_difference(const cleave_plan_diff_t *diff, bool json, cleave_error_t *error) {
  cleave_text_t text = {0};
  cleave_status_t status = json ? cleave_plan_diff_print_json(diff, &text, error)
                                : cleave_plan_diff_print_text(diff, &text, error);
  if (status == CLEAVE_OK) {
    cleave_output_printed(&text, json);
    cleave_print(json ? "\n" : "");
  }
  cleave_text_deinit(&text);
  return status;
}

/* Returns what diff returns: 0 the same, 1 different, 2 trouble. */
static int run_diff(const char *before_path, const char *after_path, bool json) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_plan_document_t *before = NULL;
  cleave_plan_document_t *after = NULL;
  cleave_plan_diff_t *diff = NULL;
  cleave_status_t status = load(before_path, &before, &error);
  CLEAVE_THEN(status, load(after_path, &after, &error));
  CLEAVE_THEN(status, cleave_plan_diff_create(before, after, &diff, &error));
  CLEAVE_THEN(status, print_difference(diff, json, &error));
  int result = status == CLEAVE_OK && diff->same ? CLEAVE_EXIT_OK : CLEAVE_EXIT_FAILURE;
  if (status != CLEAVE_OK) {
    (void)cleave_output_error(&error);
    result = CLEAVE_EXIT_USAGE;
  }
  cleave_plan_diff_destroy(diff);
  cleave_plan_document_destroy(before);
  cleave_plan_document_destroy(after);
  return result;
}

/* ---- show ---- */

static uint32_t count_left(const cleave_plan_document_t *document) {
  uint32_t left = 0;
  for (uint32_t s = 0; s < document->step_count; s++) {
    left += document->steps[s].region == CLEAVE_INDEX_NONE;
  }
  return left;
}

static void show_rules(const cleave_plan_document_t *document) {
  cleave_text_t rows = {0};
  cleave_text_add(&rows, "rule\tkind\twhere\tmade\trefused\n");
  for (uint32_t k = 0; k < document->rule_count; k++) {
    const cleave_plan_rule_t *rule = &document->rules[k];
    char place[CLEAVE_PLACE_SIZE];
    cleave_text_show(&rows, "%s\t%s on %s\t%s\t%u\t%u\n", rule->name, cleave_rule_kind_name(rule->kind),
                     rule->backend, cleave_rule_place(rule->file, rule->line, place), (unsigned)rule->matches,
                     (unsigned)rule->refused);
  }
  cleave_print(CLEAVE_TRUSTED, document->rule_count > 0 ? "\n" : "");
  cleave_output_table(&rows, "lllrr");
}

/* Shows what the rule tells the backend. */
static void show_attributes(const cleave_document_region_t *region) {
  cleave_text_t text = {0};
  for (uint32_t k = 0; k < region->attribute_count; k++) {
    cleave_text_add(&text, k > 0 ? ", " : "");
    cleave_text_format(&text, "%s = ", region->attributes[k].name);
    cleave_attribute_print(&region->attributes[k], &text);
  }
  if (region->attribute_count > 0) {
    cleave_print("  %s: %s\n", region->name, cleave_text_get(&text));
  }
  cleave_text_deinit(&text);
}

static void show_regions(const cleave_plan_document_t *document) {
  cleave_text_t rows = {0};
  cleave_text_add(&rows, "region\tbackend\tnodes\tfusions\tinputs\toutputs\n");
  for (uint32_t k = 0; k < document->region_count; k++) {
    const cleave_document_region_t *region = &document->regions[k];
    cleave_text_show(&rows, "%s\t%s\t%u\t%u\t%u\t%u\n", region->name, region->backend,
                     (unsigned)region->node_count, (unsigned)region->fusion_count,
                     (unsigned)region->input_count, (unsigned)region->output_count);
  }
  cleave_print(CLEAVE_TRUSTED, document->region_count > 0 ? "\n" : "");
  cleave_output_table(&rows, "llrrrr");
  for (uint32_t k = 0; k < document->region_count; k++) {
    show_attributes(&document->regions[k]);
  }
}

/* Shows what rewrites left, and why. */
static void show_refusals(const cleave_plan_document_t *document) {
  cleave_text_t text = {0};
  if (document->edits != NULL) {
    cleave_plan_print_refusals(document->edits, MAX_REFUSALS, &text);
  }
  cleave_print(CLEAVE_TRUSTED, cleave_text_get(&text));
  cleave_text_deinit(&text);
}

static void show_notes(const cleave_plan_document_t *document) {
  for (uint32_t k = 0; k < document->note_count && k < MAX_NOTES; k++) {
    const cleave_document_note_t *note = &document->notes[k];
    const cleave_plan_rule_t *rule = &document->rules[note->rule];
    cleave_print("  %s at %s '%s': %s, %s '%s'\n", cleave_plan_note_name(note->kind), note->node.op,
                 note->node.name, note->reason, cleave_rule_kind_name(rule->kind), rule->name);
  }
  if (document->note_count > MAX_NOTES) {
    cleave_print("  and %u more (--json has all)\n", (unsigned)document->note_count - MAX_NOTES);
  }
}

static int show_json(const cleave_plan_document_t *document) {
  cleave_text_t text = {0};
  cleave_error_t error = CLEAVE_ERROR_INIT;
  int result = CLEAVE_EXIT_OK;
  if (cleave_plan_document_print(document, &text, &error) == CLEAVE_OK) {
    cleave_output_printed(&text, true);
  } else {
    result = cleave_output_error(&error);
  }
  cleave_text_deinit(&text);
  return result;
}

static int run_show(const char *path, bool json) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_plan_document_t *document = NULL;
  int result = CLEAVE_EXIT_OK;
  if (load(path, &document, &error) != CLEAVE_OK) {
    return cleave_output_error(&error);
  }
  if (json) {
    result = show_json(document);
  } else {
    cleave_print("plan of '%s', made by cleave %s\n", document->graph_name, document->version);
    cleave_print("  graph of %u node%s, hash %016" PRIx64 "\n", (unsigned)document->node_count,
                 CLEAVE_PLURAL(document->node_count), document->graph_hash);
    for (uint32_t k = 0; k < document->graph_input_count; k++) {
      cleave_print("  input %s: %s\n", document->graph_inputs[k].name, document->graph_inputs[k].type);
    }
    for (uint32_t k = 0; k < document->setting_count; k++) {
      cleave_print("  setting %s=%s\n", document->settings[k].name, document->settings[k].value);
    }
    show_rules(document);
    show_regions(document);
    uint32_t left = count_left(document);
    cleave_print("\n%u %s, %u %s on cpu one by one, %u %s\n", (unsigned)document->region_count,
                 CLEAVE_BY_COUNT(document->region_count, "region", "regions"), (unsigned)left,
                 CLEAVE_BY_COUNT(left, "node", "nodes"), (unsigned)document->note_count,
                 CLEAVE_BY_COUNT(document->note_count, "note", "notes"));
    show_refusals(document);
    show_notes(document);
  }
  cleave_plan_document_destroy(document);
  return result;
}

/* ---- the command ---- */

static int run(cleave_arguments_t *arguments) {
  bool json = false;
  const cleave_option_t options[] = {
      CLEAVE_FLAG(&json, "json", "print as JSON: the difference on one line, or the plan as it is saved"),
  };
  int status = CLEAVE_EXIT_OK;
  if (cleave_arguments_parse(arguments, CLEAVE_OPTIONS(options), &status)) {
    const char *const *found = arguments->found.items;
    if (strcmp(found[0], "diff") == 0 && arguments->found.count == 3) {
      status = run_diff(found[1], found[2], json);
    } else if (strcmp(found[0], "show") == 0 && arguments->found.count == 2) {
      status = run_show(found[1], json);
    } else {
      status = cleave_arguments_fail("plan", "expected %s", arguments->command->operands);
    }
  }
  return status;
}

CLEAVE_COMMAND_DEFINE(
    plan, 25, "diff BEFORE AFTER | show PLAN", run, "compare saved plans, or show one",
    "Reads plans that 'cleave partition -o PLAN.json' wrote.\n\n"
    "  diff  what differs: nodes that moved, rules that gained or lost matches, regions, settings.\n"
    "        Exit status 0: the same, 1: different, 2: trouble\n"
    "  show  what one plan says",
    .min_operands = 2, .max_operands = 3)
