import Foundation
import TestSupport
import Testing

/// The agents of other namespaces that `GET /v1/status` counts.
@Suite(.exclusive, .frameChecks) struct OtherNamespacesTests {
    private static let agents = ["a1", "a2", "a3"]

    private let scene: Scene

    init() throws { scene = try Scene(["--namespace", "com.example.home"]) }

    /// Returns the number of agents by namespace.
    private func counts() throws -> [String: Int] {
        let list = try scene.gateway.request("GET", "/v1/status").json?["otherNamespaces"] as? [[String: Any]]
        let pairs = (list ?? []).map { ($0["namespace"] as? String ?? "", $0["agents"] as? Int ?? -1) }
        return Dictionary(pairs) { first, _ in first }
    }

    private func join(_ agent: String, _ namespace: String) throws {
        let identity = #"{"coreType":"Identity","objectType":"coaty.Identity","objectId":"\#(agent)","name":"A"}"#
        try scene.agent.publish("coaty/3/\(namespace)/ADV:Identity/\(agent)", #"{"object":\#(identity)}"#)
    }

    private func withdraw(_ objectId: String, by agent: String, _ namespace: String) throws {
        try scene.agent.publish("coaty/3/\(namespace)/DAD/\(agent)", #"{"objectIds":["\#(objectId)"]}"#)
    }

    /// Waits until the gateway's session that observes other namespaces is connected.
    private func waitUntilObserved() throws {
        try waitUntil("other namespaces are observed") {
            try join("first", "observed")
            return try counts()["observed"] == 1
        }
    }

    @Test func agentsOfOtherNamespacesAreCountedUntilTheyLeave() throws {
        try waitUntilObserved()
        for agent in Self.agents {
            try join(agent, "com.helloworld")
            try join(agent, "com.example.home")
        }
        // An agent that is advertised again is counted once.
        try join("a1", "com.helloworld")
        try withdraw("first", by: "first", "observed")
        try waitUntil("they are counted") { try counts() == ["com.helloworld": 3] }

        // Deadvertising an object does not remove its agent.
        try withdraw("an object", by: "a1", "com.helloworld")
        try withdraw("a2", by: "a2", "com.helloworld")
        try waitUntil("one has left") { try counts()["com.helloworld"] == 2 }
        for agent in ["a1", "a3"] { try withdraw(agent, by: agent, "com.helloworld") }
        try waitUntil("nobody is left") { try counts().isEmpty }
    }

    @Test func namespacesAreBounded() throws {
        try waitUntilObserved()
        for number in 1...40 { try join("agent", "ns\(number)") }
        try waitUntil("there are as many as fit") { try counts().count == 16 }
        // A namespace without agents is removed, so another one can be counted.
        try withdraw("first", by: "first", "observed")
        try join("agent", "late")
        try waitUntil("another one is counted") { try counts()["late"] == 1 }
    }

    @Test func agentsAreRemovedWhenTheConnectionIsLost() throws {
        try waitUntilObserved()
        scene.broker.kill()
        try waitUntil("nothing is known") { try counts().isEmpty }
    }
}
