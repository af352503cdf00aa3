// SPDX-License-Identifier: Apache-2.0
// One request is bound as its user says; the types of the others follow from it.
#include "runtime/serve/forms.h"

#include "base/memory.h"
#include "base/status.h"
#include "graph/graph.h"
#include "runtime/model/model.h"

/* ---- what can be served ---- */

static cleave_status_t check_port(const cleave_port_t *port, const char *kind, cleave_error_t *error) {
  if (port->tensor.dtype == CLEAVE_DTYPE_STRING) {
    return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED, "%s '%s': strings cannot be served", kind,
                            port->name);
  }
  bool is_known = port->tensor.rank >= 0;
  for (int32_t d = 0; d < port->tensor.rank; d++) {
    is_known = is_known && port->tensor.dims[d] >= 0;
  }
  return is_known ? CLEAVE_OK
                  : cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED,
                                     "%s '%s': its shape depends on data, so that it cannot be served", kind,
                                     port->name);
}

static cleave_status_t check_ports(const cleave_form_t *form, cleave_error_t *error) {
  cleave_port_t port = {.size = sizeof port};
  for (uint32_t k = 0; k < cleave_model_input_count(form->model); k++) {
    CLEAVE_TRY(cleave_model_input(form->model, k, &port, error));
    CLEAVE_TRY(check_port(&port, "input", error));
  }
  for (uint32_t k = 0; k < cleave_model_output_count(form->model); k++) {
    CLEAVE_TRY(cleave_model_output(form->model, k, &port, error));
    CLEAVE_TRY(check_port(&port, "output", error));
  }
  if (form->plan != NULL && cleave_plan_input_count(form->plan) > cleave_model_input_count(form->model)) {
    CLEAVE_TRY(cleave_plan_input(form->plan, cleave_model_input_count(form->model), &port, error));
    return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED,
                            "input '%s': added by a rule, which cannot be served", port.name);
  }
  return CLEAVE_OK;
}

/* Requests are joined along dimensions that the model leaves open. */
static cleave_status_t check_open(const cleave_model_t *model, cleave_error_t *error) {
  cleave_port_t port = {.size = sizeof port};
  if (cleave_model_input_count(model) == 0) {
    return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED, "a model without inputs cannot run in batches");
  }
  for (uint32_t k = 0; k < cleave_model_input_count(model); k++) {
    CLEAVE_TRY(cleave_model_input(model, k, &port, error));
    if (port.tensor.rank == 0 || (port.tensor.rank > 0 && port.tensor.dims[0] >= 0)) {
      return cleave_error_set(
          error, CLEAVE_ERROR_UNSUPPORTED,
          "input '%s': requests cannot run in batches, since the model does not leave its first dimension "
          "open; export the model with an open batch size, or set the limit of batches to 1",
          port.name);
    }
  }
  return CLEAVE_OK;
}

/* Outputs of n requests are those of one, n times below each other. */
static cleave_status_t check_outputs(const cleave_form_t *one, const cleave_form_t *many,
                                     cleave_error_t *error) {
  for (uint32_t k = 0; k < cleave_model_output_count(one->model); k++) {
    cleave_port_t a = {.size = sizeof a};
    cleave_port_t b = {.size = sizeof b};
    CLEAVE_TRY(cleave_model_output(one->model, k, &a, error));
    CLEAVE_TRY(cleave_model_output(many->model, k, &b, error));
    bool is_joined = a.tensor.rank > 0 && a.tensor.rank == b.tensor.rank &&
                     b.tensor.dims[0] == a.tensor.dims[0] * (int64_t)many->requests;
    for (int32_t d = 1; is_joined && d < a.tensor.rank; d++) {
      is_joined = a.tensor.dims[d] == b.tensor.dims[d];
    }
    if (!is_joined) {
      return cleave_error_set(
          error, CLEAVE_ERROR_UNSUPPORTED,
          "output '%s': requests cannot run in batches, since its first dimension does not grow with the "
          "number of requests",
          a.name);
    }
  }
  return CLEAVE_OK;
}

/* ---- making ---- */

static cleave_status_t bind_many(const cleave_form_t *one, const cleave_form_source_t *source,
                                 cleave_form_t *form, cleave_error_t *error) {
  uint32_t count = cleave_model_input_count(one->model);
  cleave_status_t status = CLEAVE_OK;
  cleave_tensor_view_t *views = cleave_allocate_zeroed(count, sizeof *views);
  const cleave_tensor_view_t **pointers = cleave_allocate_zeroed(count, sizeof *pointers);
  int64_t *dims = cleave_allocate_zeroed(count, CLEAVE_MAX_RANK * sizeof *dims);
  CLEAVE_TRY_MEMORY_CLEANUP(views != NULL && pointers != NULL && dims != NULL, error);
  for (uint32_t k = 0; k < count; k++) {
    cleave_port_t port = {.size = sizeof port};
    CLEAVE_TRY_CLEANUP(cleave_model_input(one->model, k, &port, error));
    int64_t *own = &dims[(size_t)k * CLEAVE_MAX_RANK];
    for (int32_t d = 0; d < port.tensor.rank; d++) {
      own[d] = port.tensor.dims[d];
    }
    if (__builtin_mul_overflow(own[0], (int64_t)form->requests, &own[0])) {
      CLEAVE_TRY_CLEANUP(cleave_error_set(error, CLEAVE_ERROR_LIMIT, "input '%s': too large for %u request%s",
                                          port.name, (unsigned)form->requests,
                                          CLEAVE_PLURAL(form->requests)));
    }
    views[k] = port.tensor;
    views[k].dims = own;
    pointers[k] = &views[k];
  }
  CLEAVE_TRY_CLEANUP(cleave_model_bind(source->model, pointers, count, &form->model, error));
cleanup:
  cleave_free(dims);
  cleave_free((void *)pointers);
  cleave_free(views);
  return status;
}

static cleave_status_t add_form(cleave_forms_t *forms, const cleave_form_source_t *source, uint32_t requests,
                                cleave_error_t *error) {
  cleave_form_t *form = &forms->items[forms->count++];
  *form = (cleave_form_t){.requests = requests};
  if (requests == 1) {
    CLEAVE_TRY(cleave_model_bind(source->model, source->inputs, source->input_count, &form->model, error));
  } else {
    CLEAVE_TRY(bind_many(&forms->items[0], source, form, error));
  }
  if (source->request != NULL) {
    cleave_rule_list_options_t options = {.known = source->known};
    CLEAVE_TRY(cleave_graph_partition(cleave_model_graph(form->model), source->request, &options, &form->plan,
                                      NULL, error));
  }
  CLEAVE_TRY(check_ports(form, error));
  return requests == 1 ? CLEAVE_OK : check_outputs(&forms->items[0], form, error);
}

cleave_status_t cleave_forms_init(cleave_forms_t *forms, const cleave_form_source_t *source, uint32_t limit,
                                  cleave_error_t *error) {
  *forms = (cleave_forms_t){0};
  if (limit > 1) {
    CLEAVE_TRY(check_open(source->model, error));
  }
  uint32_t requests = 1;
  for (; requests <= limit; requests *= 2) {
    CLEAVE_TRY(add_form(forms, source, requests, error));
  }
  return requests / 2 < limit ? add_form(forms, source, limit, error) : CLEAVE_OK;
}

void cleave_forms_deinit(cleave_forms_t *forms) {
  for (uint32_t k = 0; k < forms->count; k++) {
    cleave_plan_destroy(forms->items[k].plan);
    cleave_model_release(forms->items[k].model);
  }
  forms->count = 0;
}

uint32_t cleave_forms_choose(const cleave_forms_t *forms, uint64_t waiting) {
  uint32_t best = 0;
  while (best + 1 < forms->count && forms->items[best + 1].requests <= waiting) {
    best++;
  }
  return best;
}
