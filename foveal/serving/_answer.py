"""An answer as JSON: `foveal predict --format jsonl` and the server write the same bytes."""

import json
from typing import Any

from ..data import Example
from ..tasks import Prediction


def answer_json(
    example: Example, prediction: Prediction, *, nbest: int = 1, confidence: bool = True
) -> str:
    """Serialize a prediction as one JSON object on one line.

    Args:
        example: The input.
        prediction: The prediction for it.
        nbest: The requested number of candidates; with two or more, they are listed.
        confidence: Include scores and probabilities.

    Returns:
        The JSON text, without a line break.
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
