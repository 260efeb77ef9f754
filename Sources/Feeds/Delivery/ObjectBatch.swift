package import Base
import Coaty
import Network

/// Frames with whole objects of a snapshot, which are queued and written together.
///
/// A frame is spliced from the bytes of the object, without parsing them or creating an event: that takes a fifth of
/// the time, because no other client receives the frame.
package struct ObjectBatch: Sendable {
    /// A batch gets no more frames once it has this many bytes. WebSocket connections send as many bytes together.
    private static let bytes = 16 << 10

    /// The text of each frame.
    package private(set) var frames: ArraySlice<[UInt8]> = []
    /// The length of all frames, in bytes.
    package private(set) var count = 0
    /// The cursor of the last frame; nil if it has none.
    package private(set) var cursor: FeedCursor?
    /// The charge to the client until all frames are sent.
    package private(set) var charge: Charge?
    /// The beginning of each frame, up to the position of the cursor.
    private let beginning: [UInt8]

    /// - Parameter id: the client's id of the subscription.
    init(id: String?) {
        var text = ServerFrame.beginning(.event, id: id, reserving: 64)
        text += #","change":"\#(ObjectChange.Kind.added.rawValue)""#.utf8
        beginning = text
    }

    /// Whether the batch should get no more frames.
    var isFull: Bool { count >= Self.bytes }

    /// The number of bytes that the batch counts against the bounds of a queue.
    var size: Int { count + frames.count * QueuedEvent.overhead }

    mutating func append(_ object: AliveObject) {
        var text: [UInt8] = []
        text.reserveCapacity(beginning.count + object.bytes.count + object.owner.string.utf8.count + 128)
        text += beginning
        text.append(UInt8(ascii: ","))
        ObservedEvent.appendHead(of: object, to: &text)
        text += #"{"object":"#.utf8
        text += object.bytes
        text += "}}".utf8
        frames.append(text)
        count += text.count
    }

    /// Returns the batch with a cursor in its last frame.
    func resumable(behind cursor: FeedCursor?) -> ObjectBatch {
        guard self.cursor == nil, let cursor, let last = frames.indices.last else { return self }
        let member = #","cursor":"\#(cursor)""#.utf8
        var batch = self
        batch.frames[last].insert(contentsOf: member, at: beginning.count)
        batch.count += member.count
        batch.cursor = cursor
        return batch
    }

    /// Charges the frames to an account unless they are charged already.
    ///
    /// - Returns: false if there is no memory for them.
    mutating func charge(to memory: MemoryAccount) -> Bool {
        if charge == nil { charge = memory.charge(size) }
        return charge != nil
    }

    /// Removes the first frames, which the connection has accepted.
    ///
    /// - Returns: their length in bytes.
    mutating func removeFirst(_ number: Int) -> Int {
        let length = frames.prefix(number).reduce(0) { $0 + $1.count }
        frames.removeFirst(number)
        count -= length
        return length
    }
}
