import CWebSockets
import Logging
import Synchronization

/// Sends the log messages of libwebsockets to a `Logger`.
///
/// libwebsockets has one log function for the whole process, rather than one for each context: with several servers,
/// the logger of the last started one gets the lines of all. Its errors are mostly caused by clients, so they are
/// logged below the warning level.
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
