// SPDX-License-Identifier: Apache-2.0
// QuantizeLinear and, with DEQUANTIZES, DequantizeLinear: an element has the scale of its tensor, SCALES 0; of its index along an axis,
// 1; or of its block of `group` elements along an axis, 2, where scales differ along the other axes too. Reading and writing all
// elements bounds it.
struct arguments {
  const element *x;
  const scale_element *scales;
#if ZEROS
  const zero_element *zeros;
#endif
  target *y;
  index count;
  index axis;
  index inner;
  index group;
  index groups;
};

extern "C" __global__ void __launch_bounds__(256) cleave_kernel(const arguments args) {
  const index i = (index)blockIdx.x * 256 + threadIdx.x;
  if (i >= args.count) {
    return;
  }
#if SCALES == 0
  const index own = 0;
#else
  index outer = i;
  const index at = take_last(outer, args.inner);
  const index group = take_last(outer, args.axis) / args.group;
  const index own = SCALES == 1 ? group : (outer * args.groups + group) * args.inner + at;
#endif
#if ZEROS
  const i64 zero = (i64)args.zeros[own];
#else
  const i64 zero = 0;
#endif
#if DEQUANTIZES
  args.y[i] = to_target((exact)((i64)args.x[i] - zero) * (exact)widen_scale(args.scales[own]));
#else
  // The quotient is float, so that ties fall as on `cpu`; NaN becomes the lowest number.
  const double value = rint((double)((float)widen(args.x[i]) / (float)widen_scale(args.scales[own]))) + (double)zero;
  args.y[i] = (target)(value >= LOW ? (value <= HIGH ? value : HIGH) : LOW);
#endif
}
