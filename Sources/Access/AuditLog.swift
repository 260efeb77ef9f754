package import Base
package import Coaty
import Dispatch
import Foundation
import Glibc
package import Logging
import Synchronization

/// Records denials, failed authentications and administrative operations, as JSON lines without payloads and secrets.
///
/// Lines are written on a queue, so that no operation waits for a disk. Equal denials within a second become one line
/// with their count.
package final class AuditLog: Sendable {
    /// The destination of the lines.
    package enum Destination: Sendable, Equatable {
        case none
        case standardOutput
        case file(String)
    }

    /// Maximum number of different denials that are counted at the same time; further ones get a line each.
    static let maximumCounted = 10_000
    private static let interval = Duration.seconds(1)

    private struct Counted {
        var since: ContinuousClock.Instant
        var repetitions = 0
    }

    private struct State {
        var counted: [String: Counted] = [:]
        /// The lines of each client since the interval of the client began.
        var lines: [String: Counted] = [:]
        var queued = 0
        var dropped = 0
        var handle: FileHandle?

        mutating func mayWrite(about client: String, maximum: Int) -> Bool {
            let now = ContinuousClock.now
            if let counted = lines[client], now - counted.since < AuditLog.interval {
                lines[client]?.repetitions += 1
                return counted.repetitions < maximum
            }
            if lines.count >= AuditLog.maximumCounted { lines = [:] }
            lines[client] = Counted(since: now, repetitions: 1)
            return true
        }
    }

    private let destination: Destination
    /// Maximum number of queued lines; further ones are dropped and counted.
    private let maximumQueued: Int
    /// Maximum number of lines about one client within ``interval``; further ones are dropped and counted.
    private let maximumLines: Int
    private let logger: Logger
    private let queue = DispatchQueue(label: "audit log")
    private let state = Mutex(State())

    /// - Throws: if the file can't be opened.
    package init(_ destination: Destination, limits: Limits = Limits(), logger: Logger) throws {
        self.destination = destination
        (maximumQueued, maximumLines) = (limits.auditLines, limits.auditLinesPerClient)
        self.logger = logger
        try reopen()
    }

    /// Opens the file again, because it may have been renamed for rotation.
    ///
    /// - Throws: if the file can't be opened; the old one stays in use.
    package func reopen() throws {
        let handle: FileHandle
        switch destination {
        case .none: return
        case .standardOutput: handle = .standardOutput
        case .file(let path):
            handle = FileHandle(fileDescriptor: try Self.open(path, O_CREAT), closeOnDealloc: true)
        }
        state.withLock { $0.handle = handle }
    }

    /// Checks that a start could open the file. Leaves no file that did not exist.
    ///
    /// - Throws: ``InvalidConfiguration`` with the reason.
    package static func check(_ destination: Destination) throws(InvalidConfiguration) {
        guard case .file(let path) = destination else { return }
        let descriptor = Glibc.open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        if descriptor >= 0 {
            close(descriptor)
            unlink(path)
        } else {
            close(try open(path, 0))
        }
    }

    private static func open(_ path: String, _ flags: Int32) throws(InvalidConfiguration) -> Int32 {
        let descriptor = Glibc.open(path, O_WRONLY | O_APPEND | O_CLOEXEC | flags, 0o600)
        guard descriptor >= 0 else {
            throw InvalidConfiguration(description: "audit-log: \(path): \(errorText(errno))")
        }
        return descriptor
    }

    package func denied(_ claim: AccessRequest, by principal: Principal) {
        guard destination != .none else { return }
        let key = "\(Self.client(principal) ?? "")\u{0}\(principal.address)\u{0}\(claim.summary)"
        guard let repetitions = count(key) else { return }
        write("denied", principal, principal.address, [claim], repetitions: repetitions)
    }

    package func performed(_ claims: [AccessRequest], by principal: Principal, error: (any Error)? = nil) {
        guard destination != .none else { return }
        let problem = error.map { Problems.of($0) }
        write("performed", principal, principal.address, claims, status: problem?.status ?? 200)
    }

    func failedAuthentication(from address: String) {
        guard let repetitions = count("\u{0}\(address)") else { return }
        logger.notice("authentication failed", metadata: ["address": "\(address)"])
        write("authentication-failed", nil, address, [], repetitions: repetitions)
    }

    /// Records a publication that was given up because the broker closes the connection when it receives it.
    package func refusedByBroker(_ publication: RefusedPublication, of client: ClientKey) {
        var json = Array(#","client":"#.utf8)
        JSONText.append("\(client)", to: &json)
        json += #","publication":"#.utf8
        JSONText.append(Problems.short("\(publication.kind)"), to: &json)
        json += #","bytes":\#(publication.size)"#.utf8
        if let id = publication.objectId { json += #","objectId":"\#(id.string)""#.utf8 }
        write("refused-by-broker", about: "\(client)", json)
    }

    /// Returns a text that identifies the principal; nil for anonymous clients.
    private static func client(_ principal: Principal) -> String? {
        guard let name = principal.name else { return nil }
        return "\(principal.credentials ?? "")\u{0}\(principal.issuer ?? "")\u{0}\(name)"
    }

    /// Counts an event of a kind.
    ///
    /// - Returns: nil if an event was recorded within the interval; otherwise the number of unrecorded events since
    ///   then.
    private func count(_ key: String) -> Int? {
        state.withLock { state in
            let now = ContinuousClock.now
            if let counted = state.counted[key] {
                guard now - counted.since >= Self.interval else {
                    state.counted[key]?.repetitions += 1
                    return nil
                }
                state.counted[key] = Counted(since: now)
                return counted.repetitions
            }
            if state.counted.count >= Self.maximumCounted { state.counted = [:] }
            state.counted[key] = Counted(since: now)
            return 0
        }
    }

    private func write(
        _ event: String,
        _ principal: Principal?,
        _ address: String,
        _ claims: [AccessRequest],
        status: Int? = nil,
        repetitions: Int = 0
    ) {
        var json = Array(#","principal":"#.utf8)
        if let name = principal?.name { JSONText.append(name, to: &json) } else { json += "null".utf8 }
        if let issuer = principal?.issuer {
            json += #","issuer":"#.utf8
            JSONText.append(issuer, to: &json)
        }
        if let credentials = principal?.credentials { json += #","credentials":"\#(credentials)""#.utf8 }
        json += #","address":"#.utf8
        JSONText.append(address, to: &json)
        json += #","needs":"#.utf8
        JSONText.appendArray(claims, to: &json) { JSONText.append($0.summary, to: &$1) }
        if let status { json += #","status":\#(status)"#.utf8 }
        if repetitions > 0 { json += #","repetitions":\#(repetitions)"#.utf8 }
        write(event, about: principal.flatMap(Self.client) ?? address, json)
    }

    /// - Parameter members: the other members, each after a comma.
    private func write(_ event: String, about client: String, _ members: [UInt8]) {
        guard destination != .none else { return }
        let dropped = state.withLock { state -> Int? in
            guard state.queued < maximumQueued, state.mayWrite(about: client, maximum: maximumLines) else {
                state.dropped += 1
                return nil
            }
            state.queued += 1
            defer { state.dropped = 0 }
            return state.dropped
        }
        guard let dropped else { return }
        var json = Array(#"{"time":\#(Int(CoatyTimestamp.nowMillis())),"event":"\#(event)""#.utf8) + members
        if dropped > 0 { json += #","dropped":\#(dropped)"#.utf8 }
        let line = Data(json + "}\n".utf8)
        queue.async { [self] in
            let handle = state.withLock { state in
                state.queued -= 1
                return state.handle
            }
            do {
                try handle?.write(contentsOf: line)
            } catch {
                logger.error("the audit log can't be written", metadata: ["error": "\(error)"])
            }
        }
    }
}

extension AccessRequest {
    /// The verb, the pattern and the name, such as `publish advertise com.example.Lamp`.
    var summary: String {
        let name = target.name.map { " " + Problems.short($0) } ?? ""
        return "\(verb.rawValue) \(pattern.rawValue)\(name)\(isOfOthers ? " of others" : "")"
    }
}
