"""Base of distributions of choices: the parameter is either `probs` or `logits`; the other is computed when asked for."""

from __future__ import annotations

from typing import Any

from .utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits

ONE_OF_TWO = "Either `probs` or `logits` must be specified, but not both."


class ProbsOrLogits:
    """A mixin.

    `_given` is the name of the parameter given; `_is_binary`: logits are log-odds, else scores of classes.
    """

    _is_binary = True
    _parts: tuple[str, ...] = ("_given",)

    def _choose(self, probs: Any, logits: Any, *others: Any) -> Any:
        """Keep the parameter that is given; returns the other arguments, all broadcast together."""
        if (probs is None) == (logits is None):
            raise ValueError(ONE_OF_TWO)
        name, value = ("probs", probs) if probs is not None else ("logits", logits)
        *others, self.__dict__[name] = broadcast_all(*others, value)  # type: ignore[assignment]
        self._given = name
        return others

    @property
    def _param(self) -> Any:
        return self.__dict__[self._given]

    @property
    def param_shape(self) -> Any:
        """The shape of the parameter that was given."""
        return self._param.size()

    def _new(self, *args: Any, **kwargs: Any) -> Any:
        return self._param.new(*args, **kwargs)

    @lazy_property
    def logits(self) -> Any:
        """Log-odds, or scores of classes."""
        return probs_to_logits(self.__dict__["probs"], is_binary=self._is_binary)

    @lazy_property
    def probs(self) -> Any:
        """Probabilities."""
        return logits_to_probs(self.__dict__["logits"], is_binary=self._is_binary)
