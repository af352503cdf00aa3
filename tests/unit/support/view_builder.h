// SPDX-License-Identifier: Apache-2.0
/*
 * Region views made by hand, and programs run over them, for tests of backends without the rest of cleave.
 *
 *   view_builder_t *b = view_builder_create();
 *   uint32_t x = view_builder_value(b, CLEAVE_DTYPE_F32, 2, (int64_t[]){2, 3});
 *   uint32_t y = view_builder_value(b, CLEAVE_DTYPE_F32, 2, (int64_t[]){2, 3});
 *   view_builder_node(b, "Relu", 1, (uint32_t[]){x}, 1, (uint32_t[]){y});
 *   view_builder_output(b, y);
 *   const cleave_region_view_t *region = view_builder_region(b);
 *
 * A value that no node makes and that has no data is an input of the region. Everything lives until
 * `view_builder_destroy`. Running out of room or memory aborts: this is for tests only.
 */
#ifndef CLEAVE_TESTS_VIEW_BUILDER_H
#define CLEAVE_TESTS_VIEW_BUILDER_H

#include "cleave/backend.h"

typedef struct view_builder view_builder_t;

view_builder_t *view_builder_create(void);
void view_builder_destroy(view_builder_t *builder);

/* A value; rank -1 or negative dims are unknown. */
uint32_t view_builder_value(view_builder_t *builder, cleave_dtype_t dtype, int32_t rank, const int64_t *dims);

/* A constant: its data is borrowed. */
uint32_t view_builder_constant(view_builder_t *builder, cleave_dtype_t dtype, int32_t rank,
                               const int64_t *dims, const void *data);

void view_builder_output(view_builder_t *builder, uint32_t value);

/* Adds a node of ai.onnx, or of cleave's own ("cleave.UnpackBits"); CLEAVE_INDEX_NONE leaves an operand out.
 */
uint32_t view_builder_node(view_builder_t *builder, const char *op, uint32_t input_count,
                           const uint32_t *inputs, uint32_t output_count, const uint32_t *outputs);

/* Moves a node to another domain. */
void view_builder_domain(view_builder_t *builder, uint32_t node, const char *domain);

/* Attributes of a node. */
void view_builder_int(view_builder_t *builder, uint32_t node, const char *name, int64_t value);
void view_builder_float(view_builder_t *builder, uint32_t node, const char *name, double value);
void view_builder_string(view_builder_t *builder, uint32_t node, const char *name, const char *value);
void view_builder_ints(view_builder_t *builder, uint32_t node, const char *name, uint32_t count,
                       const int64_t *values);
void view_builder_floats(view_builder_t *builder, uint32_t node, const char *name, uint32_t count,
                         const float *values);
void view_builder_tensor(view_builder_t *builder, uint32_t node, const char *name, cleave_dtype_t dtype,
                         int32_t rank, const int64_t *dims, const void *data);

/* Joins nodes into one fusion; labels may be NULL. */
uint32_t view_builder_fusion(view_builder_t *builder, const char *rule, uint32_t node_count,
                             const uint32_t *nodes, const char *const *labels);

/* Gives a fusion its one attribute. */
void view_builder_fusion_int(view_builder_t *builder, uint32_t fusion, const char *name, int64_t value);

/* The region as built so far. */
const cleave_region_view_t *view_builder_region(view_builder_t *builder);

/* A host whose parallel loop runs the chunks one after the other, the last one first: what depends on order
 * or on the size of chunks comes to light. */
const cleave_host_t *view_builder_host(void);

/* A compiled program with memory for one run. */
typedef struct view_program {
  const cleave_backend_t *backend;
  void *program;
  uint32_t input_count;
  uint32_t output_count;
  cleave_tensor_view_t inputs[16];
  cleave_tensor_view_t outputs[16];
  int64_t input_dims[16][CLEAVE_MAX_RANK];
  int64_t output_dims[16][CLEAVE_MAX_RANK];
  void *output_memory[16]; /* owned; NULL where the test gave its own */
  void *workspace;
  cleave_message_t message; /* of the last failure */
} view_program_t;

/* Compiles; on success the program waits for its inputs. On failure nothing is to be destroyed. */
CLEAVE_MUST_USE cleave_status_t view_program_create(view_program_t *program, const cleave_backend_t *backend,
                                                    void *state, const cleave_region_view_t *region,
                                                    int32_t threads);
void view_program_destroy(view_program_t *program);

/* Sets the data of an input of the region; where its shape was unknown, also the shape. */
void view_program_input(view_program_t *program, uint32_t input, int32_t rank, const int64_t *dims,
                        const void *data);

/* Runs. Outputs of known shape get memory filled with 0xa5 first; the others are made when the program asks.
 */
CLEAVE_MUST_USE cleave_status_t view_program_run(view_program_t *program);

#endif /* CLEAVE_TESTS_VIEW_BUILDER_H */
