"""Simulate the time of a bulk run or a training on a cluster whose machines differ in speed and fail.

    shards:    every worker takes the next shard; another worker restarts the shard of a lost worker
    training:  all workers take each step together; after a loss, all resume from the last checkpoint

Workers fail independently at a constant rate. Speeds are log-normal: one fixed factor for each worker, and one
for each shard.
"""

import heapq
import random
from dataclasses import dataclass

_HOUR = 3600.0


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Workers and their faults."""

    workers: int
    start: float = 0.0  # seconds until the first worker is ready
    restart: float = 0.0  # seconds until a lost worker is ready again
    losses: float = 0.0  # per worker and hour
    spread: float = 0.0  # standard deviation of the log of speeds

    def until_loss(self, generator: random.Random, workers: int = 1) -> float:
        """Draw the seconds until one of some workers is lost."""
        rate = self.losses * workers / _HOUR
        return generator.expovariate(rate) if rate else float("inf")


def bulk_seconds(shards: int, seconds: float, cluster: Cluster, *, seed: int = 0) -> float:
    """Simulate the time of a bulk run of `shards` shards, each of `seconds` at the usual speed."""
    generator = random.Random(seed)
    slowness = [generator.lognormvariate(0.0, cluster.spread) for _ in range(cluster.workers)]
    free = [(cluster.start, worker) for worker in range(cluster.workers)]
    lost = [cluster.start + cluster.until_loss(generator) for _ in free]
    waiting, ends = shards, list[float]()  # times at which shards were finished
    under_way = list[float]()  # times at which lost shards return to the queue
    while waiting or under_way:
        now, worker = heapq.heappop(free)
        while under_way and (under_way[0] <= now or not waiting):
            now = max(now, heapq.heappop(under_way))
            waiting += 1
        waiting -= 1
        end = now + seconds * slowness[worker] * generator.lognormvariate(0.0, cluster.spread)
        if lost[worker] < now:  # lost while idle
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
    """Simulate the time of a training with regular checkpoints."""
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
