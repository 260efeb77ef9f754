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
    public static let isAvailable = (try? SpawningThread().run { try unshareNetwork() }) != nil
    /// The reason why tests that need a network are skipped.
    public static let need = "needs the privilege to make a network namespace"

    private let thread = SpawningThread()

    /// Creates a network whose loopback device is up, for a test that starts brokers in it.
    ///
    /// - Throws: ``TestSupportError`` if this is not permitted.
    public init() throws {
        // Here, because only the thread of the test can skip it.
        for program in [TestProgram.ip, .mosquitto, .setpriv] { _ = try program.path() }
        try thread.run { try Self.unshareNetwork() }
        try ip("link set lo up")
    }

    private static func unshareNetwork() throws {
        guard let symbol = dlsym(nil, "unshare"), unsafeBitCast(symbol, to: Unshare.self)(newNetwork) == 0
        else { throw TestSupportError("unshare: errno \(errno)") }
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
        let program = try TestProgram.ip.path()
        try run {
            let words = arguments.split(separator: " ").map(String.init)
            let pid = try SpawningThread.spawn(program, ["ip"] + words)
            var status: Int32 = 0
            guard waitpid(pid, &status, 0) == pid, status == 0 else {
                throw TestSupportError("ip \(arguments) fails")
            }
        }
    }
}
