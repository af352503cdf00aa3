// SPDX-License-Identifier: Apache-2.0
// Helpers that every kernel uses: messages, attributes, dtypes, single elements, the parallel loop.
#include <stdio.h>
#include <string.h>

#include "cpu/common/kernel.h"
#include "kernels/convert.h"

cleave_status_t cpu_fail_types(const cpu_prepare_t *prepare, cleave_message_t *message) {
  return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "from %s to %s is not supported",
                     cpu_dtype_name(cpu_input_dtype(prepare, 0)),
                     cpu_dtype_name(cpu_output_dtype(prepare, 0)));
}

cleave_status_t cpu_find_axis(int64_t axis, int32_t rank, int32_t *out_axis, cleave_message_t *message) {
  return cpu_axis(axis, rank, out_axis)
             ? CLEAVE_OK
             : kernel_fail(message, CLEAVE_ERROR_SHAPE, "axis %lld is outside rank %d", (long long)axis,
                           (int)rank);
}

cleave_status_t cpu_prepare_ints(cpu_prepare_t *prepare, const char *name, const int64_t **out_values,
                                 uint32_t *out_count) {
  uint32_t count = 0;
  const int64_t *values = cleave_view_ints(prepare->node, name, &count);
  *out_values = NULL;
  *out_count = count;
  if (count == 0) {
    return CLEAVE_OK;
  }
  int64_t *copy = prepare->allocate(prepare, count * sizeof *copy);
  if (copy == NULL) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  memcpy(copy, values, count * sizeof *copy);
  *out_values = copy;
  return CLEAVE_OK;
}

cleave_dtype_t cpu_input_dtype(const cpu_prepare_t *prepare, uint32_t index) {
  const cleave_value_view_t *value = cleave_view_input(prepare->region, prepare->node, index);
  return value == NULL ? CLEAVE_DTYPE_UNKNOWN : value->tensor.dtype;
}

cleave_dtype_t cpu_output_dtype(const cpu_prepare_t *prepare, uint32_t index) {
  const cleave_value_view_t *value = cleave_view_output(prepare->region, prepare->node, index);
  return value == NULL ? CLEAVE_DTYPE_UNKNOWN : value->tensor.dtype;
}

const char *cpu_dtype_name(cleave_dtype_t dtype) {
  switch (dtype) {
    case CLEAVE_DTYPE_F32: return "float32";
    case CLEAVE_DTYPE_U8: return "uint8";
    case CLEAVE_DTYPE_I8: return "int8";
    case CLEAVE_DTYPE_U16: return "uint16";
    case CLEAVE_DTYPE_I16: return "int16";
    case CLEAVE_DTYPE_I32: return "int32";
    case CLEAVE_DTYPE_I64: return "int64";
    case CLEAVE_DTYPE_STRING: return "string";
    case CLEAVE_DTYPE_BOOL: return "bool";
    case CLEAVE_DTYPE_F16: return "float16";
    case CLEAVE_DTYPE_F64: return "float64";
    case CLEAVE_DTYPE_U32: return "uint32";
    case CLEAVE_DTYPE_U64: return "uint64";
    case CLEAVE_DTYPE_BF16: return "bfloat16";
    case CLEAVE_DTYPE_UNKNOWN: break;
  }
  return "unknown";
}

bool cpu_same_shape(const cpu_tensor_t *a, const cpu_tensor_t *b) {
  return a->rank == b->rank &&
         (a->rank == 0 || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof a->dims[0]) == 0);
}

static void print_dims(char *text, size_t size, int32_t rank, const int64_t *dims) {
  size_t used = 0;
  text[0] = '\0';
  for (int32_t d = 0; d < rank && used + 1 < size; d++) {
    int written = snprintf(text + used, size - used, d == 0 ? "%lld" : "x%lld", (long long)dims[d]);
    used += written > 0 ? (size_t)written : 0;
  }
}

cleave_status_t cpu_output_shape(const cpu_call_t *call, uint32_t output, int32_t rank, const int64_t *dims,
                                 cleave_message_t *message) {
  cpu_tensor_t *tensor = call->outputs[output];
  if (tensor->data == NULL) {
    int64_t count = 1;
    for (int32_t d = 0; d < rank; d++) {
      if (dims[d] < 0 || __builtin_mul_overflow(count, dims[d], &count) || count > INT64_MAX / 16) {
        return kernel_fail(message, CLEAVE_ERROR_LIMIT, "output %u has too many elements", (unsigned)output);
      }
    }
    cleave_status_t status = call->resize(call, output, rank, dims);
    return status == CLEAVE_OK ? CLEAVE_OK
                               : kernel_fail(message, status, "no memory for output %u", (unsigned)output);
  }
  if (tensor->rank == rank && (rank == 0 || memcmp(tensor->dims, dims, (size_t)rank * sizeof dims[0]) == 0)) {
    return CLEAVE_OK;
  }
  char expected[96];
  char found[96];
  print_dims(expected, sizeof expected, rank, dims);
  print_dims(found, sizeof found, tensor->rank, tensor->dims);
  return kernel_fail(message, CLEAVE_ERROR_SHAPE, "output %u has shape [%s], expected [%s]", (unsigned)output,
                     found, expected);
}

int64_t cpu_read_int(const cpu_tensor_t *tensor, int64_t index) {
  switch (tensor->dtype) {
    case CLEAVE_DTYPE_U8: return ((const uint8_t *)tensor->data)[index];
    case CLEAVE_DTYPE_I8: return ((const int8_t *)tensor->data)[index];
    case CLEAVE_DTYPE_U16: return ((const uint16_t *)tensor->data)[index];
    case CLEAVE_DTYPE_I16: return ((const int16_t *)tensor->data)[index];
    case CLEAVE_DTYPE_I32: return ((const int32_t *)tensor->data)[index];
    case CLEAVE_DTYPE_I64: return ((const int64_t *)tensor->data)[index];
    case CLEAVE_DTYPE_BOOL: return ((const uint8_t *)tensor->data)[index] != 0;
    case CLEAVE_DTYPE_U32: return ((const uint32_t *)tensor->data)[index];
    case CLEAVE_DTYPE_U64: return (int64_t)((const uint64_t *)tensor->data)[index];
    case CLEAVE_DTYPE_F32:
    case CLEAVE_DTYPE_F64:
    case CLEAVE_DTYPE_F16:
    case CLEAVE_DTYPE_BF16: return cpu_f64_to_i64(cpu_read_float(tensor, index));
    case CLEAVE_DTYPE_STRING:
    case CLEAVE_DTYPE_UNKNOWN: break;
  }
  return 0;
}

double cpu_read_float(const cpu_tensor_t *tensor, int64_t index) {
  switch (tensor->dtype) {
    case CLEAVE_DTYPE_F32: return (double)((const float *)tensor->data)[index];
    case CLEAVE_DTYPE_F64: return ((const double *)tensor->data)[index];
    case CLEAVE_DTYPE_F16: return (double)cleave_half_to_float(((const uint16_t *)tensor->data)[index]);
    case CLEAVE_DTYPE_BF16: return (double)cleave_bfloat_to_float(((const uint16_t *)tensor->data)[index]);
    case CLEAVE_DTYPE_U64: return (double)((const uint64_t *)tensor->data)[index];
    default: return (double)cpu_read_int(tensor, index);
  }
}

void cpu_write_float(cpu_tensor_t *tensor, int64_t index, double value) {
  void *element = (unsigned char *)tensor->data + (size_t)index * cleave_dtype_size(tensor->dtype);
  cpu_convert(CLEAVE_DTYPE_F64, &value, tensor->dtype, element, 1);
}

void cpu_parallel(const cpu_call_t *call, int64_t count, int64_t grain, cleave_parallel_fn_t body,
                  void *context) {
  if (count <= 0) {
    return;
  }
  if (call->threads <= 1 || count <= grain || call->host == NULL || call->host->parallel_for == NULL) {
    body(context, 0, count);
    return;
  }
  call->host->parallel_for(call->threads, count, grain < 1 ? 1 : grain, body, context);
}
