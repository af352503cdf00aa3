// SPDX-License-Identifier: Apache-2.0
/* Expressions as nodes of a graph. After a failure nothing more is added, and values are NONE: callers look
 * at the status once, at the end. */
#ifndef CLEAVE_TRAIN_NODES_BUILD_H
#define CLEAVE_TRAIN_NODES_BUILD_H

#include "partition/rewrite/editor.h"

typedef struct cleave_train_build {
  cleave_editor_t *editor;
  const char *prefix; /* of names: "update(conv1.weight)" */
  cleave_status_t status;
  cleave_error_t *error;
} cleave_train_build_t;

/* A node of an operator of ONNX with one output. */
cleave_value_t cleave_train_node(cleave_train_build_t *build, const char *op, const cleave_value_t *inputs,
                                 size_t input_count, const cleave_attribute_t *attributes,
                                 size_t attribute_count);
cleave_value_t cleave_train_unary(cleave_train_build_t *build, const char *op, cleave_value_t a);
cleave_value_t cleave_train_binary(cleave_train_build_t *build, const char *op, cleave_value_t a,
                                   cleave_value_t b);
/* A scalar constant. */
cleave_value_t cleave_train_number(cleave_train_build_t *build, cleave_dtype_t dtype, double number);
/* A constant list of integers. */
cleave_value_t cleave_train_integers(cleave_train_build_t *build, const int64_t *values, size_t count);
/* The value in another dtype; itself if it has it. */
cleave_value_t cleave_train_cast(cleave_train_build_t *build, cleave_value_t a, cleave_dtype_t dtype);
/* An attribute of one integer. */
cleave_attribute_t cleave_train_integer(const char *name, int64_t value);

#endif /* CLEAVE_TRAIN_NODES_BUILD_H */
