// SPDX-License-Identifier: Apache-2.0
/*
 * Names in a written model. Nodes keep theirs, but those of one name get a number: several may stand for one
 * node of another domain, and ONNX Runtime refuses equal names. Of values, those of inputs and outputs are
 * the users' and come first; the others keep theirs if it is free. An output whose value has another name
 * already gets an Identity.
 */
#include <string.h>

#include "formats/onnx/write/onnx_write.h"
#include "ops/ops.h"

/* "base", or "base_7" if that is among `taken` names. */
static cleave_status_t name_apart(cleave_onnx_writer_t *writer, cleave_strings_t *taken, const char *base,
                                  const char **out_name, cleave_error_t *error) {
  cleave_text_t text = {0};
  cleave_string_t id;
  cleave_text_add(&text, base);
  size_t length = text.length;
  while (!text.failed &&
         (text.length == 0 || cleave_strings_find(taken, text.data, text.length).index != UINT32_MAX)) {
    text.length = length;
    cleave_text_format(&text, "_%llu", (unsigned long long)writer->next_number++);
  }
  cleave_status_t status = cleave_text_check(&text, error);
  CLEAVE_THEN(status, cleave_strings_add(taken, text.data, text.length, &id, error));
  if (status == CLEAVE_OK) {
    *out_name = cleave_strings_text(taken, id);
  }
  cleave_text_deinit(&text);
  return status;
}

static cleave_status_t unique_name(cleave_onnx_writer_t *writer, const char *base, const char **out_name,
                                   cleave_error_t *error) {
  return name_apart(writer, &writer->names, base, out_name, error);
}

cleave_status_t cleave_onnx_name_node(cleave_onnx_writer_t *writer, cleave_node_t node, const char **out_name,
                                      cleave_error_t *error) {
  const char *name = cleave_node_name(writer->graph, node);
  *out_name = name;
  return name[0] == '\0' ? CLEAVE_OK : name_apart(writer, &writer->node_names, name, out_name, error);
}

static cleave_status_t name_inputs(cleave_onnx_writer_t *writer, cleave_error_t *error) {
  const cleave_graph_t *graph = writer->graph;
  for (size_t k = 0; k < graph->inputs.count; k++) {
    cleave_value_t value = graph->inputs.items[k];
    const char *name = cleave_value_name(graph, value);
    CLEAVE_TRY(
        unique_name(writer, name[0] != '\0' ? name : "input", &writer->value_names[value.index], error));
  }
  return CLEAVE_OK;
}

static cleave_status_t name_outputs(cleave_onnx_writer_t *writer, cleave_error_t *error) {
  const cleave_graph_t *graph = writer->graph;
  for (size_t k = 0; k < graph->outputs.count; k++) {
    cleave_value_t value = cleave_graph_output(graph, k);
    const char *name = cleave_graph_output_name(graph, k);
    const char **value_name = &writer->value_names[value.index];
    name = name[0] != '\0' ? name : cleave_value_name(graph, value);
    bool is_free = *value_name != NULL && !writer->is_needed[value.index];
    if (is_free && strcmp(*value_name, name) == 0) { /* an input that is an output */
      writer->output_names[k] = *value_name;
      writer->is_needed[value.index] = true;
      continue;
    }
    CLEAVE_TRY(unique_name(writer, name[0] != '\0' ? name : "output", &writer->output_names[k], error));
    if (*value_name == NULL) {
      *value_name = writer->output_names[k];
      writer->is_needed[value.index] = true;
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t name_others(cleave_onnx_writer_t *writer, cleave_error_t *error) {
  const cleave_graph_t *graph = writer->graph;
  for (uint32_t k = 0; k < cleave_graph_value_bound(graph); k++) {
    cleave_value_t value = {k};
    const cleave_value_record_t *record = cleave_graph_value(graph, value);
    if (record->is_removed || writer->value_names[k] != NULL) {
      continue;
    }
    const char *name = cleave_value_name(graph, value);
    cleave_node_t producer = cleave_value_producer(graph, value);
    const char *base =
        cleave_node_is_live(graph, producer) ? cleave_node_op(graph, producer)->name : "constant";
    CLEAVE_TRY(unique_name(writer, name[0] != '\0' ? name : base, &writer->value_names[k], error));
  }
  return CLEAVE_OK;
}

/* Gives every value and output a unique name (onnx_write_names.c). */
static cleave_status_t name_values(cleave_onnx_writer_t *writer, cleave_error_t *error) {
  CLEAVE_TRY(name_inputs(writer, error));
  CLEAVE_TRY(name_outputs(writer, error));
  return name_others(writer, error);
}

/* ---- the state of a writer ---- */

cleave_status_t cleave_onnx_writer_init(cleave_onnx_writer_t *writer, cleave_error_t *error) {
  const cleave_graph_t *graph = writer->graph;
  size_t value_count = (size_t)cleave_graph_value_bound(graph) + 1;
  writer->value_names = cleave_allocate_zeroed(value_count, sizeof *writer->value_names);
  writer->is_needed = cleave_allocate_zeroed(value_count, sizeof *writer->is_needed);
  writer->output_names = cleave_allocate_zeroed(graph->outputs.count + 1, sizeof *writer->output_names);
  CLEAVE_TRY_MEMORY(writer->value_names != NULL && writer->is_needed != NULL && writer->output_names != NULL,
                    error);
  CLEAVE_TRY(cleave_groups_init(&writer->groups, graph, writer->options->groups, writer->options->group_count,
                                error));
  return name_values(writer, error);
}

void cleave_onnx_writer_deinit(cleave_onnx_writer_t *writer) {
  cleave_groups_deinit(&writer->groups);
  cleave_strings_deinit(&writer->names);
  cleave_strings_deinit(&writer->node_names);
  cleave_free(writer->value_names);
  cleave_free(writer->output_names);
  cleave_free(writer->is_needed);
  cleave_array_free(&writer->domains);
}
