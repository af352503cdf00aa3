// SPDX-License-Identifier: Apache-2.0
/* Loads a model script: runs it with the builder `g` and the settings as `options`, and infers the whole
 * graph. */
#include "script/model_script.h"

#include <string.h>

#include "script/builder/builder.h"
#include "script/handles/handles.h"
#include "script/sandbox/host.h"
#include "system/file.h"

enum { DEFAULT_SEED = 1 };

typedef struct load {
  cleave_builder_t builder;
  const cleave_file_t *file;
  cleave_script_settings_t settings;
} load_t;

static void push_settings(lua_State *state, const load_t *load) {
  lua_newtable(state);
  for (size_t k = 0; k < load->settings.count; k++) {
    lua_pushstring(state, load->settings.items[k].value);
    lua_setfield(state, -2, load->settings.items[k].name);
  }
}

static void run_load(lua_State *state, void *context) {
  const load_t *load = context;
  cleave_script_push_host(state);
  cleave_builder_register(state);
  lua_settop(state, 0);
  cleave_script_import(state, "builder"); /* 1 */
  lua_getfield(state, 1, "environment");
  push_settings(state, load);
  lua_pushstring(state, cleave_strings_text(&load->builder.graph->strings, load->builder.graph->name));
  lua_call(state, 2, 1); /* 2 */
  cleave_script_load_text(state, (const char *)cleave_file_data(load->file), cleave_file_size(load->file), 2);
  lua_call(state, 0, LUA_MULTRET);
  lua_getfield(state, 1, "finish");
  lua_insert(state, 3);
  lua_call(state, lua_gettop(state) - 3, 0);
  for (size_t k = 0; load->settings.out_used != NULL && k < load->settings.count; k++) {
    lua_getfield(state, 1, "was_read");
    lua_pushstring(state, load->settings.items[k].name);
    lua_call(state, 1, 1);
    load->settings.out_used[k] = lua_toboolean(state, -1);
    lua_pop(state, 1);
  }
}

static cleave_status_t prepare_graph(load_t *load, const char *path, cleave_error_t *error) {
  cleave_graph_t *graph = NULL;
  CLEAVE_TRY(cleave_graph_create(&graph, error));
  load->builder.graph = graph;
  const char *name = cleave_path_name(path);
  size_t length = strlen(name);
  if (cleave_path_has_extension(name, ".lua")) {
    length -= 4;
  }
  CLEAVE_TRY(cleave_strings_add(&graph->strings, name, length, &graph->name, error));
  return cleave_strings_add(&graph->strings, path, strlen(path), &graph->source, error);
}

cleave_status_t cleave_model_script_load(cleave_context_t *context, const char *path,
                                         const cleave_script_settings_t *settings, uint64_t seed,
                                         cleave_graph_t **out_graph, cleave_error_t *error) {
  *out_graph = NULL;
  cleave_script_t *script = NULL;
  cleave_file_t *file = NULL;
  load_t load = {.builder = {.seed = seed != 0 ? seed : DEFAULT_SEED, .seed_is_given = seed != 0}};
  if (settings != NULL) {
    load.settings = *settings;
  }
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY_CLEANUP(cleave_file_open(path, &file, error));
  load.file = file;
  CLEAVE_TRY_CLEANUP(cleave_script_create(path, CLEAVE_ERROR_FORMAT, cleave_host_register, &script, error));
  CLEAVE_TRY_CLEANUP(prepare_graph(&load, path, error));
  load.builder.graph->context = context;
  script->context = context;
  script->owner = &load.builder;
  script->graph = load.builder.graph;
  script->serial = 1;
  CLEAVE_TRY_CLEANUP(cleave_script_call(script, run_load, &load, CLEAVE_SCRIPT_MODEL_BUDGET, error));
  CLEAVE_TRY_CLEANUP(cleave_graph_infer(load.builder.graph, NULL, NULL, error));
  *out_graph = load.builder.graph;
  load.builder.graph = NULL;
cleanup:
  cleave_script_destroy(script);
  cleave_file_release(file);
  cleave_graph_destroy(load.builder.graph);
  cleave_array_free(&load.builder.facts);
  cleave_arena_deinit(&load.builder.arena);
  return status;
}
