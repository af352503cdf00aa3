// SPDX-License-Identifier: Apache-2.0
// The gradient of a convolution's data, an element in each thread: x[image][channel][place] sums up what the windows that
// the element is in have of it. There may be none.
struct arguments {
  const element *y;
  const element *w; // [output][channel of the group][tap]
  element *x;
  index count;
  index channels;
  index outputs;
  index per_group;
  index group_outputs;
  WINDOW_FIELDS;
};

extern "C" __global__ void __launch_bounds__(256) cleave_kernel(const arguments args) {
  const index i = (index)blockIdx.x * 256 + threadIdx.x;
  if (i >= args.count) {
    return;
  }
  index rest = i;
  index place[AXES];
  index places = 1;
  index taps = 1;
#pragma unroll
  for (int d = AXES - 1; d >= 0; d--) {
    place[d] = take_last(rest, args.in[d]) + args.before[d];
    places *= args.out[d];
    taps *= args.window[d];
  }
  const index image = rest / args.channels;
  const index channel = rest - image * args.channels;
  const index group = channel / args.per_group;
  const index first = group * args.group_outputs;
  const element *y = args.y + (image * args.outputs + first) * places;
  const element *w = args.w + (first * args.per_group + channel - group * args.per_group) * taps;
  number sum = 0;
  for (index tap = 0; tap < taps; tap++) {
    index left = tap;
    index from = 0;
    index step = 1;
    bool is_inside = true;
#pragma unroll
    for (int d = AXES - 1; d >= 0; d--) {
      const index at = place[d] - take_last(left, args.window[d]) * args.dilation[d];
      const index window = at / args.stride[d];
      is_inside = is_inside && at >= 0 && window * args.stride[d] == at && window < args.out[d];
      from += window * step;
      step *= args.out[d];
    }
    for (index k = 0; is_inside && k < args.group_outputs; k++) {
      sum += (number)widen(y[k * places + from]) * (number)widen(w[k * args.per_group * taps + tap]);
    }
  }
  args.x[i] = narrow(sum);
}
