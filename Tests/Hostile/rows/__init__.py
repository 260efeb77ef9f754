"""The rows of the table: each is a function with a name, a sentence that says what it does, and parameters."""

import dataclasses
import inspect
from collections.abc import Callable

ROWS = {}


@dataclasses.dataclass
class Row:
    name: str
    #: What the attacker does, in a sentence.
    text: str
    run: Callable
    #: The defaults of the parameters.
    parameters: dict
    #: Seconds that the attack lasts.
    seconds: float
    #: Number of addresses that the attacker has.
    addresses: int
    #: Parameters for one hostile client of the soak; None if the row needs a gateway of its own.
    soak: dict | None
    #: YAML configuration of the gateway.
    configuration: str | None
    #: Hard limit of the gateway's file descriptors.
    descriptors: int | None
    #: Whether the gateway's broker connection goes through `trickling-broker`.
    trickles: bool
    #: Whether SIGTERM comes as soon as the attack ends, amid the work that it causes.
    stops: bool


def row(*, seconds=15, addresses=1, soak=None, configuration=None, descriptors=None, trickles=False, stops=False):
    """Adds a function to the table, under its own name."""

    def add(function):
        name = function.__name__.replace("_", "-")
        parameters = {
            key: parameter.default
            for key, parameter in inspect.signature(function).parameters.items()
            if parameter.default is not parameter.empty
        }
        text = " ".join(function.__doc__.split())
        ROWS[name] = Row(
            name, text, function, parameters, seconds, addresses, soak, configuration, descriptors, trickles, stops
        )
        return function

    return add


# In the order of the table.
from rows import calm, filters, objects, routing, streams, subscriptions, limits, identities, broker, events  # noqa: E402, F401
