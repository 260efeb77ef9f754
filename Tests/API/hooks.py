"""What schemathesis can't know from the contract alone."""

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
# What OpenAPI 3.0 has no words for, by where a refusal says that it lies: a condition is a pair whose second has an
# operator first; the parameters of a stream depend on its event; the id of a context is that of the path, and its name
# stays; the ids of an IO node and its points are different ones, and its points are counted together; a question about
# access needs a channel or a topic for some patterns.
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
    """Gives each request an Idempotency-Key of its own. Of those without, every other one that may be answered line by line asks for it."""
    # A change of the header fields would bring back the one that a case leaves out on purpose, such as the token.
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


def is_beyond_words(case, refusal):
    place = refusal.get("pointer") or refusal.get("parameter") or ""
    if case.operation.path in ("/v1/sse/{event}", "/v1/ws/{event}"):
        return place in STREAM_PARAMETERS
    if case.operation.path.startswith("/v1/routing/contexts/{objectId}") and place.endswith(("/objectId", "/name")):
        return True
    if case.operation.path == "/v1/io/nodes" and place.endswith(("/objectId", "/ioSources", "/ioActors")):
        return True
    if case.operation.path == "/v1/access/check" and place in ("/channel", "/topic"):
        return True
    return any(part in place for part in CONDITIONS)


def is_used_up(response):
    """An Idempotency-Key that another case has had: the contract has no words for what came before."""
    return problem(response).get("type", "").endswith(":idempotency-key-reused")


def has_a_control_character(response):
    """An id that is taken from a response is not compared with the pattern of the path, and a security scheme has no pattern."""
    url = urllib.parse.urlsplit(response.request.url)
    tickets = urllib.parse.parse_qs(url.query).get("ticket", [])
    return any(unicodedata.category(character) == "Cc" for text in (urllib.parse.unquote(url.path), *tickets) for character in text)


@schemathesis.check
def valid_data_is_accepted(ctx, response, case):
    """`positive_data_acceptance`, but for what the contract can only say in prose."""
    if is_used_up(response):
        return None
    if response.status_code == 400 and (is_beyond_words(case, problem(response)) or has_a_control_character(response)):
        return None
    return checks.positive_data_acceptance(ctx, response, case)


@schemathesis.check
def invalid_data_is_rejected(ctx, response, case):
    """`negative_data_rejection`, but a batch refuses each publication by itself."""
    if is_used_up(response):
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
