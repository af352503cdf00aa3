// SPDX-License-Identifier: Apache-2.0
// Cast and CastLike between all numeric types, and from strings to numbers. The dtype of the output decides.
#include <errno.h>
#include <stdlib.h>

#include "cpu/common/loop.h"
#include "kernels/vector_math.h"

static cleave_status_t prepare_cast(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  (void)state;
  cleave_dtype_t from = cpu_input_dtype(prepare, 0);
  cleave_dtype_t to = cpu_output_dtype(prepare, 0);
  bool is_plain = cpu_dtype_is_plain(from) && cpu_dtype_is_plain(to);
  bool is_text = from == CLEAVE_DTYPE_STRING && (cpu_dtype_is_plain(to) || to == CLEAVE_DTYPE_STRING);
  if (!is_plain && !is_text) {
    return cpu_fail_types(prepare, message);
  }
  return CLEAVE_OK;
}

typedef struct cast_work {
  const cpu_tensor_t *from;
  cpu_tensor_t *to;
} cast_work_t;

static void cast_range(void *context, int64_t begin, int64_t end) {
  const cast_work_t *work = context;
  size_t from_size = cleave_dtype_size(work->from->dtype);
  size_t to_size = cleave_dtype_size(work->to->dtype);
  cpu_convert(work->from->dtype, (const unsigned char *)work->from->data + (size_t)begin * from_size,
              work->to->dtype, (unsigned char *)work->to->data + (size_t)begin * to_size, end - begin);
}

/* Numbers as C reads them, "NaN" and "INF" among them; integers keep all their digits. */
static cleave_status_t cast_text(const cpu_tensor_t *from, cpu_tensor_t *to, cleave_message_t *message) {
  const char *const *texts = from->data;
  size_t size = cleave_dtype_size(to->dtype);
  for (int64_t k = 0; k < from->count; k++) {
    const char *text = texts[k] == NULL ? "" : texts[k];
    void *element = (unsigned char *)to->data + (size_t)k * size;
    char *end = NULL;
    errno = 0;
    int64_t integer = strtoll(text, &end, 10);
    bool is_integer = end != text && *end == '\0' && errno == 0;
    if (is_integer && !cpu_dtype_is_float(to->dtype)) {
      cpu_convert(CLEAVE_DTYPE_I64, &integer, to->dtype, element, 1);
      continue;
    }
    double number = strtod(text, &end);
    if (end == text || *end != '\0') {
      return kernel_fail(message, CLEAVE_ERROR_FORMAT, "'%.40s' is not a number", text);
    }
    cpu_convert(CLEAVE_DTYPE_F64, &number, to->dtype, element, 1);
  }
  return CLEAVE_OK;
}

static cleave_status_t run_cast(const cpu_call_t *call, cleave_message_t *message) {
  cast_work_t work = {.from = call->inputs[0], .to = call->outputs[0]};
  CPU_TRY(cpu_output_shape(call, 0, work.from->rank, work.from->dims, message));
  if (work.from->dtype == work.to->dtype) {
    cpu_copy(call, work.to->data, work.from->data,
             work.from->count * (int64_t)cleave_dtype_size(work.from->dtype));
    return CLEAVE_OK;
  }
  if (work.from->dtype == CLEAVE_DTYPE_STRING) {
    return cast_text(work.from, work.to, message);
  }
  cpu_parallel(call, work.from->count, CPU_WORK_GRAIN / 2, cast_range, &work);
  return CLEAVE_OK;
}

/* Elements of the same size convert in place, one after the other. */
const cpu_kernel_t cpu_kernels_cast[] = {
    CPU_KERNEL("Cast", 1, .prepare = prepare_cast, .run = run_cast, .inplace = 1),
    CPU_KERNEL("CastLike", 1, .prepare = prepare_cast, .run = run_cast, .inplace = 1),
    {0},
};
