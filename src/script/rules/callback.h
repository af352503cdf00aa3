// SPDX-License-Identifier: Apache-2.0
/*
 * A rule's Lua functions as callbacks of the partitioner: what all of them share. Each call has its own time
 * budget, and sees handles of one graph. The callbacks of a kind of rule are in callbacks_<kind>.c.
 */
#ifndef CLEAVE_SCRIPT_RULES_CALLBACK_H
#define CLEAVE_SCRIPT_RULES_CALLBACK_H

#include "script/builder/builder.h"
#include "script/handles/handles.h"
#include "script/rules/compile.h"

/* A call of a rule's function. */
typedef struct cleave_callback {
  const void *subject; /* the match or proposal of the call, or NULL */
  cleave_node_t node;  /* that the call is about, for messages; NONE: the whole graph */
  cleave_script_body_t body;
  void *context;   /* of the body */
  uint32_t budget; /* milliseconds; 0: that of callbacks */
} cleave_callback_t;

/* Runs the body of a call for a rule, with handles of `graph`. */
CLEAVE_STATUS cleave_callback_call(const cleave_script_rule_t *rule, const cleave_graph_t *graph,
                                   const cleave_callback_t *call, cleave_error_t *error);

/* Calls a function that changes the editor's graph: `builder`, all zero, is the `g` that it gets.
 * Handles of the call are stale in the next one, because the graph changes in between. */
CLEAVE_STATUS cleave_callback_edit(const cleave_script_rule_t *rule, cleave_builder_t *builder,
                                   cleave_editor_t *editor, const cleave_callback_t *call,
                                   cleave_error_t *error);

/* Pushes the function that a reference of cleave_script_rule_t stands for. */
void cleave_callback_push(lua_State *state, int reference);

/* The results of a function, from index 1 on: a verdict, and perhaps a reason (`reason` may be NULL). */
void cleave_callback_verdict(lua_State *state, const char *function, bool *out_accept,
                             cleave_reason_t *reason);

/* A rule's callbacks, by kind. */
void cleave_callbacks_bind_fuse(cleave_rule_t *rule, const cleave_script_rule_t *functions);
void cleave_callbacks_bind_region(cleave_rule_t *rule, const cleave_script_rule_t *functions);

void cleave_callbacks_bind_rewrite(cleave_rule_t *rule, const cleave_script_rule_t *functions);
void cleave_callbacks_bind_pass(cleave_rule_t *rule, const cleave_script_rule_t *functions);
void cleave_callbacks_bind_stage(cleave_rule_t *rule);
void cleave_callbacks_bind_gradient(cleave_gradient_rule_t *rule, cleave_script_rule_t *functions);

/* MXNet's selector protocol over a Lua function (callbacks_selector.c). */
extern const cleave_selector_functions_t cleave_callbacks_selector;

#endif /* CLEAVE_SCRIPT_RULES_CALLBACK_H */
