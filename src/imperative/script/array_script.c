// SPDX-License-Identifier: Apache-2.0
#include "imperative/script/array_script.h"

#include <lualib.h>

#include "imperative/script/array_calls.h"
#include "imperative/script/array_handle.h"
#include "imperative/script/array_state.h"
#include "imperative/script/traced.h"
#include "script/sandbox/host.h"
#include "system/file.h"

/* Never over: a script runs as long as it wants to. */
#define ENDLESS UINT32_MAX

typedef struct run {
  const cleave_array_script_t *request;
  const cleave_file_t *file;
} run_t;

static void push_arguments(lua_State *state, const cleave_array_script_t *request) {
  lua_createtable(state, (int)request->argument_count, 1);
  lua_pushstring(state, request->path);
  lua_rawseti(state, -2, 0);
  for (size_t k = 0; k < request->argument_count; k++) {
    lua_pushstring(state, request->arguments[k]);
    lua_rawseti(state, -2, (lua_Integer)k + 1);
  }
}

static void run_script(lua_State *state, void *context) {
  const run_t *run = context;
  luaL_openlibs(state);
  cleave_script_push_host(state);
  cleave_builder_register(state);
  array_calls_register(state);
  array_handle_register(state);
  traced_register(state);
  array_handle_define(state);
  lua_setfield(state, -2, "array_metatable");
  lua_settop(state, 0);
  lua_pushglobaltable(state); /* 1 */
  cleave_script_import(state, "arrays");
  lua_setfield(state, 1, "nd");
  push_arguments(state, run->request);
  lua_setfield(state, 1, "arg");
  cleave_script_load_text(state, (const char *)cleave_file_data(run->file), cleave_file_size(run->file), 1);
  lua_call(state, 0, 0);
}

cleave_status_t cleave_array_script_run(const cleave_array_script_t *request, cleave_error_t *error) {
  array_script_t own = {.rules = request->rules, .rule_count = request->rule_count};
  cleave_script_t *script = NULL;
  cleave_file_t *file = NULL;
  cleave_status_t status = CLEAVE_OK;
  own.builder.seed = 1;
  CLEAVE_TRY_CLEANUP(cleave_file_open(request->path, &file, error));
  CLEAVE_TRY_CLEANUP(cleave_imperative_create(request->context, request->options, &own.imperative, error));
  CLEAVE_TRY_CLEANUP(cleave_graph_create(&own.builder.graph, error));
  CLEAVE_TRY_CLEANUP(cleave_script_create(request->path, CLEAVE_ERROR_INVALID_ARGUMENT, cleave_host_register,
                                          &script, error));
  own.builder.graph->context = request->context;
  script->context = request->context;
  script->owner = &own.builder;
  script->graph = own.builder.graph;
  script->serial = 1;
  run_t run = {.request = request, .file = file};
  CLEAVE_TRY_CLEANUP(cleave_script_call(script, run_script, &run, ENDLESS, error));
  CLEAVE_TRY_CLEANUP(cleave_imperative_wait(own.imperative, error));
cleanup:
  cleave_script_destroy(script); /* its arrays are released with it */
  cleave_file_release(file);
  cleave_graph_destroy(own.builder.graph);
  cleave_array_free(&own.builder.facts);
  cleave_arena_deinit(&own.builder.arena);
  cleave_imperative_destroy(own.imperative);
  return status;
}
