// SPDX-License-Identifier: Apache-2.0
// Convolutions of few channels per group: an output per thread.
struct arguments {
  const element *x;
  const element *w;
  element *y;
  index count;
  index channels;     // of an image
  index outputs;      // channels of a result
  index per_group;    // channels of an image that an output sees
  index group_outputs;
  WINDOW_FIELDS;
};

extern "C" __global__ void __launch_bounds__(256) cleave_kernel(const arguments args) {
  const index i = (index)blockIdx.x * 256 + threadIdx.x;
  if (i >= args.count) {
    return;
  }
  index rest = i;
  index begin[AXES];
  index size = 1;
  index taps = 1;
#pragma unroll
  for (int d = AXES - 1; d >= 0; d--) {
    begin[d] = take_last(rest, args.out[d]) * args.stride[d] - args.before[d];
    size *= args.in[d];
    taps *= args.window[d];
  }
  const index image = rest / args.outputs;
  const index output = rest - image * args.outputs;
  const element *x = args.x + (image * args.channels + output / args.group_outputs * args.per_group) * size;
  const element *w = args.w + output * args.per_group * taps;
  number sum = 0;
  for (index tap = 0; tap < taps; tap++) {
    index left = tap;
    index from = 0;
    index step = 1;
    bool is_inside = true;
#pragma unroll
    for (int d = AXES - 1; d >= 0; d--) {
      const index at = begin[d] + take_last(left, args.window[d]) * args.dilation[d];
      is_inside = is_inside && at >= 0 && at < args.in[d];
      from += at * step;
      step *= args.in[d];
    }
    if (is_inside) {
      for (index c = 0; c < args.per_group; c++) {
        sum += widen(x[c * size + from]) * widen(w[c * taps + tap]);
      }
    }
  }
  args.y[i] = narrow(sum);
}
