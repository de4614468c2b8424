"""A cluster in numbers: how long a bulk run or a training takes when machines differ and are lost.

    shards:    every worker takes the next; what a lost worker had begun is begun again by another
    training:  all workers take each step together; when one is lost all go back to the last checkpoint

Losses come at a rate, each worker's for itself. Speeds are log-normal: one factor of a worker, that it keeps,
and one of every shard.
"""

import heapq
import random
from dataclasses import dataclass

_HOUR = 3600.0


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Workers and their faults."""

    workers: int
    start: float = 0.0  # seconds until the first of them is at work
    restart: float = 0.0  # seconds until one that was lost is at work again
    losses: float = 0.0  # of a worker in an hour
    spread: float = 0.0  # standard deviation of the logarithm of speeds

    def until_loss(self, generator: random.Random, workers: int = 1) -> float:
        """Seconds until one of some workers is lost."""
        rate = self.losses * workers / _HOUR
        return generator.expovariate(rate) if rate else float("inf")


def bulk_seconds(shards: int, seconds: float, cluster: Cluster, *, seed: int = 0) -> float:
    """How long it takes to answer so many shards that take a worker of usual speed so many seconds."""
    generator = random.Random(seed)
    slowness = [generator.lognormvariate(0.0, cluster.spread) for _ in range(cluster.workers)]
    free = [(cluster.start, worker) for worker in range(cluster.workers)]
    lost = [cluster.start + cluster.until_loss(generator) for _ in free]
    waiting, ends = shards, list[float]()  # when the shards that were answered were
    under_way = list[float]()  # when a shard that is lost goes back to those that wait
    while waiting or under_way:
        now, worker = heapq.heappop(free)
        while under_way and (under_way[0] <= now or not waiting):
            now = max(now, heapq.heappop(under_way))
            waiting += 1
        waiting -= 1
        end = now + seconds * slowness[worker] * generator.lognormvariate(0.0, cluster.spread)
        if lost[worker] < now:  # while it had nothing to do
            lost[worker] = now + cluster.until_loss(generator)
        if lost[worker] < end:
            heapq.heappush(under_way, lost[worker])
            end = lost[worker] + cluster.restart
            lost[worker] = end + cluster.until_loss(generator)
        else:
            ends.append(end)
        heapq.heappush(free, (end, worker))
    return max(ends)


def training_seconds(
    steps: int, seconds: float, cluster: Cluster, *, checkpoint: float, seed: int = 0
) -> float:
    """How long so many steps take, with a checkpoint every so many seconds."""
    generator, done, now = random.Random(seed), 0.0, cluster.start
    # The slowest worker sets the pace of all.
    slowest = max(generator.lognormvariate(0.0, cluster.spread) for _ in range(cluster.workers))
    needed = steps * seconds * slowest
    while True:
        until = cluster.until_loss(generator, cluster.workers)
        if done + until >= needed:
            return now + needed - done
        done += until - until % checkpoint
        now += until + cluster.restart
