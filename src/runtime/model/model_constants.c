// SPDX-License-Identifier: Apache-2.0
// Models with other constants. They begin where the first one began: with the graph before anything was
// folded, so that what is computed from constants is computed anew. The result is the same structure node by
// node, or none; and what did not change keeps its tensor, so that versions tell what did.
#include <string.h>

#include "backend/region/view.h"
#include "base/sized.h"
#include "graph/clone.h"
#include "graph/compare/same_structure.h"
#include "runtime/model/bind.h"
#include "runtime/model/model_internal.h"

/* Constants are tried one by one, up to so many, to say which of them it was that does not fit. */
enum { MAX_BLAMED = 64 };

/* A constant and what it shall be. */
typedef struct replacement {
  const char *name;
  cleave_value_t value;
  cleave_tensor_t *tensor; /* owned */
} replacement_t;

typedef struct replacements {
  replacement_t *items;
  size_t count; /* those that change anything */
} replacements_t;

/* The model that a chain of bound ones begins with. */
static const cleave_model_t *find_root(const cleave_model_t *model) {
  while (model->origin != NULL) {
    model = model->origin;
  }
  return model;
}

/* The graph that has the constants of the file. */
static const cleave_graph_t *source_graph(const cleave_model_t *model) {
  const cleave_model_t *root = find_root(model);
  return root->unfolded != NULL ? root->unfolded : root->graph;
}

/* ---- listing ---- */

uint32_t cleave_model_constant_count(const cleave_model_t *model) {
  return find_root(model)->constant_count;
}

cleave_status_t cleave_model_constant(const cleave_model_t *model, uint32_t index, cleave_port_t *out_port,
                                      cleave_error_t *error) {
  const cleave_graph_t *graph = source_graph(model);
  const cleave_model_t *root = find_root(model);
  if (index >= root->constant_count) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "constant %u: the model has %u constant%s",
                            (unsigned)index, (unsigned)root->constant_count,
                            CLEAVE_PLURAL(root->constant_count));
  }
  cleave_value_t value = {root->constants[index]};
  const cleave_port_t port = {.name = cleave_value_name(graph, value),
                              .tensor = cleave_tensor_view(cleave_graph_value(graph, value)->tensor)};
  CLEAVE_TRY(CLEAVE_SIZED_CHECK(cleave_port_t, out_port, error));
  CLEAVE_SIZED_OUT(cleave_port_t, &port, out_port);
  return CLEAVE_OK;
}

/* ---- what is asked for ---- */

/* What has a name. */
typedef struct named {
  uint32_t constant;       /* the last one of that name */
  uint32_t constant_count; /* with that name */
  bool is_value;           /* something has the name, constant or not */
  bool is_given;           /* the request has it */
} named_t;

/* By the number of the name among the graph's strings. */
static cleave_status_t list_names(const cleave_model_t *root, const cleave_graph_t *graph,
                                  named_t **out_names, cleave_error_t *error) {
  named_t *names = cleave_allocate_zeroed((size_t)graph->strings.count + 1, sizeof *names);
  CLEAVE_TRY_MEMORY(names, error);
  for (uint32_t k = 0; k < cleave_graph_value_bound(graph); k++) {
    names[graph->values.items[k].name].is_value |= !graph->values.items[k].is_removed;
  }
  for (uint32_t k = 0; k < root->constant_count; k++) {
    named_t *named = &names[graph->values.items[root->constants[k]].name];
    named->constant = root->constants[k];
    named->constant_count++;
  }
  *out_names = names;
  return CLEAVE_OK;
}

static cleave_status_t fail_unknown(const cleave_model_t *root, const cleave_graph_t *graph, const char *name,
                                    cleave_error_t *error) {
  cleave_nearest_t nearest = {0};
  for (uint32_t k = 0; k < root->constant_count; k++) {
    cleave_nearest_offer(&nearest, name, cleave_value_name(graph, (cleave_value_t){root->constants[k]}));
  }
  return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                          "constant '%.100s': the model has no constant of this name%s", name,
                          cleave_nearest_hint(&nearest));
}

static cleave_status_t find_constant(const cleave_model_t *root, const cleave_graph_t *graph, named_t *names,
                                     const char *name, cleave_value_t *out_value, cleave_error_t *error) {
  cleave_string_t string = cleave_strings_find(&graph->strings, name, strlen(name));
  if (name[0] == '\0' || string.index >= graph->strings.count || !names[string.index].is_value) {
    return fail_unknown(root, graph, name, error);
  }
  named_t *named = &names[string.index];
  if (named->is_given) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "constant '%.100s' is given twice", name);
  }
  if (named->constant_count > 1) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "constant '%.100s': %u constants of the model have this name; give them names of "
                            "their own in the file",
                            name, (unsigned)named->constant_count);
  }
  if (named->constant_count == 0) {
    return cleave_error_set(
        error, CLEAVE_ERROR_INVALID_ARGUMENT,
        "constant '%.100s': the model computes this value, or takes it as an input: it is not a "
        "constant",
        name);
  }
  named->is_given = true;
  *out_value = (cleave_value_t){named->constant};
  return CLEAVE_OK;
}

static cleave_status_t check_type(const char *name, const cleave_tensor_t *old,
                                  const cleave_tensor_view_t *new, cleave_error_t *error) {
  bool same = new->dtype == old->dtype &&new->rank == old->rank;
  for (int32_t d = 0; same && d < old->rank; d++) {
    same = new->dims[d] == old->dims[d];
  }
  if (!same) {
    cleave_text_t text = {0};
    cleave_text_format(&text, "constant '%.100s': expected ", name);
    cleave_type_print(NULL, old->dtype, old->rank, old->dims, &text);
    cleave_text_add(&text, ", found ");
    cleave_type_print(NULL, new->dtype, new->rank, new->dims, &text);
    cleave_status_t status = cleave_text_check(&text, error);
    CLEAVE_THEN(status, cleave_error_set(error, CLEAVE_ERROR_SHAPE, "%s", cleave_text_get(&text)));
    cleave_text_deinit(&text);
    return status;
  }
  if (new->data == NULL && old->bytes > 0) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "constant '%.100s': the tensor has no data",
                            name);
  }
  if (new->storage != CLEAVE_STORAGE_DENSE || new->memory != CLEAVE_MEMORY_HOST) {
    return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED,
                            "constant '%.100s': expected a dense tensor in the memory of the host", name);
  }
  return CLEAVE_OK;
}

static cleave_status_t copy_view(const cleave_tensor_view_t *view, cleave_tensor_t **out_tensor,
                                 cleave_error_t *error) {
  cleave_tensor_t *tensor = NULL;
  CLEAVE_TRY(cleave_tensor_create(view->dtype, view->rank, view->dims, &tensor, error));
  cleave_status_t status = CLEAVE_OK;
  if (view->dtype != CLEAVE_DTYPE_STRING && tensor->bytes > 0) {
    memcpy(tensor->data, view->data, tensor->bytes);
  }
  for (int64_t k = 0; view->dtype == CLEAVE_DTYPE_STRING && k < tensor->count && status == CLEAVE_OK; k++) {
    const char *text = ((const char *const *)view->data)[k];
    status = cleave_tensor_set_string(tensor, k, text, strlen(text), error);
  }
  CLEAVE_TRY_OR(status, cleave_tensor_release(tensor));
  cleave_tensor_touch(tensor);
  *out_tensor = tensor;
  return CLEAVE_OK;
}

static void replacements_deinit(replacements_t *list) {
  for (size_t k = 0; list->items != NULL && k < list->count; k++) {
    cleave_tensor_release(list->items[k].tensor);
  }
  cleave_free(list->items);
}

static cleave_status_t read_one(const cleave_graph_t *graph, const char *name, cleave_value_t value,
                                const cleave_tensor_view_t *tensor, replacements_t *list,
                                cleave_error_t *error) {
  cleave_tensor_t *old = cleave_graph_value(graph, value)->tensor;
  cleave_tensor_t *new = NULL;
  CLEAVE_TRY(check_type(name, old, tensor, error));
  CLEAVE_TRY(copy_view(tensor, &new, error));
  if (cleave_tensor_is_same(old, new)) {
    cleave_tensor_release(new);
  } else {
    list->items[list->count++] = (replacement_t){name, value, new};
  }
  return CLEAVE_OK;
}

/* Everything that can be wrong with the request itself is found here. */
static cleave_status_t read_request(const cleave_model_t *model, const char *const *names,
                                    const cleave_tensor_view_t *const *tensors, size_t count,
                                    replacements_t *list, cleave_error_t *error) {
  const cleave_model_t *root = find_root(model);
  const cleave_graph_t *graph = source_graph(model);
  named_t *known = NULL;
  list->items = cleave_allocate_zeroed(count, sizeof *list->items);
  CLEAVE_TRY_MEMORY(list->items, error);
  CLEAVE_TRY(list_names(root, graph, &known, error));
  cleave_status_t status = CLEAVE_OK;
  for (size_t k = 0; status == CLEAVE_OK && k < count; k++) {
    cleave_value_t value = CLEAVE_VALUE_NONE;
    if (names[k] == NULL || tensors[k] == NULL) {
      status =
          cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT, "constant %zu has no name or no tensor", k);
    }
    CLEAVE_THEN(status, find_constant(root, graph, known, names[k], &value, error));
    CLEAVE_THEN(status, read_one(graph, names[k], value, tensors[k], list, error));
  }
  cleave_free(known);
  return status;
}

/* ---- the new model ---- */

/* CLEAVE_ERROR_UNSUPPORTED: it would be another structure; `error` then says only what differs. */
static cleave_status_t settle(const cleave_model_t *old, cleave_model_t *model, cleave_error_t *error) {
  cleave_text_t text = {0};
  cleave_status_t status = CLEAVE_OK;
  if (!cleave_graph_has_structure_of(model->graph, old->graph, &text)) {
    status = cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED, "%s", cleave_text_get(&text));
  }
  cleave_text_deinit(&text);
  return status == CLEAVE_OK ? cleave_graph_share_constants(model->graph, old->graph, error) : status;
}

/* If inference or folding fails with these constants, the structure counts as another one. */
static cleave_status_t as_structure(cleave_status_t status, const cleave_error_t *cause,
                                    cleave_error_t *error) {
  return status == CLEAVE_ERROR_OUT_OF_MEMORY
             ? cleave_error_out_of_memory(error)
             : cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED, "%s", cause->message);
}

static cleave_status_t set_all(cleave_graph_t *graph, const replacement_t *items, size_t count,
                               cleave_error_t *error) {
  for (size_t k = 0; k < count; k++) {
    CLEAVE_TRY(cleave_graph_set_constant(graph, items[k].value, items[k].tensor, error));
  }
  return cleave_graph_release_unused(graph, error);
}

/* A model that is not bound. `model` has no graphs yet. */
static cleave_status_t fill_model(cleave_model_t *old, const replacement_t *items, size_t count,
                                  cleave_model_t *model, cleave_error_t *error) {
  cleave_error_t cause = CLEAVE_ERROR_INIT;
  if (old->unfolded != NULL) {
    CLEAVE_TRY(cleave_graph_copy(old->unfolded, &model->unfolded, error));
    CLEAVE_TRY(set_all(model->unfolded, items, count, error));
    CLEAVE_TRY(cleave_graph_copy(model->unfolded, &model->graph, error));
  } else {
    CLEAVE_TRY(cleave_graph_copy(old->graph, &model->graph, error));
    CLEAVE_TRY(set_all(model->graph, items, count, error));
  }
  cleave_status_t status = cleave_graph_simplify(model->graph, NULL, 0, NULL, &cause);
  return status == CLEAVE_OK ? settle(old, model, error) : as_structure(status, &cause, error);
}

static cleave_status_t make_model(cleave_model_t *old, const replacement_t *items, size_t count,
                                  cleave_model_t **out_model, cleave_error_t *error) {
  cleave_model_t *model = NULL;
  cleave_status_t status = CLEAVE_OK;
  *out_model = NULL;
  if (old->origin == NULL) {
    CLEAVE_TRY(cleave_model_wrap_take(old->context, NULL, &model, error));
    model->texts = cleave_model_retain(old->texts != NULL ? old->texts : old);
    model->dead_count = old->dead_count;
    status = fill_model(old, items, count, model, error);
    CLEAVE_THEN(status, cleave_model_list_constants(model, error));
  } else {
    cleave_model_t *origin = NULL;
    cleave_error_t cause = CLEAVE_ERROR_INIT;
    CLEAVE_TRY(make_model(old->origin, items, count, &origin, error));
    status = cleave_model_bind(origin, old->bound_inputs, old->bound_count, &model, &cause);
    status = status == CLEAVE_OK ? settle(old, model, error) : as_structure(status, &cause, error);
    cleave_model_release(origin);
  }
  CLEAVE_TRY_OR(status, cleave_model_release(model));
  *out_model = model;
  return CLEAVE_OK;
}

/* The constant that does not fit even alone, or the only one; NULL: it is several together. */
static const char *find_culprit(cleave_model_t *model, const replacements_t *list) {
  for (size_t k = 0; list->count > 1 && list->count <= MAX_BLAMED && k < list->count; k++) {
    cleave_model_t *alone = NULL;
    cleave_status_t status = make_model(model, &list->items[k], 1, &alone, NULL);
    cleave_model_release(alone);
    if (status == CLEAVE_ERROR_UNSUPPORTED) {
      return list->items[k].name;
    }
  }
  return list->count == 1 ? list->items[0].name : NULL;
}

cleave_status_t cleave_model_set_constants(cleave_model_t *model, const char *const *names,
                                           const cleave_tensor_view_t *const *tensors, size_t count,
                                           cleave_model_t **out_model, cleave_error_t *error) {
  replacements_t list = {NULL, 0};
  cleave_error_t cause = CLEAVE_ERROR_INIT;
  *out_model = NULL;
  CLEAVE_TRY(cleave_list_check("names", names, count, error));
  CLEAVE_TRY(cleave_list_check("tensors", tensors, count, error));
  cleave_status_t status = read_request(model, names, tensors, count, &list, error);
  if (status == CLEAVE_OK && list.count == 0) {
    *out_model = cleave_model_retain(model);
  } else if (status == CLEAVE_OK) {
    status = make_model(model, list.items, list.count, out_model, &cause);
    if (status == CLEAVE_ERROR_UNSUPPORTED) {
      const char *culprit = find_culprit(model, &list);
      status =
          culprit == NULL
              ? cleave_error_set(
                    error, status,
                    "the constants decide the structure of the model (%.400s): load the model again",
                    cause.message)
              : cleave_error_set(
                    error, status,
                    "constant '%.100s' decides the structure of the model (%.400s): load the model again",
                    culprit, cause.message);
    } else if (status != CLEAVE_OK) {
      status = cleave_error_set(error, status, "%s", cause.message);
    }
  }
  replacements_deinit(&list);
  return status;
}
