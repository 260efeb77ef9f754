import CWebSockets
import Logging
import Synchronization

/// Sends what libwebsockets logs to a `Logger`.
///
/// libwebsockets keeps one log function for the whole process, not one for a context: with several servers, the logger
/// of the one that was started last gets the lines of all. Its errors are mostly what a client did wrong, so they rank
/// below a warning here.
enum LibraryLog {
    private static let logger = Mutex<Logger?>(nil)

    static func install(_ logger: Logger) {
        Self.logger.withLock { $0 = logger }
        cws_set_log { level, line in
            guard let line else { return }
            var text = Substring(String(cString: line))
            while text.last?.isNewline == true {
                text.removeLast()
            }
            LibraryLog.logger.withLock { $0 }?.log(
                level: cws_log_is_error(level) != 0 ? .info : .debug,
                "libwebsockets: \(text)"
            )
        }
    }
}
