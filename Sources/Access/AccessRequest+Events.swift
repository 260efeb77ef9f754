package import Coaty

/// The access requests of events, read from their payloads.
extension AccessRequest {
    /// Returns the target of an object: its types, or any if they are missing.
    package static func target(of object: JSONView) -> AccessTarget {
        guard let coreType = object["coreType"]?.string.flatMap(CoreType.init(rawValue:)),
            let objectType = object["objectType"]?.string
        else { return .anyObject }
        return .object(coreType, WireName(objectType))
    }

    /// Returns one request for each object.
    package static func objects(_ verb: Verb, _ pattern: AccessPattern, _ objects: [JSONView]) -> [AccessRequest] {
        objects.map { AccessRequest(verb: verb, pattern: pattern, target: target(of: $0), object: $0) }
    }

    /// Returns one request for each type in a Discover or Query event; a request for objects of any type if it contains
    /// no types, or joins other objects.
    package static func types(_ verb: Verb, _ pattern: AccessPattern, in payload: Payload) -> [AccessRequest] {
        let json = payload.json
        var targets: [AccessTarget] = []
        for type in json["objectTypes"]?.elements.compactMap(\.string) ?? [] {
            targets.append(.objectType(WireName(type)))
        }
        for type in json["coreTypes"]?.elements.compactMap(\.string) ?? [] {
            targets.append(CoreType(rawValue: type).map(AccessTarget.coreType) ?? .anyObject)
        }
        if targets.isEmpty || json["objectJoinConditions"] != nil { targets.append(.anyObject) }
        return targets.map { AccessRequest(verb: verb, pattern: pattern, target: $0) }
    }

    /// Returns the requests of a Channel event: one for each of its objects.
    package static func channel(_ verb: Verb, _ channelId: WireName, _ payload: Payload) -> [AccessRequest] {
        let objects = payload.allObjects
        let target = AccessTarget.channel(channelId)
        if objects.isEmpty { return [AccessRequest(verb: verb, pattern: .channel, target: target)] }
        return objects.map { AccessRequest(verb: verb, pattern: .channel, target: target, object: $0) }
    }
}

extension Payload {
    /// The objects of an event: `object`, `objects` and `relatedObjects`.
    package var allObjects: [JSONView] {
        let lists = [json["objects"], json["relatedObjects"]].compactMap(\.self).flatMap { Array($0.elements) }
        return [json["object"]].compactMap(\.self) + lists
    }
}
