// SPDX-License-Identifier: Apache-2.0
// y = OPERATION of two numbers a and b, which programs of kernels/ do not have, with NumPy's broadcasting. RANK is at least 1.
struct arguments {
  const element *x;
  const other *z;
  element *y;
  index count;
  index dims[RANK];
  index x_strides[RANK];
  index z_strides[RANK];
};

// Of integers the smallest one divided by -1 wraps, and a division by zero, which `cpu` refuses, gives 0.
template <class T> __device__ T divide(T a, T b) {
  const T minus = (T)-1;
  return b == 0 ? (T)0 : minus < 0 && b == minus ? (T)(0 - (u64)a) : (T)(a / b);
}

template <class T> __device__ T remainder_of(T a, T b) {
  const T minus = (T)-1;
  return b == 0 || (minus < 0 && b == minus) ? (T)0 : (T)(a % b);
}
__device__ float remainder_of(float a, float b) {
  return fmodf(a, b);
}
__device__ double remainder_of(double a, double b) {
  return fmod(a, b);
}

// With the sign of the divisor.
template <class T> __device__ T modulo(T a, T b) {
  const T r = remainder_of(a, b);
  return r != 0 && (r < 0) != (b < 0) ? (T)(r + b) : r;
}

template <class T> __device__ T shift_left(T a, T b) {
  return b >= 8 * sizeof(T) ? (T)0 : (T)(a << b);
}

template <class T> __device__ T shift_right(T a, T b) {
  return b >= 8 * sizeof(T) ? (T)0 : (T)(a >> b);
}

// By squaring; a negative exponent gives what 1 / a^|b| truncates to.
__device__ i64 power(i64 a, i64 b) {
  if (b < 0) {
    return a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;
  }
  u64 result = 1;
  u64 factor = (u64)a;
  for (u64 rest = (u64)b; rest != 0; rest >>= 1) {
    result = (rest & 1) != 0 ? result * factor : result;
    factor *= factor;
  }
  return (i64)result;
}

extern "C" __global__ void __launch_bounds__(256) cleave_kernel(const arguments args) {
  const index i = (index)blockIdx.x * 256 + threadIdx.x;
  if (i >= args.count) {
    return;
  }
  index rest = i;
  index x = 0;
  index z = 0;
#pragma unroll
  for (int d = RANK - 1; d >= 0; d--) {
    const index at = take_last(rest, args.dims[d]);
    x += at * args.x_strides[d];
    z += at * args.z_strides[d];
  }
  const number a = (number)widen(args.x[x]);
  const operand b = (operand)widen_other(args.z[z]);
  args.y[i] = narrow((number)OPERATION);
}
