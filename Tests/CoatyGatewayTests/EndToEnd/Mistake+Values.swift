extension Mistake {
    private static let coreTypes =
        "must be one of CoatyObject, User, Annotation, Task, IoContext, IoNode, IoSource, IoActor, Identity, Log, "
        + "Location, Snapshot."
    private static let uuid = "must be a UUID (8-4-4-4-12 hexadecimal digits) that no other object has."
    private static let duration = "must be a duration from 1 to 60000 milliseconds, such as 2s, 500ms or 500."

    private static func lamp(_ coreType: String = "CoatyObject", id: String = "5b1c1b1e-4c4b-4d0e-9d5a-0d4f1b1c1b1e")
        -> String
    { #"{"coreType":"\#(coreType)","objectType":"com.example.Lamp","objectId":"\#(id)","name":"n"}"# }

    /// Invalid values of parameters and members.
    static let values: [Row] = [
        ("GET /v1/objects?coreType=Chair", nil, "400 invalid-parameter: coreType \(coreTypes)"),
        ("GET /v1/sse/advertise?coreType=task", nil, "400 invalid-parameter: coreType \(coreTypes)"),
        ("POST /v1/advertise", #"{"object":\#(lamp("Lamp"))}"#, "400 invalid-value: /object/coreType \(coreTypes)"),
        ("POST /v1/discover", #"{"coreTypes":["Sensor"]}"#, "400 invalid-value: /coreTypes/0 \(coreTypes)"),
        (
            #"{"op":"subscribe","id":"x","event":"update","coreType":"Robot"}"#, nil,
            "400 invalid-value: /coreType \(coreTypes)"
        ),
        (
            "POST /v1/access/check", #"{"observe":"advertise","coreType":"Lamp"}"#,
            "400 invalid-value: /coreType \(coreTypes)"
        ),
        ("POST /v1/advertise", #"{"object":\#(lamp(id: "lamp-1"))}"#, "400 invalid-value: /object/objectId \(uuid)"),
        (
            "POST /v1/channel/c", #"{"objects":[\#(lamp()),\#(lamp(id: "{}"))]}"#,
            "400 invalid-value: /objects/1/objectId \(uuid)"
        ),
        (
            #"{"op":"publish","id":"x","event":"advertise","data":{"object":\#(lamp(id: "1"))}}"#, nil,
            "400 invalid-value: /data/object/objectId \(uuid)"
        ),
        ("GET /v1/sse/iovalue?ioActorId=lamp", nil, "400 invalid-parameter: ioActorId must be a UUID."),
        ("POST /v1/discover?timeout=2min", "{}", "400 invalid-parameter: timeout \(duration)"),
        ("POST /v1/discover?timeout=1.5s", "{}", "400 invalid-parameter: timeout \(duration)"),
        ("POST /v1/discover?timeout=61s", "{}", "400 invalid-parameter: timeout \(duration)"),
        ("POST /v1/discover?timeout=-1", "{}", "400 invalid-parameter: timeout \(duration)"),
        ("POST /v1/discover?timeout=99999999999999999999s", "{}", "400 invalid-parameter: timeout \(duration)"),
        ("PATCH /v1/routing/contexts/x?timeout=s", "{}", "400 invalid-parameter: timeout \(duration)"),
        (
            "GET /v1/sse/channel?channelId=c&throttle=0", nil,
            "400 invalid-parameter: throttle must be a duration from 1 to 3600000 milliseconds, such as 2s, "
                + "500ms or 500."
        ),
        (
            #"{"op":"request","id":"x","event":"discover","data":{"objectTypes":["t"]},"timeout":"2"}"#, nil,
            "400 invalid-value: /timeout \(duration)"
        ),
        (
            #"{"op":"request","id":"x","event":"discover","data":{"objectTypes":["t"]},"timeout":1.5}"#, nil,
            "400 invalid-value: /timeout \(duration)"
        ),
        ("GET /v1/sse/channel", nil, "400 invalid-parameter: channelId is missing."),
        ("GET /v1/sse/channel?channelId=a&channelId=b", nil, "400 invalid-parameter: channelId must be given once."),
        ("GET /v1/agents?online=yes", nil, "400 invalid-parameter: online must be true or false."),
        ("GET /v1/objects?limit=0", nil, "400 invalid-parameter: limit must be a whole number from 1 to 1000."),
        (
            "GET /v1/sse/channel?channelId=c&overflow=drop", nil,
            "400 invalid-parameter: overflow must be one of dropOldest, latest, close."
        ),
        (
            #"{"op":"subscribe","id":"x","event":"advertisement"}"#, nil,
            "400 invalid-value: /event must be one of advertise, associate, call, channel, deadvertise, "
                + "discover, iostate, iovalue, query, raw, routing, traffic, update."
        ),
        ("POST /v1/advertise", nil, "415 unsupported-media-type: Send the body as application/json."),
    ]
}
