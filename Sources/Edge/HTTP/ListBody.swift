import Base
import HTTPServer
import Synchronization

/// A JSON text with a long array, written element by element.
struct ListBody: Sendable {
    /// The text before the first element, up to and including `[`.
    let head: String
    let count: Int
    /// Returns the parts of an element's text, which may be shared with others.
    let element: @Sendable (Int) -> [[UInt8]]
    /// The text after the last element, starting with `]`.
    let tail: String
    /// Kept until the text is sent.
    let holder: Place

    /// Returns the parts of the text that belong to an element, from 0 to ``count``, where the text ends.
    func parts(at index: Int) -> [[UInt8]] {
        if index == count { return [Array((count == 0 ? head + tail : tail).utf8)] }
        return [Array((index == 0 ? head : ",").utf8)] + element(index)
    }

    /// Returns the whole text; nil if it is longer than a limit.
    func bytes(upTo limit: Int) -> [UInt8]? {
        var bytes: [UInt8] = []
        for index in 0...count {
            for part in parts(at: index) { bytes += part }
            if bytes.count > limit { return nil }
        }
        return bytes
    }
}

extension ListBody {
    /// Minimum number of bytes of a text that is compressed: a shorter one fits into a packet.
    private static let minimumCompressed = 1400
    /// Maximum number of bytes of a text that is compressed. It is held as a whole; a longer one is written as it is
    /// while the client reads it.
    private static let maximumCompressed = 8 << 20
    /// Number of bytes that are compressed before other tasks get a turn, about half a millisecond.
    private static let slice = 64 << 10
    /// The work for a byte, by the steps of ``WorkRate``: a step for six bytes.
    private static let bytesPerStep = 6

    /// Compresses the text, at the expense of a client.
    ///
    /// - Parameter isWanted: returns whether the client still waits.
    /// - Returns: nil if the text is too short or too long, or if the client has no memory for it.
    fileprivate func compressed(for account: ClientAccount, while isWanted: () -> Bool) async -> (
        bytes: [UInt8], Charge
    )? {
        guard let charge = account.memory.charge(Gzip.memory), var gzip = Gzip(.fast) else { return nil }
        var (length, sliceLength) = (0, 0)
        for index in 0...count {
            for part in parts(at: index) {
                gzip.append(part)
                sliceLength += part.count
            }
            guard sliceLength >= Self.slice || index == count else { continue }
            length += sliceLength
            account.work.spend(sliceLength / Self.bytesPerStep)
            guard length <= Self.maximumCompressed, charge.resize(to: Gzip.memory + gzip.bytes.capacity) else {
                return nil
            }
            guard index < count else { break }
            sliceLength = 0
            await Task.yield()
            guard isWanted() else { return nil }
        }
        guard length >= Self.minimumCompressed else { return nil }
        let bytes = gzip.finish()
        return charge.resize(to: bytes.capacity) ? (bytes, charge) : nil
    }
}

extension HTTPReply {
    /// Maximum number of bytes that are sent together, with their length.
    private static let maximumLength = 64 << 10

    private static let listHeaders = HTTPResponse.jsonHeaders + [("Vary", "Accept-Encoding")]

    /// Returns the response to a query that runs elsewhere. A long response is written as the client reads it.
    ///
    /// - Parameters:
    ///   - account: the account of a client that prefers a compressed response; nil for other clients.
    ///   - answer: called with a function that returns whether the client still waits.
    static func listing(
        compressedFor account: ClientAccount?,
        _ answer: @escaping @Sendable (_ isWanted: @escaping @Sendable () -> Bool) async throws -> ListBody
    ) -> HTTPReply {
        .later { pending in
            Task {
                do {
                    let body = try await answer { pending.isWaiting }
                    if let account,
                        let (bytes, charge) = await body.compressed(for: account, while: { pending.isWaiting })
                    {
                        let headers = listHeaders + [("Content-Encoding", "gzip")]
                        pending.complete(HTTPResponse(status: 200, headers: headers, body: bytes, holding: charge))
                    } else if let bytes = body.bytes(upTo: maximumLength) {
                        pending.complete(HTTPResponse(status: 200, headers: listHeaders, body: bytes))
                    } else {
                        pending.complete(status: 200, headers: listHeaders) { stream in
                            ListWriter(body).begin(stream)
                        }
                    }
                } catch {
                    pending.complete(Problems.of(error).response())
                }
            }
        }
    }
}

/// Writes a text to a stream, element by element, as space becomes available.
private final class ListWriter: Sendable {
    private let body: ListBody
    /// The next element. The lock keeps the elements in order, whichever thread writes them.
    private let next = Mutex(0)

    init(_ body: ListBody) { self.body = body }

    func begin(_ stream: HTTPStream) {
        stream.onRoom { [weak stream] in
            if let stream { self.write(to: stream) }
        }
        write(to: stream)
    }

    private func write(to stream: HTTPStream) {
        next.withLock { next in
            while next <= body.count {
                guard stream.write(body.parts(at: next)) == .queued else { return }
                next += 1
            }
            stream.finish()
        }
    }
}
