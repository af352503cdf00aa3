// SPDX-License-Identifier: Apache-2.0
/*
 * ModelProto, GraphProto and NodeProto. The model is walked twice: opset imports and functions come after the
 * graph in the file, but the nodes need them.
 */
#include "formats/onnx/onnx_model.h"

#include <string.h>

#include "formats/onnx/onnx.h"
#include "formats/onnx/onnx_proto.h"
#include "ops/ops.h"

static const char *canonical_domain(const char *domain) {
  return strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

int32_t cleave_onnx_opset_version(const cleave_onnx_opsets_t *opsets, const char *domain) {
  for (size_t k = 0; k < opsets->count; k++) {
    if (strcmp(opsets->items[k].domain, domain) == 0) {
      return opsets->items[k].version;
    }
  }
  return 0;
}

/* Refuses newer operator sets unless asked to be lenient: what they changed is unknown. */
static cleave_status_t check_newest(cleave_onnx_model_t *model, cleave_onnx_opset_t *opset,
                                    cleave_error_t *error) {
  int32_t newest = cleave_op_newest_version(opset->domain);
  if (newest == 0 || opset->version <= newest) {
    return CLEAVE_OK;
  }
  if (!model->options->lenient) {
    return cleave_error_set(
        error, CLEAVE_ERROR_UNSUPPORTED,
        "opset %d of %s is newer than %d, the newest that is known (--lenient reads it as "
        "that one)",
        (int)opset->version, opset->domain[0] == '\0' ? "ai.onnx" : opset->domain, (int)newest);
  }
  model->newer_version = opset->domain[0] == '\0' ? opset->version : model->newer_version;
  opset->version = newest;
  return CLEAVE_OK;
}

cleave_status_t cleave_onnx_opset_parse(cleave_onnx_model_t *model, const cleave_protobuf_t *parent,
                                        const cleave_protobuf_field_t *field, cleave_onnx_opsets_t *opsets,
                                        cleave_error_t *error) {
  cleave_protobuf_t reader;
  cleave_protobuf_field_t part;
  const char *domain = "";
  int64_t version = 0;
  CLEAVE_TRY(cleave_protobuf_enter(parent, field, "OperatorSetIdProto", &reader, error));
  while (cleave_protobuf_next(&reader, &part, error)) {
    if (part.number == ONNX_OPSET_DOMAIN) {
      CLEAVE_TRY(cleave_protobuf_expect(&reader, &part, CLEAVE_WIRE_BYTES, error));
      CLEAVE_TRY(cleave_onnx_intern(model, part.bytes, &domain, error));
    } else if (part.number == ONNX_OPSET_VERSION) {
      CLEAVE_TRY(cleave_protobuf_int(&reader, &part, &version, error));
    }
  }
  CLEAVE_TRY(reader.status);
  if (version < 1 || version > INT32_MAX) {
    return cleave_error_set(error, CLEAVE_ERROR_FORMAT,
                            "opset of domain '%s': expected a version from 1, found %lld", domain,
                            (long long)version);
  }
  cleave_onnx_opset_t opset = {canonical_domain(domain), (int32_t)version};
  CLEAVE_TRY(check_newest(model, &opset, error));
  if (cleave_onnx_opset_version(opsets, opset.domain) == 0) {
    CLEAVE_ARRAY_PUSH(opsets, opset, error);
  }
  return CLEAVE_OK;
}

/* Attributes are searched one after the other; no operator has more than a dozen. */
enum { MAX_ATTRIBUTES = 512 };

typedef struct node_counts {
  size_t inputs;
  size_t outputs;
  size_t attributes;
} node_counts_t;

static cleave_status_t count_node(cleave_onnx_model_t *model, const cleave_protobuf_t *message,
                                  cleave_onnx_node_t *node, node_counts_t *counts, cleave_error_t *error) {
  cleave_protobuf_t reader = *message;
  cleave_protobuf_field_t field;
  while (cleave_protobuf_next(&reader, &field, error)) {
    const char **text = NULL;
    switch (field.number) {
      case ONNX_NODE_INPUT: counts->inputs++; break;
      case ONNX_NODE_OUTPUT: text = counts->outputs++ == 0 ? &node->label : NULL; break;
      case ONNX_NODE_ATTRIBUTE: counts->attributes++; break;
      case ONNX_NODE_NAME: text = &node->name; break;
      case ONNX_NODE_OP_TYPE: text = &node->op_type; break;
      case ONNX_NODE_DOMAIN: text = &node->domain; break;
      case ONNX_NODE_OVERLOAD: text = &node->overload; break;
      default: continue;
    }
    CLEAVE_TRY(cleave_protobuf_expect(&reader, &field, CLEAVE_WIRE_BYTES, error));
    if (text != NULL) {
      CLEAVE_TRY(cleave_onnx_intern(model, field.bytes, text, error));
    }
  }
  return reader.status;
}

static cleave_status_t fill_node(cleave_onnx_model_t *model, cleave_strings_t *names,
                                 const cleave_protobuf_t *message, cleave_onnx_node_t *node,
                                 cleave_error_t *error) {
  cleave_protobuf_t reader = *message;
  cleave_protobuf_field_t field;
  while (cleave_protobuf_next(&reader, &field, error)) {
    cleave_string_t *name = NULL;
    switch (field.number) {
      case ONNX_NODE_INPUT: name = &node->inputs[node->input_count++]; break;
      case ONNX_NODE_OUTPUT: name = &node->outputs[node->output_count++]; break;
      case ONNX_NODE_ATTRIBUTE: {
        cleave_protobuf_t attribute;
        CLEAVE_TRY(cleave_protobuf_enter(&reader, &field, "AttributeProto", &attribute, error));
        CLEAVE_TRY(
            cleave_onnx_attribute_parse(model, &attribute, &node->attributes[node->attribute_count], error));
        node->attribute_count++;
        break;
      }
      default: break;
    }
    if (name != NULL) {
      CLEAVE_TRY(cleave_onnx_add_name(names, field.bytes, name, error));
    }
  }
  return reader.status;
}

cleave_status_t cleave_onnx_node_parse(cleave_onnx_model_t *model, cleave_strings_t *names,
                                       const cleave_onnx_opsets_t *opsets, const cleave_protobuf_t *message,
                                       cleave_onnx_node_t *out_node, cleave_error_t *error) {
  cleave_onnx_node_t node = {.op_type = "", .domain = "", .overload = "", .name = "", .label = ""};
  node_counts_t counts = {0};
  CLEAVE_TRY(count_node(model, message, &node, &counts, error));
  node.label = node.name[0] != '\0' ? node.name : node.label;
  if (node.op_type[0] == '\0') {
    return cleave_error_set(error, CLEAVE_ERROR_FORMAT, "node '%s' has no operator", node.label);
  }
  if (counts.inputs > UINT16_MAX || counts.outputs > UINT16_MAX || counts.attributes > MAX_ATTRIBUTES) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT,
                            "node '%s': operator '%s' has too many inputs, outputs or attributes", node.label,
                            node.op_type);
  }
  node.inputs = cleave_arena_allocate(&model->arena, counts.inputs, sizeof *node.inputs);
  node.outputs = cleave_arena_allocate(&model->arena, counts.outputs, sizeof *node.outputs);
  node.attributes = cleave_arena_allocate(&model->arena, counts.attributes, sizeof *node.attributes);
  CLEAVE_TRY_MEMORY(node.inputs != NULL && node.outputs != NULL && node.attributes != NULL, error);
  cleave_error_t reason = CLEAVE_ERROR_INIT;
  cleave_status_t status = fill_node(model, names, message, &node, &reason);
  if (status != CLEAVE_OK) {
    return cleave_error_set(error, status, "node '%s': operator '%s': %s", node.label, node.op_type,
                            reason.message);
  }
  node.domain = canonical_domain(node.domain);
  node.version = cleave_onnx_opset_version(opsets, node.domain);
  *out_node = node;
  return CLEAVE_OK;
}

cleave_status_t cleave_onnx_initializer_parse(cleave_onnx_model_t *model, cleave_strings_t *names,
                                              const cleave_protobuf_t *parent,
                                              const cleave_protobuf_field_t *field,
                                              cleave_onnx_initializer_t *out_initializer,
                                              cleave_error_t *error) {
  cleave_protobuf_t message;
  cleave_bytes_t name;
  CLEAVE_TRY(cleave_array_reserve(&model->tensors, 1, error));
  bool is_sparse = field->number == ONNX_GRAPH_SPARSE_INITIALIZER;
  CLEAVE_TRY(
      cleave_protobuf_enter(parent, field, is_sparse ? "SparseTensorProto" : "TensorProto", &message, error));
  CLEAVE_TRY((is_sparse ? cleave_onnx_sparse_parse : cleave_onnx_tensor_parse)(
      &model->source, &message, &name, &out_initializer->tensor, error));
  cleave_array_push_reserved(&model->tensors, out_initializer->tensor);
  return cleave_onnx_add_name(names, name, &out_initializer->name, error);
}

static cleave_status_t parse_value_info(cleave_onnx_model_t *model, const cleave_protobuf_t *parent,
                                        const cleave_protobuf_field_t *field,
                                        cleave_onnx_value_info_t *out_info, cleave_error_t *error) {
  cleave_protobuf_t message;
  CLEAVE_TRY(cleave_protobuf_enter(parent, field, "ValueInfoProto", &message, error));
  return cleave_onnx_value_info_parse(model, &message, out_info, error);
}

static cleave_status_t parse_graph_field(cleave_onnx_model_t *model, const cleave_protobuf_t *reader,
                                         const cleave_protobuf_field_t *field, cleave_error_t *error) {
  cleave_onnx_value_info_t info;
  cleave_onnx_initializer_t initializer;
  switch (field->number) {
    case ONNX_GRAPH_NODE: {
      cleave_protobuf_t message;
      cleave_onnx_node_t node;
      CLEAVE_TRY(cleave_protobuf_enter(reader, field, "NodeProto", &message, error));
      CLEAVE_TRY(
          cleave_onnx_node_parse(model, &model->graph->strings, &model->opsets, &message, &node, error));
      CLEAVE_ARRAY_PUSH(&model->nodes, node, error);
      return CLEAVE_OK;
    }
    case ONNX_GRAPH_NAME:
      CLEAVE_TRY(cleave_protobuf_expect(reader, field, CLEAVE_WIRE_BYTES, error));
      return cleave_onnx_intern(model, field->bytes, &model->graph_name, error);
    case ONNX_GRAPH_INITIALIZER:
    case ONNX_GRAPH_SPARSE_INITIALIZER:
      CLEAVE_TRY(
          cleave_onnx_initializer_parse(model, &model->graph->strings, reader, field, &initializer, error));
      CLEAVE_ARRAY_PUSH(&model->initializers, initializer, error);
      return CLEAVE_OK;
    case ONNX_GRAPH_INPUT:
      CLEAVE_TRY(parse_value_info(model, reader, field, &info, error));
      CLEAVE_ARRAY_PUSH(&model->inputs, info, error);
      return CLEAVE_OK;
    case ONNX_GRAPH_OUTPUT:
      CLEAVE_TRY(parse_value_info(model, reader, field, &info, error));
      CLEAVE_ARRAY_PUSH(&model->outputs, info, error);
      return CLEAVE_OK;
    case ONNX_GRAPH_VALUE_INFO:
      CLEAVE_TRY(parse_value_info(model, reader, field, &info, error));
      CLEAVE_ARRAY_PUSH(&model->value_infos, info, error);
      return CLEAVE_OK;
    default: return CLEAVE_OK;
  }
}

static cleave_status_t parse_graph(cleave_onnx_model_t *model, cleave_protobuf_t *graph,
                                   cleave_error_t *error) {
  cleave_protobuf_field_t field;
  while (cleave_protobuf_next(graph, &field, error)) {
    CLEAVE_TRY(parse_graph_field(model, graph, &field, error));
  }
  return graph->status;
}

/* Name and domain of a function; the rest is parsed when it is called. */
static cleave_status_t parse_function(cleave_onnx_model_t *model, const cleave_protobuf_t *parent,
                                      const cleave_protobuf_field_t *field, cleave_error_t *error) {
  cleave_onnx_body_t body = {.name = "", .domain = "", .overload = ""};
  CLEAVE_TRY(cleave_protobuf_enter(parent, field, "FunctionProto", &body.message, error));
  cleave_protobuf_t reader = body.message;
  cleave_protobuf_field_t part;
  while (cleave_protobuf_next(&reader, &part, error)) {
    const char **text = NULL;
    switch (part.number) {
      case ONNX_FUNCTION_NAME: text = &body.name; break;
      case ONNX_FUNCTION_DOMAIN: text = &body.domain; break;
      case ONNX_FUNCTION_OVERLOAD: text = &body.overload; break;
      default: break;
    }
    if (text != NULL) {
      CLEAVE_TRY(cleave_protobuf_expect(&reader, &part, CLEAVE_WIRE_BYTES, error));
      CLEAVE_TRY(cleave_onnx_intern(model, part.bytes, text, error));
    }
  }
  CLEAVE_TRY(reader.status);
  body.domain = canonical_domain(body.domain);
  CLEAVE_ARRAY_PUSH(&model->bodies, body, error);
  return CLEAVE_OK;
}

cleave_status_t cleave_onnx_model_parse(cleave_onnx_model_t *model, const void *data, size_t size,
                                        cleave_error_t *error) {
  cleave_protobuf_t reader;
  cleave_protobuf_field_t field;
  cleave_protobuf_t graph;
  bool has_graph = false;
  int64_t ir_version = 0;
  model->graph_name = "";
  cleave_protobuf_init(&reader, data, size, "ModelProto");
  while (cleave_protobuf_next(&reader, &field, error)) {
    if (field.number == ONNX_MODEL_IR_VERSION) {
      CLEAVE_TRY(cleave_protobuf_int(&reader, &field, &ir_version, error));
    } else if (field.number == ONNX_MODEL_OPSET_IMPORT) {
      CLEAVE_TRY(cleave_onnx_opset_parse(model, &reader, &field, &model->opsets, error));
    } else if (field.number == ONNX_MODEL_METADATA_PROPS) {
      cleave_bytes_t key;
      cleave_bytes_t value;
      CLEAVE_TRY(cleave_onnx_entry_parse(&reader, &field, &key, &value, error));
      model->order = cleave_onnx_bytes_are(key, CLEAVE_ONNX_ORDER_KEY) ? value : model->order;
    } else if (field.number == ONNX_MODEL_FUNCTIONS) {
      CLEAVE_TRY(parse_function(model, &reader, &field, error));
    } else if (field.number == ONNX_MODEL_GRAPH) {
      CLEAVE_TRY(cleave_protobuf_enter(&reader, &field, "GraphProto", &graph, error));
      has_graph = true;
    }
  }
  CLEAVE_TRY(reader.status);
  if (ir_version < 1 || ir_version > INT32_MAX || !has_graph) {
    return cleave_error_set(error, CLEAVE_ERROR_FORMAT, "not an ONNX model: it has no %s",
                            has_graph ? "IR version" : "graph");
  }
  if (ir_version < 3) {
    return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED,
                            "IR version %lld is not supported, expected 3 or later", (long long)ir_version);
  }
  model->ir_version = (int32_t)ir_version;
  return parse_graph(model, &graph, error);
}

static void deinit_body(cleave_onnx_body_t *body) {
  cleave_strings_deinit(&body->names);
  cleave_array_free(&body->opsets);
  cleave_array_free(&body->nodes);
  cleave_array_free(&body->inputs);
  cleave_array_free(&body->outputs);
  cleave_array_free(&body->defaults);
  cleave_array_free(&body->initializers);
}

void cleave_onnx_model_deinit(cleave_onnx_model_t *model) {
  for (size_t k = 0; k < model->bodies.count; k++) {
    deinit_body(&model->bodies.items[k]);
  }
  for (size_t k = 0; k < model->branches.count; k++) {
    deinit_body(model->branches.items[k]);
  }
  for (size_t k = 0; k < model->tensors.count; k++) {
    cleave_tensor_release(model->tensors.items[k]);
  }
  cleave_array_free(&model->opsets);
  cleave_array_free(&model->nodes);
  cleave_array_free(&model->bodies);
  cleave_array_free(&model->branches);
  cleave_array_free(&model->initializers);
  cleave_array_free(&model->inputs);
  cleave_array_free(&model->outputs);
  cleave_array_free(&model->value_infos);
  cleave_array_free(&model->tensors);
  cleave_onnx_source_deinit(&model->source);
  cleave_arena_deinit(&model->arena);
}
