"""A question of the page: an input to a run, and overrides for the model's output and attention."""

from math import isqrt
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

# A page of text. A longer input would slow down every keystroke, and has more weights than fit on a screen.
MOST_CHARACTERS = 2000
MOST_STEPS = 2000
MOST_PICTURE = 8 * 1024 * 1024  # characters: a 6 MB image in base64

Text = Annotated[str, Field(max_length=MOST_CHARACTERS)]
Step = Annotated[int, Field(ge=0, lt=MOST_STEPS)]
Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Weights = Annotated[list[Weight], Field(max_length=MOST_STEPS)]


class Question(BaseModel):
    """The body of a request; see `foveal.inspection.explain` for `prefix` and `forced`.

    `picture` is an image file or a recording as a data URI, `data:image/png;base64,...`, for runs that read one; `input`
    is then the question about the image, if any.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    run: str
    input: Text
    picture: Annotated[str, Field(max_length=MOST_PICTURE)] = ""
    features: Text = ""
    prefix: Annotated[list[Text], Field(max_length=MOST_STEPS)] = []
    forced: Annotated[dict[Step, Weights], Field(max_length=MOST_STEPS)] = {}


class QuestionError(ValueError):
    """Raised for an invalid body; the message is one line."""


def read_question(body: bytes) -> Question:
    """Parse the body of a request.

    Args:
        body: JSON of the request.

    Returns:
        The question.

    Raises:
        QuestionError: The body is not JSON, or a field is missing or invalid.

    Examples:
        >>> read_question(b'{"run": "ice", "input": "af"}').input
        'af'
        >>> read_question(b'{"run": "ice"}')
        Traceback (most recent call last):
        ...
        foveal.web._question.QuestionError: input: Field required
    """
    try:
        return Question.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise QuestionError(said(first)) from None


def check_length(question: Question, most: int, most_cells: int) -> None:
    """Raise an error if a text of a question has more than `most` characters, or its square exceeds `most_cells`: an
    explanation has a weight for each pair of step and position.
    """
    longest, most = max(len(question.input), len(question.features)), min(most, isqrt(most_cells))
    if longest > most:
        raise QuestionError(
            f"input: expected at most {most} characters, got {longest}. Shorten it."
        )


def said(error: ErrorDetails) -> str:
    """Describe a problem of a body and its location, without quoting the body."""
    place = ".".join(str(part) for part in error["loc"])
    return f"{place or 'the body'}: {error['msg']}"
