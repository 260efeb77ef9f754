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

extension HTTPReply {
    /// Maximum number of bytes that are sent together, with their length.
    private static let maximumLength = 64 << 10

    /// Returns the response to a query that runs elsewhere. A long response is written as the client reads it.
    ///
    /// - Parameter answer: called with a function that returns whether the client still waits.
    static func listing(
        _ answer: @escaping @Sendable (_ isWanted: @escaping @Sendable () -> Bool) async throws -> ListBody
    ) -> HTTPReply {
        .later { pending in
            Task {
                do {
                    let body = try await answer { pending.isWaiting }
                    if let bytes = body.bytes(upTo: maximumLength) {
                        pending.complete(.json(bytes))
                    } else {
                        pending.complete(status: 200, headers: HTTPResponse.jsonHeaders) { stream in
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
