// SPDX-License-Identifier: Apache-2.0
// Reading Einsum equations. Labels are numbered in the order in which they appear; axes under an ellipsis
// have the numbers from the right, so that equal ones meet.
#include "cpu/products/einsum.h"

#include <string.h>

typedef struct reader {
  cpu_einsum_t *einsum;
  cleave_message_t *message;
  int32_t letters[128];               // label of a letter, or -1
  int32_t uses[128];                  // occurrences of a letter on the left
  int32_t ellipsis[CLEAVE_MAX_RANK];  // label of the ellipsis axis `k` from the right, or -1
  int32_t ellipsis_rank;              // most axes that an ellipsis covers
} reader_t;

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

cleave_status_t cpu_einsum_check(const char *equation, uint32_t operand_count, cleave_message_t *message) {
  uint32_t terms = 1;
  bool arrow = false;
  bool ellipsis = false;
  for (const char *c = equation; *c != '\0'; c++) {
    if (is_letter(*c) || *c == ' ') {
      continue;
    }
    if (*c == ',' && !arrow) {
      terms++;
      ellipsis = false;
    } else if (c[0] == '-' && c[1] == '>' && !arrow) {
      arrow = true;
      ellipsis = false;
      c++;
    } else if (c[0] == '.' && c[1] == '.' && c[2] == '.' && !ellipsis) {
      ellipsis = true;
      c += 2;
    } else {
      return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "equation '%.64s' is malformed at '%.8s'",
                         equation, c);
    }
  }
  if (terms != operand_count || operand_count > CPU_EINSUM_OPERANDS) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED,
                       "equation '%.64s' has %u term%s for %u operand%s (at most %d)", equation, terms,
                       KERNEL_PLURAL(terms), operand_count, KERNEL_PLURAL(operand_count),
                       CPU_EINSUM_OPERANDS);
  }
  return CLEAVE_OK;
}

static cleave_status_t new_label(reader_t *reader, int32_t *out_label) {
  if (*out_label < 0) {
    if (reader->einsum->label_count == CPU_EINSUM_LABELS) {
      return kernel_fail(reader->message, CLEAVE_ERROR_LIMIT, "more than %d labels", CPU_EINSUM_LABELS);
    }
    *out_label = reader->einsum->label_count++;
    reader->einsum->extents[*out_label] = 1;
  }
  return CLEAVE_OK;
}

// One axis of an operand: extents of 1 stretch, others must be equal.
static cleave_status_t add_axis(reader_t *reader, uint32_t operand, int32_t label, int64_t extent,
                                int64_t stride) {
  cpu_einsum_t *einsum = reader->einsum;
  if (extent != 1) {
    if (einsum->extents[label] != 1 && einsum->extents[label] != extent) {
      return kernel_fail(reader->message, CLEAVE_ERROR_SHAPE,
                         "operand %u has extent %lld where another has %lld", operand, (long long)extent,
                         (long long)einsum->extents[label]);
    }
    einsum->extents[label] = extent;
    einsum->strides[operand][label] += stride;
  }
  einsum->repeats[operand] = einsum->repeats[operand] || einsum->has[operand][label];
  einsum->has[operand][label] = true;
  return CLEAVE_OK;
}

// Reads the term that starts at `text`; returns where it ends.
static cleave_status_t read_term(reader_t *reader, const char *text, uint32_t operand,
                                 const cpu_tensor_t *tensor) {
  int32_t named = 0;
  bool ellipsis = false;
  for (const char *c = text; is_letter(*c) || *c == ' ' || *c == '.'; c++) {
    named += is_letter(*c) ? 1 : 0;
    ellipsis = ellipsis || *c == '.';
  }
  int32_t covered = tensor->rank - named;
  if (covered < 0 || (covered > 0 && !ellipsis)) {
    return kernel_fail(reader->message, CLEAVE_ERROR_SHAPE, "operand %u has rank %d, its term has %d label%s",
                       operand, tensor->rank, named, KERNEL_PLURAL(named));
  }
  reader->ellipsis_rank = covered > reader->ellipsis_rank ? covered : reader->ellipsis_rank;
  int64_t strides[CLEAVE_MAX_RANK + 1];
  int64_t step = 1;
  for (int32_t d = tensor->rank - 1; d >= 0; d--) {
    strides[d] = step;
    step *= tensor->dims[d];
  }
  int32_t axis = 0;
  for (const char *c = text; is_letter(*c) || *c == ' ' || *c == '.'; c++) {
    if (is_letter(*c)) {
      CPU_TRY(new_label(reader, &reader->letters[(int)*c]));
      CPU_TRY(add_axis(reader, operand, reader->letters[(int)*c], tensor->dims[axis], strides[axis]));
      reader->uses[(int)*c]++;
      axis++;
    } else if (*c == '.') {
      for (int32_t k = covered - 1; k >= 0; k--, axis++) {
        CPU_TRY(new_label(reader, &reader->ellipsis[k]));
        CPU_TRY(add_axis(reader, operand, reader->ellipsis[k], tensor->dims[axis], strides[axis]));
      }
      c += 2;
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t add_output(reader_t *reader, int32_t label) {
  cpu_einsum_t *einsum = reader->einsum;
  if (label < 0 || einsum->in_out[label] || einsum->out_rank == CLEAVE_MAX_RANK) {
    return kernel_fail(reader->message, CLEAVE_ERROR_SHAPE,
                       "the output has a label twice, or one that no operand has");
  }
  einsum->in_out[label] = true;
  einsum->out_labels[einsum->out_rank++] = label;
  return CLEAVE_OK;
}

static cleave_status_t add_ellipsis(reader_t *reader) {
  for (int32_t k = reader->ellipsis_rank - 1; k >= 0; k--) {
    CPU_TRY(add_output(reader, reader->ellipsis[k]));
  }
  return CLEAVE_OK;
}

// Without an arrow: the ellipsis, then the letters that occur once, in the order of their codes.
static cleave_status_t read_output(reader_t *reader, const char *text) {
  if (text == NULL) {
    CPU_TRY(add_ellipsis(reader));
    for (int c = 0; c < 128; c++) {
      if (reader->uses[c] == 1) {
        CPU_TRY(add_output(reader, reader->letters[c]));
      }
    }
    return CLEAVE_OK;
  }
  for (const char *c = text; *c != '\0'; c++) {
    if (is_letter(*c)) {
      CPU_TRY(add_output(reader, reader->letters[(int)*c]));
    } else if (*c == '.') {
      CPU_TRY(add_ellipsis(reader));
      c += 2;
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cpu_einsum_resolve(const char *equation, uint32_t operand_count,
                                   const cpu_tensor_t *const *operands, cpu_einsum_t *out_einsum,
                                   cleave_message_t *message) {
  memset(out_einsum, 0, sizeof *out_einsum);
  out_einsum->operand_count = operand_count;
  reader_t reader = {.einsum = out_einsum, .message = message};
  memset(reader.letters, -1, sizeof reader.letters);
  memset(reader.ellipsis, -1, sizeof reader.ellipsis);
  const char *term = equation;
  for (uint32_t k = 0; k < operand_count; k++) {
    if (operands[k] == NULL) {
      return kernel_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT, "operand %u is missing", k);
    }
    CPU_TRY(read_term(&reader, term, k, operands[k]));
    term += strcspn(term, ",-");
    term += *term == ',' ? 1 : 0;
  }
  const char *arrow = strstr(equation, "->");
  CPU_TRY(read_output(&reader, arrow != NULL ? arrow + 2 : NULL));
  out_einsum->out_count = 1;
  out_einsum->sum_count = 1;
  for (int32_t label = 0; label < out_einsum->label_count; label++) {
    int64_t *count = out_einsum->in_out[label] ? &out_einsum->out_count : &out_einsum->sum_count;
    *count = cpu_nn_multiply(*count, out_einsum->extents[label]);
  }
  return CLEAVE_OK;
}
