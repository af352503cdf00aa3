// SPDX-License-Identifier: Apache-2.0
// Region views made by hand. All arrays have a fixed size, so that pointers into them stay valid while
// building.
#include "view_builder.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_VALUES = 256, MAX_NODES = 128, MAX_ATTRIBUTES = 16, MAX_OPERANDS = 16, MAX_FUSIONS = 16 };

typedef struct node_store {
  uint32_t inputs[MAX_OPERANDS];
  uint32_t outputs[MAX_OPERANDS];
  cleave_attribute_view_t attributes[MAX_ATTRIBUTES];
  cleave_tensor_view_t tensors[MAX_ATTRIBUTES];
  int64_t ints[MAX_ATTRIBUTES][CLEAVE_MAX_RANK * 2];
} node_store_t;

struct view_builder {
  cleave_region_view_t region;
  cleave_value_view_t values[MAX_VALUES];
  int64_t dims[MAX_VALUES][CLEAVE_MAX_RANK];
  cleave_node_view_t nodes[MAX_NODES];
  node_store_t stores[MAX_NODES];
  cleave_fusion_view_t fusions[MAX_FUSIONS];
  uint32_t fusion_nodes[MAX_FUSIONS][MAX_NODES];
  const char *fusion_labels[MAX_FUSIONS][MAX_NODES];
  cleave_attribute_view_t fusion_attributes[MAX_FUSIONS]; /* one each at most */
  cleave_attribute_list_t fusion_lists[MAX_FUSIONS];
  uint32_t inputs[MAX_VALUES];
  uint32_t outputs[MAX_VALUES];
};

static void need(bool holds) {
  if (!holds) {
    abort();
  }
}

view_builder_t *view_builder_create(void) {
  view_builder_t *builder = calloc(1, sizeof *builder);
  need(builder != NULL);
  builder->region.size = sizeof builder->region;
  builder->region.name = "test";
  builder->region.rule = "";
  builder->region.values = builder->values;
  builder->region.nodes = builder->nodes;
  builder->region.fusions = builder->fusions;
  builder->region.fusion_attributes = builder->fusion_lists;
  builder->region.inputs = builder->inputs;
  builder->region.outputs = builder->outputs;
  return builder;
}

void view_builder_destroy(view_builder_t *builder) {
  free(builder);
}

uint32_t view_builder_constant(view_builder_t *builder, cleave_dtype_t dtype, int32_t rank,
                               const int64_t *dims, const void *data) {
  uint32_t index = builder->region.value_count++;
  need(index < MAX_VALUES && rank <= CLEAVE_MAX_RANK);
  for (int32_t d = 0; d < rank; d++) {
    builder->dims[index][d] = dims[d];
  }
  builder->values[index] = (cleave_value_view_t){
      .size = sizeof(cleave_value_view_t),
      .name = "value",
      .tensor = {.size = sizeof(cleave_tensor_view_t),
                 .dtype = dtype,
                 .rank = rank,
                 .dims = builder->dims[index],
                 .data = data,
                 .version = index + 1},
      .producer = CLEAVE_INDEX_NONE,
  };
  return index;
}

uint32_t view_builder_value(view_builder_t *builder, cleave_dtype_t dtype, int32_t rank,
                            const int64_t *dims) {
  return view_builder_constant(builder, dtype, rank, dims, NULL);
}

void view_builder_output(view_builder_t *builder, uint32_t value) {
  builder->values[value].is_output = true;
  builder->outputs[builder->region.output_count++] = value;
}

uint32_t view_builder_node(view_builder_t *builder, const char *op, uint32_t input_count,
                           const uint32_t *inputs, uint32_t output_count, const uint32_t *outputs) {
  uint32_t index = builder->region.node_count++;
  need(index < MAX_NODES && input_count <= MAX_OPERANDS && output_count <= MAX_OPERANDS);
  node_store_t *store = &builder->stores[index];
  for (uint32_t k = 0; k < input_count; k++) {
    store->inputs[k] = inputs[k];
  }
  for (uint32_t k = 0; k < output_count; k++) {
    store->outputs[k] = outputs[k];
    if (outputs[k] != CLEAVE_INDEX_NONE) {
      builder->values[outputs[k]].producer = index;
    }
  }
  static const char own[] = "cleave.";
  bool is_own = strncmp(op, own, strlen(own)) == 0;
  builder->nodes[index] = (cleave_node_view_t){
      .size = sizeof(cleave_node_view_t),
      .op = is_own ? op + strlen(own) : op,
      .domain = is_own ? "cleave" : "",
      .name = "node",
      .opset_version = 22,
      .input_count = input_count,
      .output_count = output_count,
      .inputs = store->inputs,
      .outputs = store->outputs,
      .attributes = store->attributes,
      .fusion = CLEAVE_INDEX_NONE,
  };
  return index;
}

void view_builder_domain(view_builder_t *builder, uint32_t node, const char *domain) {
  builder->nodes[node].domain = domain;
}

static cleave_attribute_view_t *add_attribute(view_builder_t *builder, uint32_t node, const char *name,
                                              cleave_attribute_kind_t kind) {
  uint32_t index = builder->nodes[node].attribute_count++;
  need(index < MAX_ATTRIBUTES);
  cleave_attribute_view_t *attribute = &builder->stores[node].attributes[index];
  *attribute = (cleave_attribute_view_t){.size = sizeof *attribute, .name = name, .kind = kind};
  return attribute;
}

void view_builder_int(view_builder_t *builder, uint32_t node, const char *name, int64_t value) {
  add_attribute(builder, node, name, CLEAVE_ATTRIBUTE_INT)->i = value;
}

void view_builder_float(view_builder_t *builder, uint32_t node, const char *name, double value) {
  add_attribute(builder, node, name, CLEAVE_ATTRIBUTE_FLOAT)->f = value;
}

void view_builder_string(view_builder_t *builder, uint32_t node, const char *name, const char *value) {
  cleave_attribute_view_t *attribute = add_attribute(builder, node, name, CLEAVE_ATTRIBUTE_STRING);
  attribute->s = value;
  attribute->count = (uint32_t)strlen(value);
}

void view_builder_ints(view_builder_t *builder, uint32_t node, const char *name, uint32_t count,
                       const int64_t *values) {
  cleave_attribute_view_t *attribute = add_attribute(builder, node, name, CLEAVE_ATTRIBUTE_INTS);
  int64_t *store = builder->stores[node].ints[builder->nodes[node].attribute_count - 1];
  need(count <= CLEAVE_MAX_RANK * 2);
  for (uint32_t k = 0; k < count; k++) {
    store[k] = values[k];
  }
  attribute->ints = store;
  attribute->count = count;
}

void view_builder_floats(view_builder_t *builder, uint32_t node, const char *name, uint32_t count,
                         const float *values) {
  cleave_attribute_view_t *attribute = add_attribute(builder, node, name, CLEAVE_ATTRIBUTE_FLOATS);
  attribute->floats = values;
  attribute->count = count;
}

void view_builder_tensor(view_builder_t *builder, uint32_t node, const char *name, cleave_dtype_t dtype,
                         int32_t rank, const int64_t *dims, const void *data) {
  cleave_attribute_view_t *attribute = add_attribute(builder, node, name, CLEAVE_ATTRIBUTE_TENSOR);
  cleave_tensor_view_t *tensor = &builder->stores[node].tensors[builder->nodes[node].attribute_count - 1];
  *tensor = (cleave_tensor_view_t){
      .size = sizeof *tensor, .dtype = dtype, .rank = rank, .dims = dims, .data = data};
  attribute->tensor = tensor;
}

uint32_t view_builder_fusion(view_builder_t *builder, const char *rule, uint32_t node_count,
                             const uint32_t *nodes, const char *const *labels) {
  uint32_t index = builder->region.fusion_count++;
  need(index < MAX_FUSIONS && node_count <= MAX_NODES);
  for (uint32_t k = 0; k < node_count; k++) {
    builder->fusion_nodes[index][k] = nodes[k];
    builder->fusion_labels[index][k] = labels == NULL ? "" : labels[k];
    builder->nodes[nodes[k]].fusion = index;
  }
  builder->fusions[index] = (cleave_fusion_view_t){.size = sizeof(cleave_fusion_view_t),
                                                   .rule = rule,
                                                   .node_count = node_count,
                                                   .nodes = builder->fusion_nodes[index],
                                                   .labels = builder->fusion_labels[index]};
  return index;
}

void view_builder_fusion_int(view_builder_t *builder, uint32_t fusion, const char *name, int64_t value) {
  builder->fusion_attributes[fusion] = (cleave_attribute_view_t){.size = sizeof(cleave_attribute_view_t),
                                                                 .name = name,
                                                                 .kind = CLEAVE_ATTRIBUTE_INT,
                                                                 .count = 1,
                                                                 .i = value};
  builder->fusion_lists[fusion] =
      (cleave_attribute_list_t){.count = 1, .items = &builder->fusion_attributes[fusion]};
}

const cleave_region_view_t *view_builder_region(view_builder_t *builder) {
  builder->region.input_count = 0;
  for (uint32_t v = 0; v < builder->region.value_count; v++) {
    if (builder->values[v].producer == CLEAVE_INDEX_NONE && builder->values[v].tensor.data == NULL) {
      builder->inputs[builder->region.input_count++] = v;
    }
  }
  return &builder->region;
}

static void run_backwards(int32_t threads, int64_t count, int64_t grain, cleave_parallel_fn_t body,
                          void *context) {
  int64_t chunk = threads > 1 ? (grain < 1 ? 1 : grain) : count;
  for (int64_t end = count; end > 0;) {
    int64_t begin = end % chunk == 0 ? end - chunk : end - end % chunk;
    body(context, begin, end);
    end = begin;
  }
}

const cleave_host_t *view_builder_host(void) {
  static const cleave_host_t host = {.size = sizeof host,
                                     .abi_major = CLEAVE_BACKEND_ABI_MAJOR,
                                     .abi_minor = CLEAVE_BACKEND_ABI_MINOR,
                                     .version = "test",
                                     .parallel_for = run_backwards};
  return &host;
}

static size_t byte_count(const cleave_tensor_view_t *tensor) {
  int64_t count = cleave_view_element_count(tensor);
  return count < 0 ? 0 : (size_t)count * cleave_dtype_size(tensor->dtype);
}

static void *allocate(size_t bytes) {
  void *memory = aligned_alloc(64, (bytes + 127) / 64 * 64);
  need(memory != NULL);
  memset(memory, 0xa5, (bytes + 127) / 64 * 64);
  return memory;
}

static cleave_status_t resize_output(void *session, uint32_t output, int32_t rank, const int64_t *dims) {
  view_program_t *program = session;
  cleave_tensor_view_t *tensor = &program->outputs[output];
  tensor->rank = rank;
  for (int32_t d = 0; d < rank; d++) {
    program->output_dims[output][d] = dims[d];
  }
  free(program->output_memory[output]);
  program->output_memory[output] = allocate(byte_count(tensor));
  tensor->data = program->output_memory[output];
  return CLEAVE_OK;
}

static void take_shape(cleave_tensor_view_t *tensor, int64_t *store, const cleave_tensor_view_t *from) {
  *tensor = *from;
  for (int32_t d = 0; d < from->rank; d++) {
    store[d] = from->dims[d];
  }
  tensor->dims = store;
  tensor->data = NULL;
}

cleave_status_t view_program_create(view_program_t *program, const cleave_backend_t *backend, void *state,
                                    const cleave_region_view_t *region, int32_t threads) {
  memset(program, 0, sizeof *program);
  program->backend = backend;
  cleave_compile_options_t options = {.size = sizeof options, .threads = threads};
  cleave_status_t status = backend->compile(state, region, &options, &program->program, &program->message);
  if (status != CLEAVE_OK) {
    return status;
  }
  need(region->input_count <= 16 && region->output_count <= 16);
  program->input_count = region->input_count;
  program->output_count = region->output_count;
  for (uint32_t k = 0; k < region->input_count; k++) {
    take_shape(&program->inputs[k], program->input_dims[k], &region->values[region->inputs[k]].tensor);
  }
  for (uint32_t k = 0; k < region->output_count; k++) {
    take_shape(&program->outputs[k], program->output_dims[k], &region->values[region->outputs[k]].tensor);
  }
  program->workspace = allocate(backend->info(program->program)->workspace_bytes);
  return CLEAVE_OK;
}

void view_program_destroy(view_program_t *program) {
  for (uint32_t k = 0; k < program->output_count; k++) {
    free(program->output_memory[k]);
  }
  free(program->workspace);
  program->backend->unload(program->program);
}

void view_program_input(view_program_t *program, uint32_t input, int32_t rank, const int64_t *dims,
                        const void *data) {
  program->inputs[input].rank = rank;
  for (int32_t d = 0; d < rank; d++) {
    program->input_dims[input][d] = dims[d];
  }
  program->inputs[input].data = data;
}

cleave_status_t view_program_run(view_program_t *program) {
  for (uint32_t k = 0; k < program->output_count; k++) {
    cleave_tensor_view_t *output = &program->outputs[k];
    if (output->data == NULL && cleave_view_element_count(output) >= 0) {
      program->output_memory[k] = allocate(byte_count(output));
      output->data = program->output_memory[k];
    }
  }
  cleave_run_args_t args = {.size = sizeof args,
                            .inputs = program->inputs,
                            .outputs = program->outputs,
                            .workspace = program->workspace,
                            .resize_output = resize_output,
                            .session = program};
  return program->backend->run(program->program, &args, &program->message);
}
