"""A broker that sends slowly."""

from rows import row
from trickling_broker import trickle


@row(seconds=25, trickles=True)
def slow_broker(attack, size=(256 << 20) - 100, seconds=18):
    """The broker announces a message of 256 MiB and sends it over 18 s."""
    sent, outcome = trickle(attack.trickle, size, seconds)
    attack.outcomes[outcome] += 1
    attack.note(f"{sent >> 20} MiB sent")
    attack.hold()
