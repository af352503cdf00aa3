// SPDX-License-Identifier: Apache-2.0
/*
 * A call is replaced by the nodes of the body, or, if the function is one of those that the writer writes for
 * an operator, by that operator. A branch is a body without ports for its inputs: names that it does not
 * define are those of the expansion around it, or of the model.
 */
#include <string.h>

#include "formats/onnx/onnx.h"
#include "formats/onnx/read/onnx_inline.h"
#include "ops/ops.h"

enum { MAX_DEPTH = 32, MAX_NODES = 1 << 20, MAX_WORK = 1 << 21 };

typedef cleave_onnx_inliner_t inliner_t;

/* A body in the place of a node, as long as the model: graphs inside of it may be read later. */
typedef struct cleave_onnx_expansion {
  const struct cleave_onnx_expansion *outer; /* around a branch; NULL: the model, or nothing (functions) */
  const cleave_onnx_body_t *body;
  const cleave_onnx_node_t *call; /* a copy */
  const char *prefix;             /* of new names; NULL: they stay as they are */
  cleave_string_t *names;         /* per name of the body: that in the graph, or UINT32_MAX */
  uint32_t depth;
  bool is_function;
} expansion_t;

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
  if (inliner->nodes.count >= inliner->limit) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "functions and branches expand to more than %d nodes",
                            MAX_NODES);
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
static cleave_status_t bind_ports(inliner_t *inliner, const expansion_t *expansion, cleave_error_t *error) {
  const cleave_onnx_body_t *body = expansion->body;
  const cleave_onnx_node_t *call = expansion->call;
  cleave_string_t *names = expansion->names;
  if (call->input_count > body->inputs.count || call->output_count > body->outputs.count) {
    return cleave_error_set(error, CLEAVE_ERROR_FORMAT,
                            "node '%s': function '%s' has %zu input%s and %zu output%s, found %u and %u",
                            call->label, body->name, body->inputs.count, CLEAVE_PLURAL(body->inputs.count),
                            body->outputs.count, CLEAVE_PLURAL(body->outputs.count), call->input_count,
                            call->output_count);
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

static cleave_status_t bind_names(inliner_t *inliner, const expansion_t *expansion,
                                  const cleave_string_t *locals, uint32_t count, cleave_string_t **out_names,
                                  cleave_error_t *error) {
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

/* Attributes that refer to one of the function around get its value; graphs see the names of the body. */
static cleave_status_t bind_attributes(inliner_t *inliner, const expansion_t *expansion,
                                       cleave_onnx_node_t *node, cleave_error_t *error) {
  const expansion_t *function = expansion;
  while (function != NULL && !function->is_function) {
    function = function->outer;
  }
  cleave_onnx_attribute_t *bound =
      cleave_arena_copy(&inliner->model->arena, node->attributes, node->attribute_count * sizeof *bound);
  CLEAVE_TRY_MEMORY(bound, error);
  for (uint32_t k = 0; k < node->attribute_count; k++) {
    if (bound[k].is_graph) {
      bound[k].scope = expansion;
    }
    if (bound[k].reference == NULL || function == NULL) {
      continue;
    }
    const cleave_onnx_attribute_t *argument =
        find_argument(function->body, function->call, bound[k].reference);
    const char *name = bound[k].value.name;
    bound[k] = argument != NULL ? *argument : (cleave_onnx_attribute_t){.is_empty = true};
    bound[k].value.name = name;
  }
  node->attributes = bound;
  return CLEAVE_OK;
}

static cleave_status_t expand(inliner_t *inliner, const cleave_onnx_node_t *node, uint32_t depth,
                              cleave_error_t *error);

static cleave_status_t expand_body(inliner_t *inliner, const expansion_t *expansion, cleave_error_t *error) {
  const cleave_onnx_body_t *body = expansion->body;
  CLEAVE_TRY(bind_ports(inliner, expansion, error));
  for (size_t k = 0; k < body->nodes.count; k++) {
    cleave_onnx_node_t node = body->nodes.items[k];
    CLEAVE_TRY(bind_names(inliner, expansion, node.inputs, node.input_count, &node.inputs, error));
    CLEAVE_TRY(bind_names(inliner, expansion, node.outputs, node.output_count, &node.outputs, error));
    CLEAVE_TRY(bind_attributes(inliner, expansion, &node, error));
    if (expansion->prefix != NULL) {
      cleave_string_t name;
      CLEAVE_TRY(fresh_name(inliner, expansion->prefix, node.name[0] != '\0' ? node.name : node.op_type,
                            &name, error));
      node.name = cleave_strings_text(&inliner->model->graph->strings, name);
    }
    CLEAVE_TRY(expand(inliner, &node, expansion->depth, error));
  }
  return CLEAVE_OK;
}

/* The expansion of a parsed body, of whose names none is bound yet. */
static cleave_status_t start(inliner_t *inliner, const cleave_onnx_body_t *body,
                             const cleave_onnx_node_t *call, uint32_t depth, expansion_t **out_expansion,
                             cleave_error_t *error) {
  if (depth > MAX_DEPTH) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "'%s': functions and branches nest more than %d deep",
                            body->name, MAX_DEPTH);
  }
  size_t count = body->names.count > 0 ? body->names.count : 1;
  inliner->work += count + body->nodes.count;
  if (inliner->work > MAX_WORK) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "'%s': too many calls and branches", body->name);
  }
  cleave_arena_t *arena = &inliner->model->arena;
  expansion_t *expansion = cleave_arena_allocate(arena, 1, sizeof *expansion);
  CLEAVE_TRY_MEMORY(expansion, error);
  expansion->body = body;
  expansion->depth = depth;
  expansion->call = cleave_arena_copy(arena, call, sizeof *call);
  expansion->names = cleave_arena_allocate(arena, count, sizeof *expansion->names);
  CLEAVE_TRY_MEMORY(expansion->call != NULL && expansion->names != NULL, error);
  memset(expansion->names, 0xff, count * sizeof *expansion->names); /* CLEAVE_STRING_NONE */
  expansion->prefix = is_part_of_plan(body) ? NULL : call->name[0] != '\0' ? call->name : call->op_type;
  *out_expansion = expansion;
  return CLEAVE_OK;
}

static cleave_status_t expand_call(inliner_t *inliner, cleave_onnx_body_t *body,
                                   const cleave_onnx_node_t *call, uint32_t depth, cleave_error_t *error) {
  expansion_t *expansion = NULL;
  if (body->is_active) {
    return cleave_error_set(error, CLEAVE_ERROR_FORMAT, "function '%s' calls itself", body->name);
  }
  if (!body->is_parsed) {
    CLEAVE_TRY(cleave_onnx_function_parse(inliner->model, body, error));
  }
  CLEAVE_TRY(start(inliner, body, call, depth + 1, &expansion, error));
  expansion->is_function = true;
  body->is_active = true;
  cleave_status_t status = expand_body(inliner, expansion, error);
  body->is_active = false;
  return status;
}

/* ---- branches ---- */

/* A name around a branch. A function has no more names than its own. */
static cleave_status_t find_outer(inliner_t *inliner, const expansion_t *around, const char *text,
                                  cleave_string_t *out_name, cleave_error_t *error) {
  for (; around != NULL; around = around->outer) {
    cleave_string_t local = cleave_strings_find(&around->body->names, text, strlen(text));
    *out_name = local.index != UINT32_MAX ? around->names[local.index] : CLEAVE_STRING_NONE;
    if (out_name->index != UINT32_MAX || around->is_function) {
      return CLEAVE_OK;
    }
  }
  return cleave_strings_add(&inliner->model->graph->strings, text, strlen(text), out_name, error);
}

/* Names that the branch does not define are those around it. */
static cleave_status_t bind_outer(inliner_t *inliner, const expansion_t *expansion, cleave_error_t *error) {
  const cleave_onnx_body_t *body = expansion->body;
  bool *is_own = cleave_allocate_zeroed((size_t)body->names.count + 1, sizeof *is_own);
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY_MEMORY(is_own, error);
  for (size_t k = 0; k < body->nodes.count; k++) {
    for (uint32_t o = 0; o < body->nodes.items[k].output_count; o++) {
      is_own[body->nodes.items[k].outputs[o].index] = true;
    }
  }
  for (size_t k = 0; k < body->initializers.count; k++) {
    is_own[body->initializers.items[k].name.index] = true;
  }
  for (uint32_t k = 1; k < body->names.count && status == CLEAVE_OK; k++) {
    const char *text = cleave_strings_text(&body->names, (cleave_string_t){k});
    if (!is_own[k]) {
      status = find_outer(inliner, expansion->outer, text, &expansion->names[k], error);
    }
  }
  cleave_free(is_own);
  return status;
}

static cleave_status_t add_initializers(inliner_t *inliner, const expansion_t *expansion,
                                        cleave_error_t *error) {
  const cleave_onnx_body_t *body = expansion->body;
  for (size_t k = 0; k < body->initializers.count; k++) {
    cleave_onnx_initializer_t initializer = body->initializers.items[k];
    cleave_string_t *name = NULL;
    CLEAVE_TRY(bind_names(inliner, expansion, &initializer.name, 1, &name, error));
    initializer.name = *name;
    CLEAVE_ARRAY_PUSH(&inliner->model->initializers, initializer, error);
  }
  return CLEAVE_OK;
}

static cleave_status_t expand_branch(inliner_t *inliner, const cleave_onnx_node_t *node,
                                     const cleave_onnx_attribute_t *attribute, cleave_error_t *error) {
  const expansion_t *outer = attribute->scope;
  cleave_onnx_body_t *body = NULL;
  expansion_t *expansion = NULL;
  cleave_onnx_node_t call = *node;
  call.input_count = 0; /* its condition */
  CLEAVE_TRY(cleave_onnx_branch_parse(inliner->model, attribute,
                                      outer != NULL ? &outer->body->opsets : &inliner->model->opsets, &body,
                                      error));
  if (body->outputs.count != node->output_count) {
    return cleave_error_set(error, CLEAVE_ERROR_FORMAT, "node '%s': '%s' has %zu output%s, expected %u",
                            node->label, body->name, body->outputs.count, CLEAVE_PLURAL(body->outputs.count),
                            node->output_count);
  }
  CLEAVE_TRY(start(inliner, body, &call, outer != NULL ? outer->depth + 1 : 1, &expansion, error));
  expansion->outer = outer;
  CLEAVE_TRY(bind_outer(inliner, expansion, error));
  CLEAVE_TRY(expand_body(inliner, expansion, error));
  return add_initializers(inliner, expansion, error);
}

/* ---- the whole ---- */

/* The operator that a function of the writer stands for ("Gelu_1": Gelu), or NULL. */
static const cleave_op_t *find_operator(const cleave_onnx_node_t *node) {
  char name[64];
  size_t length = strcspn(node->op_type, "_");
  if (strcmp(node->domain, CLEAVE_ONNX_OPERATOR_DOMAIN) != 0 || length >= sizeof name) {
    return NULL;
  }
  memcpy(name, node->op_type, length);
  name[length] = '\0';
  const cleave_op_t *op = cleave_op_find("", name);
  return op != NULL ? op : cleave_op_find("cleave", name);
}

static cleave_status_t expand(inliner_t *inliner, const cleave_onnx_node_t *node, uint32_t depth,
                              cleave_error_t *error) {
  const cleave_op_t *op = find_operator(node);
  if (op != NULL) {
    cleave_onnx_node_t again = *node;
    again.domain = op->domain;
    again.op_type = op->name;
    again.version = CLEAVE_ONNX_NEWEST;
    return push_node(inliner, &again, error);
  }
  cleave_onnx_body_t *body = find_body(inliner, node);
  return body != NULL ? expand_call(inliner, body, node, depth, error) : push_node(inliner, node, error);
}

cleave_status_t cleave_onnx_inliner_init(cleave_onnx_inliner_t *inliner, cleave_onnx_model_t *model,
                                         cleave_error_t *error) {
  *inliner = (cleave_onnx_inliner_t){.model = model, .limit = model->nodes.count + MAX_NODES};
  return index_bodies(inliner, error);
}

void cleave_onnx_inliner_deinit(cleave_onnx_inliner_t *inliner) {
  cleave_array_free(&inliner->nodes);
  cleave_text_deinit(&inliner->key);
  cleave_strings_deinit(&inliner->keys);
}

/* The result takes the place of the model's nodes. */
static void finish(inliner_t *inliner) {
  cleave_array_free(&inliner->model->nodes);
  inliner->model->nodes = inliner->nodes;
  inliner->nodes = (cleave_onnx_nodes_t){0};
}

cleave_status_t cleave_onnx_inline_functions(cleave_onnx_inliner_t *inliner, cleave_error_t *error) {
  const cleave_onnx_model_t *model = inliner->model;
  if (model->bodies.count == 0) {
    return CLEAVE_OK;
  }
  for (size_t k = 0; k < model->nodes.count; k++) {
    CLEAVE_TRY(expand(inliner, &model->nodes.items[k], 0, error));
  }
  finish(inliner);
  return CLEAVE_OK;
}

cleave_status_t cleave_onnx_inline_branches(cleave_onnx_inliner_t *inliner,
                                            const cleave_onnx_attribute_t *const *taken,
                                            cleave_error_t *error) {
  const cleave_onnx_model_t *model = inliner->model;
  for (size_t k = 0; k < model->nodes.count; k++) {
    const cleave_onnx_node_t *node = &model->nodes.items[k];
    CLEAVE_TRY(taken[k] != NULL ? expand_branch(inliner, node, taken[k], error)
                                : push_node(inliner, node, error));
  }
  finish(inliner);
  return CLEAVE_OK;
}
