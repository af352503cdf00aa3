/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Lua host: one interpreter with a memory cap and a time budget, and the one place where C calls Lua.
 *
 * Whatever a script does, a call ends: memory beyond the cap is refused by the allocator, and a hook that
 * runs every few hundred instructions raises an error once the budget is spent, again and again until the
 * script has unwound, so that `pcall` cannot swallow it. C functions that loop on a script's behalf count
 * steps (cleave_script_step). C functions that can raise own neither memory nor locks.
 */
#ifndef CLEAVE_SCRIPT_SCRIPT_H
#define CLEAVE_SCRIPT_SCRIPT_H

#include <lauxlib.h>
#include <lua.h>

#include "base/memory.h"
#include "graph/graph.h"

#define CLEAVE_SCRIPT_MEMORY_LIMIT ((size_t)256 << 20)
#define CLEAVE_SCRIPT_BLOCK_LIMIT ((size_t)32 << 20) /* one string or table */
#define CLEAVE_SCRIPT_TEXT_LIMIT ((size_t)4 << 20)   /* size of a script */
#define CLEAVE_SCRIPT_LOAD_BUDGET 2000u              /* milliseconds */
#define CLEAVE_SCRIPT_CALLBACK_BUDGET 100u
#define CLEAVE_SCRIPT_MODEL_BUDGET 60000u

typedef struct cleave_script {
  lua_State *state;
  const char *path;              /* as errors show it; a copy */
  char short_source[LUA_IDSIZE]; /* as Lua shows it in messages */
  cleave_status_t failure;       /* status of a plain script error: RULE, or FORMAT for models */

  size_t memory_used;
  size_t memory_since_check; /* grown since the clock was last read */
  bool memory_refused;       /* the cap was hit in this call */

#define CLEAVE_SCRIPT_PASS_BUDGET 2000u /* a pass over a whole graph */
  uint32_t budget;     /* milliseconds of this call */
  uint64_t wall_start; /* cleave_clock_now at the start of this call */
  uint64_t work_start; /* processor time of the thread then */
  uint32_t steps;      /* of C loops, since the clock was last read */
  bool expired;
  int expired_line;
  int error_line; /* where the script was when the error was raised */

  cleave_status_t raised; /* status of the C error that is on its way; CLEAVE_OK: none */
  cleave_error_t checked; /* an error with its place already, on its way */
  /* Rule at work, for messages; kind NULL: none. Borrowed, or in rule_text. */
  const char *rule_kind;
  const char *rule_name;
  int rule_line;
  char rule_text[2][64];

  /* What handles refer to (handles.h): set while a callback runs. */
  const cleave_graph_t *graph;
  uint64_t serial; /* of the graph; handles of another serial are stale */
  struct {
    const void *graph, *nodes, *uses;
    size_t node_count, value_count, use_count, live_node_count;
  } seen;               /* graph of `serial` */
  uint64_t call_serial; /* counts calls; matches and proposals live for one */
  const void *subject;  /* match or proposal of this call */

  void *owner; /* of whoever made the script: the model under construction */
} cleave_script_t;

/* Makes an interpreter with the host's own modules and no script in it. `path` is for messages. */
CLEAVE_MUST_USE cleave_status_t cleave_script_create(const char *path, cleave_status_t failure,
                                                     cleave_script_t **out_script, cleave_error_t *error);
void cleave_script_destroy(cleave_script_t *script);

/* Runs `body(state, context)` protected, with a budget in milliseconds. Everything that touches Lua runs in
 * such a body. An error becomes file:line, rule and message in `error`. Not reentrant. */
typedef void (*cleave_script_body_t)(lua_State *state, void *context);
CLEAVE_MUST_USE cleave_status_t cleave_script_call(cleave_script_t *script, cleave_script_body_t body,
                                                   void *context, uint32_t budget, cleave_error_t *error);

/* Names the rule at work for messages; kind NULL: none. The texts must live until the next call. */
void cleave_script_set_rule(cleave_script_t *script, const char *kind, const char *name, int line);

/* ---- for C functions that Lua calls ---- */

static inline cleave_script_t *cleave_script_of(lua_State *state) {
  return *(cleave_script_t **)lua_getextraspace(state);
}

/* Line of the script that is running: of the innermost function that the script's own text defines. */
int cleave_script_line(lua_State *state);

/* Raises "file:line: message"; the second takes a line of the script. Do not return. */
int cleave_script_raise(lua_State *state, const char *format, ...) CLEAVE_PRINTF(2, 3);
int cleave_script_raise_at(lua_State *state, int line, const char *format, ...) CLEAVE_PRINTF(3, 4);
/* Raises what `error` holds, its status too. */
int cleave_script_raise_error(lua_State *state, const cleave_error_t *error);
/* The same for an error that has its place and rule already: it ends up as it is. */
int cleave_script_raise_checked(lua_State *state, const cleave_error_t *error);

/* Counts work done in C; raises once the budget is spent. */
void cleave_script_step(lua_State *state, uint32_t steps);

/* Pushes the module lua/cleave/<name>.lua, run once per interpreter with (host, import). */
void cleave_script_import(lua_State *state, const char *name);
/* Pushes the table of C functions that the modules get as `host`. */
void cleave_script_push_host(lua_State *state);

/* Compiles and pushes the script's text as a function whose globals are the table at `environment`. */
void cleave_script_load_text(lua_State *state, const char *text, size_t length, int environment);

#endif /* CLEAVE_SCRIPT_SCRIPT_H */
