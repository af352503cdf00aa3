// SPDX-License-Identifier: Apache-2.0
// Poolings over AXES axes. MODE 0: the largest; 1: the mean; 2: the P-norm. Windows may hang over the border, of which the
// largest element is LOWEST. With INDICES 1 also where the largest lies in x, the first of equal ones; 2: in x with its
// spatial axes in the opposite order. Without VALUES only that. With CHANNELS_LAST channels are the last axis of both.
struct arguments {
  const element *x;
#if VALUES
  element *y;
#endif
#if INDICES
  i64 *indices;
#endif
  index count;
  index channels;
  WINDOW_FIELDS;
  index after[AXES];
};

extern "C" __global__ void __launch_bounds__(256) cleave_kernel(const arguments args) {
  const index i = (index)blockIdx.x * 256 + threadIdx.x;
  if (i >= args.count) {
    return;
  }
  index rest = i;
  const index pitch = CHANNELS_LAST ? args.channels : 1; // from one place to the next
  const index channel = CHANNELS_LAST ? take_last(rest, args.channels) : 0;
  index begin[AXES];
  index size = 1;
  index taps = 1;
#pragma unroll
  for (int d = AXES - 1; d >= 0; d--) {
    begin[d] = take_last(rest, args.out[d]) * args.stride[d] - args.before[d];
    size *= args.in[d];
    taps *= args.window[d];
  }
  const element *x = args.x + rest * size * pitch + channel;
#if MODE == 0
  index found = -1;
  number result = LOWEST;
#else
  accumulator result = 0;
  index seen = 0;
#endif
  for (index tap = 0; tap < taps; tap++) {
    index left = tap;
    index from = 0;
    index step = 1;
    bool is_inside = true;
    bool is_counted = true;
#pragma unroll
    for (int d = AXES - 1; d >= 0; d--) {
      const index at = begin[d] + take_last(left, args.window[d]) * args.dilation[d];
      is_inside = is_inside && at >= 0 && at < args.in[d];
      is_counted = is_counted && at >= -args.before[d] && at < args.in[d] + args.after[d];
      from += at * step;
      step *= args.in[d];
    }
#if MODE == 0
    if (is_inside) {
      const number value = widen(x[from * pitch]);
      if (found < 0 || value > result || value != value) {
        result = value;
        found = from;
      }
    }
#else
    seen += COUNTS_BORDER ? (is_counted ? 1 : 0) : (is_inside ? 1 : 0);
    if (is_inside) {
      const accumulator value = (accumulator)widen(x[from * pitch]);
#if MODE == 1
      result += value;
#elif P == 1
      result += fabs(value);
#elif P == 2
      result += value * value;
#else
      result += pow(fabs(value), (accumulator)P);
#endif
    }
#endif
  }
#if MODE == 1
  result = result / (accumulator)(seen > 0 ? seen : 1);
#elif MODE == 2 && P == 2
  result = sqrt(result);
#elif MODE == 2 && P != 1
  result = pow(result, (accumulator)1 / (accumulator)P);
#endif
#if INDICES == 2
  index left = found;
  index turned = 0;
#pragma unroll
  for (int d = AXES - 1; d >= 0; d--) {
    turned = turned * args.in[d] + take_last(left, args.in[d]);
  }
  found = found < 0 ? found : turned;
#endif
#if INDICES
  args.indices[i] = found < 0 ? (i64)-1 : (i64)rest * size + found;
#endif
#if VALUES
  args.y[i] = narrow((number)result);
#endif
}
