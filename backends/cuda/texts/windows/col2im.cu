// SPDX-License-Identifier: Apache-2.0
// Col2Im: y[image][channel][place] is the sum of the columns x[image][channel, tap][window] whose tap lies there, in the order of taps,
// in which `cpu` adds them; the border is dropped. Reading each column once bounds it.
struct arguments {
  const element *x;
  element *y;
  index count;
  index places; // of the windows
  WINDOW_FIELDS;
};

extern "C" __global__ void __launch_bounds__(256) cleave_kernel(const arguments args) {
  const index i = (index)blockIdx.x * 256 + threadIdx.x;
  if (i >= args.count) {
    return;
  }
  index plane = i;
  index at[AXES];
  index taps = 1;
#pragma unroll
  for (int d = AXES - 1; d >= 0; d--) {
    at[d] = take_last(plane, args.in[d]) + args.before[d];
    taps *= args.window[d];
  }
  number sum = 0;
  for (index tap = 0; tap < taps; tap++) {
    index left = tap;
    index place = 0;
    index step = 1;
    bool is_inside = true;
#pragma unroll
    for (int d = AXES - 1; d >= 0; d--) {
      const index begin = at[d] - take_last(left, args.window[d]) * args.dilation[d];
      const index window = begin / args.stride[d];
      is_inside = is_inside && begin >= 0 && window < args.out[d] && window * args.stride[d] == begin;
      place += window * step;
      step *= args.out[d];
    }
    if (is_inside) {
      sum += (number)widen(args.x[(plane * taps + tap) * args.places + place]);
    }
  }
  args.y[i] = narrow(sum);
}
