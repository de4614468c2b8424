"""An answer as JSON: what `foveal predict --format jsonl` prints and the server sends, to the byte."""

import json
from typing import Any

from ..data import Example
from ..tasks import Prediction


def answer_json(
    example: Example, prediction: Prediction, *, nbest: int = 1, confidence: bool = True
) -> str:
    """One JSON object on one line.

    Args:
        example: what was asked.
        prediction: the answer to it.
        nbest: how many candidates were asked for; with two or more they are listed.
        confidence: say scores and probabilities too.
    """
    data: dict[str, Any] = {"source": str(example.source), "output": prediction.output}
    if confidence:
        data["score"] = prediction.score
        data["confidence"] = prediction.confidence
        data["token_probabilities"] = prediction.token_probabilities
    if nbest > 1:
        data["nbest"] = [
            candidate._asdict() if confidence else {"output": candidate.output}
            for candidate in prediction.nbest
        ]
    if prediction.trace is not None:
        data["attention"] = json.loads(prediction.trace.to_json())
    return json.dumps(data, ensure_ascii=False, allow_nan=False)
