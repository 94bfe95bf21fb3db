"""Bodies and queries of shop plug-ins: names and words in letters of any size, blanks for nothing.

They differ from those of our own interface, whose specification knows one spelling of each.
"""

import re
from collections.abc import Iterable
from typing import Any

from marshmallow import Schema, ValidationError, fields, pre_load, validate

from schemas.requests import Body

# PHP's spellings of a parameter that may be given several times: `status[]`, `status[0]`.
_PARAMETER = re.compile(r"([^\[\]]+)(?:\[[0-9]*\])?")
MAX_SHOWN = 100  # characters of a name that is not understood


class AnyCase(Body):
    """An object whose names may be in any case; an empty text for what may be absent is absent."""

    @pre_load
    def drop_nulls(self, data: Any, **_: Any) -> Any:
        """Also gives each field its own name, of two spellings the exact one."""
        given = super().drop_nulls(data)
        if not isinstance(given, dict):
            return given
        names = {str(name).lower(): str(name) for name in self.fields}
        named: dict[str, Any] = {}
        for spelling, value in given.items():
            name = names.get(spelling.lower()) or str(spelling)
            if name == spelling or name not in named:
                named[name] = value
        return {
            name: value
            for name, value in named.items()
            if not self._is_absent(name, value)
        }

    def _is_absent(self, name: str, value: Any) -> bool:
        field = self.fields.get(name)
        if (
            field is None
            or field.required
            or isinstance(field, fields.Nested | fields.Mapping)
        ):
            return False
        return isinstance(value, str) and not value.strip()


class Word(fields.String):
    """One of these words in any case; it is loaded as it is written here."""

    def __init__(self, words: Iterable[str], **kwargs: Any) -> None:
        self.words = {word.lower(): word for word in words}
        super().__init__(validate=validate.OneOf(list(self.words.values())), **kwargs)

    def _deserialize(self, value: Any, *more: Any, **kwargs: Any) -> Any:
        text = super()._deserialize(value, *more, **kwargs)
        return self.words.get(text.lower(), text)


class Unknown(fields.String):
    """A filter of the whole interface that is not known here: whatever it says is refused."""

    def _deserialize(self, *_: Any, **__: Any) -> Any:
        raise ValidationError("this filter is not possible here")


class Words(fields.List[Any]):
    """Words in any case; empty texts among them are none."""

    def __init__(self, words: Iterable[str] | None = None, **kwargs: Any) -> None:
        super().__init__(fields.String() if words is None else Word(words), **kwargs)

    def _deserialize(self, value: Any, *more: Any, **kwargs: Any) -> Any:
        if isinstance(value, list):
            value = [word for word in value if word != ""]
        return super()._deserialize(value, *more, **kwargs)


def value_of(data: dict[str, Any], name: str) -> Any:
    """The value of this name in any case, of two spellings that of the exact one; None for none."""
    if name in data:
        return data[name]
    return next(
        (value for key, value in data.items() if key.lower() == name.lower()), None
    )


def parameters(
    names: Iterable[str], query: Iterable[tuple[str, str]]
) -> dict[str, list[str]]:
    """The values of a query string by these names, in order; others are left out."""
    return {
        name: values for name, values in _sorted(names, query).items() if name in names
    }


def load_filters(schema: Schema, query: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """What a list is asked for. Raises ValidationError for whatever is not understood.

    A filter that were left out would list more than was asked for, such as another order.
    """
    given: dict[str, Any] = {}
    for name, values in _sorted(schema.fields, query).items():
        field = schema.fields.get(name)
        if field is None:
            known = ", ".join(schema.fields)
            raise ValidationError(f"is no filter here: {known}", name[:MAX_SHOWN])
        if isinstance(field, fields.List):
            given[name] = values
        elif len(set(values)) > 1:
            raise ValidationError("must be given once", name)
        else:
            given[name] = values[0]
    loaded: dict[str, Any] = schema.load(given)
    return loaded


def _sorted(
    names: Iterable[str], query: Iterable[tuple[str, str]]
) -> dict[str, list[str]]:
    """All values by the name that is meant; what means none of `names` has its own spelling."""
    known = {name.lower(): name for name in names}
    found: dict[str, list[str]] = {}
    for spelling, value in query:
        parameter = _PARAMETER.fullmatch(spelling)
        name = known.get(parameter[1].lower(), spelling) if parameter else spelling
        found.setdefault(name, []).append(value)
    return found
