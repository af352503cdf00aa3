// SPDX-License-Identifier: Apache-2.0
// Rules that never got a match. Each such rule runs again, alone, over the graphs of all tests and models: if
// it matches there, others took its nodes; if not, and there are models, it fits none of them. Only what was
// seen is said, with the graph on which it was seen.
#include <stdio.h>
#include <string.h>

#include "backend/region/view.h"
#include "partition/grow/partition.h"
#include "tools/rule_tests/rule_check.h"

typedef struct reach_search {
  cleave_rule_check_t *check;
  const cleave_rule_source_t *source;
  const cleave_rule_check_options_t *options;
} reach_search_t;

/* The result of a rule without the other ones. */
typedef struct alone {
  uint64_t matches;
  const char *graph; /* of the first match */
  char winner[64];   /* the rule that has its first node in the plan of all rules; "" if none has */
  char node[128];
} alone_t;

static void find_winner(const cleave_plan_t *alone_plan, const cleave_plan_t *plan, alone_t *alone) {
  const cleave_node_t *nodes = NULL;
  if (alone_plan->fusion_count > 0) {
    nodes = alone_plan->fusions[0].nodes;
  } else if (alone_plan->region_count > 0) {
    nodes = alone_plan->regions[0].nodes;
  }
  if (nodes == NULL || plan->rewritten != NULL || alone_plan->rewritten != NULL) {
    return;
  }
  uint32_t fusion = plan->node_fusion[nodes[0].index];
  uint32_t region = plan->node_region[nodes[0].index];
  (void)cleave_node_label(plan->graph, nodes[0], alone->node, sizeof alone->node);
  if (fusion != CLEAVE_INDEX_NONE || region != CLEAVE_INDEX_NONE) {
    uint32_t rule = fusion != CLEAVE_INDEX_NONE ? plan->fusions[fusion].rule : plan->regions[region].rule;
    (void)snprintf(alone->winner, sizeof alone->winner, "%s", plan->rules[rule].name);
  }
}

/* Runs the rule `name` of a list alone over a graph, and all rules. */
static cleave_status_t run_alone(const cleave_rule_list_t *list, const char *name,
                                 const cleave_graph_t *graph, const char *graph_name, alone_t *alone,
                                 cleave_error_t *error) {
  for (uint32_t k = 0; k < list->count; k++) {
    cleave_ruleset_t ruleset = list->rulesets[k];
    const cleave_rule_t *rule = NULL;
    for (uint32_t r = 0; r < ruleset.rule_count; r++) {
      rule = strcmp(ruleset.rules[r].name, name) == 0 ? &ruleset.rules[r] : rule;
    }
    if (rule == NULL) {
      continue;
    }
    ruleset.rules = rule;
    ruleset.rule_count = 1;
    const cleave_ruleset_t *pointer = &ruleset;
    cleave_rule_list_t single = {.context = list->context,
                                 .files = list->files,
                                 .file_count = list->file_count,
                                 .rulesets = &ruleset,
                                 .pointers = &pointer,
                                 .count = 1};
    cleave_plan_t *alone_plan = NULL;
    cleave_plan_t *plan = NULL;
    cleave_status_t status = cleave_rule_list_partition(&single, graph, &alone_plan, error);
    if (status == CLEAVE_OK && alone_plan->rules[0].matches > 0) {
      if (alone->matches == 0) {
        alone->graph = graph_name;
        status = cleave_rule_list_partition(list, graph, &plan, error);
        if (status == CLEAVE_OK) {
          find_winner(alone_plan, plan, alone);
        }
      }
      alone->matches += alone_plan->rules[0].matches;
    }
    cleave_plan_destroy(alone_plan);
    cleave_plan_destroy(plan);
    CLEAVE_TRY(status);
  }
  return CLEAVE_OK;
}

static cleave_status_t run_alone_in_test(const reach_search_t *search, uint32_t index, const char *name,
                                         alone_t *alone, cleave_error_t *error) {
  const cleave_rule_test_t *test = &cleave_rules_declared(search->check->rules)->tests[index];
  cleave_rule_list_t list;
  cleave_graph_t *graph = NULL;
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY_CLEANUP(cleave_rule_check_load(search->source, search->options, test, &list, error));
  CLEAVE_TRY_CLEANUP(cleave_rule_check_build(&list, index, &graph, error));
  CLEAVE_TRY_CLEANUP(run_alone(&list, name, graph, test->name, alone, error));
cleanup:
  cleave_graph_destroy(graph);
  cleave_rule_list_deinit(&list);
  return status;
}

static cleave_status_t search_alone(const reach_search_t *search, const char *name, alone_t *alone,
                                    cleave_error_t *error) {
  const cleave_rule_check_t *check = search->check;
  for (size_t k = 0; k < check->tests.count; k++) {
    cleave_error_t failure = CLEAVE_ERROR_INIT;
    if (check->tests.items[k].verdict != CLEAVE_TEST_SKIPPED &&
        run_alone_in_test(search, (uint32_t)k, name, alone, &failure) == CLEAVE_ERROR_OUT_OF_MEMORY) {
      return cleave_error_out_of_memory(error);
    }
  }
  cleave_rule_list_t list;
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY_CLEANUP(cleave_rule_check_load(search->source, search->options, NULL, &list, error));
  for (size_t k = 0; k < search->options->model_count; k++) {
    const cleave_check_model_t *model = &search->options->models[k];
    cleave_error_t failure = CLEAVE_ERROR_INIT;
    if (run_alone(&list, name, model->graph, model->name, alone, &failure) == CLEAVE_ERROR_OUT_OF_MEMORY) {
      CLEAVE_TRY_CLEANUP(cleave_error_out_of_memory(error));
    }
  }
cleanup:
  cleave_rule_list_deinit(&list);
  return status;
}

static cleave_status_t add(cleave_rule_check_t *check, cleave_lint_level_t level, const char *file,
                           int32_t line, const char *code, const char *message, cleave_error_t *error) {
  cleave_lint_t lint = {.level = level, .file = file, .line = line, .code = code, .message = message};
  CLEAVE_TRY_MEMORY(message, error);
  CLEAVE_ARRAY_PUSH(&check->lints, lint, error);
  return CLEAVE_OK;
}

static bool is_said(const cleave_rule_check_t *check, const cleave_declared_rule_t *rule, const char *code) {
  for (size_t k = 0; k < check->lints.count; k++) {
    if (check->lints.items[k].line == rule->line && strcmp(check->lints.items[k].file, rule->file) == 0 &&
        strcmp(check->lints.items[k].code, code) == 0) {
      return true;
    }
  }
  return false;
}

/* A rule that did nothing in the models: what it matched was refused, or lost, or there was nothing. */
static cleave_status_t warn_of_models(const reach_search_t *search, const cleave_rule_reach_t *reach,
                                      cleave_error_t *error) {
  const cleave_declared_rule_t *rule = reach->rule;
  cleave_arena_t *arena = &search->check->arena;
  size_t count = search->options->model_count;
  const char *models = CLEAVE_BY_COUNT(count, "model", "models");
  const char *code = "never-matches";
  const char *message = NULL;
  if (reach->model_refused > 0) {
    code = "always-refused";
    message = cleave_arena_format(arena, "%s '%s' matches in the %zu %s given, but all of it was refused%s%s",
                                  rule->kind, rule->name, count, models, reach->refusal == NULL ? "" : ": ",
                                  reach->refusal == NULL ? "" : reach->refusal);
  } else if (reach->model_hits > 0) {
    code = "always-lost";
    message = cleave_arena_format(
        arena, "%s '%s' matches in the %zu %s given, but other rules take all of its nodes", rule->kind,
        rule->name, count, models);
  } else {
    message = cleave_arena_format(arena, "%s '%s' matches nowhere in the %zu %s given", rule->kind,
                                  rule->name, count, models);
  }
  return add(search->check, CLEAVE_LINT_WARNING, rule->file, rule->line, code, message, error);
}

static cleave_status_t judge(const reach_search_t *search, const cleave_rule_reach_t *reach,
                             cleave_error_t *error) {
  cleave_rule_check_t *check = search->check;
  const cleave_declared_rule_t *rule = reach->rule;
  alone_t alone = {0};
  if (reach->matches == 0) {
    CLEAVE_TRY(search_alone(search, rule->name, &alone, error));
  }
  if (alone.matches > 0 && alone.winner[0] != '\0' && strcmp(alone.winner, rule->name) != 0 &&
      !is_said(check, rule, "unreachable")) {
    return add(
        check, CLEAVE_LINT_WARNING, rule->file, rule->line, "unreachable",
        cleave_arena_format(&check->arena,
                            "%s '%s' never gets a match: alone it has %llu, but '%s' takes them (first "
                            "at %s of '%s')",
                            rule->kind, rule->name, (unsigned long long)alone.matches, alone.winner,
                            alone.node, alone.graph),
        error);
  }
  return reach->ran_on_models && reach->model_matches == 0 ? warn_of_models(search, reach, error) : CLEAVE_OK;
}

/* Errors get the model's name; the rule and line are in their message. */
static cleave_status_t count_model(const reach_search_t *search, const cleave_rule_list_t *list,
                                   const cleave_check_model_t *model, cleave_error_t *error) {
  cleave_plan_t *plan = NULL;
  cleave_error_t failure = CLEAVE_ERROR_INIT;
  if (cleave_rule_list_partition(list, model->graph, &plan, &failure) == CLEAVE_OK) {
    cleave_status_t status = cleave_rule_check_count(search->check, plan, true, error);
    cleave_plan_destroy(plan);
    return status;
  }
  if (failure.status == CLEAVE_ERROR_OUT_OF_MEMORY) {
    return cleave_error_out_of_memory(error);
  }
  const char *file = cleave_arena_copy_text(&search->check->arena, failure.file, strlen(failure.file));
  CLEAVE_TRY_MEMORY(file, error);
  return add(search->check, CLEAVE_LINT_ERROR, file, failure.line, "fails-on-model",
             cleave_arena_format(&search->check->arena, "on model %s: %s", model->name, failure.message),
             error);
}

static cleave_status_t count_models(const reach_search_t *search, bool *out_can_run, cleave_error_t *error) {
  cleave_rule_list_t list;
  cleave_error_t missing = CLEAVE_ERROR_INIT;
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY_CLEANUP(cleave_rule_check_load(search->source, search->options, NULL, &list, error));
  *out_can_run = cleave_rule_check_can_run(&list, &missing);
  if (!*out_can_run) {
    CLEAVE_TRY_CLEANUP(
        add(search->check, CLEAVE_LINT_NOTE, "", 0, "models-skipped",
            cleave_arena_format(&search->check->arena, "the models were not looked at: %s", missing.message),
            error));
  }
  for (size_t k = 0; *out_can_run && k < search->options->model_count; k++) {
    CLEAVE_TRY_CLEANUP(count_model(search, &list, &search->options->models[k], error));
  }
cleanup:
  cleave_rule_list_deinit(&list);
  return status;
}

/* A gradient that no test with `gradient` asked. */
static cleave_status_t note_untested(cleave_rule_check_t *check, const cleave_rule_reach_t *reach,
                                     cleave_error_t *error) {
  const cleave_declared_rule_t *rule = reach->rule;
  if (strcmp(rule->kind, "gradient") != 0 || reach->matches > 0 || !rule->enabled) {
    return CLEAVE_OK;
  }
  return add(check, CLEAVE_LINT_NOTE, rule->file, rule->line, "untested",
             cleave_arena_format(&check->arena,
                                 "gradient '%s': no test with gradient = true has the operator", rule->name),
             error);
}

cleave_status_t cleave_rule_lint_reach(cleave_rule_check_t *check, const cleave_rule_source_t *source,
                                       const cleave_rule_check_options_t *options, cleave_error_t *error) {
  reach_search_t search = {.check = check, .source = source, .options = options};
  bool can_run = true;
  if (options->model_count > 0) {
    CLEAVE_TRY(count_models(&search, &can_run, error));
  }
  for (size_t k = 0; k < check->reach.count; k++) {
    CLEAVE_TRY(note_untested(check, &check->reach.items[k], error));
  }
  for (size_t k = 0; can_run && k < check->reach.count; k++) {
    if (check->reach.items[k].ran) {
      CLEAVE_TRY(judge(&search, &check->reach.items[k], error));
    }
  }
  return CLEAVE_OK;
}
