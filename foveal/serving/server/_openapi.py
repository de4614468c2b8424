"""The operations of the OpenAPI document. Bodies are parsed by hand, for strict limits and speed."""

from typing import Any

from ._schema import ErrorAnswer, ModelsAnswer, PredictAnswer, PredictRequest, StateAnswer

_ERRORS: dict[int, str] = {
    400: "The length of the body is specified twice",
    401: "Missing or wrong token",
    403: "The host name is wrong, or the request comes from another page",
    431: "The head of the request is too large",
}
_ERRORS_OF_PREDICT: dict[int, str] = _ERRORS | {
    404: "No such model",
    408: "The request body took too long to arrive",
    413: "The body is too large, or the request cannot end before its deadline",
    415: "The body is not JSON, or packed",
    422: "The body is not a valid request, or exceeds the limits",
    500: "Internal server error",
    503: "The server is overloaded; see Retry-After",
    504: "The deadline passed",
}


def _errors(texts: dict[int, str]) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": ErrorAnswer, "description": text} for status, text in texts.items()}


_ANSWER_EXAMPLE = {
    "model": "g2p",
    "version": "5f1a6b64e3c3",
    "answers": [
        {
            "source": "jökull",
            "output": "j œː k y t l",
            "score": -0.31,
            "confidence": 0.84,
            "token_probabilities": [0.99, 0.97, 0.98, 0.99, 0.95, 0.99],
        }
    ],
}

PREDICTED: dict[str, Any] = {
    "summary": "Predictions for inputs",
    "response_model": None,
    "openapi_extra": {
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": PredictRequest.model_json_schema()},
            },
        },
    },
    "responses": {
        200: {
            "model": PredictAnswer,
            "description": "Answers in the order of the inputs; with `stream`, one on each line",
            "content": {
                "application/json": {"example": _ANSWER_EXAMPLE},
                "application/x-ndjson": {"schema": {"type": "string"}},
            },
        },
        **_errors(_ERRORS_OF_PREDICT),
    },
}
LISTED: dict[str, Any] = {
    "summary": "The available models",
    "response_model": None,
    "responses": {
        200: {"model": ModelsAnswer, "description": "All models"},
        **_errors(_ERRORS),
    },
}
STATE: dict[str, Any] = {
    "summary": "Whether the server is alive or ready",
    "response_model": None,
    "responses": {
        200: {"model": StateAnswer, "description": "It is"},
        **_errors(
            {code: _ERRORS[code] for code in (400, 403, 431)}
            | {503: "The server is shutting down, or its computing process is being replaced"}
        ),
    },
}
