// SPDX-License-Identifier: Apache-2.0
// Replays a log. Nothing in it is trusted: every step goes through the editor's checks, and the node or value
// that it makes must have the id that the log says.
#include "partition/rewrite/editor.h"

#define MAX_WORK ((size_t)500000000)

static cleave_status_t fail(const cleave_edit_t *edit, const char *what, cleave_error_t *error) {
  return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "%s: %s", cleave_edit_kind_name(edit->kind),
                          what);
}

static cleave_status_t add_node(cleave_editor_t *editor, const cleave_edit_t *edit, cleave_error_t *error) {
  const cleave_op_t *op = cleave_op_find(edit->domain, edit->op);
  cleave_node_t node = CLEAVE_NODE_NONE;
  if (op == NULL) {
    CLEAVE_TRY(cleave_graph_custom_op(editor->graph, edit->domain, edit->op, 1, &op, error));
  }
  CLEAVE_TRY(cleave_editor_add_node(editor, op, edit, &node, error));
  return node.index == edit->node.index ? CLEAVE_OK : fail(edit, "it makes another node", error);
}

static cleave_status_t perform(cleave_editor_t *editor, const cleave_edit_t *edit, cleave_error_t *error) {
  cleave_value_t value = CLEAVE_VALUE_NONE;
  switch (edit->kind) {
    case CLEAVE_EDIT_ADD_NODE: return add_node(editor, edit, error);
    case CLEAVE_EDIT_ADD_CONSTANT:
      CLEAVE_TRY(cleave_editor_add_constant(editor, edit->name, edit->tensor, &value, error));
      return value.index == edit->value.index ? CLEAVE_OK : fail(edit, "it makes another value", error);
    case CLEAVE_EDIT_ADD_INPUT:
      CLEAVE_TRY(
          cleave_editor_add_input(editor, edit->name, edit->dtype, edit->rank, edit->dims, &value, error));
      return value.index == edit->value.index ? CLEAVE_OK : fail(edit, "it makes another value", error);
    case CLEAVE_EDIT_REPLACE_USES:
      editor->first_node = edit->index;
      return cleave_editor_replace_uses(editor, edit->other, edit->value, error);
    case CLEAVE_EDIT_SET_INPUT:
      return cleave_editor_set_input(editor, edit->node, edit->index, edit->value, error);
    case CLEAVE_EDIT_SET_ATTRIBUTE:
      if (edit->attribute_count != 1) {
        return fail(edit, "expected one attribute", error);
      }
      return cleave_editor_set_attribute(editor, edit->node, &edit->attributes[0], error);
    case CLEAVE_EDIT_SET_OUTPUT: return cleave_editor_set_output(editor, edit->index, edit->value, error);
    case CLEAVE_EDIT_REMOVE_NODE: return cleave_editor_remove_node(editor, edit->node, error);
    case CLEAVE_EDIT_NAME_NODE: return cleave_editor_name_node(editor, edit->node, edit->name, error);
    case CLEAVE_EDIT_NAME_VALUE: return cleave_editor_name_value(editor, edit->value, edit->name, error);
    case CLEAVE_EDIT_READ_CONSTANT:
      return edit->value.index < editor->graph->values.count &&
                     cleave_value_is_constant(editor->graph, edit->value)
                 ? CLEAVE_OK
                 : fail(edit, "there is no such constant", error);
    case CLEAVE_EDIT_READ_SIZES:
      return edit->value.index < editor->graph->values.count ? CLEAVE_OK
                                                             : fail(edit, "there is no such value", error);
    case CLEAVE_EDIT_FOLD: return cleave_editor_fold(editor, error);
  }
  return fail(edit, "no such change", error);
}

cleave_status_t cleave_editor_replay_step(cleave_editor_t *editor, const cleave_edits_t *edits, size_t index,
                                          cleave_error_t *error) {
  const cleave_edit_t *edit = &edits->items.items[index];
  cleave_error_t cause = CLEAVE_ERROR_INIT;
  editor->line = edit->line;
  cleave_status_t status = edit->kind == CLEAVE_EDIT_REPLACE_USES && edit->index < edits->source_nodes
                               ? fail(edit, "nodes of the graph itself are not new", &cause)
                           : editor->work > MAX_WORK ? fail(edit, "the log of changes is too long", &cause)
                                                     : perform(editor, edit, &cause);
  editor->changed.count = 0;
  editor->removed.count = 0;
  if (status == CLEAVE_ERROR_OUT_OF_MEMORY) {
    return cleave_error_out_of_memory(error);
  }
  return status == CLEAVE_OK ? CLEAVE_OK
                             : cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "change %zu: %.600s",
                                                index, cause.message);
}

cleave_status_t cleave_editor_replay(cleave_editor_t *editor, const cleave_edits_t *edits,
                                     cleave_error_t *error) {
  for (size_t k = 0; k < edits->items.count; k++) {
    CLEAVE_TRY(cleave_editor_replay_step(editor, edits, k, error));
  }
  return cleave_editor_settle(editor, error);
}
