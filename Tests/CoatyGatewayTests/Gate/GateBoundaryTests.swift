import Foundation
import TestSupport
import Testing

@testable import CoatyGateway

/// The gate is the only path from a client to the network. This test lists the files that can access the network.
@Suite(.exclusive) struct GateBoundaryTests {
    /// Files of CoatyGateway, outside of its folder `Feeds`, that name an agent or a type that acts in the network. New
    /// transports and resources use the gate, and are not added to this list.
    private static let insiders: Set = [
        // The gate, its operations, and the requests that they start.
        "Gate/NetworkParts.swift", "Gate/Gate.swift", "Gate/Operation.swift", "Gate/RequestActivity.swift",
        "Gate/Activity.swift", "Gate/ClientRequest.swift",
        "Gate/ClientPublication.swift", "Gate/SubscriptionActivity.swift",
        "Gate/Operations/Answer.swift", "Gate/Operations/ConnectionOperations.swift",
        "Gate/Operations/ControlOperations.swift", "Gate/Operations/Identify.swift",
        "Gate/Operations/IoNodeOperations.swift",
        "Gate/Operations/IoPointOperations.swift", "Gate/Operations/Observe.swift",
        "Gate/Operations/Publish.swift", "Gate/Operations/ReadObjects.swift", "Gate/Operations/ReadStatus.swift",
        "Gate/Operations/RoutingOperations.swift", "Gate/Operations/SendRequest.swift",
        "Gate/Operations/ReadMetrics.swift",
        // Reads the counters for the metrics.
        "Operations/Metrics/GatewayMetrics.swift",
        // Connect the parts, and report whether the gateway is online.
        "Gateway+Start.swift", "Gateway+Servers.swift", "Gateway+Options.swift",
        "Operations/HealthResource.swift",
        "RunningGateway.swift", "GatewayAgent.swift",
        // An agent like other agents, which serves no client.
        "Demo/DemoGreenhouse.swift",
    ]

    private static let names = [
        "CommunicationManager", "FeedHub", "ObjectRegistry(", "IoNodeRegistry(", "RoutingAdmin(", "ClientIdentities",
        "KeptObjects(", "NetworkParts",
        "network.", ".manager",
    ]

    @Test func onlyTheGateReachesTheNetwork() throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().appending(path: "Sources/CoatyGateway")
        let paths = try FileManager.default.subpathsOfDirectory(atPath: folder.path)
            .filter { $0.hasSuffix(".swift") && !$0.hasPrefix("Feeds/") }
        #expect(paths.count > 50)
        let found = try paths.filter { path in
            let code = try String(contentsOf: folder.appending(path: path), encoding: .utf8)
                .split(separator: "\n").filter { !$0.drop { $0 == " " }.hasPrefix("//") }.joined(separator: "\n")
            return Self.names.contains { code.contains($0) }
        }
        #expect(Set(found).subtracting(Self.insiders) == [])
        #expect(Self.insiders.subtracting(found) == [], "no longer needed")
    }
}
