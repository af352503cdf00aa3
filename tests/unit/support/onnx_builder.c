// SPDX-License-Identifier: Apache-2.0
/* See onnx_builder.h. */
#include "onnx_builder.h"

#include "graph/print.h"
#include "graph/verify.h"
#include "unit.h"

void onnx_begin(onnx_builder_t *builder, int64_t ir_version, int64_t opset_version) {
  *builder = (onnx_builder_t){0};
  cleave_protobuf_put_int(&builder->model, ONNX_MODEL_IR_VERSION, ir_version);
  if (opset_version > 0) {
    onnx_opset(builder, "", opset_version);
  }
}

void onnx_opset(onnx_builder_t *builder, const char *domain, int64_t version) {
  size_t mark = cleave_protobuf_begin(&builder->model, ONNX_MODEL_OPSET_IMPORT);
  cleave_protobuf_put_text(&builder->model, ONNX_OPSET_DOMAIN, domain);
  cleave_protobuf_put_int(&builder->model, ONNX_OPSET_VERSION, version);
  cleave_protobuf_end(&builder->model, mark);
}

/* The next word of a list separated by spaces, or false. */
static bool next_word(const char **list, char *word, size_t size) {
  size_t length = 0;
  while (**list == ' ') {
    ++*list;
  }
  for (; **list != '\0' && **list != ' ' && length + 1 < size; ++*list) {
    word[length++] = **list;
  }
  word[length] = '\0';
  return length > 0;
}

static void put_shape(cleave_text_t *out, const char *dims) {
  char word[64];
  size_t shape = cleave_protobuf_begin(out, ONNX_TENSOR_TYPE_SHAPE);
  while (next_word(&dims, word, sizeof word)) {
    size_t dim = cleave_protobuf_begin(out, ONNX_SHAPE_DIM);
    if (word[0] >= '0' && word[0] <= '9') {
      cleave_protobuf_put_int(out, ONNX_DIM_VALUE, strtoll(word, NULL, 10));
    } else if (strcmp(word, "?") != 0) {
      cleave_protobuf_put_text(out, ONNX_DIM_PARAM, word);
    }
    cleave_protobuf_end(out, dim);
  }
  cleave_protobuf_end(out, shape);
}

void onnx_put_value_info(cleave_text_t *out, uint32_t field, const char *name, int64_t dtype,
                         const char *dims) {
  size_t info = cleave_protobuf_begin(out, field);
  cleave_protobuf_put_text(out, ONNX_VALUE_NAME, name);
  size_t type = cleave_protobuf_begin(out, ONNX_VALUE_TYPE);
  size_t tensor = cleave_protobuf_begin(out, ONNX_TYPE_PROTO_TENSOR);
  cleave_protobuf_put_int(out, ONNX_TENSOR_TYPE_ELEM_TYPE, dtype);
  if (dims != NULL) {
    put_shape(out, dims);
  }
  cleave_protobuf_end(out, tensor);
  cleave_protobuf_end(out, type);
  cleave_protobuf_end(out, info);
}

void onnx_input(onnx_builder_t *builder, const char *name, int64_t dtype, const char *dims) {
  onnx_put_value_info(&builder->graph, ONNX_GRAPH_INPUT, name, dtype, dims);
}

void onnx_output(onnx_builder_t *builder, const char *name, int64_t dtype, const char *dims) {
  onnx_put_value_info(&builder->graph, ONNX_GRAPH_OUTPUT, name, dtype, dims);
}

void onnx_value_info(onnx_builder_t *builder, const char *name, int64_t dtype, const char *dims) {
  onnx_put_value_info(&builder->graph, ONNX_GRAPH_VALUE_INFO, name, dtype, dims);
}

static size_t begin_initializer(onnx_builder_t *builder, const char *name, const char *dims, int64_t dtype) {
  char word[64];
  size_t mark = cleave_protobuf_begin(&builder->graph, ONNX_GRAPH_INITIALIZER);
  while (next_word(&dims, word, sizeof word)) {
    cleave_protobuf_put_int(&builder->graph, ONNX_TENSOR_DIMS, strtoll(word, NULL, 10));
  }
  cleave_protobuf_put_int(&builder->graph, ONNX_TENSOR_DATA_TYPE, dtype);
  cleave_protobuf_put_text(&builder->graph, ONNX_TENSOR_NAME, name);
  return mark;
}

void onnx_floats(onnx_builder_t *builder, const char *name, const char *dims, const float *values,
                 size_t count) {
  size_t mark = begin_initializer(builder, name, dims, CLEAVE_DTYPE_F32);
  for (size_t k = 0; k < count; k++) {
    cleave_protobuf_put_float(&builder->graph, ONNX_TENSOR_FLOAT_DATA, values[k]);
  }
  cleave_protobuf_end(&builder->graph, mark);
}

void onnx_ints(onnx_builder_t *builder, const char *name, const char *dims, const int64_t *values,
               size_t count) {
  size_t mark = begin_initializer(builder, name, dims, CLEAVE_DTYPE_I64);
  cleave_protobuf_put_bytes(&builder->graph, ONNX_TENSOR_RAW_DATA, values, count * sizeof *values);
  cleave_protobuf_end(&builder->graph, mark);
}

void onnx_bytes(onnx_builder_t *builder, const char *name, const char *dims, const uint8_t *values,
                size_t count) {
  size_t mark = begin_initializer(builder, name, dims, CLEAVE_DTYPE_U8);
  cleave_protobuf_put_bytes(&builder->graph, ONNX_TENSOR_RAW_DATA, values, count);
  cleave_protobuf_end(&builder->graph, mark);
}

static void put_names(cleave_text_t *out, uint32_t field, const char *names) {
  char word[128];
  while (next_word(&names, word, sizeof word)) {
    cleave_protobuf_put_text(out, field, strcmp(word, "-") == 0 ? "" : word);
  }
}

void onnx_node(onnx_builder_t *builder, const char *op_type, const char *inputs, const char *outputs) {
  builder->node = cleave_protobuf_begin(&builder->graph, ONNX_GRAPH_NODE);
  put_names(&builder->graph, ONNX_NODE_INPUT, inputs);
  put_names(&builder->graph, ONNX_NODE_OUTPUT, outputs);
  cleave_protobuf_put_text(&builder->graph, ONNX_NODE_OP_TYPE, op_type);
}

void onnx_end_node(onnx_builder_t *builder) {
  cleave_protobuf_end(&builder->graph, builder->node);
}

void onnx_simple(onnx_builder_t *builder, const char *op_type, const char *inputs, const char *outputs) {
  onnx_node(builder, op_type, inputs, outputs);
  onnx_end_node(builder);
}

void onnx_domain(onnx_builder_t *builder, const char *domain) {
  cleave_protobuf_put_text(&builder->graph, ONNX_NODE_DOMAIN, domain);
}

void onnx_put_node(cleave_text_t *out, uint32_t field, const char *op_type, const char *domain,
                   const char *inputs, const char *outputs) {
  size_t mark = cleave_protobuf_begin(out, field);
  put_names(out, ONNX_NODE_INPUT, inputs);
  put_names(out, ONNX_NODE_OUTPUT, outputs);
  cleave_protobuf_put_text(out, ONNX_NODE_OP_TYPE, op_type);
  cleave_protobuf_put_text(out, ONNX_NODE_DOMAIN, domain);
  cleave_protobuf_end(out, mark);
}

static size_t begin_attribute(onnx_builder_t *builder, const char *name, int64_t type) {
  size_t mark = cleave_protobuf_begin(&builder->graph, ONNX_NODE_ATTRIBUTE);
  cleave_protobuf_put_text(&builder->graph, ONNX_ATTRIBUTE_NAME, name);
  cleave_protobuf_put_int(&builder->graph, ONNX_ATTRIBUTE_TYPE, type);
  return mark;
}

void onnx_int(onnx_builder_t *builder, const char *name, int64_t value) {
  size_t mark = begin_attribute(builder, name, ONNX_TYPE_INT);
  cleave_protobuf_put_int(&builder->graph, ONNX_ATTRIBUTE_I, value);
  cleave_protobuf_end(&builder->graph, mark);
}

void onnx_float(onnx_builder_t *builder, const char *name, float value) {
  size_t mark = begin_attribute(builder, name, ONNX_TYPE_FLOAT);
  cleave_protobuf_put_float(&builder->graph, ONNX_ATTRIBUTE_F, value);
  cleave_protobuf_end(&builder->graph, mark);
}

void onnx_text(onnx_builder_t *builder, const char *name, const char *value) {
  size_t mark = begin_attribute(builder, name, ONNX_TYPE_STRING);
  cleave_protobuf_put_text(&builder->graph, ONNX_ATTRIBUTE_S, value);
  cleave_protobuf_end(&builder->graph, mark);
}

void onnx_int_list(onnx_builder_t *builder, const char *name, const int64_t *values, size_t count) {
  size_t mark = begin_attribute(builder, name, ONNX_TYPE_INTS);
  for (size_t k = 0; k < count; k++) {
    cleave_protobuf_put_int(&builder->graph, ONNX_ATTRIBUTE_INTS, values[k]);
  }
  cleave_protobuf_end(&builder->graph, mark);
}

void onnx_float_list(onnx_builder_t *builder, const char *name, const float *values, size_t count) {
  size_t mark = begin_attribute(builder, name, ONNX_TYPE_FLOATS);
  for (size_t k = 0; k < count; k++) {
    cleave_protobuf_put_float(&builder->graph, ONNX_ATTRIBUTE_FLOATS, values[k]);
  }
  cleave_protobuf_end(&builder->graph, mark);
}

void onnx_function_import(onnx_builder_t *builder, const char *domain, int64_t version) {
  size_t mark = cleave_protobuf_begin(&builder->model, ONNX_FUNCTION_OPSET_IMPORT);
  cleave_protobuf_put_text(&builder->model, ONNX_OPSET_DOMAIN, domain);
  cleave_protobuf_put_int(&builder->model, ONNX_OPSET_VERSION, version);
  cleave_protobuf_end(&builder->model, mark);
}

cleave_text_t onnx_finish(onnx_builder_t *builder) {
  cleave_protobuf_put_bytes(&builder->model, ONNX_MODEL_GRAPH, builder->graph.data, builder->graph.length);
  cleave_text_deinit(&builder->graph);
  ck_assert(!builder->model.failed);
  return builder->model;
}

cleave_status_t onnx_read(onnx_builder_t *builder, cleave_graph_t **out_graph, cleave_error_t *error) {
  cleave_text_t bytes = onnx_finish(builder);
  cleave_status_t status = cleave_onnx_read_memory(bytes.data, bytes.length, "model", NULL, out_graph, error);
  cleave_text_deinit(&bytes);
  return status;
}

void onnx_expect_graph(cleave_graph_t *graph, const char *expected) {
  cleave_text_t text = {0};
  unit_ok(cleave_graph_verify(graph, e));
  unit_ok(cleave_graph_print(graph, &text, e));
  ck_assert_str_eq(cleave_text_get(&text), expected);
  cleave_text_deinit(&text);
  cleave_graph_destroy(graph);
}

void onnx_expect(onnx_builder_t *builder, const char *expected) {
  cleave_graph_t *graph = NULL;
  unit_ok(onnx_read(builder, &graph, e));
  onnx_expect_graph(graph, expected);
}

void onnx_refused(onnx_builder_t *builder, cleave_status_t status, const char *message) {
  cleave_graph_t *graph = NULL;
  unit_fails(onnx_read(builder, &graph, e), status, message);
  ck_assert_ptr_null(graph);
}
