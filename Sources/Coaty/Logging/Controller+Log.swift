extension Controller {
    /// Advertises a Log object for debugging.
    ///
    /// The log functions never fail: if an entry can't be published, this is logged by the container's logger.
    ///
    /// - Parameters:
    ///   - message: what happened.
    ///   - tags: words to categorize entries by; not empty.
    public func logDebug(message: String, tags: [String] = []) { log(.debug, message, tags) }

    /// Advertises a Log object of level info.
    public func logInfo(message: String, tags: [String] = []) { log(.info, message, tags) }

    /// Advertises a Log object of level warning.
    public func logWarning(message: String, tags: [String] = []) { log(.warning, message, tags) }

    /// Advertises a Log object for an error: the message, a colon and the error.
    public func logError(error: Any, message: String, tags: [String] = []) {
        log(.error, "\(message): \(error)", tags)
    }

    /// Advertises a Log object for an unrecoverable error.
    public func logFatal(error: Any, message: String, tags: [String] = []) {
        log(.fatal, "\(message): \(error)", tags)
    }

    private func log(_ level: LogLevel, _ message: String, _ tags: [String]) {
        let log = Log(
            logLevel: level,
            logMessage: message,
            logDate: Log.dateNow(),
            name: registeredName,
            logTags: tags,
            logHost: LogHost(current: container.configuration.common?.agentInfo)
        )
        extendLogObject(log: log)
        do {
            try communicationManager.publishAdvertise(.with(object: log))
        } catch {
            container.logger.warning(
                "a Log object could not be advertised",
                metadata: ["controller": "\(registeredName)", "error": "\(error)"]
            )
        }
    }
}
