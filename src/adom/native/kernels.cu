// The sums of a round on an NVIDIA GPU: the gradient of the mean logistic loss at every node, for one setting or for
// many, and the product of a gossip matrix with some vectors. The data is read from its memory once, and nothing but the
// result is written.

#include <cuda_pipeline.h>

#include <cstdint>

#include "cuda_runtime.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace {

constexpr int kThreads = 128;           // of a block
constexpr int kShared = 24 * 1024;      // bytes of its shared memory: many small blocks hide each other's waiting
constexpr int kMostShared = 48 * 1024;  // what a block may take where a node needs more
constexpr int kColumns = 64;            // the most features of the kernels for few nodes and for many settings
constexpr int64_t kFewNodes = 512;      // and what the kernel for few nodes takes at most: these,
constexpr int64_t kWhole = 5000;        // and so many numbers of each

template <typename T, int kPack>
struct alignas(sizeof(T) * kPack) Pack {
  T at[kPack];
};

// -weight / (1 + e^margin)
__device__ float Slope(float weight, float margin) { return -weight / (1.0f + exp(margin)); }

// The same without branches: e^margin as 2^n times a series in what is left, |r| <= log(2) / 2, and the reciprocal by
// Newton's iteration from the processor's own guess. Margins beyond +-700 count as that; not a number stays one.
__device__ double Slope(double weight, double margin) {
  constexpr double kShift = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to a whole number
  const double bounded = margin > 700.0 ? 700.0 : margin < -700.0 ? -700.0 : margin;
  const double shifted = fma(bounded, 1.4426950408889634, kShift), n = shifted - kShift;
  const double r = fma(n, -1.9082149292705877e-10, fma(n, -6.93147180369123816490e-01, bounded)), s = r * r;
  double even = 1.0 / 479001600, odd = 1.0 / 6227020800;
  even = fma(even, s, 1.0 / 3628800);
  odd = fma(odd, s, 1.0 / 39916800);
  even = fma(even, s, 1.0 / 40320);
  odd = fma(odd, s, 1.0 / 362880);
  even = fma(even, s, 1.0 / 720);
  odd = fma(odd, s, 1.0 / 5040);
  even = fma(even, s, 1.0 / 24);
  odd = fma(odd, s, 1.0 / 120);
  even = fma(even, s, 1.0 / 2);
  odd = fma(odd, s, 1.0 / 6);
  even = fma(even, s, 1.0);
  odd = fma(odd, s, 1.0);
  const double power = __hiloint2double((__double2loint(shifted) + 1023) << 20, 0);
  const double x = fma(fma(odd, r, even), power, 1.0);
  double y;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  y = fma(y, fma(-x, y, 1.0), y);
  y = fma(y, fma(-x, y, 1.0), y);
  return -weight * y;
}

__device__ void AwaitCopies() {
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
}

// Copy `count` numbers, rows of d of them, into rows that lie `stride` apart; all copies are under way at once.
template <typename T>
__device__ void CopyRows(T* to, const T* from, int count, int d, int stride) {
  const int rows = blockDim.x / d, rest = blockDim.x % d;
  int row = threadIdx.x / d, column = threadIdx.x % d;
  for (int k = threadIdx.x; k < count; k += blockDim.x) {
    __pipeline_memcpy_async(to + row * stride + column, from + k, sizeof(T));
    row += rows;
    column += rest;
    if (column >= d) {
      column -= d;
      ++row;
    }
  }
  AwaitCopies();
}

// ---------------------------------------------------------------- the gradient for one setting
// Many nodes: a block of threads takes the samples of some of them into its shared memory. Then a thread takes a sample
// and sums up its margin, and then a thread takes a column and sums up its part of the gradient. If a block takes more
// than one node, then all samples of each at once.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    Dense(const T* __restrict__ rows, const T* __restrict__ weights, const T* __restrict__ x, T* __restrict__ out,
          int64_t n, int m, int d, int nodes, int samples, int stride) {
  extern __shared__ double shared[];
  T* slope = reinterpret_cast<T*>(shared);
  T* point = slope + nodes * samples;
  T* data = point + nodes * d;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * nodes;
  const int count = static_cast<int>(n - first < nodes ? n - first : nodes);
  const int64_t setting = (blockIdx.y * n + first) * d;  // where this block's x and gradient begin
  for (int k = threadIdx.x; k < count * d; k += kThreads) point[k] = x[setting + k];
  for (int from = 0; from < m; from += samples) {
    const int here = m - from < samples ? m - from : samples;
    const int64_t sample = first * m + from;
    __syncthreads();
    CopyRows(data, rows + sample * d, count * here * d, d, stride);
    for (int k = threadIdx.x; k < count * here; k += kThreads) {
      const T* row = data + k * stride;
      const T* at = point + k / here * d;
      T margin = 0;
      for (int c = 0; c < d; ++c) margin += row[c] * at[c];
      slope[k] = Slope(weights[sample + k], margin);
    }
    __syncthreads();
    for (int k = threadIdx.x; k < count * d; k += kThreads) {
      const int node = k / d;
      const T* column = data + node * here * stride + k % d;
      const T* s = slope + node * here;
      T sum = from == 0 ? T(0) : out[setting + k];
      for (int j = 0; j < here; ++j) sum += s[j] * column[j * stride];
      out[setting + k] = sum;
    }
  }
}

template <typename T>
void StartDense(cudaStream_t stream, const T* rows, const T* weights, const T* x, T* out, int64_t n, int m, int d,
                int64_t settings) {
  const int stride = d | 1;  // odd, so that neighbouring rows begin in different banks
  const int64_t node = static_cast<int64_t>(m) * (stride + 1) + d;  // numbers of shared memory that a whole node takes
  const int64_t size = sizeof(T), room = (node * size > kShared ? kMostShared : kShared) / size;
  const int nodes = node <= room ? static_cast<int>(n < room / node ? n : room / node) : 1;
  const int samples = node <= room ? m : static_cast<int>((room - d) / (stride + 1));
  const dim3 grid(static_cast<unsigned>((n + nodes - 1) / nodes), static_cast<unsigned>(settings));
  const size_t bytes = sizeof(T) * (static_cast<size_t>(nodes) * samples * (stride + 1) + nodes * d);
  Dense<T><<<grid, kThreads, bytes, stream>>>(rows, weights, x, out, n, m, d, nodes, samples, stride);
}

// Few nodes: waiting takes the time, so a block takes one node, and four threads a sample. Each has every fourth column
// of it in registers, for the margin and then for its part of the gradient.
constexpr int kTeams = 128;  // samples taken at a time

// Sum up `kCount` numbers over pairs of threads `step` apart: one gets the sums of the first half of them, the other
// those of the second. `first` and `end` say which ones a thread has.
template <int kCount, typename T>
__device__ void Halve(T* v, int step, int& first, int& end) {
  constexpr int kHalf = (kCount + 1) / 2;
  const bool upper = threadIdx.x & step;
#pragma unroll
  for (int i = 0; i < kHalf; ++i) {
    const T other = kHalf + i < kCount ? v[kHalf + i < kCount ? kHalf + i : 0] : T(0);
    const T kept = upper ? other : v[i];
    v[i] = kept + __shfl_xor_sync(~0u, upper ? v[i] : other, step);
  }
  if (upper)
    first += kHalf;
  else if (end > first + kHalf)
    end = first + kHalf;
}

template <typename T, int kCount>  // columns of a thread
__global__ void __launch_bounds__(4 * kTeams)
    Alone(const T* __restrict__ rows, const T* __restrict__ weights, const T* __restrict__ x, T* __restrict__ out,
          int m, int d, int samples, int stride) {
  constexpr int kPack = 16 / sizeof(T), kWarps = 4 * kTeams / 32;
  extern __shared__ double shared[];
  T* part = reinterpret_cast<T*>(shared);
  T* data = part + kWarps * 4 * kCount;
  const int64_t node = blockIdx.x;
  const int team = threadIdx.x / 4, lane = threadIdx.x % 4;
  T at[kCount], sum[kCount] = {};
#pragma unroll
  for (int i = 0; i < kCount; ++i) at[i] = 4 * i + lane < d ? x[node * d + 4 * i + lane] : T(0);
  for (int from = 0; from < m; from += samples) {
    const int here = m - from < samples ? m - from : samples;
    const T* begin = rows + (node * m + from) * d;
    const T weight = team < here ? weights[node * m + from + team] : T(0);
    __syncthreads();
    if (d % kPack == 0) {
      using Packed = Pack<T, kPack>;
      CopyRows(reinterpret_cast<Packed*>(data), reinterpret_cast<const Packed*>(begin), here * d / kPack, d / kPack,
               stride / kPack);
    } else {
      CopyRows(data, begin, here * d, d, stride);
    }
    T row[kCount], margin = 0;
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      row[i] = team < here && 4 * i + lane < d ? data[team * stride + 4 * i + lane] : T(0);
#pragma unroll
    for (int i = 0; i < kCount; ++i) margin += row[i] * at[i];
    margin += __shfl_xor_sync(~0u, margin, 1);
    margin += __shfl_xor_sync(~0u, margin, 2);
    const T slope = Slope(weight, margin);
#pragma unroll
    for (int i = 0; i < kCount; ++i) sum[i] += slope * row[i];
  }
  int first = 0, end = kCount;
  constexpr int kHalf = (kCount + 1) / 2, kQuarter = (kHalf + 1) / 2, kEighth = (kQuarter + 1) / 2;
  Halve<kCount>(sum, 16, first, end);
  Halve<kHalf>(sum, 8, first, end);
  Halve<kQuarter>(sum, 4, first, end);
#pragma unroll
  for (int i = 0; i < kEighth; ++i)
    if (first + i < end) part[threadIdx.x / 32 * 4 * kCount + 4 * (first + i) + lane] = sum[i];
  __syncthreads();
  if (threadIdx.x < d) {
    T total = 0;
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) total += part[warp * 4 * kCount + threadIdx.x];
    out[node * d + threadIdx.x] = total;
  }
}

template <typename T, int kCount>
void StartAlone(cudaStream_t stream, const T* rows, const T* weights, const T* x, T* out, int64_t n, int m, int d) {
  const int stride = (d + 3) / 8 * 8 + 4;  // so that the rows of a quarter of a warp begin in different banks
  const int room = kMostShared / static_cast<int>(sizeof(T)) - kTeams / 8 * 4 * kCount;
  int samples = room / stride < kTeams ? room / stride : kTeams;
  samples = m < samples ? m : samples;
  const size_t bytes = sizeof(T) * (kTeams / 8 * 4 * kCount + samples * stride);
  Alone<T, kCount><<<static_cast<unsigned>(n), 4 * kTeams, bytes, stream>>>(rows, weights, x, out, m, d, samples, stride);
}

// ---------------------------------------------------------------- the gradient for many settings
// Two products of matrices with the slopes in between, by the tensor cores. A warp takes 16 settings of a node; what
// the first product leaves in its registers is, sample by sample, what the second one wants there.
constexpr int kWarps = 4;
constexpr int kRows = 16;  // settings of a warp

// c += a b for a of 16 x 8, b of 8 x 8: thread 4 g + t has a at (g + 8 i, t + 4 j), b at (t + 4 j, g) and c at
// (g + 8 i, 2 t + j).
__device__ void Multiply(double (&c)[2][2], double a00, double a10, double a01, double a11, double b0, double b1) {
#if __CUDA_ARCH__ >= 900
  asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+d"(c[0][0]), "+d"(c[0][1]), "+d"(c[1][0]), "+d"(c[1][1])
      : "d"(a00), "d"(a10), "d"(a01), "d"(a11), "d"(b0), "d"(b1));
#else
  const int lane = threadIdx.x % 32, row = lane & ~3, column = lane % 4 * 8;
  for (int k = 0; k < 4; ++k)
    for (int j = 0; j < 2; ++j) {
      const double low = __shfl_sync(~0u, b0, column + 4 * j + k), high = __shfl_sync(~0u, b1, column + 4 * j + k);
      c[0][j] += __shfl_sync(~0u, a00, row + k) * low + __shfl_sync(~0u, a01, row + k) * high;
      c[1][j] += __shfl_sync(~0u, a10, row + k) * low + __shfl_sync(~0u, a11, row + k) * high;
    }
#endif
}

template <int kTiles>  // of 8 columns
__global__ void __launch_bounds__(32 * kWarps)
    Many(const double* __restrict__ rows, const double* __restrict__ weights, const double* __restrict__ x,
         double* __restrict__ out, int m, int d, int settings, int samples) {
  constexpr int kStride = 8 * kTiles + 4;
  extern __shared__ double shared[];
  double* weight = shared;
  double* data = weight + samples;
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int64_t node = blockIdx.x;
  const int setting = (blockIdx.y * kWarps + threadIdx.x / 32) * kRows + g;  // and the one 8 further
  const double* point = x + node * settings * d;
  double a[2][2 * kTiles];
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int k = 0; k < 2 * kTiles; ++k) {
      const int row = setting + 8 * i, column = 4 * k + t;
      a[i][k] = row < settings && column < d ? point[static_cast<int64_t>(row) * d + column] : 0.0;
    }
  double sum[kTiles][2][2] = {};
  for (int from = 0; from < m; from += samples) {
    const int here = m - from < samples ? m - from : samples, padded = (here + 7) / 8 * 8;
    const int64_t sample = node * m + from;
    __syncthreads();
    for (int k = threadIdx.x; k < padded * kStride; k += blockDim.x) {
      const int row = k / kStride, column = k % kStride;
      if (row < here && column < d)
        __pipeline_memcpy_async(data + k, rows + (sample + row) * d + column, sizeof(double));
      else
        data[k] = 0.0;
    }
    for (int k = threadIdx.x; k < padded; k += blockDim.x) weight[k] = k < here ? weights[sample + k] : 0.0;
    AwaitCopies();
    for (int tile = 0; tile < padded; tile += 8) {
      // The order of the 8 samples is such that neither product reads one bank twice at a time.
      const double* b = data + (tile + (g ^ (g >> 2))) * kStride + t;
      double slope[2][2] = {};
#pragma unroll
      for (int k = 0; k < kTiles; ++k)
        Multiply(slope, a[0][2 * k], a[1][2 * k], a[0][2 * k + 1], a[1][2 * k + 1], b[8 * k], b[8 * k + 4]);
      const int low = tile + (2 * t ^ t >> 1), high = tile + (2 * t + 1 ^ t >> 1);
      for (int i = 0; i < 2; ++i) {
        slope[i][0] = Slope(weight[low], slope[i][0]);
        slope[i][1] = Slope(weight[high], slope[i][1]);
      }
#pragma unroll
      for (int k = 0; k < kTiles; ++k)
        Multiply(sum[k], slope[0][0], slope[1][0], slope[0][1], slope[1][1], data[low * kStride + 8 * k + g],
                 data[high * kStride + 8 * k + g]);
    }
  }
  double* to = out + node * settings * d;
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int k = 0; k < kTiles; ++k)
      for (int j = 0; j < 2; ++j) {
        const int row = setting + 8 * i, column = 8 * k + 2 * t + j;
        if (row < settings && column < d) to[static_cast<int64_t>(row) * d + column] = sum[k][i][j];
      }
}

template <int kTiles = kColumns / 8>
void StartMany(cudaStream_t stream, const double* rows, const double* weights, const double* x, double* out, int64_t n,
               int m, int d, int settings) {
  if constexpr (kTiles > 1)
    if (d <= 8 * (kTiles - 1)) return StartMany<kTiles - 1>(stream, rows, weights, x, out, n, m, d, settings);
  const int number = 8 * kTiles + 5, fit = kMostShared / 8 / number / 8 * 8, whole = (m + 7) / 8 * 8;
  const int samples = whole < fit ? whole : fit;
  const dim3 grid(static_cast<unsigned>(n), (settings + kWarps * kRows - 1) / (kWarps * kRows));
  Many<kTiles><<<grid, 32 * kWarps, 8 * samples * number, stream>>>(rows, weights, x, out, m, d, settings, samples);
}

// ---------------------------------------------------------------- gossip among few nodes
// Row i of A v is s_i v_i + sum_j a_ij (v_j - v_i). A thread takes some neighbouring columns of a node's row and one of
// `kGroups` parts of the nodes j; in place of one that is no neighbour it reads its own.
constexpr int kVectors = 4;  // the most of one call
constexpr int kGroups = 8;
constexpr int kAhead = 16;  // rows of a thread that are under way at once
constexpr int kGossipThreads = 320;

template <typename T>
struct Vectors {
  const T* from[kVectors];
  T* to[kVectors];
};

template <typename T, int kPack>
__global__ void __launch_bounds__(kGossipThreads, 1)
    Gossip(const int32_t* __restrict__ graph, const T* __restrict__ matrices, const T* __restrict__ row_sums,
           Vectors<T> vectors, int packs, int all) {
  using Packed = Pack<T, kPack>;
  const int n = gridDim.x, node = blockIdx.x, group = threadIdx.x % kGroups;
  const int pack = (blockIdx.y * kGossipThreads + threadIdx.x) / kGroups;
  const int vector = pack / packs, column = pack % packs;
  const bool real = pack < all;
  const Packed* v = nullptr;
  Packed* to = nullptr;
#pragma unroll
  for (int i = 0; i < kVectors; ++i)  // a constant index: the pointers stay in registers
    if (i == vector) {
      v = reinterpret_cast<const Packed*>(vectors.from[i]) + column;
      to = reinterpret_cast<Packed*>(vectors.to[i]) + column;
    }
  Packed own = {}, total = {};
  if (real) own = v[static_cast<int64_t>(node) * packs];
  const int64_t at = static_cast<int64_t>(*graph) * n + node;
  const T row_sum = row_sums[at];
  for (int first = group; real && first < n; first += kAhead * kGroups) {
    Packed other[kAhead];
    T weight[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int j = first + i * kGroups;
      weight[i] = j < n && j != node ? matrices[at * n + j] : T(0);
    }
#pragma unroll
    for (int i = 0; i < kAhead; ++i)
      other[i] = v[static_cast<int64_t>(weight[i] != T(0) ? first + i * kGroups : node) * packs];
#pragma unroll
    for (int i = 0; i < kAhead; ++i)
      for (int c = 0; c < kPack; ++c) total.at[c] += weight[i] * (other[i].at[c] - own.at[c]);
  }
#pragma unroll
  for (int step = kGroups / 2; step > 0; step /= 2)
    for (int c = 0; c < kPack; ++c) total.at[c] += __shfl_xor_sync(~0u, total.at[c], step);
  if (real && group == 0) {
    for (int c = 0; c < kPack; ++c) total.at[c] += row_sum * own.at[c];
    to[static_cast<int64_t>(node) * packs] = total;
  }
}

template <typename T, int kPack>
void StartGossip(cudaStream_t stream, const int32_t* graph, const T* matrices, const T* row_sums,
                 const Vectors<T>& vectors, int count, int64_t n, int64_t d) {
  const int packs = static_cast<int>(d / kPack), all = count * packs;
  const dim3 grid(static_cast<unsigned>(n), (all * kGroups + kGossipThreads - 1) / kGossipThreads);
  Gossip<T, kPack><<<grid, kGossipThreads, 0, stream>>>(graph, matrices, row_sums, vectors, packs, all);
}

// ---------------------------------------------------------------- what XLA calls
ffi::Error Outcome() {
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? ffi::Error::Success() : ffi::Error::Internal(cudaGetErrorString(error));
}

template <typename T>
const T* Numbers(const ffi::AnyBuffer& buffer) {
  return reinterpret_cast<const T*>(buffer.untyped_data());
}

const ffi::Error kTypes = ffi::Error::InvalidArgument("adom: numbers of different types");
const ffi::Error kFloats = ffi::Error::InvalidArgument("adom: numbers must be float64 or float32");
const ffi::Error kShapes = ffi::Error::InvalidArgument("adom: shapes beyond the kernel's");

ffi::Error LogisticDense(cudaStream_t stream, ffi::AnyBuffer rows, ffi::AnyBuffer weights, ffi::AnyBuffer x,
                         ffi::Result<ffi::AnyBuffer> out) {
  const ffi::DataType type = out->element_type();
  if (rows.element_type() != type || weights.element_type() != type || x.element_type() != type) return kTypes;
  const auto shape = rows.dimensions();
  const int64_t n = shape[shape.size() - 3], m = shape[shape.size() - 2], d = shape[shape.size() - 1];
  const int64_t count = static_cast<int64_t>(x.element_count());
  if (count == 0) return ffi::Error::Success();
  const int64_t settings = count / (n * d);
  if (static_cast<int64_t>(rows.element_count()) != n * m * d || settings > 65535 || n > INT32_MAX || d > 2048)
    return kShapes;
  auto launch = [&](auto* to) {
    using T = std::remove_pointer_t<decltype(to)>;
    const T *data = Numbers<T>(rows), *weight = Numbers<T>(weights), *point = Numbers<T>(x);
    const int samples = static_cast<int>(m), columns = static_cast<int>(d);
    if (settings > 1 || n > kFewNodes || d > kColumns || m * d > kWhole)
      StartDense<T>(stream, data, weight, point, to, n, samples, columns, settings);
    else if (d <= 20)
      StartAlone<T, 5>(stream, data, weight, point, to, n, samples, columns);
    else if (d <= 40)
      StartAlone<T, 10>(stream, data, weight, point, to, n, samples, columns);
    else
      StartAlone<T, kColumns / 4>(stream, data, weight, point, to, n, samples, columns);
  };
  if (type == ffi::F64)
    launch(reinterpret_cast<double*>(out->untyped_data()));
  else if (type == ffi::F32)
    launch(reinterpret_cast<float*>(out->untyped_data()));
  else
    return kFloats;
  return Outcome();
}

// The same for x of shape (nodes, settings, d).
ffi::Error LogisticMany(cudaStream_t stream, ffi::Buffer<ffi::F64> rows, ffi::Buffer<ffi::F64> weights,
                        ffi::Buffer<ffi::F64> x, ffi::Result<ffi::Buffer<ffi::F64>> out) {
  const auto shape = rows.dimensions(), points = x.dimensions();
  if (x.element_count() == 0) return ffi::Error::Success();
  if (shape.size() != 3 || points.size() != 3 || shape[2] > kColumns || points[1] > INT32_MAX / 4) return kShapes;
  StartMany(stream, rows.typed_data(), weights.typed_data(), x.typed_data(), out->typed_data(), shape[0],
            static_cast<int>(shape[1]), static_cast<int>(shape[2]), static_cast<int>(points[1]));
  return Outcome();
}

template <typename T>
ffi::Error GossipOf(cudaStream_t stream, ffi::Buffer<ffi::S32> graph, ffi::AnyBuffer matrices, ffi::AnyBuffer row_sums,
                    ffi::RemainingArgs from, ffi::RemainingRets to) {
  const int64_t n = matrices.dimensions()[1];
  Vectors<T> vectors = {};
  int64_t d = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    const auto v = from.get<ffi::AnyBuffer>(i);
    auto out = to.get<ffi::AnyBuffer>(i);
    if (v.has_error() || out.has_error() || v->dimensions().size() != 2 || v->dimensions()[0] != n) return kShapes;
    if (v->element_type() != matrices.element_type()) return kTypes;
    if (i > 0 && v->dimensions()[1] != d) return kShapes;
    d = v->dimensions()[1];
    vectors.from[i] = Numbers<T>(*v);
    vectors.to[i] = reinterpret_cast<T*>((*out)->untyped_data());
  }
  if (n == 0 || d == 0) return ffi::Error::Success();
  const int count = static_cast<int>(from.size());
  const T *matrix = Numbers<T>(matrices), *sums = Numbers<T>(row_sums);
  if (d % (16 / sizeof(T)) == 0)
    StartGossip<T, 16 / sizeof(T)>(stream, graph.typed_data(), matrix, sums, vectors, count, n, d);
  else
    StartGossip<T, 1>(stream, graph.typed_data(), matrix, sums, vectors, count, n, d);
  return Outcome();
}

ffi::Error GossipRound(cudaStream_t stream, ffi::Buffer<ffi::S32> graph, ffi::AnyBuffer matrices,
                       ffi::AnyBuffer row_sums, ffi::RemainingArgs from, ffi::RemainingRets to) {
  const ffi::DataType type = matrices.element_type();
  if (from.size() != to.size() || from.size() > kVectors) return kShapes;
  if (row_sums.element_type() != type) return kTypes;
  if (type == ffi::F64) return GossipOf<double>(stream, graph, matrices, row_sums, from, to);
  if (type == ffi::F32) return GossipOf<float>(stream, graph, matrices, row_sums, from, to);
  return kFloats;
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(adom_logistic_dense, LogisticDense,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::PlatformStream<cudaStream_t>>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Ret<ffi::AnyBuffer>(),
                              {xla::ffi::Traits::kCmdBufferCompatible});

XLA_FFI_DEFINE_HANDLER_SYMBOL(adom_logistic_many, LogisticMany,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::PlatformStream<cudaStream_t>>()
                                  .Arg<ffi::Buffer<ffi::F64>>()
                                  .Arg<ffi::Buffer<ffi::F64>>()
                                  .Arg<ffi::Buffer<ffi::F64>>()
                                  .Ret<ffi::Buffer<ffi::F64>>(),
                              {xla::ffi::Traits::kCmdBufferCompatible});

XLA_FFI_DEFINE_HANDLER_SYMBOL(adom_gossip_dense, GossipRound,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::PlatformStream<cudaStream_t>>()
                                  .Arg<ffi::Buffer<ffi::S32>>()
                                  .Arg<ffi::AnyBuffer>()
                                  .Arg<ffi::AnyBuffer>()
                                  .RemainingArgs()
                                  .RemainingRets(),
                              {xla::ffi::Traits::kCmdBufferCompatible});
