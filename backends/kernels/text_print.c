// SPDX-License-Identifier: Apache-2.0
// From a program to its text. Numbers have all digits that they need to come back as they were.
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "convert.h"
#include "text.h"

typedef struct printer {
  char *text;
  size_t size;
  size_t length;
} printer_t;

__attribute__((format(printf, 2, 3))) static void print(printer_t *printer, const char *format, ...) {
  char piece[128];
  va_list arguments;
  va_start(arguments, format);
  int written = vsnprintf(piece, sizeof piece, format, arguments);
  va_end(arguments);
  size_t length = written > 0 ? (size_t)written : 0;
  for (size_t k = 0; k < length && printer->length + k + 1 < printer->size; k++) {
    printer->text[printer->length + k] = piece[k];
  }
  printer->length += length;
}

static void print_constant(printer_t *printer, const kernel_value_t *value) {
  double f64 = 0;
  int64_t i64 = 0;
  uint64_t u64 = 0;
  float f32 = 0;
  switch (value->dtype) {
    case CLEAVE_DTYPE_F32:
      memcpy(&f32, &value->bits, sizeof f32);
      print(printer, "%.9g", (double)f32);
      break;
    case CLEAVE_DTYPE_F64:
      memcpy(&f64, &value->bits, sizeof f64);
      print(printer, "%.17g", f64);
      break;
    case CLEAVE_DTYPE_U64:
      memcpy(&u64, &value->bits, sizeof u64);
      print(printer, "%" PRIu64, u64);
      break;
    case CLEAVE_DTYPE_BOOL: print(printer, "%d", (value->bits & 1u) != 0); break;
    default:
      cpu_convert(value->dtype, &value->bits, CLEAVE_DTYPE_I64, &i64, 1);
      print(printer, "%" PRId64, i64);
      break;
  }
}

static void print_value(printer_t *printer, const kernel_program_t *program, uint32_t index) {
  const kernel_value_t *value = &program->values[index];
  const kernel_op_info_t *info = kernel_op_info(value->op);
  print(printer, "%%%u = %s", (unsigned)index, info->name);
  if (value->op == KERNEL_LOAD) {
    for (uint32_t k = 0; k < (value->parts > 0 ? value->parts : 1); k++) {
      print(printer, " in%u", (unsigned)(value->input + k));
    }
    if (value->parts > 0) {
      print(printer, " along %d", (int)value->along);
    }
  } else if (value->op == KERNEL_CONSTANT) {
    print(printer, " %s ", kernel_dtype_name(value->dtype));
    print_constant(printer, value);
  } else if (value->op == KERNEL_CAST) {
    cleave_dtype_t to = value->rounds != CLEAVE_DTYPE_UNKNOWN ? value->rounds : value->dtype;
    print(printer, " %s", kernel_dtype_name(to));
  }
  for (uint32_t k = 0; k < info->operand_count; k++) {
    print(printer, " %%%u", (unsigned)value->operands[k]);
  }
  if (info->immediate_count > 0) {
    print(printer, " %.17g", value->alpha);
  }
  if (info->immediate_count > 1) {
    print(printer, " %.17g", value->beta);
  }
  print(printer, "\n");
}

size_t kernel_program_print(const kernel_program_t *program, char *text, size_t size) {
  printer_t printer = {.text = text, .size = size};
  print(&printer, "kernel rank %d reduced %d\n", (int)program->rank, (int)program->reduced);
  for (uint32_t k = 0; k < program->input_count; k++) {
    print(&printer, "in%u %s [", (unsigned)k, kernel_dtype_name(program->inputs[k].dtype));
    for (int32_t d = 0; d < program->rank; d++) {
      int axis = program->inputs[k].axes[d];
      print(&printer, axis < 0 ? "%s." : "%s%d", d > 0 ? " " : "", axis);
    }
    print(&printer, "]\n");
  }
  for (uint32_t k = 0; k < program->value_count; k++) {
    print_value(&printer, program, k);
  }
  for (uint32_t k = 0; k < program->output_count; k++) {
    const kernel_output_t *output = &program->outputs[k];
    print(&printer, "out%u %s %s %%%u\n", (unsigned)k, kernel_dtype_name(output->dtype),
          output->adds ? "+=" : "=", (unsigned)output->value);
  }
  if (size > 0) {
    text[printer.length < size ? printer.length : size - 1] = '\0';
  }
  return printer.length;
}
