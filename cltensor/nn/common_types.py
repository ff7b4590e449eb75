"""`cltensor.nn.common_types`: names for annotations of sizes that may be one number or one per dimension."""

from __future__ import annotations

from typing import TypeAlias

from ..tensor import Tensor

_scalar_or_tuple_any_t: TypeAlias = int | tuple[int, ...]
_scalar_or_tuple_1_t: TypeAlias = int | tuple[int]
_scalar_or_tuple_2_t: TypeAlias = int | tuple[int, int]
_scalar_or_tuple_3_t: TypeAlias = int | tuple[int, int, int]
_scalar_or_tuple_4_t: TypeAlias = int | tuple[int, int, int, int]
_size_any_t = _scalar_or_tuple_any_t
_size_1_t = _scalar_or_tuple_1_t
_size_2_t = _scalar_or_tuple_2_t
_size_3_t, _size_4_t = _scalar_or_tuple_3_t, _scalar_or_tuple_4_t
_ratio_any_t: TypeAlias = float | tuple[float, ...]
_ratio_2_t: TypeAlias = float | tuple[float, float]
_ratio_3_t: TypeAlias = float | tuple[float, float, float]
_tensor_list_t: TypeAlias = Tensor | tuple[Tensor, ...]
