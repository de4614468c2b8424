"""The score-function estimator (REINFORCE), with the other samples as baseline.

    gradient of E[ f(z) ]  ~  1/S sum_s ( f(z_s) - b_s ) gradient of log p(z_s),
    b_s = mean of f(z_r) over r != s

The estimate is unbiased for any reward f, differentiable or not, since b_s does not depend on z_s. It
needs only the values of f, at the cost of a high variance.

References: Williams 1992; Kool et al. 2019 (the leave-one-out baseline).
"""

from jaxtyping import Float
from torch import Tensor

from ..distributions import AbstractDistribution
from ..distributions._sparse import AbstractSparseDistribution
from ..errors import ShapeError


def score_function(
    distribution: AbstractDistribution | AbstractSparseDistribution,
    samples: Tensor,
    rewards: Float[Tensor, "S *batch"],
) -> Float[Tensor, "*batch"]:
    """Compute the mean reward, with an unbiased gradient of the expected reward.

    Minimize the negative of the result to increase the reward.

    Args:
        distribution: Any distribution.
        samples: Samples from `distribution.sample((S,))`. With S = 1 there is no baseline.
        rewards: F of each sample. If they depend on parameters, their gradient is added.

    Returns:
        Mean reward of each batch item.

    Raises:
        ShapeError: The samples do not have exactly one axis before the batch shape, or the rewards do not have the
            shape (S, *batch).

    Examples:
        >>> import torch
        >>> from foveal.distributions import Categorical
        >>> scores = torch.zeros(3, requires_grad=True)
        >>> choice = Categorical(scores)
        >>> samples = torch.tensor([0, 1])                # as choice.sample((2,)) may give
        >>> mean = score_function(choice, samples, rewards=torch.tensor([1.0, 0.0]))
        >>> mean.detach()
        tensor(0.5000)
        >>> torch.autograd.grad(mean, scores)[0]
        tensor([ 0.5000, -0.5000,  0.0000])
    """
    log_probs = distribution.log_prob(samples)
    batch = tuple(distribution.batch_shape)
    if tuple(log_probs.shape[1:]) != batch or rewards.shape != log_probs.shape or not len(rewards):
        raise ShapeError(
            f"score_function: expected samples along one leading axis S of at least 1, and rewards "
            f"of shape (S, *batch), got log-probabilities of shape {tuple(log_probs.shape)}, "
            f"rewards of shape {tuple(rewards.shape)} and a batch shape of {batch}. Draw with "
            f"distribution.sample((S,)) and give each sample of each batch item one number."
        )
    num_samples = len(rewards)
    value = rewards.detach()
    baseline = (value.sum(0) - value) / max(1, num_samples - 1)
    # 0 in the forward pass; in the backward pass, the gradient of log p weighted by the advantage.
    score = (value - baseline) * (log_probs - log_probs.detach())
    return (rewards + score).mean(0)
