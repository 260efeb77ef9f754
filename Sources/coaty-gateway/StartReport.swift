import CoatyGateway
import Foundation
import Logging

/// The lines on standard output that report the gateway's address and its readiness.
struct StartReport {
    private let gateway: RunningGateway
    private let token: String?
    private let logger: Logger

    /// - Parameter token: the token that the gateway has created; nil if it has created none.
    init(_ gateway: RunningGateway, token: String?, logger: Logger) {
        self.gateway = gateway
        self.token = token
        self.logger = logger
    }

    /// Writes the address of the gateway and, possibly later, that it is ready.
    func write() async {
        let ready = "coaty-gateway ready on \(gateway.url) (broker \(gateway.broker))"
        let problem = gateway.brokerProblem
        let first = problem.map { problem in
            "coaty-gateway listening on \(gateway.url), broker \(gateway.broker) \(problem), retrying"
        }
        write([first ?? ready] + console)
        if problem != nil, await gateway.becomesReady() { write([ready]) }
    }

    /// The link that opens the console with the token in a browser on this machine.
    private var console: [String] {
        guard let token else { return [] }
        let url = gateway.url.replacing("//0.0.0.0:", with: "//localhost:")
            .replacing("//[::]:", with: "//localhost:")
        return ["console \(url)/#token=\(token)"]
    }

    private func write(_ lines: [String]) {
        do {
            // print() is not used, because a supervisor that reads a pipe must get the lines immediately.
            try FileHandle.standardOutput.write(contentsOf: Data(lines.map { $0 + "\n" }.joined().utf8))
        } catch {
            logger.warning("standard output can't be written", metadata: ["line": "\(lines.first ?? "")"])
        }
    }
}
