import Foundation
import Glibc

/// A network for one test, with only a loopback device. Needed for mDNS, because all its participants use the same
/// port.
///
///     let network = try NetworkNamespace()
///     let gateway = try network.run { try GatewayProcess() }
///
/// A network belongs to one thread, and to the threads and processes that this thread starts.
public final class NetworkNamespace: Sendable {
    private typealias Unshare = @convention(c) (Int32) -> Int32
    /// CLONE_NEWNET of Linux. The module Glibc has neither the constant nor unshare(2).
    private static let newNetwork: Int32 = 0x4000_0000

    /// Whether this process has the privilege to create a network.
    public static let isAvailable = (try? NetworkNamespace()) != nil
    /// The reason why tests that need a network are skipped.
    public static let need = "needs the privilege to make a network namespace, and ip of iproute2"

    private let thread = SpawningThread()

    /// Creates a network whose loopback device is up.
    ///
    /// - Throws: ``TestSupportError`` if this is not permitted.
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
    /// The closure, and threads that it starts, must not create or resume tasks, nor use dispatch queues: a thread that
    /// the shared pool creates for them would stay in this network.
    ///
    /// - Throws: the error of the closure; ``TestSupportError`` if the closure does not return within a minute.
    public func run<Success: Sendable>(_ body: @escaping @Sendable () throws -> Success) throws -> Success {
        try thread.run(body)
    }

    /// Returns the kernel's table of the UDP sockets for IPv4 in this network.
    public func udpSockets() throws -> String {
        try run { try String(contentsOfFile: "/proc/thread-self/net/udp", encoding: .utf8) }
    }

    /// Runs ip(8) in this network.
    ///
    /// - Throws: ``TestSupportError`` if the command fails.
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
