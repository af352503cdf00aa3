// SPDX-License-Identifier: Apache-2.0
// The region with Attention and RMSNormalization spelled out. Nodes keep their order, with the new ones in
// the place of the one that they stand for, so the order stays topological; the result of an expanded node
// is the same value as before, made by the last of its nodes.
// Long file: two operators, and one way to write their parts.
#include "onednn/units/expand.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "onednn/library/types.h"

// Limits of what one expanded node may add.
enum { MAX_NODES = 20, MAX_VALUES = 28, MAX_FUSIONS = 2, MAX_INPUTS = 2 };

typedef struct builder {
  const cleave_region_view_t *from;
  kernel_arena_t *arena;
  cleave_message_t *message;
  cleave_value_view_t *values;
  cleave_node_view_t *nodes;
  cleave_fusion_view_t *fusions;
  uint32_t *node_of;
  uint32_t *fusion_of;
  uint32_t value_count;
  uint32_t node_count;
  uint32_t fusion_count;
  const cleave_node_view_t *node;  // the one that is being expanded
  uint32_t index;
  uint32_t fusion;  // of that node, or CLEAVE_INDEX_NONE
  bool failed;      // out of memory
  bool attends;     // Attention may be one kernel, and then stays
} builder_t;

// A view up to the FLOPs of its nodes.
#define WITHOUT_FLOPS offsetof(cleave_region_view_t, flops)

static bool expands(const cleave_node_view_t *node) {
  return onednn_node_is(node, "Attention") || onednn_node_is(node, "RMSNormalization");
}

// The loop for attention multiplies in float32; in a region of another precision, products of primitives do.
static bool in_float32(const cleave_region_view_t *region) {
  const cleave_attribute_view_t *attribute = cleave_view_region_attribute(region, "precision");
  return attribute == NULL ||
         (attribute->kind == CLEAVE_ATTRIBUTE_STRING && onednn_type_named(attribute->s) == dnnl_f32);
}

static cleave_status_t refuse(const builder_t *builder, const char *why) {
  const cleave_node_view_t *node = builder->node;
  return kernel_fail(builder->message, CLEAVE_ERROR_UNSUPPORTED, "%s '%s': %s", node->op,
                     node->name != NULL && node->name[0] != '\0' ? node->name : node->op, why);
}

static void *allocate(builder_t *builder, size_t count, size_t size) {
  void *memory = kernel_arena_allocate(builder->arena, count, size);
  builder->failed = builder->failed || memory == NULL;
  return memory;
}

// ---- parts ----

static uint32_t add_value(builder_t *builder, cleave_dtype_t dtype, int32_t rank, const int64_t *dims,
                          const void *data) {
  int64_t *copy = allocate(builder, (size_t)rank + 1, sizeof(*copy));
  if (copy == NULL) {
    return CLEAVE_INDEX_NONE;
  }
  if (rank > 0) {
    memcpy(copy, dims, (size_t)rank * sizeof(*copy));
  }
  cleave_value_view_t *value = &builder->values[builder->value_count];
  *value = (cleave_value_view_t){
      .size = sizeof(*value),
      .name = builder->node->name != NULL ? builder->node->name : "",
      .tensor = {.size = sizeof(value->tensor), .dtype = dtype, .rank = rank, .dims = copy, .data = data},
      .producer = CLEAVE_INDEX_NONE};
  return builder->value_count++;
}

static uint32_t add_number(builder_t *builder, double number) {
  float *data = allocate(builder, 1, sizeof(*data));
  if (data == NULL) {
    return CLEAVE_INDEX_NONE;
  }
  *data = (float)number;
  return add_value(builder, CLEAVE_DTYPE_F32, 0, NULL, data);
}

// The node `op` of these inputs (`b` may be left out), whose result is `output`.
static uint32_t add_node(builder_t *builder, const char *op, uint32_t a, uint32_t b, uint32_t output) {
  uint32_t *ports = allocate(builder, MAX_INPUTS + 1, sizeof(*ports));
  if (ports == NULL || a == CLEAVE_INDEX_NONE || output == CLEAVE_INDEX_NONE) {
    builder->failed = true;
    return output;
  }
  ports[0] = a;
  ports[1] = b;
  ports[2] = output;
  cleave_node_view_t *node = &builder->nodes[builder->node_count];
  *node = (cleave_node_view_t){.size = sizeof(*node),
                               .op = op,
                               .domain = "",
                               .name = builder->node->name,
                               .opset_version = 21,
                               .input_count = b == CLEAVE_INDEX_NONE ? 1U : 2U,
                               .output_count = 1,
                               .inputs = ports,
                               .outputs = ports + 2,
                               .fusion = CLEAVE_INDEX_NONE};
  builder->values[output].producer = builder->node_count;
  builder->node_of[builder->node_count++] = builder->index;
  return output;
}

// Gives the node that was added last an attribute.
static void set_ints(builder_t *builder, const char *name, bool is_list, const int64_t *values,
                     uint32_t count) {
  cleave_node_view_t *node = &builder->nodes[builder->node_count - 1];
  cleave_attribute_view_t *attributes = allocate(builder, node->attribute_count + 1U, sizeof(*attributes));
  int64_t *copy = allocate(builder, count, sizeof(*copy));
  if (attributes == NULL || copy == NULL) {
    return;
  }
  memcpy(copy, values, count * sizeof(*copy));
  for (uint32_t k = 0; k < node->attribute_count; k++) {
    attributes[k] = node->attributes[k];
  }
  cleave_attribute_view_t *attribute = &attributes[node->attribute_count];
  *attribute = (cleave_attribute_view_t){.size = sizeof(*attribute),
                                         .name = name,
                                         .kind = is_list ? CLEAVE_ATTRIBUTE_INTS : CLEAVE_ATTRIBUTE_INT,
                                         .count = is_list ? count : 0,
                                         .i = is_list ? 0 : copy[0],
                                         .ints = is_list ? copy : NULL};
  node->attributes = attributes;
  node->attribute_count++;
}

// The nodes from `first` on become one fusion.
static void fuse(builder_t *builder, uint32_t first) {
  uint32_t count = builder->node_count - first;
  uint32_t *nodes = allocate(builder, count, sizeof(*nodes));
  const char **labels = allocate(builder, count, sizeof(*labels));
  if (nodes == NULL || labels == NULL || count < 2) {
    return;
  }
  for (uint32_t k = 0; k < count; k++) {
    nodes[k] = first + k;
    labels[k] = "";
    builder->nodes[first + k].fusion = builder->fusion_count;
  }
  builder->fusions[builder->fusion_count] = (cleave_fusion_view_t){.size = sizeof(cleave_fusion_view_t),
                                                                   .rule = "",
                                                                   .node_count = count,
                                                                   .nodes = nodes,
                                                                   .labels = labels};
  builder->fusion_of[builder->fusion_count++] = builder->fusion;
}

// `op` of `a` and `b`, a float32 value of this shape.
static uint32_t compute(builder_t *builder, const char *op, uint32_t a, uint32_t b,
                        const onednn_shape_t *shape) {
  return add_node(builder, op, a, b, add_value(builder, CLEAVE_DTYPE_F32, shape->rank, shape->dims, NULL));
}

static uint32_t transpose(builder_t *builder, uint32_t x, const onednn_shape_t *from, const int64_t *order) {
  onednn_shape_t to = {.rank = from->rank};
  for (int32_t d = 0; d < from->rank; d++) {
    to.dims[d] = from->dims[order[d]];
  }
  uint32_t y = compute(builder, "Transpose", x, CLEAVE_INDEX_NONE, &to);
  set_ints(builder, "perm", true, order, (uint32_t)from->rank);
  return y;
}

static uint32_t reshape(builder_t *builder, uint32_t x, onednn_shape_t shape) {
  return compute(builder, "Reshape", x, CLEAVE_INDEX_NONE, &shape);
}

// ---- Attention ----

typedef struct attention {
  uint32_t q, k, v, mask;
  int32_t rank;
  int64_t batch, heads, queries, keys, size, value_size;  // -1: unknown
  double scale;
  double softcap;
  bool is_causal;
  bool is_grouped;  // heads of keys serve several heads of queries
} attention_t;

static uint32_t input_of(const cleave_node_view_t *node, uint32_t index) {
  return index < node->input_count ? node->inputs[index] : CLEAVE_INDEX_NONE;
}

// Is an output but the first used?
static bool has_more_outputs(const builder_t *builder) {
  const cleave_region_view_t *region = builder->from;
  for (uint32_t k = 1; k < builder->node->output_count; k++) {
    uint32_t value = builder->node->outputs[k];
    if (value == CLEAVE_INDEX_NONE) {
      continue;
    }
    bool used = region->values[value].is_output;
    for (uint32_t n = 0; n < region->node_count && !used; n++) {
      for (uint32_t s = 0; s < region->nodes[n].input_count; s++) {
        used = used || region->nodes[n].inputs[s] == value;
      }
    }
    if (used) {
      return true;
    }
  }
  return false;
}

static cleave_status_t read_heads(builder_t *builder, attention_t *a) {
  const cleave_node_view_t *node = builder->node;
  onednn_shape_t q = onednn_shape_of(&builder->from->values[a->q]);
  onednn_shape_t k = onednn_shape_of(&builder->from->values[a->k]);
  onednn_shape_t v = onednn_shape_of(&builder->from->values[a->v]);
  if ((q.rank != 3 && q.rank != 4) || k.rank != q.rank || v.rank != q.rank) {
    return refuse(builder, "the rank of an input is unknown, or neither 3 nor 4");
  }
  bool flat = q.rank == 3;
  a->rank = q.rank;
  a->heads = flat ? cleave_view_int(node, "q_num_heads", 0) : q.dims[1];
  int64_t key_heads = flat ? cleave_view_int(node, "kv_num_heads", 0) : k.dims[1];
  bool grouped = a->heads > 0 && key_heads > 0 && key_heads != a->heads;
  if (a->heads == 0 || (flat && (a->heads < 0 || key_heads < 1)) ||
      (grouped && (!builder->attends || a->heads % key_heads != 0))) {
    return refuse(builder, "several heads of queries share one head of keys");
  }
  a->is_grouped = grouped;
  a->batch = q.dims[0];
  a->queries = q.dims[flat ? 1 : 2];
  a->keys = k.dims[flat ? 1 : 2];
  a->size = flat && q.dims[2] > 0 ? q.dims[2] / a->heads : q.dims[q.rank - 1];
  a->value_size = flat && v.dims[2] > 0 ? v.dims[2] / key_heads : v.dims[v.rank - 1];
  // Unknown sizes are negative; in a product of size * heads neither is then.
  int64_t key_size = flat && k.dims[2] > 0 ? k.dims[2] / key_heads : k.dims[k.rank - 1];
  bool whole = !flat || ((q.dims[2] < 0 || q.dims[2] % a->heads == 0) &&
                         (k.dims[2] < 0 || k.dims[2] % key_heads == 0) &&
                         (v.dims[2] < 0 || v.dims[2] % key_heads == 0));
  if (!whole || (a->size >= 0 && key_size >= 0 && a->size != key_size)) {
    return refuse(builder, "the sizes of heads do not fit");
  }
  return CLEAVE_OK;
}

static cleave_status_t read_attention(builder_t *builder, attention_t *a) {
  const cleave_node_view_t *node = builder->node;
  *a = (attention_t){.q = input_of(node, 0),
                     .k = input_of(node, 1),
                     .v = input_of(node, 2),
                     .mask = input_of(node, 3),
                     .softcap = cleave_view_float(node, "softcap", 0),
                     .is_causal = cleave_view_int(node, "is_causal", 0) != 0};
  if (a->q == CLEAVE_INDEX_NONE || a->k == CLEAVE_INDEX_NONE || a->v == CLEAVE_INDEX_NONE) {
    return refuse(builder, "an input is left out");
  }
  if (input_of(node, 4) != CLEAVE_INDEX_NONE || input_of(node, 5) != CLEAVE_INDEX_NONE ||
      has_more_outputs(builder)) {
    return refuse(builder, "it has past keys, or its scores are used outside");
  }
  if (input_of(node, 6) != CLEAVE_INDEX_NONE) {
    return refuse(builder, "the number of keys is known only at run time");
  }
  if (a->mask != CLEAVE_INDEX_NONE) {
    const cleave_tensor_view_t *mask = &builder->from->values[a->mask].tensor;
    if (mask->dtype != CLEAVE_DTYPE_F32 || mask->rank < 0) {
      return refuse(builder, "its mask is not float32, or its rank is unknown");
    }
  }
  ONEDNN_TRY(read_heads(builder, a));
  a->scale = cleave_view_attribute(node, "scale") != NULL ? cleave_view_float(node, "scale", 1)
                                                          : 1 / sqrt((double)a->size);
  return CLEAVE_OK;
}

// [queries, keys]: 0 if the key is not behind the query, minus infinity elsewhere. While a size is unknown
// it is an input.
static uint32_t causal_mask(builder_t *builder, const attention_t *a) {
  const int64_t dims[] = {a->queries, a->keys};
  size_t count = 0;
  if (a->queries < 1 || a->keys < 1) {
    return add_value(builder, CLEAVE_DTYPE_F32, 2, dims, NULL);
  }
  bool fits = onednn_multiply((size_t)a->queries, (size_t)a->keys, &count);
  float *data = fits ? allocate(builder, count, sizeof(*data)) : NULL;
  if (data == NULL) {
    builder->failed = true;
    return CLEAVE_INDEX_NONE;
  }
  for (int64_t q = 0; q < a->queries; q++) {
    for (int64_t k = q + 1; k < a->keys; k++) {
      data[q * a->keys + k] = -INFINITY;
    }
  }
  return add_value(builder, CLEAVE_DTYPE_F32, 2, dims, data);
}

// The product of queries and keys with what comes before the softmax: one kernel.
static uint32_t scores_of(builder_t *builder, const attention_t *a, uint32_t q, uint32_t k,
                          const onednn_shape_t *shape) {
  uint32_t first = builder->node_count;
  uint32_t x = compute(builder, "MatMul", q, k, shape);
  if (a->scale != 1) {
    x = compute(builder, "Mul", x, add_number(builder, a->scale), shape);
  }
  if (a->softcap > 0) {
    x = compute(builder, "Mul", x, add_number(builder, 1 / a->softcap), shape);
    x = compute(builder, "Tanh", x, CLEAVE_INDEX_NONE, shape);
    x = compute(builder, "Mul", x, add_number(builder, a->softcap), shape);
  }
  if (a->mask != CLEAVE_INDEX_NONE) {
    x = compute(builder, "Add", x, a->mask, shape);
  }
  if (a->is_causal) {
    x = compute(builder, "Add", x, causal_mask(builder, a), shape);
  }
  fuse(builder, first);
  return x;
}

static uint32_t softmax_of(builder_t *builder, uint32_t x, const onednn_shape_t *shape) {
  const int64_t axis = -1;
  const int64_t masked = 1;
  uint32_t y = compute(builder, "Softmax", x, CLEAVE_INDEX_NONE, shape);
  set_ints(builder, "axis", false, &axis, 1);
  set_ints(builder, ONEDNN_MASKED, false, &masked, 1);
  return y;
}

// [batch, length, heads * size] -> [batch, heads, length, size], or with keys last [batch, heads, size,
// length].
static uint32_t split_heads(builder_t *builder, uint32_t x, const attention_t *a, int64_t length,
                            int64_t size, bool keys_last) {
  static const int64_t orders[2][4] = {{0, 2, 1, 3}, {0, 2, 3, 1}};
  onednn_shape_t shape = {.rank = 4, .dims = {a->batch, length, a->heads, size}};
  return transpose(builder, reshape(builder, x, shape), &shape, orders[keys_last ? 1 : 0]);
}

// One head: batched matrices as they are.
static void attend_flat(builder_t *builder, const attention_t *a, uint32_t y) {
  static const int64_t order[] = {0, 2, 1};
  onednn_shape_t keys = onednn_shape_of(&builder->from->values[a->k]);
  onednn_shape_t scores = {.rank = 3, .dims = {a->batch, a->queries, a->keys}};
  uint32_t x = scores_of(builder, a, a->q, transpose(builder, a->k, &keys, order), &scores);
  (void)add_node(builder, "MatMul", softmax_of(builder, x, &scores), a->v, y);
}

static void attend_heads(builder_t *builder, const attention_t *a, uint32_t y) {
  static const int64_t back[] = {0, 2, 1, 3};
  static const int64_t keys_last[] = {0, 1, 3, 2};
  onednn_shape_t scores = {.rank = 4, .dims = {a->batch, a->heads, a->queries, a->keys}};
  onednn_shape_t result = {.rank = 4, .dims = {a->batch, a->heads, a->queries, a->value_size}};
  if (a->rank == 4) {
    onednn_shape_t keys = onednn_shape_of(&builder->from->values[a->k]);
    uint32_t x = scores_of(builder, a, a->q, transpose(builder, a->k, &keys, keys_last), &scores);
    (void)add_node(builder, "MatMul", softmax_of(builder, x, &scores), a->v, y);
    return;
  }
  uint32_t q = split_heads(builder, a->q, a, a->queries, a->size, false);
  uint32_t k = split_heads(builder, a->k, a, a->keys, a->size, true);
  uint32_t v = split_heads(builder, a->v, a, a->keys, a->value_size, false);
  uint32_t x = softmax_of(builder, scores_of(builder, a, q, k, &scores), &scores);
  uint32_t joined = transpose(builder, compute(builder, "MatMul", x, v, &result), &result, back);
  (void)add_node(builder, "Reshape", joined, CLEAVE_INDEX_NONE, y);
}

// Products and a softmax are faster as long as the scores of a head stay in the cache (measured: up to 197
// tokens; from 384 on the loop is). They know no several heads of queries share one head of keys.
static bool pays_as_loop(const attention_t *a) {
  const int64_t most_scores = 65536;
  return a->is_grouped || (a->queries > 0 && a->keys > most_scores / a->queries);
}

static cleave_status_t expand_attention(builder_t *builder, bool *stays) {
  attention_t a;
  ONEDNN_TRY(read_attention(builder, &a));
  *stays = builder->attends && pays_as_loop(&a);
  if (*stays) {
    return CLEAVE_OK;
  }
  int32_t mask_rank = a.mask != CLEAVE_INDEX_NONE ? builder->from->values[a.mask].tensor.rank : 0;
  if (a.rank == 3 && a.heads == 1 && mask_rank <= 2) {
    attend_flat(builder, &a, builder->node->outputs[0]);
  } else {
    attend_heads(builder, &a, builder->node->outputs[0]);
  }
  return CLEAVE_OK;
}

// ---- RMSNormalization ----

// x / sqrt(sum(x^2) / count + epsilon) * scale: two kernels.
static cleave_status_t expand_rms(builder_t *builder) {
  const cleave_node_view_t *node = builder->node;
  uint32_t x = input_of(node, 0);
  uint32_t scale = input_of(node, 1);
  onednn_shape_t shape = onednn_shape_of(&builder->from->values[x]);
  int32_t axis = shape.rank > 0 ? onednn_axis(cleave_view_int(node, "axis", -1), shape.rank) : -1;
  double count = 1;
  if (axis < 0 || scale == CLEAVE_INDEX_NONE) {
    return refuse(builder, "its axis is out of range, its rank unknown, or its scale missing");
  }
  onednn_shape_t reduced = shape;
  int64_t *axes = allocate(builder, CLEAVE_MAX_RANK, sizeof(*axes));
  const int64_t axis_count = shape.rank - axis;
  for (int32_t d = axis; d < shape.rank && axes != NULL; d++) {
    if (shape.dims[d] < 1) {
      return refuse(builder, "the normalized size is unknown");
    }
    count *= (double)shape.dims[d];
    reduced.dims[d] = 1;
    axes[d - axis] = d;
  }
  uint32_t first = builder->node_count;
  uint32_t list = add_value(builder, CLEAVE_DTYPE_I64, 1, &axis_count, axes);
  uint32_t square = compute(builder, "ReduceSumSquare", x, list, &reduced);
  square = compute(builder, "Mul", square, add_number(builder, 1 / count), &reduced);
  double epsilon = cleave_view_float(node, "epsilon", 1e-5);
  square = compute(builder, "Add", square, add_number(builder, epsilon), &reduced);
  uint32_t root = compute(builder, "Sqrt", square, CLEAVE_INDEX_NONE, &reduced);
  fuse(builder, first);
  first = builder->node_count;
  (void)add_node(builder, "Mul", compute(builder, "Div", x, root, &shape), scale, node->outputs[0]);
  fuse(builder, first);
  return CLEAVE_OK;
}

// ---- the region ----

bool onednn_fusion_says(const cleave_region_view_t *region, uint32_t fusion, const char *name) {
  const cleave_attribute_view_t *wanted =
      fusion != CLEAVE_INDEX_NONE ? cleave_view_fusion_attribute(region, fusion, name) : NULL;
  return wanted != NULL && wanted->kind == CLEAVE_ATTRIBUTE_INT && wanted->i != 0;
}

static cleave_status_t expand_nodes(builder_t *builder, uint32_t *places) {
  const cleave_region_view_t *from = builder->from;
  for (uint32_t n = 0; n < from->node_count; n++) {
    places[n] = CLEAVE_INDEX_NONE;
  }
  // For now, the fusion that a node is in.
  for (uint32_t f = 0; f < from->fusion_count; f++) {
    for (uint32_t k = 0; k < from->fusions[f].node_count; k++) {
      places[from->fusions[f].nodes[k]] = f;
    }
  }
  for (uint32_t n = 0; n < from->node_count; n++) {
    const cleave_node_view_t *node = &from->nodes[n];
    builder->node = node;
    builder->index = n;
    builder->fusion = places[n];
    if (expands(node) && !onednn_fusion_says(from, places[n], "kernel")) {
      if (places[n] != CLEAVE_INDEX_NONE && from->fusions[places[n]].node_count > 1) {
        return refuse(builder, "it cannot be fused with other nodes");
      }
      bool stays = false;
      ONEDNN_TRY(onednn_node_is(node, "Attention") ? expand_attention(builder, &stays) : expand_rms(builder));
      if (!stays) {
        places[n] = CLEAVE_INDEX_NONE;
        continue;
      }
    }
    places[n] = builder->node_count;
    for (uint32_t k = 0; k < node->output_count; k++) {
      if (node->outputs[k] != CLEAVE_INDEX_NONE) {
        builder->values[node->outputs[k]].producer = builder->node_count;
      }
    }
    builder->nodes[builder->node_count] = *node;
    builder->node_of[builder->node_count++] = n;
  }
  return CLEAVE_OK;
}

// Fusions of the region given: their nodes have moved, expanded ones have gone.
static void move_fusions(builder_t *builder, const uint32_t *places) {
  for (uint32_t f = 0; f < builder->from->fusion_count; f++) {
    const cleave_fusion_view_t *fusion = &builder->from->fusions[f];
    uint32_t *nodes = allocate(builder, fusion->node_count, sizeof(*nodes));
    cleave_fusion_view_t *moved = &builder->fusions[f];
    builder->fusion_of[f] = f;
    *moved = *fusion;
    moved->nodes = nodes;
    moved->node_count = 0;
    for (uint32_t k = 0; k < fusion->node_count && nodes != NULL; k++) {
      if (places[fusion->nodes[k]] != CLEAVE_INDEX_NONE) {
        nodes[moved->node_count++] = places[fusion->nodes[k]];
      }
    }
  }
}

// Copies the attributes of the given fusions; expanded ones have none.
static cleave_status_t copy_fusion_attributes(builder_t *builder, cleave_region_view_t *copy) {
  const cleave_region_view_t *from = builder->from;
  if (copy->fusion_attributes == NULL) {
    return CLEAVE_OK;
  }
  cleave_attribute_list_t *lists = allocate(builder, builder->fusion_count + 1U, sizeof(*lists));
  if (lists == NULL) {
    return kernel_fail(builder->message, CLEAVE_ERROR_OUT_OF_MEMORY,
                       "out of memory while analysing a region");
  }
  for (uint32_t f = 0; f < from->fusion_count; f++) {
    lists[f] = from->fusion_attributes[f];
  }
  copy->fusion_attributes = lists;
  return CLEAVE_OK;
}

static cleave_status_t make_room(builder_t *builder, size_t expanded) {
  const cleave_region_view_t *from = builder->from;
  size_t values = from->value_count + expanded * MAX_VALUES;
  size_t nodes = from->node_count + expanded * MAX_NODES;
  size_t fusions = from->fusion_count + expanded * MAX_FUSIONS;
  if (values > UINT_MAX / 2 || nodes > UINT_MAX / 2) {
    return kernel_fail(builder->message, CLEAVE_ERROR_LIMIT, "region '%s' is too large", from->name);
  }
  builder->values = allocate(builder, values, sizeof(*builder->values));
  builder->nodes = allocate(builder, nodes, sizeof(*builder->nodes));
  builder->node_of = allocate(builder, nodes, sizeof(*builder->node_of));
  builder->fusions = allocate(builder, fusions, sizeof(*builder->fusions));
  builder->fusion_of = allocate(builder, fusions, sizeof(*builder->fusion_of));
  return CLEAVE_OK;
}

cleave_status_t onednn_expand(const cleave_region_view_t *region, kernel_arena_t *arena,
                              cleave_message_t *message, onednn_expansion_t *out) {
  size_t expanded = 0;
  for (uint32_t n = 0; n < region->node_count; n++) {
    expanded += expands(&region->nodes[n]) ? 1 : 0;
  }
  *out = (onednn_expansion_t){.region = region, .given_values = region->value_count};
  if (expanded == 0) {
    return CLEAVE_OK;
  }
  builder_t builder = {.from = region,
                       .arena = arena,
                       .message = message,
                       .attends = in_float32(region),
                       .value_count = region->value_count,
                       .fusion_count = region->fusion_count};
  ONEDNN_TRY(make_room(&builder, expanded));
  cleave_region_view_t *copy = allocate(&builder, 1, sizeof(*copy));
  uint32_t *places = allocate(&builder, region->node_count, sizeof(*places));
  if (!builder.failed) {
    memcpy(builder.values, region->values, region->value_count * sizeof(*builder.values));
    ONEDNN_TRY(expand_nodes(&builder, places));
    move_fusions(&builder, places);
  }
  if (builder.failed) {
    return kernel_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, "out of memory while analysing a region");
  }
  // A host of an older version gives less. FLOPs are of the nodes given.
  memcpy(copy, region, region->size < WITHOUT_FLOPS ? region->size : WITHOUT_FLOPS);
  copy->size = WITHOUT_FLOPS;
  ONEDNN_TRY(copy_fusion_attributes(&builder, copy));
  copy->values = builder.values;
  copy->value_count = builder.value_count;
  copy->nodes = builder.nodes;
  copy->node_count = builder.node_count;
  copy->fusions = builder.fusions;
  copy->fusion_count = builder.fusion_count;
  out->region = copy;
  out->node_of = builder.node_of;
  out->fusion_of = builder.fusion_of;
  return CLEAVE_OK;
}
