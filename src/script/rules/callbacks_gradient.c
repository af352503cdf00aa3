// SPDX-License-Identifier: Apache-2.0
/* Callbacks of `gradient`: function(g, node, dy, ...) -> gradient of input 1, of input 2 ... */

#include "script/rules/callback.h"

typedef struct gradient_call {
  const cleave_script_rule_t *rule;
  cleave_gradient_call_t *call;
  cleave_builder_t builder;
} gradient_call_t;

/* A number stands for a tensor of that value, whatever the input's shape: only values are sure to fit. */
static void read_result(lua_State *state, cleave_gradient_call_t *call, int index) {
  uint32_t input = (uint32_t)index - 1;
  if (lua_isnil(state, index)) {
    return;
  }
  if (lua_isboolean(state, index) && !lua_toboolean(state, index)) {
    call->is_zero[input] = true;
    return;
  }
  if (lua_type(state, index) != LUA_TUSERDATA) {
    cleave_script_raise(state,
                        "result %d is a %s, expected the gradient of input %d: a value, false where no "
                        "gradient passes, or nil",
                        index, luaL_typename(state, index), index);
  }
  call->inputs[input] =
      cleave_builder_read_value(state, index, CLEAVE_DTYPE_UNKNOWN, "gradient: what it returns");
}

static void run_apply(lua_State *state, void *context) {
  const gradient_call_t *gradient = context;
  cleave_gradient_call_t *call = gradient->call;
  luaL_checkstack(state, (int)call->output_count + 8, NULL);
  cleave_callback_push(state, gradient->rule->apply);
  cleave_builder_push(state);
  cleave_handle_push_node(state, call->node);
  for (uint32_t k = 0; k < call->output_count; k++) {
    cleave_handle_push_value(state, call->outputs[k]);
  }
  lua_call(state, (int)call->output_count + 2, LUA_MULTRET);
  int count = lua_gettop(state);
  if (count == 0) {
    cleave_script_raise(state, "the function returned nothing, expected the gradient of each input");
  }
  for (; count > (int)call->input_count; count--) {
    if (lua_toboolean(state, count)) {
      cleave_script_raise(state, "result %d is a gradient, but the node has %d input%s", count,
                          (int)call->input_count, CLEAVE_PLURAL(call->input_count));
    }
  }
  luaL_checkstack(state, 16, NULL);
  for (int k = 1; k <= count; k++) {
    read_result(state, call, k);
  }
}

static cleave_status_t apply(void *context, cleave_editor_t *editor, cleave_gradient_call_t *call,
                             cleave_error_t *error) {
  gradient_call_t gradient = {.rule = context, .call = call};
  /* It has the budget of a pass, because recurrent layers become the nodes of all their steps. */
  cleave_callback_t edit = {
      .node = call->node, .body = run_apply, .context = &gradient, .budget = CLEAVE_SCRIPT_PASS_BUDGET};
  cleave_status_t status = cleave_callback_edit(gradient.rule, &gradient.builder, editor, &edit, error);
  cleave_array_free(&gradient.builder.facts);
  cleave_arena_deinit(&gradient.builder.arena);
  return status;
}

void cleave_callbacks_bind_gradient(cleave_gradient_rule_t *rule, cleave_script_rule_t *functions) {
  rule->name = functions->name;
  rule->context = functions;
  rule->calls = functions->calls;
  rule->apply = functions->apply != LUA_NOREF ? apply : NULL;
}
