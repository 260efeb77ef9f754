#!/usr/bin/env python3
"""What a Python programmer would write instead of the gateway: POST /v1/advertise over aiohttp and aiomqtt.

usage: bridge.py BROKER_PORT
"""

import asyncio
import sys
import uuid

import aiohttp.web
import aiomqtt

OWN_ID = uuid.uuid4()


async def advertise(request):
    body = await request.read()
    try:
        thing = (await request.json())["object"]
        core_type, object_type, _ = thing["coreType"], thing["objectType"], uuid.UUID(thing["objectId"])
    except (ValueError, KeyError, TypeError):
        raise aiohttp.web.HTTPBadRequest(text="an object with coreType, objectType and objectId is needed")
    mqtt = request.app["mqtt"]
    await mqtt.publish(f"coaty/3/-/ADV:{core_type}/{OWN_ID}", body)
    if object_type != f"coaty.{core_type}":
        await mqtt.publish(f"coaty/3/-/ADV::{object_type}/{OWN_ID}", body)
    return aiohttp.web.json_response({"deferred": False}, status=202)


async def main():
    async with aiomqtt.Client("127.0.0.1", int(sys.argv[1])) as mqtt:
        app = aiohttp.web.Application()
        app["mqtt"] = mqtt
        app.router.add_post("/v1/advertise", advertise)
        runner = aiohttp.web.AppRunner(app, access_log=None)
        await runner.setup()
        site = aiohttp.web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        print(f"ready on http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
        await asyncio.Event().wait()


asyncio.run(main())
