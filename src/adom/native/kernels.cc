// The sums that a round spends its time on, each reading its data once:
//
//   logistic_dense, logistic_sparse: the gradient of the mean logistic loss at every node;
//   gossip: A v for a sparse matrix A given by the neighbours of every node;
//   distances: the error of a record, and how far the nodes are apart.
//
// They are called by XLA inside its compiled loop (adom.native registers them). A leading axis, if there is one,
// is a batch of settings: the loop over it is innermost, so that all settings share one pass over the data.
// Results do not depend on the number of threads: every row is summed by one thread in one order.
//
// One compilation is for numbers of one type, float64 or, with ADOM_FLOAT32, float32: half the time to wait for.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <memory>
#include <numeric>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "newton.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

#define INLINE inline __attribute__((always_inline))

namespace {

#ifdef ADOM_FLOAT32
using Number = float;
constexpr ffi::DataType kNumber = ffi::F32;
#else
using Number = double;
constexpr ffi::DataType kNumber = ffi::F64;
#endif

// ---------------------------------------------------------------- vectors
// One register of the machine. Longer vectors would do as well, but compilers keep them in memory.
#if defined(__AVX512F__)
constexpr int kBytes = 64, kRegisters = 32;
#elif defined(__AVX2__)
constexpr int kBytes = 32, kRegisters = 16;
#else
constexpr int kBytes = 16, kRegisters = 16;
#endif
template <typename T>
struct Lanes;
template <>
struct Lanes<double> {
  typedef double Type __attribute__((vector_size(kBytes)));
  typedef int64_t Whole __attribute__((vector_size(kBytes)));
};
template <>
struct Lanes<float> {
  typedef float Type __attribute__((vector_size(kBytes)));
  typedef int32_t Whole __attribute__((vector_size(kBytes)));
};

template <typename T>
using Vec = typename Lanes<T>::Type;
template <typename T>
constexpr int kWidth = kBytes / sizeof(T);

template <typename T>
inline Vec<T> Load(const T* p) {
  Vec<T> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

template <typename T>
inline void Store(T* p, Vec<T> v) {
  std::memcpy(p, &v, sizeof v);
}

// All bits set in the first `count` lanes.
template <typename T>
inline typename Lanes<T>::Whole FirstLanes(int count) {
  typename Lanes<T>::Whole lane;
  for (int i = 0; i < kWidth<T>; ++i) lane[i] = i;
  return lane < count;
}

// The first `count` lanes; the others are zero and their memory is not touched.
template <typename T>
inline Vec<T> LoadFirst(const T* p, int count) {
#ifdef __AVX512F__
  if constexpr (sizeof(T) == 8)
    return (Vec<T>)_mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << count) - 1), p);
  else
    return (Vec<T>)_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1), p);
#elif defined(__AVX2__)
  if constexpr (sizeof(T) == 8)
    return (Vec<T>)_mm256_maskload_pd(p, (__m256i)FirstLanes<T>(count));
  else
    return (Vec<T>)_mm256_maskload_ps(p, (__m256i)FirstLanes<T>(count));
#else
  Vec<T> v = {};
  for (int i = 0; i < count; ++i) v[i] = p[i];
  return v;
#endif
}

// The last `count` lanes of a vector in memory; the others are zero.
template <typename T>
inline Vec<T> LoadLast(const T* p, int count) {
  constexpr int w = kWidth<T>;
#ifdef __AVX512F__
  if constexpr (sizeof(T) == 8)
    return (Vec<T>)_mm512_maskz_loadu_pd(static_cast<__mmask8>(0xffu << (w - count)), p);
  else
    return (Vec<T>)_mm512_maskz_loadu_ps(static_cast<__mmask16>(0xffffu << (w - count)), p);
#else
  return FirstLanes<T>(w - count) ? Vec<T>{} : Load(p);
#endif
}

template <typename T>
inline void StoreFirst(T* p, Vec<T> v, int count) {
#ifdef __AVX512F__
  if constexpr (sizeof(T) == 8)
    _mm512_mask_storeu_pd(p, static_cast<__mmask8>((1u << count) - 1), (__m512d)v);
  else
    _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << count) - 1), (__m512)v);
#elif defined(__AVX2__)
  if constexpr (sizeof(T) == 8)
    _mm256_maskstore_pd(p, (__m256i)FirstLanes<T>(count), (__m256d)v);
  else
    _mm256_maskstore_ps(p, (__m256i)FirstLanes<T>(count), (__m256)v);
#else
  for (int i = 0; i < count; ++i) p[i] = v[i];
#endif
}

// t, or the nearest number of at most that size; NaN stays NaN.
template <typename T>
inline Vec<T> Clamp(Vec<T> t, T most) {
#ifdef __AVX512F__
  if constexpr (sizeof(T) == 8)
    return (Vec<T>)_mm512_max_pd(_mm512_set1_pd(-most), _mm512_min_pd(_mm512_set1_pd(most), (__m512d)t));
  else
    return (Vec<T>)_mm512_max_ps(_mm512_set1_ps(-most), _mm512_min_ps(_mm512_set1_ps(most), (__m512)t));
#else
  const Vec<T> limit = Vec<T>{} + most;
  t = t > limit ? limit : t;
  return t < -limit ? -limit : t;
#endif
}

// Lanes of a (from 0 on) and of b (from kWidth on), in the order given.
template <typename T, int... kLane>
inline Vec<T> Pick(Vec<T> a, Vec<T> b) {
#ifdef __clang__
  return __builtin_shufflevector(a, b, kLane...);
#else
  return __builtin_shuffle(a, b, typename Lanes<T>::Whole{kLane...});
#endif
}

// Sums of neighbours, `kStep` lanes apart: those of a in the lanes whose number lacks that bit, those of b in the others.
template <typename T, int kStep, int... kLane>
inline Vec<T> Fold(Vec<T> a, Vec<T> b, std::integer_sequence<int, kLane...>) {
  constexpr int w = kWidth<T>;
  return Pick<T, (kLane & kStep ? w + kLane : kLane)...>(a, b) +
         Pick<T, (kLane & kStep ? w + kLane - kStep : kLane + kStep)...>(a, b);
}

// Sums of the lanes of as many vectors as a vector has lanes, given one after the other as number j = 0, 1, ...: lane j
// of what the last call returns is the sum of vector j. Few are held at a time, since pairs are folded at once.
template <typename T>
struct Sums {
  static constexpr std::make_integer_sequence<int, kWidth<T>> kLanes{};
  Vec<T> held[4];

  INLINE Vec<T> Take(int j, Vec<T> v) {
    if (j % 2 == 1) v = Fold<T, 1>(held[0], v, kLanes);
    if constexpr (kWidth<T> >= 4)
      if (j % 4 == 3) v = Fold<T, 2>(held[1], v, kLanes);
    if constexpr (kWidth<T> >= 8)
      if (j % 8 == 7) v = Fold<T, 4>(held[2], v, kLanes);
    if constexpr (kWidth<T> >= 16)
      if (j == 15) v = Fold<T, 8>(held[3], v, kLanes);
    held[j % 2 == 0 ? 0 : j % 4 == 1 ? 1 : j % 8 == 3 ? 2 : 3] = v;
    return v;
  }
};

// 1 / (1 + e^t). With e^r = (q + p) / (q - p), the rational approximation of the Cephes library (r is t less the
// nearest multiple n of log 2), this is (q - p) / (q - p + 2^n (q + p)): one division, no overflow, NaN stays NaN.
INLINE Vec<double> Complement(Vec<double> t) {
  typedef Vec<double> V;
  typedef Lanes<double>::Whole I;
  t = Clamp(t, 690.0);
  const V shift = V{} + 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to a whole number
  V n = t * 1.4426950408889634 + shift;
  I exponent = (I)n << 52;
  n -= shift;
  V r = t - n * 6.93145751953125e-1;
  r = r - n * 1.42860682030941723212e-6;
  V rr = r * r;
  V p = r * ((1.26177193074810590878e-4 * rr + 3.02994407707441961300e-2) * rr + 9.99999999999999999910e-1);
  V q = ((3.00198505138664455042e-6 * rr + 2.52448340349684104192e-3) * rr + 2.27265548208155028766e-1) * rr + 2.0;
  V low = q - p;
  V high = q + p;  // between 1 and 4: its exponent has room for any n
  V scaled = (V)((I)high + exponent);
  return low / (low + scaled);
}

INLINE Vec<float> Complement(Vec<float> t) {
  typedef Vec<float> V;
  typedef Lanes<float>::Whole I;
  t = Clamp(t, 86.0f);
  const V shift = V{} + 12582912.0f;  // 1.5 * 2^23
  V n = t * 1.44269504088896341f + shift;
  I exponent = (I)n << 23;
  n -= shift;
  V r = t - n * 0.693359375f;
  r = r - n * -2.12194440e-4f;
  V e = ((((1.9875691500e-4f * r + 1.3981999507e-3f) * r + 8.3334519073e-3f) * r + 4.1665795894e-2f) * r +
         1.6666665459e-1f) * r + 5.0000001201e-1f;
  e = e * r * r + r + 1.0f;
  V scaled = (V)((I)e + exponent);
  return 1.0f / (1.0f + scaled);
}

// ---------------------------------------------------------------- the gradient at one node, dense
constexpr int kBlock = 32;  // samples, at most, after whose margins the gradient is summed
constexpr int64_t kBlockBytes = 13 << 10;  // of their rows, so that these and the next ones stay in the first cache
constexpr int kTile = 16;   // vectors of columns at a time: as many as the registers hold

constexpr int kStream = 14; // vectors of the widest rows whose x and gradient the registers hold together
constexpr int kNarrow = 7;  // vectors of a row of which three blocks are at home in the first cache

constexpr int kSoon = 24;   // links ahead of which a row is asked for
constexpr int64_t kNear = 1 << 19;  // bytes of rows that the second cache holds: there is no need to ask ahead

// Columns of N vectors' width, `rest` lanes of the last one. N is known to the compiler: no loop over columns is left.
template <typename T, int N>
struct Tile {
  static constexpr int w = kWidth<T>;

  static inline Vec<T> At(const T* row, int i, int rest) {
    return i < N - 1 ? Load(row + i * w) : LoadFirst(row + i * w, rest);
  }

  // The product of a row with x, by lanes.
  template <bool kWhole>
  static INLINE Vec<T> Product(const T* row, const Vec<T>* point, int rest) {
    Vec<T> sum[2];  // two, so that neither waits long
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i) {
      const Vec<T> term = (kWhole ? Load(row + i * w) : At(row, i, rest)) * point[i];
      sum[i % 2] = i < 2 ? term : sum[i % 2] + term;
    }
    return N > 1 ? sum[0] + sum[1] : sum[0];
  }

  // margin[j] += row j times x. Rows are gone through one after the other, as the memory likes it.
  template <bool kWhole>
  static void AddMargins(const T* rows, const T* x, T* margin, int count, int64_t stride, int rest) {
    Vec<T> point[N];
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i) point[i] = At(x, i, rest);
    for (int first = 0; first < count; first += w) {
      Sums<T> sums;
      Vec<T> margins;
#pragma GCC unroll 16
      for (int j = 0; j < w; ++j)
        margins = sums.Take(j, Product<kWhole>(rows + std::min(first + j, count - 1) * stride, point, rest));
      Store(margin + first, Load(margin + first) + margins);  // `margin` has room for whole vectors
    }
  }

  // out += sum of slope[j] * row j; on the way, ask for the rows that come `ahead` later.
  template <bool kWhole>
  static void AddRows(const T* rows, const T* slope, T* out, int count, int64_t stride, int rest, int ahead) {
    Vec<T> sum[N];
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i) sum[i] = At(out, i, rest);
    for (int j = 0; j < count; ++j) {
      const T* row = rows + j * stride;
      if (ahead) {
#pragma GCC unroll 16
        for (int i = 0; i < N; ++i) __builtin_prefetch(row + ahead * stride + i * w);
      }
#pragma GCC unroll 16
      for (int i = 0; i < N; ++i) sum[i] += slope[j] * (kWhole ? Load(row + i * w) : At(row, i, rest));
    }
#pragma GCC unroll 16
    for (int i = 0; i < N - 1; ++i) Store(out + i * w, sum[i]);
    StoreFirst(out + (N - 1) * w, sum[N - 1], rest);
  }

  // out = sum * own + sum over links of weight[k] * (row sender[k] - own); on the way, ask for the rows that will be
  // needed soon, those of the links before `last`, which lie anywhere in memory.
  template <bool kWhole>
  static void Gather(const T* rows, const int32_t* sender, const T* weight, int64_t begin, int64_t end, int64_t last,
                     T row_sum, const T* own, T* out, int64_t stride, int rest) {
    Vec<T> here[N], sum[N];
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i) here[i] = At(own, i, rest), sum[i] = row_sum * here[i];
    for (int64_t k = begin; k < end; ++k) {
      const T* row = rows + sender[k] * stride;
      if (k + kSoon < last) {
        const T* soon = rows + sender[k + kSoon] * stride;
#pragma GCC unroll 16
        for (int i = 0; i < N; ++i) __builtin_prefetch(soon + i * w);
      }
#pragma GCC unroll 16
      for (int i = 0; i < N; ++i) sum[i] += weight[k] * ((kWhole ? Load(row + i * w) : At(row, i, rest)) - here[i]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < N - 1; ++i) Store(out + i * w, sum[i]);
    StoreFirst(out + (N - 1) * w, sum[N - 1], rest);
  }
};

// body(N, first column, lanes of the last vector) for tiles of about the same width that cover d columns.
template <typename T, typename Body>
inline void Tiles(int64_t d, const Body& body) {
  constexpr int w = kWidth<T>;
  for (int64_t c = 0; c < d;) {
    const int64_t vectors = (d - c + w - 1) / w, tiles = (vectors + kTile - 1) / kTile, width = vectors / tiles;
    body(static_cast<int>(width), c, static_cast<int>(std::min<int64_t>(w, d - c - (width - 1) * w)));
    c += width * w;
  }
}

// body with N as a constant of the compiler's.
template <typename Body>
inline void WithWidth(int width, const Body& body) {
  switch (width) {
    case 16: return body(std::integral_constant<int, 16>());
    case 15: return body(std::integral_constant<int, 15>());
    case 14: return body(std::integral_constant<int, 14>());
    case 13: return body(std::integral_constant<int, 13>());
    case 12: return body(std::integral_constant<int, 12>());
    case 11: return body(std::integral_constant<int, 11>());
    case 10: return body(std::integral_constant<int, 10>());
    case 9: return body(std::integral_constant<int, 9>());
    case 8: return body(std::integral_constant<int, 8>());
    case 7: return body(std::integral_constant<int, 7>());
    case 6: return body(std::integral_constant<int, 6>());
    case 5: return body(std::integral_constant<int, 5>());
    case 4: return body(std::integral_constant<int, 4>());
    case 3: return body(std::integral_constant<int, 3>());
    case 2: return body(std::integral_constant<int, 2>());
    default: return body(std::integral_constant<int, 1>());
  }
}

// The gradients of some nodes whose rows fit in one tile. A block is as many samples as a vector has lanes. Three blocks
// are under way at a time: while one's margins are summed, the next one's slopes are found, and the rows of a third, still
// in the first cache, are added up, so that no sum waits for another. The last block of a node ends with its last
// sample; those that it shares with the block before get no weight.
template <typename T, int N, bool kWhole>
void DenseStream(const T* rows, const T* weights, const T* x, T* out, int64_t nodes, int64_t m, int rest) {
  constexpr int w = kWidth<T>, kKept = 4;
  const int64_t d = (N - 1) * w + (kWhole ? w : rest);
  constexpr int kBehind = N <= kNarrow ? 2 : 1;  // blocks from margins to rows: as many as the first cache likes
  struct Block {
    const T *rows, *weights;
    T* out;  // where the gradient goes after the last block of a node
    int own;  // samples that the block before did not have
  };
  Block block[kKept];
  std::fill(block, block + kKept, Block{rows, weights, nullptr, 0});
  alignas(kBytes) T slope[kKept][w] = {};
  Vec<T> point[N], sum[N] = {}, margin = {};
  const int64_t blocks = nodes * ((m + w - 1) / w);
  for (int64_t k = 0, node = 0, first = 0; k < blocks + kBehind; ++k) {
    Block& ahead = block[k % kKept];
    const Block &middle = block[(k + kKept - 1) % kKept], &behind = block[(k + kKept - kBehind) % kKept];
    if (k < blocks) {
      if (first == 0) {
#pragma GCC unroll 16
        for (int i = 0; i < N; ++i) point[i] = Tile<T, N>::At(x + node * d, i, rest);
      }
      const int64_t from = node * m + std::min(first, m - w);
      const bool last = first + w >= m;
      ahead = {rows + from * d, weights + from, last ? out + node * d : nullptr,
               static_cast<int>(std::min<int64_t>(w, m - first))};
      first = last ? 0 : first + w;
      node += last;
    } else {
      ahead = {middle.rows, middle.weights, nullptr, 0};
    }
    Store(slope[(k + kKept - 1) % kKept], -LoadLast(middle.weights, middle.own) * Complement(margin));
    const T *factor = slope[(k + kKept - kBehind) % kKept], *next = ahead.rows, *past = behind.rows;
    Sums<T> sums;
#pragma GCC unroll 16
    for (int j = 0; j < w; ++j) {
      margin = sums.Take(j, Tile<T, N>::template Product<kWhole>(next + j * d, point, rest));
      std::atomic_signal_fence(std::memory_order_seq_cst);  // rows are to be read one after the other
      const T* row = past + j * d;
#pragma GCC unroll 16
      for (int i = 0; i < N; ++i)
        sum[i] += factor[j] * (kWhole ? Load(row + i * w) : Tile<T, N>::At(row, i, rest));
      std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    if (behind.out != nullptr) {
#pragma GCC unroll 16
      for (int i = 0; i < N - 1; ++i) Store(behind.out + i * w, sum[i]), sum[i] = Vec<T>{};
      StoreFirst(behind.out + (N - 1) * w, sum[N - 1], rest), sum[N - 1] = Vec<T>{};
    }
  }
}

// out = sum over the samples of slope(sample, samples left, margin) * row, in vectors.
template <typename T, typename Slope>
void DenseSums(const T* rows, const T* x, T* out, int64_t m, int64_t d, bool from_afar, const Slope& slope_of) {
  constexpr int w = kWidth<T>;
  std::fill(out, out + d, T(0));
  const int64_t fit = kBlockBytes / (static_cast<int64_t>(sizeof(T)) * d) / w * w;
  const int size = static_cast<int>(std::max<int64_t>(w, std::min<int64_t>(kBlock, fit)));
  const int ahead = from_afar ? size : 0;
  for (int64_t first = 0; first < m; first += size) {
    const int count = static_cast<int>(std::min<int64_t>(size, m - first));
    const T* block = rows + first * d;
    alignas(kBytes) T slope[kBlock] = {};
    Tiles<T>(d, [&](int width, int64_t c, int rest) {
      WithWidth(width, [&](auto N) {
        if (rest == w)
          Tile<T, N>::template AddMargins<true>(block + c, x + c, slope, count, d, rest);
        else
          Tile<T, N>::template AddMargins<false>(block + c, x + c, slope, count, d, rest);
      });
    });
    for (int j = 0; j < count; j += w) Store(slope + j, slope_of(first + j, std::min(w, count - j), Load(slope + j)));
    Tiles<T>(d, [&](int width, int64_t c, int rest) {
      WithWidth(width, [&](auto N) {
        if (rest == w)
          Tile<T, N>::template AddRows<true>(block + c, slope, out + c, count, d, rest, ahead);
        else
          Tile<T, N>::template AddRows<false>(block + c, slope, out + c, count, d, rest, ahead);
      });
    });
  }
}

// out = sum over the samples of weight * -1/(1 + e^margin) * row.
template <typename T>
void DenseNode(const T* rows, const T* weights, const T* x, T* out, int64_t m, int64_t d, bool from_afar) {
  DenseSums<T>(rows, x, out, m, d, from_afar, [&](int64_t j, int left, Vec<T> margin) {
    return -LoadFirst(weights + j, left) * Complement(margin);
  });
}

// The gradients of some nodes; `from_afar` where their rows have not been read just before.
template <typename T>
void DenseNodes(const T* rows, const T* weights, const T* x, T* out, int64_t nodes, int64_t m, int64_t d,
                bool from_afar) {
  constexpr int w = kWidth<T>;
  const int64_t width = (d + w - 1) / w;
  const int rest = static_cast<int>(d - (width - 1) * w);
  if (m < w || width > kStream) {
    for (int64_t i = 0; i < nodes; ++i)
      DenseNode<T>(rows + i * m * d, weights + i * m, x + i * d, out + i * d, m, d, from_afar);
    return;
  }
  WithWidth(static_cast<int>(width), [&](auto N) {
    if constexpr (N <= kStream) {
      if (rest == w)
        DenseStream<T, N, true>(rows, weights, x, out, nodes, m, rest);
      else
        DenseStream<T, N, false>(rows, weights, x, out, nodes, m, rest);
    }
  });
}

// ---------------------------------------------------------------- the same for many settings
// A vector holds one number of each of 8 settings (16 in float32), two vectors one of each of a group. Every number of
// the data is then multiplied with whole vectors, both sums are products of matrices that stay in registers, and no sum
// runs across a vector. What a setting gets does not depend on the others in its group.
constexpr int kPair = 2;   // vectors of a group
constexpr int kDeep = kRegisters > 16 ? 8 : 6;  // samples, or columns, that are summed up at the same time

constexpr int kFewSettings = 8;  // fewer than these are done one by one: a group would be mostly empty

template <typename T>
constexpr int kGroup = kPair * kWidth<T>;

// sum[i][v] += number(i) * vector v of each step, for N numbers and `steps` steps.
template <typename T, int N>
inline void Products(const T* numbers, int64_t apart, int64_t onward, const T* vectors, int64_t steps, T* sums,
                     int64_t sums_apart) {
  constexpr int w = kWidth<T>;
  Vec<T> sum[N][kPair];
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < kPair; ++v) sum[i][v] = Load(sums + i * sums_apart + v * w);
  for (int64_t k = 0; k < steps; ++k) {
    const T* at = numbers + k * onward;
    Vec<T> vector[kPair];
#pragma GCC unroll 2
    for (int v = 0; v < kPair; ++v) vector[v] = Load(vectors + k * kGroup<T> + v * w);
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i)
#pragma GCC unroll 2
      for (int v = 0; v < kPair; ++v) sum[i][v] += at[i * apart] * vector[v];
  }
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i)
#pragma GCC unroll 2
    for (int v = 0; v < kPair; ++v) Store(sums + i * sums_apart + v * w, sum[i][v]);
}

// The same for any number of numbers, N of them at a time, and the rest half as many at a time.
template <typename T, int N = kDeep>
inline void AddProducts(const T* numbers, int64_t count, int64_t apart, int64_t onward, const T* vectors,
                        int64_t steps, T* sums) {
  int64_t i = 0;
  for (; i + N <= count; i += N)
    Products<T, N>(numbers + i * apart, apart, onward, vectors, steps, sums + i * kGroup<T>, kGroup<T>);
  if constexpr (N > 1)
    if (i < count)
      AddProducts<T, N / 2>(numbers + i * apart, count - i, apart, onward, vectors, steps, sums + i * kGroup<T>);
}

// The gradients of one node for up to kGroup settings, whose x and gradients lie `far` apart. `room` has 2 d groups.
template <typename T>
void DenseGroup(const T* rows, const T* weights, const T* x, T* out, int64_t far, int settings, int64_t m, int64_t d,
                T* room) {
  constexpr int w = kWidth<T>;
  T* point = room;                     // d groups: x, turned round
  T* gradient = room + d * kGroup<T>;  // likewise
  std::fill(room, room + 2 * d * kGroup<T>, T(0));
  for (int s = 0; s < settings; ++s)
    for (int64_t c = 0; c < d; ++c) point[c * kGroup<T> + s] = x[s * far + c];
  for (int64_t first = 0; first < m; first += kBlock) {
    const int count = static_cast<int>(std::min<int64_t>(kBlock, m - first));
    const T* block = rows + first * d;
    alignas(kBytes) T slope[kBlock * kGroup<T>] = {};
    AddProducts(block, count, d, 1, point, d, slope);  // margins: a sample each, along its columns
    for (int j = 0; j < count; ++j)
#pragma GCC unroll 2
      for (int v = 0; v < kPair; ++v) {
        T* at = slope + j * kGroup<T> + v * w;
        Store(at, -weights[first + j] * Complement(Load(at)));
      }
    AddProducts(block, d, 1, d, slope, count, gradient);  // gradient: a column each, along the samples
  }
  for (int s = 0; s < settings; ++s)
    for (int64_t c = 0; c < d; ++c) out[s * far + c] = gradient[c * kGroup<T> + s];
}

// ---------------------------------------------------------------- the gradient at one node, sparse
constexpr int kSamples = 64;

// The product of one row of a CSR matrix with x.
template <typename T>
inline T SparseMargin(const T* value, const int32_t* feature, int64_t k, int64_t end, const T* x) {
  T even = 0, odd = 0;
  for (; k + 1 < end; k += 2) {
    even += value[k] * x[feature[k]];
    odd += value[k + 1] * x[feature[k + 1]];
  }
  if (k < end) even += value[k] * x[feature[k]];
  return even + odd;
}

// Samples first, ..., last - 1 of a CSR matrix; `out` has length d.
template <typename T>
void SparseNode(const T* value, const int32_t* feature, const int32_t* start, const T* weights, const T* x, T* out,
                int64_t first, int64_t last, int64_t d) {
  constexpr int w = kWidth<T>;
  std::fill(out, out + d, T(0));
  for (int64_t block = first; block < last; block += kSamples) {
    const int count = static_cast<int>(std::min<int64_t>(kSamples, last - block));
    alignas(kBytes) T slope[kSamples] = {};
    for (int j = 0; j < count; ++j)
      slope[j] = SparseMargin<T>(value, feature, start[block + j], start[block + j + 1], x);
    for (int j = 0; j < count; j += w) Store(slope + j, Complement(Load(slope + j)));
    for (int j = 0; j < count; ++j) {
      const T s = -weights[block + j] * slope[j];
      for (int64_t k = start[block + j]; k < start[block + j + 1]; ++k) out[feature[k]] += s * value[k];
    }
  }
}

// ---------------------------------------------------------------- threads
// Runs body(first, last) over [0, rows) in pieces, on XLA's own threads and on this one.
template <typename Body>
void Share(ffi::ThreadPool& pool, int64_t rows, double work, const Body& body) {
  constexpr double kPiece = 2e4;  // multiply-adds below which a piece is not worth waking a thread for
  const int64_t threads = pool.num_threads();
  const int64_t most = std::min<int64_t>(rows, static_cast<int64_t>(work / kPiece));
  if (threads < 2 || most < 2) {
    body(0, rows);
    return;
  }
  const int64_t pieces = std::min<int64_t>(4 * threads, most);
  struct Shared {
    std::atomic<int64_t> next{0};
    std::atomic<int64_t> done{0};
  };
  auto shared = std::make_shared<Shared>();
  auto take = [shared, pieces, rows, &body]() {
    for (;;) {
      const int64_t piece = shared->next.fetch_add(1);
      if (piece >= pieces) return;
      body(rows * piece / pieces, rows * (piece + 1) / pieces);
      shared->done.fetch_add(1);
    }
  };
  // A helper that wakes after all pieces are taken touches only `shared`, which it owns a share of.
  for (int64_t i = 1; i < threads; ++i) pool.Schedule(std::function<void()>(take));
  take();
  for (int spins = 0; shared->done.load() < pieces; ++spins)
    if (spins > 1000) std::this_thread::yield();
}

// ---------------------------------------------------------------- gossip
// out = row_sum * own + sum over links of weight * (v[sender] - own). Differences lose nothing to what all rows share.
template <typename T>
void GossipNode(const T* v, const int32_t* sender, const T* weight, int64_t begin, int64_t end, int64_t last,
                T row_sum, const T* own, T* out, int64_t d) {
  Tiles<T>(d, [&](int width, int64_t c, int rest) {
    WithWidth(width, [&](auto N) {
      if (rest == kWidth<T>)
        Tile<T, N>::template Gather<true>(v + c, sender, weight, begin, end, last, row_sum, own + c, out + c, d, rest);
      else
        Tile<T, N>::template Gather<false>(v + c, sender, weight, begin, end, last, row_sum, own + c, out + c, d, rest);
    });
  });
}

// ---------------------------------------------------------------- what XLA calls
// How many settings a buffer holds, when its own shape has `rank` axes; 1 for one that all settings share.
int64_t Settings(ffi::AnyBuffer buffer, size_t rank) {
  int64_t count = 1;
  for (size_t i = 0; i + rank < buffer.dimensions().size(); ++i) count *= buffer.dimensions()[i];
  return count;
}

// The part of a buffer that belongs to one setting.
template <typename T>
const T* Part(ffi::AnyBuffer buffer, size_t rank, int64_t setting) {
  const int64_t count = Settings(buffer, rank);
  const int64_t size = static_cast<int64_t>(buffer.element_count()) / count;
  return reinterpret_cast<const T*>(buffer.untyped_data()) + (count == 1 ? 0 : setting * size);
}

int64_t Axis(ffi::AnyBuffer buffer, size_t from_the_end) {
  return buffer.dimensions()[buffer.dimensions().size() - from_the_end];
}

template <typename T>
void RunDense(ffi::ThreadPool& pool, ffi::AnyBuffer rows, ffi::AnyBuffer weights, ffi::AnyBuffer x, T* out) {
  const int64_t n = Axis(rows, 3), m = Axis(rows, 2), d = Axis(rows, 1), settings = Settings(x, 2);
  const bool grouped = settings >= kFewSettings && Settings(rows, 3) == 1 && Settings(weights, 2) == 1;
  const T *all = Part<T>(rows, 3, 0), *weight = Part<T>(weights, 2, 0), *point = Part<T>(x, 2, 0);
  Share(pool, n, 2.0 * settings * n * m * d, [&](int64_t first, int64_t last) {
    std::vector<T> memory(grouped ? 2 * d * kGroup<T> + kWidth<T> : 0);
    T* room = memory.data();
    while (reinterpret_cast<uintptr_t>(room) % kBytes) ++room;
    const int64_t together = settings == 1 ? last - first : 1;  // several settings share a node's data while it is near
    for (int64_t i = first; i < last; i += together)
      if (grouped)
        for (int64_t s = 0; s < settings; s += kGroup<T>)
          DenseGroup<T>(all + i * m * d, weight + i * m, point + (s * n + i) * d, out + (s * n + i) * d, n * d,
                        static_cast<int>(std::min<int64_t>(kGroup<T>, settings - s)), m, d, room);
      else
        for (int64_t s = 0; s < settings; ++s)
          DenseNodes<T>(Part<T>(rows, 3, s) + i * m * d, Part<T>(weights, 2, s) + i * m, Part<T>(x, 2, s) + i * d,
                        out + (s * n + i) * d, together, m, d, s == 0);  // the other settings find the data in the cache
  });
}

template <typename T>
void RunSparse(ffi::ThreadPool& pool, ffi::AnyBuffer value, ffi::AnyBuffer feature, ffi::AnyBuffer start,
               ffi::AnyBuffer node_start, ffi::AnyBuffer weights, ffi::AnyBuffer x, T* out) {
  const int64_t n = Axis(x, 2), d = Axis(x, 1), settings = Settings(x, 2);
  Share(pool, n, 2.0 * settings * Axis(value, 1), [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i)
      for (int64_t s = 0; s < settings; ++s) {
        const int32_t* nodes = Part<int32_t>(node_start, 1, s);
        SparseNode<T>(Part<T>(value, 1, s), Part<int32_t>(feature, 1, s), Part<int32_t>(start, 1, s),
                      Part<T>(weights, 1, s), Part<T>(x, 2, s) + i * d, out + (s * n + i) * d, nodes[i],
                      nodes[i + 1], d);
      }
  });
}

template <typename T>
void RunGossip(ffi::ThreadPool& pool, ffi::AnyBuffer graph, ffi::AnyBuffer start, ffi::AnyBuffer sender,
               ffi::AnyBuffer weight, ffi::AnyBuffer row_sum, ffi::AnyBuffer v, T* out) {
  // A process that holds some nodes only has other rows of v after its own.
  const int64_t n = Axis(row_sum, 1), d = Axis(v, 1), settings = Settings(v, 2), longest = Axis(sender, 1);
  Share(pool, n, static_cast<double>(settings) * (longest + n) * d, [&](int64_t first, int64_t last) {
    for (int64_t s = 0; s < settings; ++s) {
      const int64_t g = *Part<int32_t>(graph, 0, s);
      const int32_t* starts = Part<int32_t>(start, 2, s) + g * (n + 1);
      const int32_t* senders = Part<int32_t>(sender, 2, s) + g * longest;
      const T* weights = Part<T>(weight, 2, s) + g * longest;
      const T* sums = Part<T>(row_sum, 2, s) + g * n;
      const T* from = Part<T>(v, 2, s);
      const int64_t links = n * d * static_cast<int64_t>(sizeof(T)) > kNear ? starts[last] : 0;
      for (int64_t u = first; u < last; ++u)
        GossipNode<T>(from, senders, weights, starts[u], starts[u + 1], links, sums[u], from + u * d,
                      out + (s * n + u) * d, d);
    }
  });
}

// Samples of all nodes: sums over those of one of them.
template <typename T>
struct DenseSamples {
  const T *rows, *weights;
  int64_t m, d;

  double Work() const { return 4.0 * m * d; }  // of a node's gradient
  void Gradient(int64_t i, const T* x, T* out, bool from_afar = false) const {
    DenseNode<T>(rows + i * m * d, weights + i * m, x, out, m, d, from_afar);
  }
  void Hessian(int64_t i, const T* x, T l2, T* out) const {
    DenseHessian<T>(rows + i * m * d, weights + i * m, x, l2, out, m, d);
  }
  int64_t Most() const { return m; }  // samples of a node
  void Bends(int64_t i, const T* x, T* out) const {
    constexpr int w = kWidth<T>;
    for (int64_t j = 0; j < m; ++j) out[j] = std::abs(Dot(rows + (i * m + j) * d, x, d));
    for (int64_t j = 0; j < m; j += w) {
      const int left = static_cast<int>(std::min<int64_t>(w, m - j));
      const Vec<T> s = Complement(LoadFirst(out + j, left));
      StoreFirst(out + j, LoadFirst(weights + i * m + j, left) * s * (1 - s), left);
    }
  }
  void Product(int64_t i, const T* bends, const T* v, T* out) const {
    DenseSums<T>(rows + i * m * d, v, out, m, d, false,
                 [&](int64_t j, int left, Vec<T> margin) { return LoadFirst(bends + j, left) * margin; });
  }
};

template <typename T>
struct SparseSamples {
  const T* value;
  const int32_t *feature, *start, *node_start;
  const T* weights;
  int64_t n, d;

  double Work() const { return 4.0 * start[node_start[n]] / n; }
  void Gradient(int64_t i, const T* x, T* out, bool = false) const {
    SparseNode<T>(value, feature, start, weights, x, out, node_start[i], node_start[i + 1], d);
  }
  void Hessian(int64_t i, const T* x, T l2, T* out) const {
    SparseHessian<T>(value, feature, start, weights, x, l2, out, node_start[i], node_start[i + 1], d);
  }
  int64_t Most() const {
    int64_t most = 0;
    for (int64_t i = 0; i < n; ++i) most = std::max<int64_t>(most, node_start[i + 1] - node_start[i]);
    return most;
  }
  void Bends(int64_t i, const T* x, T* out) const {
    for (int64_t j = node_start[i]; j < node_start[i + 1]; ++j)
      *out++ = weights[j] * Bend(SparseMargin<T>(value, feature, start[j], start[j + 1], x));
  }
  void Product(int64_t i, const T* bends, const T* v, T* out) const {
    std::fill(out, out + d, T(0));
    for (int64_t j = node_start[i]; j < node_start[i + 1]; ++j) {
      const T scale = *bends++ * SparseMargin<T>(value, feature, start[j], start[j + 1], v);
      for (int64_t k = start[j]; k < start[j + 1]; ++k) out[feature[k]] += scale * value[k];
    }
  }
};

// run(samples): dense ones are two buffers (rows and weights), sparse ones five (those of `SparseSamples`).
template <typename T, typename Run>
ffi::Error WithSamples(const ffi::RemainingArgs& buffers, int64_t n, int64_t d, const Run& run) {
  const bool dense = buffers.size() == 2;
  std::vector<ffi::AnyBuffer> parts;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const auto part = buffers.get<ffi::AnyBuffer>(i);
    if (!part || part->element_type() != (!dense && i >= 1 && i <= 3 ? ffi::S32 : kNumber))
      return ffi::Error::InvalidArgument("adom: samples of an unknown type");
    parts.push_back(*part);
  }
  const auto numbers = [&](int i) { return reinterpret_cast<const T*>(parts[i].untyped_data()); };
  const auto indices = [&](int i) { return reinterpret_cast<const int32_t*>(parts[i].untyped_data()); };
  if (dense)
    run(DenseSamples<T>{numbers(0), numbers(1), Axis(parts[0], 2), d});
  else
    run(SparseSamples<T>{numbers(0), indices(1), indices(2), indices(3), numbers(4), n, d});
  return ffi::Error::Success();
}

// One round of the oracle `auto`; the memory of every node is replaced in place where XLA allows.
struct NewtonBuffers {
  ffi::AnyBuffer x, e, p, contraction, longest, gradients, kept, learned;
};

template <typename T, typename Samples>
void RunNewton(ffi::ThreadPool& pool, const NewtonRules& rules, const Samples& samples, ffi::AnyBuffer l2,
               ffi::AnyBuffer L, ffi::AnyBuffer z, ffi::AnyBuffer z_past, const NewtonBuffers& in,
               const NewtonBuffers& out) {
  const int64_t n = Axis(z, 2), d = Axis(z, 1);
  const auto all = [](const ffi::AnyBuffer& buffer) { return reinterpret_cast<T*>(buffer.untyped_data()); };
  const auto whole = [](const ffi::AnyBuffer& buffer) { return reinterpret_cast<int32_t*>(buffer.untyped_data()); };
  const auto take = [&](const ffi::AnyBuffer& to, const ffi::AnyBuffer& from, int64_t first, int64_t last) {
    const int64_t size = static_cast<int64_t>(to.size_bytes()) / n;
    char *into = static_cast<char*>(to.untyped_data()), *at = static_cast<char*>(from.untyped_data());
    if (into != at) std::memcpy(into + first * size, at + first * size, (last - first) * size);
  };
  const bool matrices = in.kept.dimensions().size() == 3;
  const int64_t pairs = matrices ? 0 : Axis(in.kept, 3), kept = matrices ? d * d : 2 * pairs * d;
  const int64_t most = samples.Most();
  Share(pool, n, n * samples.Work(), [&](int64_t first, int64_t last) {
    std::vector<T> e((last - first) * d), room(9 * d + pairs + most), frozen(2 * pairs * d);
    take(out.x, in.x, first, last), take(out.e, in.e, first, last), take(out.p, in.p, first, last);
    take(out.kept, in.kept, first, last);
    T* x = all(out.x);
    for (int64_t i = first; i < last; ++i) samples.Gradient(i, x + i * d, e.data() + (i - first) * d, true);
    for (int64_t i = first; i < last; ++i) {
      NewtonMemory<T> memory{all(out.e) + i * d, all(out.p) + i * d, all(in.contraction)[i], all(in.longest)[i],
                             whole(in.gradients)[i]};
      Inverse<T> inverse{all(out.kept) + i * kept, pairs, d, *all(L), whole(in.learned)[i]};
      const NewtonNode<T, Samples> node{samples, i, *all(l2), *all(L), d};
      node.Solve(rules, all(z) + i * d, all(z_past) + i * d, x + i * d, e.data() + (i - first) * d, inverse, memory,
                 frozen.data(), room.data());
      all(out.contraction)[i] = memory.contraction;
      all(out.longest)[i] = memory.longest;
      whole(out.gradients)[i] = memory.gradients;
      whole(out.learned)[i] = inverse.learned;
    }
  });
}

template <typename T, typename Samples>
void RunExact(ffi::ThreadPool& pool, int64_t iterations, int64_t halvings, const Samples& samples, ffi::AnyBuffer l2,
              ffi::AnyBuffer L, ffi::AnyBuffer z, ffi::AnyBuffer start, T* x, ffi::AnyBuffer gradients) {
  const int64_t n = Axis(z, 2), d = Axis(z, 1);
  const auto all = [](const ffi::AnyBuffer& buffer) { return reinterpret_cast<const T*>(buffer.untyped_data()); };
  int32_t* spent = reinterpret_cast<int32_t*>(gradients.untyped_data());
  std::copy(all(start), all(start) + n * d, x);
  Share(pool, n, n * samples.Work() * d, [&](int64_t first, int64_t last) {
    std::vector<T> e(d), matrix(d * d), room(3 * d);
    for (int64_t i = first; i < last; ++i) {
      const NewtonNode<T, Samples> node{samples, i, *all(l2), *all(L), d};
      samples.Gradient(i, x + i * d, e.data());
      spent[i] = node.SolveExactly(iterations, halvings, all(z) + i * d, x + i * d, e.data(), matrix.data(),
                                   room.data());
    }
  });
}

// run(out), after a look at the types of everything.
template <typename Run>
ffi::Error Checked(std::initializer_list<ffi::AnyBuffer> numbers, std::initializer_list<ffi::AnyBuffer> indices,
                   ffi::Result<ffi::AnyBuffer> out, const Run& run) {
  for (const ffi::AnyBuffer& buffer : numbers)
    if (buffer.element_type() != kNumber) return ffi::Error::InvalidArgument("adom: numbers of another type");
  for (const ffi::AnyBuffer& buffer : indices)
    if (buffer.element_type() != ffi::S32) return ffi::Error::InvalidArgument("adom: indices must be int32");
  if (out->element_type() != kNumber) return ffi::Error::InvalidArgument("adom: results of another type");
  run(reinterpret_cast<Number*>(out->untyped_data()));
  return ffi::Error::Success();
}

ffi::Error LogisticDense(ffi::ThreadPool pool, ffi::AnyBuffer rows, ffi::AnyBuffer weights, ffi::AnyBuffer x,
                         ffi::Result<ffi::AnyBuffer> out) {
  return Checked({rows, weights, x}, {}, out, [&](Number* to) { RunDense(pool, rows, weights, x, to); });
}

ffi::Error LogisticSparse(ffi::ThreadPool pool, ffi::AnyBuffer value, ffi::AnyBuffer feature, ffi::AnyBuffer start,
                          ffi::AnyBuffer node_start, ffi::AnyBuffer weights, ffi::AnyBuffer x,
                          ffi::Result<ffi::AnyBuffer> out) {
  return Checked({value, weights, x}, {feature, start, node_start}, out,
                [&](Number* to) { RunSparse(pool, value, feature, start, node_start, weights, x, to); });
}

ffi::Error Gossip(ffi::ThreadPool pool, ffi::AnyBuffer graph, ffi::AnyBuffer start, ffi::AnyBuffer sender,
                  ffi::AnyBuffer weight, ffi::AnyBuffer row_sum, ffi::AnyBuffer v,
                  ffi::Result<ffi::AnyBuffer> out) {
  return Checked({weight, row_sum, v}, {graph, start, sender}, out,
                [&](Number* to) { RunGossip(pool, graph, start, sender, weight, row_sum, v, to); });
}

ffi::Error LogisticNewton(ffi::ThreadPool pool, double accuracy, double decay, double slow, double shortest,
                          double near_rounding, double system, double first, double curved, ffi::AnyBuffer l2,
                          ffi::AnyBuffer L, ffi::AnyBuffer z, ffi::AnyBuffer z_past, ffi::AnyBuffer x, ffi::AnyBuffer e,
                          ffi::AnyBuffer p, ffi::AnyBuffer contraction, ffi::AnyBuffer longest, ffi::AnyBuffer gradients,
                          ffi::AnyBuffer kept, ffi::AnyBuffer learned, ffi::RemainingArgs buffers,
                          ffi::Result<ffi::AnyBuffer> x_next, ffi::Result<ffi::AnyBuffer> e_next,
                          ffi::Result<ffi::AnyBuffer> p_next, ffi::Result<ffi::AnyBuffer> contraction_next,
                          ffi::Result<ffi::AnyBuffer> longest_next, ffi::Result<ffi::AnyBuffer> gradients_next,
                          ffi::Result<ffi::AnyBuffer> kept_next, ffi::Result<ffi::AnyBuffer> learned_next) {
  const NewtonRules rules{accuracy, decay, slow, shortest, near_rounding, system, first, curved};
  const NewtonBuffers in{x, e, p, contraction, longest, gradients, kept, learned};
  const NewtonBuffers out{*x_next,       *e_next,         *p_next,    *contraction_next,
                          *longest_next, *gradients_next, *kept_next, *learned_next};
  ffi::Error outcome = ffi::Error::Success();
  const ffi::Error types = Checked(
      {l2, L, z, z_past, x, e, p, contraction, longest, kept}, {gradients, learned}, x_next, [&](Number*) {
        outcome = WithSamples<Number>(buffers, Axis(x, 2), Axis(x, 1), [&](const auto& samples) {
          RunNewton<Number>(pool, rules, samples, l2, L, z, z_past, in, out);
        });
      });
  return types.failure() ? types : outcome;
}

ffi::Error LogisticExact(ffi::ThreadPool pool, int64_t iterations, int64_t halvings, ffi::AnyBuffer l2,
                         ffi::AnyBuffer L, ffi::AnyBuffer z, ffi::AnyBuffer start, ffi::RemainingArgs buffers,
                         ffi::Result<ffi::AnyBuffer> x, ffi::Result<ffi::AnyBuffer> gradients) {
  ffi::Error outcome = ffi::Error::Success();
  const ffi::Error types = Checked({l2, L, z, start}, {*gradients}, x, [&](Number* to) {
    outcome = WithSamples<Number>(
        buffers, Axis(z, 2), Axis(z, 1), [&](const auto& samples) {
          RunExact(pool, iterations, halvings, samples, l2, L, z, start, to, *gradients);
        });
  });
  return types.failure() ? types : outcome;
}

// Some rows of one graph, for a process that holds no others.
template <typename T>
void GossipRows(const T* v, const int32_t* start, const int32_t* sender, const T* weight, const T* row_sum, T* out,
                int64_t rows, int64_t d) {
  for (int64_t u = 0; u < rows; ++u)
    GossipNode<T>(v, sender, weight, start[u], start[u + 1], 0, row_sum[u], v + u * d, out + u * d, d);
}

// ---------------------------------------------------------------- distances
constexpr int64_t kSlab = 4096;  // rows that are summed up on their own, whatever the number of threads

// out[c] += the sum of column c, less `from` in every row.
template <typename T>
void AddColumns(const T* __restrict rows, const T* __restrict from, int64_t n, int64_t d, double* __restrict out) {
  for (int64_t i = 0; i < n; ++i)
    for (int64_t c = 0; c < d; ++c) out[c] += static_cast<double>(rows[i * d + c]) - from[c];
}

// out[c] += the sum of the squares of column c less the solution; out[d + c], of column c less `from` and `mean`.
template <typename T>
void AddSquares(const T* __restrict rows, const double* __restrict solution, const T* __restrict from,
                const double* __restrict mean, int64_t n, int64_t d, double* __restrict out) {
  for (int64_t i = 0; i < n; ++i)
    for (int64_t c = 0; c < d; ++c) {
      const double number = rows[i * d + c], error = number - solution[c], apart = number - from[c] - mean[c];
      out[c] += error * error;
      out[d + c] += apart * apart;
    }
}

// add(first row, how many, out) for slabs of n rows, each with an `out` of its own; then the sum of these, in order.
template <typename Add>
std::vector<double> BySlabs(ffi::ThreadPool& pool, int64_t n, int64_t width, const Add& add) {
  const int64_t slabs = (n + kSlab - 1) / kSlab;
  std::vector<double> part(slabs * width);
  Share(pool, slabs, static_cast<double>(n) * width, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i)
      add(i * kSlab, std::min(kSlab, n - i * kSlab), part.data() + i * width);
  });
  for (int64_t i = 1; i < slabs; ++i)
    for (int64_t c = 0; c < width; ++c) part[c] += part[i * width + c];
  part.resize(width);
  return part;
}

// The rows' squared distances from the solution and from their mean. The mean is that of the differences from the first
// row: rows that agree to the last bit are then not apart by the rounding of their mean.
template <typename T>
void RunDistances(ffi::ThreadPool& pool, ffi::AnyBuffer rows, ffi::AnyBuffer solution, double* out) {
  const int64_t n = Axis(rows, 2), d = Axis(rows, 1), settings = Settings(rows, 2);
  for (int64_t s = 0; s < settings; ++s, out += 2) {
    const T* all = Part<T>(rows, 2, s);
    auto mean = BySlabs(pool, n, d, [&](int64_t i, int64_t count, double* to) {
      AddColumns(all + i * d, all, count, d, to);
    });
    for (double& number : mean) number /= static_cast<double>(n);
    const auto squares = BySlabs(pool, n, 2 * d, [&](int64_t i, int64_t count, double* to) {
      AddSquares(all + i * d, Part<double>(solution, 1, s), all, mean.data(), count, d, to);
    });
    out[0] = std::accumulate(squares.begin(), squares.begin() + d, 0.0);
    out[1] = std::accumulate(squares.begin() + d, squares.end(), 0.0);
  }
}

ffi::Error Distances(ffi::ThreadPool pool, ffi::AnyBuffer rows, ffi::AnyBuffer solution,
                     ffi::Result<ffi::Buffer<ffi::F64>> out) {
  if (solution.element_type() != ffi::F64 || rows.element_type() != kNumber)
    return ffi::Error::InvalidArgument("adom: rows of another type, or a solution that is not float64");
  RunDistances<Number>(pool, rows, solution, out->typed_data());
  return ffi::Error::Success();
}

// Copies each array of rows into a longer one and lets `fetch`, a function given by its address, fill the rest. The
// clock goes in and out: so whoever needs it next comes after this round.
typedef int32_t (*Fetch)(int64_t clock, int64_t count, void* const* tables, int64_t rows, int64_t width);

ffi::Error Exchange(ffi::BufferR0<ffi::S64> fetch, ffi::BufferR0<ffi::S64> clock, ffi::RemainingArgs own,
                    ffi::ResultBufferR0<ffi::S64> after, ffi::RemainingRets all) {
  std::vector<void*> tables;
  int64_t rows = 0, width = 0;
  for (size_t i = 0; i < own.size(); ++i) {
    const auto from = own.get<ffi::AnyBuffer>(i);
    auto to = all.get<ffi::AnyBuffer>(i);
    if (!from || !to) return ffi::Error::InvalidArgument("adom: rows without room for the others'");
    std::memcpy((*to)->untyped_data(), from->untyped_data(), from->size_bytes());
    tables.push_back((*to)->untyped_data());
    rows = Axis(**to, 2), width = Axis(**to, 1);
  }
  *after->typed_data() = *clock.typed_data();
  const int32_t failed = reinterpret_cast<Fetch>(*fetch.typed_data())(
      *clock.typed_data(), static_cast<int64_t>(tables.size()), tables.data(), rows, width);
  return failed ? ffi::Error::Internal("adom: the rows of a round did not arrive") : ffi::Error::Success();
}

}  // namespace

extern "C" void adom_gossip_rows(const Number* v, const int32_t* start, const int32_t* sender, const Number* weight,
                                 const Number* row_sum, Number* out, int64_t rows, int64_t d) {
  GossipRows<Number>(v, start, sender, weight, row_sum, out, rows, d);
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(adom_logistic_dense, LogisticDense,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::ThreadPool>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Ret<ffi::AnyBuffer>());

XLA_FFI_DEFINE_HANDLER_SYMBOL(adom_logistic_sparse, LogisticSparse,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::ThreadPool>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Ret<ffi::AnyBuffer>());

XLA_FFI_DEFINE_HANDLER_SYMBOL(adom_logistic_newton, LogisticNewton,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::ThreadPool>()
                                  .Attr<double>("accuracy")
                                  .Attr<double>("decay")
                                  .Attr<double>("slow")
                                  .Attr<double>("shortest")
                                  .Attr<double>("near_rounding")
                                  .Attr<double>("system")
                                  .Attr<double>("first")
                                  .Attr<double>("curved")
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .RemainingArgs()
                                  .Ret<ffi::AnyBuffer>()
                                  .Ret<ffi::AnyBuffer>()
                                  .Ret<ffi::AnyBuffer>()
                                  .Ret<ffi::AnyBuffer>()
                                  .Ret<ffi::AnyBuffer>()
                                  .Ret<ffi::AnyBuffer>()
                                  .Ret<ffi::AnyBuffer>()
                                  .Ret<ffi::AnyBuffer>());

XLA_FFI_DEFINE_HANDLER_SYMBOL(adom_logistic_exact, LogisticExact,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::ThreadPool>()
                                  .Attr<int64_t>("iterations")
                                  .Attr<int64_t>("halvings")
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .RemainingArgs()
                                  .Ret<ffi::AnyBuffer>()
                                  .Ret<ffi::AnyBuffer>());

XLA_FFI_DEFINE_HANDLER_SYMBOL(adom_gossip, Gossip,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::ThreadPool>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Ret<ffi::AnyBuffer>());

XLA_FFI_DEFINE_HANDLER_SYMBOL(adom_exchange, Exchange,
                              ffi::Ffi::Bind()
                                  .Arg<ffi::BufferR0<ffi::S64>>()
                                  .Arg<ffi::BufferR0<ffi::S64>>()
                                  .RemainingArgs()
                                  .Ret<ffi::BufferR0<ffi::S64>>()
                                  .RemainingRets());

XLA_FFI_DEFINE_HANDLER_SYMBOL(adom_distances, Distances,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::ThreadPool>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Ret<ffi::Buffer<ffi::F64>>());
