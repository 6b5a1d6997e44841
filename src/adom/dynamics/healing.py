"""Healing: the parts of its state that a method conserves, and ledgers on every link that restore them after loss.

Given its gradients, every method here is linear: a node's next state is A state + B gradients + C exchanges. An
exchange is what gossip of one vector subtracts from the node's own row, the sum over its links of w_ij (v_i - v_j).
Some parts of the state, L state, do not depend on gradients: L A = A_L L and L B = 0. In ADOM and ADOM+ they are z and
z_f; in gradient tracking s - grad F, the tracked sum less the gradients. Exactness needs their sum over all nodes to
be zero. It starts at zero, and stays there as long as the two ends of a link make opposite exchanges. If one end misses
a message, the sum remains wrong, and the run ends at a wrong point.

So each end of a link keeps a ledger entry, the part of L state that came over that link. It follows the same recursion,
entry' = A_L entry + L C exchange, even if parameters change during the run, and a node's L state is the sum of its
entries. The end with the smaller name owns the link and sends its entry with its messages. When the other end hears
them, it replaces its own entry by minus the owner's, and adds the difference to its state. Thus

- after a message is lost one way, the ends differ until the owner is heard again;
- when a node leaves, its neighbours subtract its entries from their states, so the remaining sum is zero again;
- a node that joins, or returns without memory, starts without entries, as all nodes did;
- parts that do depend on gradients need no ledger: the method itself corrects them.

A method that is not linear, such as Newton's, has all that came over its links in one field, `exchanged`.

Such ledgers are those of flow updating (Jesus, Baquero, Almeida 2009); docs/loss.md names it and other forebears.

The arithmetic works on NumPy and JAX arrays, for the rows of a simulation and for a single agent.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ..algorithms import Constants, Method
from ..algorithms.base import Averaging, Turn
from ..errors import InputError

Array = Any
ROUNDING, DECADES = 1e-14, 9
"""Relative size below which a coupling counts as rounding, and the number of such bounds tried, tenfold each time."""
USUAL = Constants(mu=1.0, L=7.0, lambda_min_plus=1 / 9, lambda_max=1.0)
NEAR = 1e-11
"""Distance at which an entry of a basis counts as a whole number."""


class Healing(NamedTuple):
    """The conserved parts of a method; the last axis of each array is columns, or 1 if all are alike."""

    kept: Array  # (parts, fields, columns): L
    onward: Array  # (parts, parts, columns): A_L
    taken: Array  # (parts, vectors, columns): L C
    lift: Array  # (fields, parts, columns): the change of state for a change of L state

    @property
    def parts(self) -> int:
        """The number of conserved vectors; 0 for a method that conserves none."""
        return int(self.kept.shape[0])

    def of(self, state: Any) -> Array:
        """Return L state, (rows, parts, columns)."""
        return _times(self.kept, _stacked(state))

    def fields(self, entries: Array) -> Array:
        """Return fields (rows, fields, columns) of a state whose L state is `entries` (rows, parts, columns)."""
        inverse = np.linalg.pinv(np.moveaxis(np.asarray(self.kept), -1, 0))
        return _times(np.moveaxis(inverse, 0, -1), entries)

    def after(self, entry: Array, exchange: Array) -> Array:
        """Return entries (..., parts, columns) after a step with exchanges (..., vectors, columns).

        The exchange is zero at an end that has not heard the other.
        """
        return _times(self.onward, entry) + _times(self.taken, exchange)

    def change(self, state: Any, difference: Array) -> Any:
        """Return the state changed so that L state grows by `difference` (rows, parts, columns)."""
        changed = _stacked(state) + _times(self.lift, difference)
        return _filled(state, [changed[:, i] for i in range(changed.shape[1])])


def healing(method: Method, lambda_max: float = 1.0, remedy: str = "NIDS") -> Healing:
    """Return the conserved parts of a method, found by steps from unit vectors.

    Its parameters may be arrays with one value per column. `lambda_max` is that of the network's W. `remedy` names a
    method to recommend if this one has no rule.

    Examples
    --------
    >>> from adom.algorithms import Constants, method_class
    >>> constants = Constants(mu=1.0, L=10.0, lambda_min_plus=0.1)
    >>> healing(method_class("adom").unit(constants)).kept[..., 0]  # z and z_f of z, z_f, m
    array([[1., 0., 0.],
           [0., 1., 0.]])
    >>> healing(method_class("diging").unit(constants)).kept[..., 0]  # s - g of x, s, g
    array([[ 0.,  1., -1.]])
    >>> healing(method_class("apm").unit(constants)).parts
    0
    """
    state: Any = method.init(np.zeros((1, 1)), _Probe(lambda_max))
    if _declared(state):
        one = np.ones((1, 1, 1))
        return Healing(kept=one, onward=one, taken=-one, lift=one)
    inputs, ends = _linear(method, lambda_max, remedy)
    A, B, C = np.split(inputs, ends, axis=2)
    _, first, alike = np.unique(np.swapaxes(inputs, 0, 1), axis=0, return_index=True, return_inverse=True)
    cls: Any = type(method)
    parts = _usual_parts(cls)
    each = [_conserved(A[:, c], B[:, c], C[:, c], parts) for c in first]
    return Healing(*(np.stack(arrays, axis=-1)[..., alike.reshape(-1)] for arrays in zip(*each, strict=True)))


class Holding(NamedTuple):
    """How a node's answer stays where it is while something jumps; for the first column of a method.

    A node tilts its function: it takes f(x) - t'x for f(x), which changes the gradient at x by -t.
    """

    rest: Array  # (fields,): the state at rest at x = 1, with the gradient tilted to zero there
    change: Array  # (fields, parts): of the state, for a change of L state
    tilt: Array  # (parts,): of the function, for that change
    matched: Array  # (fields, vectors): the change that moves the vectors sent, but neither the answer nor L state


def holding(method: Method) -> Holding:
    """Return how a node holds its answer while its conserved parts change, and how it joins others at their answer.

    Examples
    --------
    >>> from adom.algorithms import Constants, method_class
    >>> held = holding(method_class("diging").unit(Constants(mu=1.0, L=10.0, lambda_min_plus=0.1)))
    >>> held.rest.round(9) + 0.0, held.tilt.round(9)  # of x, s, g: s - g grows by one if the gradient falls by one
    (array([1., 0., 0.]), array([1.]))
    """
    probe, inputs, (fields, end) = _probed(method)
    step, B = inputs[:, 0, :fields], inputs[:, 0, fields:end].sum(axis=1)
    L = healing(method).kept[..., 0]
    points, sent = (np.stack(each)[..., 0][:, :fields] for each in (probe.points, probe.sent))
    primal = method.oracle != "dual"
    seen = np.abs(np.vstack([step * (1 - np.eye(fields)), points, L])).max(axis=0) > 0
    moves = (np.eye(fields) - step)[seen]  # a field that only others' exchanges see, such as ADOM's m, may drift
    still = np.vstack([moves, points, L])
    rest = np.linalg.lstsq(still, np.repeat([0.0, primal, 0.0], [len(moves), len(points), len(L)]), rcond=None)[0]
    held = np.vstack(
        [
            np.column_stack([moves, primal * B[seen]]),
            np.column_stack([points, np.full(len(points), float(not primal))]),
            np.column_stack([L, np.zeros(len(L))]),
        ]
    )
    jumps = np.vstack([np.zeros((len(held) - len(L), len(L))), np.eye(len(L))])
    found = np.linalg.lstsq(held, jumps, rcond=None)[0]
    change = found[:-1] + np.linalg.pinv(L) @ (np.eye(len(L)) - L @ found[:-1])
    fixed = np.vstack([points, L])
    loose = np.eye(fields) - np.linalg.pinv(fixed) @ fixed
    shown, most = sent @ loose, max(np.abs(sent).max(initial=0.0), 1.0)
    matched = loose @ np.linalg.pinv(np.where(np.abs(shown) > NEAR * most, shown, 0.0))
    return Holding(rest, change, found[-1], matched)


def _linear(method: Method, lambda_max: float = 1.0, remedy: str = "") -> tuple[Array, list[int]]:
    """Return a step as A, B and C side by side, (fields, columns, inputs), and where B and C begin."""
    _, inputs, ends = _probed(method, lambda_max, remedy)
    return inputs, ends


def _probed(method: Method, lambda_max: float = 1.0, remedy: str = "") -> tuple["_Probe", Array, list[int]]:
    """Return what a step from unit vectors asked and sent, and what `_linear` returns."""
    count = _Probe(lambda_max, title=method.title, remedy=remedy)
    state: Any = method.init(np.zeros((1, 1)), count)
    count.oracle = count.network = 0
    method.step(state, count, count)
    fields = sum(np.ndim(f) == 2 for f in state)
    units = np.eye(fields + count.oracle + count.network)[:, :, None]
    own, gradients, exchanges = np.split(units, [fields, fields + count.oracle])
    probe = _Probe(lambda_max, gradients, exchanges, method.title)
    after, _ = method.step(_filled(state, own), probe, probe)
    return probe, np.moveaxis(_stacked(after), 0, 2), [fields, fields + count.oracle]


@cache
def _usual_parts(cls: Any) -> int | None:
    """Return how many vectors a method conserves at ordinary parameters; None if it has no ``unit``.

    At extreme parameters, rounding can hide the effect of gradients or feign one.
    """
    try:
        inputs, ends = _linear(cls.unit(USUAL))
    except NotImplementedError:
        return None
    A, B, _ = np.split(inputs[:, 0], ends, axis=1)
    return len(_untouched(A, B, ROUNDING))


def _reach(A: Array, B: Array) -> Array:
    """Return how far gradients of unit size move each field, in as many steps as there are fields; 1 if not at all."""
    moved = np.abs(B).max(axis=1)
    for _ in A:
        moved = np.maximum(moved, np.abs(A) @ moved)
    return np.where(moved > 0, moved, 1.0)


class _Probe(Averaging):
    """Oracle and network in one, which answers with given unit vectors, or with zeros that it counts."""

    def __init__(
        self,
        lambda_max: float,
        gradients: Array = None,
        exchanges: Array = None,
        title: str = "a method",
        remedy: str = "",
    ) -> None:
        self.lambda_max, self._gradients, self._exchanges = lambda_max, gradients, exchanges
        self._title, self._remedy = title, remedy
        self.oracle = self.network = 0  # answers so far
        self.points: list[Array] = []
        self.sent: list[Array] = []

    def gradient(self, x: Array) -> Array:
        self.oracle += 1
        self.points.append(x)
        return 0 * x if self._gradients is None else self._gradients[self.oracle - 1]

    dual_gradient = gradient

    def hessian(self, x: Array) -> Array:
        return 0 * x[..., None]

    def _exchange(self, v: Array) -> Array:
        self.network += 1
        self.sent.append(v)
        return 0 * v if self._exchanges is None else self._exchanges[self.network - 1]

    def __call__(self, *vectors: Array) -> Any:
        taken = tuple(map(self._exchange, vectors))
        return taken[0] if len(vectors) == 1 else taken

    def repeat(self, rounds: Any, turn: Turn, carried: Any) -> Any:
        return turn(self, carried)  # an exchange is then that of all these rounds

    def windows(self, rounds: Any) -> Any:
        return self  # likewise

    def accelerated(self, v: Array, rounds: Any, chi: Any) -> Array:
        raise InputError(
            f"{self._title} accelerates its averaging, which needs links that carry every message, whole and at once; "
            f"take e.g. {self._remedy}, which does not"
        )

    def push(self, *vectors: Array) -> Any:
        return tuple(v - self._exchange(v) for v in vectors)

    def push_pull(self, pulled: Array, pushed: Array) -> tuple[Array, Array]:
        return pulled - self._exchange(pulled), pushed - self._exchange(pushed)

    def project(self, v: Array) -> Array:
        raise InputError(
            f"{self._title} uses full averaging, which cannot run on imperfect links; take e.g. {self._remedy}"
        )


def _conserved(A: Array, B: Array, C: Array, parts: int | None) -> tuple[Array, Array, Array, Array]:
    """Return L, A_L, L C and the lift for one column, with `parts` parts if that number is known."""
    if all(np.isfinite(part).all() for part in (A, B, C)):
        # Scale each field by how far gradients move it: a step can be smaller than the rounding of other fields.
        units = _reach(A, B)
        scaled = A * (units / units[:, None]), B / units[:, None]
        found = [_untouched(*scaled, ROUNDING * 10.0**power) for power in range(DECADES)]
        rows, pivots = _reduced(next((rows for rows in found if len(rows) == parts), found[0]))
        L = _whole(rows / units * units[pivots, None])
    else:  # a step that is not finite conserves nothing
        L, pivots = np.zeros((parts or 0, len(A))), [0] * (parts or 0)
    steps = np.nan_to_num(C / np.maximum(np.abs(C).max(axis=0), 1e-300))
    reach = L @ steps
    # If exchanges reach all of L state, a difference is applied like a late exchange: in ADOM, to z and to m.
    late = len(L) and np.linalg.matrix_rank(reach, tol=NEAR) == len(L)
    lift = steps @ np.linalg.pinv(reach) if late else np.linalg.pinv(L)
    return L, (L @ A)[:, pivots], L @ C, lift


def _untouched(A: Array, B: Array, rounding: float) -> Array:
    """Return a basis of the rows L that gradients never touch: L is orthogonal to B, A B, A A B, ..."""
    reached: list[Array] = []
    waiting = [(v, np.linalg.norm(v)) for v in B.T]
    while waiting:
        v, size = waiting.pop(0)
        for q in (*reached, *reached):  # twice, against rounding
            v = v - (q @ v) * q
        left = np.linalg.norm(v)
        if left > rounding * size:
            reached.append(v / left)
            waiting.append((A @ reached[-1], np.linalg.norm(np.abs(A) @ np.abs(reached[-1]))))
    return np.linalg.svd(np.array(reached).reshape(-1, len(A)))[2][len(reached) :]


def _reduced(rows: Array) -> tuple[Array, list[int]]:
    """Return the reduced row echelon form of a basis, which depends only on its span, and the pivot columns."""
    pivots: list[int] = []
    for at in range(len(rows)):
        column = int(np.argmax(np.abs(rows[at:]).max(axis=0) > NEAR))
        best = at + int(np.argmax(np.abs(rows[at:, column])))
        rows[[at, best]] = rows[[best, at]]
        rows[at] /= rows[at, column]
        others = np.arange(len(rows)) != at
        rows[others] -= np.outer(rows[others, column], rows[at])
        pivots.append(column)
    return _whole(rows), pivots


def _whole(rows: Array) -> Array:
    """Return numbers, rounded where they are nearly whole."""
    whole = rows.round() + 0.0
    return np.where(np.abs(rows - whole) < NEAR, whole, rows)


def _stacked(state: Any) -> Array:
    """Return the arrays of a state stacked, (rows, fields, columns)."""
    fields = [state.exchanged] if _declared(state) else [f for f in state if np.ndim(f) == 2]
    library = fields[0].__array_namespace__()  # NumPy, or JAX
    return library.stack(library.broadcast_arrays(*fields), axis=1)


def _filled(state: Any, arrays: Any) -> Any:
    """Return a state with its arrays replaced; other parts, such as a count of steps, stay."""
    if _declared(state):
        return state._replace(exchanged=next(iter(arrays)))
    rest = iter(arrays)
    return state._make(next(rest) if np.ndim(f) == 2 else f for f in state)


def _declared(state: Any) -> bool:
    """Return whether a state says itself which of its fields is conserved."""
    return hasattr(state, "exchanged")


def _times(matrix: Array, vectors: Array) -> Array:
    """Return the product of (m, k, columns) and (..., k, columns), column by column."""
    return (matrix * vectors[..., None, :, :]).sum(axis=-2)
