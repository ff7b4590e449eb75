"""Finding the occurrences of a pattern in a graph, and replacing them by another graph."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..nn.modules.module import Module
from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule, _assign_attr
from .node import Node


class Match(NamedTuple):
    """An occurrence of a pattern.

    anchor: the pattern's node that computes its last result. nodes_map: pattern's node -> node of the graph.
    """

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """A replaced occurrence of a pattern, as in `Match`, and the nodes that replace it."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def _graph_of(x: Any) -> Graph:
    if isinstance(x, Graph):
        return x
    return x.graph if isinstance(x, GraphModule) else symbolic_trace(x).graph


class _Matcher:
    """Finds a pattern in a graph, by going backwards from the node of the pattern's last result."""

    def __init__(self, pattern: Graph) -> None:
        self.pattern = pattern
        result = pattern.output_node().args[0]
        self.results = list(result) if isinstance(result, tuple | list) else [result]
        if not all(isinstance(n, Node) for n in self.results):
            raise RuntimeError("the pattern's results must be values of its nodes")

    def at(self, node: Node) -> dict[Node, Node] | None:
        """Return the occurrence of the pattern whose last result is `node`, as pattern's node -> node of the graph.

        Return None if there is none.
        """
        found: dict[Node, Node] = {}
        *others, last = self.results
        if not self._same(last, node, found):
            return None
        # Other results: the first node of the graph that fits what is matched so far.
        for other in others:
            if other not in found and not any(
                self._try(other, candidate, found) for candidate in node.graph.nodes
            ):
                return None
        return found if self._closed(found) else None

    def _try(self, pn: Node, gn: Node, found: dict[Node, Node]) -> bool:
        attempt = dict(found)
        if not self._same(pn, gn, attempt):
            return False
        found.update(attempt)
        return True

    def _same(self, pn: Any, gn: Any, found: dict[Node, Node]) -> bool:
        """Return whether an argument in the pattern matches one in the graph, and add the nodes matched to `found`.

        A placeholder matches any value, another node the same call on matching arguments, a constant an equal one.
        """
        if isinstance(pn, Node):
            if pn in found:
                return found[pn] is gn
            if pn.op == "placeholder":
                found[pn] = gn
                return True
            if not isinstance(gn, Node) or pn.op != gn.op or not self._same_target(pn, gn):
                return False
            found[pn] = gn
            mine, theirs = self._arguments(pn, gn)
            return mine is not None and self._same(mine, theirs, found)
        if isinstance(pn, tuple | list):
            return isinstance(gn, tuple | list) and len(pn) == len(gn) and all(self._same(a, b, found) for a, b in zip(pn, gn, strict=True))  # fmt: skip
        if isinstance(pn, dict):
            return isinstance(gn, dict) and set(pn) == set(gn) and all(self._same(v, gn[k], found) for k, v in pn.items())  # fmt: skip
        if isinstance(pn, slice):
            return isinstance(gn, slice) and self._same((pn.start, pn.stop, pn.step), (gn.start, gn.stop, gn.step), found)  # fmt: skip
        return type(pn) is type(gn) and bool(pn == gn)

    @staticmethod
    def _same_target(pn: Node, gn: Node) -> bool:
        if pn.op == "call_module":
            owners = pn.graph.owning_module, gn.graph.owning_module
            kinds = [type(o.get_submodule(n.target)) if o is not None else n.target for o, n in zip(owners, (pn, gn), strict=True)]  # fmt: skip
            return kinds[0] == kinds[1]
        return bool(pn.target == gn.target)

    @staticmethod
    def _arguments(pn: Node, gn: Node) -> tuple[Any, Any]:
        """Return both nodes' arguments, bound to the function's parameters if the calls name different arguments."""
        mine, theirs = (tuple(pn.args), dict(pn.kwargs)), (tuple(gn.args), dict(gn.kwargs))
        if (len(pn.args) == len(gn.args) and set(pn.kwargs) == set(gn.kwargs)) or pn.op != "call_function":  # fmt: skip
            return mine, theirs
        import inspect

        try:
            names = inspect.signature(pn.target)
            return names.bind(*mine[0], **mine[1]).arguments, names.bind(*theirs[0], **theirs[1]).arguments  # fmt: skip
        except (TypeError, ValueError):
            return mine, theirs

    def _closed(self, found: dict[Node, Node]) -> bool:
        """Return whether no node outside the match uses an intermediate value, which will be gone with the match."""
        inner = {g for p, g in found.items() if p.op != "placeholder" and p not in self.results}
        inside = {g for p, g in found.items() if p.op != "placeholder"}
        return all(user in inside for node in inner for user in node.users)


def replace_pattern(
    gm: GraphModule,
    pattern: Callable[..., Any] | GraphModule,
    replacement: Callable[..., Any] | GraphModule,
) -> list[Match]:
    """Replace a pattern's occurrences, as far as they do not overlap, by another function's operations; return them.

    The pattern's arguments match any value, and the replacement's stand for the same values, by position.
    """
    found = _replace(gm, pattern, replacement, None, None)
    return [Match(anchor=m.anchor, nodes_map=m.nodes_map) for m in found]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Any,
    replacement: Any = None,
    match_filters: list[Callable[..., bool]] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[..., Graph] | None = None,
) -> list[ReplacedPatterns]:
    """Replace a pattern as `replace_pattern` does, where all filters, called with match, graph and pattern, are true.

    `replacement_callback`, called with the same arguments, makes the replacement for an occurrence. NotImplementedError
    for `ignore_literals`.
    """
    if ignore_literals:
        raise NotImplementedError("fx.replace_pattern_with_filters: literals are compared")
    return _replace(gm, pattern, replacement, match_filters, replacement_callback)


def _replace(
    gm: GraphModule, pattern: Any, replacement: Any, filters: Any, callback: Any
) -> list[ReplacedPatterns]:
    graph, wanted = gm.graph, _graph_of(pattern)
    matcher = _Matcher(wanted)
    taken: set[Node] = set()
    places: list[dict[Node, Node]] = []
    for node in graph.nodes:
        match = matcher.at(node)
        if match is None:
            continue
        inner = {g for p, g in match.items() if p.op != "placeholder"}
        if inner & taken or not all(f(match, graph, wanted) for f in filters or ()):
            continue
        taken |= inner
        places.append(match)
    fixed: Any = None if replacement is None else _graph_of(replacement)
    done: list[ReplacedPatterns] = []
    instead: dict[Node, Any] = {}
    for match in places:
        made = fixed if callback is None else callback(match, graph, wanted)
        match = {p: instead.get(g, g) if p.op == "placeholder" else g for p, g in match.items()}
        before = set(graph.nodes)
        _put(graph, matcher, match, made, instead)
        new = [n for n in graph.nodes if n not in before]
        done.append(ReplacedPatterns(matcher.results[-1], match, new))
    gm.recompile()
    if isinstance(replacement, Module):
        for node in graph.nodes:
            if node.op in ("call_module", "get_attr") and _missing(gm, node.target):
                value: Any = replacement
                for name in node.target.split("."):
                    value = getattr(value, name)
                _assign_attr(copy.deepcopy(value), gm, node.target)
    return done


def _missing(gm: Module, target: str) -> bool:
    found: Any = gm
    for name in target.split("."):
        found = getattr(found, name, None)
    return found is None


def _put(
    graph: Graph,
    matcher: _Matcher,
    match: dict[Node, Node],
    replacement: Graph,
    instead: dict[Node, Any],
) -> None:
    """Put a replacement in the place of a match; add to `instead` what replaces each result among the match's nodes."""
    inputs = [match.get(n) for n in matcher.pattern.nodes if n.op == "placeholder"]
    own = [n for n in replacement.nodes if n.op == "placeholder"]
    if len(own) != len(inputs):
        raise AssertionError(
            f"The replacement has {len(own)} placeholders, the pattern has {len(inputs)}"
        )
    values: dict[Node, Any] = dict(zip(own, inputs, strict=True))
    inner = [g for p, g in match.items() if p.op != "placeholder"]
    first = _after(graph, [v for v in inputs if isinstance(v, Node)], inner)
    with graph.inserting_before(first):
        made = graph.graph_copy(replacement, values)
    made = list(made) if isinstance(made, tuple | list) else [made]
    for result, value in zip(matcher.results, made, strict=True):
        old = match[result]
        instead[old] = value
        old.replace_all_uses_with(value)
    for node in sorted(set(inner), key=list(graph.nodes).index, reverse=True):
        if not node.users:
            graph.erase_node(node)


def _after(graph: Graph, inputs: list[Node], inner: list[Node]) -> Node:
    """Return the node before which to insert: the match's first, or the one after the last input if that is later."""
    order = {n: i for i, n in enumerate(graph.nodes)}
    start = min(order[n] for n in inner)
    last = max((order[n] for n in inputs if n in order), default=-1)
    return list(graph.nodes)[max(start, last + 1)]
