// SPDX-License-Identifier: Apache-2.0
/* The table of the kinds of handles: which functions find the fields and the content of each. */
#include "script/handles/handles.h"

void cleave_handles_register(lua_State *state) {
  static const cleave_handle_functions_t KINDS[CLEAVE_HANDLE_KIND_COUNT] = {
      [CLEAVE_HANDLE_NODE] = {cleave_node_handle_index, NULL, NULL},
      [CLEAVE_HANDLE_VALUE] = {cleave_value_handle_index, NULL, NULL},
      [CLEAVE_HANDLE_GRAPH] = {cleave_graph_handle_index, NULL, NULL},
      [CLEAVE_HANDLE_MATCH] = {cleave_match_handle_index, NULL, NULL},
      [CLEAVE_HANDLE_PROPOSAL] = {cleave_proposal_handle_index, NULL, NULL},
      [CLEAVE_HANDLE_ATTRIBUTES] = {cleave_attributes_handle_index, NULL, cleave_attributes_handle_content},
      [CLEAVE_HANDLE_INPUTS] = {cleave_inputs_handle_index, cleave_inputs_handle_length,
                                cleave_inputs_handle_content},
      [CLEAVE_HANDLE_OUTPUTS] = {cleave_outputs_handle_index, cleave_outputs_handle_length,
                                 cleave_outputs_handle_content}};
  for (size_t k = 0; k < CLEAVE_HANDLE_KIND_COUNT; k++) {
    cleave_handle_define(state, (cleave_handle_kind_t)k, &KINDS[k]);
  }
}
