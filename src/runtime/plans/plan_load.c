// SPDX-License-Identifier: Apache-2.0
// Plans from files for models of the embedding API, without Lua: read, compared with the model, checked, and
// every fusion and node of every region shown to its backend, as when the rules ran.
#include "runtime/plans/plan_load.h"

#include <stdio.h>
#include <string.h>

#include "backend/region/view.h"
#include "backend/registry/registry.h"
#include "base/sized.h"
#include "formats/onnx/onnx.h"
#include "graph/compare/structural_hash.h"
#include "partition/plan/plan_read.h"
#include "runtime/model/model_internal.h"
#include "runtime/model/rule_list.h"
#include "system/file.h"

/* The graph that the document is about: what its rewrites make of the model's, or that itself. */
static cleave_status_t rewrite(const cleave_plan_document_t *document, const cleave_graph_t *graph,
                               cleave_graph_t **out_rewritten, cleave_error_t *error) {
  cleave_error_t cause = CLEAVE_ERROR_INIT;
  *out_rewritten = NULL;
  if (document->edits == NULL) {
    return CLEAVE_OK;
  }
  cleave_status_t status = cleave_graph_replay(graph, document->edits, out_rewritten, &cause);
  if (status == CLEAVE_OK || status == CLEAVE_ERROR_OUT_OF_MEMORY) {
    return status == CLEAVE_OK ? status : cleave_error_out_of_memory(error);
  }
  return cleave_error_set(error, CLEAVE_ERROR_MISMATCH, "%s: the plan is of another model: %s",
                          document->place, cause.message);
}

/* The plan of a document for a graph; no backend is asked. */
static cleave_status_t make_plan(cleave_plan_document_t *document, const cleave_graph_t *graph,
                                 cleave_plan_t **out_plan, cleave_error_t *error) {
  cleave_graph_t *rewritten = NULL;
  *out_plan = NULL;
  CLEAVE_TRY(rewrite(document, graph, &rewritten, error));
  cleave_status_t status =
      cleave_plan_rebuild(document, rewritten != NULL ? rewritten : graph, out_plan, error);
  CLEAVE_TRY_OR(status, cleave_graph_destroy(rewritten));
  (*out_plan)->source = graph;
  (*out_plan)->rewritten = rewritten;
  (*out_plan)->edits = document->edits;
  document->edits = NULL;
  return CLEAVE_OK;
}

/* Takes the regions with a reason apart: the plan is replaced by one without them. */
static cleave_status_t dissolve(cleave_plan_t **plan, const char *place, const char *const *reasons,
                                cleave_error_t *error) {
  cleave_plan_document_t *again = NULL;
  cleave_plan_t *whole = *plan;
  cleave_plan_t *rest = NULL;
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY_CLEANUP(cleave_plan_document_create(whole, &again, error));
  again->place = place;
  CLEAVE_TRY_CLEANUP(cleave_plan_document_dissolve(again, reasons, error));
  CLEAVE_TRY_CLEANUP(cleave_plan_rebuild(again, whole->graph, &rest, error));
  // The texts of the new plan are the old one's: it lives on in the memory of the new one.
  cleave_arena_join(&rest->arena, &whole->arena);
  rest->source = whole->source;
  rest->rewritten = whole->rewritten;
  rest->edits = whole->edits;
  whole->rewritten = NULL;
  whole->edits = NULL;
  *plan = rest;
  rest = whole;
cleanup:
  cleave_plan_document_destroy(again);
  cleave_plan_destroy(rest);
  return status;
}

/* Shows the plan to its backends; it is destroyed if they refuse it. */
static cleave_status_t settle_take(cleave_plan_t *plan, const char *place, bool fallback,
                                   cleave_plan_t **out_plan, cleave_error_t *error) {
  cleave_arena_t arena = {0};
  const char **reasons = NULL;
  bool any = false;
  cleave_status_t status = cleave_plan_check_regions(plan, place, fallback, &arena, &reasons, &any, error);
  if (status == CLEAVE_OK && any) {
    status = dissolve(&plan, place, reasons, error);
  }
  cleave_arena_deinit(&arena);
  CLEAVE_TRY_OR(status, cleave_plan_destroy(plan));
  *out_plan = plan;
  return CLEAVE_OK;
}

cleave_status_t cleave_plan_load_document(cleave_plan_document_t *document, const cleave_graph_t *graph,
                                          bool fallback, cleave_plan_t **out_plan, cleave_error_t *error) {
  cleave_plan_t *plan = NULL;
  char place[256];
  *out_plan = NULL;
  (void)snprintf(place, sizeof place, "%s", document->place);
  CLEAVE_TRY(make_plan(document, graph, &plan, error));
  return settle_take(plan, place, fallback, out_plan, error);
}

// ---- other sizes ----

/* The types that the document has for the inputs of a model; false if it leaves sizes open, or speaks of
 * other inputs. */
static bool read_types(const cleave_plan_document_t *document, const cleave_graph_t *graph,
                       cleave_tensor_view_t *types, const cleave_tensor_view_t **pointers,
                       int64_t (*dims)[CLEAVE_MAX_RANK]) {
  bool complete = document->graph_input_count >= graph->inputs.count;
  for (size_t k = 0; complete && k < graph->inputs.count; k++) {
    const cleave_value_record_t *record = cleave_graph_value(graph, graph->inputs.items[k]);
    types[k] = (cleave_tensor_view_t){
        .size = sizeof types[k], .dtype = (cleave_dtype_t)record->dtype, .dims = dims[k]};
    pointers[k] = &types[k];
    complete =
        strcmp(document->graph_inputs[k].name, cleave_value_name(graph, graph->inputs.items[k])) == 0 &&
        cleave_document_input_shape(&document->graph_inputs[k], &types[k].rank, dims[k]);
  }
  return complete;
}

static bool has_shapes(const cleave_graph_t *graph, const cleave_tensor_view_t *types) {
  bool same = true;
  for (size_t k = 0; same && k < graph->inputs.count; k++) {
    const cleave_value_record_t *record = cleave_graph_value(graph, graph->inputs.items[k]);
    same = record->rank == types[k].rank &&
           (record->rank <= 0 ||
            memcmp(record->dims, types[k].dims, (size_t)record->rank * sizeof *record->dims) == 0);
  }
  return same;
}

/* The model of the document's sizes; NULL in *out_model if it is this one, or none can be made: then the
 * document fits this model, or the reason why not is the same. */
static cleave_status_t bind_as(const cleave_plan_document_t *document, cleave_model_t *model,
                               cleave_model_t **out_model, cleave_error_t *error) {
  const cleave_graph_t *graph = cleave_model_graph(model);
  size_t count = graph->inputs.count;
  cleave_error_t ignored = CLEAVE_ERROR_INIT;
  cleave_status_t status = CLEAVE_OK;
  *out_model = NULL;
  cleave_tensor_view_t *types = cleave_allocate(count, sizeof *types);
  const cleave_tensor_view_t **pointers = cleave_allocate(count, sizeof *pointers);
  int64_t(*dims)[CLEAVE_MAX_RANK] = cleave_allocate(count, sizeof *dims);
  if (types == NULL || pointers == NULL || dims == NULL) {
    status = cleave_error_out_of_memory(error);
  } else if (graph->is_sized && model->origin != NULL && read_types(document, graph, types, pointers, dims) &&
             !has_shapes(graph, types) &&
             cleave_model_bind(model->origin, pointers, count, out_model, &ignored) ==
                 CLEAVE_ERROR_OUT_OF_MEMORY) {
    status = cleave_error_out_of_memory(error);
  }
  cleave_free(types);
  cleave_free((void *)pointers);
  cleave_free(dims);
  return status;
}

cleave_status_t cleave_plan_load_for(cleave_plan_document_t *document, cleave_model_t *model, bool fallback,
                                     cleave_plan_t **out_plan, cleave_error_t *error) {
  cleave_model_t *other = NULL;
  cleave_plan_t *there = NULL;
  cleave_plan_t *here = NULL;
  char place[256];
  *out_plan = NULL;
  (void)snprintf(place, sizeof place, "%s", document->place);
  CLEAVE_TRY(bind_as(document, model, &other, error));
  if (other == NULL) {
    return cleave_plan_load_document(document, cleave_model_graph(model), fallback, out_plan, error);
  }
  cleave_error_t cause = CLEAVE_ERROR_INIT;
  cleave_status_t status = make_plan(document, cleave_model_graph(other), &there, error);
  if (status == CLEAVE_OK && cleave_plan_take_over(there, model, &here, &cause) != CLEAVE_OK) {
    status = cleave_error_set(
        error, cause.status,
        "%s: the plan was made for other sizes (one made with --shape NAME=? is for all): %s", place,
        cause.message);
  }
  cleave_plan_destroy(there);
  cleave_model_release(other);
  return status == CLEAVE_OK ? settle_take(here, place, fallback, out_plan, error) : status;
}

cleave_status_t cleave_plan_document_open(const char *path, const cleave_graph_t *graph, bool must,
                                          cleave_plan_document_t **out_document, cleave_error_t *error) {
  cleave_file_t *file = NULL;
  *out_document = NULL;
  CLEAVE_TRY(cleave_file_open(path, &file, error));
  const char *text = (const char *)cleave_file_data(file);
  size_t length = cleave_file_size(file);
  cleave_status_t status = CLEAVE_OK;
  if (cleave_path_has_extension(path, ".onnx")) {
    status = cleave_onnx_find_metadata(text, length, path, CLEAVE_ONNX_PLAN_KEY, &text, &length, error);
    if (status == CLEAVE_OK && text == NULL && must) {
      status =
          cleave_error_set(error, CLEAVE_ERROR_FORMAT,
                           "%s: the model has no plan: expected one that 'cleave partition -o' wrote", path);
    }
  }
  if (status == CLEAVE_OK && text != NULL) {
    status = cleave_plan_document_read(path, text, length, out_document, error);
  }
  if (status == CLEAVE_OK && *out_document != NULL && graph != NULL &&
      cleave_path_has_extension(path, ".onnx")) {
    status = cleave_graph_hash(graph, &(*out_document)->graph_hash, error);
  }
  cleave_file_release(file);
  return status;
}

cleave_status_t cleave_plan_load(cleave_model_t *model, const char *path,
                                 const cleave_plan_load_options_t *options, cleave_plan_t **out_plan,
                                 cleave_error_t *error) {
  cleave_plan_load_options_t own = {.size = sizeof own};
  cleave_plan_document_t *document = NULL;
  *out_plan = NULL;
  CLEAVE_TRY(CLEAVE_SIZED_IN(cleave_plan_load_options_t, options, &own, error));
  if (path == NULL && own.text == NULL) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "path: expected a file, or `text` in the options, found neither");
  }
  CLEAVE_TRY(
      own.text != NULL
          ? cleave_plan_document_read(path == NULL ? "plan" : path, own.text, own.length, &document, error)
          : cleave_plan_document_open(path, cleave_model_graph(model), true, &document, error));
  cleave_status_t status = cleave_plan_load_for(document, model, own.fallback, out_plan, error);
  cleave_plan_document_destroy(document);
  return status;
}
