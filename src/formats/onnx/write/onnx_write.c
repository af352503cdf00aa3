// SPDX-License-Identifier: Apache-2.0
/*
 * Puts a model together. The graph is text with weights between: a list of cuts says after which byte of the
 * text which bytes of a tensor follow, so that weights are written from where they lie and never copied.
 */
#include "formats/onnx/write/onnx_write.h"

#include <stdio.h>

#include "formats/onnx/onnx_proto.h"
#include "ops/ops.h"

enum { IR_VERSION = 8, IR_VERSION_OF_FOUR_BITS = 10, ALIGNMENT = 64, SMALLEST_EXTERNAL = 1024 };
static const size_t default_inline_limit = 1900000000;

/* After byte `at` of the text come the bytes of the tensor. */
typedef struct cut {
  size_t at;
  const cleave_tensor_t *tensor;
} cut_t;

typedef struct assembly {
  cleave_onnx_writer_t writer;
  const char *path; /* NULL: into memory */
  cleave_text_t head;
  cleave_text_t graph;
  cleave_text_t functions;
  cleave_onnx_functions_t operators;
  cleave_text_t tail;
  cleave_text_t location; /* name of the file of external data; empty: none */
  CLEAVE_ARRAY(cut_t) cuts;
  CLEAVE_ARRAY(cleave_tensor_t *) narrow; /* constants in four bits */
  CLEAVE_ARRAY(cleave_file_part_t) parts;
  CLEAVE_ARRAY(cleave_file_part_t) data_parts;
  size_t data_size;
} assembly_t;

static void put_dim(const cleave_graph_t *graph, cleave_dim_t dim, cleave_text_t *out) {
  size_t mark = cleave_protobuf_begin(out, ONNX_SHAPE_DIM);
  if (dim >= 0) {
    cleave_protobuf_put_int(out, ONNX_DIM_VALUE, dim);
  } else if (dim != CLEAVE_DIM_UNKNOWN) {
    size_t length = cleave_protobuf_begin(out, ONNX_DIM_PARAM);
    cleave_dim_print(graph->dims, dim, out);
    cleave_protobuf_end(out, length);
  }
  cleave_protobuf_end(out, mark);
}

static void put_value_info(const cleave_graph_t *graph, cleave_value_t value, const char *name,
                           uint32_t field, cleave_text_t *out) {
  const cleave_value_record_t *record = cleave_graph_value(graph, value);
  size_t info = cleave_protobuf_begin(out, field);
  cleave_protobuf_put_text(out, ONNX_VALUE_NAME, name);
  if (record->dtype != CLEAVE_DTYPE_UNKNOWN) {
    size_t type = cleave_protobuf_begin(out, ONNX_VALUE_TYPE);
    size_t tensor = cleave_protobuf_begin(out, ONNX_TYPE_PROTO_TENSOR);
    cleave_protobuf_put_int(out, ONNX_TENSOR_TYPE_ELEM_TYPE, record->dtype);
    if (record->rank >= 0) {
      size_t shape = cleave_protobuf_begin(out, ONNX_TENSOR_TYPE_SHAPE);
      for (int32_t d = 0; d < record->rank; d++) {
        put_dim(graph, record->dims[d], out);
      }
      cleave_protobuf_end(out, shape);
    }
    cleave_protobuf_end(out, tensor);
    cleave_protobuf_end(out, type);
  }
  cleave_protobuf_end(out, info);
}

static void put_entry(cleave_text_t *out, uint32_t field, const char *key, const char *value) {
  size_t mark = cleave_protobuf_begin(out, field);
  cleave_protobuf_put_text(out, ONNX_ENTRY_KEY, key);
  cleave_protobuf_put_text(out, ONNX_ENTRY_VALUE, value);
  cleave_protobuf_end(out, mark);
}

static void put_number_entry(cleave_text_t *out, const char *key, size_t number) {
  char text[24];
  (void)snprintf(text, sizeof text, "%zu", number);
  put_entry(out, ONNX_TENSOR_EXTERNAL_DATA, key, text);
}

/* ---- weights ---- */

static bool is_cut_out(const cleave_tensor_t *tensor) {
  return tensor->dtype != CLEAVE_DTYPE_STRING && tensor->bytes > 0;
}

static cleave_status_t put_external(assembly_t *assembly, const cleave_tensor_t *tensor, const char *name,
                                    cleave_error_t *error) {
  static const char padding[ALIGNMENT] = {0};
  size_t rest = assembly->data_size % ALIGNMENT;
  if (rest > 0) {
    cleave_file_part_t part = {.data = padding, .size = ALIGNMENT - rest};
    CLEAVE_ARRAY_PUSH(&assembly->data_parts, part, error);
    assembly->data_size += part.size;
  }
  cleave_text_t *out = &assembly->graph;
  size_t mark = cleave_protobuf_begin(out, ONNX_GRAPH_INITIALIZER);
  cleave_onnx_put_tensor_head(out, tensor, name);
  put_entry(out, ONNX_TENSOR_EXTERNAL_DATA, "location", cleave_text_get(&assembly->location));
  put_number_entry(out, "offset", assembly->data_size);
  put_number_entry(out, "length", tensor->bytes);
  cleave_protobuf_put_int(out, ONNX_TENSOR_DATA_LOCATION, 1);
  cleave_protobuf_end(out, mark);
  cleave_file_part_t part = {.data = tensor->data, .size = tensor->bytes};
  CLEAVE_ARRAY_PUSH(&assembly->data_parts, part, error);
  assembly->data_size += part.size;
  return CLEAVE_OK;
}

static cleave_status_t put_inline(assembly_t *assembly, const cleave_tensor_t *tensor, const char *name,
                                  cleave_error_t *error) {
  cleave_text_t fields = {0};
  cleave_onnx_put_tensor_head(&fields, tensor, name);
  cleave_protobuf_put_header(&fields, ONNX_TENSOR_RAW_DATA, tensor->bytes);
  cleave_protobuf_put_header(&assembly->graph, ONNX_GRAPH_INITIALIZER, fields.length + tensor->bytes);
  cleave_text_append(&assembly->graph, cleave_text_get(&fields), fields.length);
  assembly->graph.failed = assembly->graph.failed || fields.failed;
  cleave_text_deinit(&fields);
  cut_t cut = {.at = assembly->graph.length, .tensor = tensor};
  CLEAVE_ARRAY_PUSH(&assembly->cuts, cut, error);
  return CLEAVE_OK;
}

static cleave_status_t choose_location(assembly_t *assembly, cleave_error_t *error) {
  const cleave_graph_t *graph = assembly->writer.graph;
  size_t limit = assembly->writer.options->inline_limit;
  limit = limit == 0 ? default_inline_limit : limit;
  size_t total = 0;
  for (uint32_t k = 0; k < cleave_graph_value_bound(graph); k++) {
    const cleave_tensor_t *tensor = cleave_graph_value(graph, (cleave_value_t){k})->tensor;
    total += tensor != NULL && assembly->writer.is_needed[k] ? tensor->bytes : 0;
  }
  if (total <= limit) {
    return CLEAVE_OK;
  }
  if (assembly->path == NULL) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT,
                            "weights have %zu byte%s, at most %zu fit in the model", total,
                            CLEAVE_PLURAL(total), limit);
  }
  cleave_text_format(&assembly->location, "%s.data", cleave_path_name(assembly->path));
  return cleave_text_check(&assembly->location, error);
}

static cleave_status_t put_constants(assembly_t *assembly, cleave_error_t *error) {
  const cleave_graph_t *graph = assembly->writer.graph;
  CLEAVE_TRY(choose_location(assembly, error));
  for (uint32_t k = 0; k < cleave_graph_value_bound(graph); k++) {
    const cleave_tensor_t *tensor = cleave_graph_value(graph, (cleave_value_t){k})->tensor;
    const char *name = assembly->writer.value_names[k];
    if (tensor == NULL || !assembly->writer.is_needed[k]) {
      continue;
    }
    if (cleave_onnx_has_four_bits(&assembly->writer, (cleave_value_t){k})) {
      CLEAVE_TRY(cleave_array_reserve(&assembly->narrow, 1, error));
      cleave_tensor_t *narrow = NULL;
      CLEAVE_TRY(cleave_onnx_make_four_bits(tensor, &narrow, error));
      cleave_array_push_reserved(&assembly->narrow, narrow);
      tensor = narrow;
    }
    if (!is_cut_out(tensor)) {
      size_t mark = cleave_protobuf_begin(&assembly->graph, ONNX_GRAPH_INITIALIZER);
      cleave_onnx_put_tensor(&assembly->graph, tensor, name);
      cleave_protobuf_end(&assembly->graph, mark);
    } else if (assembly->location.length > 0 && tensor->bytes >= SMALLEST_EXTERNAL) {
      CLEAVE_TRY(put_external(assembly, tensor, name, error));
    } else {
      CLEAVE_TRY(put_inline(assembly, tensor, name, error));
    }
  }
  return CLEAVE_OK;
}

/* ---- the graph around them ---- */

static void put_outputs(assembly_t *assembly) {
  cleave_onnx_writer_t *writer = &assembly->writer;
  const cleave_graph_t *graph = writer->graph;
  for (size_t k = 0; k < graph->outputs.count; k++) {
    cleave_value_t value = cleave_graph_output(graph, k);
    writer->is_needed[value.index] = true;
    if (writer->output_names[k] != writer->value_names[value.index]) {
      cleave_onnx_put_identity(&assembly->graph, ONNX_GRAPH_NODE, writer->value_names[value.index],
                               writer->output_names[k]);
    }
  }
}

/* Types of values inside the main graph: those that items of the level hand to each other. */
static void put_types(assembly_t *assembly) {
  cleave_onnx_writer_t *writer = &assembly->writer;
  const cleave_graph_t *graph = writer->graph;
  for (size_t k = 0; k < graph->inputs.count; k++) {
    cleave_value_t value = graph->inputs.items[k];
    put_value_info(graph, value, writer->value_names[value.index], ONNX_GRAPH_INPUT, &assembly->graph);
  }
  for (size_t k = 0; k < graph->outputs.count; k++) {
    put_value_info(graph, cleave_graph_output(graph, k), writer->output_names[k], ONNX_GRAPH_OUTPUT,
                   &assembly->graph);
  }
  for (size_t k = 0; k < graph->live_node_count; k++) {
    cleave_node_t node = writer->groups.order[k];
    for (uint32_t o = 0; o < cleave_node_output_count(graph, node); o++) {
      cleave_value_t value = cleave_node_output(graph, node, o);
      if (writer->groups.owner[node.index] == CLEAVE_INDEX_NONE && !cleave_value_is_output(graph, value) &&
          cleave_graph_value(graph, value)->dtype != CLEAVE_DTYPE_UNKNOWN) {
        put_value_info(graph, value, writer->value_names[value.index], ONNX_GRAPH_VALUE_INFO,
                       &assembly->graph);
      }
    }
  }
}

static cleave_status_t put_graph(assembly_t *assembly, cleave_error_t *error) {
  const cleave_graph_t *graph = assembly->writer.graph;
  const char *name = cleave_strings_text(&graph->strings, graph->name);
  CLEAVE_TRY(
      cleave_onnx_put_level(&assembly->writer, CLEAVE_INDEX_NONE, ONNX_GRAPH_NODE, &assembly->graph, error));
  put_outputs(assembly);
  cleave_protobuf_put_text(&assembly->graph, ONNX_GRAPH_NAME, name[0] != '\0' ? name : "cleave");
  CLEAVE_TRY(put_constants(assembly, error));
  put_types(assembly);
  return cleave_text_check(&assembly->graph, error);
}

static cleave_status_t put_model(assembly_t *assembly, cleave_error_t *error) {
  cleave_onnx_writer_t *writer = &assembly->writer;
  const cleave_onnx_write_options_t *options = writer->options;
  for (uint32_t g = 0; g < writer->groups.count; g++) {
    CLEAVE_TRY(cleave_onnx_add_domain(writer, writer->groups.groups[g].domain, error));
  }
  CLEAVE_TRY(put_graph(assembly, error));
  for (uint32_t g = writer->groups.count; g-- > 0;) {
    CLEAVE_TRY(cleave_onnx_put_function(writer, g, &assembly->functions, error));
  }
  cleave_text_t *head = &assembly->head;
  cleave_protobuf_put_int(head, ONNX_MODEL_IR_VERSION,
                          assembly->narrow.count > 0 ? IR_VERSION_OF_FOUR_BITS : IR_VERSION);
  cleave_protobuf_put_text(head, ONNX_MODEL_PRODUCER_NAME, "cleave");
  cleave_protobuf_put_text(head, ONNX_MODEL_PRODUCER_VERSION, cleave_version());
  if (options->doc != NULL) {
    cleave_protobuf_put_text(head, ONNX_MODEL_DOC_STRING, options->doc);
  }
  size_t graph_size = assembly->graph.length;
  for (size_t k = 0; k < assembly->cuts.count; k++) {
    graph_size += assembly->cuts.items[k].tensor->bytes;
  }
  cleave_protobuf_put_header(head, ONNX_MODEL_GRAPH, graph_size);
  cleave_onnx_put_opsets(writer, ONNX_MODEL_OPSET_IMPORT, &assembly->tail);
  for (uint32_t k = 0; k < options->metadata_count; k++) {
    put_entry(&assembly->tail, ONNX_MODEL_METADATA_PROPS, options->metadata[k].key,
              options->metadata[k].value);
  }
  cleave_text_append(&assembly->tail, cleave_text_get(&assembly->functions), assembly->functions.length);
  cleave_text_append(&assembly->tail, cleave_text_get(&assembly->operators.text),
                     assembly->operators.text.length);
  CLEAVE_TRY(cleave_text_check(head, error));
  CLEAVE_TRY(cleave_text_check(&assembly->functions, error));
  return cleave_text_check(&assembly->tail, error);
}

static cleave_status_t add_part(assembly_t *assembly, const void *data, size_t size, cleave_error_t *error) {
  cleave_file_part_t part = {.data = data, .size = size};
  if (size > 0) {
    CLEAVE_ARRAY_PUSH(&assembly->parts, part, error);
  }
  return CLEAVE_OK;
}

static cleave_status_t make_parts(assembly_t *assembly, cleave_error_t *error) {
  const char *text = cleave_text_get(&assembly->graph);
  size_t at = 0;
  CLEAVE_TRY(add_part(assembly, assembly->head.data, assembly->head.length, error));
  for (size_t k = 0; k < assembly->cuts.count; k++) {
    const cut_t *cut = &assembly->cuts.items[k];
    CLEAVE_TRY(add_part(assembly, text + at, cut->at - at, error));
    CLEAVE_TRY(add_part(assembly, cut->tensor->data, cut->tensor->bytes, error));
    at = cut->at;
  }
  CLEAVE_TRY(add_part(assembly, text + at, assembly->graph.length - at, error));
  return add_part(assembly, assembly->tail.data, assembly->tail.length, error);
}

/* ---- entry points ---- */

static cleave_status_t choose_opset(cleave_onnx_writer_t *writer, cleave_error_t *error) {
  int32_t asked = writer->options->opset_version;
  int32_t wanted = asked == 0 ? writer->graph->opset_version : asked;
  if (asked == 0) {
    wanted = wanted < CLEAVE_ONNX_OLDEST ? CLEAVE_ONNX_OLDEST : wanted;
    wanted = wanted > CLEAVE_ONNX_NEWEST ? CLEAVE_ONNX_NEWEST : wanted;
  }
  if (wanted < CLEAVE_ONNX_OLDEST || wanted > CLEAVE_ONNX_NEWEST) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "models are written in opset %d to %d, found %d", CLEAVE_ONNX_OLDEST,
                            CLEAVE_ONNX_NEWEST, (int)wanted);
  }
  writer->opset_version = wanted;
  return CLEAVE_OK;
}

static cleave_status_t assemble(assembly_t *assembly, cleave_error_t *error) {
  assembly->writer.functions = &assembly->operators;
  CLEAVE_TRY(choose_opset(&assembly->writer, error));
  CLEAVE_TRY(cleave_onnx_writer_init(&assembly->writer, error));
  CLEAVE_TRY(put_model(assembly, error));
  return make_parts(assembly, error);
}

static void assembly_deinit(assembly_t *assembly) {
  cleave_onnx_writer_deinit(&assembly->writer);
  cleave_onnx_functions_deinit(&assembly->operators);
  cleave_text_deinit(&assembly->head);
  cleave_text_deinit(&assembly->graph);
  cleave_text_deinit(&assembly->functions);
  cleave_text_deinit(&assembly->tail);
  cleave_text_deinit(&assembly->location);
  for (size_t k = 0; k < assembly->narrow.count; k++) {
    cleave_tensor_release(assembly->narrow.items[k]);
  }
  cleave_array_free(&assembly->narrow);
  cleave_array_free(&assembly->cuts);
  cleave_array_free(&assembly->parts);
  cleave_array_free(&assembly->data_parts);
}

static cleave_status_t write_files(const assembly_t *assembly, cleave_error_t *error) {
  if (assembly->location.length > 0) {
    cleave_text_t path = {0};
    cleave_text_format(&path, "%s.data", assembly->path);
    cleave_status_t status = cleave_text_check(&path, error);
    CLEAVE_THEN(status, cleave_file_write_parts(path.data, assembly->data_parts.items,
                                                assembly->data_parts.count, false, error));
    cleave_text_deinit(&path);
    CLEAVE_TRY(status);
  }
  return cleave_file_write_parts(assembly->path, assembly->parts.items, assembly->parts.count, false, error);
}

cleave_status_t cleave_onnx_write(const char *path, const cleave_graph_t *graph,
                                  const cleave_onnx_write_options_t *options, cleave_error_t *error) {
  static const cleave_onnx_write_options_t plain = {0};
  assembly_t assembly = {.writer = {.graph = graph, .options = options != NULL ? options : &plain},
                         .path = path};
  cleave_status_t status = assemble(&assembly, error);
  CLEAVE_THEN(status, write_files(&assembly, error));
  assembly_deinit(&assembly);
  return status;
}

cleave_status_t cleave_onnx_write_text(const cleave_graph_t *graph,
                                       const cleave_onnx_write_options_t *options, cleave_text_t *text,
                                       cleave_error_t *error) {
  static const cleave_onnx_write_options_t plain = {0};
  assembly_t assembly = {.writer = {.graph = graph, .options = options != NULL ? options : &plain}};
  cleave_status_t status = assemble(&assembly, error);
  for (size_t k = 0; k < assembly.parts.count && status == CLEAVE_OK; k++) {
    cleave_text_append(text, assembly.parts.items[k].data, assembly.parts.items[k].size);
    status = cleave_text_check(text, error);
  }
  assembly_deinit(&assembly);
  return status;
}
