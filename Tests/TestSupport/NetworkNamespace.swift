import Foundation
import Glibc

/// A network of a test's own, with a loopback device and nothing else. Needed for mDNS, whose port is the same everywhere.
///
///     let network = try NetworkNamespace()
///     let gateway = try network.run { try GatewayProcess() }
///
/// It is the network of one thread, and of the threads and processes that this one starts.
public final class NetworkNamespace: Sendable {
    private typealias Unshare = @convention(c) (Int32) -> Int32
    /// CLONE_NEWNET of Linux, which the module Glibc does not have, as it does not have unshare(2).
    private static let newNetwork: Int32 = 0x4000_0000

    /// Whether this process may make one.
    public static let isAvailable = (try? NetworkNamespace()) != nil
    /// What a test that is skipped without one says.
    public static let need = "needs the privilege to make a network namespace, and ip of iproute2"

    private let thread = SpawningThread()

    /// Makes a network whose loopback device is up.
    ///
    /// - Throws: ``TestSupportError`` where that is not permitted.
    public init() throws {
        try thread.run {
            guard let symbol = dlsym(nil, "unshare"),
                unsafeBitCast(symbol, to: Unshare.self)(Self.newNetwork) == 0
            else { throw TestSupportError("unshare: errno \(errno)") }
        }
        try ip("link set lo up")
    }

    /// Runs a closure in this network.
    ///
    /// The closure, and the threads that it starts, may not start or resume tasks nor use queues: a thread that the shared
    /// pool gets for it would be in this network for good.
    ///
    /// - Throws: what the closure throws; ``TestSupportError`` where it isn't done within a minute.
    public func run<Success: Sendable>(_ body: @escaping @Sendable () throws -> Success) throws -> Success {
        try thread.run(body)
    }

    /// The kernel's table of this network's UDP sockets for IPv4.
    public func udpSockets() throws -> String {
        try run { try String(contentsOfFile: "/proc/thread-self/net/udp", encoding: .utf8) }
    }

    /// Runs ip(8) in this network.
    ///
    /// - Throws: ``TestSupportError`` where it fails.
    public func ip(_ arguments: String) throws {
        try run {
            let words = arguments.split(separator: " ").map(String.init)
            let pid = try SpawningThread.spawn("/usr/sbin/ip", ["ip"] + words)
            var status: Int32 = 0
            guard waitpid(pid, &status, 0) == pid, status == 0 else {
                throw TestSupportError("ip \(arguments) fails")
            }
        }
    }
}
