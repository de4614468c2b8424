"""The simulated cluster gives the right answer where it is known."""

import pytest

from benchmarks.simulation import Cluster, bulk_seconds, training_seconds


def test_without_losses_shards_are_divided_evenly() -> None:
    assert bulk_seconds(64, 3.0, Cluster(workers=2, start=5.0)) == pytest.approx(5.0 + 32 * 3.0)
    assert bulk_seconds(65, 3.0, Cluster(workers=2)) == pytest.approx(33 * 3.0)


def test_every_loss_costs_a_restart_and_what_was_begun() -> None:
    """On average, a shard of s seconds at loss rate r takes (exp(r s) - 1) (1/r + restart)."""
    losses, seconds, restart = 60.0, 30.0, 10.0  # one loss per minute
    cluster = Cluster(workers=1, restart=restart, losses=losses)
    found = [bulk_seconds(1, seconds, cluster, seed=seed) for seed in range(4000)]
    expected = (2.718281828**0.5 - 1) * (60.0 + restart)
    assert sum(found) / len(found) == pytest.approx(expected, rel=0.05)


def test_slow_workers_take_fewer_shards() -> None:
    """With many shards per worker the speeds add up; with one shard each, the slowest worker
    decides.
    """
    cluster = Cluster(workers=16, spread=0.5)
    many, few = bulk_seconds(16 * 200, 1.0, cluster) / 200, bulk_seconds(16, 1.0, cluster)
    assert many < 1.3 < few


def test_training_goes_back_to_the_last_checkpoint() -> None:
    assert training_seconds(100, 2.0, Cluster(workers=4, start=7.0), checkpoint=10.0) == 207.0
    safe = Cluster(workers=4, restart=20.0, losses=2.0)
    often, seldom = (
        sum(training_seconds(10_000, 1.0, safe, checkpoint=each, seed=seed) for seed in range(30))
        for each in (60.0, 1200.0)
    )
    assert 10_000 * 30 < often < seldom
