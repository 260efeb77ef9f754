"""Publications because of which a broker closes the connection: larger than it accepts, or denied."""

from refusing import BROKERS, Innocents, Interruptions, poison
from rows import row
from wire import request

# Seconds before and after an interruption in which a publication may be on its way to the broker.
FLIGHT = 0.3
# The longest interruption, in seconds.
LONGEST = 2
# Seconds after the last publication in which its interruption ends.
REACTION = 10


def endure(attack, poisons, during, maximum, seconds):
    """Publishes different poisons, evenly over a time. At most some number of interruptions may begin within some seconds."""
    interruptions = Interruptions(attack.gateway)
    innocents = Innocents(attack.gateway, attack.broker)
    for number in range(poisons):
        channel, thing = poison(attack.refusing, number)
        attack.ask(request("POST", f"/v1/channel/{channel}", {"object": thing}, close=True), number, timeout=10)
        attack.hold(during * (number + 1) / poisons - (attack.seconds - attack.left))
    attack.hold(REACTION)
    innocents.end()
    interruptions.end()
    count, most = len(interruptions.times), interruptions.most_within(seconds)
    attack.note(f"{count} interruptions, at most {most} of them within {seconds} s, the longest {interruptions.longest:.1f} s")
    attack.note(f"{innocents.gaps} gaps for an observer, {interruptions.refused} publications given up")
    if most > maximum:
        attack.fail(f"{most} interruptions within {seconds} s, more than {maximum}")
    if interruptions.longest > LONGEST:
        attack.fail(f"an interruption took {interruptions.longest:.1f} s, more than {LONGEST} s")
    if not interruptions.is_online:
        attack.fail("the gateway is still offline")
    for problem in innocents.problems(interruptions, FLIGHT):
        attack.fail(problem)


@row(seconds=100, brokers=BROKERS)
def poisons(attack, poisons=100, during=75):
    """A client publishes 100 different events because of which the broker closes the connection. It may interrupt the gateway twice."""
    endure(attack, poisons, during, maximum=2, seconds=attack.seconds)


@row(seconds=100, addresses=100, brokers=BROKERS)
def poisoners(attack, poisons=100, during=75):
    """100 clients publish an event each because of which the broker closes the connection. They may interrupt the gateway 5 times a minute."""
    endure(attack, poisons, during, maximum=5, seconds=60)
