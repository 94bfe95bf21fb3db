"""Errors as plug-ins read them: one object in both shapes, or a list of fields."""

from flask import Response

from btcpay.values.errors import InvalidRequest
from btcpay.web.application import answer
from btcpay.web.errors import as_api_error, error_response


class Unfit(InvalidRequest):
    """Fields of a body or a query that cannot be taken, each with its path and why."""

    def __init__(self, *fields: tuple[str, str]) -> None:
        super().__init__("; ".join(f"{path} {message}" for path, message in fields))
        self.fields = fields


def refusal(error: Exception) -> Response:
    if isinstance(error, Unfit):
        named = [{"path": path, "message": message} for path, message in error.fields]
        return answer(named, 422)
    found = as_api_error(error)
    said = {"code": found.code, "message": str(found)}
    response = error_response(found)
    response.data = answer(said | {"error": said}).data
    return response
