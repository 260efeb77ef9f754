public import Coaty
import Foundation
public import Logging
import Synchronization

/// Binds an agent to an MQTT 5 or 3.1.1 broker with libmosquitto.
///
/// It uses QoS 0 and a clean session, as Coaty requires. From ``join(_:)`` to ``leave()``, the binding has a separate
/// network thread, the only thread that uses libmosquitto.
public final class MQTTBinding: Binding {
    /// Maximum time of an orderly leave; then the connection is closed.
    static let leaveTimeout = Duration.milliseconds(800)
    /// Maximum time that ``leave()`` waits for the network thread.
    static let threadTimeout = Duration.seconds(1)

    private let options: MQTTClientOptions
    private let logger: Logger
    private let wakePipe: WakePipe
    private let thread = Mutex<NetworkThread?>(nil)

    /// Creates a binding; nothing happens before the communication manager starts.
    ///
    /// - Throws: `ConnectionError` if the system has no descriptors for it.
    public init(options: MQTTClientOptions, logger: Logger = Logger(label: "coaty.mqtt")) throws {
        self.options = options
        self.logger = logger
        wakePipe = try WakePipe()
    }

    /// Starts to connect.
    public func join(_ session: BindingSession) {
        let joined = NetworkThread()
        thread.withLock { $0 = joined }
        let thread = Thread { [options, wakePipe, logger] in
            NetworkLoop(session: session, options: options, wakePipe: wakePipe, logger: logger).run()
            joined.end()
        }
        thread.name = "coaty-mqtt"
        thread.start()
    }

    /// Wakes the network thread.
    public func wake() { wakePipe.wake() }

    /// Makes the network thread perform the remaining operations, and returns when it has ended.
    public func leave() async {
        guard let left = thread.withLock({ $0.take() }) else { return }
        let timer = Task {
            // A thread that blocks in name resolution can't be interrupted; it ends later.
            try await Task.sleep(for: Self.threadTimeout)
            left.end()
        }
        wakePipe.wake()
        await left.untilEnd()
        timer.cancel()
    }

    /// Returns the size of a publication's packet, with the longer head of MQTT 5.
    public func packetSize(of publication: Publication) -> Int {
        let topic =
            switch publication.destination {
            case .event(let address): MQTTTopic.topic(of: address)
            case .ioRoute(let name), .raw(let name, _): name
            }
        return PublicationWriter.packetSize(
            topicLength: topic.utf8.count,
            payload: publication.payload.count,
            version: .v5
        )
    }

    /// Returns the IoValue topic of the source.
    public func ioRoute(ofSource sourceId: CoatyUUID, namespace: String) -> String {
        MQTTTopic.topic(of: EventAddress(.ioValue, namespace: namespace, sourceId: sourceId))
    }

    /// Returns whether a route is an external topic, or the IoValue topic of a source.
    public func isIoRoute(_ route: String) -> Bool { MQTTTopic.isIoRoute(route) }

    /// Returns whether a topic has no wildcards and is not reserved by Coaty.
    public func isPublishable(rawTopic: String) -> Bool { MQTTTopic.isPublishable(rawTopic) }

    /// Returns whether a topic filter does not select only Coaty's topics.
    public func isObservable(rawTopicFilter: String) -> Bool { MQTTTopic.isObservable(rawTopicFilter) }
}

/// The end of a network thread.
private final class NetworkThread: Sendable {
    private enum State {
        case running
        case awaited(CheckedContinuation<Void, Never>)
        case ended
    }

    private let state = Mutex(State.running)

    /// Returns when the thread has ended, or waiting is given up.
    func untilEnd() async {
        await withCheckedContinuation { continuation in
            let hasEnded = state.withLock { state in
                guard case .running = state else { return true }
                state = .awaited(continuation)
                return false
            }
            if hasEnded { continuation.resume() }
        }
    }

    func end() {
        let continuation = state.withLock { state -> CheckedContinuation<Void, Never>? in
            defer { state = .ended }
            if case .awaited(let continuation) = state { return continuation }
            return nil
        }
        continuation?.resume()
    }
}
