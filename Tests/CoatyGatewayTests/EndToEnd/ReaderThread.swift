import Foundation
import Synchronization

/// Reads on a thread of its own.
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
    /// What the body has returned, and when.
    var end: (text: String, date: Date)? {
        state.withLock { state in state.end.map { ($0, state.date) } }
    }
}
