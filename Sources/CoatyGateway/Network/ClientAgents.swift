import Coordination

/// The agents of clients, which stop together.
struct ClientAgents: Component {
    let ioNodes: IoNodeRegistry
    let identities: ClientIdentities

    func start() async {}

    func stop() async {
        async let left: Void = ioNodes.stop()
        await identities.stop()
        await left
    }
}
