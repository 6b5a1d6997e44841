// The oracles `auto` and `exact` for logistic regression, one node at a time: `newton_steps` and `newton` in
// adom/problems/oracles.py say why each of these steps is taken, and do the same for other problems, all nodes in step.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

constexpr int kLanes = 8;  // sums at a time, so that none waits for another; columns in whole vectors

template <typename T>
T Dot(const T* __restrict a, const T* __restrict b, int64_t d) {
  T lane[kLanes] = {}, sum = 0;
  int64_t i = 0;
  for (; i + kLanes <= d; i += kLanes)
    for (int l = 0; l < kLanes; ++l) lane[l] += a[i + l] * b[i + l];
  for (; i < d; ++i) sum += a[i] * b[i];
  for (T part : lane) sum += part;
  return sum;
}

// s (1 - s) for s = 1 / (1 + e^margin), the same for both signs.
template <typename T>
T Bend(T margin) {
  const T e = std::exp(-std::abs(margin));
  return e / ((1 + e) * (1 + e));
}

// out = sum over the samples of weight * s (1 - s) * row row', s = 1 / (1 + e^margin), plus l2 on the diagonal.
template <typename T>
void DenseHessian(const T* __restrict rows, const T* __restrict weights, const T* __restrict x, T l2, T* __restrict out,
                  int64_t m, int64_t d) {
  constexpr int kTogether = 4;  // samples added at a time: out is read and written once for all of them
  std::fill(out, out + d * d, T(0));
  for (int64_t first = 0; first < m; first += kTogether) {
    const T* row[kTogether];
    T bend[kTogether];
    for (int k = 0; k < kTogether; ++k) {
      const int64_t j = std::min(first + k, m - 1);
      row[k] = rows + j * d;
      bend[k] = first + k < m ? weights[j] * Bend(Dot(row[k], x, d)) : T(0);
    }
    for (int64_t i = 0; i < d; ++i) {
      const T a = bend[0] * row[0][i], b = bend[1] * row[1][i], c = bend[2] * row[2][i], e = bend[3] * row[3][i];
      T* __restrict to = out + i * d;
      for (int64_t j = i / kLanes * kLanes; j < d; ++j)  // the upper half
        to[j] += a * row[0][j] + b * row[1][j] + c * row[2][j] + e * row[3][j];
    }
  }
  for (int64_t i = 0; i < d; ++i) out[i * d + i] += l2;
}

// The same for the samples from `first` to `last` in CSR form.
template <typename T>
void SparseHessian(const T* value, const int32_t* feature, const int32_t* start, const T* weights, const T* x, T l2,
                   T* out, int64_t first, int64_t last, int64_t d) {
  std::fill(out, out + d * d, T(0));
  for (int64_t j = first; j < last; ++j) {
    T margin = 0;
    for (int64_t k = start[j]; k < start[j + 1]; ++k) margin += value[k] * x[feature[k]];
    const T bend = weights[j] * Bend(margin);
    for (int64_t k = start[j]; k < start[j + 1]; ++k) {
      T* to = out + static_cast<int64_t>(feature[k]) * d;
      const T scaled = bend * value[k];
      for (int64_t l = start[j]; l < start[j + 1]; ++l)
        if (feature[l] >= feature[k]) to[feature[l]] += scaled * value[l];
    }
  }
  for (int64_t i = 0; i < d; ++i) out[i * d + i] += l2;
}

// a, of which the upper half is given, becomes Cholesky's factor U, a = U'U; then p = a^{-1} e.
template <typename T>
void CholeskySolve(T* __restrict a, const T* __restrict e, T* __restrict p, int64_t d) {
  std::copy(e, e + d, p);
  for (int64_t k = 0; k < d; ++k) {
    T* __restrict top = a + k * d;
    const T scale = 1 / std::sqrt(top[k]);
    for (int64_t j = k; j < d; ++j) top[j] *= scale;
    p[k] *= scale;
    for (int64_t i = k + 1; i < d; ++i) {
      T* __restrict row = a + i * d;
      const T factor = top[i];
      for (int64_t j = i / kLanes * kLanes; j < d; ++j) row[j] -= factor * top[j];
    }
    for (int64_t j = k + 1; j < d; ++j) p[j] -= p[k] * top[j];
  }
  for (int64_t k = d - 1; k >= 0; --k)
    p[k] = (p[k] - Dot(a + k * d + k + 1, p + k + 1, d - k - 1)) / a[k * d + k];
}

// The rules of the iteration, constants of oracles.py.
struct NewtonRules {
  double accuracy, decay, slow, shortest, near_rounding, system, first, curved;
};

// What a node remembers from round to round, besides x, the last z, and what it knows of its inverse Hessian.
template <typename T>
struct NewtonMemory {
  T *e, *p;
  T contraction, longest;
  int32_t gradients;
};

template <typename T>
T Norm(const T* v, int64_t d) {
  return std::sqrt(Dot(v, v, d));
}

// What a node knows of its inverse Hessian: a matrix, or else its latest `pairs`, (s, y) one after the other, scaled to
// s'y = 1 and followed by the next older one. `Inverse` in adom/problems/oracles.py says more.
template <typename T>
struct Inverse {
  T* kept;
  int64_t pairs, d;  // 0 pairs: a matrix
  T L;
  int32_t learned;

  // out = P v; `room` has one number a pair.
  void Apply(const T* __restrict v, T* __restrict out, T* room) const {
    if (pairs > 0) return ApplyPairs(v, out, room);
    constexpr int kTogether = 4;  // columns added at a time: out is read and written once for all of them
    std::fill(out, out + d, T(0));
    int64_t i = 0;
    for (; i + kTogether <= d; i += kTogether) {
      const T *a = kept + i * d, *b = a + d, *c = b + d, *e = c + d;  // by columns: the matrix is symmetric
      const T p = v[i], q = v[i + 1], r = v[i + 2], s = v[i + 3];
      for (int64_t j = 0; j < d; ++j) out[j] += p * a[j] + q * b[j] + r * c[j] + s * e[j];
    }
    for (; i < d; ++i)
      for (int64_t j = 0; j < d; ++j) out[j] += v[i] * kept[i * d + j];
  }

  void ApplyPairs(const T* __restrict v, T* __restrict out, T* shares) const {
    std::copy(v, v + d, out);
    const int64_t filled = std::min<int64_t>(learned, pairs);
    const auto pair = [&](int64_t age) { return kept + (learned - 1 - age) % pairs * 2 * d; };
    for (int64_t age = 0; age < filled; ++age) {
      const T *s = pair(age), *y = s + d;
      shares[age] = Dot(s, out, d);
      for (int64_t i = 0; i < d; ++i) out[i] -= shares[age] * y[i];
    }
    const T scale = filled > 0 ? 1 / Dot(pair(0) + d, pair(0) + d, d) : 1 / L;
    for (int64_t i = 0; i < d; ++i) out[i] *= scale;
    for (int64_t age = filled - 1; age >= 0; --age) {
      const T *s = pair(age), *y = s + d;
      const T share = shares[age] - Dot(y, out, d);
      for (int64_t i = 0; i < d; ++i) out[i] += share * s[i];
    }
  }

  // Learns from a step s and the change y of the gradient along it; `u` has room for d numbers.
  void Learn(T curved, const T* __restrict s, const T* __restrict y, T* __restrict u) {
    const T curvature = Dot(s, y, d);
    if (!(curvature > curved * std::sqrt(Dot(s, s, d)) * std::sqrt(Dot(y, y, d)))) return;
    ++learned;
    if (pairs > 0) {
      T *to = kept + (learned - 1) % pairs * 2 * d, root = std::sqrt(curvature);
      for (int64_t i = 0; i < d; ++i) to[i] = s[i] / root, to[d + i] = y[i] / root;
      return;
    }
    Apply(y, u, nullptr);
    const T per = 1 / curvature, half = (1 + per * Dot(y, u, d)) / 2;
    for (int64_t i = 0; i < d; ++i) u[i] = per * (half * s[i] - u[i]);
    for (int64_t i = 0; i < d; ++i) {
      T* __restrict row = kept + i * d;
      const T a = u[i], b = s[i];
      for (int64_t j = 0; j < d; ++j) row[j] += a * s[j] + b * u[j];
    }
  }
};

// One node's equation. Samples has Gradient(node, x, out), that of the mean loss without the penalty;
// Hessian(node, x, l2, out), the upper half with it; Bends(node, x, out), a number a sample, with which
// Product(node, bends, v, out) is the Hessian without the penalty times v.
template <typename T, typename Samples>
struct NewtonNode {
  const Samples& samples;
  int64_t node;
  T l2, L;
  int64_t d;

  // e = grad f(x) - z, given the gradient of the loss in e; returns its length.
  T Residual(const T* x, const T* z, T* e) const {
    for (int64_t i = 0; i < d; ++i) e[i] += l2 * x[i] - z[i];
    return Norm(e, d);
  }

  // p = H^{-1} e for the Hessian H at x, until `target` is left of e, by conjugate gradients that `inverse` preconditions
  // and learns from; returns the products taken. `frozen` has room for all pairs, `room` for 5 d numbers, one a pair and
  // one a sample.
  int32_t ConjugateGradients(const NewtonRules& rules, T target, const T* x, const T* e, T* p, Inverse<T>& inverse,
                             T* frozen, T* room) const {
    T *r = room, *q = room + d, *h = room + 2 * d, *y = room + 3 * d, *u = room + 4 * d, *shares = room + 5 * d;
    T* bends = shares + inverse.pairs;
    samples.Bends(node, x, bends);
    std::fill(p, p + d, T(0));
    std::copy(e, e + d, r);
    Inverse<T> before = inverse;
    if (inverse.pairs > 0) {
      std::copy(inverse.kept, inverse.kept + 2 * inverse.pairs * d, frozen);
      before.kept = frozen;
    }
    inverse.Apply(r, q, shares);
    int32_t products = 0;
    for (; products < 10 * d + 100 && Norm(r, d) > target; ++products) {
      samples.Product(node, bends, q, h);
      for (int64_t i = 0; i < d; ++i) h[i] += l2 * q[i];
      const T curvature = Dot(q, h, d), alpha = Dot(r, q, d) / curvature;
      for (int64_t i = 0; i < d; ++i) p[i] += alpha * q[i];
      for (int64_t i = 0; i < d; ++i) r[i] -= alpha * h[i];
      if (inverse.pairs == 0 || products < rules.first) inverse.Learn(rules.curved, q, h, u);
      (inverse.pairs > 0 ? before : inverse).Apply(r, y, shares);
      const T beta = Dot(y, h, d) / curvature;
      for (int64_t i = 0; i < d; ++i) q[i] = y[i] - beta * q[i];
    }
    return products;
  }

  // Moves x towards the solution of grad f(x) = z; e holds the gradient of the loss at x. `room` has 9 d numbers, one a
  // pair and one a sample; `frozen` those of all pairs.
  void Solve(const NewtonRules& rules, const T* z, const T* z_past, T* x, T* e, Inverse<T>& inverse,
             NewtonMemory<T>& past, T* frozen, T* room) const {
    T *p = room, *trial = room + d, *e_trial = room + 2 * d, *other = room + 3 * d, *rest = room + 4 * d;
    T* shares = rest + 5 * d;
    const T slow = rules.slow, accuracy = rules.accuracy;
    T size = Residual(x, z, e);
    for (int64_t i = 0; i < d; ++i) other[i] = z[i] - z_past[i];
    const T rounding = 4 * std::numeric_limits<T>::epsilon() * (size + Norm(z, d) + L * Norm(x, d));
    const T enough = std::max(accuracy * Norm(other, d), rounding);

    for (int64_t i = 0; i < d; ++i) other[i] += e[i];
    const T left = Norm(other, d), before = Norm(past.e, d);  // by the last step, whose gradient is known only now
    const bool known = before > 0;
    T measured = left <= rounding ? T(0) : known ? left / before : slow / 2;
    T contraction = std::max(measured, T(rules.decay) * past.contraction);
    T longest = std::max(known ? Norm(past.p, d) : T(0), T(rules.decay) * past.longest);
    const auto learn = [&](const T* s, const T* y) { inverse.Learn(rules.curved, s, y, rest); };
    if (known && measured > T(rules.system)) {
      for (int64_t i = 0; i < d; ++i) trial[i] = -past.p[i];
      for (int64_t i = 0; i < d; ++i) other[i] -= past.e[i];
      learn(trial, other);
    }

    int32_t gradients = past.gradients + 1;
    inverse.Apply(e, p, shares);
    T length = Norm(p, d), t = 1;
    const auto expected = [&] {
      if (!(longest > 0)) return 2 * slow * size;
      return 2 * std::min(contraction * std::max(T(1), length / longest), slow) * size;
    };
    bool active = expected() > enough, fresh = false, stale = active && measured > slow;
    while (active) {
      if (stale) {
        const T target = std::max(T(rules.system) * size, enough / 4);
        gradients += ConjugateGradients(rules, target, x, e, p, inverse, frozen, rest);
        length = Norm(p, d);
        fresh = true;
      }
      for (int64_t i = 0; i < d; ++i) trial[i] = x[i] - t * p[i];
      samples.Gradient(node, trial, e_trial);
      const T size_trial = Residual(trial, z, e_trial);
      const bool better = size_trial <= (1 - t / 4) * size;
      ++gradients;
      measured = size_trial / size;
      stale = !(measured <= slow) && (better || !fresh);
      if (measured > T(rules.system) && (better || !fresh)) {
        T *s = rest + d, *y = rest + 2 * d;
        for (int64_t i = 0; i < d; ++i) s[i] = trial[i] - x[i];
        for (int64_t i = 0; i < d; ++i) y[i] = e_trial[i] - e[i];
        learn(s, y);
      }
      if (better) {
        contraction = fresh ? slow : std::max(measured, contraction);
        longest = std::max(length, longest);
        std::copy(trial, trial + d, x);
        std::copy(e_trial, e_trial + d, e);
        size = size_trial;
        inverse.Apply(e, p, shares);
        length = Norm(p, d);
        t = 1;
        fresh = false;
        active = expected() > enough;
        stale = stale && active;
      } else {
        t = !fresh ? T(1) : size <= T(rules.near_rounding) * rounding ? T(0) : t / 2;
        active = t > T(rules.shortest);
      }
    }
    // One more step costs no gradient, but must not only stir rounding.
    const bool safe = contraction <= slow && size > rounding;
    if (safe)
      for (int64_t i = 0; i < d; ++i) x[i] -= p[i];
    for (int64_t i = 0; i < d; ++i) past.e[i] = safe ? e[i] : T(0);
    std::copy(p, p + d, past.p);
    past.contraction = contraction, past.longest = longest, past.gradients = gradients;
  }

  // Solves grad f(x) = z to rounding, starting at x, and returns the gradients that this took; e holds the gradient of
  // the loss at x, `matrix` has room for d d numbers, `room` for 3 d. The limits are constants of newton.py.
  int32_t SolveExactly(int64_t iterations, int64_t halvings, const T* z, T* x, T* e, T* matrix, T* room) const {
    T *p = room, *trial = room + d, *e_trial = room + 2 * d;
    const T ulp = std::numeric_limits<T>::epsilon();
    std::fill(trial, trial + d, T(0));
    samples.Gradient(node, trial, e_trial);
    const T cancelling = (Norm(z, d) + Norm(e_trial, d)) / L;
    T before = Residual(x, z, e);
    int32_t gradients = 1;
    bool done = before == 0;
    for (int64_t k = 0; k < iterations && !done; ++k) {
      samples.Hessian(node, x, l2, matrix);
      CholeskySolve<T>(matrix, e, p, d);
      gradients += d;  // a Hessian, column by column
      const T length = Norm(p, d), size = Norm(x, d) + cancelling;
      // If such a short step, or one from such a small gradient, does not help, rounding is why: none will.
      const bool hopeless = length <= std::sqrt(ulp) * size || before <= ulp * L * size;
      bool accepted = false;
      T t = 1;
      for (int64_t h = 0; h < halvings && !accepted; ++h, t /= 2) {
        for (int64_t i = 0; i < d; ++i) trial[i] = x[i] - t * p[i];
        samples.Gradient(node, trial, e_trial);
        const T after = Residual(trial, z, e_trial);
        ++gradients;
        accepted = after <= (1 - t / 4) * before;
        if (accepted) {
          std::copy(trial, trial + d, x);
          std::copy(e_trial, e_trial + d, e);
          before = after;
        }
        if (hopeless) break;
      }
      done = !accepted || length <= ulp * size;
    }
    return gradients;
  }
};
