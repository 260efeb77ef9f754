package import Coaty

/// The contexts that the gateway routes: `{contexts?: [{context, rules?}]}`.
package struct RoutingConfiguration: Sendable {
    /// Maximum number of contexts of a gateway; more are refused.
    static let maximumContexts = 32

    /// The contexts, with unique ids and names.
    package var contexts: [HostedContext] = []

    /// Creates a configuration without contexts.
    package init() {}

    /// - Throws: `PayloadError` with the place of the error.
    package init(_ view: JSONView) throws(PayloadError) {
        try view.refuseMembers(besides: ["contexts"])
        guard let list = view["contexts"] else { return }
        guard list.kind == .array else { throw list.invalid("must be an array") }
        try list.checkValues()
        for element in list.elements {
            guard contexts.count < Self.maximumContexts else {
                throw list.invalid("has more than \(Self.maximumContexts) contexts")
            }
            try element.refuseMembers(besides: ["context", "rules"])
            guard let object = element["context"] else {
                throw .invalid(pointer: element.pointer + "/context", reason: "missing")
            }
            let rules = try element["rules"].map { view throws(PayloadError) in try IoAssociationRule.rules(view) }
            let context = try HostedContext(context: object, rules: rules ?? [])
            for (name, isTaken) in [
                ("objectId", contexts.contains { $0.objectId == context.objectId }),
                ("name", contexts.contains { WireName($0.name) == WireName(context.name) }),
            ] where isTaken {
                throw .invalid(pointer: object.pointer + "/" + name, reason: "is that of another context")
            }
            contexts.append(context)
        }
    }
}

/// A context that the gateway routes, and its rules.
package struct HostedContext: Sendable {
    package let objectId: CoatyUUID
    package let name: String
    /// The IoContext object, unchanged.
    package let context: JSONDocument
    package var rules: [IoAssociationRule]
    /// The version in a cluster.
    package var version = RoutingVersion()

    /// - Throws: `PayloadError` if the object is not an IoContext, its id is not a UUID in lower case, or its name is
    ///   not valid in a topic.
    package init(context view: JSONView, rules: [IoAssociationRule]) throws(PayloadError) {
        let payload = try Payload(object: view.bytes)
        let event: AdvertiseEvent
        do throws(PayloadError) {
            event = try AdvertiseEvent(payload: payload)
        } catch {
            guard case .invalid(let pointer, let reason) = error else { throw error }
            throw .invalid(pointer: view.pointer + pointer.dropFirst("/object".count), reason: reason)
        }
        func invalid(_ name: String, _ reason: String) -> PayloadError {
            .invalid(pointer: "\(view.pointer)/\(name)", reason: reason)
        }
        guard view["coreType"]?.string == CoreType.IoContext.rawValue else {
            throw invalid("coreType", "must be IoContext")
        }
        // Only lower case, because ids are compared byte by byte on the wire.
        guard let text = view["objectId"]?.string, let objectId = CoatyUUID(uuidString: text), objectId.string == text
        else { throw invalid("objectId", "must be a UUID in lower case") }
        guard let name = view["name"]?.string, WireName.isPublishable(name) else {
            throw invalid("name", "must not be empty nor hold #, +, / or control characters")
        }
        do {
            guard try event.data.object is IoContext else {
                throw invalid("objectType", "must be that of an IoContext")
            }
            context = try JSONDocument(Array(view.bytes))
        } catch let error as PayloadError {
            throw error
        } catch {
            throw .invalid(pointer: view.pointer, reason: "is no object of its object type")
        }
        self.objectId = objectId
        self.name = name
        self.rules = rules
    }

    /// The decoded context.
    package var object: IoContext {
        get throws {
            let payload = try Payload(object: context.bytes)
            guard let object = try AdvertiseEvent(payload: payload).data.object as? IoContext else {
                throw PayloadError.invalid(pointer: "/objectType", reason: "must be that of an IoContext")
            }
            return object
        }
    }
}
