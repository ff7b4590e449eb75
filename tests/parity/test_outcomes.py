"""What a line of everyday code gives, or how it is refused: value, words of the error and warnings are torch's."""

from __future__ import annotations

from typing import Any

import pytest
from parity.oracle import Ran, assert_same_error, assert_same_value, ct, first_line, lines, th

LINES = """
F.cosine_embedding_loss(torch.ones(5, 2), torch.ones(5, 2), torch.ones(5, 1))
F.cosine_embedding_loss(torch.ones(5, 2), torch.ones(2), torch.ones(2))
F.cosine_embedding_loss(torch.ones(5), torch.ones(5), torch.tensor(-1))
F.cosine_similarity(torch.ones(3, 4, dtype=torch.int8), torch.ones(3, 4, dtype=torch.int8))
F.cosine_similarity(torch.ones(3, 4, dtype=torch.int64), torch.ones(3, 4))
F.kl_div(torch.ones(3), torch.ones(3))
F.kl_div(torch.ones(2, 3), torch.ones(2, 3), reduction="batchmean")
torch.kl_div(torch.ones(3), torch.ones(3))
F.soft_margin_loss(torch.ones(3, 2), torch.ones(3, 3))
F.nll_loss(torch.ones(3), torch.zeros(3, dtype=torch.int64))
F.nll_loss(torch.ones(3), torch.tensor([1]), reduction="none")
F.nll_loss(torch.ones(3, 4), torch.zeros(3, 2, dtype=torch.int64))
F.nll_loss(torch.ones(3, 4, 2), torch.ones(3, 3))
F.nll_loss(torch.ones(3, 4, 2, 2), torch.zeros(3, 2, 3, dtype=torch.int64))
F.nll_loss(torch.ones(3, 4, 2, 2), torch.zeros(3, 2, dtype=torch.int64))
F.cross_entropy(torch.ones(3), torch.zeros(3, dtype=torch.int64))
F.cross_entropy(torch.ones(3), torch.zeros(2, dtype=torch.int64))
F.cross_entropy(torch.ones(3), torch.tensor([1]), reduction="none")
F.cross_entropy(torch.ones(3, 4), torch.ones(3, 4), ignore_index=2)
F.cross_entropy(torch.ones(3, 4), torch.ones(3, 4), weight=torch.ones(3))
F.cross_entropy(torch.ones(5, 0), torch.ones(5, 0))
F.glu(torch.tensor(1.0))
F.group_norm(torch.ones(1, 3), 3)
F.batch_norm(torch.ones(1, 3), None, None, training=True)
F.rms_norm(torch.ones(2, 3), (2, 3, 1))
F.rms_norm(torch.ones(2, 3), (2, 2))
F.pad(torch.ones(2, 3), (1,))
F.pad(torch.ones(2), (1, 1, 1, 1))
F.pad(torch.ones(3), (1, 1), mode="reflect")
F.pad(torch.ones(1, 3), (1, 1), mode="reflect", value=2)
F.fold(torch.ones(1, 12, 12), (4, 5), (2, 2), dilation=(8, 8))
F.scaled_dot_product_attention(*[torch.ones(1, 2, 3)] * 3, attn_mask=torch.ones(2, 2), is_causal=True)
F.dropout1d(torch.ones(2, 2, 2, 2))
F.dropout2d(torch.ones(2, 2, 2), 0.0)
F.dropout2d(torch.ones(2, 2), 0.0)
F.dropout3d(torch.ones(2, 2), 0.0)
F.feature_alpha_dropout(torch.ones(2), training=True)
F.dropout(torch.ones(2, 3, 4, 5).contiguous(memory_format=torch.channels_last), 1e-9).stride()
nn.Linear(2, 3).to("cpu", True)
nn.Linear(2, 3).to(torch.float32, "cpu")
nn.Linear(2, 3).to("cpu", torch.float64, copy=False)
nn.Linear(2, 3).to("cpu", float, True).weight.dtype
nn.Linear(2, 3).to(torch.ones(1, dtype=torch.float64), True).weight.dtype
nn.LazyLinear(2).share_memory()
str(nn.LazyLinear(2).load_state_dict(nn.LazyLinear(2).state_dict()))
nn.Conv2d(3, 4, (3, 3, 3))(torch.ones(1, 3, 5, 5))
pickle.loads(pickle.dumps(torch.ones(2, requires_grad=True) * 2))
torch.cuda.is_tf32_supported()
"""


@pytest.mark.parametrize("line", lines(LINES))
def test_outcome(line: str) -> None:
    import pickle

    def program(torch: Any) -> Any:
        names = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, "pickle": pickle}
        return eval(line, names)

    found, expected = Ran(ct, program), Ran(th, program)
    if expected.error is None:
        if found.error is not None:
            raise found.error
        assert_same_value(found.value, expected.value)
    else:
        assert_same_error(found, expected)
        assert found.error is not None
        assert first_line(found.error) == first_line(expected.error)
    assert found.warnings == expected.warnings
