import Coaty

extension Pattern {
    /// Events without responses.
    static let oneWay = [
        Pattern("Advertise by core type") { scene in
            let object = makeObject(Dotted.objectType)
            let id = object.objectId
            try await scene.check(
                .advertise(withCoreType: .CoatyObject),
                { event in
                    let object = try event.data.object
                    return object.objectId == id ? object.objectType : nil
                },
                gives: Dotted.objectType,
                publish: { try $0.publishAdvertise(.with(object: object)) }
            )
        },
        Pattern("Advertise by object type") { scene in
            let object = makeObject(Dotted.objectType)
            try await scene.check(
                .advertise(withObjectType: Dotted.objectType),
                { try $0.data.object.objectId.string },
                gives: object.objectId.string,
                publish: { try $0.publishAdvertise(.with(object: object)) }
            )
        },
        Pattern("Deadvertise") { scene in
            let id = CoatyUUID()
            let sender = scene.sender.identityId
            try await scene.check(
                .deadvertise,
                { $0.sourceId == sender ? "\($0.data.objectIds)" : nil },
                gives: "\([id])",
                publish: { try $0.publishDeadvertise(.with(objectIds: [id])) }
            )
        },
        Pattern("Channel") { scene in
            let object = makeObject(Dotted.objectType)
            try await scene.check(
                .channel(Dotted.channel),
                { "\($0.channelId) \(try $0.data.object?.objectId.string ?? "")" },
                gives: "\(Dotted.channel) \(object.objectId)",
                publish: { try $0.publishChannel(.with(object: object, channelId: Dotted.channel)) }
            )
        },
    ]
}
