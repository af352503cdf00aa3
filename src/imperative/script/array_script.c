// SPDX-License-Identifier: Apache-2.0
#include "imperative/script/array_script.h"

#include <lualib.h>

#include "imperative/script/array_state.h"
#include "script/sandbox/host.h"
#include "script/state/chunk.h"
#include "system/file.h"

/* Never over: a script runs as long as it wants to. */
#define ENDLESS UINT32_MAX

/* A program of arrays: its interpreter, and what its calls need. */
typedef struct program {
  array_script_t own;
  cleave_script_t *script;
  const cleave_array_script_t *request;
} program_t;

static void push_arguments(lua_State *state, const cleave_array_script_t *request) {
  lua_createtable(state, (int)request->argument_count, 1);
  lua_pushstring(state, request->path);
  lua_rawseti(state, -2, 0);
  for (size_t k = 0; k < request->argument_count; k++) {
    lua_pushstring(state, request->arguments[k]);
    lua_rawseti(state, -2, (lua_Integer)k + 1);
  }
}

/* The globals: Lua's libraries, `nd`, and `arg`. */
static void open_globals(lua_State *state, void *context) {
  const program_t *program = context;
  luaL_openlibs(state);
  cleave_script_push_host(state);
  cleave_builder_register(state);
  array_calls_register(state);
  array_handle_register(state);
  recorded_register(state);
  traced_register(state);
  array_handle_define(state);
  lua_setfield(state, -2, "array_metatable");
  lua_settop(state, 0);
  lua_pushglobaltable(state); /* 1 */
  cleave_script_import(state, "arrays");
  lua_setfield(state, 1, "nd");
  push_arguments(state, program->request);
  lua_setfield(state, 1, "arg");
}

static cleave_status_t open_program(program_t *program, const cleave_array_script_t *request,
                                    cleave_error_t *error) {
  array_script_t *own = &program->own;
  program->request = request;
  own->rules = request->rules;
  own->rule_count = request->rule_count;
  own->builder.seed = 1;
  CLEAVE_TRY(cleave_imperative_create(request->context, request->options, &own->imperative, error));
  CLEAVE_TRY(cleave_graph_create(&own->builder.graph, error));
  CLEAVE_TRY(cleave_script_create(request->path, CLEAVE_ERROR_INVALID_ARGUMENT, cleave_host_register,
                                  &program->script, error));
  own->builder.graph->context = request->context;
  program->script->context = request->context;
  program->script->owner = &own->builder;
  program->script->graph = own->builder.graph;
  program->script->serial = 1;
  return cleave_script_call(program->script, open_globals, program, ENDLESS, error);
}

/* To be called also after open_program failed. */
static void close_program(program_t *program) {
  array_script_t *own = &program->own;
  cleave_script_destroy(program->script); /* its arrays are released with it */
  cleave_graph_destroy(own->builder.graph);
  cleave_array_free(&own->builder.facts);
  cleave_arena_deinit(&own->builder.arena);
  cleave_imperative_destroy(own->imperative);
}

/* ---- a file ---- */

static void run_file(lua_State *state, void *context) {
  const cleave_file_t *file = context;
  lua_pushglobaltable(state); /* 1 */
  cleave_script_load_text(state, (const char *)cleave_file_data(file), cleave_file_size(file), 1);
  lua_call(state, 0, 0);
}

cleave_status_t cleave_array_script_run(const cleave_array_script_t *request, cleave_error_t *error) {
  cleave_status_t status = CLEAVE_OK;
  program_t program = {0};
  cleave_file_t *file = NULL;
  CLEAVE_TRY_CLEANUP(cleave_file_open(request->path, &file, error));
  CLEAVE_TRY_CLEANUP(open_program(&program, request, error));
  CLEAVE_TRY_CLEANUP(cleave_script_call(program.script, run_file, file, ENDLESS, error));
  CLEAVE_TRY_CLEANUP(cleave_imperative_wait(program.own.imperative, error));
cleanup:
  close_program(&program);
  cleave_file_release(file);
  return status;
}

/* ---- a prompt ---- */

struct cleave_array_prompt {
  program_t program;
  cleave_chunk_t chunk; /* at work, or the line that is completed */
  bool is_incomplete;
  size_t start;          /* of the word that is completed */
  cleave_text_t *output; /* of its completions */
};

cleave_status_t cleave_array_prompt_create(const cleave_array_script_t *request,
                                           cleave_array_prompt_t **out_prompt, cleave_error_t *error) {
  *out_prompt = NULL;
  cleave_array_prompt_t *prompt = cleave_allocate_zeroed(1, sizeof *prompt);
  if (prompt == NULL) {
    return cleave_error_out_of_memory(error);
  }
  CLEAVE_TRY_OR(open_program(&prompt->program, request, error), cleave_array_prompt_destroy(prompt));
  *out_prompt = prompt;
  return CLEAVE_OK;
}

void cleave_array_prompt_destroy(cleave_array_prompt_t *prompt) {
  if (prompt != NULL) {
    close_program(&prompt->program);
    cleave_free(prompt);
  }
}

static void run_chunk(lua_State *state, void *context) {
  cleave_array_prompt_t *prompt = context;
  cleave_script_import(state, "prompt/arrays");
  lua_getfield(state, 1, "show");
  lua_replace(state, 1);
  prompt->is_incomplete = !cleave_chunk_load(state, &prompt->chunk);
  if (!prompt->is_incomplete) {
    cleave_chunk_run(state, 1);
  }
}

cleave_status_t cleave_array_prompt_run(cleave_array_prompt_t *prompt, const char *text, size_t length,
                                        bool *out_incomplete, cleave_error_t *error) {
  cleave_error_t inner = CLEAVE_ERROR_INIT;
  cleave_script_t *script = prompt->program.script;
  prompt->chunk = (cleave_chunk_t){.text = text, .length = length};
  prompt->is_incomplete = false;
  cleave_status_t status = cleave_script_call(script, run_chunk, prompt, ENDLESS, &inner);
  *out_incomplete = prompt->is_incomplete;
  return status == CLEAVE_OK ? CLEAVE_OK : cleave_chunk_error(script, &prompt->chunk, &inner, error);
}

void cleave_array_prompt_interrupt(cleave_array_prompt_t *prompt) {
  atomic_store(&prompt->program.script->is_ended, true);
}

static void run_complete(lua_State *state, void *context) {
  cleave_array_prompt_t *prompt = context;
  size_t length = 0;
  cleave_script_import(state, "prompt/arrays");
  lua_getfield(state, -1, "complete");
  lua_pushlstring(state, prompt->chunk.text, prompt->chunk.length);
  lua_call(state, 1, 2);
  prompt->start = (size_t)lua_tointeger(state, -2);
  const char *words = luaL_checklstring(state, -1, &length);
  cleave_text_append(prompt->output, words, length);
}

cleave_status_t cleave_array_prompt_complete(cleave_array_prompt_t *prompt, const char *line, size_t length,
                                             size_t *out_start, cleave_text_t *output,
                                             cleave_error_t *error) {
  prompt->chunk = (cleave_chunk_t){.text = line, .length = length};
  prompt->output = output;
  prompt->start = length;
  cleave_status_t status =
      cleave_script_call(prompt->program.script, run_complete, prompt, CLEAVE_SCRIPT_CALLBACK_BUDGET, error);
  *out_start = prompt->start <= length ? prompt->start : length;
  return status == CLEAVE_OK ? cleave_text_check(output, error) : status;
}
