// SPDX-License-Identifier: Apache-2.0
// Kernels of library operators as a backend: `compile` makes an executor of one node, `run` executes it. The
// handle counts its users with the library's own counter, so that a library stays while programs of its
// operators live.
#include "backend/registry/extensions.h"

#include <stdio.h>

#include "backend/registry/registry_entry.h"
#include "ops/custom.h"

struct cleave_extensions {
  const cleave_backend_handle_t *library;
  cleave_backend_t table; /* what runs its operators */
  cleave_backend_handle_t handle;
};

typedef struct executor {
  cleave_program_info_t info;
  const cleave_custom_operator_t *definition;
  void *own; /* the library's */
  uint32_t input_count;
  cleave_tensor_view_t *inputs; /* as the operator sees them: constants among them */
  uint32_t *sources;            /* per input: which of the program's it is; NONE: a constant */
} executor_t;

/* ---- kernels as a backend ---- */

static cleave_status_t refuse(cleave_message_t *message, const char *text) {
  (void)snprintf(message->text, sizeof message->text, "%s", text);
  return CLEAVE_ERROR_UNSUPPORTED;
}

/* The definition of the only node of a view, if it is this library's and has kernels. */
static cleave_status_t find_kernel(void *state, const cleave_region_view_t *view,
                                   const cleave_custom_operator_t **out_definition,
                                   cleave_message_t *message) {
  void *owner = NULL;
  const cleave_op_t *op =
      view->node_count == 1 ? cleave_op_find(view->nodes[0].domain, view->nodes[0].op) : NULL;
  *out_definition = op == NULL ? NULL
                               : cleave_custom_op_definition(
                                     op, ((const cleave_extensions_t *)state)->handle.context, &owner);
  if (*out_definition == NULL || owner != state) {
    return refuse(message, "only single nodes of the library's own operators");
  }
  return (*out_definition)->execute == NULL ? refuse(message, "the library has no kernel for it") : CLEAVE_OK;
}

static cleave_status_t supports(void *state, const cleave_region_view_t *view, cleave_message_t *reason) {
  const cleave_custom_operator_t *definition = NULL;
  return find_kernel(state, view, &definition, reason);
}

static void unload(void *program) {
  executor_t *executor = program;
  if (executor->own != NULL) {
    executor->definition->destroy(executor->own);
  }
  cleave_free(executor->inputs);
  cleave_free(executor->sources);
  cleave_free(executor);
}

/* All that the node reads, in order of first use, constants among them; `inputs` are their numbers. */
static void list_inputs(executor_t *executor, const cleave_region_view_t *view, uint32_t *inputs) {
  for (uint32_t k = 0; k < view->value_count; k++) {
    const cleave_value_view_t *value = &view->values[k];
    if (value->producer != CLEAVE_INDEX_NONE) {
      continue;
    }
    uint32_t source = 0;
    while (source < view->input_count && view->inputs[source] != k) {
      source++;
    }
    uint32_t index = executor->input_count++;
    inputs[index] = k;
    executor->inputs[index] = value->tensor;
    executor->sources[index] = source < view->input_count ? source : CLEAVE_INDEX_NONE;
  }
}

static cleave_status_t compile(void *state, const cleave_region_view_t *view,
                               const cleave_compile_options_t *options, void **out_program,
                               cleave_message_t *message) {
  const cleave_custom_operator_t *definition = NULL;
  cleave_status_t status = find_kernel(state, view, &definition, message);
  CLEAVE_TRY(status);
  executor_t *executor = cleave_allocate_zeroed(1, sizeof *executor);
  uint32_t *inputs = cleave_allocate(view->value_count, sizeof *inputs);
  if (executor != NULL) {
    executor->inputs = cleave_allocate_zeroed(view->value_count, sizeof *executor->inputs);
    executor->sources = cleave_allocate(view->value_count, sizeof *executor->sources);
  }
  if (executor == NULL || inputs == NULL || executor->inputs == NULL || executor->sources == NULL) {
    status = CLEAVE_ERROR_OUT_OF_MEMORY;
    goto cleanup;
  }
  executor->info.size = sizeof executor->info;
  executor->definition = definition;
  list_inputs(executor, view, inputs);
  cleave_region_view_t node = *view;
  node.inputs = inputs;
  node.input_count = executor->input_count;
  status = definition->create(definition->self, &node, options, &executor->own, message);
  if (status != CLEAVE_OK) {
    executor->own = NULL;
  }
cleanup:
  cleave_free(inputs);
  if (status == CLEAVE_OK) {
    *out_program = executor;
  } else if (executor != NULL) {
    unload(executor);
  }
  return status;
}

static const cleave_program_info_t *info(const void *program) {
  return &((const executor_t *)program)->info;
}

static cleave_status_t run(void *program, const cleave_run_args_t *args, cleave_message_t *message) {
  executor_t *executor = program;
  cleave_run_args_t own = *args;
  for (uint32_t k = 0; k < executor->input_count; k++) {
    if (executor->sources[k] != CLEAVE_INDEX_NONE) {
      executor->inputs[k] = args->inputs[executor->sources[k]];
    }
  }
  own.inputs = executor->inputs;
  return executor->definition->execute(executor->own, &own, message);
}

/* ---- adding ---- */

static cleave_status_t check(const cleave_backend_handle_t *library, cleave_error_t *error) {
  const cleave_backend_extensions_t *brought = library->backend->extensions;
  if (brought->size < sizeof *brought) {
    return cleave_error_set(
        error, CLEAVE_ERROR_BACKEND, "library '%s': extensions: struct of %zu byte%s, version 2.0 has %zu",
        library->backend->name, brought->size, CLEAVE_PLURAL(brought->size), sizeof *brought);
  }
  if (brought->rule_file_count > 0 && brought->rule_files == NULL) {
    return cleave_error_set(error, CLEAVE_ERROR_BACKEND, "library '%s': %u rule file%s, but no list of them",
                            library->backend->name, (unsigned)brought->rule_file_count,
                            CLEAVE_PLURAL(brought->rule_file_count));
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_extensions_add(const cleave_backend_handle_t *library,
                                      cleave_extensions_t **out_extensions, cleave_error_t *error) {
  const cleave_backend_extensions_t *brought = library->backend->extensions;
  *out_extensions = NULL;
  if (brought == NULL) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(check(library, error));
  cleave_extensions_t *extensions = cleave_allocate_zeroed(1, sizeof *extensions);
  CLEAVE_TRY_MEMORY(extensions, error);
  extensions->library = library;
  extensions->table = (cleave_backend_t){.size = sizeof extensions->table,
                                         .abi_major = CLEAVE_BACKEND_ABI_MAJOR,
                                         .abi_minor = CLEAVE_BACKEND_ABI_MINOR,
                                         .name = library->backend->name,
                                         .version = library->backend->version,
                                         .description = "operators of a library",
                                         .supports = supports,
                                         .compile = compile,
                                         .unload = unload,
                                         .info = info,
                                         .run = run,
                                         .option_keys = library->backend->option_keys,
                                         .option_key_count = library->backend->option_key_count};
  extensions->handle = *library; /* users and settings are the library's */
  extensions->handle.backend = &extensions->table;
  extensions->handle.state = extensions;
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY_CLEANUP(cleave_custom_ops_add(library->context, brought->operators, brought->operator_count,
                                           library->backend->name, extensions, error));
  CLEAVE_TRY_CLEANUP(cleave_library_rules_take(library, error));
cleanup:
  CLEAVE_TRY_OR(status, cleave_extensions_remove(extensions));
  *out_extensions = extensions;
  return CLEAVE_OK;
}

void cleave_extensions_remove(cleave_extensions_t *extensions) {
  if (extensions != NULL) {
    cleave_custom_ops_remove(extensions);
    cleave_library_rules_leave(extensions->library);
    cleave_free(extensions);
  }
}

/* ---- using ---- */

cleave_status_t cleave_extensions_host(const cleave_graph_t *graph, cleave_node_t node,
                                       const cleave_backend_handle_t *cpu,
                                       const cleave_backend_handle_t **out_handle, cleave_error_t *error) {
  const cleave_op_t *op = cleave_node_op(graph, node);
  void *owner = NULL;
  *out_handle = cpu;
  bool is_known = (op->flags & CLEAVE_OP_FROM_LIBRARY) != 0;
  if (op->id != CLEAVE_OP_ID_CUSTOM || (!is_known && cleave_op_find(op->domain, op->name) == NULL)) {
    return CLEAVE_OK; /* cpu will say that there is no such operator */
  }
  char label[128];
  const cleave_custom_operator_t *definition = cleave_custom_op_definition(op, graph->context, &owner);
  if (definition == NULL) {
    cleave_error_t why = CLEAVE_ERROR_INIT;
    cleave_status_t status = cleave_custom_op_fail(op, &why);
    return cleave_error_set(error, status, "node '%s': %s",
                            cleave_node_label(graph, node, label, sizeof label), why.message);
  }
  if (definition->execute == NULL) {
    return cleave_error_set(
        error, CLEAVE_ERROR_UNSUPPORTED,
        "node '%s': operator '%s' has no kernel: library '%s' runs it only in regions that a "
        "rule gives to a backend",
        cleave_node_label(graph, node, label, sizeof label), cleave_custom_op_full_name(op),
        cleave_custom_op_library(op));
  }
  *out_handle = &((const cleave_extensions_t *)owner)->handle;
  return CLEAVE_OK;
}

bool cleave_extensions_keep_state(const cleave_graph_t *graph, const cleave_node_t *nodes,
                                  uint32_t node_count) {
  for (uint32_t k = 0; k < node_count; k++) {
    if ((cleave_node_op(graph, nodes[k])->flags & CLEAVE_OP_STATEFUL) != 0) {
      return true;
    }
  }
  return false;
}
