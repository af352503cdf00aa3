// SPDX-License-Identifier: Apache-2.0
// What a kernel finds when it is compiled for this machine: CUDA's names, on top of the services of grid.c. There are no
// includes, so that a text that needs any fails here as it does in NVRTC.
typedef __SIZE_TYPE__ size_t;

struct dim3 {
  unsigned x, y, z;
};
struct uint3 {
  unsigned x, y, z;
};

// The same as in grid.c.
struct grid_thread {
  dim3 thread, block, block_size, grid_size;
  alignas(16) unsigned char slot[32];
};
struct grid_services {
  grid_thread *(*now)();
  void (*barrier)();
  void (*meet)(unsigned mask);
  const unsigned char *(*slot_of)(unsigned lane);
};

#define GRID_EXPORT extern "C" __attribute__((visibility("default")))
GRID_EXPORT const grid_services *grid_bound;
const grid_services *grid_bound;

#define __global__ __attribute__((unused))
#define __device__
#define __host__
#define __constant__ static
#define __shared__ static
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __align__(n) alignas(n)

#define threadIdx (grid_bound->now()->thread)
#define blockIdx (grid_bound->now()->block)
#define blockDim (grid_bound->now()->block_size)
#define gridDim (grid_bound->now()->grid_size)
enum { warpSize = 32 };

inline void __syncthreads() {
  grid_bound->barrier();
}
inline void __syncwarp(unsigned mask = 0xffffffffu) {
  grid_bound->meet(mask);
}
inline void __threadfence() {
}

// ---- shuffles: everyone shows a value, then everyone reads one ----

template <class T> T grid_shuffle(unsigned mask, T value, unsigned from) {
  grid_thread *self = grid_bound->now();
  __builtin_memcpy(self->slot, &value, sizeof value);
  grid_bound->meet(mask);
  T other;
  __builtin_memcpy(&other, grid_bound->slot_of(from), sizeof other);
  grid_bound->meet(mask);
  return other;
}
inline unsigned grid_lane() {
  const grid_thread *self = grid_bound->now();
  return (self->thread.x + self->block_size.x * (self->thread.y + self->block_size.y * self->thread.z)) % 32;
}
template <class T> T __shfl_xor_sync(unsigned mask, T value, int distance, int width = 32) {
  const unsigned from = grid_lane() ^ (unsigned)distance;
  return grid_shuffle(mask, value, from / (unsigned)width > grid_lane() / (unsigned)width ? grid_lane() : from);
}
template <class T> T __shfl_sync(unsigned mask, T value, int from, int width = 32) {
  return grid_shuffle(mask, value, grid_lane() / (unsigned)width * (unsigned)width + (unsigned)from % (unsigned)width);
}
template <class T> T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = 32) {
  const unsigned from = grid_lane() + distance;
  return grid_shuffle(mask, value, from / (unsigned)width == grid_lane() / (unsigned)width ? from : grid_lane());
}
template <class T> T __shfl_up_sync(unsigned mask, T value, unsigned distance, int width = 32) {
  const bool is_inside = grid_lane() % (unsigned)width >= distance;
  return grid_shuffle(mask, value, is_inside ? grid_lane() - distance : grid_lane());
}

// ---- tensor cores: warp-wide products, with the layouts of fragments of the PTX ISA ----

struct grid_fragments {
  unsigned a[4], b[2];
};

// Element `i` of a fragment's registers, each of which has two of 16 bits.
inline unsigned grid_half_of(const unsigned *registers, unsigned i) {
  return registers[i / 2] >> i % 2 * 16 & 0xffffu;
}
inline float grid_from_f16(unsigned half) {
  const unsigned exponent = half >> 10 & 31u, mantissa = half & 1023u;
  float value = (float)mantissa * 0x1p-24f; // subnormal
  if (exponent == 31u) {
    value = mantissa != 0 ? __builtin_nanf("") : __builtin_inff();
  } else if (exponent > 0) {
    value = (float)(1024u + mantissa) * 0x1p-25f * (float)(1u << exponent);
  }
  return (half & 0x8000u) != 0 ? -value : value;
}
inline float grid_from_bf16(unsigned bits) {
  bits <<= 16;
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}
inline float grid_from_tf32(unsigned bits) {
  bits &= 0xffffe000u; // the others are not read
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}
// To nearest, ties away from zero.
inline unsigned grid_round_tf32(float x) {
  unsigned bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return (bits & 0x7f800000u) == 0x7f800000u ? bits : (bits + 0x1000u) & 0xffffe000u;
}

// mma.m16n8k16 of 16 bits: element i of A is in row lane / 4 (i = 0, 1, 4, 5) or 8 further down, and in column lane % 4 * 2 + i % 2,
// from i = 4 on 8 further right; of B in row lane % 4 * 2 + i % 2, from i = 2 on 8 further down, and in column lane / 4; of D in
// row lane / 4, from i = 2 on 8 further down, and in column lane % 4 * 2 + i % 2.
template <float (*WIDEN)(unsigned)> void grid_mma_16(float *d, const unsigned *a, unsigned b0, unsigned b1) {
  grid_thread *self = grid_bound->now();
  const grid_fragments own = {{a[0], a[1], a[2], a[3]}, {b0, b1}};
  __builtin_memcpy(self->slot, &own, sizeof own);
  grid_bound->meet(0xffffffffu);
  for (unsigned i = 0; i < 4; i++) {
    const unsigned row = grid_lane() / 4 + (i < 2 ? 0u : 8u), column = grid_lane() % 4 * 2 + i % 2;
    for (unsigned k = 0; k < 16; k++) {
      const grid_fragments *left = (const grid_fragments *)grid_bound->slot_of(row % 8 * 4 + k % 8 / 2);
      const grid_fragments *right = (const grid_fragments *)grid_bound->slot_of(column * 4 + k % 8 / 2);
      const float x = WIDEN(grid_half_of(left->a, k % 2 + (row < 8 ? 0u : 2u) + (k < 8 ? 0u : 4u)));
      const float y = WIDEN(grid_half_of(right->b, k % 2 + (k < 8 ? 0u : 2u)));
      d[i] += x * y;
    }
  }
  grid_bound->meet(0xffffffffu);
}
inline void grid_mma_f16(float *d, const unsigned *a, unsigned b0, unsigned b1) {
  grid_mma_16<grid_from_f16>(d, a, b0, b1);
}
inline void grid_mma_bf16(float *d, const unsigned *a, unsigned b0, unsigned b1) {
  grid_mma_16<grid_from_bf16>(d, a, b0, b1);
}
// mma.m16n8k8 of TF32: element i of A is in row lane / 4, with i odd 8 further down, and in column lane % 4, from i = 2 on 4 further
// right; of B in row lane % 4, with i = 1 4 further down, and in column lane / 4; D is as above.
inline void grid_mma_tf32(float *d, const unsigned *a, unsigned b0, unsigned b1) {
  grid_thread *self = grid_bound->now();
  const grid_fragments own = {{a[0], a[1], a[2], a[3]}, {b0, b1}};
  __builtin_memcpy(self->slot, &own, sizeof own);
  grid_bound->meet(0xffffffffu);
  for (unsigned i = 0; i < 4; i++) {
    const unsigned row = grid_lane() / 4 + (i < 2 ? 0u : 8u), column = grid_lane() % 4 * 2 + i % 2;
    for (unsigned k = 0; k < 8; k++) {
      const grid_fragments *left = (const grid_fragments *)grid_bound->slot_of(row % 8 * 4 + k % 4);
      const grid_fragments *right = (const grid_fragments *)grid_bound->slot_of(column * 4 + k % 4);
      d[i] += grid_from_tf32(left->a[(row < 8 ? 0 : 1) + (k < 4 ? 0 : 2)]) * grid_from_tf32(right->b[k / 4]);
    }
  }
  grid_bound->meet(0xffffffffu);
}
// ldmatrix.x4 of matrices of 8 x 8 elements of 16 bits: lane 8 * m + r has the address of row r of matrix m; of each matrix a lane
// gets the elements 2 * (lane % 4) and the next one of row lane / 4, or of column lane / 4 if it is turned.
inline void grid_ldmatrix(unsigned *to, const void *row, bool is_turned) {
  grid_thread *self = grid_bound->now();
  __builtin_memcpy(self->slot, &row, sizeof row);
  grid_bound->meet(0xffffffffu);
  const unsigned line = grid_lane() / 4, first = grid_lane() % 4 * 2;
  for (unsigned m = 0; m < 4; m++) {
    to[m] = 0;
    for (unsigned n = 0; n < 2; n++) {
      const unsigned short *from;
      __builtin_memcpy(&from, grid_bound->slot_of(8 * m + (is_turned ? first + n : line)), sizeof from);
      to[m] |= (unsigned)from[is_turned ? line : first + n] << 16 * n;
    }
  }
  grid_bound->meet(0xffffffffu);
}

// ---- atomics: threads of a grid run one at a time ----

template <class T, class V> T atomicAdd(T *at, V value) {
  const T before = *at;
  *at = (T)(before + value);
  return before;
}
template <class T, class V> T atomicMax(T *at, V value) {
  const T before = *at;
  *at = before < (T)value ? (T)value : before;
  return before;
}
template <class T, class V> T atomicMin(T *at, V value) {
  const T before = *at;
  *at = (T)value < before ? (T)value : before;
  return before;
}
template <class T, class V> T atomicExch(T *at, V value) {
  const T before = *at;
  *at = (T)value;
  return before;
}
template <class T> T atomicCAS(T *at, T expected, T value) {
  const T before = *at;
  *at = before == expected ? value : before;
  return before;
}

// ---- numbers ----

inline float __int_as_float(int bits) {
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}
inline int __float_as_int(float value) {
  int bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline float __uint_as_float(unsigned bits) {
  return __int_as_float((int)bits);
}
inline unsigned __float_as_uint(float value) {
  return (unsigned)__float_as_int(value);
}
inline double __longlong_as_double(long long bits) {
  double value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}
inline long long __double_as_longlong(double value) {
  long long bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
}

#define GRID_UNARY(name)                         \
  extern "C" double name(double) noexcept;       \
  extern "C" float name##f(float) noexcept;      \
  inline float name(float x) { return name##f(x); }
GRID_UNARY(exp) GRID_UNARY(exp2) GRID_UNARY(expm1) GRID_UNARY(log) GRID_UNARY(log2) GRID_UNARY(log10) GRID_UNARY(log1p)
GRID_UNARY(sqrt) GRID_UNARY(cbrt) GRID_UNARY(floor) GRID_UNARY(ceil) GRID_UNARY(trunc) GRID_UNARY(rint)
GRID_UNARY(round) GRID_UNARY(sin) GRID_UNARY(cos) GRID_UNARY(tan) GRID_UNARY(asin) GRID_UNARY(acos) GRID_UNARY(atan)
GRID_UNARY(sinh) GRID_UNARY(cosh) GRID_UNARY(tanh) GRID_UNARY(asinh) GRID_UNARY(acosh) GRID_UNARY(atanh)
GRID_UNARY(erf) GRID_UNARY(erfc) GRID_UNARY(fabs)
#define GRID_BINARY(name)                                  \
  extern "C" double name(double, double) noexcept;         \
  extern "C" float name##f(float, float) noexcept;         \
  inline float name(float x, float y) { return name##f(x, y); }
GRID_BINARY(pow) GRID_BINARY(fmin) GRID_BINARY(fmax) GRID_BINARY(fmod) GRID_BINARY(copysign) GRID_BINARY(atan2)
extern "C" double fma(double, double, double) noexcept;
extern "C" float fmaf(float, float, float) noexcept;
inline double __dmul_rn(double x, double y) {
  return x * y; // never fused with a sum; here nothing is
}

inline double normcdf(double x) {
  return 0.5 * erfc(x * -0.70710678118654752);
}
inline float normcdff(float x) {
  return (float)normcdf((double)x);
}
inline float rsqrtf(float x) {
  return 1.0f / sqrtf(x);
}
inline double rsqrt(double x) {
  return 1.0 / sqrt(x);
}
inline float __expf(float x) {
  return expf(x);
}
inline float __logf(float x) {
  return logf(x);
}
inline float __fdividef(float x, float y) {
  return x / y;
}
template <class T> T __ldg(const T *at) {
  return *at;
}
template <class T> T min(T x, T y) {
  return y < x ? y : x;
}
template <class T> T max(T x, T y) {
  return x < y ? y : x;
}

// ---- launches: pointers to the arguments become the arguments ----

template <class... A> struct grid_caller {
  template <class F, class... Done> static void call(F *kernel, void **, Done &...done) {
    kernel(done...);
  }
};
template <class A, class... Rest> struct grid_caller<A, Rest...> {
  template <class F, class... Done> static void call(F *kernel, void **arguments, Done &...done) {
    grid_caller<Rest...>::call(kernel, arguments + 1, done..., *(A *)*arguments);
  }
};
template <class T> struct grid_plain {
  typedef T type;
};
template <class T> struct grid_plain<const T> {
  typedef T type;
};
template <class... A> void grid_call(void (*kernel)(A...), void **arguments) {
  grid_caller<typename grid_plain<A>::type...>::call(kernel, arguments);
}
template <class... A> unsigned long grid_parameter(void (*)(A...), unsigned index) {
  const unsigned long sizes[] = {sizeof(A)..., 0};
  return index < sizeof...(A) ? sizes[index] : 0;
}
