// SPDX-License-Identifier: Apache-2.0
/* The table of the kinds of handles: what each has. */
#include "script/handles/handles.h"

void cleave_handles_register(lua_State *state) {
  static const cleave_handle_definition_t KINDS[CLEAVE_HANDLE_KIND_COUNT] = {
      [CLEAVE_HANDLE_NODE] = {.fields = cleave_node_handle_fields},
      [CLEAVE_HANDLE_VALUE] = {.fields = cleave_value_handle_fields},
      [CLEAVE_HANDLE_GRAPH] = {.fields = cleave_graph_handle_fields},
      [CLEAVE_HANDLE_MATCH] = {.fields = cleave_match_handle_fields, .index = cleave_match_handle_index},
      [CLEAVE_HANDLE_PROPOSAL] = {.fields = cleave_proposal_handle_fields},
      [CLEAVE_HANDLE_ATTRIBUTES] = {.index = cleave_attributes_handle_index,
                                    .content = cleave_attributes_handle_content},
      [CLEAVE_HANDLE_INPUTS] = {.index = cleave_inputs_handle_index,
                                .length = cleave_inputs_handle_length,
                                .content = cleave_inputs_handle_content},
      [CLEAVE_HANDLE_OUTPUTS] = {.index = cleave_outputs_handle_index,
                                 .length = cleave_outputs_handle_length,
                                 .content = cleave_outputs_handle_content}};
  for (size_t k = 0; k < CLEAVE_HANDLE_KIND_COUNT; k++) {
    cleave_handle_define(state, (cleave_handle_kind_t)k, &KINDS[k]);
  }
}
