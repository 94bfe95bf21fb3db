"""Lenient request bodies and query strings, for shop plug-ins.

Names and fixed words may be in upper or lower case. A blank value counts as absent. The
service's own API accepts only the exact spelling.
"""

import re
from collections.abc import Iterable
from typing import Any

from marshmallow import Schema, ValidationError, fields, pre_load, validate

from schemas.requests import Body

# A parameter's name, also in PHP's spellings of a repeated one: `status[]`, `status[0]`.
_PARAMETER = re.compile(r"(?P<name>[^\[\]]+)(?:\[[0-9]*\])?")
MAX_SHOWN = 100  # maximum characters of an unknown name in an error message


class AnyCase(Body):
    """A JSON object whose field names may be in upper or lower case.

    A blank text for an optional field means that the field is absent, unless the field
    is a nested object.
    """

    @pre_load
    def drop_nulls(self, data: Any, **_: Any) -> Any:
        """Removes null and blank values, and renames each field to its exact name.

        If two spellings of a name are given, the exact one wins.
        """
        values = super().drop_nulls(data)
        if not isinstance(values, dict):
            return values
        present: dict[str, Any] = {}
        for name, value in self._by_exact_name(values).items():
            if not self._is_absent(name, value):
                present[name] = value
        return present

    def _by_exact_name(self, values: dict[str, Any]) -> dict[str, Any]:
        """Returns the values by the fields' exact names. Unknown names stay as they are."""
        exact_names = {str(name).lower(): str(name) for name in self.fields}
        by_name: dict[str, Any] = {}
        for spelling, value in values.items():
            name = exact_names.get(spelling.lower()) or str(spelling)
            is_exact = name == spelling
            if is_exact or name not in by_name:
                by_name[name] = value
        return by_name

    def _is_absent(self, name: str, value: Any) -> bool:
        """True if the value is a blank text for an optional field."""
        field = self.fields.get(name)
        if field is None or field.required:
            return False
        if isinstance(field, fields.Nested | fields.Mapping):
            return False
        return isinstance(value, str) and not value.strip()


class Word(fields.String):
    """A text field that accepts one of `words`, in upper or lower case.

    The loaded value has the spelling of `words`.
    """

    def __init__(self, words: Iterable[str], **kwargs: Any) -> None:
        self.spellings = {word.lower(): word for word in words}
        one_of_the_words = validate.OneOf(list(self.spellings.values()))
        super().__init__(validate=one_of_the_words, **kwargs)

    def _deserialize(self, value: Any, *more: Any, **kwargs: Any) -> Any:
        text = super()._deserialize(value, *more, **kwargs)
        return self.spellings.get(text.lower(), text)


class Unknown(fields.String):
    """A filter that shop plug-ins may send, but that this service does not have.

    Every value raises ValidationError.
    """

    def _deserialize(self, *_: Any, **__: Any) -> Any:
        raise ValidationError("this filter is not possible here")


class Words(fields.List[Any]):
    """A field with a list of words. Empty texts in the list are dropped.

    If `words` are given, only these are accepted, in upper or lower case. If `words` is
    None, any text is accepted.
    """

    def __init__(self, words: Iterable[str] | None = None, **kwargs: Any) -> None:
        item = fields.String()
        if words is not None:
            item = Word(words)
        super().__init__(item, **kwargs)

    def _deserialize(self, value: Any, *more: Any, **kwargs: Any) -> Any:
        if isinstance(value, list):
            value = [word for word in value if word != ""]
        return super()._deserialize(value, *more, **kwargs)


def value_of(data: dict[str, Any], name: str) -> Any:
    """Returns the value of the field `name`, which may be in upper or lower case.

    If several spellings of the name are given, the exact one wins. Returns None if the
    field is missing.
    """
    if name in data:
        return data[name]
    for spelling, value in data.items():
        if spelling.lower() == name.lower():
            return value
    return None


def parameters(
    names: Iterable[str],
    query: Iterable[tuple[str, str]],
) -> dict[str, list[str]]:
    """Returns the values of each of the parameters `names` in a query string, by name.

    The query string may have the names in upper or lower case. The values of a parameter
    are in the order of the query string. Other parameters are dropped.
    """
    all_values = _values_by_name(names, query)
    return {name: values for name, values in all_values.items() if name in names}


def load_filters(schema: Schema, query: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Returns a list operation's filters from a query string.

    Raises ValidationError for an unknown filter, an invalid value, or two different
    values of one filter. If an unknown filter were ignored, the list would have more
    than the client wants, such as other orders.
    """
    filters: dict[str, Any] = {}
    for name, values in _values_by_name(schema.fields, query).items():
        field = schema.fields.get(name)
        if field is None:
            known_names = ", ".join(schema.fields)
            raise ValidationError(f"is no filter here: {known_names}", name[:MAX_SHOWN])
        if isinstance(field, fields.List):
            filters[name] = values
            continue
        is_ambiguous = len(set(values)) > 1
        if is_ambiguous:
            raise ValidationError("must be given once", name)
        filters[name] = values[0]
    loaded: dict[str, Any] = schema.load(filters)
    return loaded


def _values_by_name(
    names: Iterable[str],
    query: Iterable[tuple[str, str]],
) -> dict[str, list[str]]:
    """Returns all values in a query string by the name of their parameter.

    A name that equals one of `names` in another case is replaced by it. Any other name
    keeps its own spelling.
    """
    exact_names = {name.lower(): name for name in names}
    values_by_name: dict[str, list[str]] = {}
    for spelling, value in query:
        name = spelling
        parameter = _PARAMETER.fullmatch(spelling)
        if parameter:
            name = exact_names.get(parameter["name"].lower(), spelling)
        values_by_name.setdefault(name, []).append(value)
    return values_by_name
