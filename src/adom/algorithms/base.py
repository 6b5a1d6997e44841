"""Base of all methods: the constants they are built from and their contract with an engine.

A method is a frozen dataclass of hyper-parameters with two constructors, `Method.theory` and `Method.unit`,
and two pure functions, `Method.init` and `Method.step`. A step is only arithmetic on arrays of shape
(rows, dim), one row per node. So JAX can trace it, a sweep can batch it over settings, and a process can
run it on its own block of nodes. Everything with a cost or a memory (gradients, messages, the network's
clock) reaches the step through two arguments that the engine owns: an `Oracle` and a `Gossip`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from inspect import signature
from math import ceil, log, sqrt
from typing import Any, ClassVar, Literal, Protocol, Self, TypeAlias

from ..errors import InputError, shown

Array: TypeAlias = Any  # (rows, dim), of the array library of the engine
Number: TypeAlias = Any  # a float, or an array of floats: one per setting of a batch
Turn: TypeAlias = Callable[[Any, Any], Any]  # takes a network and what is carried; returns what is carried on

NEEDS = {
    "fixed": "networks that do not change",
    "connected": "graphs that are connected in every round",
    "windows": "graphs that are connected together over windows of rounds",
    "complete": "full averaging in every round",
}
"""What a method's proof requires of the network: the value of `Method.needs`, and its meaning."""


class Oracle(Protocol):
    """The local functions f_i of the rows that this process holds; the engine counts every call."""

    def gradient(self, x: Array) -> Array:
        """Return grad F(x): row i is the gradient of f_i at x_i."""
        ...

    def dual_gradient(self, z: Array) -> Array:
        """Return grad F*(z): row i is the x that solves grad f_i(x) = z_i (or an estimate of it)."""
        ...


class CurvedOracle(Oracle, Protocol):
    """An oracle with Hessians, of which only some rows may be asked."""

    def gradient(self, x: Array, where: Array | None = None) -> Array:
        """Return grad F(x); with `where`, (rows,) of booleans, only those rows are right, and counted."""
        ...

    def hessian(self, x: Array, where: Array | None = None) -> Array:
        """Return the Hessians, (rows, dim, dim): row i is that of f_i at x_i. Each counts as dim gradients."""
        ...

    def each(self, function: Callable[..., Array], *arrays: Array) -> Array:
        """Return the function of each row of the arrays, one row after the other."""
        ...

    def model_minimum(self, H: Array, b: Array, start: Array) -> Array:
        """Return the x that minimise x'Hx / 2 - b'x plus the penalty that all nodes share, if there is one."""
        ...


class Gossip(Protocol):
    """The network; the engine counts every round and advances the network's clock."""

    def __call__(self, *vectors: Array) -> Any:
        """Spend one round: return W(k) v for every vector v (for one vector an array, not a tuple)."""
        ...

    def average(self, *vectors: Array) -> Any:
        """Spend one round: return M(k) v for every vector v, with M = I - W / lambda_max."""
        ...

    def mix(self, v: Array, rounds: Any) -> Array:
        """Spend `rounds` rounds of averaging, each v <- M(k) v."""
        ...

    def accelerated(self, v: Array, rounds: Any, chi: Any) -> Array:
        """Spend `rounds` rounds of Chebyshev averaging for a W of `chi`; return P(W) v, the part of v they remove."""
        ...

    def windows(self, rounds: Any) -> Any:
        """Return a network whose rounds are each `rounds` rounds of this one."""
        ...

    def push(self, *vectors: Array) -> Any:
        """Spend one round: return C(k) v for every vector v, with C(k) column-stochastic on a directed graph."""
        ...

    def push_pull(self, pulled: Array, pushed: Array) -> tuple[Array, Array]:
        """Spend one round: return R(k) pulled and C(k) pushed; R(k) is row-stochastic, C(k) column-stochastic."""
        ...

    def project(self, v: Array) -> Array:
        """Return P v = v - mean(v), the full averaging that only an ideal network does in one round."""
        ...


class Averaging:
    """All that a step may ask of a `Gossip`, built from W(k) v and `repeat`, which each kind of network writes.

    `push_pull`, `push` and `project` are for networks that have them.
    """

    lambda_max: Any

    def __call__(self, *vectors: Array) -> Any:
        """Spend one round: return W(k) v for every vector v given."""
        raise NotImplementedError

    def repeat(self, rounds: Any, turn: Turn, carried: Any) -> Any:
        """Return `carried` after `rounds` calls ``carried = turn(network, carried)``."""
        for _ in range(int(rounds)):
            carried = turn(self, carried)
        return carried

    def average(self, *vectors: Array) -> Any:
        """Spend one round of averaging: M(k) v = v - W(k) v / lambda_max for every vector."""
        differences = self(*vectors)
        if len(vectors) == 1:
            return vectors[0] - differences / self.lambda_max
        return tuple(v - w / self.lambda_max for v, w in zip(vectors, differences, strict=True))

    def mix(self, v: Array, rounds: Any) -> Array:
        """Spend `rounds` rounds of averaging."""
        return self.repeat(rounds, lambda network, v: network.average(v), v)

    def averaged_out(self, rounds: Any, *vectors: Array) -> tuple[Array, ...]:
        """Spend `rounds` rounds of averaging; return what they subtract from every vector.

        The result is accumulated from differences between rows, so its rows sum to zero, as those of W(k) v do.
        """

        def turn(network: Any, taken: Any) -> Any:
            products = network(*(v - t for v, t in zip(vectors, taken, strict=True)))
            products = (products,) if len(vectors) == 1 else products
            return tuple(t + p / self.lambda_max for t, p in zip(taken, products, strict=True))

        done: tuple[Array, ...] = self.repeat(rounds, turn, tuple(map(_zeros, vectors)))
        return done

    def accelerated(self, v: Array, rounds: Any, chi: Any) -> Array:
        """Spend `rounds` rounds of Chebyshev's averaging; return what they subtract from v.

        The result is P(W) v with P(W) = I - T(c (I - d W)) / T(c), where T is the polynomial of degree `rounds`,
        c = (chi + 1) / (chi - 1) and d = 2 chi / ((chi + 1) lambda_max).
        """
        rho = (chi - 1) / (chi + 1)

        def turn(network: Any, carried: Any) -> Any:
            omega, last, taken, before = carried
            step = (1 + rho) / self.lambda_max * network(v - taken)
            further = before + omega * (taken - before + step)  # one product: a sum of two may be rounded in two ways
            ahead = 1 / (1 - rho**2 * last / 4)
            return ahead, ahead, further, taken

        one = 1 + 0 * rho
        return self.repeat(rounds, turn, (one, 2 * one, _zeros(v), _zeros(v)))[2]

    def windows(self, rounds: Any) -> "Windows":
        """Return a network whose rounds each take `rounds` rounds of this one."""
        return Windows(self, rounds)


def _zeros(v: Array) -> Array:
    return v.__array_namespace__().zeros_like(v)  # NumPy's, or JAX's


class Windows(Averaging):
    """A network whose rounds are each a window of rounds of another network."""

    def __init__(self, network: Any, rounds: Any) -> None:
        self._network, self._rounds, self.lambda_max = network, rounds, network.lambda_max

    def __call__(self, *vectors: Array) -> Any:
        """Spend a window of rounds: return lambda_max times what averaging subtracts."""
        taken = tuple(self.lambda_max * t for t in self._network.averaged_out(self._rounds, *vectors))
        return taken[0] if len(vectors) == 1 else taken

    def repeat(self, rounds: Any, turn: Turn, carried: Any) -> Any:
        """Return `carried` after `rounds` calls ``carried = turn(network, carried)`` on windows."""
        return self._network.repeat(rounds, lambda inner, c: turn(Windows(inner, self._rounds), c), carried)

    def average(self, *vectors: Array) -> Any:
        """Spend a window of rounds of averaging."""
        taken = self._network.averaged_out(self._rounds, *vectors)
        left = tuple(v - t for v, t in zip(vectors, taken, strict=True))
        return left[0] if len(vectors) == 1 else left

    def mix(self, v: Array, rounds: Any) -> Array:
        """Spend `rounds` windows of averaging."""
        return self._network.mix(v, rounds * self._rounds)

    def windows(self, rounds: Any) -> "Windows":
        """Return a network whose rounds are each `rounds` windows."""
        return Windows(self._network, rounds * self._rounds)

    def project(self, v: Array) -> Array:
        """Spend one round of full averaging."""
        return self._network.project(v)


@dataclass(frozen=True)
class Constants:
    """Constants that a theorem may use: the functions' mu and L, the network's spectrum and size.

    For a directed network, `least_weight` is the smallest push-sum weight of any node in any round, if all start at 1.

    Examples
    --------
    >>> Constants(mu=1.0, L=100.0, lambda_min_plus=0.1, lambda_max=1.0, nodes=20).chi
    10.0
    """

    mu: float
    L: float
    lambda_min_plus: float = 1.0
    lambda_max: float = 1.0
    nodes: int = 1
    least_weight: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.mu <= self.L < float("inf"):
            raise InputError(
                f"mu and L must satisfy 0 < mu <= L < inf, got mu={self.mu!r}, L={self.L!r}; "
                "they are the strong convexity and the smoothness of every f_i"
            )
        if not 0 < self.lambda_min_plus <= self.lambda_max < float("inf"):
            raise InputError(
                "the spectrum must satisfy 0 < lambda_min_plus <= lambda_max < inf, got "
                f"{self.lambda_min_plus!r} and {self.lambda_max!r}; every connected network has one"
            )

    @property
    def kappa(self) -> float:
        """The condition number L / mu of the functions."""
        return self.L / self.mu

    @property
    def chi(self) -> float:
        """The condition number lambda_max / lambda_min_plus of the network."""
        return self.lambda_max / self.lambda_min_plus


def least_chi(constants: Constants) -> float:
    """Return the chi below which Nesterov's method on the dual may diverge with ADOM's formulas without their 7s.

    On the complete graph ADOM is Nesterov's method, whose analysis requires tau eta / mu <= 1 - tau. With
    tau = sqrt(mu / L) / chi and eta = 2 sqrt(mu L) / chi this is chi^2 >= 2 + chi sqrt(mu / L).

    Examples
    --------
    >>> least_chi(Constants(mu=1.0, L=1.0)), round(least_chi(Constants(mu=1.0, L=1e12)), 3)
    (2.0, 1.414)
    """
    q = sqrt(1 / constants.kappa)
    return (q + sqrt(q * q + 8)) / 2


def small_gain_step(J: float, chi: float, mu: float) -> float:
    """Return the step size of the small-gain theorem behind DIGing and PANDA, if a round contracts by 1 - 1 / chi."""
    d = 1 - 1 / chi
    # gap = sqrt(J^2 + (1 - d^2) J) - d J, without cancellation for d near 1
    root = sqrt(J * J + (1 - d * d) * J)
    gap = (J * J * (1 - d * d) + (1 - d * d) * J) / (root + d * J)
    return 1.5 * gap**2 / (mu * J * (J + 1) ** 2)


def chebyshev_bound(chi: float, rounds: int) -> float:
    """Return c such that the eigenvalues of P(W) off consensus lie in [1 - c, 1 + c] (`Gossip.accelerated`).

    Examples
    --------
    >>> chebyshev_bound(1.0, 1), round(chebyshev_bound(100.0, 10), 3)
    (0.0, 0.264)
    """
    c = ((sqrt(chi) - 1) / (sqrt(chi) + 1)) ** rounds
    return 2 * c / (1 + c * c)


def halving(constants: Constants) -> tuple[Constants, int]:
    """Return the constants of a network whose rounds are windows of T = ceil(chi ln 2) rounds, and T.

    T rounds halve all disagreement, so the new constants have chi = 2.

    Examples
    --------
    >>> easier, T = halving(Constants(mu=1.0, L=10.0, lambda_min_plus=0.01))
    >>> easier.chi, T
    (2.0, 70)
    """
    T = max(1, ceil(constants.chi * log(2)))
    return replace(constants, lambda_min_plus=constants.lambda_max / 2), T


def ceiling(v: Number) -> Number:
    """Return v rounded up, for a float or an array of any library.

    Examples
    --------
    >>> ceiling(2.0), ceiling(2.1)
    (2.0, 3.0)
    """
    return -(-v // 1)


def at_least(least: float, v: Number) -> Number:
    """Return max(least, v), for a float or an array of any library.

    Examples
    --------
    >>> at_least(1, 0.5), at_least(1, 3.0)
    (1.0, 3.0)
    """
    return v + (v < least) * (least - v)


class BrokenRuleError(InputError):
    """A hyper-parameter breaks a rule of its method."""

    def __init__(self, broken: str, remedy: str) -> None:
        super().__init__(f"{broken}; {remedy}")
        self.broken = broken


def at_most(most: Number, v: Number) -> Number:
    """Return min(most, v), for floats or arrays of any library.

    Examples
    --------
    >>> at_most(1.0, 0.5), at_most(1.0, 3.0)
    (0.5, 1.0)
    """
    return v - (v > most) * (v - most)


class Method:
    """Base of all methods; a subclass is a frozen dataclass whose fields are its hyper-parameters."""

    name: ClassVar[str]
    title: ClassVar[str]
    oracle: ClassVar[Literal["dual", "primal"]]
    vectors_per_round: ClassVar[int]
    rounds_per_step: ClassVar[int | None] = 1  # None: it varies, or depends on a hyper-parameter
    directed: ClassVar[bool] = False  # whether it runs on directed graphs
    needs: ClassVar[Literal["fixed", "connected", "windows", "complete"] | None] = None  # see `NEEDS`; None: no proof
    plain: ClassVar[bool] = False  # whether it becomes plain gradient descent as the chi it assumes grows
    windowed: ClassVar[bool] = False  # whether `auto` takes windows of rounds where a greater chi makes it no safer
    bounded: ClassVar[bool] = True  # whether its formulas need a mu > 0 and an L < inf
    composite: ClassVar[bool] = False  # whether it takes penalties that are not smooth
    singly: ClassVar[bool] = False  # whether it runs round by round also where only windows of rounds connect the nodes
    latest: ClassVar[int | None] = None  # mean delay of messages, in rounds, must be below this; None: no bound
    complexity: ClassVar[str]
    reference: ClassVar[str]

    @classmethod
    def theory(cls, constants: Constants) -> Self:
        """Return the method with the hyper-parameters of its own theorem."""
        raise _missing(cls, "theory(cls, constants)")

    @classmethod
    def unit(cls, constants: Constants) -> Self:
        """Return the method with the theorem's formulas, their absolute constants set to 1."""
        raise _missing(cls, "unit(cls, constants)")

    def init(self, zeros: Array, oracle: Oracle) -> Any:
        """Return the state that the first step starts from; `zeros` is a zero array of shape (rows, dim).

        ``parameters="auto"`` and imperfect links need a NamedTuple of arrays with one row per node.
        """
        raise _missing(type(self), "init(self, zeros, oracle)")

    def step(self, state: Any, oracle: Oracle, gossip: Gossip) -> tuple[Any, Array]:
        """Return the next state and the iterate that this step reports."""
        raise _missing(type(self), "step(self, state, oracle, gossip)")

    def renewed(self, state: Any, k: Number) -> Any:
        """Return the state that step k = 0, 1, ... starts from; a method may reset what only accumulates rounding."""
        return state

    @classmethod
    def at_rest(cls, state: Any) -> Any:
        """Return a state at the same point without momentum; by default, the state itself."""
        return state

    def width(self, dim: int) -> int:
        """Return how many numbers a row of a vector that it sends has, for a problem of `dim` coordinates."""
        return dim

    def rounds_of_step(self, k: Number) -> Number:
        """Return the number of rounds of step k = 0, 1, ...; a run starts no step that its budget does not cover."""
        return 1

    def _require(self, rule: str, holds: Callable[[Number], Any], *names: str) -> None:
        """Check a rule for the named hyper-parameters; all entries of an array must satisfy it."""
        for name in names:
            value = getattr(self, name)
            verdict = holds(value)
            if not bool(verdict.all() if hasattr(verdict, "all") else verdict):
                valid = f"{type(self).__name__}.theory(constants) gives a valid one"
                raise BrokenRuleError(f"{name} must {rule}, got {value!r}", valid)

    def _require_positive(self, *names: str) -> None:
        self._require("be positive and finite", lambda v: (v > 0) & (v < float("inf")), *names)

    def _require_whole(self, *names: str) -> None:
        whole = "be a whole number of at least 1"
        self._require(whole, lambda v: (v >= 1) & (v < float("inf")) & (v % 1 == 0), *names)

    def parameters(self) -> dict[str, Number]:
        """Return the hyper-parameters by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]  # a dataclass

    def _repr_html_(self) -> str:
        from ..util.cards import card  # imported late: only notebooks need it

        values = {name: f"{len(v)} values" if hasattr(v, "__len__") else v for name, v in self.parameters().items()}
        rows = {"rounds to epsilon": "complexity", "reference": "reference"}
        about = {title: getattr(self, name) for title, name in rows.items() if hasattr(self, name)}
        return card(self.title, f"a {self.oracle} method", {**values, **about})


SAID = {"name": "'mine'", "title": "'Mine'", "oracle": "'primal'", "vectors_per_round": "1"}
"""Attributes that every method class must define, each with an example value."""
ORACLES = ("dual", "primal")


def check_class(cls: type[Method]) -> None:
    """Raise an error if a method class lacks an attribute, or has an invalid one or a wrong signature."""
    if not hasattr(cls, "__dataclass_fields__"):
        raise InputError(f"the method {cls.__name__} is not a dataclass; write @dataclass(frozen=True) above its class")
    for name, example in SAID.items():
        if not hasattr(cls, name):
            raise InputError(f"the method {cls.__name__} has no {name}; write e.g. {name} = {example} into its class")
    plain = "must be a line of text"
    whole = "must be a whole number of at least 1"
    for name, holds, rule in (
        ("name", _is_line(cls.name), plain),
        ("title", _is_line(cls.title), plain),
        ("oracle", cls.oracle in ORACLES, f"must be one of {', '.join(ORACLES)}"),
        ("needs", cls.needs in (None, *NEEDS), f"must be one of {', '.join(NEEDS)}, or None"),
        ("vectors_per_round", _is_count(cls.vectors_per_round), whole),
        ("rounds_per_step", cls.rounds_per_step is None or _is_count(cls.rounds_per_step), f"{whole}, or None"),
    ):
        if not holds:
            raise InputError(f"{name} of the method {cls.__name__} {rule}, got {shown(getattr(cls, name))}; change it")
    for name in ("theory", "unit", "init", "step", "renewed", "at_rest", "rounds_of_step"):
        wanted, own = (signature(getattr(each, name)).parameters for each in (Method, cls))
        try:
            signature(getattr(cls, name)).bind(*wanted)
        except TypeError:
            raise InputError(
                f"{cls.__name__}.{name} must accept ({', '.join(wanted)}), got ({', '.join(own)}); change its signature"
            ) from None


def made(cls: type[Method], formula: str, constants: Constants) -> Method:
    """Return the method that ``theory`` or ``unit`` of a class builds, after checks."""
    try:
        method = getattr(cls, formula)(constants)
    except BrokenRuleError as error:
        of = f"mu = {constants.mu:.6g}, L = {constants.L:.6g} and chi = {constants.chi:.6g}"
        remedy = "fix the formula, or use other parameters"
        raise InputError(f"{error.broken}, which {cls.__name__}.{formula} computed for {of}; {remedy}") from None
    return check_made(cls, formula, method)


def check_made(cls: type[Method], formula: str, method: Any) -> Method:
    """Return the result of a formula; raise an error unless it is a method whose hyper-parameters are numbers."""
    if not isinstance(method, cls):
        raise InputError(
            f"{cls.__name__}.{formula}(constants) must return the method, cls(...), got {shown(method)}; change it"
        )
    check_numbers(method)
    return method


def check_numbers(method: Method) -> None:
    """Raise an error if a hyper-parameter is not a number."""
    for name, value in method.parameters().items():
        if not _is_number(value):
            raise InputError(
                f"{type(method).__name__}.{name} must be a number, as all hyper-parameters are, got {shown(value)}; "
                "if it is not one, drop its annotation in the class"
            )


def _is_number(value: Any) -> bool:
    if isinstance(value, str | bytes) or getattr(value, "shape", ()) != ():
        return False
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _is_line(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and value.isprintable()


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and value >= 1


def _missing(cls: type[Method], function: str) -> InputError:
    return InputError(f"the method {cls.__name__} has no {function}; docs/add-a-method has an example of one")


def bare(cls: type[Method], values: Iterable[tuple[str, Any]]) -> Method:
    """Return a method with unchecked hyper-parameters, which may be arrays or tracers."""
    method = object.__new__(cls)
    for name, value in values:
        object.__setattr__(method, name, value)
    return method


@dataclass(frozen=True)
class MultiConsensus(Method):
    """A method whose every step takes T rounds of averaging as one; a base to put before the method itself.

    With T = ceil(chi ln 2) these rounds halve all disagreement, so the method sees a network with chi = 2.
    """

    single: ClassVar[type[Method]]
    """The method with one round per step."""
    rounds_per_step = None
    complexity = "chi kappa^(1/2) log(1/eps), with kappa^(1/2) log(1/eps) gradients"

    T: Number

    def __post_init__(self) -> None:
        super().__post_init__()  # type: ignore[misc]  # the method's own
        self._require_whole("T")

    @classmethod
    def theory(cls, constants: Constants) -> Self:
        """The `theory` of the method with one round per step for chi = 2, and T = ceil(chi ln 2)."""
        easier, T = halving(constants)
        return cls(**cls.single.theory(easier).parameters(), T=T)

    @classmethod
    def unit(cls, constants: Constants) -> Self:
        """The `unit` parameters of the method with one round per step for chi = 2, and T = ceil(chi ln 2)."""
        easier, T = halving(constants)
        return cls(**cls.single.unit(easier).parameters(), T=T)

    def rounds_of_step(self, k: Number) -> Number:
        """Return T for every step."""
        return self.T

    def step(self, state: Any, oracle: Oracle, gossip: Gossip) -> tuple[Any, Array]:
        """T rounds."""
        return super().step(state, oracle, gossip.windows(self.T))  # (1)


@dataclass(frozen=True)
class Wrapped(Method):
    """A method around another one, whose state is the field `inner` of its own state.

    Parameters
    ----------
    inner : Method
    """

    inner: Any

    @property
    def rounds_per_step(self) -> Any:  # type: ignore[override]  # a constant of other methods
        """The rounds of a step; None if they vary."""
        return self.inner.rounds_per_step

    @property
    def directed(self) -> Any:  # type: ignore[override]  # likewise
        """Whether it runs on directed graphs."""
        return self.inner.directed

    def renewed(self, state: Any, k: Any) -> Any:
        """Renew the inner method's state."""
        return state._replace(inner=self.inner.renewed(state.inner, k))

    def width(self, dim: int) -> int:
        """Return the numbers of a row that the inner method sends."""
        return int(self.inner.width(dim))

    def rounds_of_step(self, k: Any) -> Any:
        """Return the rounds of the inner method's step."""
        return self.inner.rounds_of_step(k)


def wrapped(method: Method) -> list[type[Method]]:
    """Return the classes of a method and of the methods that it wraps, outermost first."""
    return [type(method), *(wrapped(method.inner) if isinstance(method, Wrapped) else [])]


def plain(method: Method) -> Method:
    """Return the innermost method, without the wrappers that a run adds."""
    while isinstance(method, Wrapped):
        method = method.inner
    return method
