// SPDX-License-Identifier: Apache-2.0
// From the model to graphs that are trained and evaluated, and from graphs to sessions.
#include "graph/extract.h"
#include "graph/order.h"
#include "ops/infer.h"
#include "runtime/model/model.h"
#include "runtime/model/model_gradient.h"
#include "train/trainer_internal.h"

cleave_status_t cleave_train_start_graph(cleave_trainer_t *trainer, bool by_element,
                                         cleave_train_loss_t *out_loss, cleave_graph_t **out_graph,
                                         cleave_error_t *error) {
  const cleave_infer_options_t infer = {.fold = true};
  cleave_graph_t *graph = NULL;
  *out_graph = NULL;
  *out_loss = cleave_train_loss_of(&trainer->options);
  CLEAVE_TRY(cleave_model_copy_source(trainer->bound, &graph, error));
  cleave_status_t status = cleave_graph_infer(graph, &infer, NULL, error);
  if (status == CLEAVE_OK) {
    const cleave_train_feeds_t *feeds = &trainer->feeds;
    const cleave_tensor_view_t *target =
        out_loss->array != NULL ? &feeds->items[feeds->input_count].type : NULL;
    status = cleave_train_add_loss(graph, &trainer->options, target, by_element, out_loss, error);
  }
  if (status != CLEAVE_OK) {
    cleave_graph_destroy(graph);
    return status;
  }
  *out_graph = graph;
  return CLEAVE_OK;
}

cleave_status_t cleave_train_take_outputs(cleave_graph_t *graph, const cleave_value_t *outputs, size_t count,
                                          cleave_graph_t **out_graph, cleave_error_t *error) {
  cleave_node_t *order = cleave_allocate(graph->live_node_count + 1, sizeof *order);
  *out_graph = NULL;
  cleave_status_t status = order == NULL ? cleave_error_out_of_memory(error)
                                         : cleave_graph_topological_order(graph, order, NULL, error);
  if (status == CLEAVE_OK) {
    const cleave_extract_request_t request = {.nodes = order,
                                              .node_count = (uint32_t)graph->live_node_count,
                                              .inputs = graph->inputs.items,
                                              .input_count = (uint32_t)graph->inputs.count,
                                              .outputs = outputs,
                                              .output_count = (uint32_t)count};
    status = cleave_graph_extract(graph, &request, out_graph, error);
  }
  cleave_free(order);
  cleave_graph_destroy(graph);
  return status;
}

cleave_status_t cleave_train_compile_take(cleave_trainer_t *trainer, cleave_graph_t *graph,
                                          cleave_model_t *origin, cleave_train_program_t *out_program,
                                          cleave_error_t *error) {
  CLEAVE_TRY(cleave_model_create_sharing_take(graph, origin, &out_program->model, error));
  CLEAVE_TRY(cleave_rule_files_partition(trainer->rules, out_program->model, &out_program->plan, error));
  return cleave_session_create(out_program->model, out_program->plan, NULL, 0, &trainer->session_options,
                               &out_program->session, error);
}

void cleave_train_program_deinit(cleave_train_program_t *program) {
  cleave_session_destroy(program->session);
  cleave_plan_destroy(program->plan);
  cleave_model_release(program->model);
  *program = (cleave_train_program_t){0};
}
