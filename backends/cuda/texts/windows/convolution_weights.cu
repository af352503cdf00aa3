// SPDX-License-Identifier: Apache-2.0
// The gradient of a convolution's weights, an element in each block: the sum of x[image][channel][tap of a window] *
// y[image][output][window] over images and windows, always in the same order.
struct arguments {
  const element *x;
  const element *y;
  element *w; // [output][channel of the group][tap]
  index images;
  index channels;
  index outputs;
  index per_group;
  index group_outputs;
  WINDOW_FIELDS;
};

extern "C" __global__ void __launch_bounds__(256) cleave_kernel(const arguments args) {
  __shared__ number parts[256];
  const int thread = (int)threadIdx.x;
  index rest = (index)blockIdx.x;
  index shift[AXES];
  index places = 1;
  index pixels = 1;
#pragma unroll
  for (int d = AXES - 1; d >= 0; d--) {
    shift[d] = take_last(rest, args.window[d]) * args.dilation[d] - args.before[d];
    places *= args.out[d];
    pixels *= args.in[d];
  }
  const index output = rest / args.per_group;
  const index channel = output / args.group_outputs * args.per_group + rest - output * args.per_group;
  number sum = 0;
  for (index k = thread; k < args.images * places; k += 256) {
    const index image = k / places;
    const index window = k - image * places;
    index left = window;
    index from = 0;
    index step = 1;
    bool is_inside = true;
#pragma unroll
    for (int d = AXES - 1; d >= 0; d--) {
      const index at = take_last(left, args.out[d]) * args.stride[d] + shift[d];
      is_inside = is_inside && at >= 0 && at < args.in[d];
      from += at * step;
      step *= args.in[d];
    }
    if (is_inside) {
      sum += (number)widen(args.x[(image * args.channels + channel) * pixels + from]) *
             (number)widen(args.y[(image * args.outputs + output) * places + window]);
    }
  }
  parts[thread] = sum;
  for (int half = 128; half > 0; half /= 2) {
    __syncthreads();
    if (thread < half) {
      parts[thread] += parts[thread + half];
    }
  }
  if (thread == 0) {
    args.w[blockIdx.x] = narrow(parts[0]);
  }
}
