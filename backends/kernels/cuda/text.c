// SPDX-License-Identifier: Apache-2.0
// The text of a kernel. Without reductions a thread has one chunk of consecutive elements. With reductions a
// row belongs to a part of a warp, a warp or a block; its elements stay in registers from phase to phase, or
// are computed again in each. The same loop body does both.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "generator.h"
#include "kernels/text.h"

enum { WARP = 32, POINTWISE_BLOCK = 512, ROWS_BLOCK = 256 };

/* ---- rows ---- */

static bool is_reduced_in(const generator_t *generator, uint32_t value, uint32_t phase) {
  return generator->phases.used[value] && cuda_is_reduction(&generator->program->values[value]) &&
         generator->phases.ready[value] == phase + 1;
}

/* Constants, and inputs that stay where they are along a row. */
static void write_row_values(generator_t *generator) {
  char base[32];
  char element[64];
  for (uint32_t v = 0; v < generator->program->value_count; v++) {
    const kernel_value_t *value = &generator->program->values[v];
    if (!generator->phases.used[v]) {
      continue;
    }
    if (value->op == KERNEL_CONSTANT) {
      indent(generator);
      cuda_write_value(&generator->body, generator->program, v);
    } else if (is_load(generator, v, KERNEL_CUDA_ONE)) {
      snprintf(element, sizeof element, "%s[0]", cuda_base_of(generator, value->input, base, sizeof base));
      indent(generator);
      cuda_write(&generator->body, "const %s v%u = ", cuda_type(value->dtype), (unsigned)v);
      cuda_write_widened(&generator->body, generator->program->inputs[value->input].dtype, element);
      cuda_write(&generator->body, ";\n");
    }
  }
}

/* All threads of the row get its result: through the lanes of a warp, then through shared memory. */
static void write_join(generator_t *generator, uint32_t index) {
  const kernel_value_t *value = &generator->program->values[index];
  const cuda_reduction_t reduction = cuda_reduction_of(generator->program, index);
  const char *type = reduction.type;
  int32_t threads = generator->variant->threads;
  unsigned v = index;
  char a[16];
  snprintf(a, sizeof a, "r%u", v);
  if (threads > 1) {
    LINE(generator, "for (int d = %d; d > 0; d /= 2) {", threads < WARP ? (int)threads / 2 : WARP / 2);
    open_block(generator);
    if (cuda_is_argument(value)) {
      LINE(generator, "const %s x = from_lane(r%u, d);", type, v);
    } else {
      LINE(generator, "const %s x = (%s)__shfl_xor_sync(0xffffffffu, r%u, d);", type, type, v);
    }
    indent(generator);
    cuda_write(&generator->body, "r%u = ", v);
    cuda_write_join(&generator->body, &reduction, a, "x");
    cuda_write(&generator->body, ";\n");
    close_block(generator);
  }
  if (threads > WARP) {
    LINE(generator, "__shared__ %s s%u[%d];", type, v, (int)threads / WARP);
    LINE(generator, "if (lane %% %d == 0) {", WARP);
    open_block(generator);
    LINE(generator, "s%u[lane / %d] = r%u;", v, WARP, v);
    close_block(generator);
    LINE(generator, "__syncthreads();");
    LINE(generator, "r%u = s%u[0];", v, v);
    LINE(generator, "for (int d = 1; d < %d; d++) {", (int)threads / WARP);
    open_block(generator);
    LINE(generator, "const %s x = s%u[d];", type, v);
    indent(generator);
    cuda_write(&generator->body, "r%u = ", v);
    cuda_write_join(&generator->body, &reduction, a, "x");
    cuda_write(&generator->body, ";\n");
    close_block(generator);
  }
  indent(generator);
  cuda_write(&generator->body, "const %s v%u = ", cuda_type(value->dtype), v);
  cuda_write_result(&generator->body, &reduction, a, "(double)args.length");
  cuda_write(&generator->body, ";\n");
}

/* Values per row that the phase begins with, and their stores. */
static void write_phase_head(generator_t *generator) {
  char element[64];
  for (uint32_t v = 0; v < generator->program->value_count; v++) {
    const kernel_value_t *value = &generator->program->values[v];
    if (generator->phases.used[v] && value->per_row && !cuda_is_reduction(value) &&
        generator->phases.ready[v] == generator->phase) {
      indent(generator);
      cuda_write_value(&generator->body, generator->program, v);
    }
  }
  for (uint32_t k = 0; k < generator->program->output_count; k++) {
    if (stores(generator, k, KERNEL_CUDA_ONE)) {
      snprintf(element, sizeof element, "args.out%u[row]", (unsigned)k);
      LINE(generator, "if (is_row && lane == 0) {");
      open_block(generator);
      indent(generator);
      cuda_write(&generator->body, "%s = ", element);
      cuda_write_stored(generator, k, element);
      cuda_write(&generator->body, ";\n");
      close_block(generator);
    }
  }
}

static bool has_elements(const generator_t *generator) {
  for (uint32_t v = 0; v < generator->program->value_count; v++) {
    if (generator->marks[v] || is_reduced_in(generator, v, generator->phase)) {
      return true;
    }
  }
  for (uint32_t k = 0; k < generator->program->output_count; k++) {
    if (stores(generator, k, KERNEL_CUDA_DENSE) || stores(generator, k, KERNEL_CUDA_DENSE_EACH)) {
      return true;
    }
  }
  return false;
}

static void write_phase(generator_t *generator) {
  const kernel_cuda_variant_t *variant = generator->variant;
  cuda_phases_mark(generator->program, &generator->phases, generator->wanted, generator->phase,
                   generator->keeps, generator->marks);
  write_phase_head(generator);
  if (!has_elements(generator)) {
    return;
  }
  for (uint32_t v = 0; v < generator->program->value_count; v++) {
    if (is_reduced_in(generator, v, generator->phase)) {
      const cuda_reduction_t reduction = cuda_reduction_of(generator->program, v);
      indent(generator);
      cuda_write(&generator->body, "%s r%u = ", reduction.type, (unsigned)v);
      cuda_write_initial(&generator->body, &reduction);
      cuda_write(&generator->body, ";\n");
    }
    if (is_kept(generator, v) && generator->phases.first[v] == generator->phase) {
      LINE(generator, "%s k%u[%d * LANES];", cuda_type(generator->program->values[v].dtype), (unsigned)v,
           (int)variant->chunks);
    }
  }
  if (generator->keeps) {
    cuda_write(&generator->body, "#pragma unroll\n");
    LINE(generator, "for (int k = 0; k < %d; k++) {", (int)variant->chunks);
    open_block(generator);
    LINE(generator, "const index i = ((index)k * %d + lane) * LANES;", (int)variant->threads);
    LINE(generator, "if (i < length) {");
    open_block(generator);
    cuda_write_chunk(generator);
    close_block(generator);
  } else {
    LINE(generator, "for (index i = lane * LANES; i < length; i += %d * LANES) {", (int)variant->threads);
    open_block(generator);
    cuda_write_chunk(generator);
  }
  close_block(generator);
  for (uint32_t v = 0; v < generator->program->value_count; v++) {
    if (is_reduced_in(generator, v, generator->phase)) {
      write_join(generator, v);
    }
  }
}

static void write_rows(generator_t *generator) {
  int threads = (int)generator->variant->threads;
  LINE(generator, "const index lane = threadIdx.x %% %d;", threads);
  if (threads > WARP) {
    LINE(generator, "const bool is_row = true;");
    LINE(generator, "const index row = blockIdx.x;");
    LINE(generator, "const index length = args.length;");
  } else {
    LINE(generator, "const index own = (index)blockIdx.x * (blockDim.x / %d) + threadIdx.x / %d;", threads,
         threads);
    LINE(generator, "const bool is_row = own < args.rows; // the others help in shuffles");
    LINE(generator, "const index row = is_row ? own : 0;");
    LINE(generator, "const index length = is_row ? args.length : 0;");
  }
  cuda_write_bases(generator);
  write_row_values(generator);
  for (uint32_t p = 0; p < generator->phases.count; p++) {
    generator->phase = p;
    LINE(generator, "// phase %u", (unsigned)p);
    write_phase(generator);
  }
}

static void write_elements(generator_t *generator) {
  LINE(generator, "const index i = ((index)blockIdx.x * blockDim.x + threadIdx.x) * LANES;");
  LINE(generator, "if (i >= args.length) {");
  open_block(generator);
  LINE(generator, "return;");
  close_block(generator);
  generator->is_partly = generator->variant->whole_runs == 0;
  if (generator->is_partly) {
    LINE(generator, "const int count = args.length - i < LANES ? (int)(args.length - i) : LANES;");
  }
  write_row_values(generator);
  cuda_phases_mark(generator->program, &generator->phases, generator->wanted, 0, false, generator->marks);
  cuda_write_chunk(generator);
}

/* ---- the whole ---- */

static void write_arguments(generator_t *generator, cuda_writer_t *writer) {
  cuda_argument_t arguments[CUDA_MAX_ARGUMENTS];
  uint32_t count = cuda_arguments_list(generator->program, generator->variant, arguments);
  cuda_write(writer, "struct arguments {\n");
  for (uint32_t k = 0; k < count; k++) {
    unsigned tensor = arguments[k].tensor;
    int axis = (int)arguments[k].axis;
    switch (arguments[k].kind) {
      case CUDA_ARGUMENT_INPUT:
        cuda_write(writer, "  const %s *in%u;\n", cuda_type(generator->program->inputs[tensor].dtype),
                   tensor);
        break;
      case CUDA_ARGUMENT_OUTPUT:
        cuda_write(writer, "  %s *out%u;\n", cuda_type(generator->program->outputs[tensor].dtype), tensor);
        break;
      case CUDA_ARGUMENT_LENGTH: cuda_write(writer, "  index length;\n"); break;
      case CUDA_ARGUMENT_ROWS: cuda_write(writer, "  index rows;\n"); break;
      case CUDA_ARGUMENT_DIM: cuda_write(writer, "  index dim%d;\n", axis); break;
      case CUDA_ARGUMENT_STRIDE: cuda_write(writer, "  offset stride%u_%d;\n", tensor, axis); break;
      case CUDA_ARGUMENT_END: cuda_write(writer, "  index end%u;\n", tensor); break;
    }
  }
  cuda_write(writer, "};\n");
}

static cleave_status_t write_head(generator_t *generator, const char *title, cuda_writer_t *writer) {
  size_t length = kernel_program_print(generator->program, NULL, 0);
  char *program = malloc(length + 1);
  if (program == NULL) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  kernel_program_print(generator->program, program, length + 1);
  cuda_write_comment(writer, title);
  cuda_write_comment(writer, program);
  free(program);
  cuda_write(writer,
             "typedef signed char i8;\ntypedef short i16;\ntypedef int i32;\ntypedef long long i64;\n"
             "typedef unsigned char u8;\ntypedef unsigned short u16;\ntypedef unsigned int u32;\n"
             "typedef unsigned long long u64;\n");
  bool is_wide = generator->variant->is_wide != 0;
  cuda_write(writer, "typedef %s index;\ntypedef %s offset;\n", is_wide ? "u64" : "u32",
             is_wide ? "i64" : "i32");
  cuda_write(writer, "enum { LANES = %d };\n", (int)generator->variant->lanes);
  cuda_write_functions(writer, generator->body.text != NULL ? generator->body.text : "");
  write_arguments(generator, writer);
  return CLEAVE_OK;
}

cleave_status_t kernel_cuda_text(const kernel_cuda_t *kernel, const kernel_cuda_variant_t *variant,
                                 const char *title, char **out_text, cleave_message_t *message) {
  *out_text = NULL;
  cuda_writer_t writer = {0};
  generator_t *generator = calloc(1, sizeof *generator);
  if (generator == NULL) {
    return kernel_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, "no memory for the text of a kernel");
  }
  generator->program = &kernel->program;
  generator->variant = variant;
  generator->keeps = variant->chunks > 0;
  generator->indent = 1;
  for (uint32_t k = 0; k < kernel->program.output_count; k++) {
    generator->wanted[k] = variant->outputs[k] != KERNEL_CUDA_ABSENT;
  }
  cuda_phases_find(&kernel->program, generator->wanted, &generator->phases);
  if (variant->threads > 0) {
    write_rows(generator);
  } else {
    write_elements(generator);
  }
  cleave_status_t status = write_head(generator, title, &writer);
  int threads = variant->threads > WARP ? (int)variant->threads
                : variant->threads > 0  ? ROWS_BLOCK
                                        : POINTWISE_BLOCK;
  cuda_write(&writer, "extern \"C\" __global__ void __launch_bounds__(%d) %s(const arguments args) {\n",
             threads, KERNEL_CUDA_ENTRY);
  cuda_write_bytes(&writer, generator->body.text != NULL ? generator->body.text : "", generator->body.length);
  cuda_write(&writer, "}\n");
  if (status != CLEAVE_OK || writer.failed || generator->body.failed) {
    cuda_writer_deinit(&writer);
    status = kernel_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, "no memory for the text of a kernel");
  }
  cuda_writer_deinit(&generator->body);
  free(generator);
  *out_text = writer.text;
  return status;
}
