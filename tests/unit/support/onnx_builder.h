// SPDX-License-Identifier: Apache-2.0
/*
 * Small ONNX models in memory, byte by byte as other writers would make them, for tests of the reader. All
 * functions append; nothing is checked, so that broken models can be made, too.
 */
#ifndef CLEAVE_TESTS_ONNX_BUILDER_H
#define CLEAVE_TESTS_ONNX_BUILDER_H

#include "formats/onnx/onnx.h"
#include "formats/onnx/onnx_proto.h"
#include "formats/protobuf.h"

typedef struct onnx_builder {
  cleave_text_t model; /* ModelProto, without the graph */
  cleave_text_t graph;
  size_t node; /* mark of the open node */
} onnx_builder_t;

void onnx_begin(onnx_builder_t *builder, int64_t ir_version, int64_t opset_version);
void onnx_opset(onnx_builder_t *builder, const char *domain, int64_t version);

/* `dims`: "2 3 N ?"; NULL: no shape. */
void onnx_input(onnx_builder_t *builder, const char *name, int64_t dtype, const char *dims);
void onnx_output(onnx_builder_t *builder, const char *name, int64_t dtype, const char *dims);
void onnx_value_info(onnx_builder_t *builder, const char *name, int64_t dtype, const char *dims);
/* A ValueInfoProto in `field` of any message. */
void onnx_put_value_info(cleave_text_t *out, uint32_t field, const char *name, int64_t dtype,
                         const char *dims);

/* Initializers; `dims` as above. Floats are float_data, ints and bytes raw_data. */
void onnx_floats(onnx_builder_t *builder, const char *name, const char *dims, const float *values,
                 size_t count);
void onnx_ints(onnx_builder_t *builder, const char *name, const char *dims, const int64_t *values,
               size_t count);
void onnx_bytes(onnx_builder_t *builder, const char *name, const char *dims, const uint8_t *values,
                size_t count);

/* A node: names separated by spaces, "-" is a name left out. Attributes, then onnx_end_node. */
void onnx_node(onnx_builder_t *builder, const char *op_type, const char *inputs, const char *outputs);
void onnx_int(onnx_builder_t *builder, const char *name, int64_t value);
void onnx_float(onnx_builder_t *builder, const char *name, float value);
void onnx_text(onnx_builder_t *builder, const char *name, const char *value);
void onnx_int_list(onnx_builder_t *builder, const char *name, const int64_t *values, size_t count);
void onnx_float_list(onnx_builder_t *builder, const char *name, const float *values, size_t count);
void onnx_domain(onnx_builder_t *builder, const char *domain);
void onnx_end_node(onnx_builder_t *builder);
/* A node without attributes. */
void onnx_simple(onnx_builder_t *builder, const char *op_type, const char *inputs, const char *outputs);

/* An operator set that the function which is being written imports. */
void onnx_function_import(onnx_builder_t *builder, const char *domain, int64_t version);

/* A NodeProto in `field` of any message, without attributes. */
void onnx_put_node(cleave_text_t *out, uint32_t field, const char *op_type, const char *domain,
                   const char *inputs, const char *outputs);

/* The bytes of the model; frees the builder. The caller deinits the text. */
cleave_text_t onnx_finish(onnx_builder_t *builder);

/* Finishes and reads, copying from memory as "model". */
cleave_status_t onnx_read(onnx_builder_t *builder, cleave_graph_t **out_graph, cleave_error_t *error);

/* The graph is `expected` as cleave_graph_print writes it; destroys it. */
void onnx_expect_graph(cleave_graph_t *graph, const char *expected);
/* Finishes, reads and compares. */
void onnx_expect(onnx_builder_t *builder, const char *expected);
/* Finishes, and reading fails with exactly this. */
void onnx_refused(onnx_builder_t *builder, cleave_status_t status, const char *message);

#endif /* CLEAVE_TESTS_ONNX_BUILDER_H */
