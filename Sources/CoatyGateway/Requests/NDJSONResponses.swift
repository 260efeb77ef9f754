import HTTPServer
import Synchronization

/// Writes the responses to one request as they come, a frame in each line; the last line says why there are no more.
///
/// What a client does not read in time is kept for it within the same bounds as what is collected.
final class NDJSONResponses: ResponseSink {
    static let headers = [(name: "Content-Type", value: "application/x-ndjson"), ("Cache-Control", "no-store")]

    private struct State {
        /// Lines that the stream has not taken.
        var waiting: [[UInt8]] = []
        var waitingBytes = 0
        var isEnding = false
    }

    private let stream: HTTPStream
    private let memory: CollectorMemory
    private let state = Mutex(State())

    /// - Parameter memory: what all requests share.
    init(_ stream: HTTPStream, memory: CollectorMemory) {
        self.stream = stream
        self.memory = memory
        stream.onRoom { self.state.withLock { self.flush(&$0) } }
        // A stream that is closed takes everything.
        stream.onClose { self.state.withLock { self.flush(&$0) } }
    }

    func take(_ frame: StreamFrame) -> Bool { write(frame) }

    func end(_ reason: StreamFrame.EndReason) { write(.done(reason), isLast: true) }

    /// Ends the stream with a problem, where the request could not be published.
    func fail(_ problem: Problem) {
        write(StreamFrame(.error, members: Array(problem.body.dropFirst().dropLast())), isLast: true)
    }

    @discardableResult
    private func write(_ frame: StreamFrame, isLast: Bool = false) -> Bool {
        let line = Self.line(frame)
        return state.withLock { state in
            state.waiting.append(line)
            state.waitingBytes += line.count
            state.isEnding = isLast
            let hasRoom = memory.take(line.count)
            flush(&state)
            return hasRoom && state.waitingBytes < CollectedResponses.maximumBytes
        }
    }

    /// Hands over what the stream takes.
    private func flush(_ state: inout State) {
        let count = state.waiting.firstIndex { stream.write($0) == .full } ?? state.waiting.count
        let bytes = state.waiting[..<count].reduce(0) { $0 + $1.count }
        state.waiting.removeFirst(count)
        state.waitingBytes -= bytes
        memory.release(bytes)
        if state.isEnding, state.waiting.isEmpty { stream.finish() }
    }

    /// In a JSON text, line ends stand between tokens alone, where a space means the same.
    private static func line(_ frame: StreamFrame) -> [UInt8] {
        var line = frame.json()
        for index in line.indices where line[index] == UInt8(ascii: "\n") || line[index] == UInt8(ascii: "\r") {
            line[index] = UInt8(ascii: " ")
        }
        line.append(UInt8(ascii: "\n"))
        return line
    }
}
