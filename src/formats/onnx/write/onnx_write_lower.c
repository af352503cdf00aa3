// SPDX-License-Identifier: Apache-2.0
/*
 * Functions for operators that the operator set lacks. Equal bodies are one function; bodies may need bodies
 * of their own. A function is named after its operator, with a number from the second body on: operators have
 * no '_' in their names, so that the reader finds the operator again.
 */
#include <stdio.h>
#include <string.h>

#include "formats/onnx/onnx_proto.h"
#include "formats/onnx/write/onnx_lowering.h"
#include "formats/onnx/write/onnx_write.h"
#include "system/digest.h"

enum { MAX_DEPTH = 8 };

/* Inputs, outputs, attributes and nodes: all but the function's name. */
static cleave_status_t put_content(cleave_onnx_writer_t *inner, const cleave_onnx_record_t *record,
                                   cleave_text_t *out, cleave_error_t *error) {
  const cleave_graph_t *graph = inner->graph;
  for (size_t k = 0; k < graph->inputs.count; k++) {
    cleave_protobuf_put_text(out, ONNX_FUNCTION_INPUT, inner->value_names[graph->inputs.items[k].index]);
  }
  for (size_t k = 0; k < graph->outputs.count; k++) {
    cleave_protobuf_put_text(out, ONNX_FUNCTION_OUTPUT, inner->output_names[k]);
  }
  for (size_t k = 0; k < record->attributes.count; k++) {
    cleave_protobuf_put_text(out, ONNX_FUNCTION_ATTRIBUTE, record->attributes.items[k].name);
  }
  for (uint32_t k = 0; k < cleave_graph_value_bound(graph); k++) {
    cleave_tensor_t *tensor = cleave_graph_value(graph, (cleave_value_t){k})->tensor;
    if (tensor != NULL && cleave_graph_value(graph, (cleave_value_t){k})->use_count > 0) {
      cleave_onnx_put_constant(out, ONNX_FUNCTION_NODE, tensor, inner->value_names[k]);
    }
  }
  CLEAVE_TRY(cleave_onnx_put_level(inner, CLEAVE_INDEX_NONE, ONNX_FUNCTION_NODE, out, error));
  for (size_t k = 0; k < graph->outputs.count; k++) {
    const char *name = inner->value_names[cleave_graph_output(graph, k).index];
    if (strcmp(name, inner->output_names[k]) != 0) {
      cleave_onnx_put_identity(out, ONNX_FUNCTION_NODE, name, inner->output_names[k]);
    }
  }
  cleave_onnx_put_opsets(inner, ONNX_FUNCTION_OPSET_IMPORT, out);
  cleave_protobuf_put_text(out, ONNX_FUNCTION_DOMAIN, CLEAVE_ONNX_OPERATOR_DOMAIN);
  return cleave_text_check(out, error);
}

static cleave_status_t name_function(cleave_onnx_functions_t *functions, const char *op,
                                     cleave_string_t *out_name, cleave_error_t *error) {
  char name[96];
  (void)snprintf(name, sizeof name, "%s", op);
  for (unsigned k = 1; cleave_strings_find(&functions->names, name, strlen(name)).index != UINT32_MAX; k++) {
    (void)snprintf(name, sizeof name, "%s_%u", op, k);
  }
  return cleave_strings_add(&functions->names, name, strlen(name), out_name, error);
}

/* The function with this content, which is added if it is new. */
static cleave_status_t find_function(cleave_onnx_functions_t *functions, const char *op,
                                     const cleave_text_t *content, const char **out_name,
                                     cleave_error_t *error) {
  cleave_digest_t digest = cleave_digest_bytes(cleave_text_get(content), content->length);
  cleave_string_t key;
  char text[128];
  int length = snprintf(text, sizeof text, "%s %016llx%016llx", op, (unsigned long long)digest.words[0],
                        (unsigned long long)digest.words[1]);
  CLEAVE_TRY(cleave_strings_add(&functions->keys, text, (size_t)length, &key, error));
  if (key.index >= functions->capacity) {
    uint32_t capacity = 2 * key.index + 16;
    cleave_string_t *names = cleave_reallocate(functions->name_of, capacity, sizeof *names);
    CLEAVE_TRY_MEMORY(names, error);
    memset(names + functions->capacity, 0, (capacity - functions->capacity) * sizeof *names);
    functions->name_of = names;
    functions->capacity = capacity;
  }
  cleave_string_t *name = &functions->name_of[key.index];
  if (name->index == 0) {
    CLEAVE_TRY(name_function(functions, op, name, error));
    size_t mark = cleave_protobuf_begin(&functions->text, ONNX_MODEL_FUNCTIONS);
    cleave_protobuf_put_text(&functions->text, ONNX_FUNCTION_NAME,
                             cleave_strings_text(&functions->names, *name));
    cleave_text_append(&functions->text, cleave_text_get(content), content->length);
    cleave_protobuf_end(&functions->text, mark);
  }
  *out_name = cleave_strings_text(&functions->names, *name);
  return cleave_text_check(&functions->text, error);
}

static cleave_status_t put_body(const cleave_onnx_record_t *record, const cleave_graph_t *body,
                                const char **out_name, cleave_error_t *error) {
  static const cleave_onnx_write_options_t plain = {0};
  cleave_onnx_functions_t *functions = record->writer->functions;
  cleave_onnx_writer_t inner = {.graph = body,
                                .options = &plain,
                                .opset_version = record->writer->opset_version,
                                .functions = functions};
  cleave_text_t content = {0};
  functions->depth++;
  cleave_status_t status = cleave_onnx_writer_init(&inner, error);
  CLEAVE_THEN(status, put_content(&inner, record, &content, error));
  CLEAVE_THEN(status, find_function(functions, record->op->name, &content, out_name, error));
  functions->depth--;
  cleave_text_deinit(&content);
  cleave_onnx_writer_deinit(&inner);
  return status;
}

/* The next operator set in which the node can be written; 0: there is none. */
static int32_t find_opset(const cleave_onnx_record_t *record) {
  cleave_onnx_writer_t *writer = record->writer;
  cleave_onnx_functions_t *functions = writer->functions;
  int32_t asked = writer->opset_version;
  int32_t found = 0;
  functions->is_trial = true;
  for (int32_t opset = asked + 1; opset <= CLEAVE_ONNX_NEWEST && found == 0; opset++) {
    cleave_text_t scratch = {0};
    cleave_onnx_record_t trial = {.writer = writer, .node = record->node, .out = &scratch};
    writer->opset_version = opset;
    found = cleave_onnx_put_node(&trial, false, ONNX_GRAPH_NODE, NULL) == CLEAVE_OK ? opset : 0;
    cleave_text_deinit(&scratch);
    cleave_array_free(&trial.inputs);
    cleave_array_free(&trial.attributes);
  }
  writer->opset_version = asked;
  functions->is_trial = false;
  return found;
}

static cleave_status_t refuse(const cleave_onnx_record_t *record, const char *reason, cleave_error_t *error) {
  const cleave_onnx_writer_t *writer = record->writer;
  if (writer->functions->depth > 0 || writer->functions->is_trial) {
    return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED, "%s: %s", record->op->name, reason);
  }
  char label[128];
  char hint[32] = "";
  int32_t opset = find_opset(record);
  if (opset > 0) {
    (void)snprintf(hint, sizeof hint, "; opset %d can", (int)opset);
  }
  return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED,
                          "node '%s': operator '%s' (opset %d) cannot be written in opset %d: %s%s",
                          cleave_node_label(writer->graph, record->node, label, sizeof label),
                          record->op->name, (int)record->op->since_version, (int)writer->opset_version,
                          reason, hint);
}

cleave_status_t cleave_onnx_put_lowered(cleave_onnx_record_t *record, bool is_main, uint32_t field,
                                        cleave_error_t *error) {
  cleave_graph_t *body = NULL;
  const char *reason = NULL;
  const char *name = NULL;
  char refusal[sizeof record->refusal];
  cleave_error_t cause = CLEAVE_ERROR_INIT;
  (void)snprintf(refusal, sizeof refusal, "%s", record->refusal);
  cleave_dtype_t refused = record->refused_dtype;
  CLEAVE_TRY(cleave_onnx_fill_record(record, error));
  if (record->writer->functions->depth < MAX_DEPTH) {
    CLEAVE_TRY(cleave_onnx_lower(record->writer->graph, record->node, refused, &body, &reason, error));
  }
  if (body == NULL) {
    return refuse(record, reason != NULL ? reason : refusal, error);
  }
  cleave_status_t status = put_body(record, body, &name, &cause);
  cleave_graph_destroy(body);
  if (status == CLEAVE_ERROR_UNSUPPORTED) { /* of a wider type: the node's own is what there is no form for */
    return refuse(record, refused != CLEAVE_DTYPE_UNKNOWN ? refusal : cause.message, error);
  }
  if (status != CLEAVE_OK) {
    return cleave_error_set(error, status, "%s", cause.message);
  }
  return cleave_onnx_put_record(record, name, CLEAVE_ONNX_OPERATOR_DOMAIN, is_main, field, error);
}

void cleave_onnx_functions_deinit(cleave_onnx_functions_t *functions) {
  cleave_text_deinit(&functions->text);
  cleave_strings_deinit(&functions->keys);
  cleave_strings_deinit(&functions->names);
  cleave_free(functions->name_of);
}
