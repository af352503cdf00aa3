// SPDX-License-Identifier: Apache-2.0
/* NodeProto and FunctionProto: the nodes of one level, calls of the groups in it, and their bodies. */
#include <string.h>

#include "formats/onnx/onnx_proto.h"
#include "formats/onnx/write/onnx_lowering.h"
#include "formats/onnx/write/onnx_write.h"
#include "ops/ops.h"

static void put_attribute(cleave_text_t *out, const cleave_attribute_t *attribute) {
  static const int64_t types[] = {
      [CLEAVE_ATTRIBUTE_INT] = ONNX_TYPE_INT,       [CLEAVE_ATTRIBUTE_FLOAT] = ONNX_TYPE_FLOAT,
      [CLEAVE_ATTRIBUTE_STRING] = ONNX_TYPE_STRING, [CLEAVE_ATTRIBUTE_INTS] = ONNX_TYPE_INTS,
      [CLEAVE_ATTRIBUTE_FLOATS] = ONNX_TYPE_FLOATS, [CLEAVE_ATTRIBUTE_STRINGS] = ONNX_TYPE_STRINGS,
      [CLEAVE_ATTRIBUTE_TENSOR] = ONNX_TYPE_TENSOR,
  };
  size_t mark = cleave_protobuf_begin(out, ONNX_NODE_ATTRIBUTE);
  cleave_protobuf_put_text(out, ONNX_ATTRIBUTE_NAME, attribute->name);
  cleave_protobuf_put_int(out, ONNX_ATTRIBUTE_TYPE, types[attribute->kind]);
  bool is_list = cleave_attribute_is_list(attribute);
  for (uint32_t k = 0; k < cleave_attribute_item_count(attribute); k++) {
    cleave_attribute_t item = cleave_attribute_item(attribute, k);
    switch (item.kind) {
      case CLEAVE_ATTRIBUTE_INT:
        cleave_protobuf_put_int(out, is_list ? ONNX_ATTRIBUTE_INTS : ONNX_ATTRIBUTE_I, item.i);
        break;
      case CLEAVE_ATTRIBUTE_FLOAT:
        cleave_protobuf_put_float(out, is_list ? ONNX_ATTRIBUTE_FLOATS : ONNX_ATTRIBUTE_F,
                                  is_list ? attribute->floats[k] : (float)item.f);
        break;
      default:
        cleave_protobuf_put_text(out, is_list ? ONNX_ATTRIBUTE_STRINGS : ONNX_ATTRIBUTE_S, item.s);
        break;
    }
  }
  if (attribute->kind == CLEAVE_ATTRIBUTE_TENSOR) {
    size_t tensor = cleave_protobuf_begin(out, ONNX_ATTRIBUTE_T);
    cleave_onnx_put_tensor(out, attribute->held, "");
    cleave_protobuf_end(out, tensor);
  }
  cleave_protobuf_end(out, mark);
}

void cleave_onnx_put_identity(cleave_text_t *out, uint32_t field, const char *from, const char *to) {
  size_t mark = cleave_protobuf_begin(out, field);
  cleave_protobuf_put_text(out, ONNX_NODE_INPUT, from);
  cleave_protobuf_put_text(out, ONNX_NODE_OUTPUT, to);
  cleave_protobuf_put_text(out, ONNX_NODE_OP_TYPE, "Identity");
  cleave_protobuf_end(out, mark);
}

void cleave_onnx_put_constant(cleave_text_t *out, uint32_t field, cleave_tensor_t *tensor, const char *name) {
  cleave_attribute_t attribute = {.name = "value", .kind = CLEAVE_ATTRIBUTE_TENSOR};
  attribute.held = tensor;
  size_t mark = cleave_protobuf_begin(out, field);
  cleave_protobuf_put_text(out, ONNX_NODE_OUTPUT, name);
  cleave_protobuf_put_text(out, ONNX_NODE_OP_TYPE, "Constant");
  put_attribute(out, &attribute);
  cleave_protobuf_end(out, mark);
}

cleave_status_t cleave_onnx_add_domain(cleave_onnx_writer_t *writer, const char *domain,
                                       cleave_error_t *error) {
  for (size_t k = 0; k < writer->domains.count; k++) {
    if (strcmp(writer->domains.items[k], domain) == 0) {
      return CLEAVE_OK;
    }
  }
  if (domain[0] != '\0') {
    CLEAVE_ARRAY_PUSH(&writer->domains, domain, error);
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_onnx_fill_record(cleave_onnx_record_t *record, cleave_error_t *error) {
  const cleave_graph_t *graph = record->writer->graph;
  const cleave_node_record_t *source = cleave_graph_node(graph, record->node);
  record->op = source->op;
  record->refusal[0] = '\0';
  record->refused_dtype = CLEAVE_DTYPE_UNKNOWN;
  record->inputs.count = 0;
  record->attributes.count = 0;
  for (uint32_t k = 0; k < source->input_count; k++) {
    cleave_value_t value = cleave_node_input(graph, record->node, k);
    cleave_onnx_input_t input = {
        .name = cleave_value_exists(value) ? record->writer->value_names[value.index] : "", .value = value};
    CLEAVE_ARRAY_PUSH(&record->inputs, input, error);
  }
  for (uint32_t k = 0; k < source->attribute_count; k++) {
    CLEAVE_ARRAY_PUSH(&record->attributes, source->attributes[k], error);
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_onnx_put_record(cleave_onnx_record_t *record, const char *op_type, const char *domain,
                                       bool is_main, uint32_t field, cleave_error_t *error) {
  cleave_onnx_writer_t *writer = record->writer;
  cleave_text_t *out = record->out;
  CLEAVE_TRY(cleave_onnx_add_domain(writer, domain, error));
  size_t mark = cleave_protobuf_begin(out, field);
  for (size_t k = 0; k < record->inputs.count; k++) {
    cleave_protobuf_put_text(out, ONNX_NODE_INPUT, record->inputs.items[k].name);
    if (is_main && cleave_value_exists(record->inputs.items[k].value)) {
      writer->is_needed[record->inputs.items[k].value.index] = true;
    }
  }
  for (uint32_t k = 0; k < cleave_node_output_count(writer->graph, record->node); k++) {
    cleave_value_t value = cleave_node_output(writer->graph, record->node, k);
    cleave_protobuf_put_text(out, ONNX_NODE_OUTPUT, writer->value_names[value.index]);
  }
  const char *name = NULL;
  CLEAVE_TRY(cleave_onnx_name_node(writer, record->node, &name, error));
  if (name[0] != '\0') {
    cleave_protobuf_put_text(out, ONNX_NODE_NAME, name);
  }
  cleave_protobuf_put_text(out, ONNX_NODE_OP_TYPE, op_type);
  for (size_t k = 0; k < record->attributes.count; k++) {
    put_attribute(out, &record->attributes.items[k]);
  }
  if (domain[0] != '\0') {
    cleave_protobuf_put_text(out, ONNX_NODE_DOMAIN, domain);
  }
  cleave_protobuf_end(out, mark);
  return CLEAVE_OK;
}

cleave_status_t cleave_onnx_put_node(cleave_onnx_record_t *record, bool is_main, uint32_t field,
                                     cleave_error_t *error) {
  CLEAVE_TRY(cleave_onnx_fill_record(record, error));
  if (record->op->domain[0] == '\0' && record->op->id != CLEAVE_OP_ID_CUSTOM) {
    CLEAVE_TRY(cleave_onnx_downgrade(record, error));
  }
  bool is_own = strcmp(record->op->domain, "cleave") == 0 && cleave_onnx_has_body(record->op);
  return record->refusal[0] == '\0' && !is_own
             ? cleave_onnx_put_record(record, record->op->name, record->op->domain, is_main, field, error)
             : cleave_onnx_put_lowered(record, is_main, field, error);
}

static cleave_status_t put_call(cleave_onnx_writer_t *writer, uint32_t index, bool is_main, uint32_t field,
                                cleave_text_t *out, cleave_error_t *error) {
  const cleave_group_t *group = &writer->groups.groups[index];
  cleave_group_values_t inputs = {0};
  cleave_group_values_t outputs = {0};
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY_CLEANUP(cleave_groups_ports(&writer->groups, index, &inputs, &outputs, error));
  size_t mark = cleave_protobuf_begin(out, field);
  for (size_t k = 0; k < inputs.count; k++) {
    uint32_t value = inputs.items[k].index;
    cleave_protobuf_put_text(out, ONNX_NODE_INPUT, writer->value_names[value]);
    writer->is_needed[value] = writer->is_needed[value] || is_main;
  }
  for (size_t k = 0; k < outputs.count; k++) {
    cleave_protobuf_put_text(out, ONNX_NODE_OUTPUT, writer->value_names[outputs.items[k].index]);
  }
  cleave_protobuf_put_text(out, ONNX_NODE_NAME, group->name);
  cleave_protobuf_put_text(out, ONNX_NODE_OP_TYPE, group->name);
  if (group->doc != NULL) {
    cleave_protobuf_put_text(out, ONNX_NODE_DOC_STRING, group->doc);
  }
  cleave_protobuf_put_text(out, ONNX_NODE_DOMAIN, group->domain);
  cleave_protobuf_end(out, mark);
cleanup:
  cleave_array_free(&inputs);
  cleave_array_free(&outputs);
  return status;
}

cleave_status_t cleave_onnx_put_level(cleave_onnx_writer_t *writer, uint32_t group, uint32_t field,
                                      cleave_text_t *out, cleave_error_t *error) {
  cleave_group_items_t items = {0};
  cleave_onnx_record_t record = {.writer = writer, .out = out};
  cleave_status_t status = CLEAVE_OK;
  bool is_main = group == CLEAVE_INDEX_NONE;
  CLEAVE_TRY_CLEANUP(cleave_groups_items(&writer->groups, group, &items, error));
  for (size_t k = 0; k < items.count; k++) {
    if (items.items[k].is_group) {
      CLEAVE_TRY_CLEANUP(put_call(writer, items.items[k].index, is_main, field, out, error));
    } else {
      record.node = (cleave_node_t){items.items[k].index};
      CLEAVE_TRY_CLEANUP(cleave_onnx_put_node(&record, is_main, field, error));
    }
  }
cleanup:
  cleave_array_free(&items);
  cleave_array_free(&record.inputs);
  cleave_array_free(&record.attributes);
  return status;
}

static void put_opset(cleave_text_t *out, uint32_t field, const char *domain, int64_t version) {
  size_t mark = cleave_protobuf_begin(out, field);
  cleave_protobuf_put_text(out, ONNX_OPSET_DOMAIN, domain);
  cleave_protobuf_put_int(out, ONNX_OPSET_VERSION, version);
  cleave_protobuf_end(out, mark);
}

/* The newest form among the operators of a domain that is not ONNX's. */
static int32_t version_of(const cleave_onnx_writer_t *writer, const char *domain) {
  int32_t version = strcmp(domain, CLEAVE_ONNX_OPERATOR_DOMAIN) == 0 ? CLEAVE_ONNX_NEWEST : 1;
  for (size_t k = 0; k < writer->graph->custom_ops.count; k++) {
    const cleave_op_t *op = writer->graph->custom_ops.items[k];
    version = strcmp(op->domain, domain) == 0 && op->since_version > version ? op->since_version : version;
  }
  return version;
}

void cleave_onnx_put_opsets(const cleave_onnx_writer_t *writer, uint32_t field, cleave_text_t *out) {
  put_opset(out, field, "", writer->opset_version);
  for (size_t k = 0; k < writer->domains.count; k++) {
    put_opset(out, field, writer->domains.items[k], version_of(writer, writer->domains.items[k]));
  }
}

cleave_status_t cleave_onnx_put_function(cleave_onnx_writer_t *writer, uint32_t index, cleave_text_t *out,
                                         cleave_error_t *error) {
  const cleave_group_t *group = &writer->groups.groups[index];
  cleave_group_values_t inputs = {0};
  cleave_group_values_t outputs = {0};
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY_CLEANUP(cleave_groups_ports(&writer->groups, index, &inputs, &outputs, error));
  size_t mark = cleave_protobuf_begin(out, ONNX_MODEL_FUNCTIONS);
  cleave_protobuf_put_text(out, ONNX_FUNCTION_NAME, group->name);
  for (size_t k = 0; k < inputs.count; k++) {
    cleave_protobuf_put_text(out, ONNX_FUNCTION_INPUT, writer->value_names[inputs.items[k].index]);
  }
  for (size_t k = 0; k < outputs.count; k++) {
    cleave_protobuf_put_text(out, ONNX_FUNCTION_OUTPUT, writer->value_names[outputs.items[k].index]);
  }
  CLEAVE_TRY_CLEANUP(cleave_onnx_put_level(writer, index, ONNX_FUNCTION_NODE, out, error));
  if (group->doc != NULL) {
    cleave_protobuf_put_text(out, ONNX_FUNCTION_DOC_STRING, group->doc);
  }
  cleave_onnx_put_opsets(writer, ONNX_FUNCTION_OPSET_IMPORT, out);
  cleave_protobuf_put_text(out, ONNX_FUNCTION_DOMAIN, group->domain);
  cleave_protobuf_end(out, mark);
cleanup:
  cleave_array_free(&inputs);
  cleave_array_free(&outputs);
  return status;
}
