import Foundation
import TestSupport
import Testing

/// The gate is the only path from a client to the network. This test lists the files that can access the network.
@Suite(.exclusive) struct GateBoundaryTests {
    /// Files that name an agent or a type that acts in the network. New transports and resources use the gate, and are
    /// not added to this list.
    private static let insiders: Set = [
        // The gate, its operations, and the activities that they start.
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
        "CoatyGateway/Operations/Metrics/GatewayMetrics.swift",
        // Connect the parts, and report whether the gateway is online.
        "CoatyGateway/Gateway+Start.swift", "CoatyGateway/Gateway+Servers.swift", "CoatyGateway/Gateway+Options.swift",
        "CoatyGateway/RunningGateway.swift", "CoatyGateway/GatewayAgent.swift",
        "Edge/Resources/HealthResource.swift",
        // An agent like other agents, which serves no client.
        "CoatyGateway/Demo/DemoGreenhouse.swift",
    ]

    private static let names = [
        "CommunicationManager", "FeedHub", "ObjectRegistry(", "IoNodeRegistry(", "RoutingAdmin(", "ClientIdentities",
        "KeptObjects(", "NetworkParts", "network.", ".manager",
    ]

    private static let sources = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().appending(path: "Sources")

    @Test func onlyTheGateReachesTheNetwork() throws {
        let paths = try ["Gate", "Edge", "CoatyGateway", "Feeds/Delivery"].flatMap { folder in
            try FileManager.default.subpathsOfDirectory(atPath: Self.sources.appending(path: folder).path)
                .filter { $0.hasSuffix(".swift") }.map { "\(folder)/\($0)" }
        }
        #expect(paths.count > 150)
        let found = try paths.filter { path in
            let code = try String(contentsOf: Self.sources.appending(path: path), encoding: .utf8)
                .split(separator: "\n").filter { !$0.drop { $0 == " " }.hasPrefix("//") }.joined(separator: "\n")
            return Self.names.contains { code.contains($0) }
        }
        #expect(Set(found).subtracting(Self.insiders) == [])
        #expect(Self.insiders.subtracting(found) == [], "no longer needed")
    }

    /// Nothing outside of the gate can read the parts from it, or create the proof that something is allowed.
    @Test func theGateKeepsItsParts() throws {
        let code = try String(contentsOf: Self.sources.appending(path: "Gate/Gate.swift"), encoding: .utf8)
        #expect(code.contains("private let network: NetworkParts"))
        #expect(code.contains("fileprivate init(_ principal: Principal, _ permissions: Permissions"))
    }
}
