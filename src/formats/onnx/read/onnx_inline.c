// SPDX-License-Identifier: Apache-2.0
/*
 * Model-local functions: a call is replaced by the nodes of the body, or, if the function is one of those
 * that the writer writes for an operator, by that operator. Values of the body get fresh names
 * ("<call>/<name>"), so that the result is one flat list in which every name is defined once.
 *
 * Work is bounded: no function calls itself, calls nest at most MAX_DEPTH deep, and the result has at most
 * MAX_NODES nodes, whatever a small file asks for.
 */
#include <string.h>

#include "formats/onnx/onnx.h"
#include "formats/onnx/onnx_model.h"
#include "formats/onnx/onnx_proto.h"
#include "ops/ops.h"

enum { MAX_DEPTH = 32, MAX_NODES = 1 << 20, MAX_WORK = 1 << 21 };

typedef struct inliner {
  cleave_onnx_model_t *model;
  cleave_onnx_nodes_t nodes; /* the result */
  cleave_strings_t keys;     /* of the functions: id - 1 is the index of the body */
  cleave_text_t key;
  size_t work;          /* names and nodes bound so far */
  uint64_t next_number; /* for names that are taken */
} inliner_t;

/* One text per (domain, name, overload): control characters keep the parts apart. */
static void write_key(inliner_t *inliner, const char *domain, const char *name, const char *overload) {
  inliner->key.length = 0;
  cleave_text_format(&inliner->key, "%s\x1f%s\x1f%s", domain, name, overload);
}

static cleave_status_t index_bodies(inliner_t *inliner, cleave_error_t *error) {
  cleave_onnx_model_t *model = inliner->model;
  for (size_t k = 0; k < model->bodies.count; k++) {
    const cleave_onnx_body_t *body = &model->bodies.items[k];
    cleave_string_t id;
    write_key(inliner, body->domain, body->name, body->overload);
    CLEAVE_TRY(cleave_text_check(&inliner->key, error));
    CLEAVE_TRY(cleave_strings_add(&inliner->keys, inliner->key.data, inliner->key.length, &id, error));
    if (id.index != k + 1) {
      return cleave_error_set(error, CLEAVE_ERROR_FORMAT, "function '%s' is defined twice", body->name);
    }
  }
  return CLEAVE_OK;
}

/* NULL: no function, the node stays. */
static cleave_onnx_body_t *find_body(inliner_t *inliner, const cleave_onnx_node_t *node) {
  write_key(inliner, node->domain, node->op_type, node->overload);
  if (inliner->key.failed) {
    return NULL; /* push_node fails then, too */
  }
  cleave_string_t id = cleave_strings_find(&inliner->keys, inliner->key.data, inliner->key.length);
  return id.index != UINT32_MAX ? &inliner->model->bodies.items[id.index - 1] : NULL;
}

static cleave_status_t parse_body_field(cleave_onnx_model_t *model, cleave_onnx_body_t *body,
                                        const cleave_protobuf_t *reader, const cleave_protobuf_field_t *field,
                                        cleave_error_t *error) {
  cleave_protobuf_t message;
  cleave_string_t name;
  switch (field->number) {
    case ONNX_FUNCTION_INPUT:
    case ONNX_FUNCTION_OUTPUT:
      CLEAVE_TRY(cleave_protobuf_expect(reader, field, CLEAVE_WIRE_BYTES, error));
      CLEAVE_TRY(cleave_onnx_add_name(&body->names, field->bytes, &name, error));
      if (field->number == ONNX_FUNCTION_INPUT) {
        CLEAVE_ARRAY_PUSH(&body->inputs, name, error);
      } else {
        CLEAVE_ARRAY_PUSH(&body->outputs, name, error);
      }
      return CLEAVE_OK;
    case ONNX_FUNCTION_NODE: {
      cleave_onnx_node_t node;
      CLEAVE_TRY(cleave_protobuf_enter(reader, field, "NodeProto", &message, error));
      CLEAVE_TRY(cleave_onnx_node_parse(model, &body->names, &body->opsets, &message, &node, error));
      if (node.version == 0) {
        return cleave_error_set(
            error, CLEAVE_ERROR_FORMAT,
            "function '%s': node '%s': it imports no operator set of domain '%s' for "
            "operator '%s'%s",
            body->name, node.label, node.domain[0] == '\0' ? "ai.onnx" : node.domain, node.op_type,
            cleave_onnx_opset_version(&model->opsets, node.domain) > 0 ? " (--lenient takes the model's)"
                                                                       : "");
      }
      CLEAVE_ARRAY_PUSH(&body->nodes, node, error);
      return CLEAVE_OK;
    }
    case ONNX_FUNCTION_ATTRIBUTE_PROTO: {
      cleave_onnx_attribute_t attribute;
      CLEAVE_TRY(cleave_protobuf_enter(reader, field, "AttributeProto", &message, error));
      CLEAVE_TRY(cleave_onnx_attribute_parse(model, &message, &attribute, error));
      CLEAVE_ARRAY_PUSH(&body->defaults, attribute, error);
      return CLEAVE_OK;
    }
    default: return CLEAVE_OK;
  }
}

static cleave_status_t parse_body(cleave_onnx_model_t *model, cleave_onnx_body_t *body,
                                  cleave_error_t *error) {
  cleave_protobuf_t reader = body->message;
  cleave_protobuf_field_t field;
  while (cleave_protobuf_next(&reader, &field, error)) {
    if (field.number == ONNX_FUNCTION_OPSET_IMPORT) {
      CLEAVE_TRY(cleave_onnx_opset_parse(model, &reader, &field, &body->opsets, error));
    }
  }
  CLEAVE_TRY(reader.status);
  /* Leniently, a function has what the model imports if it imports nothing itself. */
  for (size_t k = 0; model->options->lenient && k < model->opsets.count; k++) {
    if (cleave_onnx_opset_version(&body->opsets, model->opsets.items[k].domain) == 0) {
      CLEAVE_ARRAY_PUSH(&body->opsets, model->opsets.items[k], error);
    }
  }
  reader = body->message;
  while (cleave_protobuf_next(&reader, &field, error)) {
    CLEAVE_TRY(parse_body_field(model, body, &reader, &field, error));
  }
  CLEAVE_TRY(reader.status);
  body->is_parsed = true;
  return CLEAVE_OK;
}

static bool is_part_of_plan(const cleave_onnx_body_t *body) {
  return strcmp(body->domain, CLEAVE_ONNX_REGION_DOMAIN) == 0 ||
         strcmp(body->domain, CLEAVE_ONNX_FUSION_DOMAIN) == 0;
}

/* A name that nothing has yet: "<prefix>/<local>", or without a prefix the local one if it is free. */
static cleave_status_t fresh_name(inliner_t *inliner, const char *prefix, const char *local,
                                  cleave_string_t *out_name, cleave_error_t *error) {
  cleave_strings_t *strings = &inliner->model->graph->strings;
  cleave_text_t text = {0};
  cleave_text_format(&text, prefix != NULL ? "%s/%s" : "%s%s", prefix != NULL ? prefix : "", local);
  size_t length = text.length;
  while (!text.failed && cleave_strings_find(strings, text.data, text.length).index != UINT32_MAX) {
    text.length = length;
    cleave_text_format(&text, ".%llu", (unsigned long long)inliner->next_number++);
  }
  cleave_status_t status = cleave_text_check(&text, error);
  CLEAVE_THEN(status, cleave_strings_add(strings, text.data, text.length, out_name, error));
  cleave_text_deinit(&text);
  return status;
}

static cleave_status_t push_node(inliner_t *inliner, const cleave_onnx_node_t *node, cleave_error_t *error) {
  CLEAVE_TRY(cleave_text_check(&inliner->key, error));
  if (inliner->nodes.count >= inliner->model->nodes.count + MAX_NODES) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "functions expand to more than %d nodes", MAX_NODES);
  }
  CLEAVE_ARRAY_PUSH(&inliner->nodes, *node, error);
  return CLEAVE_OK;
}

/* An Identity if the body hands an input, or the same value twice, to the caller. */
static cleave_status_t push_identity(inliner_t *inliner, const cleave_onnx_node_t *call, cleave_string_t from,
                                     cleave_string_t to, int32_t version, cleave_error_t *error) {
  cleave_onnx_node_t node = {
      .op_type = "Identity", .domain = "", .overload = "", .name = call->name, .version = version};
  node.inputs = cleave_arena_copy(&inliner->model->arena, &from, sizeof from);
  node.outputs = cleave_arena_copy(&inliner->model->arena, &to, sizeof to);
  CLEAVE_TRY_MEMORY(node.inputs != NULL && node.outputs != NULL, error);
  node.input_count = 1;
  node.output_count = 1;
  return push_node(inliner, &node, error);
}

/* Local names that the call gives a name from outside. */
static cleave_status_t bind_ports(inliner_t *inliner, const cleave_onnx_body_t *body,
                                  const cleave_onnx_node_t *call, cleave_string_t *names,
                                  cleave_error_t *error) {
  if (call->input_count > body->inputs.count || call->output_count > body->outputs.count) {
    return cleave_error_set(error, CLEAVE_ERROR_FORMAT,
                            "node '%s': function '%s' has %zu inputs and %zu outputs, found %u and %u",
                            call->label, body->name, body->inputs.count, body->outputs.count,
                            call->input_count, call->output_count);
  }
  names[0] = CLEAVE_STRING_EMPTY;
  for (uint32_t k = 0; k < body->inputs.count; k++) {
    names[body->inputs.items[k].index] = k < call->input_count ? call->inputs[k] : CLEAVE_STRING_EMPTY;
  }
  int32_t version = cleave_onnx_opset_version(&body->opsets, "");
  for (uint32_t k = 0; k < call->output_count; k++) {
    cleave_string_t *name = &names[body->outputs.items[k].index];
    if (call->outputs[k].index == 0) {
      continue;
    }
    if (name->index == UINT32_MAX) {
      *name = call->outputs[k];
    } else {
      CLEAVE_TRY(push_identity(inliner, call, *name, call->outputs[k], version, error));
    }
  }
  return CLEAVE_OK;
}

/* The body of a function in the place of a call. */
typedef struct expansion {
  inliner_t *inliner;
  const cleave_onnx_body_t *body;
  const char *prefix;     /* of new names; NULL: they stay as they are */
  cleave_string_t *names; /* per name of the body: that in the graph, or UINT32_MAX */
} expansion_t;

static cleave_status_t bind_names(const expansion_t *expansion, const cleave_string_t *locals, uint32_t count,
                                  cleave_string_t **out_names, cleave_error_t *error) {
  inliner_t *inliner = expansion->inliner;
  cleave_string_t *bound = cleave_arena_allocate(&inliner->model->arena, count, sizeof *bound);
  CLEAVE_TRY_MEMORY(bound, error);
  for (uint32_t k = 0; k < count; k++) {
    cleave_string_t *name = &expansion->names[locals[k].index];
    if (name->index == UINT32_MAX) {
      const char *local = cleave_strings_text(&expansion->body->names, locals[k]);
      CLEAVE_TRY(fresh_name(inliner, expansion->prefix, local, name, error));
    }
    bound[k] = *name;
  }
  *out_names = bound;
  return CLEAVE_OK;
}

static const cleave_onnx_attribute_t *find_argument(const cleave_onnx_body_t *body,
                                                    const cleave_onnx_node_t *call, const char *name) {
  for (uint32_t k = 0; k < call->attribute_count; k++) {
    if (strcmp(call->attributes[k].value.name, name) == 0) {
      return call->attributes[k].is_empty ? NULL : &call->attributes[k];
    }
  }
  for (size_t k = 0; k < body->defaults.count; k++) {
    if (strcmp(body->defaults.items[k].value.name, name) == 0) {
      return body->defaults.items[k].reference == NULL ? &body->defaults.items[k] : NULL;
    }
  }
  return NULL;
}

static cleave_status_t bind_attributes(inliner_t *inliner, const cleave_onnx_body_t *body,
                                       const cleave_onnx_node_t *call, cleave_onnx_node_t *node,
                                       cleave_error_t *error) {
  cleave_onnx_attribute_t *bound =
      cleave_arena_copy(&inliner->model->arena, node->attributes, node->attribute_count * sizeof *bound);
  CLEAVE_TRY_MEMORY(bound, error);
  for (uint32_t k = 0; k < node->attribute_count; k++) {
    if (bound[k].reference == NULL) {
      continue;
    }
    const cleave_onnx_attribute_t *argument = find_argument(body, call, bound[k].reference);
    const char *name = bound[k].value.name;
    bound[k] = (cleave_onnx_attribute_t){.is_empty = argument == NULL};
    if (argument != NULL) {
      bound[k].value = argument->value;
    }
    bound[k].value.name = name;
  }
  node->attributes = bound;
  return CLEAVE_OK;
}

static cleave_status_t expand(inliner_t *inliner, const cleave_onnx_node_t *node, uint32_t depth,
                              cleave_error_t *error);

static cleave_status_t expand_body(inliner_t *inliner, cleave_onnx_body_t *body,
                                   const cleave_onnx_node_t *call, cleave_string_t *names, uint32_t depth,
                                   cleave_error_t *error) {
  bool keeps_names = is_part_of_plan(body);
  const char *prefix = keeps_names ? NULL : call->name[0] != '\0' ? call->name : call->op_type;
  expansion_t expansion = {inliner, body, prefix, names};
  CLEAVE_TRY(bind_ports(inliner, body, call, names, error));
  for (size_t k = 0; k < body->nodes.count; k++) {
    cleave_onnx_node_t node = body->nodes.items[k];
    CLEAVE_TRY(bind_names(&expansion, node.inputs, node.input_count, &node.inputs, error));
    CLEAVE_TRY(bind_names(&expansion, node.outputs, node.output_count, &node.outputs, error));
    CLEAVE_TRY(bind_attributes(inliner, body, call, &node, error));
    if (!keeps_names) {
      cleave_string_t name;
      CLEAVE_TRY(fresh_name(inliner, prefix, node.name[0] != '\0' ? node.name : node.op_type, &name, error));
      node.name = cleave_strings_text(&inliner->model->graph->strings, name);
    }
    CLEAVE_TRY(expand(inliner, &node, depth + 1, error));
  }
  return CLEAVE_OK;
}

static cleave_status_t expand_call(inliner_t *inliner, cleave_onnx_body_t *body,
                                   const cleave_onnx_node_t *call, uint32_t depth, cleave_error_t *error) {
  if (body->is_active) {
    return cleave_error_set(error, CLEAVE_ERROR_FORMAT, "function '%s' calls itself", body->name);
  }
  if (depth >= MAX_DEPTH) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "function '%s': calls nest more than %d deep",
                            body->name, MAX_DEPTH);
  }
  if (!body->is_parsed) {
    CLEAVE_TRY(parse_body(inliner->model, body, error));
  }
  size_t count = body->names.count > 0 ? body->names.count : 1;
  inliner->work += count + body->nodes.count;
  if (inliner->work > MAX_WORK) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "function '%s': too many calls", body->name);
  }
  cleave_string_t *names = cleave_allocate(count, sizeof *names);
  CLEAVE_TRY_MEMORY(names, error);
  memset(names, 0xff, count * sizeof *names); /* CLEAVE_STRING_NONE */
  body->is_active = true;
  cleave_status_t status = expand_body(inliner, body, call, names, depth, error);
  body->is_active = false;
  cleave_free(names);
  return status;
}

/* The operator that a function of the writer stands for ("Gelu_1": Gelu), or NULL. */
static const cleave_op_t *find_operator(const cleave_onnx_node_t *node) {
  char name[64];
  size_t length = strcspn(node->op_type, "_");
  if (strcmp(node->domain, CLEAVE_ONNX_OPERATOR_DOMAIN) != 0 || length >= sizeof name) {
    return NULL;
  }
  memcpy(name, node->op_type, length);
  name[length] = '\0';
  return cleave_op_find("", name);
}

static cleave_status_t expand(inliner_t *inliner, const cleave_onnx_node_t *node, uint32_t depth,
                              cleave_error_t *error) {
  const cleave_op_t *op = find_operator(node);
  if (op != NULL) {
    cleave_onnx_node_t again = *node;
    again.domain = "";
    again.op_type = op->name;
    again.version = CLEAVE_ONNX_NEWEST;
    return push_node(inliner, &again, error);
  }
  cleave_onnx_body_t *body = find_body(inliner, node);
  return body != NULL ? expand_call(inliner, body, node, depth, error) : push_node(inliner, node, error);
}

cleave_status_t cleave_onnx_model_inline(cleave_onnx_model_t *model, cleave_error_t *error) {
  if (model->bodies.count == 0) {
    return CLEAVE_OK;
  }
  inliner_t inliner = {.model = model};
  cleave_status_t status = index_bodies(&inliner, error);
  for (size_t k = 0; k < model->nodes.count && status == CLEAVE_OK; k++) {
    status = expand(&inliner, &model->nodes.items[k], 0, error);
  }
  if (status == CLEAVE_OK) {
    cleave_array_free(&model->nodes);
    model->nodes = inliner.nodes;
  } else {
    cleave_array_free(&inliner.nodes);
  }
  cleave_text_deinit(&inliner.key);
  cleave_strings_deinit(&inliner.keys);
  return status;
}
