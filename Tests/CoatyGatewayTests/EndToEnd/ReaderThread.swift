import Foundation
import Synchronization

/// A thread that reads a stream.
final class ReaderThread: Sendable {
    private let state = Mutex<(isOpen: Bool, end: String?, date: Date)>((false, nil, .distantPast))

    init(_ body: @escaping @Sendable (_ opened: () -> Void) throws -> String) {
        Thread.detachNewThread { [self] in
            let end: String
            do {
                end = try body { self.state.withLock { $0.isOpen = true } }
            } catch {
                end = "\(error)"
            }
            state.withLock { ($0.end, $0.date) = (end, Date()) }
        }
    }

    var isOpen: Bool { state.withLock { $0.isOpen } }
    /// The result of the body, and the time when it returned.
    var end: (text: String, date: Date)? {
        state.withLock { state in state.end.map { ($0, state.date) } }
    }
}
