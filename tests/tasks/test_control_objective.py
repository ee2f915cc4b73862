"""The loss of actions: by hand, without padding, and as a mean over what several batches tell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from kattn_cli.data.sequences import Padded
from kattn_cli.errors import DataError
from kattn_cli.models import AttentionModel
from kattn_cli.tasks.control.objective import ActionError


class Says(AttentionModel):
    """Says its inputs; its one layer adds 0.5 to the loss."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def mechanisms(self) -> list[nn.Module]:
        return [self]

    def auxiliary_loss(self) -> Tensor:
        return torch.tensor(0.5)

    def forward(self, inputs: Tensor) -> Tensor:
        assert not self.training
        return inputs


def batch() -> tuple[Tensor, Padded]:
    """Two windows of two steps and three dimensions; the last step is padding, and not a number."""
    said = torch.tensor([[[1.0, 0, 0], [0, 0, 0]], [[2.0, 2, 2], [9, 9, torch.nan]]])
    taken = torch.tensor([[[0.0, 0, 0], [0, 0, 3]], [[2.0, 2, 0], [0, 0, 0]]])
    return said, Padded(taken, torch.tensor([[True, True], [True, False]]))


def test_mean_squared_error_by_hand() -> None:
    """Squares 1, 9 and 4 over three dimensions each and three steps."""
    objective = ActionError()
    assert objective.loss(*batch(), label_smoothing=0.1).item() == pytest.approx((1 + 9 + 4) / 9)
    assert objective.count(batch()[1]).item() == 3
    assert objective.sums(*batch()).tolist() == []
    assert objective.measures([], 3.0) == {}


def test_without_padding_it_is_torchs() -> None:
    said, taken = torch.randn(4, 5, 2), torch.randn(4, 5, 2)
    loss = ActionError().loss(said, Padded(taken), 0.0)
    torch.testing.assert_close(loss, nn.functional.mse_loss(said, taken))
    torch.testing.assert_close(ActionError().loss(said, Padded(taken, torch.ones(4, 5, dtype=torch.bool)), 0.0), loss)


def test_padding_gives_no_gradient() -> None:
    said, taken = batch()
    said = said.nan_to_num(7.0).requires_grad_()
    ActionError().loss(said, taken, 0.0).backward()
    assert said.grad is not None
    assert said.grad[1, 1].tolist() == [0, 0, 0]
    assert said.grad[0, 1, 2].item() == pytest.approx(2 * -3 / 9)


class Batches:
    """The windows of :func:`batch`, one at a time."""

    def batches(self, size: int) -> Iterator[tuple[Any, Any]]:
        said, taken = batch()
        assert taken.mask is not None
        for row in range(2):
            yield said[row : row + 1], Padded(taken.values[row : row + 1], taken.mask[row : row + 1])


def test_evaluated_over_steps_and_not_over_windows() -> None:
    model = Says().train()
    found = ActionError().evaluate(model, Batches())
    assert (found.steps, found.measures) == (3, {})
    assert found.loss == pytest.approx((1 + 9 + 4) / 9)
    assert found.auxiliary_loss == pytest.approx(0.5)
    assert model.training


def test_processes_join_their_windows() -> None:
    """Each has a part: the steps of both count alike."""
    found = ActionError().evaluate(Says(), Batches(), gather=lambda rows: torch.cat((rows, rows[:1])))
    assert (found.steps, found.loss) == (5, pytest.approx((1 + 9 + 4 + 1 + 9) / 15))


def test_nothing_to_evaluate() -> None:
    class Nothing:
        def batches(self, size: int) -> Iterator[tuple[Any, Any]]:
            return iter(())

    with pytest.raises(DataError, match="there is no window of a trajectory to evaluate"):
        ActionError().evaluate(Says(), Nothing())
