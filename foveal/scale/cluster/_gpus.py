"""The GPUs of a cluster, and the part of them that each worker gets.

Ray shows a worker only its own GPU, which is therefore cuda:0 there.
"""

import ray

from ...errors import DeviceError


def gpu_share(device: str, workers: int) -> float:
    """Return the number of GPUs of each worker: one or, if there are more workers than GPUs, an equal fraction.

    Args:
        device: The device that the user asked for.
        workers: The number of workers at the same time.

    Returns:
        From 0 to 1; 0 if the workers compute on CPUs.

    Raises:
        DeviceError: The cluster has no GPU, or the device is the GPU of one worker.
    """
    if device not in ("auto", "cpu", "cuda"):
        raise DeviceError(
            f"device: workers of a cluster can use auto, cpu or cuda, got {device}. With cuda, Ray "
            f"gives each worker a GPU."
        )
    found = 0 if device == "cpu" else int(ray.cluster_resources().get("GPU", 0))
    if device == "cuda" and not found:
        raise DeviceError(
            "device: expected a cluster with GPUs, got one without. Use --device cpu or auto."
        )
    return min(1.0, found / workers)


def own_gpus(device: str, workers: int) -> bool:
    """Return whether each worker has a GPU of its own.

    Args:
        device: The device that the user asked for.
        workers: The number of workers at the same time.

    Returns:
        False if the workers compute on CPUs.

    Raises:
        DeviceError: There are too few GPUs.
    """
    share = gpu_share(device, workers)
    if 0 < share < 1:
        raise DeviceError(
            f"device: expected a GPU for each of {workers} workers, got fewer in the cluster. Reduce "
            f"--workers, or use --device cpu."
        )
    return share > 0
