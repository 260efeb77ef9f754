import Dispatch
import Foundation

/// Calls a function for each SIGHUP, one at a time.
/// Safe to share: it is not changed after `init`.
final class ReloadSignal: @unchecked Sendable {
    private let source: any DispatchSourceSignal

    init(_ handler: @escaping @Sendable () -> Void) {
        signal(SIGHUP, SIG_IGN)
        source = DispatchSource.makeSignalSource(signal: SIGHUP, queue: DispatchQueue(label: "reload"))
        source.setEventHandler(handler: handler)
        source.resume()
    }
}
