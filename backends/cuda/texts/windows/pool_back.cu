// SPDX-License-Identifier: Apache-2.0
// Gradients of poolings, an element of the data in each thread, which gathers from the windows that it is in. MODE 0: of
// the largest, of which the first of equal ones gets all, and the last NaN; 1: of the mean.
struct arguments {
  const element *dy;
  const element *x; // in mode 0
  element *dx;
  index count;
  WINDOW_FIELDS;
  index after[AXES];
};

// Of the window that begins at `begin`: which element is the largest (mode 0), or how many count (mode 1).
__device__ index look(const arguments &args, const element *x, const index *begin, index taps) {
#if MODE == 0
  number largest = 0;
  index found = -1;
#else
  index found = 0;
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
      const number value = widen(x[from]);
      if (found < 0 || value > largest || value != value) {
        largest = value;
        found = from;
      }
    }
#else
    found += (COUNTS_BORDER ? is_counted : is_inside) ? 1 : 0;
#endif
  }
  return found;
}

extern "C" __global__ void __launch_bounds__(256) cleave_kernel(const arguments args) {
  const index i = (index)blockIdx.x * 256 + threadIdx.x;
  if (i >= args.count) {
    return;
  }
  index rest = i;
  index place[AXES];
  index pixels = 1;
  index places = 1;
  index taps = 1;
#pragma unroll
  for (int d = AXES - 1; d >= 0; d--) {
    place[d] = take_last(rest, args.in[d]);
    pixels *= args.in[d];
    places *= args.out[d];
    taps *= args.window[d];
  }
  const element *dy = args.dy + rest * places;
  const element *x = args.x + rest * pixels;
  number sum = 0;
  for (index tap = taps - 1; tap >= 0; tap--) { // windows in their order
    index left = tap;
    index begin[AXES];
    index from = 0;
    index step = 1;
    bool is_inside = true;
#pragma unroll
    for (int d = AXES - 1; d >= 0; d--) {
      const index at = place[d] + args.before[d] - take_last(left, args.window[d]) * args.dilation[d];
      const index window = at / args.stride[d];
      is_inside = is_inside && at >= 0 && window * args.stride[d] == at && window < args.out[d];
      begin[d] = at - args.before[d];
      from += window * step;
      step *= args.out[d];
    }
    if (is_inside) {
      const index found = look(args, x, begin, taps);
#if MODE == 0
      sum += found == i - rest * pixels ? (number)widen(dy[from]) : (number)0;
#else
      sum += (number)widen(dy[from]) / (number)found;
#endif
    }
  }
  args.dx[i] = narrow(sum);
}
