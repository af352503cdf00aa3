// SPDX-License-Identifier: Apache-2.0
// Lookup in the table of operators, and attributes with the schema's defaults filled in. Names are found
// through an open-addressing table that is built once; it is never more than half full.

#include "ops/ops.h"

#include <pthread.h>
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
  const cleave_op_t *custom = domain[0] == '\0' ? NULL : cleave_custom_op_next(NULL);
  while (custom != NULL && (strcmp(custom->name, name) != 0 || strcmp(custom->domain, domain) != 0)) {
    custom = cleave_custom_op_next(custom);
  }
  return custom;
}

const cleave_op_t *cleave_op_find_full(const char *name) {
  static const char *const OWN[] = {"", "ai.onnx.ml", "ai.onnx.preview.training"};
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
  return cleave_nearest_hint(&nearest, buffer, size);
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

int64_t cleave_op_int(const cleave_graph_t *graph, cleave_node_t node, const char *name, int64_t otherwise) {
  const cleave_attribute_t *attribute = cleave_op_attribute(graph, node, name);
  return attribute != NULL && attribute->kind == CLEAVE_ATTRIBUTE_INT ? attribute->i : otherwise;
}

double cleave_op_float(const cleave_graph_t *graph, cleave_node_t node, const char *name, double otherwise) {
  const cleave_attribute_t *attribute = cleave_op_attribute(graph, node, name);
  return attribute != NULL && attribute->kind == CLEAVE_ATTRIBUTE_FLOAT ? attribute->f : otherwise;
}

const char *cleave_op_text(const cleave_graph_t *graph, cleave_node_t node, const char *name,
                           const char *otherwise) {
  const cleave_attribute_t *attribute = cleave_op_attribute(graph, node, name);
  return attribute != NULL && attribute->kind == CLEAVE_ATTRIBUTE_STRING ? attribute->s : otherwise;
}

const int64_t *cleave_op_ints(const cleave_graph_t *graph, cleave_node_t node, const char *name,
                              uint32_t *out_count) {
  const cleave_attribute_t *attribute = cleave_op_attribute(graph, node, name);
  bool found = attribute != NULL && attribute->kind == CLEAVE_ATTRIBUTE_INTS;
  *out_count = found ? attribute->count : 0;
  return found ? attribute->ints : NULL;
}
