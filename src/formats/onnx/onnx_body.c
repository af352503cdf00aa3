// SPDX-License-Identifier: Apache-2.0
/* Bodies: FunctionProto of a model-local function, GraphProto of a branch. Their names are local ones. */
#include <string.h>

#include "formats/onnx/onnx_model.h"
#include "formats/onnx/onnx_proto.h"

static cleave_status_t parse_function_field(cleave_onnx_model_t *model, cleave_onnx_body_t *body,
                                            const cleave_protobuf_t *reader,
                                            const cleave_protobuf_field_t *field, cleave_error_t *error) {
  cleave_protobuf_t message;
  cleave_string_t name;
  switch (field->number) {
    case ONNX_FUNCTION_INPUT:
    case ONNX_FUNCTION_OUTPUT:
      CLEAVE_TRY(cleave_protobuf_expect(reader, field, CLEAVE_WIRE_BYTES, error));
      CLEAVE_TRY(cleave_onnx_add_name(&body->names, field->bytes, &name, error));
      if (field->number == ONNX_FUNCTION_INPUT) {
        CLEAVE_ARRAY_PUSH(&body->inputs, name, error);
      } else {
        CLEAVE_ARRAY_PUSH(&body->outputs, name, error);
      }
      return CLEAVE_OK;
    case ONNX_FUNCTION_NODE: {
      cleave_onnx_node_t node;
      CLEAVE_TRY(cleave_protobuf_enter(reader, field, "NodeProto", &message, error));
      CLEAVE_TRY(cleave_onnx_node_parse(model, &body->names, &body->opsets, &message, &node, error));
      if (node.version == 0) {
        return cleave_error_set(
            error, CLEAVE_ERROR_FORMAT,
            "function '%s': node '%s': it imports no operator set of domain '%s' for "
            "operator '%s'%s",
            body->name, node.label, node.domain[0] == '\0' ? "ai.onnx" : node.domain, node.op_type,
            cleave_onnx_opset_version(&model->opsets, node.domain) > 0 ? " (--lenient takes the model's)"
                                                                       : "");
      }
      CLEAVE_ARRAY_PUSH(&body->nodes, node, error);
      return CLEAVE_OK;
    }
    case ONNX_FUNCTION_ATTRIBUTE_PROTO: {
      cleave_onnx_attribute_t attribute;
      CLEAVE_TRY(cleave_protobuf_enter(reader, field, "AttributeProto", &message, error));
      CLEAVE_TRY(cleave_onnx_attribute_parse(model, &message, &attribute, error));
      CLEAVE_ARRAY_PUSH(&body->defaults, attribute, error);
      return CLEAVE_OK;
    }
    default: return CLEAVE_OK;
  }
}

cleave_status_t cleave_onnx_function_parse(cleave_onnx_model_t *model, cleave_onnx_body_t *body,
                                           cleave_error_t *error) {
  cleave_protobuf_t reader = body->message;
  cleave_protobuf_field_t field;
  while (cleave_protobuf_next(&reader, &field, error)) {
    if (field.number == ONNX_FUNCTION_OPSET_IMPORT) {
      CLEAVE_TRY(cleave_onnx_opset_parse(model, &reader, &field, &body->opsets, error));
    }
  }
  CLEAVE_TRY(reader.status);
  /* Leniently, a function has what the model imports if it imports nothing itself. */
  for (size_t k = 0; model->options->lenient && k < model->opsets.count; k++) {
    if (cleave_onnx_opset_version(&body->opsets, model->opsets.items[k].domain) == 0) {
      CLEAVE_ARRAY_PUSH(&body->opsets, model->opsets.items[k], error);
    }
  }
  reader = body->message;
  while (cleave_protobuf_next(&reader, &field, error)) {
    CLEAVE_TRY(parse_function_field(model, body, &reader, &field, error));
  }
  CLEAVE_TRY(reader.status);
  body->is_parsed = true;
  return CLEAVE_OK;
}

static cleave_status_t parse_branch_field(cleave_onnx_model_t *model, cleave_onnx_body_t *body,
                                          const cleave_protobuf_field_t *field, cleave_error_t *error) {
  const cleave_protobuf_t *reader = &body->message;
  cleave_protobuf_t message;
  cleave_onnx_node_t node;
  cleave_onnx_initializer_t initializer;
  cleave_onnx_value_info_t info;
  cleave_string_t name;
  switch (field->number) {
    case ONNX_GRAPH_NODE:
      CLEAVE_TRY(cleave_protobuf_enter(reader, field, "NodeProto", &message, error));
      CLEAVE_TRY(cleave_onnx_node_parse(model, &body->names, &body->opsets, &message, &node, error));
      CLEAVE_ARRAY_PUSH(&body->nodes, node, error);
      return CLEAVE_OK;
    case ONNX_GRAPH_INITIALIZER:
    case ONNX_GRAPH_SPARSE_INITIALIZER:
      CLEAVE_TRY(cleave_onnx_initializer_parse(model, &body->names, reader, field, &initializer, error));
      CLEAVE_ARRAY_PUSH(&body->initializers, initializer, error);
      return CLEAVE_OK;
    case ONNX_GRAPH_OUTPUT: {
      CLEAVE_TRY(cleave_protobuf_enter(reader, field, "ValueInfoProto", &message, error));
      CLEAVE_TRY(cleave_onnx_value_info_parse(model, &message, &info, error));
      const char *text = cleave_strings_text(&model->graph->strings, info.name);
      CLEAVE_TRY(cleave_strings_add(&body->names, text, strlen(text), &name, error));
      CLEAVE_ARRAY_PUSH(&body->outputs, name, error);
      return CLEAVE_OK;
    }
    default: return CLEAVE_OK;
  }
}

cleave_status_t cleave_onnx_branch_parse(cleave_onnx_model_t *model, const cleave_onnx_attribute_t *attribute,
                                         const cleave_onnx_opsets_t *opsets, cleave_onnx_body_t **out_body,
                                         cleave_error_t *error) {
  cleave_onnx_body_t *body = cleave_arena_allocate(&model->arena, 1, sizeof *body);
  CLEAVE_TRY_MEMORY(body, error);
  *body = (cleave_onnx_body_t){.name = attribute->value.name,
                               .domain = "",
                               .overload = "",
                               .message = attribute->graph,
                               .is_parsed = true};
  CLEAVE_ARRAY_PUSH(&model->branches, body, error);
  for (size_t k = 0; k < opsets->count; k++) {
    CLEAVE_ARRAY_PUSH(&body->opsets, opsets->items[k], error);
  }
  cleave_protobuf_field_t field;
  cleave_protobuf_t reader = body->message;
  while (cleave_protobuf_next(&reader, &field, error)) {
    CLEAVE_TRY(parse_branch_field(model, body, &field, error));
  }
  *out_body = body;
  return reader.status;
}
