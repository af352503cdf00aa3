// SPDX-License-Identifier: Apache-2.0
/* From bytes to a graph: parses records, puts functions and branches in the place of their nodes, and builds.
 */
#include "formats/onnx/onnx.h"

#include <string.h>

#include "formats/onnx/read/onnx_branch.h"
#include "formats/onnx/read/onnx_build.h"

static cleave_status_t inline_all(cleave_onnx_model_t *model, cleave_error_t *error) {
  cleave_onnx_inliner_t inliner;
  cleave_status_t status = cleave_onnx_inliner_init(&inliner, model, error);
  CLEAVE_THEN(status, cleave_onnx_inline_functions(&inliner, error));
  CLEAVE_THEN(status, cleave_onnx_take_branches(&inliner, error));
  cleave_onnx_inliner_deinit(&inliner);
  return status;
}

static cleave_status_t read_bytes(cleave_file_t *file, const void *data, size_t size, const char *name,
                                  const cleave_onnx_read_options_t *options, cleave_graph_t **out_graph,
                                  cleave_error_t *error) {
  static const cleave_onnx_read_options_t strict;
  cleave_onnx_model_t model = {.source = {.file = file}, .options = options != NULL ? options : &strict};
  cleave_error_t reason = CLEAVE_ERROR_INIT;
  *out_graph = NULL;
  CLEAVE_TRY(cleave_graph_create(&model.graph, error));
  cleave_status_t status =
      cleave_strings_add(&model.graph->strings, name, strlen(name), &model.graph->source, &reason);
  CLEAVE_THEN(status, cleave_onnx_model_parse(&model, data, size, &reason));
  CLEAVE_THEN(status, inline_all(&model, &reason));
  CLEAVE_THEN(status, cleave_onnx_model_order(&model, &reason));
  CLEAVE_THEN(status, cleave_onnx_build(&model, &reason));
  cleave_graph_t *graph = model.graph;
  cleave_onnx_model_deinit(&model);
  if (status != CLEAVE_OK) {
    cleave_graph_destroy(graph);
    return cleave_error_set_at(error, status, name, 0, "%s", reason.message);
  }
  *out_graph = graph;
  return CLEAVE_OK;
}

cleave_status_t cleave_onnx_read(const char *path, const cleave_onnx_read_options_t *options,
                                 cleave_graph_t **out_graph, cleave_error_t *error) {
  cleave_file_t *file = NULL;
  *out_graph = NULL;
  CLEAVE_TRY(cleave_file_open(path, &file, error));
  cleave_status_t status =
      read_bytes(file, cleave_file_data(file), cleave_file_size(file), path, options, out_graph, error);
  /* Weights that lie around what was read are in memory; who needs them reads them again. */
  cleave_file_drop_pages(cleave_file_data(file), cleave_file_size(file));
  cleave_file_release(file);
  return status;
}

cleave_status_t cleave_onnx_read_memory(const void *data, size_t size, const char *name,
                                        const cleave_onnx_read_options_t *options, cleave_graph_t **out_graph,
                                        cleave_error_t *error) {
  return read_bytes(NULL, data, size, name, options, out_graph, error);
}
