"""A row without an attack, which shows what the harness itself measures."""

from rows import row


@row(seconds=10, soak={})
def calm(attack):
    """Does nothing."""
    attack.hold()
