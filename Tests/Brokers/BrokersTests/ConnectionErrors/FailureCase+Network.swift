import TestSupport

extension FailureCase {
    /// Addresses without a working broker.
    static let network = [
        FailureCase("nothing listens", .connectionRefused) {
            Setup(failingOptions(try FreePort.tcp()))
        },
        FailureCase("host name that does not exist", .hostNotFound) {
            Setup(failingOptions(1883) { $0.host = "broker.invalid" })
        },
        FailureCase("address that takes no connection", .timedOut) {
            let listener = try FullListener()
            return Setup(failingOptions(listener.port), listener)
        },
        FailureCase("connection accepted, CONNECT not answered", .noAnswer) {
            let proxy = try await FaultProxy(before: 9, ["--frozen"])
            return Setup(failingOptions(proxy.port), proxy)
        },
        FailureCase("connection closed upon CONNECT", .closed) {
            // The proxy can't connect to this port, and closes the connection.
            let proxy = try await FaultProxy(before: try FreePort.tcp())
            return Setup(failingOptions(proxy.port), proxy)
        },
    ]
}
