// SPDX-License-Identifier: Apache-2.0
/*
 * pcall, xpcall and coroutines: everything that catches errors. An error at the end of the budget is not
 * caught, but passed on to the caller. Error handlers run after the stack has unwound (a handler inside of
 * the hook could not be stopped), and the depth of coroutines that close each other is bounded.
 */
#include "script/sandbox/host.h"

enum { CLOSE_DEPTH = 8 };

/* The status of a call in protected mode, with the error on top. */
static void note_caught(lua_State *state) {
  cleave_script_t *script = cleave_script_of(state);
  cleave_script_pass_end_on(state);
  script->raised = CLEAVE_OK;
  script->checked.status = CLEAVE_OK;
  script->error_is_placed = false;
}

/* ---- pcall and xpcall ---- */

static int finish_pcall(lua_State *state, int status, lua_KContext extra) {
  if (status == LUA_OK || status == LUA_YIELD) {
    return lua_gettop(state) - (int)extra;
  }
  note_caught(state);
  lua_pushboolean(state, false);
  lua_insert(state, -2);
  return 2;
}

static int host_pcall(lua_State *state) {
  luaL_checkany(state, 1);
  lua_pushboolean(state, true);
  lua_insert(state, 1);
  int status = lua_pcallk(state, lua_gettop(state) - 2, LUA_MULTRET, 0, 0, finish_pcall);
  return finish_pcall(state, status, 0);
}

static int finish_xpcall(lua_State *state, int status, lua_KContext extra) {
  if (status == LUA_OK || status == LUA_YIELD) {
    return lua_gettop(state) - (int)extra;
  }
  note_caught(state);
  /* 1: handler, top: error */
  lua_pushvalue(state, 1);
  lua_insert(state, -2);
  lua_call(state, 1, 1);
  lua_pushboolean(state, false);
  lua_insert(state, -2);
  return 2;
}

static int host_xpcall(lua_State *state) {
  luaL_checktype(state, 2, LUA_TFUNCTION);
  lua_pushvalue(state, 2);
  lua_insert(state, 1); /* handler, function, handler, arguments */
  lua_remove(state, 3);
  lua_pushboolean(state, true);
  lua_insert(state, 2); /* handler, true, function, arguments */
  int status = lua_pcallk(state, lua_gettop(state) - 3, LUA_MULTRET, 0, 1, finish_xpcall);
  return finish_xpcall(state, status, 1);
}

/* ---- coroutines ---- */

static lua_State *check_coroutine(lua_State *state) {
  lua_State *coroutine = lua_tothread(state, 1);
  luaL_argexpected(state, coroutine != NULL, 1, "coroutine");
  return coroutine;
}

typedef enum coroutine_state { RUNNING, SUSPENDED, RESUMES_ANOTHER, ENDED } coroutine_state_t;

static coroutine_state_t state_of(lua_State *state, lua_State *coroutine) {
  lua_Debug record;
  if (state == coroutine) {
    return RUNNING;
  }
  switch (lua_status(coroutine)) {
    case LUA_YIELD: return SUSPENDED;
    case LUA_OK: break;
    default: return ENDED;
  }
  if (lua_getstack(coroutine, 0, &record) != 0) {
    return RESUMES_ANOTHER;
  }
  return lua_gettop(coroutine) == 0 ? ENDED : SUSPENDED;
}

/* Moves the arguments on top to the coroutine, runs it, and moves the results back. Returns the number of
 * results, or
 * -1 with the error on top. */
static int resume(lua_State *state, lua_State *coroutine, int arguments) {
  coroutine_state_t found = state_of(state, coroutine);
  if (found != SUSPENDED) {
    lua_pushstring(state,
                   found == ENDED ? "cannot resume dead coroutine" : "cannot resume non-suspended coroutine");
    return -1;
  }
  if (!lua_checkstack(coroutine, arguments)) {
    lua_pushliteral(state, "too many arguments to resume");
    return -1;
  }
  lua_xmove(state, coroutine, arguments);
  int results = 0;
  cleave_script_watch(coroutine);
  int status = lua_resume(coroutine, state, arguments, &results);
  cleave_script_watch(state);
  if (status != LUA_OK && status != LUA_YIELD) {
    lua_xmove(coroutine, state, 1);
    note_caught(state);
    return -1;
  }
  if (!lua_checkstack(state, results + 1)) {
    lua_pop(coroutine, results);
    lua_pushliteral(state, "too many results to resume");
    return -1;
  }
  lua_xmove(coroutine, state, results);
  return results;
}

/* Closes the variables of a coroutine. Returns LUA_OK, or a status with the error on top of `state`. Lua does
 * not bound the depth of coroutines that close each other on the C stack. */
static int close_coroutine(lua_State *state, lua_State *coroutine) {
  cleave_script_t *script = cleave_script_of(state);
  if (script->close_depth == CLOSE_DEPTH) {
    return luaL_error(state, "more than %d coroutines close each other", CLOSE_DEPTH);
  }
  script->close_depth++;
  cleave_script_watch(coroutine);
#if LUA_VERSION_RELEASE_NUM >= 50406
  int status = lua_closethread(coroutine, state);
#else
  int status = lua_resetthread(coroutine);
#endif
  cleave_script_watch(state);
  script->close_depth--;
  if (status != LUA_OK) {
    lua_xmove(coroutine, state, 1);
    note_caught(state);
  }
  return status;
}

static int coroutine_create(lua_State *state) {
  luaL_checktype(state, 1, LUA_TFUNCTION);
  lua_State *coroutine = lua_newthread(state);
  lua_pushvalue(state, 1);
  lua_xmove(state, coroutine, 1);
  return 1;
}

static int coroutine_resume(lua_State *state) {
  lua_State *coroutine = check_coroutine(state);
  int results = resume(state, coroutine, lua_gettop(state) - 1);
  lua_pushboolean(state, results >= 0);
  lua_insert(state, results >= 0 ? -(results + 1) : -2);
  return (results >= 0 ? results : 1) + 1;
}

static int resume_wrapped(lua_State *state) {
  lua_State *coroutine = lua_tothread(state, lua_upvalueindex(1));
  int results = resume(state, coroutine, lua_gettop(state));
  if (results >= 0) {
    return results;
  }
  int status = lua_status(coroutine);
  if (status != LUA_OK && status != LUA_YIELD && close_coroutine(state, coroutine) != LUA_OK) {
    lua_remove(state, -2); /* the error of closing is the one that counts */
  }
  return lua_error(state);
}

static int coroutine_wrap(lua_State *state) {
  (void)coroutine_create(state);
  lua_pushcclosure(state, resume_wrapped, 1);
  return 1;
}

static int coroutine_yield(lua_State *state) {
  if (!lua_isyieldable(state)) {
    return cleave_script_raise(state, lua_pushthread(state) != 0
                                          ? "attempt to yield from outside a coroutine"
                                          : "attempt to yield across a C-call boundary");
  }
  return lua_yield(state, lua_gettop(state));
}

static int coroutine_close(lua_State *state) {
  lua_State *coroutine = check_coroutine(state);
  coroutine_state_t found = state_of(state, coroutine);
  if (found != SUSPENDED && found != ENDED) {
    return luaL_error(state, "cannot close a coroutine that runs");
  }
  if (close_coroutine(state, coroutine) == LUA_OK) {
    lua_pushboolean(state, true);
    return 1;
  }
  lua_pushboolean(state, false);
  lua_insert(state, -2);
  return 2;
}

void cleave_sandbox_register_coroutines(lua_State *state) {
  static const luaL_Reg FUNCTIONS[] = {{"pcall", host_pcall},
                                       {"xpcall", host_xpcall},
                                       {"coroutine_create", coroutine_create},
                                       {"coroutine_resume", coroutine_resume},
                                       {"coroutine_wrap", coroutine_wrap},
                                       {"coroutine_yield", coroutine_yield},
                                       {"coroutine_close", coroutine_close},
                                       {NULL, NULL}};
  luaL_setfuncs(state, FUNCTIONS, 0);
}
