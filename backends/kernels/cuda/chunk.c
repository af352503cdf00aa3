// SPDX-License-Identifier: Apache-2.0
// A chunk: where its elements are, loads, the values of each lane, stores. Without whole runs, offsets go
// from element to element through the ends of axes.
#include <stdio.h>

#include "generator.h"

/* ---- offsets ---- */

/* Whether the input moves along some axis from `begin` to `end`. */
static bool moves(const generator_t *generator, uint32_t input, int32_t begin, int32_t end) {
  for (int32_t d = begin; d < end; d++) {
    if ((generator->variant->moves[input] >> d & 1) != 0) {
      return true;
    }
  }
  return false;
}

/* Coordinates along the axes from `begin` on out of an index, the last axis running fastest. */
static void write_coordinates(generator_t *generator, int32_t begin, int32_t end, const char *index,
                              const char *qualifier) {
  if (end - begin == 1) {
    LINE(generator, "%sindex c%d = %s;", qualifier, (int)begin, index);
    return;
  }
  LINE(generator, "index rest%d = %s;", (int)begin, index);
  for (int32_t d = end - 1; d > begin; d--) {
    LINE(generator, "%sindex c%d = rest%d %% args.dim%d;", qualifier, (int)d, (int)begin, (int)d);
    LINE(generator, "rest%d /= args.dim%d;", (int)begin, (int)d);
  }
  LINE(generator, "%sindex c%d = rest%d;", qualifier, (int)begin, (int)begin);
}

/* " + (offset)cD * args.strideI_D" for the axes that the input moves along. */
static void write_offset(generator_t *generator, uint32_t input, int32_t begin, int32_t end) {
  const char *plus = "";
  for (int32_t d = begin; d < end; d++) {
    if ((generator->variant->moves[input] >> d & 1) == 0) {
      continue;
    }
    if (cuda_has_stride(generator->variant, input, d)) {
      cuda_write(&generator->body, "%s(offset)c%d * args.stride%u_%d", plus, (int)d, (unsigned)input, (int)d);
    } else {
      cuda_write(&generator->body, "%s(offset)c%d", plus, (int)d);
    }
    plus = " + ";
  }
}

/* Needs coordinates of rows. */
static bool moves_with_rows(const generator_t *generator, uint32_t input) {
  return access_of(generator, input) != KERNEL_CUDA_ABSENT &&
         moves(generator, input, 0, first_inner(generator));
}

/* Parts of loads are found chunk by chunk, or element by element, from coordinates. */
static bool has_base(const generator_t *generator, uint32_t input) {
  return generator->variant->along[input] == 0 && moves_with_rows(generator, input);
}

/* ---- loads of several inputs ---- */

/* The address of the element whose coordinates are cD, the last one `ahead` ("" or " + j") further: that of
 * the part in which it lies. */
static void write_pick(generator_t *generator, const kernel_value_t *load, const char *ahead) {
  const int32_t along = (int32_t)generator->variant->along[load->input] - 1;
  const int32_t last = generator->variant->rank - 1;
  for (uint32_t n = 0; n < load->parts; n++) {
    unsigned part = load->input + n;
    const char *plus = "";
    if (n + 1 < load->parts) {
      cuda_write(&generator->body, "c%d%s < args.end%u ? ", (int)along, along == last ? ahead : "", part);
    }
    cuda_write(&generator->body, "args.in%u + (", part);
    for (int32_t d = 0; d <= last; d++) {
      if ((generator->variant->moves[part] >> d & 1) == 0) {
        continue;
      }
      cuda_write(&generator->body, "%s(offset)(c%d%s", plus, (int)d, d == last ? ahead : "");
      if (d == along && n > 0) {
        cuda_write(&generator->body, " - args.end%u", part - 1);
      }
      cuda_write(&generator->body, ")");
      if (cuda_has_stride(generator->variant, part, d)) {
        cuda_write(&generator->body, " * args.stride%u_%d", part, (int)d);
      }
      plus = " + ";
    }
    cuda_write(&generator->body, n + 1 < load->parts ? ") : " : ")");
  }
}

static bool is_any_joined(const generator_t *generator) {
  for (uint32_t v = 0; v < generator->program->value_count; v++) {
    if (joins(generator, v) && is_fresh(generator, v)) {
      return true;
    }
  }
  return false;
}

/* Writes where each input begins for the row. */
void cuda_write_bases(generator_t *generator) {
  bool is_any = false;
  for (uint32_t k = 0; k < generator->program->input_count; k++) {
    is_any = is_any || moves_with_rows(generator, k);
  }
  if (!is_any) {
    return;
  }
  write_coordinates(generator, 0, first_inner(generator), "row", "const ");
  for (uint32_t k = 0; k < generator->program->input_count; k++) {
    if (has_base(generator, k)) {
      indent(generator);
      cuda_write(&generator->body, "const %s *const row%u = args.in%u + (",
                 cuda_type(generator->program->inputs[k].dtype), (unsigned)k, (unsigned)k);
      write_offset(generator, k, 0, first_inner(generator));
      cuda_write(&generator->body, ");\n");
    }
  }
}

/* The address that offsets along the row count from. */
const char *cuda_base_of(const generator_t *generator, uint32_t input, char *out, size_t size) {
  snprintf(out, size, has_base(generator, input) ? "row%u" : "args.in%u", (unsigned)input);
  return out;
}

/* ---- a chunk ---- */

static bool loads_strided(const generator_t *generator, uint32_t value) {
  const kernel_value_t *self = &generator->program->values[value];
  return is_fresh(generator, value) && self->op == KERNEL_LOAD &&
         cuda_is_strided(generator->variant, self->input);
}

/* Whether offsets go from element to element through the ends of axes. */
static bool advances(const generator_t *generator) {
  return generator->variant->whole_runs == 0;
}

static void write_strided_offsets(generator_t *generator) {
  bool is_any = false;
  for (uint32_t v = 0; v < generator->program->value_count; v++) {
    is_any = is_any || loads_strided(generator, v);
  }
  if (!is_any) {
    return;
  }
  write_coordinates(generator, first_inner(generator), generator->variant->rank, "i",
                    advances(generator) ? "" : "const ");
  for (uint32_t v = 0; v < generator->program->value_count; v++) {
    if (loads_strided(generator, v) && !joins(generator, v)) {
      uint32_t input = generator->program->values[v].input;
      indent(generator);
      cuda_write(&generator->body, "%soffset o%u = ", advances(generator) ? "" : "const ", (unsigned)input);
      write_offset(generator, input, first_inner(generator), generator->variant->rank);
      cuda_write(&generator->body, ";\n");
    }
  }
}

/* Loads for the whole chunk. */
static void write_chunk_loads(generator_t *generator) {
  char base[32];
  const char *count = generator->is_partly ? "count" : "LANES";
  for (uint32_t v = 0; v < generator->program->value_count; v++) {
    const kernel_value_t *value = &generator->program->values[v];
    if (value->op != KERNEL_LOAD || !is_fresh(generator, v)) {
      continue;
    }
    unsigned input = value->input;
    const char *type = cuda_type(generator->program->inputs[input].dtype);
    cuda_base_of(generator, input, base, sizeof base);
    if (value->parts > 0) {
      if (access_of(generator, input) == KERNEL_CUDA_STRIDED) {
        indent(generator);
        cuda_write(&generator->body, "const pack<LANES, %s> x%u = load<LANES>(", type, input);
        write_pick(generator, value, "");
        cuda_write(&generator->body, ", LANES);\n");
      }
      continue;
    }
    if (access_of(generator, input) == KERNEL_CUDA_DENSE) {
      LINE(generator, "const pack<LANES, %s> x%u = load<LANES>(%s + i, %s);", type, input, base, count);
    } else if (access_of(generator, input) == KERNEL_CUDA_STRIDED) {
      LINE(generator, "const pack<LANES, %s> x%u = load<LANES>(%s + o%u, LANES);", type, input, base, input);
    } else if (access_of(generator, input) == KERNEL_CUDA_STRIDED_ONE) {
      LINE(generator, "const %s x%u = %s[o%u];", type, input, base, input);
    }
  }
}

/* Writes the address of an output for the row: outputs are dense. */
static const char *out_of(const generator_t *generator, uint32_t output, char *out, size_t size) {
  snprintf(out, size,
           generator->variant->threads > 0 ? "args.out%u + (offset)row * args.length" : "args.out%u",
           (unsigned)output);
  return out;
}

static void write_packs(generator_t *generator) {
  char to[64];
  for (uint32_t k = 0; k < generator->program->output_count; k++) {
    const kernel_output_t *output = &generator->program->outputs[k];
    if (!stores(generator, k, KERNEL_CUDA_DENSE)) {
      continue;
    }
    if (output->adds) {
      LINE(generator, "pack<LANES, %s> y%u = load<LANES>(%s + i, %s);", cuda_type(output->dtype), (unsigned)k,
           out_of(generator, k, to, sizeof to), generator->is_partly ? "count" : "LANES");
    } else {
      LINE(generator, "pack<LANES, %s> y%u;", cuda_type(output->dtype), (unsigned)k);
    }
  }
}

/* The element of an input in lane j. */
static void write_lane_load(generator_t *generator, uint32_t value) {
  uint32_t input = generator->program->values[value].input;
  cleave_dtype_t dtype = generator->program->inputs[input].dtype;
  char base[32];
  char element[128];
  cuda_base_of(generator, input, base, sizeof base);
  if (joins(generator, value) && access_of(generator, input) == KERNEL_CUDA_STRIDED_EACH) {
    indent(generator);
    cuda_write(&generator->body, "const %s *const p%u = ", cuda_type(dtype), (unsigned)input);
    write_pick(generator, &generator->program->values[value], advances(generator) ? "" : " + j");
    cuda_write(&generator->body, ";\n");
    snprintf(base, sizeof base, "p%u", (unsigned)input);
  }
  switch (access_of(generator, input)) {
    case KERNEL_CUDA_DENSE:
    case KERNEL_CUDA_STRIDED: snprintf(element, sizeof element, "x%u.at[j]", (unsigned)input); break;
    case KERNEL_CUDA_STRIDED_ONE: snprintf(element, sizeof element, "x%u", (unsigned)input); break;
    case KERNEL_CUDA_DENSE_EACH:
      snprintf(element, sizeof element, generator->is_partly ? "%s[i + (j < count ? j : 0)]" : "%s[i + j]",
               base);
      break;
    default:
      if (joins(generator, value)) {
        snprintf(element, sizeof element, "*%s", base);
      } else if (advances(generator) || generator->variant->lanes == 1 ||
                 (generator->variant->moves[input] >> (generator->variant->rank - 1) & 1) == 0) {
        snprintf(element, sizeof element, "%s[o%u]", base, (unsigned)input);
      } else {
        snprintf(element, sizeof element, "%s[o%u + j * args.stride%u_%d]", base, (unsigned)input,
                 (unsigned)input, (int)generator->variant->rank - 1);
      }
      break;
  }
  indent(generator);
  cuda_write(&generator->body, "const %s v%u = ", cuda_type(generator->program->values[value].dtype),
             (unsigned)value);
  cuda_write_widened(&generator->body, dtype, element);
  cuda_write(&generator->body, ";\n");
}

/* The value of an output as it is stored, on top of what is there if it adds. */
void cuda_write_stored(generator_t *generator, uint32_t index, const char *element) {
  const kernel_output_t *output = &generator->program->outputs[index];
  cleave_dtype_t dtype = generator->program->values[output->value].dtype;
  cuda_writer_t sum = {0};
  if (output->adds) {
    cuda_write(&sum, "(%s)",
               dtype == CLEAVE_DTYPE_F64   ? "double"
               : dtype == CLEAVE_DTYPE_F32 ? "float"
                                           : "u64");
    cuda_write_widened(&sum, output->dtype, element);
    cuda_write(&sum, " + ");
  }
  cuda_write(&sum, "v%u", (unsigned)output->value);
  if (sum.failed) {
    generator->body.failed = true;
  } else {
    cuda_write_narrowed(&generator->body, output->dtype, sum.text);
  }
  cuda_writer_deinit(&sum);
}

static void write_lane_stores(generator_t *generator) {
  char to[64];
  char element[128];
  for (uint32_t k = 0; k < generator->program->output_count; k++) {
    bool is_each = stores(generator, k, KERNEL_CUDA_DENSE_EACH);
    if (!is_each && !stores(generator, k, KERNEL_CUDA_DENSE)) {
      continue;
    }
    if (is_each) {
      snprintf(element, sizeof element, "(%s)[i + j]", out_of(generator, k, to, sizeof to));
    } else {
      snprintf(element, sizeof element, "y%u.at[j]", (unsigned)k);
    }
    if (is_each && generator->is_partly) {
      LINE(generator, "if (j < count)");
      generator->indent++;
    }
    indent(generator);
    cuda_write(&generator->body, "%s = ", element);
    cuda_write_stored(generator, k, element);
    cuda_write(&generator->body, ";\n");
    generator->indent -= is_each && generator->is_partly ? 1 : 0;
  }
}

static void write_lane_reductions(generator_t *generator) {
  char a[16];
  for (uint32_t v = 0; v < generator->program->value_count; v++) {
    const kernel_value_t *value = &generator->program->values[v];
    if (!generator->phases.used[v] || !cuda_is_reduction(value) ||
        generator->phases.ready[v] != generator->phase + 1) {
      continue;
    }
    const cuda_reduction_t reduction = cuda_reduction_of(generator->program, v);
    snprintf(a, sizeof a, "r%u", (unsigned)v);
    indent(generator);
    cuda_write(&generator->body, "%s = ", a);
    cuda_write_step(&generator->body, &reduction, a, "i + j");
    cuda_write(&generator->body, ";\n");
  }
}

/* Writes the step from one element to the next, through the ends of axes. */
static void write_advance(generator_t *generator) {
  int32_t begin = first_inner(generator);
  int32_t last = generator->variant->rank - 1;
  bool is_any = false;
  for (uint32_t v = 0; v < generator->program->value_count; v++) {
    is_any = is_any || loads_strided(generator, v);
  }
  if (!is_any || !advances(generator)) {
    return;
  }
  LINE(generator, "if (j + 1 < count) {");
  open_block(generator);
  for (int32_t d = last; d >= begin; d--) {
    for (uint32_t v = 0; v < generator->program->value_count; v++) {
      unsigned input = generator->program->values[v].input;
      if (!loads_strided(generator, v) || joins(generator, v)) {
        continue;
      }
      if (cuda_has_stride(generator->variant, input, d)) {
        LINE(generator, "o%u += args.stride%u_%d;", input, input, (int)d);
      }
      if (d < last && cuda_has_stride(generator->variant, input, d + 1)) {
        LINE(generator, "o%u -= (offset)args.dim%d * args.stride%u_%d;", input, (int)d + 1, input,
             (int)d + 1);
      }
    }
    if (d > begin) {
      LINE(generator, "if (++c%d == args.dim%d) {", (int)d, (int)d);
      open_block(generator);
      LINE(generator, "c%d = 0;", (int)d);
    } else if (is_any_joined(generator)) {
      LINE(generator, "c%d++;", (int)d);
    }
  }
  for (int32_t d = begin; d < last; d++) {
    close_block(generator);
  }
  close_block(generator);
}

static void write_lane_values(generator_t *generator) {
  for (uint32_t v = 0; v < generator->program->value_count; v++) {
    const kernel_value_t *value = &generator->program->values[v];
    if (!generator->marks[v] || is_load(generator, v, KERNEL_CUDA_ONE)) {
      continue;
    }
    if (!is_fresh(generator, v)) {
      LINE(generator, "const %s v%u = k%u[k * LANES + j];", cuda_type(value->dtype), (unsigned)v,
           (unsigned)v);
      continue;
    }
    if (value->op == KERNEL_LOAD) {
      write_lane_load(generator, v);
    } else {
      indent(generator);
      cuda_write_value(&generator->body, generator->program, v);
    }
    if (is_kept(generator, v)) {
      LINE(generator, "k%u[k * LANES + j] = v%u;", (unsigned)v, (unsigned)v);
    }
  }
}

/* Writes what the phase does with the chunk that begins at i. */
void cuda_write_chunk(generator_t *generator) {
  char to[64];
  write_strided_offsets(generator);
  write_chunk_loads(generator);
  write_packs(generator);
  cuda_write(&generator->body, "#pragma unroll\n");
  LINE(generator, "for (int j = 0; j < LANES; j++) {");
  open_block(generator);
  write_lane_values(generator);
  write_lane_reductions(generator);
  write_lane_stores(generator);
  write_advance(generator);
  close_block(generator);
  for (uint32_t k = 0; k < generator->program->output_count; k++) {
    if (stores(generator, k, KERNEL_CUDA_DENSE)) {
      LINE(generator, "store<LANES>(%s + i, y%u, %s);", out_of(generator, k, to, sizeof to), (unsigned)k,
           generator->is_partly ? "count" : "LANES");
    }
  }
}
