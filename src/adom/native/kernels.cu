// The gradient of the mean logistic loss at every node, for an NVIDIA GPU: the data is read from its memory once,
// and nothing but the gradient is written.
//
// A block of threads takes the samples of some nodes into its shared memory. Then a thread takes a sample and sums up
// its margin, and then a thread takes a column and sums up its part of the gradient.

#include <cuda_pipeline.h>

#include <cstdint>

#include "cuda_runtime.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace {

constexpr int kThreads = 128;           // of a block
constexpr int kShared = 24 * 1024;      // bytes of its shared memory: many small blocks hide each other's waiting
constexpr int kMostShared = 48 * 1024;  // what a block may take where a node needs more

template <typename T>
__device__ T Slope(T weight, T margin) {
  return -weight / (T(1) + exp(margin));
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
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
}

// A block takes `nodes` nodes and `samples` of their samples at a time; if `nodes` > 1, then all samples at once.
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

// ---------------------------------------------------------------- what XLA calls
template <typename T>
void Start(cudaStream_t stream, const T* rows, const T* weights, const T* x, T* out, int64_t n, int m, int d,
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

template <typename T>
ffi::Error Launch(cudaStream_t stream, ffi::AnyBuffer rows, ffi::AnyBuffer weights, ffi::AnyBuffer x, void* out) {
  const auto shape = rows.dimensions();
  const int64_t n = shape[shape.size() - 3], m = shape[shape.size() - 2], d = shape[shape.size() - 1];
  const int64_t count = static_cast<int64_t>(x.element_count());
  if (count == 0) return ffi::Error::Success();
  const int64_t settings = count / (n * d);
  if (static_cast<int64_t>(rows.element_count()) != n * m * d || settings > 65535 || n > INT32_MAX || d > 2048)
    return ffi::Error::InvalidArgument("adom: shapes beyond the kernel's");
  const T* from = reinterpret_cast<const T*>(rows.untyped_data());
  const T* weight = reinterpret_cast<const T*>(weights.untyped_data());
  const T* point = reinterpret_cast<const T*>(x.untyped_data());
  T* to = reinterpret_cast<T*>(out);
  Start<T>(stream, from, weight, point, to, n, static_cast<int>(m), static_cast<int>(d), settings);
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? ffi::Error::Success() : ffi::Error::Internal(cudaGetErrorString(error));
}

ffi::Error LogisticDense(cudaStream_t stream, ffi::AnyBuffer rows, ffi::AnyBuffer weights, ffi::AnyBuffer x,
                         ffi::Result<ffi::AnyBuffer> out) {
  const ffi::DataType type = out->element_type();
  if (rows.element_type() != type || weights.element_type() != type || x.element_type() != type)
    return ffi::Error::InvalidArgument("adom: numbers of different types");
  if (type == ffi::F64) return Launch<double>(stream, rows, weights, x, out->untyped_data());
  if (type == ffi::F32) return Launch<float>(stream, rows, weights, x, out->untyped_data());
  return ffi::Error::InvalidArgument("adom: numbers must be float64 or float32");
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
