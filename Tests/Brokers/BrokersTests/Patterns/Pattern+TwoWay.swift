import Coaty

extension Pattern {
    /// Requests and their responses.
    static let twoWay = [
        Pattern("Discover and Resolve") { scene in
            try await scene.check(
                .discover,
                answer: { event in
                    guard event.data.isObjectTypeCompatible(Dotted.objectType) else { return }
                    try event.resolve(.with(object: makeObject(Dotted.objectType, name: "resolved")))
                },
                to: .with(objectTypes: [Dotted.objectType]),
                { try $0.data.object?.name ?? "" },
                gives: "resolved"
            )
        },
        Pattern("Query and Retrieve") { scene in
            try await scene.check(
                .query,
                answer: { event in
                    guard event.data.isObjectTypeCompatible(Dotted.objectType) else { return }
                    let objects = ["first", "second"].map { makeObject(Dotted.objectType, name: $0) }
                    try event.retrieve(.with(objects: objects))
                },
                to: .with(objectTypes: [Dotted.objectType]),
                { try $0.data.objects.map(\.name).joined(separator: ", ") },
                gives: "first, second"
            )
        },
        Pattern("Update by core type and Complete") { scene in
            try await checkUpdate(scene, .update(withCoreType: .CoatyObject))
        },
        Pattern("Update by object type and Complete") { scene in
            try await checkUpdate(scene, .update(withObjectType: Dotted.objectType))
        },
        Pattern("Call and Return") { scene in
            try await scene.check(
                .call(operation: Dotted.operation),
                answer: { event in
                    let parameter = event.data.getParameterByIndex(index: 0) ?? .null
                    try event.returnEvent(.with(result: [.string(event.operation), parameter]))
                },
                to: .with(operation: Dotted.operation, parameters: [.string("red")]),
                { "\($0.data.result == [.string(Dotted.operation), "red"])" },
                gives: "true"
            )
        },
    ]

    private static func checkUpdate(_ scene: Scene, _ observation: EventObservation<UpdateEvent>) async throws {
        let object = makeObject(Dotted.objectType, name: "proposed")
        let id = object.objectId
        try await scene.check(
            observation,
            answer: { event in
                let object = try event.data.object
                guard object.objectId == id else { return }
                object.name = "completed"
                try event.complete(.with(object: object))
            },
            to: .with(object: object),
            { "\(try $0.data.object.objectType) \(try $0.data.object.name)" },
            gives: "\(Dotted.objectType) completed"
        )
    }
}
