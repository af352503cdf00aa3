// SPDX-License-Identifier: Apache-2.0
// Partitioners of libraries: groups and selectors, reviews that refuse, drop and attach, options, use from
// rule files and by name; and what is wrong with them, each thing once.
#include "backend/registry/registry_entry.h"
#include "base/memory.h"
#include "library_case.h"
#include "partition/pattern/named_rules.h"
#include "partition/plan/plan.h"
#include "plan_case.h"
#include "script/rules/declared.h"
#include "unit.h"

/* Exp nodes e1 .. and a Log between the second and the third; Abs nodes are nobody's. */
#define MODEL                                                     \
  "local x = g.input('x', 'float32', { 4 })\n"                    \
  "local a = g.Exp(g.Exp(x, { name = 'e1' }), { name = 'e2' })\n" \
  "local b = g.Log(a, { name = 'l' })\n"                          \
  "local c = g.Exp(g.Exp(b, { name = 'e3' }), { name = 'e4' })\n" \
  "g.output('y', g.Exp(g.Abs(c, { name = 'abs' }), { name = 'e5' }))\n"

static const char *option(const cleave_key_value_t *options, uint32_t count, const char *key) {
  for (uint32_t k = 0; k < count; k++) {
    if (strcmp(options[k].key, key) == 0) {
      return options[k].value;
    }
  }
  return "";
}

static bool is_op(const cleave_region_view_t *graph, uint32_t node, const char *op) {
  return strcmp(graph->nodes[node].op, op) == 0;
}

/* ---- a partitioner by groups ---- */

static int supported_calls;

/* Exp is supported; with groups=two, nodes up to l are group 0, the others group 1; `wrong` makes it so. */
static cleave_status_t supported(void *state, const cleave_region_view_t *graph,
                                 const cleave_key_value_t *options, uint32_t option_count, int64_t *groups,
                                 cleave_message_t *message) {
  (void)state;
  const char *wrong = option(options, option_count, "wrong");
  bool two = strcmp(option(options, option_count, "groups"), "two") == 0;
  supported_calls++;
  (void)snprintf(message->text, sizeof message->text, "as asked for");
  int64_t group = 0;
  for (uint32_t k = 0; k < graph->node_count; k++) {
    bool all = strcmp(option(options, option_count, "all"), "yes") == 0;
    ck_assert_int_eq(groups[k], -2);
    group = is_op(graph, k, "Log") ? 1 : group;
    if (is_op(graph, k, "Exp") || (all && !is_op(graph, k, "Abs"))) {
      groups[k] = two ? group : -1;
    }
  }
  if (strcmp(wrong, "group") == 0) {
    groups[1] = -3;
  }
  return strcmp(wrong, "status") == 0   ? CLEAVE_ERROR_LIMIT
         : strcmp(wrong, "number") == 0 ? (cleave_status_t)-5
                                        : CLEAVE_OK;
}

static cleave_status_t review(void *state, const cleave_region_view_t *region,
                              const cleave_key_value_t *options, uint32_t option_count, bool *keep,
                              void (*attach)(void *context, const char *key, const char *value),
                              void *context, cleave_message_t *message) {
  (void)state;
  const char *what = option(options, option_count, "review");
  bool drops = strcmp(what, "drop") == 0 || strcmp(what, "none") == 0;
  for (uint32_t k = 0; k < region->node_count; k++) {
    keep[k] = !(strcmp(what, "none") == 0 || (drops && strcmp(region->nodes[k].name, "e2") == 0));
  }
  if (strcmp(what, "attach") == 0) {
    attach(context, "tile", "4");
    attach(context, "mode", "fast");
    attach(context, "tile", "8");
  } else if (strcmp(what, "nameless") == 0) {
    attach(context, NULL, "4");
  } else if (strcmp(what, "valueless") == 0) {
    attach(context, "tile", NULL);
  } else if (strcmp(what, "many") == 0) {
    for (int k = 0; k < 300; k++) {
      char key[16];
      (void)snprintf(key, sizeof key, "k%d", k);
      attach(context, key, "v");
    }
  } else if (strcmp(what, "refuse") == 0 && region->node_count < 2) {
    (void)snprintf(message->text, sizeof message->text, "one is none");
    return CLEAVE_ERROR_UNSUPPORTED;
  } else if (strcmp(what, "silent") == 0) {
    return CLEAVE_ERROR_UNSUPPORTED;
  } else if (strcmp(what, "fail") == 0) {
    return (cleave_status_t)99;
  }
  return CLEAVE_OK;
}

static const cleave_custom_partitioner_t exps = {
    .size = sizeof exps, .name = "exps", .supported = supported, .review = review};

/* "{e1 e2} {e3 e4}": the regions of a plan by a rule file or a name, or the message of the failure. */
static const char *regions(const char *rules, const char *first, const char *second) {
  static char text[1024];
  cleave_model_t *model = library_case_model(MODEL);
  cleave_plan_t *plan = NULL;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_status_t status = library_case_partition(model, rules, first, second, &plan, &error);
  (void)snprintf(text, sizeof text, "%s", status == CLEAVE_OK ? "" : error.message);
  for (uint32_t r = 0; status == CLEAVE_OK && r < plan->region_count; r++) {
    const cleave_plan_region_t *region = &plan->regions[r];
    size_t length = strlen(text);
    (void)snprintf(text + length, sizeof text - length, "%s{", r > 0 ? " " : "");
    for (uint32_t k = 0; k < region->node_count; k++) {
      length = strlen(text);
      (void)snprintf(text + length, sizeof text - length, "%s%s", k > 0 ? " " : "",
                     cleave_node_name(plan->graph, region->nodes[k]));
    }
    for (uint32_t k = 0; k < region->attribute_count; k++) {
      length = strlen(text);
      (void)snprintf(text + length, sizeof text - length, " %s=%s", region->attributes[k].name,
                     region->attributes[k].s);
    }
    length = strlen(text);
    (void)snprintf(text + length, sizeof text - length, "}");
  }
  if (status == CLEAVE_OK) {
    unit_ok(cleave_plan_check(plan, e));
    for (uint32_t k = 0; k < plan->note_count && plan->region_count == 0; k++) {
      size_t length = strlen(text);
      (void)snprintf(text + length, sizeof text - length, "%s; ", plan->notes[k].reason);
    }
    const cleave_session_options_t options = {.size = sizeof options, .threads = 1};
    cleave_session_t *session =
        library_case_session(model, plan, 1, (int64_t[]){4}, (float[]){-9, -8, -7, -9}, &options);
    unit_ok(cleave_session_run(session, e));
    cleave_session_destroy(session);
  }
  cleave_plan_destroy(plan);
  cleave_model_release(model);
  return text;
}

UNIT_TEST(groups_make_regions_by_the_name_of_the_library) {
  library_case_partitioner(&exps);
  ck_assert_str_eq(regions("cpu/exps", NULL, NULL), "{e1 e2} {e3 e4} {e5}");
  ck_assert_int_eq(supported_calls, 1); /* for all nodes at once */
  ck_assert_str_eq(regions("cpu", "all=yes", NULL), "{e1 e2 l e3 e4} {e5}");
  ck_assert_str_eq(regions("cpu", "all=yes", "groups=two"), "{e1 e2} {l e3 e4} {e5}");
}

UNIT_TEST(rule_files_use_partitioners_with_typed_options_and_thresholds) {
  library_case_partitioner(&exps);
  static const char RULES[] =
      "return ruleset { name = 'r', backend = 'cpu',\n"
      "  options = { all = option.enum('no', 'all?', { 'yes', 'no' }), groups = option.string('one', '') },\n"
      "  region 'mine' { partitioner = 'exps', min_nodes = 2 } }";
  ck_assert_str_eq(regions(RULES, NULL, NULL), "{e1 e2} {e3 e4}");
  ck_assert_str_eq(regions(RULES, "all=yes", "groups=two"), "{e1 e2} {l e3 e4}");
  ck_assert_str_eq(
      regions(RULES, "all=maybe", NULL),
      "r.lua:2: option 'all': set to 'maybe', expected one of yes, no (--set r.all=VALUE is for this "
      "file alone)");
  ck_assert_str_eq(regions("return ruleset { name = 'r', region 'm' { partitioner = 'expz' } }", NULL, NULL),
                   "r.lua:1: region 'm': no loaded library has a partitioner 'expz' (did you mean 'exps'?)");
  ck_assert_str_eq(
      regions("return ruleset { name = 'r', region 'm' { partitioner = 'cpu/exps', ops = { 'Exp' } } }", NULL,
              NULL),
      "r.lua:1: region 'm': has both ops and partitioner, expected one of ops, supported, selector "
      "and partitioner");
  ck_assert_str_eq(
      regions("return ruleset { name = 'r', region 'm' { partitioner = 'exps',\n"
              "  review = function() return true end } }",
              NULL, NULL),
      "r.lua:1: region 'm': has both partitioner and review: a partitioner reviews its regions itself");
}

UNIT_TEST(reviews_refuse_drop_and_attach) {
  library_case_partitioner(&exps);
  ck_assert_str_eq(regions("cpu", "review=refuse", NULL), "{e1 e2} {e3 e4}");
  ck_assert_str_eq(regions("cpu", "review=drop", NULL), "{e1} {e3 e4} {e5}");
  ck_assert_str_eq(regions("cpu", "review=attach", "all=yes"),
                   "{e1 e2 l e3 e4 mode=fast tile=8} {e5 mode=fast tile=8}");
  ck_assert_ptr_nonnull(strstr(regions("cpu", "review=none", NULL), "the library keeps none of its nodes"));
  ck_assert_ptr_nonnull(strstr(regions("cpu", "review=silent", NULL), "no reason given"));
}

UNIT_TEST(hostile_answers_end_the_partitioning_with_the_library_named) {
  library_case_partitioner(&exps);
  static const struct {
    const char *setting;
    const char *message;
  } CASES[] = {
      {"wrong=group", "supported: node 'e2' has group -3, expected -2 (no), -1 (any) or a group from 0"},
      {"wrong=status", "supported: as asked for"},
      {"wrong=number", "supported: as asked for"},
      {"review=fail", "review: no reason given"},
      {"review=nameless", "review: attribute '' expected a name of 1 to 63 bytes"},
      {"review=valueless", "review: attribute 'tile' has no value"},
      {"review=many", "review: attribute 'k256' is more than 256 attributes"},
  };
  for (size_t k = 0; k < sizeof CASES / sizeof CASES[0]; k++) {
    char expected[256];
    (void)snprintf(expected, sizeof expected, "partitioner 'exps' of library 'cpu': %s", CASES[k].message);
    ck_assert_str_eq(regions("cpu", CASES[k].setting, NULL), expected);
  }
}

/* ---- a partitioner by selection ---- */

typedef struct picker {
  const cleave_region_view_t *graph;
  uint32_t room;
} picker_t;

static int pickers_alive;

static cleave_status_t create_picker(void *state, const cleave_region_view_t *graph,
                                     const cleave_key_value_t *options, uint32_t option_count,
                                     void **out_selector, cleave_message_t *message) {
  (void)state;
  if (strcmp(option(options, option_count, "wrong"), "create") == 0) {
    (void)snprintf(message->text, sizeof message->text, "no pickers today");
    return CLEAVE_ERROR_BACKEND;
  }
  picker_t *picker = malloc(sizeof *picker);
  ck_assert_ptr_nonnull(picker);
  *picker = (picker_t){.graph = graph, .room = 2};
  *out_selector = picker;
  pickers_alive++;
  return CLEAVE_OK;
}

static void destroy_picker(void *selector) {
  free(selector);
  pickers_alive--;
}

static bool pick(void *selector, uint32_t node) {
  picker_t *picker = selector;
  bool yes = picker->room > 0 && !is_op(picker->graph, node, "Abs");
  picker->room -= yes ? 1 : 0;
  return yes;
}

static bool pick_output(void *selector, uint32_t node, uint32_t output) {
  const picker_t *picker = selector;
  bool reads = false;
  for (uint32_t k = 0; k < picker->graph->nodes[output].input_count; k++) {
    reads = reads || picker->graph->nodes[output].inputs[k] == picker->graph->nodes[node].outputs[0];
  }
  ck_assert(reads);
  return pick(selector, output);
}

static void drop_logs(void *selector, const uint32_t *candidates, uint32_t count, bool *keep) {
  const picker_t *picker = selector;
  for (uint32_t k = 0; k < count; k++) {
    keep[k] = !is_op(picker->graph, candidates[k], "Log");
  }
}

UNIT_TEST(a_selector_walks_the_graph_fresh_for_every_seed) {
  static const cleave_custom_partitioner_t pairs = {.size = sizeof pairs,
                                                    .name = "pairs",
                                                    .create_selector = create_picker,
                                                    .destroy_selector = destroy_picker,
                                                    .select = pick,
                                                    .select_output = pick_output};
  static const cleave_custom_partitioner_t logless = {.size = sizeof logless,
                                                      .name = "logless",
                                                      .create_selector = create_picker,
                                                      .destroy_selector = destroy_picker,
                                                      .select = pick,
                                                      .select_output = pick_output,
                                                      .filter = drop_logs};
  library_case_partitioner(&pairs);
  library_case_partitioner(&logless);
  ck_assert_str_eq(regions("cpu/pairs", NULL, NULL), "{e1 e2} {l e3} {e4} {e5}");
  ck_assert_str_eq(regions("cpu/logless", NULL, NULL), "{e1 e2} {e3} {e4} {e5}"); /* l, e3: l is dropped */
  ck_assert_str_eq(regions("cpu/pairs", "wrong=create", NULL),
                   "partitioner 'pairs' of library 'cpu': create_selector: no pickers today");
  ck_assert_int_eq(pickers_alive, 0);
}

/* ---- beginning and ending ---- */

typedef struct counts {
  int begun;
  int ended;
  int asked;
  bool refuses;
} counts_t;

static cleave_status_t begin_counting(void *self, const cleave_region_view_t *graph,
                                      const cleave_key_value_t *options, uint32_t option_count,
                                      void **out_state, cleave_message_t *message) {
  counts_t *counts = self;
  ck_assert_uint_gt(graph->node_count, 0);
  ck_assert_str_eq(option(options, option_count, "groups"), "two");
  counts->begun++;
  *out_state = &counts->asked;
  (void)snprintf(message->text, sizeof message->text, "no graphs today");
  return counts->refuses ? CLEAVE_ERROR_BACKEND : CLEAVE_OK;
}

static void end_counting(void *state) {
  counts_t *counts = (counts_t *)(void *)((char *)state - offsetof(counts_t, asked));
  counts->ended++;
}

static cleave_status_t count_supported(void *state, const cleave_region_view_t *graph,
                                       const cleave_key_value_t *options, uint32_t option_count,
                                       int64_t *groups, cleave_message_t *message) {
  ++*(int *)state;
  return supported(NULL, graph, options, option_count, groups, message);
}

UNIT_TEST(what_begins_on_a_graph_ends_and_its_state_goes_to_what_is_between) {
  counts_t counts = {0};
  cleave_custom_partitioner_t counting = {.size = sizeof counting,
                                          .name = "counting",
                                          .self = &counts,
                                          .begin = begin_counting,
                                          .end = end_counting,
                                          .supported = count_supported};
  library_case_partitioner(&counting);
  ck_assert_str_eq(regions("cpu", "groups=two", NULL), "{e1 e2} {e3 e4} {e5}");
  ck_assert_int_eq(counts.begun, 1);
  ck_assert_int_eq(counts.asked, 1);
  ck_assert_int_eq(counts.ended, 1);
  counts.refuses = true;
  ck_assert_str_eq(regions("cpu", "groups=two", NULL),
                   "partitioner 'counting' of library 'cpu': begin: no graphs today");
  ck_assert_int_eq(counts.begun, 2);
  ck_assert_int_eq(counts.asked, 1);
  ck_assert_int_eq(counts.ended, 1);
}

/* ---- names ---- */

UNIT_TEST(partitioners_that_cannot_work_refuse_the_library) {
  static const cleave_custom_partitioner_t NOTHING = {.size = sizeof NOTHING, .name = "p"};
  static const cleave_custom_partitioner_t BOTH = {
      .size = sizeof BOTH, .name = "p", .supported = supported, .create_selector = create_picker};
  static const cleave_custom_partitioner_t HALF = {
      .size = sizeof HALF, .name = "p", .create_selector = create_picker, .destroy_selector = destroy_picker};
  static const cleave_custom_partitioner_t LEAKING = {
      .size = sizeof LEAKING, .name = "p", .create_selector = create_picker, .select = pick};
  static const cleave_custom_partitioner_t ENDLESS = {
      .size = sizeof ENDLESS, .name = "p", .begin = begin_counting, .supported = supported};
  static const cleave_custom_partitioner_t NAMELESS = {
      .size = sizeof NAMELESS, .name = "a b", .supported = supported};
  static const cleave_custom_partitioner_t SMALL = {.size = 16, .name = "p", .supported = supported};
  static const struct {
    const cleave_custom_partitioner_t *partitioner;
    const char *message;
  } CASES[] = {{&NOTHING, "partitioner 'p': function 'supported' or 'create_selector' is missing"},
               {&BOTH, "partitioner 'p': has both 'supported' and 'create_selector', expected one of them"},
               {&HALF, "partitioner 'p': function 'select' is missing"},
               {&LEAKING, "partitioner 'p': function 'destroy_selector' is missing"},
               {&ENDLESS, "partitioner 'p': function 'end' is missing"},
               {&NAMELESS, "partitioner 'a b': is not a name (letters, digits, '_', '-' and '.')"},
               {&SMALL, "partitioner '': the struct is too small for version 2.0"}};
  cleave_extensions_t *extensions = NULL;
  cleave_named_rule_t rule;
  for (size_t k = 0; k < sizeof CASES / sizeof CASES[0]; k++) {
    const cleave_custom_partitioner_t *const list[2] = {&exps, CASES[k].partitioner};
    cleave_backend_extensions_t brought = {
        .size = sizeof brought, .partitioners = list, .partitioner_count = 2};
    char expected[256];
    (void)snprintf(expected, sizeof expected, "library 'cpu': %s", CASES[k].message);
    unit_fails(library_case_add(&brought, &extensions, e), CLEAVE_ERROR_BACKEND, expected);
    ck_assert(!cleave_named_rule_at(0, &rule)); /* all or nothing */
  }
  const cleave_custom_partitioner_t *const twice[2] = {&exps, &exps};
  cleave_backend_extensions_t brought = {
      .size = sizeof brought, .partitioners = twice, .partitioner_count = 2};
  unit_fails(library_case_add(&brought, &extensions, e), CLEAVE_ERROR_BACKEND,
             "library 'cpu': partitioner 'exps': the library has a rule of this name already");
  brought.size = 8;
  unit_fails_with(library_case_add(&brought, &extensions, e), CLEAVE_ERROR_BACKEND,
                  "library 'cpu': extensions: struct of 8 bytes, version 2.0 has");
  brought = (cleave_backend_extensions_t){.size = sizeof brought, .pass_count = 3};
  unit_fails_with(library_case_add(&brought, &extensions, e), CLEAVE_ERROR_BACKEND,
                  "3 passes and 0 partitioners");
}

UNIT_TEST(names_of_two_libraries_are_told_apart) {
  static int other;
  library_case_partitioner(&exps);
  cleave_named_rule_t rule;
  unit_ok(cleave_named_rule_find(NULL, CLEAVE_RULE_REGION, "exps", &rule, e));
  rule.library = "other";
  rule.owner = &other;
  unit_ok(cleave_named_rules_add(&rule, e));
  unit_fails(
      cleave_named_rule_find(NULL, CLEAVE_RULE_REGION, "exps", &rule, e), CLEAVE_ERROR_RULE,
      "partitioner 'exps' is of library 'cpu' and of library 'other': write 'cpu/exps' or 'other/exps'");
  unit_ok(cleave_named_rule_find(NULL, CLEAVE_RULE_REGION, "other/exps", &rule, e));
  ck_assert_str_eq(rule.library, "other");
  unit_fails(cleave_named_rule_find(NULL, CLEAVE_RULE_PASS, "exps", &rule, e), CLEAVE_ERROR_RULE,
             "no loaded library has a pass 'exps'");
  cleave_named_rules_remove(&other);
  unit_ok(cleave_named_rule_find(NULL, CLEAVE_RULE_REGION, "exps", &rule, e));
}

UNIT_TEST(settings_reach_the_library_whatever_is_in_them) {
  library_case_partitioner(&exps);
  cleave_rules_t *rules = NULL;
  uint32_t count = 0;
  bool used[3] = {false};
  const cleave_setting_t settings[] = {{"a", "old"}, {"a\"] = os.exit() --", "\"]]\\\n\xff '"}, {"a", "new"}};
  unit_ok(cleave_rules_load_library(
      NULL, "cpu", &(cleave_script_settings_t){.items = settings, .count = 3, .out_used = used}, &rules, e));
  const cleave_ruleset_t *rulesets = cleave_rules_rulesets(rules, &count);
  ck_assert_uint_eq(count, 1);
  ck_assert_str_eq(rulesets[0].name, "cpu/exps");
  ck_assert_str_eq(rulesets[0].backend, "cpu");
  ck_assert_uint_eq(rulesets[0].rule_count, 1);
  ck_assert_str_eq(rulesets[0].rules[0].name, "exps");
  const cleave_named_rule_use_t *use = rulesets[0].rules[0].context;
  ck_assert_str_eq(use->name, "cpu/exps");
  ck_assert_uint_eq(use->option_count, 2);
  ck_assert_str_eq(use->options[0].key, settings[1].name);
  ck_assert_str_eq(use->options[0].value, settings[1].value);
  ck_assert_str_eq(use->options[1].value, "new");
  ck_assert(used[0] && used[1] && used[2]);
  const cleave_declared_t *declared = cleave_rules_declared(rules);
  ck_assert_uint_eq(declared->rule_count, 1);
  ck_assert_str_eq(declared->rules[0].ruleset, "cpu/exps");
  cleave_rules_destroy(rules);
  unit_fails(cleave_rules_load_library(NULL, "cpu/expz", NULL, &rules, e), CLEAVE_ERROR_RULE,
             "library 'cpu' has no rule 'expz' (did you mean 'exps'?); it has: exps");
  unit_ok(cleave_rules_load_library(NULL, "other/exps", NULL, &rules, e));
  ck_assert_ptr_null(rules);
}

UNIT_TEST(memory_that_runs_out_ends_the_partitioning) {
  static const cleave_custom_partitioner_t pairs = {.size = sizeof pairs,
                                                    .name = "pairs",
                                                    .create_selector = create_picker,
                                                    .destroy_selector = destroy_picker,
                                                    .select = pick,
                                                    .select_output = pick_output,
                                                    .filter = drop_logs};
  library_case_partitioner(&exps);
  library_case_partitioner(&pairs);
  cleave_model_t *model = library_case_model(MODEL);
  cleave_plan_t *plan = NULL;
  cleave_status_t status = CLEAVE_ERROR_OUT_OF_MEMORY;
  int64_t step = 0;
  for (int64_t k = 0; status != CLEAVE_OK; k += step, step = k < 100 ? 1 : 7) {
    cleave_error_t error = CLEAVE_ERROR_INIT;
    (void)cleave_memory_fail_after(k);
    status = library_case_partition(model, "cpu", "review=attach", "all=yes", &plan, &error);
    (void)cleave_memory_fail_after(-1);
    ck_assert_msg(status == CLEAVE_OK || strstr(error.message, "memory") != NULL, "%d: %s", (int)status,
                  error.message);
    ck_assert_int_eq(pickers_alive, 0);
  }
  ck_assert_uint_eq(plan->region_count, 2);
  cleave_plan_destroy(plan);
  cleave_model_release(model);
}

UNIT_TEST(a_plan_stays_when_the_partitioner_goes) {
  cleave_extensions_t *extensions = NULL;
  const cleave_custom_partitioner_t *const list[1] = {&exps};
  cleave_backend_extensions_t brought = {
      .size = sizeof brought, .partitioners = list, .partitioner_count = 1};
  unit_ok(library_case_add(&brought, &extensions, e));
  cleave_model_t *model = library_case_model(MODEL);
  cleave_plan_t *plan = NULL;
  unit_ok(library_case_partition(model, "cpu/exps", NULL, NULL, &plan, e));
  cleave_extensions_remove(extensions);
  ck_assert_uint_eq(plan->region_count, 3); /* a plan needs the backend only */
  cleave_plan_t *again = NULL;
  unit_fails_with(library_case_partition(model, "cpu/exps", NULL, NULL, &again, e), CLEAVE_ERROR_IO,
                  "cpu/exps");
  cleave_plan_destroy(plan);
  cleave_model_release(model);
}

UNIT_SUITE("custom partitioner")
