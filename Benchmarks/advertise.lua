-- POSTs an Advertise event of 300 bytes. The object has the default object type of its core type, so it is published on one topic.
local body = '{"object":{"coreType":"CoatyObject","objectType":"coaty.CoatyObject",'
    .. '"objectId":"3d6fd1c0-0c56-4f0e-9f1a-6a0b0f7a5c02","name":"Reading of soil moisture",'
    .. '"parentObjectId":"0b1e6d0a-9a55-4c6c-b0a4-8d1f6f8f4a21","percent":41.5,"quality":"ok",'
    .. '"unit":"%","bed":"north 3","at":1767225600000,"crop":"peas"}}'

assert(#body == 300, "the body has " .. #body .. " bytes")

wrk.method = "POST"
wrk.path = "/v1/advertise"
wrk.headers["Content-Type"] = "application/json"
wrk.body = body

-- Prints the number of requests, the requests per second, and the number of errors.
function done(summary, latency, requests)
    local errors = summary.errors
    io.write(string.format(
        "result %d %d %d\n",
        summary.requests,
        math.floor(summary.requests / summary.duration * 1e6 + 0.5),
        errors.connect + errors.read + errors.write + errors.status + errors.timeout
    ))
end
