// SPDX-License-Identifier: Apache-2.0
/* Values of XNNPACK's subgraphs: what a unit reads and writes, by value of the region and form. */
#include "builder.h"

#include <stdio.h>
#include <string.h>

#include "memory.h"
#include "stages.h"

static const char *status_text(enum xnn_status status) {
  switch (status) {
    case xnn_status_success: return "success";
    case xnn_status_uninitialized: return "not initialised";
    case xnn_status_invalid_parameter: return "invalid parameter";
    case xnn_status_invalid_state: return "invalid state";
    case xnn_status_unsupported_parameter: return "unsupported parameter";
    case xnn_status_unsupported_hardware: return "unsupported hardware";
    case xnn_status_out_of_memory: return "out of memory";
  }
  return "unknown status";
}

cleave_status_t xnnpack_status(enum xnn_status status, const char *what, const char *name,
                               cleave_message_t *message) {
  if (status == xnn_status_success) {
    return CLEAVE_OK;
  }
  (void)snprintf(message->text, sizeof message->text, "%s '%s': XNNPACK says: %s", what, name,
                 status_text(status));
  return status == xnn_status_out_of_memory ? CLEAVE_ERROR_OUT_OF_MEMORY : CLEAVE_ERROR_BACKEND;
}

cleave_status_t xnnpack_builder_check(builder_t *builder, enum xnn_status status, const char *what) {
  return xnnpack_status(status, what, builder->unit == NULL ? "" : builder->unit->head->name,
                        builder->message);
}

size_t xnnpack_dims(const cleave_tensor_view_t *tensor, form_t form, size_t dims[XNNPACK_MAX_RANK]) {
  static const int last[4] = {0, 2, 3, 1};
  if (tensor->rank == 0) {
    dims[0] = 1;
    return 1;
  }
  for (int32_t d = 0; d < tensor->rank; d++) {
    dims[d] = (size_t)tensor->dims[form == FORM_LAST && tensor->rank == 4 ? last[d] : d];
  }
  return (size_t)tensor->rank;
}

cleave_status_t xnnpack_builder_allocate(builder_t *builder, int64_t count, float **out_floats) {
  program_t *program = builder->program;
  float **statics = xnnpack_memory_grow(program->statics, &program->static_capacity, program->static_count,
                                        sizeof *statics);
  float *floats = NULL;
  if (statics != NULL) {
    program->statics = statics;
    floats = xnnpack_memory_allocate((size_t)count * sizeof *floats + XNN_EXTRA_BYTES);
  }
  *out_floats = floats;
  if (floats == NULL) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  program->statics[program->static_count++] = floats;
  return CLEAVE_OK;
}

static cleave_status_t define(builder_t *builder, size_t rank, const size_t *dims, const void *data,
                              uint32_t external, uint32_t flags, uint32_t *out_id) {
  return xnnpack_builder_check(builder,
                               xnn_define_tensor_value(builder->subgraph, xnn_datatype_fp32, rank, dims, data,
                                                       external, flags, out_id),
                               "tensor");
}

cleave_status_t xnnpack_builder_static(builder_t *builder, size_t rank, const size_t *dims, const float *data,
                                       uint32_t *out_id) {
  return define(builder, rank, dims, data, XNN_INVALID_VALUE_ID, 0, out_id);
}

cleave_status_t xnnpack_builder_temporary(builder_t *builder, size_t rank, const size_t *dims,
                                          uint32_t *out_id) {
  return define(builder, rank, dims, NULL, XNN_INVALID_VALUE_ID, 0, out_id);
}

/* A constant operand. Channels last, it has rank 4: its dimensions are the last ones of NCHW. */
static cleave_status_t use_constant(builder_t *builder, uint32_t value, form_t form, uint32_t *out_id) {
  const cleave_tensor_view_t *tensor = &builder->region->values[value].tensor;
  int64_t wide[4] = {1, 1, 1, 1};
  cleave_tensor_view_t raised = *tensor;
  if (form == FORM_LAST && tensor->rank <= 4) {
    for (int32_t d = 0; d < tensor->rank; d++) {
      wide[4 - tensor->rank + d] = tensor->dims[d];
    }
    raised.rank = 4;
    raised.dims = wide;
  }
  size_t dims[XNNPACK_MAX_RANK];
  size_t rank = xnnpack_dims(&raised, form, dims);
  int64_t count = cleave_view_element_count(tensor);
  shuffle_t shuffle = {1, 1, (size_t)count};
  if (form == FORM_LAST) {
    shuffle = (shuffle_t){(size_t)wide[0], (size_t)wide[1], (size_t)(wide[2] * wide[3])};
  }
  float *data = NULL;
  cleave_status_t status = xnnpack_builder_allocate(builder, count, &data);
  if (status != CLEAVE_OK) {
    return status;
  }
  xnnpack_shuffle(&shuffle, tensor->data, data);
  return xnnpack_builder_static(builder, rank, dims, data, out_id);
}

/* A buffer of the program, under a number of the reserved ones. */
static cleave_status_t define_external(builder_t *builder, uint32_t value, form_t form, size_t buffer,
                                       uint32_t flags, uint32_t *out_id) {
  size_t dims[XNNPACK_MAX_RANK];
  size_t rank = xnnpack_dims(&builder->region->values[value].tensor, form, dims);
  uint32_t id = (uint32_t)builder->external_count;
  cleave_status_t status = define(builder, rank, dims, NULL, id, flags, out_id);
  if (status == CLEAVE_OK) {
    builder->externals[builder->external_count++] =
        (struct xnn_external_value){*out_id, builder->program->buffers[buffer - 1]};
  }
  return status;
}

cleave_status_t xnnpack_builder_use(builder_t *builder, uint32_t value, form_t form, uint32_t *out_id) {
  const cleave_tensor_view_t *tensor = &builder->region->values[value].tensor;
  value_state_t *state = &builder->values[value];
  form_t other = form == FORM_PLAIN ? FORM_LAST : FORM_PLAIN;
  bool is_same = xnnpack_forms_are_same(tensor);
  cleave_status_t status = CLEAVE_OK;
  if (state->id[form] == XNN_INVALID_VALUE_ID) {
    if (tensor->data != NULL) {
      status = use_constant(builder, value, form, &state->id[form]);
    } else if (is_same && state->id[other] != XNN_INVALID_VALUE_ID) {
      size_t dims[XNNPACK_MAX_RANK];
      size_t rank = xnnpack_dims(tensor, form, dims);
      status = xnnpack_builder_temporary(builder, rank, dims, &state->id[form]);
      if (status == CLEAVE_OK) {
        status = xnnpack_builder_check(
            builder,
            xnn_define_static_reshape(builder->subgraph, rank, dims, state->id[other], state->id[form], 0),
            "reshape");
      }
    } else {
      size_t buffer = state->buffer[form] != 0 || !is_same ? state->buffer[form] : state->buffer[other];
      if (buffer == 0 || state->stage >= builder->stage) {
        (void)snprintf(builder->message->text, sizeof builder->message->text,
                       "value '%s' is not there in the layout that '%s' reads",
                       builder->region->values[value].name, builder->unit->head->name);
        return CLEAVE_ERROR_INTERNAL;
      }
      status = define_external(builder, value, form, buffer, XNN_VALUE_FLAG_EXTERNAL_INPUT, &state->id[form]);
    }
  }
  *out_id = state->id[form];
  return status;
}

cleave_status_t xnnpack_builder_output(builder_t *builder, form_t form, uint32_t *out_id) {
  uint32_t value = builder->unit->output;
  value_state_t *state = &builder->values[value];
  cleave_status_t status;
  if (state->buffer[form] != 0) {
    status = define_external(builder, value, form, state->buffer[form], XNN_VALUE_FLAG_EXTERNAL_OUTPUT,
                             &state->id[form]);
  } else {
    size_t dims[XNNPACK_MAX_RANK];
    size_t rank = xnnpack_dims(&builder->region->values[value].tensor, form, dims);
    status = xnnpack_builder_temporary(builder, rank, dims, &state->id[form]);
  }
  *out_id = state->id[form];
  return status;
}
