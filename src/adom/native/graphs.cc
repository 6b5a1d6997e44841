// Graphs: drawing, sorting and measuring them, in time linear in their size wherever that is possible.
//
//   labels, canonical: components of a graph, and its links in order;
//   rows: the matrix of a graph, row by row;
//   trees, near: the shortest spanning trees of points in the plane, and the pairs closer than a radius;
//   extremes: the smallest positive and the largest eigenvalue of many small Laplacians.
//
// Plain C functions that `adom.native.graphs` calls. They run on one thread and give the same bits for a graph whatever
// others are beside it. Products are not fused with sums, so that distances are rounded as NumPy rounds them.

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace {

// ---------------------------------------------------------------- links

// The representative of a node's component, the smallest node that is known to belong to it.
inline int32_t Root(int32_t* parent, int32_t u) {
  while (parent[u] != u) u = parent[u] = parent[parent[u]];
  return u;
}

// Sort some numbers. There is room to read eight; up to eight are placed by their ranks, without a branch.
inline void Sort(int32_t* first, int64_t count) {
  typedef int32_t Eight __attribute__((vector_size(32)));
  if (count <= 1) return;
  if (count > 8) return std::sort(first, first + count);
  const Eight lane = {0, 1, 2, 3, 4, 5, 6, 7};
  Eight value, rank{};
  std::memcpy(&value, first, sizeof value);
  value = lane < static_cast<int32_t>(count) ? value : Eight{} + std::numeric_limits<int32_t>::max();
  for (int k = 0; k < 8; ++k) {
    const Eight other = Eight{} + value[k];
    rank -= (other < value) | ((other == value) & (lane > k));
  }
  int32_t sorted[8];
  for (int k = 0; k < 8; ++k) sorted[rank[k]] = value[k];
  std::copy(sorted, sorted + count, first);
}

// ---------------------------------------------------------------- points

// 64 bytes: one register of AVX-512; for a smaller machine the compiler takes two or four.
constexpr int kLanes = 8;
typedef double Vec __attribute__((vector_size(8 * kLanes)));
typedef int64_t Whole __attribute__((vector_size(8 * kLanes)));
constexpr double kInfinity = std::numeric_limits<double>::infinity();

inline Vec Load(const double* p) {
  Vec v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline void Store(double* p, Vec v) { std::memcpy(p, &v, sizeof v); }

// The coordinates of a cloud, one after the other instead of in turn, followed by points at infinity.
struct Cloud {
  std::vector<double> x, y;
  explicit Cloud(int64_t nodes) : x(nodes + kLanes, kInfinity), y(nodes + kLanes, kInfinity) {}
  void Read(const double* points, int64_t nodes) {
    for (int64_t i = 0; i < nodes; ++i) x[i] = points[2 * i], y[i] = points[2 * i + 1];
  }
};

// Prim's method. The nodes outside the tree stand in the first places, in any order: their numbers, their points, the
// squares of their distances to the tree, and where that ends.
class Trees {
 public:
  explicit Trees(int64_t nodes)
      : nodes_(nodes), cloud_(nodes), square_(nodes + kLanes), end_(nodes + kLanes), name_(nodes), tree_(nodes - 1) {}

  void Write(const double* points, int32_t* links) {
    cloud_.Read(points, nodes_);
    for (int64_t i = 0; i < nodes_; ++i) name_[i] = static_cast<int32_t>(i);
    std::fill(square_.begin(), square_.end(), kInfinity);
    int64_t nearest = 0;
    for (int64_t outside = nodes_; outside-- > 1;) {
      nearest = Nearest(nearest, outside);
      const int32_t u = name_[nearest], v = static_cast<int32_t>(end_[nearest]);
      tree_[outside - 1] = std::minmax({u, v});
    }
    std::sort(tree_.begin(), tree_.end());
    for (const auto& [u, v] : tree_) *links++ = u, *links++ = v;
  }

 private:
  // Move the node at a place into the tree and the last one to its place; return the nearest of those left.
  int64_t Nearest(int64_t place, int64_t left) {
    const double x = cloud_.x[place], y = cloud_.y[place], name = name_[place];
    for (auto* values : {&cloud_.x, &cloud_.y, &square_, &end_}) {
      (*values)[place] = (*values)[left];
      (*values)[left] = kInfinity;
    }
    name_[place] = name_[left];
    Vec least = Vec{} + kInfinity;
    Whole where{}, here = {0, 1, 2, 3, 4, 5, 6, 7};
    for (int64_t i = 0; i < left; i += kLanes, here += kLanes) {
      const Vec across = x - Load(&cloud_.x[i]), along = y - Load(&cloud_.y[i]);
      const Vec square = across * across + along * along, before = Load(&square_[i]);
      const Whole nearer = square < before;
      const Vec now = nearer ? square : before;
      Store(&square_[i], now);
      Store(&end_[i], nearer ? Vec{} + name : Load(&end_[i]));
      where = now < least ? here : where;
      least = now < least ? now : least;
    }
    int best = 0;
    for (int lane = 1; lane < kLanes; ++lane)
      if (least[lane] < least[best]) best = lane;
    return where[best];
  }

  int64_t nodes_;
  Cloud cloud_;
  std::vector<double> square_, end_;  // numbers of nodes as well, so that all lanes are alike
  std::vector<int32_t> name_;
  std::vector<std::pair<int32_t, int32_t>> tree_;
};

// ---------------------------------------------------------------- eigenvalues
// Eight matrices at a time, one in each lane of a vector, so that nothing is ever summed across lanes.

inline Vec Magnitude(Vec x) { return x > 0.0 ? x : -x; }
inline Vec SquareRoot(Vec x) {
  for (int lane = 0; lane < kLanes; ++lane) x[lane] = std::sqrt(x[lane]);
  return x;
}

// Where row i of a lower triangle begins.
inline int64_t Row(int64_t i) { return i * (i + 1) / 2; }

// Householder's reduction of the lower triangle A to the diagonal d and the entries e beside it, e[i] left of d[i].
// The update A -= v q' + q v' of one step waits for the next, which then passes over the matrix once for both:
// updated, and multiplied by its own vector. `room` has four vectors of n.
void Tridiagonal(Vec* A, int64_t n, Vec* d, Vec* e, Vec* room) {
  Vec *v = room, *q = v + n, *next = q + n, *product = next + n;
  std::fill(v, v + 2 * n, Vec{});
  for (int64_t i = n - 1; i >= 1; --i) {
    const Vec* last = A + Row(i);
    for (int64_t j = 0; j <= i; ++j) next[j] = last[j] - v[i] * q[j] - q[i] * v[j];
    Vec rest{};
    for (int64_t j = 0; j < i - 1; ++j) rest += next[j] * next[j];
    const Vec end = next[i - 1], norm = SquareRoot(end * end + rest);
    const Vec turned = end > 0.0 ? -norm : norm;
    const Whole done = rest == 0.0;  // nothing to reduce
    d[i] = next[i];
    e[i] = done ? end : turned;
    const Vec inverse = done ? Vec{} : 1.0 / (norm * (norm + Magnitude(end)));
    next[i - 1] = end - turned;

    int64_t r = 0;
    for (; r + 1 < i; r += 2) {  // two rows at a time share what they read
      Vec *a = A + Row(r), *b = A + Row(r + 1), sum_a{}, sum_b{};
      const Vec va = v[r], qa = q[r], xa = next[r], vb = v[r + 1], qb = q[r + 1], xb = next[r + 1];
      for (int64_t j = 0; j < r; ++j) {
        const Vec s = a[j] - va * q[j] - qa * v[j], t = b[j] - vb * q[j] - qb * v[j];
        a[j] = s;
        b[j] = t;
        sum_a += s * next[j];
        sum_b += t * next[j];
        product[j] += s * xa + t * xb;
      }
      a[r] -= va * qa + qa * va;
      b[r] -= vb * qa + qb * va;
      b[r + 1] -= vb * qb + qb * vb;
      product[r] = sum_a + a[r] * xa + b[r] * xb;
      product[r + 1] = sum_b + b[r] * xa + b[r + 1] * xb;
    }
    if (r < i) {
      Vec *a = A + Row(r), sum{};
      for (int64_t j = 0; j < r; ++j) {
        a[j] -= v[r] * q[j] + q[r] * v[j];
        sum += a[j] * next[j];
        product[j] += a[j] * next[r];
      }
      a[r] -= v[r] * q[r] + q[r] * v[r];
      product[r] = sum + a[r] * next[r];
    }
    Vec along{};
    for (int64_t j = 0; j < i; ++j) along += next[j] * (product[j] *= inverse);
    along *= 0.5 * inverse;
    for (int64_t j = 0; j < i; ++j) v[j] = next[j], q[j] = product[j] - along * next[j];
  }
  d[0] = A[0] - 2.0 * v[0] * q[0];
}

// Halvings of an interval that holds all eigenvalues: beyond the precision of its ends.
constexpr int kHalvings = 60;

// The second smallest and the largest eigenvalue of tridiagonal matrices, by counting those below a number (Sturm).
void Bisect(const Vec* d, Vec* e, int64_t n, Vec* low, Vec* high) {
  Vec least = d[0], most = d[0], largest{};
  e[0] = Vec{};
  for (int64_t i = 0; i < n; ++i) {  // Gershgorin's circles
    const Vec reach = Magnitude(e[i]) + (i + 1 < n ? Magnitude(e[i + 1]) : Vec{});
    least = d[i] - reach < least ? d[i] - reach : least;
    most = d[i] + reach > most ? d[i] + reach : most;
  }
  for (int64_t i = 0; i < n; ++i) {
    e[i] *= e[i];
    largest = e[i] > largest ? e[i] : largest;
  }
  const Vec tiny = DBL_MIN * (1.0 + largest);  // a pivot of zero is replaced by it
  Vec from[2] = {least, least}, to[2] = {most, most};
  const int64_t wanted[2] = {2, n};
  for (int step = 0; step < kHalvings; ++step) {
    Vec middle[2], pivot[2] = {Vec{} + 1.0, Vec{} + 1.0};
    Whole below[2] = {};
    for (int k = 0; k < 2; ++k) middle[k] = 0.5 * (from[k] + to[k]);
    for (int64_t i = 0; i < n; ++i)
      for (int k = 0; k < 2; ++k) {
        pivot[k] = d[i] - middle[k] - e[i] / pivot[k];
        pivot[k] = Magnitude(pivot[k]) < tiny ? -tiny : pivot[k];
        below[k] -= pivot[k] < 0.0;
      }
    for (int k = 0; k < 2; ++k) {
      const Whole enough = below[k] >= wanted[k];
      to[k] = enough ? middle[k] : to[k];
      from[k] = enough ? from[k] : middle[k];
    }
  }
  *low = 0.5 * (from[0] + to[0]);
  *high = 0.5 * (from[1] + to[1]);
}

}  // namespace

extern "C" {

// Number the components of a graph by their smallest nodes; return how many there are.
int64_t adom_labels(const int32_t* pairs, int64_t count, int64_t nodes, int32_t* labels) {
  int32_t* parent = labels;
  for (int64_t i = 0; i < nodes; ++i) parent[i] = static_cast<int32_t>(i);
  for (int64_t k = 0; k < count; ++k) {
    const int32_t a = Root(parent, pairs[2 * k]), b = Root(parent, pairs[2 * k + 1]);
    if (a < b) parent[b] = a;
    if (b < a) parent[a] = b;
  }
  int32_t components = 0;  // a node's parent comes before it, so it has its label already
  for (int64_t i = 0; i < nodes; ++i) labels[i] = parent[i] == i ? components++ : labels[parent[i]];
  return components;
}

// Write pairs with u < v, each once, sorted; return how many there are.
int64_t adom_canonical(const int32_t* pairs, int64_t count, int64_t nodes, int32_t* links) {
  std::vector<int32_t> start(nodes), upper(count + 8);
  for (int64_t k = 0; k < count; ++k) ++start[std::min(pairs[2 * k], pairs[2 * k + 1])];
  int32_t total = 0;
  for (int64_t u = 0; u < nodes; ++u) total += std::exchange(start[u], total);
  for (int64_t k = 0; k < count; ++k) {
    const auto [u, v] = std::minmax(pairs[2 * k], pairs[2 * k + 1]);
    upper[start[u]++] = v;  // afterwards start[u] is where the next node's begin
  }
  int64_t kept = 0;
  for (int64_t u = 0, first = 0; u < nodes; first = start[u++]) {
    Sort(upper.data() + first, start[u] - first);
    for (int64_t k = first; k < start[u]; ++k)
      if (k == first || upper[k] != upper[k - 1]) {
        links[2 * kept] = static_cast<int32_t>(u);
        links[2 * kept++ + 1] = upper[k];
      }
  }
  return kept;
}

// Write -weight of the sorted links of a graph row by row: entries start[u], ..., start[u + 1] - 1 are node u's, by the
// number of the sender. In a row the smaller neighbours come first, and links arrive there in their order.
void adom_rows(const int32_t* links, int64_t count, const double* weights, int64_t nodes, int32_t* start,
               int32_t* sender, double* share) {
  std::vector<int32_t> place(nodes);  // the next entry of a smaller neighbour
  std::fill(start, start + nodes + 1, 0);
  bool alike = true;
  for (int64_t k = 0; k < count; ++k) {
    ++start[links[2 * k] + 1];
    ++place[links[2 * k + 1]];
    alike &= weights[k] == weights[0];
  }
  for (int64_t u = 0, before = 0; u < nodes; ++u) {
    const int32_t smaller = place[u];
    place[u] = static_cast<int32_t>(before);
    before += smaller + start[u + 1];
    start[u + 1] = static_cast<int32_t>(before);
  }
  if (alike && count) std::fill(share, share + 2 * count, -weights[0]);
  for (int64_t u = 0, k = 0; u < nodes; ++u) {
    int64_t own = place[u];  // all smaller neighbours of u have arrived
    for (; k < count && links[2 * k] == u; ++k, ++own) {
      const int32_t v = links[2 * k + 1], other = place[v]++;
      sender[own] = v;
      sender[other] = static_cast<int32_t>(u);
      if (!alike) share[own] = share[other] = -weights[k];
    }
  }
}

// Write the sorted links of every cloud's shortest spanning tree.
void adom_trees(const double* points, int64_t graphs, int64_t nodes, int32_t* links) {
  Trees trees(nodes);
  for (int64_t g = 0; g < graphs; ++g) trees.Write(points + 2 * g * nodes, links + 2 * g * (nodes - 1));
}

// Write the sorted pairs of every cloud closer than a radius, and its tree's; or, where links is null, only their numbers.
void adom_near(const double* points, int64_t graphs, int64_t nodes, double square, const int32_t* trees, int64_t* sizes,
               int32_t* links) {
  Cloud cloud(nodes);
  std::vector<uint8_t> near(nodes);
  std::vector<int32_t> row(2 * nodes);
  for (int64_t g = 0; g < graphs; ++g) {
    cloud.Read(points + 2 * g * nodes, nodes);
    const int32_t *tree = trees + 2 * g * (nodes - 1), *end = tree + 2 * (nodes - 1);
    int64_t total = 0;
    for (int32_t u = 0; u < nodes; ++u) {
      for (int64_t v = u + 1; v < nodes; ++v) {
        const double across = cloud.x[u] - cloud.x[v], along = cloud.y[u] - cloud.y[v];
        near[v] = across * across + along * along < square;
      }
      for (; tree < end && tree[0] == u; tree += 2) near[tree[1]] = 1;
      int64_t count = 0;
      for (int32_t v = u + 1; v < nodes; ++v) {  // without a branch that nobody could foresee
        row[2 * count] = u;
        row[2 * count + 1] = v;
        count += near[v];
      }
      if (links) links = std::copy(row.data(), row.data() + 2 * count, links);
      total += count;
    }
    if (!links) sizes[g] = total;
  }
}

// Write the second smallest and the largest eigenvalue of every graph's Laplacian.
void adom_extremes(const int32_t* links, const int64_t* offsets, int64_t graphs, const double* weights, int64_t nodes,
                   double* values) {
  std::vector<double> memory((Row(nodes) + 6 * nodes + 1) * kLanes);
  void* aligned = memory.data();
  size_t room = memory.size() * sizeof(double);
  Vec* A = static_cast<Vec*>(std::align(alignof(Vec), sizeof(Vec), aligned, room));
  Vec *d = A + Row(nodes), *e = d + nodes;
  for (int64_t g = 0; g < graphs; g += kLanes) {
    std::fill(A, A + Row(nodes), Vec{});
    for (int lane = 0; lane < kLanes; ++lane) {
      const int64_t one = std::min(g + lane, graphs - 1);
      for (int64_t k = offsets[one]; k < offsets[one + 1]; ++k) {
        const int64_t u = links[2 * k], v = links[2 * k + 1];
        A[Row(v) + u][lane] = -weights[k];
        A[Row(u) + u][lane] += weights[k];
        A[Row(v) + v][lane] += weights[k];
      }
    }
    Tridiagonal(A, nodes, d, e, e + nodes);
    Vec low, high;
    Bisect(d, e, nodes, &low, &high);
    for (int lane = 0; lane < kLanes && g + lane < graphs; ++lane) {
      values[2 * (g + lane)] = low[lane];
      values[2 * (g + lane) + 1] = high[lane];
    }
  }
}
}
