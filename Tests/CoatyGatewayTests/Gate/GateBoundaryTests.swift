import Foundation
import TestSupport
import Testing

/// The gate is the only path from a client to the network. The compiler hides the network's parts in `Gate`; this test
/// also finds an edge that gets hold of one in another way.
@Suite(.exclusive) struct GateBoundaryTests {
    /// Files of the edge that name an agent or a type that acts in the network. New transports and resources use the gate,
    /// and are not added to this list.
    private static let insiders: Set = [
        // Reports whether the gateway is online.
        "Resources/HealthResource.swift"
    ]

    private static let names = [
        "CommunicationManager", "FeedHub", "ObjectRegistry", "IoNodeRegistry(", "RoutingAdmin(", "ClientIdentities",
        "KeptObjects", "NetworkParts", "network.", ".manager",
    ]

    @Test func onlyTheGateReachesTheNetwork() throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().appending(path: "Sources/Edge")
        let paths = try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".swift") }
        #expect(paths.count > 50)
        let found = try paths.filter { path in
            let code = try String(contentsOf: folder.appending(path: path), encoding: .utf8)
                .split(separator: "\n").filter { !$0.drop { $0 == " " }.hasPrefix("//") }.joined(separator: "\n")
            return Self.names.contains { code.contains($0) }
        }
        #expect(Set(found).subtracting(Self.insiders) == [])
        #expect(Self.insiders.subtracting(found) == [], "no longer needed")
    }

    /// Nothing outside of the gate can read the parts from it, or create the proof that something is allowed.
    @Test func theGateKeepsItsParts() throws {
        let gate = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().appending(path: "Sources/Gate/Gate.swift")
        let code = try String(contentsOf: gate, encoding: .utf8)
        #expect(code.contains("private let network: NetworkParts"))
        #expect(code.contains("fileprivate init(_ principal: Principal, _ permissions: Permissions"))
    }
}
