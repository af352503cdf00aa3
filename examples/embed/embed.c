// SPDX-License-Identifier: Apache-2.0
// Embedding cleave: embed MODEL [RULES]... loads a model, runs rule files over it, and runs it once on inputs
// of ones. Everything comes from cleave/cleave.h; every call says what went wrong through one error struct.
#include <cleave/cleave.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_INPUTS = 16, MAX_RULES = 16 };

typedef struct embedding {
  cleave_model_t *model;
  cleave_plan_t *plan;
  cleave_session_t *session;
  void *buffers[MAX_INPUTS]; /* of the inputs: the session reads them in place */
  uint32_t input_count;
} embedding_t;

/* A buffer of ones, for floats, 32- and 64-bit integers and bools; zeros for other types. */
static void *make_ones(const cleave_tensor_view_t *type) {
  int64_t count = cleave_view_element_count(type);
  size_t size = cleave_dtype_size(type->dtype);
  if (count < 0 || size == 0) {
    return NULL;
  }
  unsigned char *data = calloc((size_t)count + 1, size);
  for (int64_t k = 0; data != NULL && k < count; k++) {
    unsigned char *element = data + (size_t)k * size;
    switch (type->dtype) {
      case CLEAVE_DTYPE_F32: memcpy(element, &(float){1.0f}, size); break;
      case CLEAVE_DTYPE_F64: memcpy(element, &(double){1.0}, size); break;
      case CLEAVE_DTYPE_I64: memcpy(element, &(int64_t){1}, size); break;
      case CLEAVE_DTYPE_I32: memcpy(element, &(int32_t){1}, size); break;
      case CLEAVE_DTYPE_BOOL: element[0] = 1; break;
      default: break;
    }
  }
  return data;
}

/* Gives every input a buffer. Dimensions that the model leaves open become 1. */
static cleave_status_t prepare(embedding_t *embedding, int rule_count, char **rules, cleave_error_t *error) {
  static int64_t dims[MAX_INPUTS][CLEAVE_MAX_RANK];
  cleave_tensor_view_t types[MAX_INPUTS];
  const cleave_tensor_view_t *pointers[MAX_INPUTS];
  cleave_rule_source_t sources[MAX_RULES] = {{0}};
  uint32_t count = cleave_model_input_count(embedding->model);
  if (count > MAX_INPUTS || rule_count > MAX_RULES) {
    return CLEAVE_ERROR_LIMIT;
  }
  for (uint32_t k = 0; k < count; k++) {
    cleave_port_t port = {.size = sizeof port};
    cleave_status_t status = cleave_model_input(embedding->model, k, &port, error);
    if (status != CLEAVE_OK) {
      return status;
    }
    types[k] = port.tensor;
    for (int32_t d = 0; d < port.tensor.rank; d++) {
      dims[k][d] = port.tensor.dims[d] < 0 ? 1 : port.tensor.dims[d];
    }
    types[k].dims = dims[k];
    pointers[k] = &types[k];
  }
  cleave_model_t *bound = NULL;
  cleave_status_t status = cleave_model_bind(embedding->model, pointers, count, &bound, error);
  if (status != CLEAVE_OK) {
    return status;
  }
  cleave_model_release(embedding->model);
  embedding->model = bound;

  for (int k = 0; k < rule_count; k++) {
    sources[k].path = rules[k];
  }
  status = cleave_model_partition(
      bound,
      &(cleave_partition_request_t){
          .size = sizeof(cleave_partition_request_t), .sources = sources, .source_count = (size_t)rule_count},
      &embedding->plan, error);
  if (status == CLEAVE_OK) {
    status = cleave_session_create(bound, embedding->plan, pointers, count, NULL, &embedding->session, error);
  }
  for (uint32_t k = 0; k < count && status == CLEAVE_OK; k++) {
    embedding->buffers[k] = make_ones(&types[k]);
    embedding->input_count = k + 1;
    types[k].data = embedding->buffers[k];
    status = cleave_session_set_input(embedding->session, k, &types[k], error);
  }
  return status;
}

static cleave_status_t print_outputs(const embedding_t *embedding, cleave_error_t *error) {
  for (uint32_t k = 0; k < cleave_model_output_count(embedding->model); k++) {
    cleave_port_t port = {.size = sizeof port};
    cleave_tensor_view_t output;
    cleave_status_t status = cleave_model_output(embedding->model, k, &port, error);
    if (status == CLEAVE_OK) {
      status = cleave_session_output(embedding->session, k, &output, error);
    }
    if (status != CLEAVE_OK) {
      return status;
    }
    int64_t count = cleave_view_element_count(&output);
    printf("%s: %" PRId64 " elements", port.name, count);
    for (int64_t i = 0; output.dtype == CLEAVE_DTYPE_F32 && i < count && i < 5; i++) {
      printf("%s %g", i == 0 ? ", first" : "", (double)((const float *)output.data)[i]);
    }
    printf("\n");
  }
  return CLEAVE_OK;
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: embed MODEL [RULES]...\n");
    return 2;
  }
  embedding_t embedding = {0};
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_status_t status = cleave_model_load(NULL, argv[1], NULL, &embedding.model, &error);
  if (status == CLEAVE_OK) {
    status = prepare(&embedding, argc - 2, argv + 2, &error);
  }
  if (status == CLEAVE_OK) {
    status = cleave_session_run(embedding.session, &error);
  }
  if (status == CLEAVE_OK) {
    status = print_outputs(&embedding, &error);
  }
  if (status != CLEAVE_OK) {
    fprintf(stderr, "embed: %s\n", error.message[0] == '\0' ? "failed" : error.message);
  }
  cleave_session_destroy(embedding.session);
  cleave_plan_destroy(embedding.plan);
  cleave_model_release(embedding.model);
  for (uint32_t k = 0; k < embedding.input_count; k++) {
    free(embedding.buffers[k]);
  }
  return status == CLEAVE_OK ? 0 : 1;
}
