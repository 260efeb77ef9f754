import Coaty
import TestSupport
import Testing

/// The last will of an agent that is killed, on another node of the cluster.
@Suite(.exclusive, .serialized, .needsBrokers, .timeLimit(.minutes(1))) struct WillTests {
    @Test(arguments: [(1, 2), (2, 1)], ["-", Dotted.namespace])
    func willReachesOtherNodes(_ nodes: (agent: Int, observer: Int), _ namespace: String) async throws {
        let observerPort = try Bench.port(ofNode: nodes.observer)
        let observer = try makeAgent(options(observerPort, namespace: namespace, dialect: .slashes))
        let deadvertised = ReceivedValues<CoatyUUID>()
        let advertised = ReceivedValues<CoatyUUID>()
        let subscriptions = [
            observer.subscribe(.deadvertise) { event in event.data.objectIds.forEach(deadvertised.append) },
            observer.subscribe(.advertise(withCoreType: .Identity)) { event in
                if let id = event.sourceId { advertised.append(id) }
            },
        ]
        observer.start()
        try await eventually("the observer is online") { observer.isOnline }
        var agent: AgentProcess? = try AgentProcess(brokerPort: Bench.port(ofNode: nodes.agent), namespace: namespace)
        let id = try #require(agent.map(\.id))
        try await eventually("the agent is advertised") { advertised.values.contains { $0.string == id } }
        // Kill the process with SIGKILL, so that its connection closes without a DISCONNECT.
        agent = nil
        let seconds = try await eventually("the will arrives") { deadvertised.values.contains { $0.string == id } }
        #expect(deadvertised.values.count { $0.string == id } == 1)
        Report.add(
            "node \(nodes.agent) to node \(nodes.observer), namespace \(namespace): \(Report.seconds(seconds))",
            to: "Wills across RabbitMQ nodes"
        )
        for subscription in subscriptions { subscription.cancel() }
        await observer.stop()
    }
}
