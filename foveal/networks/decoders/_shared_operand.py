"""Products of many steps with one operand, whose gradient is one product at the end, not one per step.

    y_t = x_t A,   dA = sum_t x_t' dy_t = [x_1; ...; x_T]' [dy_1; ...; dy_T]

Each term of the sum has the size of A, and in a loop over time autograd computes and adds all of them; for
200 cells and 40 tokens, this takes a quarter of the time of an update. Here each product stores its x_t and
dy_t instead, and the backward pass computes the gradient of A once, after all products have done so.

Axes: *batch any leading shape, Q rows of one step, S width of a row, V of a product.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple, final

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from ...errors import DerivativeError

# The functions behind `rows @ operand`.
_PRODUCTS = (Tensor.matmul, Tensor.__matmul__, torch.matmul)


class _Term(NamedTuple):
    """The contribution of one product to the gradient."""

    rows: Float[Tensor, "*batch Q S"]
    grad: Float[Tensor, "*batch Q V"]


@final
class SharedOperand(Tensor):
    """A tensor for products `rows @ operand`; all other operations see the original tensor."""

    tie: Tensor  # connects a product with the original tensor in the autograd graph
    terms: list[_Term]

    @classmethod
    @override
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if func in _PRODUCTS and isinstance(args[1], cls):
            rows, operand = args
            if not isinstance(rows, cls):
                if rows.ndim == 1:
                    return (rows.unsqueeze(0) @ operand).squeeze(-2)
                return _Product.apply(rows, operand.tie, operand.detach(), operand.terms)
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


def shared_operand(whole: Float[Tensor, "*batch S V"]) -> Float[Tensor, "*batch S V"]:
    """Prepare the tensor for products with the rows of many steps.

    Without gradients, under autocast, which casts operands separately, and on devices other than a CPU, where the backward
    pass would wait for a number, it returns the tensor unchanged.

    Args:
        whole: Right operand of the products.

    Returns:
        A tensor with the same values; its products add to the gradient of `whole`.

    Examples:
        >>> weight = torch.eye(2, requires_grad=True)
        >>> operand = shared_operand(weight)
        >>> sum((torch.ones(1, 2) @ operand).sum() for _ in range(3)).backward()
        >>> weight.grad
        tensor([[3., 3.],
                [3., 3.]])
    """
    wanted = torch.is_grad_enabled() and whole.requires_grad and whole.is_cpu
    if not wanted or torch.is_autocast_enabled(whole.device.type):
        return whole
    operand = whole.as_subclass(SharedOperand)
    operand.terms = []
    operand.tie = _Tie.apply(whole, operand.terms)
    return operand


@final
class _Tie(torch.autograd.Function):
    """Computes the gradient of the whole tensor after all products have stored their terms."""

    @staticmethod
    @override
    def forward(ctx: Any, whole: Tensor, terms: list[_Term]) -> Tensor:
        ctx.terms, ctx.shape = terms, whole.shape
        return whole.new_zeros(())

    @staticmethod
    @override
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        # One for each product of this pass. Earlier terms are from a pass that did not reach this function.
        number = int(grads[0].item())
        alike = defaultdict[tuple[torch.Size, torch.Size], list[_Term]](list)
        for term in ctx.terms[-number:]:
            alike[term.rows.shape[:-2], term.grad.shape[:-2]].append(term)
        ctx.terms.clear()
        sums = list[Tensor]()
        for terms in alike.values():
            rows, products = (torch.cat(parts, -2) for parts in zip(*terms, strict=True))
            sums.append((rows.transpose(-1, -2) @ products).sum_to_size(ctx.shape))
        return reduce(torch.add, sums), None


@final
class _Product(torch.autograd.Function):
    """rows @ operand."""

    @staticmethod
    @override
    def forward(ctx: Any, rows: Tensor, tie: Tensor, operand: Tensor, terms: list[_Term]) -> Tensor:
        ctx.save_for_backward(rows, operand)
        ctx.terms = terms
        return rows @ operand

    @staticmethod
    @override
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, None]:
        if torch.is_grad_enabled():
            raise DerivativeError(
                "InputFeedingDecoder: one derivative can be taken of a memory that all steps read, got a request "
                "for one more. Take it without create_graph, or decode without input feeding."
            )
        (grad,), (rows, operand) = grads, ctx.saved_tensors
        ctx.terms.append(_Term(rows, grad))
        return grad @ operand.transpose(-1, -2), grad.new_ones(()), None, None
