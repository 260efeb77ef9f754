"""Extends schemathesis with rules that the contract states only in prose."""

import itertools
import json
import unicodedata
import urllib.parse
import zlib

import schemathesis
from schemathesis.checks import load_all_checks
from schemathesis.core.parameters import ParameterLocation

load_all_checks()
from schemathesis.specs.openapi import checks

LINES = "application/x-ndjson"
# OpenAPI 3.0 can't express these rules, so refusals with these pointers and parameters are accepted: a condition is a pair whose
# second item begins with an operator; the parameters of a stream depend on its event; the id of a context is the id in the path, and
# its name can't change; the ids of an IO node and its points differ, and its points are counted together; an access check needs a
# channel or a topic for some patterns; the minimum of responses is at most their limit.
CONDITIONS = ("filter", "until", "/condition", "/objectFilter", "/filter", "/objectJoinConditions")
STREAM_PARAMETERS = {
    *("coreType", "objectType", "snapshot", "channelId", "operation", "contextName", "topic", "ioActorId"),
    *("ioPointId", "contextId", "events", "filter", "fields", "throttle", "since", "encoding"),
}


@schemathesis.serializer(LINES)
def write_lines(ctx, value):
    return {"data": value if isinstance(value, bytes) else str(value).encode()}


@schemathesis.deserializer(LINES)
def read_lines(ctx, response):
    return response.content.decode()


keys = itertools.count()


@schemathesis.hook
def before_call(context, case, kwargs):
    """Makes each Idempotency-Key unique. Of the requests without one, half of those that can be answered in lines accept lines."""
    # Changing the header fields would restore a field that the case leaves out on purpose, such as the token.
    if case.meta and getattr(case.meta.phase.data, "parameter_location", None) == ParameterLocation.HEADER:
        return
    if (key := (case.headers or {}).get("Idempotency-Key")) is not None:
        case.headers["Idempotency-Key"] = f"{next(keys)}{key}"[:255]
    elif "request" in (case.operation.tags or []) and zlib.crc32(repr(case.body).encode()) & 1:
        case.headers["Accept"] = LINES


def problem(response):
    if response.headers.get("content-type", [""])[0] != "application/problem+json":
        return {}
    return json.loads(response.content)


def is_stated_in_prose(case, refusal):
    place = refusal.get("pointer") or refusal.get("parameter") or ""
    if case.operation.path in ("/v1/sse/{event}", "/v1/ws/{event}"):
        return place in STREAM_PARAMETERS
    if case.operation.path.startswith("/v1/routing/contexts/{objectId}") and place.endswith(("/objectId", "/name")):
        return True
    if case.operation.path == "/v1/io/nodes" and place.endswith(("/objectId", "/ioSources", "/ioActors")):
        return True
    if case.operation.path == "/v1/access/check" and place in ("/channel", "/topic"):
        return True
    if "request" in (case.operation.tags or []) and place == "min":
        return True
    return any(part in place for part in CONDITIONS)


def is_key_reused(response):
    """Returns whether another case has used the Idempotency-Key. The contract can't express state."""
    return problem(response).get("type", "").endswith(":idempotency-key-reused")


def has_a_control_character(response):
    """Returns whether the path or the ticket has a control character.

    schemathesis does not check ids that it takes from responses against the pattern of the path, and a security scheme has no pattern.
    """
    url = urllib.parse.urlsplit(response.request.url)
    tickets = urllib.parse.parse_qs(url.query).get("ticket", [])
    return any(unicodedata.category(character) == "Cc" for text in (urllib.parse.unquote(url.path), *tickets) for character in text)


@schemathesis.check
def valid_data_is_accepted(ctx, response, case):
    """Like `positive_data_acceptance`, except for rules that the contract states only in prose."""
    if is_key_reused(response):
        return None
    if response.status_code == 400 and (is_stated_in_prose(case, problem(response)) or has_a_control_character(response)):
        return None
    return checks.positive_data_acceptance(ctx, response, case)


@schemathesis.check
def invalid_data_is_rejected(ctx, response, case):
    """Like `negative_data_rejection`, except that a batch refuses each publication separately."""
    if is_key_reused(response):
        return None
    if case.operation.path == "/v1/batch" and response.status_code == 200:
        results = json.loads(response.content)["results"]
        if any(result["status"] >= 400 for result in results) or case.media_type == LINES:
            return None
    return checks.negative_data_rejection(ctx, response, case)


@schemathesis.check
def lines_are_frames(ctx, response, case):
    if response.headers.get("content-type", [""])[0] != LINES:
        return
    frames = [json.loads(line) for line in response.content.decode().splitlines()]
    ops = [frame["op"] for frame in frames]
    assert ops[-1] in ("done", "error") and set(ops[:-1]) <= {"response"}, ops
