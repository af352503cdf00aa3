// SPDX-License-Identifier: Apache-2.0
/* The table of the kinds of handles: which function finds the fields of each. */
#include "script/handles/handles.h"

void cleave_handles_register(lua_State *state) {
  static const struct {
    cleave_handle_kind_t kind;
    lua_CFunction index;
    lua_CFunction length; /* NULL: it has none */
  } KINDS[CLEAVE_HANDLE_KIND_COUNT] = {
      {CLEAVE_HANDLE_NODE, cleave_node_handle_index, NULL},
      {CLEAVE_HANDLE_VALUE, cleave_value_handle_index, NULL},
      {CLEAVE_HANDLE_GRAPH, cleave_graph_handle_index, NULL},
      {CLEAVE_HANDLE_MATCH, cleave_match_handle_index, NULL},
      {CLEAVE_HANDLE_PROPOSAL, cleave_proposal_handle_index, NULL},
      {CLEAVE_HANDLE_ATTRIBUTES, cleave_attributes_handle_index, NULL},
      {CLEAVE_HANDLE_INPUTS, cleave_inputs_handle_index, cleave_inputs_handle_length},
      {CLEAVE_HANDLE_OUTPUTS, cleave_outputs_handle_index, cleave_outputs_handle_length}};
  for (size_t k = 0; k < CLEAVE_HANDLE_KIND_COUNT; k++) {
    cleave_handle_define(state, KINDS[k].kind, KINDS[k].index, KINDS[k].length);
  }
}
