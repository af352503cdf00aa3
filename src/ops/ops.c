// SPDX-License-Identifier: Apache-2.0
// Lookup in the table of operators, and attributes with the schema's defaults filled in. Names are found
// through an open-addressing table that is built once; it is never more than half full.

#include "ops/ops.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/hash.h"
#include "ops/custom.h"
#include "ops/schema.h"

enum { SLOT_COUNT = 512 };
_Static_assert(CLEAVE_OP_COUNT * 2 <= SLOT_COUNT, "enlarge the hash table of operators");

static uint16_t slots[SLOT_COUNT]; /* id + 1; 0: free */
static pthread_once_t slots_once = PTHREAD_ONCE_INIT;

/* "ai.onnx" is another way to write the default domain. */
static const char *normal_domain(const char *domain) {
  return domain == NULL || strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

static size_t first_slot(const char *name) {
  return (size_t)(cleave_hash_bytes(CLEAVE_HASH_SEED, name, strlen(name)) % SLOT_COUNT);
}

static void build_slots(void) {
  const cleave_op_t *table = cleave_op_table();
  for (uint16_t id = 0; id < CLEAVE_OP_COUNT; id++) {
    size_t slot = first_slot(table[id].name);
    while (slots[slot] != 0) {
      slot = (slot + 1) % SLOT_COUNT;
    }
    slots[slot] = (uint16_t)(id + 1);
  }
}

int32_t cleave_op_newest_version(const char *domain) {
  const cleave_op_t *table = cleave_op_table();
  int32_t newest = 0;
  domain = normal_domain(domain);
  for (uint16_t id = 0; id < CLEAVE_OP_COUNT; id++) {
    if (table[id].since_version > newest && strcmp(table[id].domain, domain) == 0) {
      newest = table[id].since_version;
    }
  }
  return newest;
}

const cleave_op_t *cleave_op_find(const char *domain, const char *name) {
  if (name == NULL) {
    return NULL;
  }
  (void)pthread_once(&slots_once, build_slots);
  const cleave_op_t *table = cleave_op_table();
  domain = normal_domain(domain);
  for (size_t slot = first_slot(name); slots[slot] != 0; slot = (slot + 1) % SLOT_COUNT) {
    const cleave_op_t *op = &table[slots[slot] - 1];
    if (strcmp(op->name, name) == 0 && strcmp(op->domain, domain) == 0) {
      return op;
    }
  }
  return domain[0] == '\0' ? NULL : cleave_custom_op_find(domain, name);
}

const cleave_op_t *cleave_op_find_full(const char *name) {
  static const char *const OWN[] = {"", "cleave", "ai.onnx.ml", "ai.onnx.preview.training"};
  const char *dot = strrchr(name, '.');
  char domain[64];
  if (dot != NULL) {
    size_t length = (size_t)(dot - name);
    if (length >= sizeof domain) {
      return NULL;
    }
    memcpy(domain, name, length);
    domain[length] = '\0';
    return cleave_op_find(domain, dot + 1);
  }
  const cleave_op_t *op = NULL;
  for (size_t k = 0; k < sizeof OWN / sizeof OWN[0] && op == NULL; k++) {
    op = cleave_op_find(OWN[k], name);
  }
  return op;
}

const cleave_op_t *cleave_op_get(cleave_op_id_t id) {
  return (uint32_t)id < CLEAVE_OP_COUNT ? &cleave_op_table()[id] : NULL;
}

const char *cleave_op_hint(const char *name, char *buffer, size_t size) {
  cleave_nearest_t nearest = {0};
  const cleave_op_t *table = cleave_op_table();
  for (uint32_t id = 0; id < CLEAVE_OP_COUNT; id++) {
    cleave_nearest_offer(&nearest, name, table[id].name);
  }
  for (const cleave_op_t *op = cleave_custom_op_next(NULL); op != NULL; op = cleave_custom_op_next(op)) {
    cleave_nearest_offer(&nearest, name, cleave_custom_op_full_name(op));
  }
  (void)snprintf(buffer, size, "%s", cleave_nearest_hint(&nearest));
  return buffer;
}

/* Exact names win over names that differ in case only: MaxUnpool has "I", Gather "indices". */
static uint32_t port_index(const cleave_op_port_t *ports, uint32_t count, const char *name) {
  for (uint32_t k = 0; k < count; k++) {
    if (strcmp(ports[k].name, name) == 0) {
      return k;
    }
  }
  for (uint32_t k = 0; k < count; k++) {
    if (strcasecmp(ports[k].name, name) == 0) {
      return k;
    }
  }
  return CLEAVE_INDEX_NONE;
}

uint32_t cleave_op_input_index(const cleave_op_t *op, const char *name) {
  return port_index(op->inputs, op->input_count, name);
}

uint32_t cleave_op_output_index(const cleave_op_t *op, const char *name) {
  return port_index(op->outputs, op->output_count, name);
}

const cleave_op_attribute_t *cleave_op_find_attribute(const cleave_op_t *op, const char *name) {
  for (uint32_t k = 0; k < op->attribute_count; k++) {
    if (strcmp(op->attributes[k].value.name, name) == 0) {
      return &op->attributes[k];
    }
  }
  return NULL;
}

const cleave_attribute_t *cleave_op_attribute(const cleave_graph_t *graph, cleave_node_t node,
                                              const char *name) {
  const cleave_attribute_t *own = cleave_node_attribute(graph, node, name);
  if (own != NULL) {
    return own;
  }
  const cleave_op_attribute_t *schema = cleave_op_find_attribute(cleave_node_op(graph, node), name);
  return schema != NULL && schema->has_default ? &schema->value : NULL;
}

/* ---- defaults that depend on shapes ---- */

static int32_t rank_of(const cleave_graph_t *graph, cleave_value_t value) {
  return cleave_value_exists(value) ? cleave_graph_value(graph, value)->rank : -1;
}

/* Spatial axes of a sliding window, by whatever tells their number; -1: nothing does. */
static int32_t spatial_rank(const cleave_graph_t *graph, cleave_node_t node) {
  int32_t rank = rank_of(graph, cleave_node_output(graph, node, 0));
  if (rank < 0 && (cleave_node_op(graph, node)->flags & CLEAVE_OP_SPATIAL) != 0) {
    rank = rank_of(graph, cleave_node_input(graph, node, 0));
  }
  const cleave_attribute_t *kernel = cleave_node_attribute(graph, node, "kernel_shape");
  if (rank < 0 && kernel != NULL && kernel->count > 0) {
    rank = (int32_t)kernel->count + 2;
  }
  return rank < 2 ? -1 : rank - 2;
}

/* Are the pads what the attribute says, and not what makes the output as large as another one wants? */
static bool has_explicit_pads(const cleave_graph_t *graph, cleave_node_t node) {
  uint32_t count = 0;
  return strncmp(cleave_op_text(graph, node, "auto_pad", ""), "SAME_", 5) != 0 &&
         (cleave_op_ints(graph, node, "output_shape", &count) == NULL || count == 0);
}

/* A list of static memory, or of the graph's. */
static const int64_t *shaped_default(const cleave_graph_t *graph, cleave_node_t node,
                                     const cleave_op_attribute_t *schema, uint32_t *out_count) {
  static const int64_t ZEROS[2 * CLEAVE_MAX_RANK] = {0};
  static const int64_t ONES[] = {1, 1, 1, 1, 1, 1, 1, 1};
  static const int64_t REVERSED[] = {7, 6, 5, 4, 3, 2, 1, 0};
  _Static_assert(sizeof ONES / sizeof ONES[0] == CLEAVE_MAX_RANK, "one for each axis");
  _Static_assert(sizeof REVERSED / sizeof REVERSED[0] == CLEAVE_MAX_RANK, "one for each axis");
  int32_t spatial = spatial_rank(graph, node);
  int32_t rank = rank_of(graph, cleave_node_input(graph, node, 0));
  switch ((cleave_op_shaped_default_t)schema->shaped) {
    case CLEAVE_OP_SHAPED_NONE: return NULL;
    case CLEAVE_OP_SHAPED_PER_AXIS:
      *out_count = spatial < 0 ? 0 : (uint32_t)spatial;
      return spatial < 0 ? NULL : schema->fill == 1 ? ONES : ZEROS;
    case CLEAVE_OP_SHAPED_PER_SIDE:
      *out_count = spatial < 0 ? 0 : 2 * (uint32_t)spatial;
      return spatial < 0 || !has_explicit_pads(graph, node) ? NULL : ZEROS;
    case CLEAVE_OP_SHAPED_REVERSED:
      *out_count = rank < 0 ? 0 : (uint32_t)rank;
      return rank < 0 ? NULL : REVERSED + CLEAVE_MAX_RANK - rank;
    case CLEAVE_OP_SHAPED_KERNEL: break;
  }
  uint32_t port = cleave_op_input_index(cleave_node_op(graph, node), "W");
  cleave_value_t weight = cleave_node_input(graph, node, port);
  int32_t weight_rank = rank_of(graph, weight);
  for (int32_t axis = 2; axis < weight_rank; axis++) {
    if (!cleave_dim_is_known(cleave_graph_value(graph, weight)->dims[axis])) {
      return NULL;
    }
  }
  *out_count = weight_rank < 3 ? 0 : (uint32_t)weight_rank - 2;
  return weight_rank < 3 ? NULL : cleave_graph_value(graph, weight)->dims + 2;
}

bool cleave_op_effective_attribute(const cleave_graph_t *graph, cleave_node_t node, const char *name,
                                   cleave_attribute_t *out_attribute) {
  const cleave_attribute_t *plain = cleave_op_attribute(graph, node, name);
  const cleave_op_attribute_t *schema = cleave_op_find_attribute(cleave_node_op(graph, node), name);
  bool is_shaped = schema != NULL && schema->shaped != CLEAVE_OP_SHAPED_NONE;
  /* An empty list is as good as none: files have such ones. */
  if (plain != NULL && !(is_shaped && plain->kind == CLEAVE_ATTRIBUTE_INTS && plain->count == 0)) {
    *out_attribute = *plain;
    return true;
  }
  if (!is_shaped) {
    return false;
  }
  *out_attribute = schema->value;
  out_attribute->ints = shaped_default(graph, node, schema, &out_attribute->count);
  return out_attribute->ints != NULL;
}

/* ---- by kind ---- */

int64_t cleave_op_int(const cleave_graph_t *graph, cleave_node_t node, const char *name, int64_t fallback) {
  const cleave_attribute_t *attribute = cleave_op_attribute(graph, node, name);
  return attribute != NULL && attribute->kind == CLEAVE_ATTRIBUTE_INT ? attribute->i : fallback;
}

double cleave_op_float(const cleave_graph_t *graph, cleave_node_t node, const char *name, double fallback) {
  const cleave_attribute_t *attribute = cleave_op_attribute(graph, node, name);
  return attribute != NULL && attribute->kind == CLEAVE_ATTRIBUTE_FLOAT ? attribute->f : fallback;
}

const char *cleave_op_text(const cleave_graph_t *graph, cleave_node_t node, const char *name,
                           const char *fallback) {
  const cleave_attribute_t *attribute = cleave_op_attribute(graph, node, name);
  return attribute != NULL && attribute->kind == CLEAVE_ATTRIBUTE_STRING ? attribute->s : fallback;
}

const int64_t *cleave_op_ints(const cleave_graph_t *graph, cleave_node_t node, const char *name,
                              uint32_t *out_count) {
  const cleave_attribute_t *attribute = cleave_op_attribute(graph, node, name);
  bool found = attribute != NULL && attribute->kind == CLEAVE_ATTRIBUTE_INTS;
  *out_count = found ? attribute->count : 0;
  return found ? attribute->ints : NULL;
}

/* ---- layout ---- */

/* Layouts by the one flag of spatial operators, and the names of their ports. */
enum { MIN_RANK = 3, MAX_RANK = 5 };

static const char *spatial(const char *const names[MAX_RANK - MIN_RANK + 1], int32_t rank) {
  return rank < MIN_RANK || rank > MAX_RANK ? NULL : names[rank - MIN_RANK];
}

static const char *data_layout(int32_t rank) {
  static const char *const names[] = {"NCW", "NCHW", "NCDHW"};
  return spatial(names, rank);
}

const char *cleave_op_input_layout(const cleave_op_t *op, uint32_t input, int32_t rank) {
  static const char *const weights[] = {"OIW", "OIHW", "OIDHW"};
  static const char *const transposed[] = {"IOW", "IOHW", "IODHW"};
  if ((op->flags & CLEAVE_OP_SPATIAL) == 0 || input >= op->input_count) {
    return NULL;
  }
  if (input == 0) {
    return data_layout(rank);
  }
  if (strcmp(op->inputs[input].name, "W") != 0 && strcmp(op->inputs[input].name, "w") != 0) {
    return NULL;
  }
  return spatial(op->id == CLEAVE_OP_ConvTranspose ? transposed : weights, rank);
}

const char *cleave_op_output_layout(const cleave_op_t *op, uint32_t output, int32_t rank) {
  return (op->flags & CLEAVE_OP_SPATIAL) != 0 && output == 0 ? data_layout(rank) : NULL;
}
