import Coordination

/// Components that stop concurrently and share the time of a stop.
struct ComponentGroup: Component {
    let components: [any Component]

    func start() async throws {
        for component in components { try await component.start() }
    }

    func stop() async {
        await withTaskGroup { group in
            for component in components { group.addTask { await component.stop() } }
        }
    }
}
