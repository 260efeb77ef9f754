import CMicroHTTPD
import Synchronization

/// Number of connections that libmicrohttpd may have on each thread beyond the server's own limit. libmicrohttpd must
/// never reach its own limit: 0.9.75 then returns from `new_connection_process_` with a lock held, and the thread hangs
/// permanently. It counts a connection as closed a moment after it reports the close.
private let spareConnections = 16 + RequestDeadlines.maximumCutting

/// Starts libmicrohttpd with callbacks to `processor`, which must outlive the daemon.
func startDaemon(_ configuration: HTTPServer.Configuration, _ processor: RequestProcessor) -> OpaquePointer? {
    let threads = max(1, configuration.threads)
    var options = cmhd_configuration(
        threads: UInt32(threads),
        connection_limit: UInt32(threads * (configuration.connectionLimit + spareConnections)),
        // A client that keeps exactly to the announced time must not meet the close.
        connection_timeout: UInt32(configuration.announcedKeepAlive + 1),
        connection_memory: configuration.connectionMemory,
        handler: handleAccess,
        completed: handleCompletion,
        notify: handleConnection,
        context: Unmanaged.passUnretained(processor).toOpaque()
    )
    return cmhd_start(&options)
}

// The references below are intentionally unmanaged: reference counting of the processor, which all threads share, would
// make all threads write to one cache line.

private func handleAccess(
    _ context: UnsafeMutableRawPointer?,
    _ connection: OpaquePointer?,
    _ target: UnsafePointer<CChar>?,
    _ method: UnsafePointer<CChar>?,
    _ version: UnsafePointer<CChar>?,
    _ upload: UnsafePointer<CChar>?,
    _ uploadSize: UnsafeMutablePointer<Int>?,
    _ exchangeContext: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
) -> MHD_Result {
    guard let context, let connection, let target, let method, let version, let uploadSize, let exchangeContext else {
        return .NO
    }
    return Unmanaged<RequestProcessor>.fromOpaque(context)._withUnsafeGuaranteedRef { processor in
        guard let known = exchangeContext.pointee else {
            return processor.begin(
                connection,
                target: target,
                method: method,
                version: version,
                context: &exchangeContext.pointee
            )
        }
        return Unmanaged<Exchange>.fromOpaque(known)._withUnsafeGuaranteedRef { exchange in
            guard let upload, uploadSize.pointee > 0 else {
                return processor.answer(connection, target: target, exchange)
            }
            let part = UnsafeRawBufferPointer(start: upload, count: uploadSize.pointee)
            uploadSize.pointee = 0
            return processor.receive(part, connection, exchange)
        }
    }
}

private func handleCompletion(
    _ context: UnsafeMutableRawPointer?,
    _ connection: OpaquePointer?,
    _ exchangeContext: UnsafeMutablePointer<UnsafeMutableRawPointer?>?,
    _ reason: MHD_RequestTerminationCode
) {
    guard let context, let known = exchangeContext?.pointee else { return }
    exchangeContext?.pointee = nil
    let exchange = Unmanaged<Exchange>.fromOpaque(known).takeRetainedValue()
    Unmanaged<RequestProcessor>.fromOpaque(context)._withUnsafeGuaranteedRef { $0.end(exchange) }
}

private func handleConnection(
    _ context: UnsafeMutableRawPointer?,
    _ connection: OpaquePointer?,
    _ socketContext: UnsafeMutablePointer<UnsafeMutableRawPointer?>?,
    _ event: MHD_ConnectionNotificationCode
) {
    guard let context, let connection, let socketContext else { return }
    Unmanaged<RequestProcessor>.fromOpaque(context)._withUnsafeGuaranteedRef { processor in
        switch event {
        case .CONNECTION_NOTIFY_STARTED: processor.open(connection, context: &socketContext.pointee)
        case .CONNECTION_NOTIFY_CLOSED: processor.close(context: &socketContext.pointee)
        }
    }
}
