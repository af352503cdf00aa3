// SPDX-License-Identifier: Apache-2.0
/*
 * An operator: its schema as data, and the functions that infer and fold. The table of operators is
 * in src/ops; a graph only points to entries. Operators of custom domains all have `id`
 * CLEAVE_OP_ID_CUSTOM: those that a loaded library brings are entries of src/ops, too, with a schema and
 * CLEAVE_OP_FROM_LIBRARY; the others get an entry of their own in the graph, without schema and functions.
 */
#ifndef CLEAVE_GRAPH_OP_H
#define CLEAVE_GRAPH_OP_H

#include "base/arena.h"
#include "tensor/tensor.h"

typedef struct cleave_graph cleave_graph_t;

/* An attribute of a node, or a default of a schema. Lists and texts live in the graph's arena, or are static.
 */
/* The struct that a library sees, `size` aside. The name is interned in the graph, or static; a graph retains
 * the tensor `held`, and `tensor` is NULL until a view is made (ops/attribute_view.h). */
typedef cleave_attribute_view_t cleave_attribute_t;

/* The content of attributes, whoever has them, is compared, hashed and copied in one place (attribute.c).
 * Tensors are left to the caller: a graph retains them, a view borrows them. */

/* The content as bytes: a number, a text, or the elements of a list of numbers. NULL for texts in a list, and
 * for a tensor; *out_bytes is 0 then. */
const void *cleave_attribute_bytes(const cleave_attribute_t *attribute, size_t *out_bytes);

/* The content item by item: the elements of a list, or the one number or string; none of a tensor. Item
 * `index` is an attribute of kind INT, FLOAT or STRING without a name. A float as a double may lose the bits
 * of a NaN. */
bool cleave_attribute_is_list(const cleave_attribute_t *attribute);
uint32_t cleave_attribute_item_count(const cleave_attribute_t *attribute);
cleave_attribute_t cleave_attribute_item(const cleave_attribute_t *attribute, uint32_t index);

/* Sets the elements of a list, which are of its kind; `count` is the caller's to set. */
void cleave_attribute_set_list(cleave_attribute_t *attribute, const void *list);

/* Do they have the same kind and content, names aside? Floats are compared as bits. False for tensors. */
bool cleave_attribute_is_equal(const cleave_attribute_t *a, const cleave_attribute_t *b);

/* Hash of name, kind and content; of a tensor only name and kind. */
uint64_t cleave_attribute_hash_content(const cleave_attribute_t *attribute, uint64_t hash);

/* Replaces the text or list that the attribute points to by a copy in `arena`; false if memory is short. The
 * name and a tensor stay as they are. */
CLEAVE_MUST_USE bool cleave_attribute_copy_content(cleave_attribute_t *attribute, cleave_arena_t *arena);

typedef enum cleave_op_input_kind {
  CLEAVE_OP_INPUT_REQUIRED,
  CLEAVE_OP_INPUT_OPTIONAL,
  CLEAVE_OP_INPUT_VARIADIC /* only the last; one or more */
} cleave_op_input_kind_t;

typedef struct cleave_op_port {
  const char *name; /* of the ONNX schema: "X", "W", "B" */
  cleave_op_input_kind_t kind;
} cleave_op_port_t;

/* A default that is a list whose length, or content, the shapes of the node decide. */
typedef enum cleave_op_shaped_default {
  CLEAVE_OP_SHAPED_NONE,
  CLEAVE_OP_SHAPED_PER_AXIS, /* `fill` for each spatial axis: strides */
  CLEAVE_OP_SHAPED_PER_SIDE, /* `fill` for both sides of each spatial axis: pads */
  CLEAVE_OP_SHAPED_KERNEL,   /* sizes of the spatial axes of the weight: kernel_shape of Conv */
  CLEAVE_OP_SHAPED_REVERSED  /* axes of input 0, the last first: perm of Transpose */
} cleave_op_shaped_default_t;

typedef struct cleave_op_attribute {
  cleave_attribute_t value; /* name and kind, and the default if has_default */
  bool has_default;         /* one that is the same for every node */
  bool required;
  uint8_t shaped; /* cleave_op_shaped_default_t, if has_default is false */
  uint8_t fill;
} cleave_op_attribute_t;

enum {
  CLEAVE_OP_COMMUTATIVE = 1u << 0, /* inputs 0 and 1 may be swapped */
  CLEAVE_OP_POINTWISE =
      1u << 1,              /* every output element depends on the input elements at its (broadcast) place */
  CLEAVE_OP_VIEW = 1u << 2, /* output has the bytes of input 0 (Reshape) */
  CLEAVE_OP_RANDOM = 1u << 3,     /* results are drawn: never folded, never merged */
  CLEAVE_OP_DATA_SHAPE = 1u << 4, /* output shapes depend on input data beyond shape operands (NonZero) */
  CLEAVE_OP_SPATIAL = 1u << 5,    /* input 0 and output 0 are N x C x D1 x ... (Conv) */
  CLEAVE_OP_STATEFUL =
      1u << 6, /* keeps something between runs: never folded, merged, or shared by sessions */
  CLEAVE_OP_FROM_LIBRARY = 1u << 7 /* of src/ops/custom.h: `id` is CUSTOM, and there is a schema */
};

#define CLEAVE_OP_ID_CUSTOM UINT16_MAX

typedef struct cleave_op {
  const char *name;
  const char *domain;    /* "" is ai.onnx */
  uint16_t id;           /* index in the table (src/ops/op_list.inc), or CLEAVE_OP_ID_CUSTOM */
  int32_t since_version; /* of the domain's operator set whose form this is */
  int32_t last_version;  /* that has this form too, of operators of libraries; of others 0 */
  uint32_t flags;
  uint32_t input_count; /* ports; a variadic one stands for many */
  uint32_t output_count;
  uint32_t attribute_count;
  const cleave_op_port_t *inputs;
  const cleave_op_port_t *outputs;
  const cleave_op_attribute_t *attributes;
} cleave_op_t;

/* Are ports and attributes known? Not those of operators that nobody brought. */
static inline bool cleave_op_has_schema(const cleave_op_t *op) {
  return op->id != CLEAVE_OP_ID_CUSTOM || (op->flags & CLEAVE_OP_FROM_LIBRARY) != 0;
}

#endif /* CLEAVE_GRAPH_OP_H */
