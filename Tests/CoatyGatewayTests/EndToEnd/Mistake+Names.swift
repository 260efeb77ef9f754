extension Mistake {
    /// Misspelled and unknown names in queries, frames and bodies.
    static let names: [Row] = [
        ("GET /v1/objects?filer=x", nil, "400 invalid-parameter: filer is unknown; did you mean filter? \(objects)"),
        (
            "GET /v1/objects?coretype=Task", nil,
            "400 invalid-parameter: coretype is unknown; did you mean coreType? \(objects)"
        ),
        ("GET /v1/objects?colour=red", nil, "400 invalid-parameter: colour is unknown. \(objects)"),
        (
            "GET /v1/agents?onlne=true", nil,
            "400 invalid-parameter: onlne is unknown; did you mean online? Allowed: online."
        ),
        (
            "POST /v1/discover?timout=500", "{}",
            "400 invalid-parameter: timout is unknown; did you mean timeout? \(request)"
        ),
        (
            "POST /v1/call/add?tiemout=2s", "{}",
            "400 invalid-parameter: tiemout is unknown; did you mean timeout? \(request)"
        ),
        (
            "POST /v1/discover", #"{"objectType":"com.example.Door"}"#,
            "400 invalid-value: /objectType is unknown; did you mean objectTypes? \(discover)"
        ),
        (
            "POST /v1/discover", #"{"coreType":"Task"}"#,
            "400 invalid-value: /coreType is unknown; did you mean coreTypes? \(discover)"
        ),
        ("POST /v1/query?untill=x", "{}", "400 invalid-parameter: untill is unknown; did you mean until? \(request)"),
        (
            "POST /v1/raw/t?retian=true", nil,
            "400 invalid-parameter: retian is unknown; did you mean retain? Allowed: retain."
        ),
        ("POST /v1/advertise?retain=true", "{}", "400 invalid-parameter: retain is unknown\(none)"),
        ("POST /v1/batch?dryRun=true", "[]", "400 invalid-parameter: dryRun is unknown\(none)"),
        ("GET /v1/info?verbose", nil, "400 invalid-parameter: verbose is unknown\(none)"),
        ("POST /v1/admin/reload?force=1", nil, "400 invalid-parameter: force is unknown\(none)"),
        (
            "PATCH /v1/routing/contexts/x?timeOut=1", "{}",
            "400 invalid-parameter: timeOut is unknown; did you mean timeout? Allowed: timeout."
        ),
        (
            "GET /v1/routing/contexts/x/explain?sourceId=a&ioActorId=b", nil,
            "400 invalid-parameter: sourceId is unknown; did you mean ioSourceId? Allowed: ioActorId, ioSourceId."
        ),
        (
            "GET /v1/sse/advertise?objectType=t&filer=x", nil,
            "400 invalid-parameter: filer is unknown; did you mean filter? Allowed: buffer, coreType, "
                + "encoding, fields, filter, latest, objectType, overflow, since, snapshot, throttle, ticket."
        ),
        (
            "GET /v1/sse/channel?chanelId=c", nil,
            "400 invalid-parameter: chanelId is unknown; did you mean channelId? \(channel)"
        ),
        (
            "GET /v1/sse/channel?channelId=c&snapshot=true", nil,
            "400 invalid-parameter: snapshot is unknown. \(channel)"
        ),
        (
            "WS /v1/ws/channel?channelId=c&overlow=latest", nil,
            "400 invalid-parameter: overlow is unknown; did you mean overflow? \(channel)"
        ),
        ("WS /v1/ws?tiket=x", nil, "400 invalid-parameter: tiket is unknown; did you mean ticket? Allowed: ticket."),
        ("WS /v1/ws?channelId=c", nil, "400 invalid-parameter: channelId is unknown. Allowed: ticket."),
        (
            #"{"op":"subscribe","id":"x","event":"channel","channelId":"c","filer":["name",["Exists"]]}"#, nil,
            "400 invalid-value: /filer is unknown; did you mean filter? Allowed: buffer, channelId, "
                + "encoding, event, fields, filter, id, latest, op, overflow, since, throttle."
        ),
        (
            #"{"op":"request","id":"x","event":"discover","data":{"objectTypes":["t"]},"timout":500}"#, nil,
            "400 invalid-value: /timout is unknown; did you mean timeout? Allowed: data, event, id, limit, "
                + "op, operation, timeout, until."
        ),
        (
            #"{"op":"publish","id":"x","event":"channel","chanelId":"c","data":{}}"#, nil,
            "400 invalid-value: /chanelId is unknown; did you mean channelId? Allowed: channelId, data, "
                + "event, id, op."
        ),
        (
            "POST /v1/advertise", #"{"object":\#(thing),"lifetme":60}"#,
            "400 invalid-value: /lifetme is unknown; did you mean lifetime? Allowed: lifetime, object, privateData."
        ),
        (
            "POST /v1/deadvertise", #"{"objectIds":["a"],"objectId":"b"}"#,
            "400 invalid-value: /objectId is unknown; did you mean objectIds? Allowed: objectIds."
        ),
        (
            "POST /v1/channel/c", #"{"object":\#(thing),"privatData":{}}"#,
            "400 invalid-value: /privatData is unknown; did you mean privateData? \(channelData)"
        ),
        (
            "POST /v1/query", #"{"objectTypes":["t"],"objectFiltr":{}}"#,
            "400 invalid-value: /objectFiltr is unknown; did you mean objectFilter? \(query)"
        ),
        (
            "POST /v1/update", #"{"object":\#(thing),"changedValues":{}}"#,
            "400 invalid-value: /changedValues is unknown. Allowed: object."
        ),
        (
            "POST /v1/call/op", #"{"paramters":[1]}"#,
            "400 invalid-value: /paramters is unknown; did you mean parameters? Allowed: filter, parameters."
        ),
        (
            #"{"op":"request","id":"x","event":"call","operation":"op","data":{"paramters":[1]}}"#, nil,
            "400 invalid-value: /data/paramters is unknown; did you mean parameters? Allowed: filter, parameters."
        ),
        (
            #"{"op":"publish","id":"x","event":"advertise","data":{"object":\#(thing),"privatData":{}}}"#, nil,
            "400 invalid-value: /data/privatData is unknown; did you mean privateData? \(one)"
        ),
        (
            "POST /v1/io/nodes", #"{"contextName":"c","ioSource":[]}"#,
            "400 invalid-value: /ioSource is unknown; did you mean ioSources? Allowed: characteristics, "
                + "contextName, ioActors, ioSources, leaseDuration, name, objectId."
        ),
    ]

    private static let thing =
        #"{"coreType":"CoatyObject","objectType":"t","objectId":"5b1c1b1e-4c4b-4d0e-9d5a-0d4f1b1c1b1e","name":"n","objct":1}"#
    private static let one = "Allowed: object, privateData."
    private static let channelData = "Allowed: object, objects, privateData."
    private static let query = "Allowed: coreTypes, objectFilter, objectJoinConditions, objectTypes."
    private static let discover = "Allowed: coreTypes, externalId, objectId, objectTypes."
    private static let none = ": this resource takes no query parameters."
    private static let objects = "Allowed: coreType, filter, limit, objectType, offset, order."
    private static let request = "Allowed: limit, min, timeout, until."
    private static let channel =
        "Allowed: buffer, channelId, encoding, fields, filter, latest, overflow, since, throttle, ticket."
}
