// SPDX-License-Identifier: Apache-2.0
/*
 * The prompt: chunks in one environment, and the functions that lua/cleave/prompt/repl.lua builds its words
 * from. Memory of C that is in use while Lua runs (a matcher, a string from a service) belongs to the session
 * and is freed at the next use, so that an error does not leak it.
 */
#include "script/repl.h"

#include <string.h>

#include "graph/print.h"
#include "partition/match/match.h"
#include "script/handles/handles.h"
#include "script/sandbox/host.h"
#include "script/state/chunk.h"
#include "script/state/table_reader.h"
#include "system/clock.h"

enum {
  MAX_OUTPUT = 1 << 20, /* bytes that one chunk may print */
  MAX_MATCHES = 100000,
  STEPS_PER_ANCHOR = 100000,
};

struct cleave_repl {
  cleave_script_t *script;
  const cleave_graph_t *graph;
  cleave_repl_services_t services;
  int globals; /* references */
  int show;
  int complete;

  /* of the chunk at work */
  cleave_text_t *output;
  cleave_chunk_t chunk;
  bool incomplete;
  size_t start;

  /* owned, freed at the next use */
  char *answer;
  cleave_arena_t pattern_arena;
  cleave_contraction_t *contraction;
  cleave_matcher_t *matcher;
};

static cleave_repl_t *repl_of(lua_State *state) {
  return cleave_script_of(state)->owner;
}

/* ---- functions for lua/cleave/prompt/repl.lua ---- */

static int api_graph(lua_State *state) {
  cleave_handle_push_graph(state);
  return 1;
}

/* (text): a line of output. */
static int api_print(lua_State *state) {
  cleave_repl_t *repl = repl_of(state);
  size_t length = 0;
  const char *text = luaL_checklstring(state, 1, &length);
  if (repl->output->length + length + 1 > MAX_OUTPUT) {
    return cleave_script_raise(state, "more than %d bytes are printed", (int)MAX_OUTPUT);
  }
  for (const char *line = text; line != NULL;) {
    const char *end = memchr(line, '\n', length - (size_t)(line - text));
    size_t size = end != NULL ? (size_t)(end - line) : length - (size_t)(line - text);
    cleave_text_show(repl->output, "%.*s\n", (int)size, line);
    line = end != NULL ? end + 1 : NULL;
  }
  return 0;
}

static void describe_value(const cleave_graph_t *graph, cleave_value_t value, cleave_text_t *text) {
  cleave_value_print(graph, value, text);
  cleave_text_add(text, " : ");
  cleave_value_type_print(graph, value, text);
  cleave_node_t producer = cleave_value_producer(graph, value);
  char label[128];
  if (cleave_node_exists(producer)) {
    cleave_text_format(text, ", made by %s '%s'", cleave_node_op(graph, producer)->name,
                       cleave_node_label(graph, producer, label, sizeof label));
  } else {
    cleave_text_add(text, cleave_value_is_constant(graph, value) ? ", a constant" : ", an input");
  }
}

static void describe(cleave_repl_t *repl, const cleave_handle_t *handle, cleave_text_t *text) {
  const cleave_graph_t *graph = repl->graph;
  char label[128];
  switch (handle->kind) {
    case CLEAVE_HANDLE_NODE: {
      cleave_node_t node = {handle->index};
      cleave_text_format(text, "%s '%s' #%u", cleave_node_op(graph, node)->name,
                         cleave_node_label(graph, node, label, sizeof label), (unsigned)node.index);
      for (uint32_t k = 0; k < cleave_node_output_count(graph, node) && k < 4; k++) {
        cleave_text_add(text, k == 0 ? " : " : ", ");
        cleave_value_type_print(graph, cleave_node_output(graph, node, k), text);
      }
      break;
    }
    case CLEAVE_HANDLE_VALUE: describe_value(graph, (cleave_value_t){handle->index}, text); break;
    case CLEAVE_HANDLE_GRAPH:
      cleave_text_format(text, "graph '%s' of %zu node%s, %zu input%s, %zu output%s",
                         cleave_strings_text(&graph->strings, graph->name), graph->live_node_count,
                         CLEAVE_PLURAL(graph->live_node_count), graph->inputs.count,
                         CLEAVE_PLURAL(graph->inputs.count), graph->outputs.count,
                         CLEAVE_PLURAL(graph->outputs.count));
      break;
    case CLEAVE_HANDLE_ATTRIBUTES: {
      const cleave_node_record_t *node = cleave_graph_node(graph, (cleave_node_t){handle->index});
      for (uint32_t k = 0; k < node->attribute_count; k++) {
        cleave_text_format(text, "%s%s = ", k == 0 ? "{ " : ", ", node->attributes[k].name);
        cleave_attribute_print(&node->attributes[k], text);
      }
      cleave_text_add(text, node->attribute_count == 0 ? "{}" : " }");
      break;
    }
    case CLEAVE_HANDLE_INPUTS:
    case CLEAVE_HANDLE_OUTPUTS: {
      cleave_node_t node = {handle->index};
      bool inputs = handle->kind == CLEAVE_HANDLE_INPUTS;
      uint32_t count = inputs ? cleave_node_input_count(graph, node) : cleave_node_output_count(graph, node);
      for (uint32_t k = 0; k < count && k < 20; k++) {
        cleave_value_t value =
            inputs ? cleave_node_input(graph, node, k) : cleave_node_output(graph, node, k);
        cleave_text_format(text, "%s%u  ", k == 0 ? "" : "\n", (unsigned)k + 1);
        if (cleave_value_exists(value)) {
          describe_value(graph, value, text);
        } else {
          cleave_text_add(text, "left out");
        }
      }
      break;
    }
    default: cleave_text_add(text, "a handle of another call"); break;
  }
}

/* Pushes a string and frees it; the session owns it while Lua may raise. */
static int push_answer(lua_State *state, cleave_repl_t *repl) {
  lua_pushstring(state, repl->answer == NULL ? "" : repl->answer);
  cleave_free(repl->answer);
  repl->answer = NULL;
  return 1;
}

/* (handle) -> text */
static int api_describe(lua_State *state) {
  cleave_repl_t *repl = repl_of(state);
  const cleave_handle_t *handle = lua_touserdata(state, 1);
  if (lua_type(state, 1) != LUA_TUSERDATA || handle->kind == CLEAVE_HANDLE_MATCH ||
      handle->kind == CLEAVE_HANDLE_PROPOSAL) {
    lua_pushstring(state, luaL_typename(state, 1));
    return 1;
  }
  (void)cleave_handle_check(state, 1, handle->kind);
  cleave_text_t text = {0};
  describe(repl, handle, &text);
  repl->answer = cleave_copy_text(cleave_text_get(&text), text.length);
  cleave_text_deinit(&text);
  return push_answer(state, repl);
}

/* (handle) -> names of its fields */
static int api_fields(lua_State *state) {
  const cleave_handle_t *handle = lua_touserdata(state, 1);
  lua_newtable(state);
  if (lua_type(state, 1) != LUA_TUSERDATA) {
    return 1;
  }
  const cleave_handle_field_t *fields = NULL;
  switch (handle->kind) {
    case CLEAVE_HANDLE_NODE: fields = cleave_node_handle_fields; break;
    case CLEAVE_HANDLE_VALUE: fields = cleave_value_handle_fields; break;
    case CLEAVE_HANDLE_GRAPH: fields = cleave_graph_handle_fields; break;
    default: break;
  }
  for (lua_Integer k = 0; fields != NULL && fields[k].name != NULL; k++) {
    lua_pushstring(state, fields[k].name);
    lua_rawseti(state, -2, k + 1);
  }
  if (handle->kind == CLEAVE_HANDLE_ATTRIBUTES || handle->kind == CLEAVE_HANDLE_INPUTS ||
      handle->kind == CLEAVE_HANDLE_OUTPUTS) {
    (void)cleave_handle_check(state, 1, handle->kind);
    const cleave_op_t *op = cleave_node_op(repl_of(state)->graph, (cleave_node_t){handle->index});
    bool attributes = handle->kind == CLEAVE_HANDLE_ATTRIBUTES;
    const cleave_op_port_t *ports = handle->kind == CLEAVE_HANDLE_INPUTS ? op->inputs : op->outputs;
    uint32_t count = attributes ? op->attribute_count
                                : (handle->kind == CLEAVE_HANDLE_INPUTS ? op->input_count : op->output_count);
    for (uint32_t k = 0; k < count; k++) {
      lua_pushstring(state, attributes ? op->attributes[k].value.name : ports[k].name);
      lua_rawseti(state, -2, (lua_Integer)k + 1);
    }
  }
  return 1;
}

/* ---- services ---- */

/* The time of a service does not count for the chunk. */
static int finish_service(lua_State *state, uint64_t start, cleave_status_t status,
                          const cleave_error_t *error) {
  cleave_script_t *script = cleave_script_of(state);
  script->wall_start += cleave_clock_now() - start;
  if (status != CLEAVE_OK) {
    return cleave_script_raise(state, "%s", error->message);
  }
  return push_answer(state, repl_of(state));
}

static void forget_answer(cleave_repl_t *repl) {
  cleave_free(repl->answer);
  repl->answer = NULL;
}

static int call_service(lua_State *state, const char *word,
                        cleave_status_t (*service)(void *context, char **out_text, cleave_error_t *error)) {
  cleave_repl_t *repl = repl_of(state);
  cleave_error_t error = CLEAVE_ERROR_INIT;
  if (service == NULL) {
    return cleave_script_raise(state, "%s() is not available here", word);
  }
  forget_answer(repl);
  uint64_t start = cleave_clock_now();
  cleave_status_t status = service(repl->services.context, &repl->answer, &error);
  return finish_service(state, start, status, &error);
}

static int api_plan(lua_State *state) {
  return call_service(state, "plan", repl_of(state)->services.plan);
}

static int api_rules(lua_State *state) {
  return call_service(state, "rules", repl_of(state)->services.rules);
}

/* (), (node or value or name), (node or name, rule) */
static int api_why(lua_State *state) {
  cleave_repl_t *repl = repl_of(state);
  cleave_error_t error = CLEAVE_ERROR_INIT;
  char number[32];
  const char *node = NULL;
  if (repl->services.why == NULL) {
    return cleave_script_raise(state, "why() is not available here");
  }
  if (lua_type(state, 1) == LUA_TUSERDATA) {
    const cleave_handle_t *handle = lua_touserdata(state, 1);
    bool is_value = handle->kind == CLEAVE_HANDLE_VALUE;
    (void)cleave_handle_check(state, 1, is_value ? CLEAVE_HANDLE_VALUE : CLEAVE_HANDLE_NODE);
    cleave_node_t subject = is_value ? cleave_value_producer(repl->graph, (cleave_value_t){handle->index})
                                     : (cleave_node_t){handle->index};
    if (!cleave_node_exists(subject)) {
      return cleave_script_raise(state, "why: no node makes this value");
    }
    (void)snprintf(number, sizeof number, "#%u", (unsigned)subject.index);
    node = number;
  } else if (!lua_isnoneornil(state, 1)) {
    if (lua_type(state, 1) != LUA_TSTRING) {
      return cleave_script_raise(state, "why: expected a node or a name, found a %s",
                                 luaL_typename(state, 1));
    }
    node = lua_tostring(state, 1);
  }
  const char *rule = luaL_optstring(state, 2, NULL);
  forget_answer(repl);
  uint64_t start = cleave_clock_now();
  cleave_status_t status = repl->services.why(repl->services.context, node, rule, &repl->answer, &error);
  return finish_service(state, start, status, &error);
}

/* ---- g:find ---- */

static void forget_search(cleave_repl_t *repl) {
  cleave_matcher_destroy(repl->matcher);
  cleave_contraction_destroy(repl->contraction);
  repl->matcher = NULL;
  repl->contraction = NULL;
  cleave_arena_reset(&repl->pattern_arena);
}

static cleave_status_t begin_search(cleave_repl_t *repl, const cleave_pattern_t *pattern,
                                    const uint32_t **out_anchors, uint32_t *out_count,
                                    cleave_error_t *error) {
  CLEAVE_TRY(cleave_contraction_create(repl->graph, &repl->contraction, error));
  CLEAVE_TRY(cleave_matcher_create(repl->contraction, &repl->matcher, error));
  CLEAVE_TRY(cleave_matcher_set_pattern(repl->matcher, pattern, error));
  return cleave_matcher_anchors(repl->matcher, out_anchors, out_count, error);
}

static void push_match(lua_State *state, const cleave_match_t *match) {
  lua_newtable(state);
  for (uint32_t k = 0; k < match->pattern->label_count; k++) {
    if (cleave_node_exists(match->label_nodes[k])) {
      cleave_handle_push_node(state, match->label_nodes[k]);
    } else {
      cleave_handle_push_value(state, match->label_values[k]);
    }
    lua_setfield(state, -2, match->pattern->labels[k]);
  }
  cleave_handle_push_nodes(state, match->nodes, match->node_count);
  lua_setfield(state, -2, "nodes");
}

/* ({ pattern = compiled }) -> list of matches, list of labels */
static int api_find(lua_State *state) {
  cleave_repl_t *repl = repl_of(state);
  cleave_error_t error = CLEAVE_ERROR_INIT;
  const uint32_t *anchors = NULL;
  uint32_t count = 0;
  lua_Integer found = 0;
  lua_settop(state, 1);
  forget_search(repl);
  cleave_table_reader_t reader = {.state = state, .arena = &repl->pattern_arena, .file = "prompt"};
  const cleave_pattern_t *pattern = cleave_table_pattern(&reader, "pattern", "find");
  if (begin_search(repl, pattern, &anchors, &count, &error) != CLEAVE_OK) {
    return cleave_script_raise_error(state, &error);
  }
  lua_newtable(state);
  for (uint32_t k = 0; k < count && found < MAX_MATCHES; k++) {
    cleave_match_answer_t answer;
    cleave_match_request_t request = {.anchor = anchors[k], .step_limit = STEPS_PER_ANCHOR};
    if (cleave_matcher_match(repl->matcher, &request, &answer, &error) != CLEAVE_OK) {
      return cleave_script_raise_error(state, &error);
    }
    cleave_script_step(state, answer.steps > UINT32_MAX / 8 ? UINT32_MAX : (uint32_t)answer.steps * 4 + 8);
    if (answer.match != NULL) {
      push_match(state, answer.match);
      lua_rawseti(state, -2, ++found);
    }
  }
  lua_newtable(state);
  for (uint32_t k = 0; k < pattern->label_count; k++) {
    lua_pushstring(state, pattern->labels[k]);
    lua_rawseti(state, -2, (lua_Integer)k + 1);
  }
  return 2;
}

/* ---- life ---- */

static void open_session(lua_State *state, void *context) {
  static const luaL_Reg API[] = {{"graph", api_graph},   {"print", api_print}, {"describe", api_describe},
                                 {"fields", api_fields}, {"plan", api_plan},   {"rules", api_rules},
                                 {"why", api_why},       {"find", api_find},   {NULL, NULL}};
  cleave_repl_t *repl = context;
  cleave_script_import(state, "prompt/repl");
  lua_getfield(state, 1, "environment");
  luaL_newlib(state, API);
  lua_call(state, 1, 1);
  repl->globals = luaL_ref(state, LUA_REGISTRYINDEX);
  lua_getfield(state, 1, "show");
  repl->show = luaL_ref(state, LUA_REGISTRYINDEX);
  lua_getfield(state, 1, "complete");
  repl->complete = luaL_ref(state, LUA_REGISTRYINDEX);
}

cleave_status_t cleave_repl_create(const cleave_graph_t *graph, const cleave_repl_services_t *services,
                                   cleave_repl_t **out_repl, cleave_error_t *error) {
  *out_repl = NULL;
  cleave_repl_t *repl = cleave_allocate_zeroed(1, sizeof *repl);
  CLEAVE_TRY_MEMORY(repl, error);
  repl->graph = graph;
  repl->services = *services;
  cleave_status_t status =
      cleave_script_create("prompt", CLEAVE_ERROR_RULE, cleave_host_register, &repl->script, error);
  if (status == CLEAVE_OK) {
    repl->script->owner = repl;
    repl->script->context = graph->context;
    status = cleave_script_call(repl->script, open_session, repl, CLEAVE_SCRIPT_LOAD_BUDGET, error);
  }
  CLEAVE_TRY_OR(status, cleave_repl_destroy(repl));
  *out_repl = repl;
  return CLEAVE_OK;
}

void cleave_repl_destroy(cleave_repl_t *repl) {
  if (repl == NULL) {
    return;
  }
  cleave_script_destroy(repl->script);
  forget_search(repl);
  cleave_arena_deinit(&repl->pattern_arena);
  forget_answer(repl);
  cleave_free(repl);
}

/* ---- chunks ---- */

/* (values): prints them in the words of lua/cleave/prompt/repl.lua. */
static int show_results(lua_State *state) {
  luaL_checkstack(state, 2, NULL);
  lua_rawgeti(state, LUA_REGISTRYINDEX, repl_of(state)->show);
  lua_insert(state, 1);
  lua_call(state, lua_gettop(state) - 1, 1);
  return api_print(state);
}

static void run_chunk(lua_State *state, void *context) {
  cleave_repl_t *repl = context;
  lua_pushcfunction(state, show_results); /* 1 */
  repl->incomplete = !cleave_chunk_load(state, &repl->chunk);
  if (!repl->incomplete) {
    lua_rawgeti(state, LUA_REGISTRYINDEX, repl->globals);
    (void)lua_setupvalue(state, -2, 1);
    cleave_chunk_run(state, 1);
  }
}

cleave_status_t cleave_repl_run(cleave_repl_t *repl, const char *text, size_t length, bool *out_incomplete,
                                cleave_text_t *output, cleave_error_t *error) {
  cleave_error_t inner = CLEAVE_ERROR_INIT;
  repl->output = output;
  repl->chunk = (cleave_chunk_t){.text = text, .length = length};
  repl->incomplete = false;
  cleave_handles_enter(repl->script, repl->graph, NULL);
  cleave_status_t status = cleave_script_call(repl->script, run_chunk, repl, CLEAVE_REPL_BUDGET, &inner);
  cleave_handles_leave(repl->script);
  forget_search(repl);
  *out_incomplete = repl->incomplete;
  return status == CLEAVE_OK ? cleave_text_check(output, error)
                             : cleave_chunk_error(repl->script, &repl->chunk, &inner, error);
}

void cleave_repl_interrupt(cleave_repl_t *repl) {
  atomic_store(&repl->script->is_ended, true);
}

const atomic_bool *cleave_repl_interrupted(const cleave_repl_t *repl) {
  return &repl->script->is_ended;
}

/* ---- completion ---- */

static void run_complete(lua_State *state, void *context) {
  cleave_repl_t *repl = context;
  lua_rawgeti(state, LUA_REGISTRYINDEX, repl->complete);
  lua_pushlstring(state, repl->chunk.text, repl->chunk.length);
  lua_call(state, 1, 2);
  repl->start = (size_t)lua_tointeger(state, 1);
  size_t length = 0;
  const char *words = lua_tolstring(state, 2, &length);
  if (words != NULL) {
    cleave_text_append(repl->output, words, length);
  }
}

cleave_status_t cleave_repl_complete(cleave_repl_t *repl, const char *line, size_t length, size_t *out_start,
                                     cleave_text_t *output, cleave_error_t *error) {
  repl->output = output;
  repl->chunk = (cleave_chunk_t){.text = line, .length = length};
  repl->start = length;
  cleave_handles_enter(repl->script, repl->graph, NULL);
  cleave_status_t status =
      cleave_script_call(repl->script, run_complete, repl, CLEAVE_SCRIPT_CALLBACK_BUDGET, error);
  cleave_handles_leave(repl->script);
  *out_start = repl->start <= length ? repl->start : length;
  return status == CLEAVE_OK ? cleave_text_check(output, error) : status;
}
