import Foundation
import TestSupport
import Testing

/// The modules import what Package.swift lists for them. The compiler also accepts modules that are built before.
@Suite(.exclusive) struct ModulesTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
    /// Modules that come with Swift.
    private static let system: Set = [
        "Darwin", "Dispatch", "Foundation", "FoundationEssentials", "Glibc", "Musl", "Synchronization",
    ]

    /// The names in the dependencies of a target by its own name.
    private static func targets() throws -> [String: Set<String>] {
        let manifest = try String(contentsOf: root.appending(path: "Package.swift"), encoding: .utf8)
        let target = /arget\(\s*name: "([^"]+)",\s*(?:dependencies: \[([\s\S]*?)\],\s*(?:path|exclude|swiftSettings))?/
        return Dictionary(
            uniqueKeysWithValues: manifest.matches(of: target).map { match in
                // Of a product, the package is not imported.
                let list = (match.output.2 ?? "").replacing(/, package: "[^"]*"/, with: "")
                return (String(match.output.1), Set(list.matches(of: /"([^"]+)"/).map { String($0.output.1) }))
            }
        )
    }

    private static func imports(of module: String) throws -> Set<String> {
        let folder = root.appending(path: "Sources/\(module)")
        let paths = try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".swift") }
        let line = /^ *(?:@\w+ )?(?:package |public )?import (?:class |enum |func |protocol |struct )?(\w+)/
        return try paths.reduce(into: []) { names, path in
            let code = try String(contentsOf: folder.appending(path: path), encoding: .utf8)
            names.formUnion(code.matches(of: line.anchorsMatchLineEndings()).map { String($0.output.1) })
        }
    }

    @Test(arguments: [
        "Access", "Base", "Cluster", "Coaty", "CoatyGateway", "CoatyMQTT", "CoatySensorThings", "Coordination", "Edge",
        "Feeds", "Gate", "HTTPServer", "Logs", "Measurement", "Network", "ProblemDetails", "WebSocketServer",
        "coaty-gateway",
    ])
    func importsWhatThePackageLists(module: String) throws {
        let listed = try #require(try Self.targets()[module])
        let imported = try Self.imports(of: module).subtracting(Self.system)
        #expect(imported.subtracting(listed) == [], "imported, but not listed")
        #expect(listed.subtracting(imported) == [], "listed, but not imported")
    }
}
