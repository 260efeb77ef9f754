"""The rows of the table. Each is a function with a name, a docstring that describes the attack, and parameters."""

import dataclasses
import inspect
from collections.abc import Callable

ROWS = {}


@dataclasses.dataclass
class Row:
    name: str
    #: Describes the attack in a sentence.
    text: str
    run: Callable
    #: Default values of the parameters.
    parameters: dict
    #: Duration of the attack in seconds.
    seconds: float
    #: Number of addresses that the attacker uses.
    addresses: int
    #: Parameters for one hostile client of the soak, or None if the row needs a separate gateway.
    soak: dict | None
    #: YAML configuration of the gateway.
    configuration: str | None
    #: Hard limit of the gateway's file descriptors.
    descriptors: int | None
    #: Whether the gateway's broker connection goes through `trickling-broker`.
    trickles: bool
    #: Whether the gateway gets SIGTERM as soon as the attack ends, during the work that it causes.
    stops: bool
    #: Which broker of `refusing.py` the gateway has, or None for one that accepts everything.
    broker: str | None = None


def row(*, seconds=15, addresses=1, soak=None, configuration=None, descriptors=None, trickles=False, stops=False, brokers=(None,)):
    """Adds a function to the table. The row has the name of the function, with hyphens. With several brokers, there is a row for each."""

    def add(function):
        parameters = {
            key: parameter.default
            for key, parameter in inspect.signature(function).parameters.items()
            if parameter.default is not parameter.empty
        }
        text = " ".join(function.__doc__.split())
        for broker in brokers:
            name = function.__name__.replace("_", "-") + (f"-{broker.lower().replace(' ', '-')}" if broker else "")
            ROWS[name] = Row(
                name, text, function, parameters, seconds, addresses, soak, configuration, descriptors, trickles, stops, broker
            )
        return function

    return add


# The order of the imports is the order of the table.
from rows import calm, filters, objects, routing, streams, subscriptions, limits, identities, broker, poison, events  # noqa: E402, F401
