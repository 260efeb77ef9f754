// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("ExistentialAny"),
]

// `git archive` writes the commit here (.gitattributes).
let archivedCommit = "$Format:%H$"

// Who builds without a repository, as in the image, can name the commit.
let commit =
    Context.environment["COATY_COMMIT"]
    ?? (archivedCommit.hasPrefix("$") ? nil : archivedCommit)
    ?? Context.gitInformation.map { $0.currentCommit + ($0.hasUncommittedChanges ? " with changes" : "") }
    ?? "unknown"

let package = Package(
    name: "coaty",
    platforms: [.macOS(.v15)],
    products: [
        .library(name: "Coaty", targets: ["Coaty"]),
        .library(name: "CoatyMQTT", targets: ["CoatyMQTT"]),
        .library(name: "CoatySensorThings", targets: ["CoatySensorThings"]),
        .executable(name: "coaty-gateway", targets: ["coaty-gateway"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", exact: "1.8.2"),
        .package(url: "https://github.com/apple/swift-collections", exact: "1.6.0"),
        .package(url: "https://github.com/apple/swift-log", exact: "1.16.2"),
    ],
    targets: [
        .systemLibrary(name: "CMosquitto", pkgConfig: "libmosquitto", providers: [.apt(["libmosquitto-dev"])]),
        .systemLibrary(name: "CMicroHTTPD", pkgConfig: "libmicrohttpd", providers: [.apt(["libmicrohttpd-dev"])]),
        .systemLibrary(name: "CWebSockets", pkgConfig: "libwebsockets", providers: [.apt(["libwebsockets-dev"])]),
        // No pkgConfig: the file has a flag that the package manager refuses.
        .systemLibrary(name: "CAvahi"),
        .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "CEpoll"),
        // No pkgConfig: its file needs those of a library that its headers do not use.
        .systemLibrary(name: "CJose", providers: [.apt(["libcjose-dev"])]),
        .systemLibrary(name: "CMalloc"),
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CYAML", pkgConfig: "yaml-0.1", providers: [.apt(["libyaml-dev"])]),
        .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        // The files that the gateway serves, and the commit.
        .target(name: "CEmbedded", cSettings: [.define("COATY_COMMIT", to: "\"\(commit)\"")]),

        .target(
            name: "Coaty",
            dependencies: [
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HashTreeCollections", package: "swift-collections"),
                .product(name: "OrderedCollections", package: "swift-collections"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict
        ),
        .target(
            name: "CoatyMQTT",
            dependencies: [
                "Coaty", "CMosquitto",
                .target(name: "CAvahi", condition: .when(platforms: [.linux])),
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict
        ),
        .target(name: "CoatySensorThings", dependencies: ["Coaty"], swiftSettings: strict),
        .target(name: "Coordination", swiftSettings: strict),
        .target(name: "ProblemDetails", swiftSettings: strict),
        .target(
            name: "Base",
            dependencies: [
                "CMalloc", "Coaty", "Coordination", "ProblemDetails",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict
        ),
        .target(
            name: "Access",
            dependencies: [
                "Base", "CCurl", "CJose", "COpenSSL", "Coaty", "CoatyMQTT", "Coordination", "ProblemDetails",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict
        ),
        .target(
            name: "Cluster",
            dependencies: [
                "Access", "Base", "CCurl", "COpenSSL", "Coaty", "Coordination",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict
        ),
        .target(
            name: "Network",
            dependencies: [
                "Access", "Base", "Cluster", "Coaty", "CoatyMQTT", "Coordination", "Measurement", "ProblemDetails",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HashTreeCollections", package: "swift-collections"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict
        ),
        .target(name: "Measurement", swiftSettings: strict),
        .target(
            name: "HTTPServer",
            dependencies: [
                "CEpoll", "CMicroHTTPD", "Measurement", "ProblemDetails",
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict
        ),
        .target(
            name: "WebSocketServer",
            dependencies: [
                "CWebSockets",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict
        ),
        .target(
            name: "Feeds",
            dependencies: [
                "Access", "Base", "COpenSSL", "Cluster", "Coaty", "CoatyMQTT", "Coordination", "Measurement", "Network",
                "ProblemDetails", "WebSocketServer",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict
        ),
        .target(
            name: "Gate",
            dependencies: [
                "Access", "Base", "Cluster", "Coaty", "CoatyMQTT", "Coordination", "Feeds", "Measurement", "Network",
                "ProblemDetails",
                .product(name: "DequeModule", package: "swift-collections"),
            ],
            swiftSettings: strict
        ),
        .target(
            name: "Logs",
            dependencies: ["Access", "HTTPServer", .product(name: "Logging", package: "swift-log")],
            swiftSettings: strict
        ),
        .target(
            name: "Edge",
            dependencies: [
                "Access", "Base", "CEmbedded", "CEpoll", "COpenSSL", "CZlib", "Coaty", "CoatyMQTT", "Coordination",
                "Feeds", "Gate",
                "HTTPServer", "Logs", "Measurement", "Network", "ProblemDetails", "WebSocketServer",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict
        ),
        .target(
            name: "CoatyGateway",
            dependencies: [
                "Access", "Base", "CYAML", "Cluster", "Coaty", "CoatyMQTT", "Coordination", "Edge", "Feeds", "Gate",
                "HTTPServer", "Logs", "Measurement", "Network", "WebSocketServer",
                .product(name: "Logging", package: "swift-log"),
            ],
            exclude: ["Console"],
            swiftSettings: strict
        ),
        .executableTarget(
            name: "coaty-gateway",
            dependencies: [
                "Base", "CCurl", "CEmbedded", "CMicroHTTPD", "CMosquitto", "COpenSSL", "CWebSockets", "Coaty",
                "CoatyGateway", "Logs",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Logging", package: "swift-log"),
            ],
            swiftSettings: strict
        ),
        .executableTarget(
            name: "hello-world",
            dependencies: ["Coaty", "CoatyMQTT", "ExampleSupport"],
            path: "Examples/hello-world/agent",
            swiftSettings: strict
        ),
        .target(
            name: "ExampleSupport",
            dependencies: ["Coaty", "CoatyMQTT"],
            path: "Examples/Support",
            swiftSettings: strict
        ),
        .target(
            name: "HelloWorldModel",
            dependencies: ["Coaty"],
            path: "Examples/hello-world/model",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "hello-world-service",
            dependencies: ["Coaty", "ExampleSupport", "HelloWorldModel"],
            path: "Examples/hello-world/service",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "hello-world-client",
            dependencies: ["Coaty", "ExampleSupport", "HelloWorldModel"],
            path: "Examples/hello-world/client",
            swiftSettings: strict
        ),
        .target(
            name: "RemoteOperationsModel",
            dependencies: ["Coaty"],
            path: "Examples/remote-operations/model",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "remote-operations-light",
            dependencies: ["Coaty", "ExampleSupport", "RemoteOperationsModel"],
            path: "Examples/remote-operations/light",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "remote-operations-control",
            dependencies: ["Coaty", "ExampleSupport", "RemoteOperationsModel"],
            path: "Examples/remote-operations/control",
            swiftSettings: strict
        ),
        .target(name: "IORoutingModel", path: "Examples/io-routing/model", swiftSettings: strict),
        .executableTarget(
            name: "io-routing-sources",
            dependencies: ["Coaty", "ExampleSupport", "IORoutingModel"],
            path: "Examples/io-routing/sources",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "io-routing-actor",
            dependencies: ["Coaty", "ExampleSupport", "IORoutingModel"],
            path: "Examples/io-routing/actor",
            swiftSettings: strict
        ),

        .executableTarget(
            name: "routing-bench",
            dependencies: ["Coaty", "RoutingReference", .product(name: "Logging", package: "swift-log")],
            path: "Benchmarks/routing",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "filter-bench",
            dependencies: ["Coaty"],
            path: "Benchmarks/filters",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "coding-bench",
            dependencies: ["Coaty"],
            path: "Benchmarks/coding",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "hot-paths",
            dependencies: ["Coaty"],
            path: "Benchmarks/instructions",
            exclude: ["expected.json", "sigsuspend.c"],
            swiftSettings: strict
        ),

        .executableTarget(
            name: "websocket-echo",
            dependencies: ["WebSocketServer", .product(name: "Logging", package: "swift-log")],
            path: "Tests/Autobahn/echo",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "test-agent",
            dependencies: ["Coaty", "CoatyMQTT"],
            path: "Tests/TestAgent",
            swiftSettings: strict
        ),
        .target(
            name: "TestSupport",
            dependencies: ["CMosquitto"],
            path: "Tests/TestSupport",
            swiftSettings: strict
        ),
        .target(
            name: "CoatyTestSupport",
            dependencies: ["Coaty", "CoatyMQTT"],
            path: "Tests/CoatyTestSupport",
            swiftSettings: strict
        ),
        .target(
            name: "RoutingReference",
            dependencies: ["Coaty"],
            path: "Tests/RoutingReference",
            swiftSettings: strict
        ),
        .testTarget(
            name: "CoatyTests",
            dependencies: ["Coaty", "CoatyMQTT", "CoatyTestSupport", "RoutingReference", "TestSupport"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "ExamplesTests",
            dependencies: [
                "hello-world-service", "hello-world-client", "remote-operations-light", "remote-operations-control",
                "io-routing-sources", "io-routing-actor", "coaty-gateway", "TestSupport",
            ],
            swiftSettings: strict
        ),
        .testTarget(
            name: "BrokersTests",
            dependencies: ["Coaty", "CoatyMQTT", "test-agent", "TestSupport"],
            path: "Tests/Brokers/BrokersTests",
            swiftSettings: strict
        ),
        .testTarget(
            name: "CoatyMQTTTests",
            dependencies: ["CoatyMQTT", "CoatyTestSupport", "TestSupport"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "CoatySensorThingsTests",
            dependencies: ["Coaty", "CoatySensorThings", "TestSupport"],
            swiftSettings: strict
        ),
        .testTarget(name: "BaseTests", dependencies: ["Base", "TestSupport"], swiftSettings: strict),
        .testTarget(name: "CoordinationTests", dependencies: ["Coordination", "TestSupport"], swiftSettings: strict),
        .testTarget(name: "HTTPServerTests", dependencies: ["HTTPServer", "TestSupport"], swiftSettings: strict),
        .testTarget(
            name: "WebSocketServerTests",
            dependencies: ["WebSocketServer", "TestSupport"],
            swiftSettings: strict
        ),
        .testTarget(
            name: "CoatyGatewayTests",
            dependencies: [
                "Access", "Base", "CEmbedded", "CJose", "COpenSSL", "Cluster", "CoatyGateway", "CoatyTestSupport",
                "Edge",
                "Feeds", "Gate", "Logs", "Measurement", "Network", "coaty-gateway", "test-agent", "TestSupport",
            ],
            swiftSettings: strict
        ),
    ]
)

// Needs the fuzzer's runtime and flags, which `make fuzz` gives.
if Context.environment["COATY_FUZZ"] != nil {
    package.targets += [
        .systemLibrary(name: "CLibFuzzer", path: "Tests/Fuzz/CLibFuzzer"),
        .executableTarget(
            name: "fuzz-inbound",
            dependencies: ["Coaty", "CoatyMQTT", "CLibFuzzer"],
            path: "Tests/Fuzz/inbound",
            swiftSettings: strict
        ),
    ]
}
