// SPDX-License-Identifier: Apache-2.0
// The windows of images as columns: y[image][channel, tap][place]. Border is zeros.
struct arguments {
  const element *x;
  element *y;
  index count;
  index channels; // of an image in x, from one image to the next
  index used;     // of these, from where x begins
  index places;
  WINDOW_FIELDS;
};

extern "C" __global__ void __launch_bounds__(256) cleave_kernel(const arguments args) {
  const index i = (index)blockIdx.x * 256 + threadIdx.x;
  if (i >= args.count) {
    return;
  }
  index rest = i / args.places;
  index place = i - rest * args.places;
  index from = 0;
  index step = 1;
  bool is_inside = true;
#pragma unroll
  for (int d = AXES - 1; d >= 0; d--) {
    const index at = take_last(place, args.out[d]) * args.stride[d] - args.before[d] +
                     take_last(rest, args.window[d]) * args.dilation[d];
    is_inside = is_inside && at >= 0 && at < args.in[d];
    from += at * step;
    step *= args.in[d];
  }
  const index image = rest / args.used;
  const index channel = rest - image * args.used;
  element value = {};
  if (is_inside) {
    value = args.x[(image * args.channels + channel) * step + from];
  }
  args.y[i] = value;
}
