public import Foundation
import Synchronization

/// Subscriptions on one connection, over any transport, read as fast as possible.
///
/// Unlike ``FrameClient``, it keeps only the members of a frame that tests with many events need.
public final class StreamTap {
    /// The transport of the frames.
    public enum Transport: String, CaseIterable, Sendable {
        /// `/v1/ws`, with any number of subscriptions.
        case multiplexed
        /// `/v1/ws/{event}`, with one subscription.
        case single
        /// `/v1/sse/{event}`, with one subscription.
        case events
    }

    /// A subscription to open.
    public struct Subscription: Sendable {
        /// The id on `/v1/ws`.
        public var id: String
        /// The event's name.
        public var event: String
        /// Parameters and options by name, as JSON.
        public var members: [String: String]
        /// The cursor to resume from.
        public var since: String?

        /// Creates a subscription to a channel.
        public init(_ id: String = "s", channel: String, _ options: [String: String] = [:], since: String? = nil) {
            self.id = id
            event = "channel"
            members = options.merging(["channelId": "\"\(channel)\""]) { $1 }
            self.since = since
        }

        fileprivate var frame: String {
            let since = since.map { [("since", "\"\($0)\"")] } ?? []
            let rest = (members.map { ($0, $1) } + since).map { #","\#($0)":\#($1)"# }.joined()
            return #"{"op":"subscribe","id":"\#(id)","event":"\#(event)"\#(rest)}"#
        }

        fileprivate func target(_ transport: Transport) -> String {
            var items = members.map { name, json in
                let value = try? JSONSerialization.jsonObject(with: Data(json.utf8), options: .fragmentsAllowed)
                if let text = value as? String { return (name, text) }
                if name == "fields", let names = value as? [String] { return (name, names.joined(separator: ",")) }
                return (name, json)
            }
            if transport == .single, let since { items.append(("since", since)) }
            let query = items.map { name, value in
                "\(name)=\(value.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "")"
            }
            return "/v1/\(transport == .events ? "sse" : "ws")/\(event)?\(query.joined(separator: "&"))"
        }
    }

    /// A received frame.
    public struct Frame: Sendable {
        /// The frame's op.
        public let op: String
        /// The subscription's id, on `/v1/ws`.
        public let id: String?
        /// The member `n` of the event's object.
        public let number: Int?
        /// The object's id.
        public let objectId: String?
        /// The event's cursor.
        public let cursor: String?
        /// The number of dropped events; nil if unknown.
        public let lost: Int?
        /// The reason why the subscription has ended.
        public let reason: String?
    }

    private enum Connection {
        case socket(WebSocketClient)
        case events(EventStreamClient)
    }

    /// Maximum time in seconds until the next frame.
    private static let limit: TimeInterval = 60
    /// Number of frames per connection that go to the ``FrameLog``.
    private static let noted = 30

    private let connection: Connection
    private var receivedCount = 0

    /// Connects and subscribes. The caller reads the first frame of each subscription.
    public init(
        _ transport: Transport,
        port: UInt16,
        _ subscriptions: [Subscription],
        receiveBuffer: Int32? = nil
    ) throws {
        switch transport {
        case .events:
            let last = subscriptions.first?.since.map { [("Last-Event-ID", $0)] } ?? []
            let client = try EventStreamClient(
                port: port,
                path: subscriptions.first?.target(transport) ?? "",
                headers: last,
                receiveBuffer: receiveBuffer
            )
            guard client.head.status == 200 else { throw TestSupportError("\(client.head)") }
            connection = .events(client)
        case .single, .multiplexed:
            let client = try WebSocketClient(port: port, receiveBuffer: receiveBuffer)
            let target = transport == .single ? subscriptions.first?.target(transport) : nil
            let response = try client.shakeHands(path: target ?? "/v1/ws")
            guard response.status == 101 else { throw WebSocketClient.Failure.refused(response) }
            connection = .socket(client)
            if transport == .multiplexed {
                for subscription in subscriptions { try client.sendText(subscription.frame) }
            }
        }
    }

    /// Returns the next frame, or nil if the server closed the connection normally.
    ///
    /// - Throws: an error if no frame arrives in time, or if the connection breaks.
    public func next() throws -> Frame? {
        switch connection {
        case .events(let client): return try client.next(within: Self.limit).map { Self.frame($0.json) }
        case .socket(let client):
            while true {
                switch try client.receive(deadline: Date(timeIntervalSinceNow: Self.limit)) {
                case .text(let text):
                    receivedCount += 1
                    if receivedCount <= Self.noted { FrameLog.shared.received(text) }
                    let json = (try? JSONSerialization.jsonObject(with: Data(text.utf8))) as? [String: Any]
                    return Self.frame(json ?? [:])
                case .ping(let payload): try client.sendPong(payload)
                case .binary, .pong: continue
                case .close: return nil
                }
            }
        }
    }

    private static func frame(_ json: [String: Any]) -> Frame {
        let object = (json["data"] as? [String: Any])?["object"] as? [String: Any]
        return Frame(
            op: json["op"] as? String ?? "",
            id: json["id"] as? String,
            number: object?["n"] as? Int,
            objectId: object?["objectId"] as? String,
            cursor: json["cursor"] as? String,
            lost: json["dropped"] as? Int,
            reason: json["reason"] as? String
        )
    }
}

/// A reader of a ``StreamTap`` on a separate thread.
public final class StreamReader: Sendable {
    private struct State {
        var frames: [StreamTap.Frame] = []
        var end: String?
    }

    private let state = Mutex(State())

    /// Starts reading.
    ///
    /// - Parameters:
    ///   - open: opens the connection.
    ///   - goesOn: receives each frame, and returns whether to read another one.
    public init(
        _ open: @escaping @Sendable () throws -> StreamTap,
        while goesOn: @escaping @Sendable (StreamTap.Frame) -> Bool
    ) {
        Thread.detachNewThread { [self] in
            do {
                let tap = try open()
                while let frame = try tap.next() {
                    state.withLock { $0.frames.append(frame) }
                    guard goesOn(frame) else { return finish("enough") }
                }
                finish("closed")
            } catch {
                finish("\(error)")
            }
        }
    }

    private func finish(_ end: String) { state.withLock { $0.end = end } }

    /// The frames received so far.
    public var frames: [StreamTap.Frame] { state.withLock(\.frames) }

    /// The number of the last event.
    public var lastNumber: Int? { state.withLock { $0.frames.last { $0.number != nil }?.number } }

    /// The reason why reading has ended: `enough`, `closed`, or an error; nil while it continues.
    public var end: String? { state.withLock(\.end) }

    /// Waits until reading has ended, and returns all received frames.
    ///
    /// - Throws: ``TestSupportError`` if reading ended for another reason than `enough`.
    public func all(within seconds: TimeInterval = 60) throws -> [StreamTap.Frame] {
        try waitUntil("a reader is through", within: seconds) { end != nil }
        guard end == "enough" else {
            throw TestSupportError("\(end ?? ""), behind \(frames.count) frames, the last \(frames.suffix(3))")
        }
        return frames
    }
}
