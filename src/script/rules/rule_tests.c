// SPDX-License-Identifier: Apache-2.0
/* Building the graph of a rule test: the words of model scripts, in the interpreter of the rule file. */
#include <string.h>

#include "script/builder/builder.h"
#include "script/handles/handles.h"
#include "script/rules/rules_internal.h"

enum { SEED = 1 }; /* of weights */

static void run_build(lua_State *state, void *context) {
  const cleave_rule_test_t *test = context;
  cleave_script_push_host(state);
  cleave_builder_register(state);
  lua_settop(state, 0);
  cleave_script_import(state, "test_graph"); /* 1 */
  lua_getfield(state, 1, "build");
  lua_rawgeti(state, LUA_REGISTRYINDEX, test->entry);
  lua_call(state, 1, 0);
}

static cleave_status_t prepare_graph(cleave_builder_t *builder, const cleave_rule_test_t *test,
                                     const char *path, cleave_error_t *error) {
  CLEAVE_TRY(cleave_graph_create(&builder->graph, error));
  cleave_graph_t *graph = builder->graph;
  CLEAVE_TRY(cleave_strings_add(&graph->strings, test->name, strlen(test->name), &graph->name, error));
  return cleave_strings_add(&graph->strings, path, strlen(path), &graph->source, error);
}

cleave_status_t cleave_rules_build_test(cleave_rules_t *rules, const cleave_rule_test_t *test,
                                        cleave_graph_t **out_graph, cleave_error_t *error) {
  *out_graph = NULL;
  cleave_script_t *script = rules->script;
  cleave_builder_t builder = {
      .seed = SEED, .seed_is_given = true, .data_limit = CLEAVE_BUILDER_TEST_DATA_LIMIT};
  cleave_infer_options_t options = {.fold = true};
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY_CLEANUP(prepare_graph(&builder, test, script->path, error));
  builder.graph->context = script->context;
  cleave_script_set_rule(script, "test", test->name, test->line);
  cleave_handles_enter(script, builder.graph, NULL);
  script->owner = &builder;
  status = cleave_script_call(script, run_build, (void *)(uintptr_t)test, CLEAVE_SCRIPT_LOAD_BUDGET, error);
  script->owner = NULL;
  cleave_handles_leave(script);
  cleave_script_set_rule(script, NULL, NULL, 0);
  CLEAVE_TRY_CLEANUP(status);
  CLEAVE_TRY_CLEANUP(cleave_graph_infer(builder.graph, &options, NULL, error));
  *out_graph = builder.graph;
  builder.graph = NULL;
cleanup:
  cleave_graph_destroy(builder.graph);
  cleave_array_free(&builder.facts);
  cleave_arena_deinit(&builder.arena);
  return status;
}
