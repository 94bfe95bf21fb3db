"""Routes that are compiled once for all services of a process that have the same."""

import threading
from collections.abc import Iterator
from typing import Any

from werkzeug.routing import Map, MapAdapter, Rule, RuleFactory


class MapCompiledOnce(Map):
    """The routes of a service, which those of an earlier one that had the same stand in for.

    A service names its views by text, so that routes are of no service.
    """

    _maps: dict[str, Map] = {}
    _compiling = threading.Lock()

    def __init__(self, **kwargs: Any) -> None:
        self._added: list[Rule] = []
        self._compiled: Map | None = None
        super().__init__(**kwargs)

    def add(self, rulefactory: RuleFactory) -> None:
        self._added.extend(rulefactory.get_rules(self))
        self._compiled = None

    def bind(self, *args: Any, **kwargs: Any) -> MapAdapter:
        return self._compile().bind(*args, **kwargs)

    def bind_to_environ(self, *args: Any, **kwargs: Any) -> MapAdapter:
        return self._compile().bind_to_environ(*args, **kwargs)

    def iter_rules(self, endpoint: Any = None) -> Iterator[Rule]:
        return self._compile().iter_rules(endpoint)

    def _compile(self) -> Map:
        with self._compiling:  # a rule has other facts once a map has bound it
            if self._compiled is None:
                key = repr((self._options(), [_facts(rule) for rule in self._added]))
                if key not in self._maps:
                    self._maps[key] = Map(self._added, **self._options())
                self._compiled = self._maps[key]
            return self._compiled

    def _options(self) -> dict[str, Any]:
        return {
            "converters": self.converters,
            "merge_slashes": self.merge_slashes,
            "host_matching": self.host_matching,
        }


def _facts(rule: Rule) -> tuple[Any, ...]:
    """All that a service gives to a route."""
    return (
        rule.rule,
        rule.endpoint,
        sorted(rule.methods or ()),
        rule.methods is None,
        rule.defaults,
        rule.host,
        rule.subdomain,
        rule.strict_slashes,
        rule.redirect_to,
        getattr(rule, "provide_automatic_options", None),
    )
